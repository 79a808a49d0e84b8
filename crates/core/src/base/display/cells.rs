//! Texts in cells of CSV files that a spreadsheet opens.

use std::borrow::Cow;

/// The characters with which a spreadsheet begins a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Returns a text that no spreadsheet takes for a formula: an apostrophe precedes a sign that would begin one, unless the text is a
/// number, and precedes an apostrophe that is there already. [`unguarded`] removes it.
pub fn guarded(text: &str) -> Cow<'_, str> {
    let is_formula = text.trim_start_matches('\'').starts_with(FORMULA);
    if is_formula && text.parse::<f64>().is_err() {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns a text without the apostrophe of [`guarded`].
pub fn unguarded(text: &str) -> &str {
    let rest = text.strip_prefix('\'');
    rest.filter(|rest| rest.trim_start_matches('\'').starts_with(FORMULA))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_guarded_and_every_text_comes_back() {
        for (text, cell) in [
            ("=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
            ("+1 floor", "'+1 floor"),
            ("@sum", "'@sum"),
            ("\t=1", "'\t=1"),
            ("-3.2", "-3.2"),
            ("+7", "+7"),
            ("'quoted'", "'quoted'"),
            ("'=x", "''=x"),
            ("''+x", "'''+x"),
            ("wall", "wall"),
            ("", ""),
        ] {
            assert_eq!(guarded(text), cell);
            assert_eq!(unguarded(cell), text);
        }
    }
}
