//! Text from outside as it may be shown: control characters are written as escapes, so they reach no terminal, log or table.

use std::borrow::Cow;

/// Returns the text on one line: every control character is written as an escape of JSON, such as `\n` or `\u001b`.
///
/// Control characters are C0, DEL, C1, the marks and controls of bidirectional text, U+2028 and U+2029.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// Returns a text of several lines: as [`visible`] does, but with line breaks and tabs. JSON stays the same value, because its
/// strings hold neither.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| matches!(c, '\n' | '\t'))
}

/// Returns a message of several lines: as [`visible_lines`] does, with the lines after the first indented, so that no name or value in
/// it begins a line.
pub fn visible_message(text: &str) -> String {
    let shown = visible_lines(text);
    let lines = shown.split('\n').enumerate().map(|(at, line)| match line {
        line if at == 0 || line.is_empty() || line.starts_with(' ') => line.to_owned(),
        line => format!("    {line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns true for a character that moves, hides or reorders other text.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_escaped = |c: char| is_control(c) && !is_kept(c);
    let Some(first) = text.find(is_escaped) else {
        return Cow::Borrowed(text);
    };
    let mut shown = text[..first].to_owned();
    for c in text[first..].chars() {
        match c {
            c if !is_escaped(c) => shown.push(c),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{0}\u{1b}[2J\u{7f}\u{9b}\r\n\t\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202e}\u{2066}\u{2069}é";

    #[test]
    fn control_characters_become_escapes() {
        assert_eq!(
            visible(HOSTILE),
            r"a\u0000\u001b[2J\u007f\u009b\r\n\t\u061c\u200e\u200f\u2028\u2029\u202e\u2066\u2069é"
        );
        assert!(visible_lines(HOSTILE).contains("\\r\n\t\\u061c"));
        let plain = "Übung\u{a0}3: שלום, 你好, \u{200d}";
        assert!(matches!(visible(plain), Cow::Borrowed(text) if text == plain));
        assert!(matches!(visible_lines("a\n\tb"), Cow::Borrowed("a\n\tb")));
    }

    #[test]
    fn a_name_in_a_message_begins_no_line() {
        let text = "wrong: a\nerror: forged\u{1b}\n  | 1\n\nend\t";
        assert_eq!(
            visible_message(text),
            "wrong: a\n    error: forged\\u001b\n  | 1\n\n    end\t"
        );
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({ HOSTILE: [HOSTILE] });
        let text = format!("{value:#}");
        let shown = visible_lines(&text);
        assert_ne!(shown, text);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
    }
}
