//! The values that `compare` returns for a record, and the rule for equal values.

use milepost_core::expr::json::key_text;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The compared parts of a record.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Compared {
    key: Value,
    /// The group in the totals.
    pub(super) group: String,
    /// The values that are compared.
    pub(super) fields: Map<String, Value>,
    /// The numbers that are summed.
    #[serde(default)]
    quantities: Map<String, Value>,
    /// The key of the record that this one is a part of.
    #[serde(default)]
    part_of: Value,
}

impl Compared {
    /// Reads what the program returned.
    ///
    /// # Errors
    /// When it is not of the form.
    pub(super) fn of(value: Value) -> Result<Self, String> {
        let wrong = |why: String| {
            format!(
                "`compare`: {why}; it must return {{key, group, fields, quantities, part_of}}, the last two optional"
            )
        };
        let compared: Self =
            serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
        if key_text(&compared.key).is_none() {
            let found = format!(
                "expected a text or a number for `key`, found {}",
                compared.key
            );
            return Err(wrong(found));
        }
        if let Some((name, value)) = compared
            .quantities
            .iter()
            .find(|(_, value)| !value.is_number() && !value.is_null())
        {
            return Err(wrong(format!(
                "expected a number or null for the quantity `{name}`, found {value}"
            )));
        }
        Ok(compared)
    }

    /// Returns the key as text.
    pub(super) fn key(&self) -> String {
        key_text(&self.key).unwrap_or_default()
    }

    /// Returns the key of the record that this one is a part of.
    pub(super) fn assembly(&self) -> Option<String> {
        key_text(&self.part_of)
    }

    /// Returns the quantities that are known.
    pub(super) fn known(&self) -> impl Iterator<Item = (&str, f64)> {
        let quantities = self.quantities.iter();
        quantities.filter_map(|(name, value)| Some((name.as_str(), value.as_f64()?)))
    }

    /// Returns the names of the fields that differ.
    pub(super) fn differing(&self, old: &Self, tolerance: f64) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let of = |side: &Self, name: &str| side.fields.get(name).cloned().unwrap_or_default();
        for name in self.fields.keys().chain(old.fields.keys()) {
            if !names.contains(name) && !is_equal(&of(old, name), &of(self, name), tolerance) {
                names.push(name.clone());
            }
        }
        names
    }
}

/// Returns true if two values are equal. Numbers may differ by `tolerance`.
pub(super) fn is_equal(old: &Value, new: &Value, tolerance: f64) -> bool {
    match (old, new) {
        (Value::Number(old), Value::Number(new)) => {
            old == new
                || matches!((old.as_f64(), new.as_f64()), (Some(old), Some(new)) if is_near(old, new, tolerance))
        }
        (Value::Array(old), Value::Array(new)) => {
            let mut both = old.iter().zip(new);
            old.len() == new.len() && both.all(|(old, new)| is_equal(old, new, tolerance))
        }
        (Value::Object(old), Value::Object(new)) => {
            let same = |(name, old): (&String, &Value)| {
                new.get(name)
                    .is_some_and(|new| is_equal(old, new, tolerance))
            };
            old.len() == new.len() && old.iter().all(same)
        }
        (old, new) => old == new,
    }
}

/// Returns true if two numbers differ by at most this share of the larger one, or of 1 if both are smaller.
pub(super) fn is_near(old: f64, new: f64, tolerance: f64) -> bool {
    (old - new).abs() <= tolerance * old.abs().max(new.abs()).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_equal_within_the_tolerance() {
        let table = [
            (json!(1.0), json!(1), true),
            (json!(100.0), json!(100.000_05), true),
            (json!(100.0), json!(100.001), false),
            // Below 1 the difference itself counts: a value that is almost 0 is 0.
            (json!(0), json!(0.000_000_5), true),
            (json!(0.001), json!(0.0011), false),
            (json!(null), json!(0), false),
            (json!("1"), json!(1), false),
            (json!([1, {"a": 2.0}]), json!([1.000_000_1, {"a": 2}]), true),
            (json!([1]), json!([1, 2]), false),
            (json!({"a": null}), json!({"b": null}), false),
        ];
        for (old, new, same) in table {
            assert_eq!(is_equal(&old, &new, 1e-6), same, "{old} and {new}");
        }
        assert!(!is_equal(&json!(1.0), &json!(1.000_000_1), 0.0));
    }

    #[test]
    fn what_compare_returns_is_checked() {
        let wrong = |value| Compared::of(value).unwrap_err();
        let expected =
            "; it must return {key, group, fields, quantities, part_of}, the last two optional";
        let table = [
            (json!({"group": "g", "fields": {}}), "missing field `key`"),
            (
                json!({"key": null, "group": "g", "fields": {}}),
                "expected a text or a number for `key`, found null",
            ),
            (
                json!({"key": 1, "group": "g", "fields": {}, "quantities": {"m": "2"}}),
                "expected a number or null for the quantity `m`, found \"2\"",
            ),
        ];
        for (value, why) in table {
            assert_eq!(wrong(value), format!("`compare`: {why}{expected}"));
        }
        assert!(
            wrong(json!({"key": 1, "group": "g", "fields": {}, "sums": {}})).contains("`sums`")
        );
    }
}
