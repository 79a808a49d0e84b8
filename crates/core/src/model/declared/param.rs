//! A parameter as declared: its type, the values that it accepts, and how it parses a text.

use crate::base::path::RelPath;
use crate::expr::json;
use crate::expr::template::is_template;
use jiff::civil::Date;
use regex::Regex;
use serde_json::{Number, Value};
use strum::{EnumString, IntoStaticStr, VariantNames};

/// The default of a date parameter that is the day of each run.
pub(crate) const TODAY: &str = "today";

/// A parameter: a value with a default, or a file of the workspace.
#[derive(Debug, Clone)]
pub struct Param {
    pub name: String,
    /// The value if `--set` sets none; for a file its path in the workspace. A string may be a template over `workspace`.
    pub default: Value,
    /// Present for `{ file, base }`: `--set` copies a file from outside to this path.
    pub file: Option<ParamFile>,
    /// The type of its values.
    pub(crate) kind: ParamType,
    /// The values of that type that it accepts.
    pub(crate) allowed: Allowed,
    pub description: Option<String>,
}

/// A parameter that is a file.
#[derive(Debug, Clone)]
pub struct ParamFile {
    /// The path in the workspace.
    pub path: RelPath,
    /// The folder that `--set` is relative to and confined by, as written (`project:` or a path).
    pub base: Option<String>,
}

/// The type of a parameter's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum ParamType {
    String,
    Integer,
    Number,
    /// True or false.
    Boolean,
    /// A day, such as `2026-11-23`, or `today`.
    Date,
    /// A list of anything.
    List,
    Object,
}

impl ParamType {
    /// The words of all types.
    pub(crate) const WORDS: &'static [&'static str] = <Self as VariantNames>::VARIANTS;

    /// Returns the type of a word.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        word.parse().ok()
    }

    /// Returns the word in declarations.
    pub(crate) fn word(self) -> &'static str {
        self.into()
    }

    /// Returns the type of a value whose type is not declared.
    pub(crate) fn of_value(value: &Value) -> Self {
        match value {
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Object,
            Value::String(_) | Value::Null => Self::String,
        }
    }

    /// Returns true if values of this type have a least and a greatest one.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Number)
    }

    /// Returns true for strings, and for lists, whose items `enum` and `pattern` describe.
    pub(crate) fn has_text(self) -> bool {
        matches!(self, Self::String | Self::List)
    }

    /// Returns true if a value is of this type.
    pub(crate) fn is_of(self, value: &Value) -> bool {
        match (self, value) {
            (Self::String, Value::String(_))
            | (Self::Number, Value::Number(_))
            | (Self::Boolean, Value::Bool(_))
            | (Self::List, Value::Array(_))
            | (Self::Object, Value::Object(_)) => true,
            (Self::Integer, Value::Number(number)) => !number.is_f64(),
            (Self::Date, Value::String(text)) => {
                text == TODAY || text.len() == 10 && text.parse::<Date>().is_ok()
            }
            _ => false,
        }
    }
}

/// A parameter does not accept a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}")]
pub struct ParamError {
    /// The values that it accepts.
    expected: String,
}

/// The values of a type that a parameter accepts. For a list, `one_of` and `pattern` describe its items.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowed {
    /// The least number.
    pub(crate) min: Option<Number>,
    /// The greatest number.
    pub(crate) max: Option<Number>,
    /// The only values; empty: any.
    pub(crate) one_of: Vec<Value>,
    /// The pattern that a string must contain a match of.
    pub(crate) pattern: Option<Regex>,
}

impl Allowed {
    fn has(&self, value: &Value) -> bool {
        let number = value.as_f64();
        let bound = |bound: &Option<Number>| bound.as_ref().and_then(Number::as_f64);
        let is_below = number
            .zip(bound(&self.min))
            .is_some_and(|(is, min)| is < min);
        let is_above = number
            .zip(bound(&self.max))
            .is_some_and(|(is, max)| is > max);
        let is_same = |known: &Value| {
            known == value
                || known
                    .as_f64()
                    .zip(number)
                    .is_some_and(|(a, b)| a.total_cmp(&b).is_eq())
        };
        let is_listed = self.one_of.is_empty() || self.one_of.iter().any(is_same);
        let matches = self
            .pattern
            .as_ref()
            .is_none_or(|pattern| value.as_str().is_some_and(|text| pattern.is_match(text)));
        !is_below && !is_above && is_listed && matches
    }
}

impl Param {
    /// Returns the value of a text, such as one of `--set`.
    ///
    /// # Errors
    /// If the parameter does not accept the value.
    pub fn parse(&self, text: &str) -> Result<Value, ParamError> {
        let json = || json::parse(text).ok();
        let text_value = || Value::from(text);
        let value = match self.kind {
            ParamType::String | ParamType::Date => text_value(),
            ParamType::List => match json() {
                Some(list @ Value::Array(_)) => list,
                _ => text
                    .split(',')
                    .map(|part| Value::from(part.trim()))
                    .collect(),
            },
            _ => json().unwrap_or_else(text_value),
        };
        self.check(&value).map(|()| value)
    }

    /// Checks that the parameter accepts a value.
    ///
    /// # Errors
    /// If it does not.
    pub fn check(&self, value: &Value) -> Result<(), ParamError> {
        let is_allowed = match value {
            Value::Array(items) => items.iter().all(|item| self.allowed.has(item)),
            value => self.allowed.has(value),
        };
        if self.kind.is_of(value) && is_allowed {
            Ok(())
        } else {
            Err(ParamError {
                expected: self.expected(),
            })
        }
    }

    /// Returns true if the default is a template, so that its value is known only in a workspace.
    pub fn has_template(&self) -> bool {
        self.default.as_str().is_some_and(is_template)
    }

    /// Returns the value that a run uses: `today` of a date becomes the day of the run.
    #[must_use]
    pub fn evaluated(&self, value: Value, today: Date) -> Value {
        if self.kind == ParamType::Date && value == TODAY {
            today.to_string().into()
        } else {
            value
        }
    }

    /// Describes the values that the parameter takes.
    pub(crate) fn expected(&self) -> String {
        let Allowed {
            min,
            max,
            one_of,
            pattern,
        } = &self.allowed;
        let list = if self.kind == ParamType::List {
            "a list of "
        } else {
            ""
        };
        if let [first @ .., last] = one_of.as_slice() {
            let shown = |value: &Value| match value {
                Value::String(text) => format!("`{text}`"),
                other => other.to_string(),
            };
            let first: Vec<String> = first.iter().map(shown).collect();
            let last = shown(last);
            return if first.is_empty() {
                format!("{list}{last}")
            } else {
                format!("{list}{} or {last}", first.join(", "))
            };
        }
        if let Some(pattern) = pattern {
            let strings = if list.is_empty() {
                "a string that matches"
            } else {
                "strings that match"
            };
            return format!("{list}{strings} `{pattern}`");
        }
        let range = match (min, max) {
            (Some(min), Some(max)) => format!(" from {min} to {max}"),
            (Some(min), None) => format!(" of at least {min}"),
            (None, Some(max)) => format!(" of at most {max}"),
            (None, None) => String::new(),
        };
        let what = match self.kind {
            ParamType::String => "a string",
            ParamType::Integer => "a whole number",
            ParamType::Number => "a number",
            ParamType::Boolean => "true or false",
            ParamType::Date => "a date such as 2026-11-23, or `today`",
            ParamType::List => "a list",
            ParamType::Object => "a JSON object",
        };
        format!("{what}{range}")
    }
}

/// Returns `NAME=VALUE`, as `--set` accepts it.
pub fn shown_setting(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn param(kind: ParamType, allowed: Allowed) -> Param {
        Param {
            name: "p".to_owned(),
            default: Value::Null,
            file: None,
            kind,
            allowed,
            description: None,
        }
    }

    fn wrong<T>(expected: &str) -> Result<T, ParamError> {
        Err(ParamError {
            expected: expected.to_owned(),
        })
    }

    fn range(min: i64, max: i64) -> Allowed {
        Allowed {
            min: Some(min.into()),
            max: Some(max.into()),
            ..Allowed::default()
        }
    }

    #[test]
    fn takes_what_is_declared_and_says_what_was_expected() {
        let number = param(ParamType::Number, range(0, 100));
        assert_eq!(number.parse("85"), Ok(json!(85)));
        assert_eq!(number.parse("99.5"), Ok(json!(99.5)));
        let error = wrong("a number from 0 to 100");
        for text in ["150", "-1", "1e9", "high", "", "[1]"] {
            assert_eq!(number.parse(text), error, "{text}");
        }
        let integer = param(ParamType::Integer, range(1, 9));
        assert_eq!(integer.parse("9"), Ok(json!(9)));
        let error = wrong("a whole number from 1 to 9");
        assert_eq!(integer.parse("1.5"), error);
        let boolean = param(ParamType::Boolean, Allowed::default());
        assert_eq!(boolean.parse("true"), Ok(json!(true)));
        assert_eq!(boolean.parse("yes"), wrong("true or false"));
    }

    #[test]
    fn words_and_patterns_hold_for_the_items_of_a_list() {
        let formats = Allowed {
            one_of: vec![json!("pdf"), json!("csv"), json!("json")],
            ..Allowed::default()
        };
        let error = wrong("`pdf`, `csv` or `json`");
        let one = param(ParamType::String, formats.clone());
        assert_eq!(
            (one.parse("csv"), one.parse("cvs")),
            (Ok(json!("csv")), error)
        );
        let list = param(ParamType::List, formats);
        assert_eq!(list.parse("pdf, json"), Ok(json!(["pdf", "json"])));
        assert_eq!(list.parse(r#"["csv"]"#), Ok(json!(["csv"])));
        let error = wrong("a list of `pdf`, `csv` or `json`");
        assert_eq!(list.parse("pdf,xls"), error);
        let pattern = Some(Regex::new("^[a-z]+$").unwrap());
        let slug = param(
            ParamType::String,
            Allowed {
                pattern,
                ..Allowed::default()
            },
        );
        assert_eq!(slug.parse("abc"), Ok(json!("abc")));
        let error = wrong("a string that matches `^[a-z]+$`");
        assert_eq!(slug.parse("a b"), error);
    }

    #[test]
    fn today_is_the_day_of_the_run() {
        let day = param(ParamType::Date, Allowed::default());
        let today: Date = "2026-11-23".parse().unwrap();
        let value = |text: &str| {
            day.parse(text)
                .map(|value| day.evaluated(value, today).to_string())
        };
        assert_eq!(value("today"), Ok("\"2026-11-23\"".to_owned()));
        assert_eq!(value("2027-02-28"), Ok("\"2027-02-28\"".to_owned()));
        let error = wrong("a date such as 2026-11-23, or `today`");
        for text in ["2027-02-29", "soon", "2027-2-1", "2027-02-28T10:00"] {
            assert_eq!(value(text), error, "{text}");
        }
    }

    #[test]
    fn the_words_of_types_are_those_of_the_language() {
        let words = [
            "string", "integer", "number", "boolean", "date", "list", "object",
        ];
        assert_eq!(ParamType::WORDS, words);
        for word in words {
            assert_eq!(ParamType::of_word(word).map(ParamType::word), Some(word));
        }
    }
}
