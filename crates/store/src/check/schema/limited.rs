//! Violations of a value within limits: alternatives that hold the same tree are compared with it at every depth, so a small value
//! can have millions.
//!
//! The engine collects all violations before it returns the first. It reads values through [`SeenNode`], which counts. Once a limit is
//! reached, every value is null and has no parts, so the engine soon ends. Violations that it found before are returned.

use std::borrow::Cow;
use std::cell::Cell;

use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, cmp};
use jsonschema::{JsonType, Validator};
use serde_json::{Map, Number, Value};

use super::violation::Violation;
use super::wording::{message, shown};

/// The most violations of a value, with those of alternatives.
const VIOLATIONS: u64 = 20_000;

/// Maximum number of lookups in a value: a constant, and some for each value in it.
const LOOKS: u64 = 1_000_000;
const LOOKS_EACH: u64 = 256;

/// Every value after a limit is reached.
static NOTHING: Value = Value::Null;

/// The value of every violation after a limit is reached.
static BEYOND: Value = Value::Null;

thread_local! {
    static LOOKS_LEFT: Cell<u64> = const { Cell::new(0) };
    static VIOLATIONS_LEFT: Cell<u64> = const { Cell::new(0) };
}

/// Returns at most `limit` violations of an invalid value, with pointers that begin with `base`.
pub(super) fn violations(
    validator: &Validator<LimitedJson>,
    value: &Value,
    base: &str,
    limit: usize,
) -> Vec<Violation> {
    LOOKS_LEFT.set(LOOKS + LOOKS_EACH.saturating_mul(size(value)));
    VIOLATIONS_LEFT.set(VIOLATIONS);
    let mut found = Vec::new();
    for error in validator.iter_errors(SeenNode(value)).take(limit.max(1)) {
        let is_beyond = std::ptr::eq(&raw const **error.instance(), &raw const BEYOND);
        if is_beyond && !found.is_empty() {
            break;
        }
        let pointer = format!("{base}{}", error.instance_path());
        found.push(if is_beyond {
            let value = value
                .pointer(error.instance_path().as_str())
                .unwrap_or(value);
            let message =
                "it matches no allowed schema, and is nested too deeply to find the nearest";
            Violation {
                pointer,
                keyword: error.kind().keyword().to_owned(),
                message: message.to_owned(),
                value_excerpt: shown(value),
            }
        } else {
            Violation {
                pointer,
                keyword: error.kind().keyword().to_owned(),
                message: message(&error, base),
                value_excerpt: shown(error.instance()),
            }
        });
        if is_beyond {
            break;
        }
    }
    found
}

/// Returns the number of values in a value.
fn size(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(map) => map.values().map(size).sum(),
        _ => 0,
    }
}

fn is_over() -> bool {
    LOOKS_LEFT.get() == 0 || VIOLATIONS_LEFT.get() == 0
}

/// Values as they are read within limits.
pub(super) struct LimitedJson;

impl Json for LimitedJson {
    type Node<'a> = SeenNode<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Value,
        string: &str,
        read: impl FnOnce(SeenNode<'_>) -> T,
    ) -> T {
        *buffer = Value::String(string.to_owned());
        read(SeenNode(buffer))
    }
}

#[derive(Clone, Copy)]
pub(super) struct SeenNode<'a>(&'a Value);

impl<'a> SeenNode<'a> {
    fn value(self) -> &'a Value {
        LOOKS_LEFT.set(LOOKS_LEFT.get().saturating_sub(1));
        if is_over() { &NOTHING } else { self.0 }
    }
}

impl<'a> Node<'a, LimitedJson> for SeenNode<'a> {
    type Object = SeenObject<'a>;
    type Array = SeenList<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<SeenObject<'a>> {
        self.value().as_object().map(SeenObject)
    }

    fn as_array(&self) -> Option<SeenList<'a>> {
        self.value().as_array().map(|items| SeenList(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.value().as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.value().as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.value().as_bool()
    }

    fn is_null(&self) -> bool {
        self.value().is_null()
    }

    fn json_type(&self) -> JsonType {
        match self.value() {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        cmp::equal(self.value(), expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        let left = VIOLATIONS_LEFT.get().saturating_sub(1);
        VIOLATIONS_LEFT.set(left);
        Cow::Borrowed(if is_over() { &BEYOND } else { self.0 })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.0) as usize))
    }
}

pub(super) struct SeenObject<'a>(&'a Map<String, Value>);

impl<'a> Object<'a, LimitedJson> for SeenObject<'a> {
    type Node = SeenNode<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<SeenNode<'a>> {
        self.0.get(key).map(SeenNode)
    }

    fn members(&self) -> Members<'a> {
        Members(self.0.iter())
    }
}

/// The members of an object; none after a limit is reached.
pub(super) struct Members<'a>(serde_json::map::Iter<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, SeenNode<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.0.next().filter(|_| !is_over())?;
        Some((key, SeenNode(value)))
    }
}

pub(super) struct SeenList<'a>(&'a [Value]);

impl<'a> Array<'a, LimitedJson> for SeenList<'a> {
    type Node = SeenNode<'a>;
    type ElementsIter = Items<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Items<'a> {
        Items(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        is_over() || jsonschema::json::unique::is_unique(self.0)
    }
}

/// The items of a list; none after a limit is reached.
pub(super) struct Items<'a>(std::slice::Iter<'a, Value>);

impl<'a> Iterator for Items<'a> {
    type Item = SeenNode<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().filter(|_| !is_over()).map(SeenNode)
    }
}
