//! Validates a file whose list is read item by item: each item by its part of the schema, the rest with the list emptied.

use std::convert::Infallible;
use std::io::Read;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::checker::Checker;
use super::resources::{Resources, SchemaError};
use super::violation::{Validated, Violation};
use milepost_core::base::in_order::in_order;
use milepost_core::base::texts::Texts;
use milepost_core::expr::json::{self, Fault, Json, TakeError};
use milepost_core::expr::place::excerpt;
use milepost_core::expr::pointer::{self, below};
use milepost_core::expr::select::{PathStep, Select};

/// Keywords of the list that are true of it when they are true of its items, of its type or of its length.
const OF_ITEMS: &[&str] = &[
    "type",
    "items",
    "minItems",
    "maxItems",
    "$ref",
    "title",
    "description",
    "$comment",
    "examples",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$defs",
    "definitions",
    "$schema",
    "$id",
    "$anchor",
];
/// Keywords above the list that may say something about it, and cannot when it is emptied.
const AROUND: &[&str] = &[
    "anyOf",
    "oneOf",
    "allOf",
    "if",
    "then",
    "else",
    "not",
    "dependentSchemas",
    "$dynamicRef",
];

/// A validator for a document of which one list is read item by item.
pub(crate) struct Streamed {
    keys: Vec<String>,
    pointer: String,
    item: Option<Checker>,
    rest: Checker,
    at_least: Option<u64>,
    at_most: Option<u64>,
}

impl Streamed {
    /// Finds the part of the schema that describes the items of the list.
    pub(crate) fn compile(
        resources: &Arc<Resources>,
        select: &Select,
    ) -> Result<Self, SchemaError> {
        let stop = |reason: String| SchemaError::Stream {
            schema: resources.name().to_owned(),
            select: select.to_string(),
            reason,
        };
        let mut keys = Vec::new();
        let mut at = resources.root_reference("");
        if select.steps().contains(&PathStep::Each) {
            let reason = "only one list is read item by item; the path to it has only names";
            return Err(stop(reason.to_owned()));
        }
        for step in select.steps() {
            let PathStep::Field(key) = step else {
                continue;
            };
            at = inner(resources, at, key).map_err(&stop)?;
            keys.push(key.clone());
        }
        let mut items = None;
        let (mut at_least, mut at_most) = (None, None);
        for (path, pointer) in chain(resources, at) {
            let Some(Value::Object(node)) = part(resources, &path, &pointer) else {
                continue;
            };
            if let Some(odd) = node.keys().find(|key| !OF_ITEMS.contains(&key.as_str())) {
                return Err(stop(format!("`{odd}` of the list needs all of it")));
            }
            if node.contains_key("items") {
                if items.is_some() {
                    return Err(stop(
                        "`items` is declared both beside a `$ref` and in its target".to_owned(),
                    ));
                }
                items = Some((path.clone(), format!("{pointer}/items")));
            }
            let number = |key: &str| node.get(key).and_then(Value::as_u64);
            at_least = at_least.max(number("minItems"));
            at_most = match (at_most, number("maxItems")) {
                (Some(old), Some(new)) => Some(u64::min(old, new)),
                (old, new) => old.or(new),
            };
        }
        let mut pointer = String::new();
        for key in &keys {
            pointer::push(&mut pointer, key);
        }
        Ok(Self {
            item: items
                .map(|items| Checker::compile(resources, items))
                .transpose()?,
            rest: Checker::compile(resources, resources.root_reference(""))?,
            keys,
            pointer,
            at_least,
            at_most,
        })
    }

    /// Validates a file.
    pub(crate) fn validate(&self, reader: impl Read, limit: usize) -> Validated {
        let limit = limit.max(1);
        let mut found = Validated::default();
        let read = document(reader, &self.keys, &mut |text| {
            let item = built(text)?;
            self.add(
                &mut found,
                limit,
                self.is_valid(&item).then_some(()).ok_or(item),
            );
            Ok(())
        });
        match read {
            Ok(rest) => self.with_rest(found, &rest, limit),
            Err(fault) => {
                found.violations.insert(0, unreadable(fault));
                found.violations.truncate(limit);
                found
            }
        }
    }

    /// Validates a file on this many threads; `None` if it cannot be read.
    pub(crate) fn validate_on(
        &self,
        threads: usize,
        reader: impl Read,
        limit: usize,
    ) -> Option<Validated> {
        let limit = limit.max(1);
        let mut found = Validated::default();
        let mut rest = None;
        let done: Result<(), Unreadable> = in_order(
            threads,
            &|| Box::new(|items: Texts| self.check_items(&items)),
            |give| {
                let mut items = Texts::default();
                rest = Some(document(reader, &self.keys, &mut |text| {
                    let added = text.value(|item, _| {
                        items.add(item);
                        Ok::<(), TakeError<Unreadable>>(())
                    });
                    added??;
                    if items.length() < AT_ONCE {
                        return Ok(());
                    }
                    give(std::mem::take(&mut items))
                })?);
                give(items)
            },
            &mut |results| {
                for item in results.ok_or(Unreadable)? {
                    self.add(&mut found, limit, item);
                }
                Ok(())
            },
        );
        done.ok()?;
        Some(self.with_rest(found, &rest?, limit))
    }

    /// Returns a result for each item, with the item if it is invalid; `None` if one is not JSON.
    fn check_items(&self, items: &Texts) -> Option<Vec<Result<(), Value>>> {
        let results = items.iter().map(|text| {
            let item = json::parse(text).ok()?;
            Some(self.is_valid(&item).then_some(()).ok_or(item))
        });
        results.collect()
    }

    fn is_valid(&self, item: &Value) -> bool {
        let validator = self.item.as_ref();
        validator.is_none_or(|validator| validator.is_valid(item))
    }

    /// Counts an item. An invalid one is given.
    fn add(&self, found: &mut Validated, limit: usize, item: Result<(), Value>) {
        let at = found.items;
        found.items += 1;
        let (Err(item), Some(validator)) = (item, &self.item) else {
            return;
        };
        found.invalid_items += 1;
        let room = limit - found.violations.len().min(limit);
        if room > 0 {
            let pointer = format!("{}/{at}", self.pointer);
            let more = validator.violations(&item, &pointer, room);
            found.violations.extend(more);
        }
    }

    /// Adds what is wrong with the document without its items.
    fn with_rest(&self, mut found: Validated, rest: &Value, limit: usize) -> Validated {
        // The list was emptied: what its length breaks is found by counting.
        let mut of_rest = self.rest.violations(rest, "", limit + 1);
        of_rest.retain(|violation| {
            !(violation.keyword == "minItems" && violation.pointer == self.pointer)
        });
        let is_list = rest.pointer(&self.pointer).is_some_and(Value::is_array);
        let count = found.items;
        for (keyword, bound, breaks, word) in [
            (
                "minItems",
                self.at_least,
                self.at_least.is_some_and(|least| count < least),
                "at least",
            ),
            (
                "maxItems",
                self.at_most,
                self.at_most.is_some_and(|most| count > most),
                "at most",
            ),
        ] {
            if let (true, true, Some(bound)) = (is_list, breaks, bound) {
                of_rest.push(Violation {
                    pointer: self.pointer.clone(),
                    keyword: keyword.to_owned(),
                    message: format!("there are {count} items, {word} {bound} are needed"),
                    value_excerpt: String::new(),
                });
            }
        }
        // Violations of the document come first: they explain those of its items.
        of_rest.append(&mut found.violations);
        found.violations = of_rest;
        found.violations.truncate(limit);
        found
    }
}

fn part<'r>(resources: &'r Resources, path: &str, pointer: &str) -> Option<&'r Value> {
    resources.document(path)?.pointer(pointer)
}

/// A part of the schema and what it refers to by `$ref`, in turn.
fn chain(resources: &Resources, start: (String, String)) -> Vec<(String, String)> {
    let mut chain = vec![start];
    while let Some((path, pointer)) = chain.last() {
        let next = part(resources, path, pointer)
            .and_then(|node| node.get("$ref"))
            .and_then(Value::as_str)
            .and_then(|reference| resources.follow(path, reference));
        match next {
            Some(next) if !chain.contains(&next) => chain.push(next),
            _ => break,
        }
    }
    chain
}

/// Returns the part of the schema that describes a key.
fn inner(
    resources: &Resources,
    at: (String, String),
    key: &str,
) -> Result<(String, String), String> {
    let mut found = None;
    for (path, pointer) in chain(resources, at) {
        let Some(Value::Object(node)) = part(resources, &path, &pointer) else {
            continue;
        };
        for keyword in AROUND {
            if node.get(*keyword).is_some_and(|inner| mentions(inner, key)) {
                return Err(format!("`{keyword}` also applies to `{key}`"));
            }
        }
        if node.contains_key("patternProperties") {
            return Err(format!("`patternProperties` may also apply to `{key}`"));
        }
        if node
            .get("properties")
            .and_then(|properties| properties.get(key))
            .is_some()
            && found.is_none()
        {
            found = Some((path, below(&format!("{pointer}/properties"), key)));
        }
    }
    found.ok_or_else(|| format!("the schema has no `properties` with `{key}`"))
}

/// Returns true if a part of a schema has the name as a key somewhere, or refers to what may have it.
fn mentions(schema: &Value, name: &str) -> bool {
    match schema {
        Value::Object(map) => map
            .iter()
            .any(|(key, inner)| key == name || key == "$ref" || mentions(inner, name)),
        Value::Array(items) => items.iter().any(|item| mentions(item, name)),
        _ => false,
    }
}

/// Reads a whole document.
pub(crate) fn whole(mut reader: impl Read) -> Result<Value, Violation> {
    // Most files are not longer, so one read suffices.
    let mut bytes = Vec::with_capacity(1 << 13);
    reader
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(Fault::Io(error)))?;
    json::parse_bytes(&bytes).map_err(|error| {
        let message = error.to_string();
        unreadable(Fault::Text {
            line: error.line(),
            column: error.column(),
            message: message
                .split(" at line ")
                .next()
                .unwrap_or_default()
                .to_owned(),
            ended: error.is_eof(),
        })
    })
}

/// The bytes of items that a thread gets at once.
const AT_ONCE: usize = 64 << 10;

/// Something cannot be read. Reading it once more, item by item, says where.
struct Unreadable;

impl From<Fault> for Unreadable {
    fn from(_: Fault) -> Self {
        Self
    }
}

/// Reads a document without the items of the list at `keys`, each of which `each` reads.
fn document<R: Read, E: From<Fault>>(
    reader: R,
    keys: &[String],
    each: &mut dyn FnMut(&mut Json<R>) -> Result<(), E>,
) -> Result<Value, E> {
    let mut text = Json::new(reader);
    let rest = emptied(&mut text, keys, each)?;
    text.end()?;
    Ok(rest)
}

pub(crate) fn unreadable(fault: Fault) -> Violation {
    let message = match fault {
        Fault::Io(error) => {
            format!(
                "the file cannot be read: {}",
                excerpt(&error.to_string(), 200)
            )
        }
        Fault::Text {
            line,
            column,
            message,
            ended,
        } => {
            let early = if ended {
                "the file ends too early: "
            } else {
                "not JSON: "
            };
            let said = excerpt(&message, 200);
            format!("line {line}, column {column}: {early}{said}")
        }
    };
    Violation {
        pointer: String::new(),
        keyword: "json".to_owned(),
        message,
        value_excerpt: String::new(),
    }
}

/// Builds a value, but for the items of the list that the keys lead to.
fn emptied<R: Read, E: From<Fault>>(
    text: &mut Json<R>,
    keys: &[String],
    each: &mut dyn FnMut(&mut Json<R>) -> Result<(), E>,
) -> Result<Value, E> {
    match (text.peek()?, keys.split_first()) {
        (Some(open @ b'['), None) => {
            let mut more = text.enter(open)?;
            while more {
                each(text)?;
                more = text.next(open)?;
            }
            Ok(Value::Array(Vec::new()))
        }
        (Some(open @ b'{'), _) => {
            let mut map = Map::new();
            let mut more = text.enter(open)?;
            while more {
                let key = text.key(str::to_owned)?;
                let value = match keys.split_first() {
                    Some((first, keys)) if *first == key => emptied(text, keys, each)?,
                    _ => built(text)?,
                };
                if map.contains_key(&key) {
                    let twice = format!("duplicate key `{}`", excerpt(&key, 60));
                    return Err(text.wrong(&twice).into());
                }
                map.insert(key, value);
                more = text.next(open)?;
            }
            Ok(Value::Object(map))
        }
        _ => Ok(built(text)?),
    }
}

fn built<R: Read>(text: &mut Json<R>) -> Result<Value, Fault> {
    let value = text.value(|text, _| Ok::<Value, TakeError<Infallible>>(json::parse(text)?))?;
    Ok(match value {
        Ok(value) => value,
        Err(never) => match never {},
    })
}
