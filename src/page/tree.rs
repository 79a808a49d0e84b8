//! A JSON document as a tree that opens and closes, with violations beside their values.

use milepost_core::base::visible::visible_lines;
use milepost_core::expr::pointer::below;
use milepost_engine::ops::inspect::file::FileViolation;
use minijinja::{HtmlEscape, Value as Template};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The most values that are drawn.
const VALUES: usize = 5_000;

/// How much of a text is shown, in characters.
const SHOWN: usize = 2_000;

/// The depth to which the tree is open.
const OPEN: usize = 2;

/// The most items of a list or object that is open.
const FEW: usize = 100;

struct TreeDrawing<'a> {
    html: String,
    left: usize,
    violations: BTreeMap<&'a str, Vec<&'a str>>,
}

/// Draws a document. Of a large one, the first values are drawn, and it says so.
pub(crate) fn tree(document: &Value, violations: &[FileViolation]) -> Template {
    let mut by_pointer: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for violation in violations {
        let messages = by_pointer.entry(&violation.pointer).or_default();
        messages.push(&violation.message);
    }
    let mut drawing = TreeDrawing {
        html: String::new(),
        left: VALUES,
        violations: by_pointer,
    };
    drawing.html.push_str("<div class=\"tree\">");
    drawing.value(None, document, "", 0);
    drawing.html.push_str("</div>");
    if drawing.left == 0 {
        drawing
            .html
            .push_str("<p class=\"note\">Only the first 5,000 values are drawn.</p>");
    }
    Template::from_safe_string(drawing.html)
}

impl TreeDrawing<'_> {
    fn value(&mut self, name: Option<&str>, value: &Value, pointer: &str, depth: usize) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let children: Vec<(String, &Value)> = match value {
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items
                    .take(self.left)
                    .map(|(at, item)| (at.to_string(), item))
                    .collect()
            }
            Value::Object(object) => {
                let fields = object.iter().take(self.left);
                fields.map(|(name, value)| (name.clone(), value)).collect()
            }
            _ => Vec::new(),
        };
        let label = name.map(|name| format!("<span class=\"key\">{}</span> ", escaped(name)));
        let label = label.unwrap_or_default();
        let marks = self.marks(pointer);
        if children.is_empty() {
            let text = format!("<div class=\"leaf\">{label}{}{marks}</div>", leaf(value));
            self.html.push_str(&text);
            return;
        }
        let size = match value {
            Value::Array(items) => format!("[{}]", items.len()),
            Value::Object(object) => format!("{{{}}}", object.len()),
            _ => String::new(),
        };
        let is_open = depth < OPEN && children.len() <= FEW || self.has_violation_below(pointer);
        let open = if is_open { " open" } else { "" };
        let start = format!(
            "<details{open}><summary>{label}<span class=\"soft\">{size}</span>{marks}</summary>"
        );
        self.html.push_str(&start);
        for (name, child) in children {
            self.value(Some(&name), child, &below(pointer, &name), depth + 1);
        }
        self.html.push_str("</details>");
    }

    /// Returns the violations of a value.
    fn marks(&self, pointer: &str) -> String {
        let messages = self.violations.get(pointer).into_iter().flatten();
        let marks = messages
            .map(|message| format!(" <span class=\"violation\">{}</span>", escaped(message)));
        marks.collect()
    }

    fn has_violation_below(&self, pointer: &str) -> bool {
        let below = format!("{pointer}/");
        let from = (Bound::Included(below.as_str()), Bound::Unbounded);
        let mut after = self.violations.range::<str, _>(from);
        after
            .next()
            .is_some_and(|(found, _)| found.starts_with(&below))
    }
}

fn leaf(value: &Value) -> String {
    let (class, text) = match value {
        Value::String(text) => ("text", text.as_str().to_owned()),
        Value::Null => ("null", "null".to_owned()),
        Value::Array(_) => ("null", "empty list".to_owned()),
        Value::Object(_) => ("null", "empty object".to_owned()),
        other => ("number", other.to_string()),
    };
    let shown = crate::page::cut(&text, SHOWN);
    format!("<span class=\"{class}\">{}</span>", escaped(&shown))
}

/// Escapes a text for HTML, and its control characters for people.
fn escaped(text: &str) -> String {
    HtmlEscape(&visible_lines(text)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_violation_is_beside_its_value_and_nothing_is_markup() {
        let violations = [FileViolation {
            pointer: "/people/0/age".to_owned(),
            message: "\"<b>\" is a string".to_owned(),
        }];
        let document = json!({"people": [{"age": "<b>\u{1b}[1m"}], "no": {}});
        let expected = "<div class=\"tree\"><details open><summary><span class=\"soft\">{2}</span></summary>\
            <details open><summary><span class=\"key\">people</span> <span class=\"soft\">[1]</span></summary>\
            <details open><summary><span class=\"key\">0</span> <span class=\"soft\">{1}</span></summary>\
            <div class=\"leaf\"><span class=\"key\">age</span> <span class=\"text\">&lt;b&gt;\\u001b[1m</span> \
            <span class=\"violation\">&quot;&lt;b&gt;&quot; is a string</span></div></details></details>\
            <div class=\"leaf\"><span class=\"key\">no</span> <span class=\"null\">empty object</span></div></details></div>";
        assert_eq!(tree(&document, &violations).to_string(), expected);
    }

    #[test]
    fn a_large_document_is_cut_and_says_so() {
        let list: Vec<u32> = (0..10_000).collect();
        let drawn = tree(&json!(list), &[]).to_string();
        assert_eq!(drawn.matches("class=\"leaf\"").count(), 4_999);
        assert!(drawn.ends_with("Only the first 5,000 values are drawn.</p>"));
        let text = tree(&json!("x".repeat(10_000_000)), &[]).to_string();
        assert!(
            text.len() < 2_200 && text.contains("(9,998,000 more bytes)"),
            "{text}"
        );
    }
}
