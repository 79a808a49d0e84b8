//! Values to cells: numbers as numbers, text as text, nothing that Excel would run or refuse.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum CellContent {
    Empty,
    Number(f64),
    Bool(bool),
    /// Clean and short enough for Excel.
    Text(String),
}

/// Most UTF-16 units that Excel takes in a cell.
const LONGEST: usize = 32_767;
/// Stands at the end of a text that was cut.
const MARK: &str = " … (cut)";
/// Whole numbers beyond this are not exact in a cell; they are written as text.
const EXACT: u64 = 1 << 53;

/// Returns the content of a cell, and the number format if the value is `{"value", "format"}`.
pub(super) fn content(value: &Value) -> (CellContent, Option<&str>) {
    if let Value::Object(fields) = value
        && fields.len() == 2
        && let (Some(inner), Some(Value::String(format))) =
            (fields.get("value"), fields.get("format"))
    {
        return (plain(inner), Some(format));
    }
    (plain(value), None)
}

/// Returns the text that a cell shows for a value, without a number format; `None` if the cell is empty.
pub fn cell_text(value: &Value) -> Option<String> {
    match content(value).0 {
        CellContent::Empty => None,
        CellContent::Number(number) => Some(number.to_string()),
        CellContent::Bool(is) => Some(is.to_string()),
        CellContent::Text(text) => Some(text),
    }
}

fn plain(value: &Value) -> CellContent {
    match value {
        Value::Null => CellContent::Empty,
        Value::Bool(b) => CellContent::Bool(*b),
        Value::Number(n) => {
            let exact = match (n.as_u64(), n.as_i64()) {
                (Some(u), _) => u <= EXACT,
                (None, Some(i)) => i.unsigned_abs() <= EXACT,
                (None, None) => true,
            };
            match n.as_f64() {
                Some(f) if exact && f.is_finite() => CellContent::Number(f),
                _ => CellContent::Text(n.to_string()),
            }
        }
        Value::String(s) => text(s),
        Value::Array(items) => {
            let words: Option<Vec<String>> = items
                .iter()
                .map(|item| match item {
                    Value::String(s) => Some(s.clone()),
                    Value::Number(_) | Value::Bool(_) => Some(item.to_string()),
                    Value::Null => Some("–".to_owned()),
                    _ => None,
                })
                .collect();
            text(&words.map_or_else(|| value.to_string(), |w| w.join(", ")))
        }
        Value::Object(_) => text(&value.to_string()),
    }
}

/// A text without control characters, cut with a mark at what Excel takes.
fn text(source: &str) -> CellContent {
    let clean = |c: char| match c {
        '\n' | '\t' => Some(c),
        '\r' => None,
        c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => Some('\u{FFFD}'),
        c => Some(c),
    };
    let mut out: String = source.chars().filter_map(clean).collect();
    if out.is_empty() {
        return CellContent::Empty;
    }
    // A text is never shorter in UTF-8 than in UTF-16.
    if out.len() > LONGEST && out.encode_utf16().count() > LONGEST {
        let room = LONGEST - MARK.encode_utf16().count();
        let mut units = 0;
        let end = out.char_indices().find_map(|(at, c)| {
            units += c.len_utf16();
            (units > room).then_some(at)
        });
        out.truncate(end.unwrap_or(out.len()));
        out.push_str(MARK);
    }
    CellContent::Text(out)
}

/// How many characters wide a content is shown.
pub(super) fn width(content: &CellContent) -> usize {
    match content {
        CellContent::Empty => 0,
        CellContent::Number(n) if n.fract() == 0.0 => format!("{n:.0}").len(),
        CellContent::Number(_) => 9,
        CellContent::Bool(_) => 5,
        CellContent::Text(text) => text
            .lines()
            .map(|line| line.chars().take(200).count())
            .max()
            .unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_become_what_excel_takes() {
        let text = |s: &str| CellContent::Text(s.to_owned());
        for (value, want) in [
            (json!(null), CellContent::Empty),
            (json!(""), CellContent::Empty),
            (json!(1.25), CellContent::Number(1.25)),
            (json!(-3), CellContent::Number(-3.0)),
            (json!(true), CellContent::Bool(true)),
            (json!("=1+1"), text("=1+1")),
            (json!("http://x"), text("http://x")),
            (json!("a\u{1}b\r\nc\u{7f}"), text("a\u{FFFD}b\nc\u{FFFD}")),
            (json!(9_007_199_254_740_993_u64), text("9007199254740993")),
            (json!(["a", 1, null]), text("a, 1, –")),
            (json!([]), CellContent::Empty),
            (json!({"a": [1]}), text("{\"a\":[1]}")),
        ] {
            assert_eq!(content(&value), (want, None), "{value}");
        }
        assert_eq!(
            content(&json!({"value": 0.5, "format": "0%"})),
            (CellContent::Number(0.5), Some("0%"))
        );
    }

    #[test]
    fn a_long_text_is_cut_with_a_mark() {
        for source in ["x".repeat(40_000), "😀".repeat(20_000)] {
            let (CellContent::Text(cut), None) = content(&json!(source)).clone() else {
                panic!("no text");
            };
            assert!(cut.ends_with(MARK) && cut.encode_utf16().count() <= LONGEST);
            assert!(cut.encode_utf16().count() > LONGEST - 3);
        }
        let fits = "ü".repeat(LONGEST);
        assert_eq!(content(&json!(fits)).0, CellContent::Text(fits));
    }
}
