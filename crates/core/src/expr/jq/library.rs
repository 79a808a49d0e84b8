//! The functions that a program can call: jaq's filters without those that see a clock, an environment or a terminal, and a few of jq's
//! that jaq lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use jaq_core::load::parse::Def;
use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{Error, Exn, ValR};
use jaq_json::Val;

use super::data::Data;
use super::{native, regex};
use crate::expr::json;

/// Filters that programs cannot use, with the reason.
const REFUSED: &[(&str, &str)] = &[
    ("now", CLOCK),
    ("localtime", CLOCK),
    ("strflocaltime", CLOCK),
    ("env", ENVIRONMENT),
    ("$ENV", ENVIRONMENT),
    ("halt", HALT),
    ("halt_error", HALT),
    ("debug", TERMINAL),
    ("stderr", TERMINAL),
    ("debug_empty", TERMINAL),
    ("stderr_empty", TERMINAL),
    ("input_filename", FILES),
    ("input_line_number", FILES),
    ("get_search_list", FILES),
    ("modulemeta", FILES),
    ("include", INCLUDE),
    ("import", INCLUDE),
    ("module", INCLUDE),
];
const CLOCK: &str =
    "programs cannot read the clock or the time zone: use `$run.date` and `$run.time`";
const ENVIRONMENT: &str = "programs cannot read the environment: declare the variable under [env] in milepost.toml and write `$env.NAME`, or use `$params`";
const HALT: &str = "a program cannot end the run: raise `error(\"…\")`";
const TERMINAL: &str = "programs cannot print: return the value as part of the result";
const INCLUDE: &str = "write `include \"name\";` before everything else in a program of a stage or a `.jq` file: it takes the definitions of `name.jq`";
const FILES: &str = "programs cannot open files: declare the file as an input of the stage";

/// jq's filters that jaq has not, `escape_formula`, which jq has not either, `del` so that it keeps the order of keys, `join` so that it
/// runs directly, and `sub` so that a text without a match costs little.
const MORE: &str = r#"
def delpaths($paths): reduce ($paths | unique | reverse[]) as $path (.; delete_at($path));
def del(f): delpaths([path(f)]);
def join($s): [.[] | if . == null then "" else tostring end] | reduce .[1:][] as $x (.[0] // ""; . + $s + $x);
def toarray: if isarray then . else [.] end;
def trimstr($s): ltrimstr($s) | rtrimstr($s);
def leaf_paths: paths(scalars);
def IN(s): any(s == .; .);
def IN(src; s): any(src == s; .);
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] |= $row);
def INDEX(f): INDEX(.[]; f);
def sub(re; f; flags):
  def handle: if isarray then capture_of_match | f end;
  [split_matches(re; flags)[]] as $parts
  | if ($parts | length) == 1 then "" + $parts[0] else reduce $parts[] as $x (""; . + ($x | handle)) end;
def sub(re; f): sub(re; f; "");
def gsub(re; f; flags): sub(re; f; "g" + flags);
def gsub(re; f): sub(re; f; "g");
def escape_formula:
  if isstring and (.[:1] | IN("=", "+", "-", "@", "\t", "\r")) and (try (tonumber | false) catch true)
  then "'" + . else . end;
def cell_text($name):
  if . == null then "" elif isstring then . elif isarray or isobject
  then error("\(.) cannot be a cell of \($name)") else tostring end;
def @csv:
  if isarray
  then map(if isstring then "\"" + (split("\"") | join("\"\"")) + "\"" else cell_text("@csv") end) | join(",")
  else error("\(.) is not a row of @csv: an array is") end;
def @tsv:
  def escaped($from; $to): split($from) | join($to);
  if isarray
  then map(cell_text("@tsv") | escaped("\\"; "\\\\") | escaped("\t"; "\\t") | escaped("\n"; "\\n") | escaped("\r"; "\\r"))
    | join("\t")
  else error("\(.) is not a row of @tsv: an array is") end;
"#;

/// Returns the reason why a filter or variable of jq is missing.
pub(crate) fn refusal(name: &str) -> Option<&'static str> {
    REFUSED
        .iter()
        .find(|(refused, _)| *refused == name)
        .map(|(_, why)| *why)
}

/// Returns the definitions written in jq. Parsed once for the process, since they never change.
pub(crate) fn defs() -> Vec<Def<&'static str>> {
    static DEFS: OnceLock<Vec<Def<&'static str>>> = OnceLock::new();
    DEFS.get_or_init(|| {
        let more = jaq_core::load::parse(MORE, |parser| parser.defs()).unwrap_or_default();
        jaq_core::defs()
            .chain(jaq_std::defs())
            .chain(jaq_json::defs())
            .filter(|def| refusal(def.name).is_none())
            .filter(|def| !regex::replaces(def.name) && !native::replaces(def))
            .chain(more)
            .collect()
    })
    .clone()
}

/// Returns the filters written in Rust.
pub(crate) fn funs() -> impl Iterator<Item = Fun<Data>> {
    let delete: jaq_core::native::Filter<jaq_core::RunPtr<Data>> = ("delete_at", v(1), |mut cv| {
        let path = cv.0.pop_var();
        bome(delete_at(cv.1, path))
    });
    let from_json: jaq_core::native::Filter<jaq_core::RunPtr<Data>> = ("fromjson", v(0), |cv| {
        let found = from_json(&cv.1).into_iter();
        Box::new(found.map(|value| value.map_err(Exn::from)))
    });
    let is_own = |name: &str| regex::replaces(name) || name == "fromjson";
    jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs())
        .filter(move |(name, ..)| refusal(name).is_none() && !is_own(name))
        .chain(regex::funs())
        .chain(native::funs())
        .chain(jaq_std::input::funs().into_vec().into_iter().map(run))
        .chain([run::<Data>(delete), run::<Data>(from_json)])
}

/// Returns the names of all filters with the numbers of arguments that they take.
pub(crate) fn filters() -> &'static BTreeMap<String, BTreeSet<usize>> {
    static NAMES: OnceLock<BTreeMap<String, BTreeSet<usize>>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        for def in defs() {
            names
                .entry(def.name.to_owned())
                .or_default()
                .insert(def.args.len());
        }
        for (name, args, _) in funs() {
            names.entry(name.to_owned()).or_default().insert(args.len());
        }
        names.retain(|name, _| !name.ends_with('_') && name != "delete_at" && name != "cell_text");
        names
    })
}

/// Returns the values of a text, and the error that ends them. An object that names a key twice is refused. `tonumber` and
/// `toboolean` read texts this way too. jaq overflows the stack at deeply nested ones.
fn from_json(text: &Val) -> Vec<ValR<Val>> {
    let bytes = match text.try_as_utf8_bytes_owned() {
        Ok(bytes) => bytes,
        Err(error) => return vec![Err(error)],
    };
    let fails = |why: &dyn std::fmt::Display| {
        Error::str(format_args!("cannot parse {text} as JSON: {why}"))
    };
    if is_deep(&bytes) {
        let message = format!("the text is nested more than {DEEPEST} deep");
        return vec![Err(Error::str(message))];
    }
    if let Ok(text) = std::str::from_utf8(&bytes)
        && let Some(error) = json::repeated_key(text)
    {
        return vec![Err(fails(&error))];
    }
    let mut found = Vec::new();
    for value in jaq_json::read::parse_many(&bytes) {
        let is_last = value.is_err();
        found.push(value.map_err(|error| fails(&error)));
        if is_last {
            break;
        }
    }
    found
}

/// The deepest nesting of a JSON text, as in files.
const DEEPEST: usize = 128;

/// Returns true if a JSON text is nested too deeply. It may contain comments, which jaq skips.
fn is_deep(text: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'#' => _ = bytes.find(|byte| **byte == b'\n'),
            b'"' => {
                while let Some(byte) = bytes.next()
                    && *byte != b'"'
                {
                    if *byte == b'\\' {
                        bytes.next();
                    }
                }
            }
            _ => {}
        }
        if depth > DEEPEST {
            return true;
        }
    }
    false
}

/// Returns the value without what is at the path. Unlike jaq's own `|= empty` it leaves the keys that stay in their order.
fn delete_at(mut val: Val, path: Val) -> Result<Val, Error<Val>> {
    let Val::Arr(path) = path else {
        return Err(Error::typ(path, "path"));
    };
    let Some((last, init)) = path.split_last() else {
        return Ok(Val::Null);
    };
    let mut at = &mut val;
    for step in init {
        at = match (at, step) {
            (Val::Obj(object), key) => match std::rc::Rc::make_mut(object).get_mut(key) {
                Some(inner) => inner,
                None => return Ok(val),
            },
            (Val::Arr(items), index) => {
                let items = std::rc::Rc::make_mut(items);
                match position(index, items.len()).and_then(|index| items.get_mut(index)) {
                    Some(inner) => inner,
                    None => return Ok(val),
                }
            }
            _ => return Ok(val),
        };
    }
    match at {
        Val::Obj(object) => {
            std::rc::Rc::make_mut(object).shift_remove(last);
        }
        Val::Arr(items) => {
            let items = std::rc::Rc::make_mut(items);
            if let Some(index) = position(last, items.len()) {
                items.remove(index);
            } else if let Val::Obj(range) = last {
                let bound = |name: &'static str, none: usize| match range.get(&Val::utf8_str(name))
                {
                    Some(at) => position(at, items.len()).unwrap_or(none),
                    None => none,
                };
                let (start, end) = (bound("start", 0), bound("end", items.len()));
                if start < end {
                    items.drain(start..end);
                }
            }
        }
        _ => {}
    }
    Ok(val)
}

/// Returns the place in a list that an index, perhaps counted from the end, points to.
fn position(index: &Val, len: usize) -> Option<usize> {
    let index = jaq_std::ValT::as_isize(index)?;
    let index = if index < 0 {
        len.checked_sub(index.unsigned_abs())?
    } else {
        index.unsigned_abs()
    };
    (index < len).then_some(index)
}
