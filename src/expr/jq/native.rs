//! Filters that jaq defines in jq and programs use for every record: the same written in Rust.
//!
//! `true` is `0 == 0` there, `type` five comparisons, and `select(isobject)` an object made and thrown away for `empty`.

use jaq_core::box_iter::box_once;
use jaq_core::load::parse::Def;
use jaq_core::native::{Fun, v};
use jaq_core::{Cv, Error, Exn, Native, PathsPtr, RunPtr, UpdatePtr, ValXs};
use jaq_json::{Map, Val};

use super::Data;

/// Whether a definition of this name is replaced by one of these.
pub fn replaces(def: &Def<&str>) -> bool {
    def.args.is_empty()
        && (VALUES.contains(&def.name) || TESTS.contains(&def.name) || CHOICES.contains(&def.name))
}

const VALUES: &[&str] = &[
    "empty",
    "true",
    "false",
    "null",
    "not",
    "type",
    "to_entries",
    "capture_of_match",
];
const TESTS: &[&str] = &["isboolean", "isnumber", "isstring", "isarray", "isobject"];
const CHOICES: &[&str] = &[
    "values",
    "nulls",
    "booleans",
    "numbers",
    "strings",
    "arrays",
    "objects",
    "iterables",
    "scalars",
];

/// `select` by what a value is: as a filter, in a path, and before `|=`.
macro_rules! choose {
    ($is:expr) => {{
        let run: RunPtr<Data> = |cv| {
            let is: fn(&Val) -> bool = $is;
            if is(&cv.1) {
                one(cv.1)
            } else {
                Box::new(std::iter::empty())
            }
        };
        let paths: PathsPtr<Data> = |cv| {
            let is: fn(&Val) -> bool = $is;
            if is(&cv.1.0) {
                box_once(Ok(cv.1))
            } else {
                Box::new(std::iter::empty())
            }
        };
        let update: UpdatePtr<Data> = |cv, f| {
            let is: fn(&Val) -> bool = $is;
            if is(&cv.1) { f(cv.1) } else { one(cv.1) }
        };
        (run, paths, update)
    }};
}

/// The filters.
pub fn funs() -> Vec<Fun<Data>> {
    vec![
        choice("empty", choose!(|_| false)),
        value("true", |_| one(Val::Bool(true))),
        value("false", |_| one(Val::Bool(false))),
        value("null", |_| one(Val::Null)),
        value("not", |cv| {
            one(Val::Bool(matches!(cv.1, Val::Null | Val::Bool(false))))
        }),
        value("type", |cv| one(Val::utf8_str(kind(&cv.1)))),
        value("to_entries", |cv| {
            box_once(to_entries(cv).map_err(Exn::from))
        }),
        value("capture_of_match", |cv| {
            box_once(captures(cv).map_err(Exn::from))
        }),
        value("isboolean", |cv| {
            one(Val::Bool(matches!(cv.1, Val::Bool(_))))
        }),
        value("isnumber", |cv| one(Val::Bool(matches!(cv.1, Val::Num(_))))),
        value("isstring", |cv| {
            one(Val::Bool(matches!(cv.1, Val::TStr(_) | Val::BStr(_))))
        }),
        value("isarray", |cv| one(Val::Bool(matches!(cv.1, Val::Arr(_))))),
        value("isobject", |cv| one(Val::Bool(matches!(cv.1, Val::Obj(_))))),
        choice("values", choose!(|val| !matches!(val, Val::Null))),
        choice("nulls", choose!(|val| matches!(val, Val::Null))),
        choice("booleans", choose!(|val| matches!(val, Val::Bool(_)))),
        choice("numbers", choose!(|val| matches!(val, Val::Num(_)))),
        choice(
            "strings",
            choose!(|val| matches!(val, Val::TStr(_) | Val::BStr(_))),
        ),
        choice("arrays", choose!(|val| matches!(val, Val::Arr(_)))),
        choice("objects", choose!(|val| matches!(val, Val::Obj(_)))),
        choice(
            "iterables",
            choose!(|val| matches!(val, Val::Arr(_) | Val::Obj(_))),
        ),
        choice(
            "scalars",
            choose!(|val| !matches!(val, Val::Arr(_) | Val::Obj(_))),
        ),
    ]
}

fn value(name: &'static str, run: RunPtr<Data>) -> Fun<Data> {
    (name, v(0), Native::<Data>::new(run))
}

type Choice = (RunPtr<Data>, PathsPtr<Data>, UpdatePtr<Data>);

fn choice(name: &'static str, (run, paths, update): Choice) -> Fun<Data> {
    let native = Native::<Data>::new(run).with_paths(paths);
    (name, v(0), native.with_update(update))
}

fn one<'a>(val: Val) -> ValXs<'a, Val> {
    box_once(Ok(val))
}

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

fn entry(key: Val, value: Val) -> Val {
    let mut entry = Map::with_capacity_and_hasher(2, Default::default());
    entry.insert(Val::utf8_str("key"), key);
    entry.insert(Val::utf8_str("value"), value);
    Val::obj(entry)
}

fn to_entries(cv: Cv<'_, Data>) -> Result<Val, Error<Val>> {
    match cv.1 {
        Val::Obj(object) => Ok(object
            .iter()
            .map(|(key, value)| entry(key.clone(), value.clone()))
            .collect()),
        Val::Arr(items) => Ok(items
            .iter()
            .enumerate()
            .map(|(index, value)| entry(Val::from(index), value.clone()))
            .collect()),
        other => Err(Error::typ(other, "iterable (array or object)")),
    }
}

/// Of a match, as a list of the whole and its groups, the texts of the groups that have a name.
fn captures(cv: Cv<'_, Data>) -> Result<Val, Error<Val>> {
    let Val::Arr(groups) = cv.1 else {
        return Err(Error::typ(cv.1, "array"));
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
