//! Filters that jaq defines in jq and programs use for every record: the same written in Rust.
//!
//! `true` is `0 == 0` there, `type` five comparisons, and `select(isobject)` an object made and thrown away for `empty`.

use jaq_core::box_iter::box_once;
use jaq_core::load::parse::Def;
use jaq_core::native::{Fun, bome, v};
use jaq_core::{Error, Native, PathsPtr, RunPtr, UpdatePtr};
use jaq_json::{Map, Val};

use super::data::Data;

/// Returns the output of a filter without arguments.
pub(crate) type Value = fn(&Val) -> Result<Val, Error<Val>>;
/// Which inputs a filter passes on.
pub(crate) type Choice = fn(&Val) -> bool;

/// Returns true if a definition is replaced by one of these.
pub(crate) fn replaces(def: &Def<&str>) -> bool {
    def.args.is_empty() && (value_of(def.name).is_some() || choice_of(def.name).is_some())
}

/// Returns true if a filter with a value as output only checks the type and truth of its input.
pub(crate) fn is_shallow(name: &str) -> bool {
    name == "not" || name == "type" || name.starts_with("is")
}

/// Defines the table of the filters, as functions and as jaq has them.
macro_rules! filters {
    ([$($value:literal => $make:expr,)*] [$($choice:literal => $is:expr,)*]) => {
        /// Returns the filter of this name whose output is a value.
        pub(crate) fn value_of(name: &str) -> Option<Value> {
            Some(match name {
                $($value => $make,)*
                _ => return None,
            })
        }

        /// Returns the filter of this name that passes its input on or not.
        pub(crate) fn choice_of(name: &str) -> Option<Choice> {
            Some(match name {
                $($choice => $is,)*
                _ => return None,
            })
        }

        /// Returns the filters, for jaq.
        pub(crate) fn funs() -> Vec<Fun<Data>> {
            let mut funs: Vec<Fun<Data>> = Vec::new();
            $({
                let run: RunPtr<Data> = |cv| {
                    let make: Value = $make;
                    bome(make(&cv.1))
                };
                funs.push(($value, v(0), Native::<Data>::new(run)));
            })*
            $({
                let run: RunPtr<Data> = |cv| {
                    let is: Choice = $is;
                    if is(&cv.1) { box_once(Ok(cv.1)) } else { Box::new(std::iter::empty()) }
                };
                let paths: PathsPtr<Data> = |cv| {
                    let is: Choice = $is;
                    if is(&cv.1.0) { box_once(Ok(cv.1)) } else { Box::new(std::iter::empty()) }
                };
                let update: UpdatePtr<Data> = |cv, f| {
                    let is: Choice = $is;
                    if is(&cv.1) { f(cv.1) } else { box_once(Ok(cv.1)) }
                };
                let native = Native::<Data>::new(run).with_paths(paths);
                funs.push(($choice, v(0), native.with_update(update)));
            })*
            funs
        }
    };
}

filters!(
    [
        "true" => |_| Ok(Val::Bool(true)),
        "false" => |_| Ok(Val::Bool(false)),
        "null" => |_| Ok(Val::Null),
        "not" => |val| Ok(Val::Bool(matches!(val, Val::Null | Val::Bool(false)))),
        "type" => |val| Ok(Val::utf8_str(kind(val))),
        "isboolean" => |val| Ok(Val::Bool(matches!(val, Val::Bool(_)))),
        "isnumber" => |val| Ok(Val::Bool(matches!(val, Val::Num(_)))),
        "isstring" => |val| Ok(Val::Bool(matches!(val, Val::TStr(_) | Val::BStr(_)))),
        "isarray" => |val| Ok(Val::Bool(matches!(val, Val::Arr(_)))),
        "isobject" => |val| Ok(Val::Bool(matches!(val, Val::Obj(_)))),
        "to_entries" => to_entries,
        "capture_of_match" => captures,
        "min" => |val| extreme(val, |best, other| other < best),
        "max" => |val| extreme(val, |best, other| other >= best),
    ]
    [
        "empty" => |_| false,
        "values" => |val| !matches!(val, Val::Null),
        "nulls" => |val| matches!(val, Val::Null),
        "booleans" => |val| matches!(val, Val::Bool(_)),
        "numbers" => |val| matches!(val, Val::Num(_)),
        "strings" => |val| matches!(val, Val::TStr(_) | Val::BStr(_)),
        "arrays" => |val| matches!(val, Val::Arr(_)),
        "objects" => |val| matches!(val, Val::Obj(_)),
        "iterables" => |val| matches!(val, Val::Arr(_) | Val::Obj(_)),
        "scalars" => |val| !matches!(val, Val::Arr(_) | Val::Obj(_)),
    ]
);

fn kind(val: &Val) -> &'static str {
    match val {
        Val::Null => "null",
        Val::Bool(_) => "boolean",
        Val::Num(_) => "number",
        Val::BStr(_) | Val::TStr(_) => "string",
        Val::Arr(_) => "array",
        Val::Obj(_) => "object",
    }
}

/// Returns the item that no other takes the place of; null of none.
fn extreme(val: &Val, takes: fn(&Val, &Val) -> bool) -> Result<Val, Error<Val>> {
    let Val::Arr(items) = val else {
        return Err(Error::typ(val.clone(), "array"));
    };
    let best = items
        .iter()
        .reduce(|best, other| if takes(best, other) { other } else { best });
    Ok(best.cloned().unwrap_or_default())
}

fn entry(key: Val, value: Val) -> Val {
    let mut entry = Map::with_capacity_and_hasher(2, <_>::default());
    entry.insert(Val::utf8_str("key"), key);
    entry.insert(Val::utf8_str("value"), value);
    Val::obj(entry)
}

fn to_entries(val: &Val) -> Result<Val, Error<Val>> {
    match val {
        Val::Obj(object) => Ok(object
            .iter()
            .map(|(key, value)| entry(key.clone(), value.clone()))
            .collect()),
        Val::Arr(items) => Ok(items
            .iter()
            .enumerate()
            .map(|(index, value)| entry(Val::from(index), value.clone()))
            .collect()),
        other => Err(Error::typ(other.clone(), "iterable (array or object)")),
    }
}

/// Of a match, as a list of the whole and its groups, the texts of the groups that have a name.
fn captures(val: &Val) -> Result<Val, Error<Val>> {
    let Val::Arr(groups) = val else {
        return Err(Error::typ(val.clone(), "array"));
    };
    let (name, string) = (Val::utf8_str("name"), Val::utf8_str("string"));
    let mut captured = Map::default();
    for group in groups.iter() {
        if let Val::Obj(group) = group
            && let Some(key) = group.get(&name)
        {
            captured.insert(key.clone(), group.get(&string).cloned().unwrap_or_default());
        }
    }
    Ok(Val::obj(captured))
}
