//! Regular expressions of programs, by the crate `regex`: compiled once a thread, where jaq compiles at every call.
//!
//! As in `jq`, letters and digits are those of Unicode: `\w` matches `ä`, and the flag `i` matches `Ä` by `ä`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{Cv, DataT, Error, RunPtr};
use jaq_json::{Map, Val};
use jaq_std::ValT;
use regex::{Captures, Regex, RegexBuilder};

/// Expressions that a thread keeps. A program that makes them up as it goes must not fill the memory.
const KEPT: usize = 200;

thread_local! {
    /// By flags, then by the expression.
    static COMPILED: RefCell<HashMap<String, HashMap<String, Rc<Compiled>>>> = RefCell::default();
}

/// An expression with its flags.
struct Compiled {
    regex: Regex,
    all: bool,
    ignore_empty: bool,
}

/// Returns the filters that have to do with regular expressions.
pub(crate) fn funs<D>() -> impl Iterator<Item = Fun<D>>
where
    D: for<'a> DataT<V<'a> = Val>,
{
    let filters: [(&'static str, usize, RunPtr<D>); 5] = [
        ("matches", 2, |cv| bome(split_of(cv, false, true))),
        ("split_matches", 2, |cv| bome(split_of(cv, true, true))),
        ("split_", 2, |cv| bome(split_of(cv, true, false))),
        ("test", 2, |mut cv| {
            let flags = cv.0.pop_var();
            let regex = cv.0.pop_var();
            bome(test(&cv.1, &regex, &flags))
        }),
        ("test", 1, |mut cv| {
            let regex = cv.0.pop_var();
            bome(test(&cv.1, &regex, &Val::utf8_str("")))
        }),
    ];
    filters
        .into_iter()
        .map(|(name, arguments, filter)| run::<D>((name, v(arguments), filter)))
}

/// Returns true if jaq's own filter or definition is replaced by one of these.
pub(crate) fn replaces(name: &str) -> bool {
    matches!(name, "matches" | "split_matches" | "split_" | "test")
}

fn text(val: &Val) -> Result<&str, Error<Val>> {
    std::str::from_utf8(val.try_as_utf8_bytes()?).map_err(Error::str)
}

fn compiled(regex: &Val, flags: &Val) -> Result<Rc<Compiled>, Error<Val>> {
    let (flags, regex) = (text(flags)?, text(regex)?);
    let known = COMPILED.with_borrow(|known| known.get(flags)?.get(regex).cloned());
    if let Some(known) = known {
        return Ok(known);
    }
    let made = Rc::new(compile(regex, flags)?);
    COMPILED.with_borrow_mut(|known| {
        if known.values().map(HashMap::len).sum::<usize>() >= KEPT {
            known.clear();
        }
        let of_flags = known.entry(flags.to_owned()).or_default();
        of_flags.insert(regex.to_owned(), Rc::clone(&made));
    });
    Ok(made)
}

fn compile(regex: &str, flags: &str) -> Result<Compiled, Error<Val>> {
    let mut builder = RegexBuilder::new(regex);
    let (mut all, mut ignore_empty) = (false, false);
    for flag in flags.chars() {
        match flag {
            'g' => all = true,
            'n' => ignore_empty = true,
            'i' => _ = builder.case_insensitive(true),
            'm' => _ = builder.multi_line(true),
            's' => _ = builder.dot_matches_new_line(true),
            'l' => _ = builder.swap_greed(true),
            'x' => _ = builder.ignore_whitespace(true),
            'p' => _ = builder.multi_line(true).dot_matches_new_line(true),
            other => return Err(Error::str(format_args!("invalid regex flag: {other}"))),
        }
    }
    let regex = builder.build().map_err(|error| {
        // The message spans several lines and marks the place; only the last line has the reason.
        let message = error.to_string();
        let what = message.rsplit("error: ").next().unwrap_or(&message);
        Error::str(format_args!("invalid regex: {}", what.trim()))
    })?;
    Ok(Compiled {
        regex,
        all,
        ignore_empty,
    })
}

/// Whether a text matches.
pub(crate) fn test(input: &Val, regex: &Val, flags: &Val) -> Result<Val, Error<Val>> {
    let compiled = compiled(regex, flags)?;
    let input = text(input)?;
    Ok(Val::Bool(if compiled.ignore_empty {
        compiled.first_filled(input)
    } else {
        compiled.regex.is_match(input)
    }))
}

impl Compiled {
    /// Returns true if there is a match that is not empty.
    fn first_filled(&self, input: &str) -> bool {
        self.regex.find_iter(input).any(|found| !found.is_empty())
    }
}

fn split_of<D>(mut cv: Cv<'_, D>, between: bool, matches: bool) -> Result<Val, Error<Val>>
where
    D: for<'a> DataT<V<'a> = Val>,
{
    let flags = cv.0.pop_var();
    let regex = cv.0.pop_var();
    split(&cv.1, &regex, &flags, between, matches)
}

/// Matches as lists of the whole and its groups, and the strings between the matches.
pub(crate) fn split(
    val: &Val,
    regex: &Val,
    flags: &Val,
    between: bool,
    matches: bool,
) -> Result<Val, Error<Val>> {
    let compiled = compiled(regex, flags)?;
    let input = text(val)?;
    let part = |from: usize, to: usize| val.as_sub_str(&input.as_bytes()[from..to]);
    let mut parts = Vec::new();
    let mut end = 0;
    for found in compiled.regex.captures_iter(input) {
        let Some(whole) = found.get(0) else {
            continue;
        };
        if compiled.ignore_empty && whole.is_empty() {
            continue;
        }
        if between {
            parts.push(part(end, whole.start()));
            end = whole.end();
        }
        if matches {
            parts.push(groups(val, input, &found, &compiled.regex));
        }
        if !compiled.all {
            break;
        }
    }
    if between {
        parts.push(part(end, input.len()));
    }
    Ok(parts.into_iter().collect())
}

/// A match: the whole and the groups that took part. Places and lengths are counted in characters.
fn groups(val: &Val, input: &str, found: &Captures<'_>, regex: &Regex) -> Val {
    let named = found.iter().zip(regex.capture_names());
    named
        .filter_map(|(group, name)| Some((group?, name)))
        .map(|(group, name)| {
            let offset = input[..group.start()].chars().count();
            let mut object: Map = [
                ("offset", Val::from(offset)),
                ("length", Val::from(group.as_str().chars().count())),
                ("string", val.as_sub_str(group.as_str().as_bytes())),
            ]
            .into_iter()
            .map(|(key, value)| (Val::utf8_str(key), value))
            .collect();
            if let Some(name) = name {
                object.insert(Val::utf8_str("name"), Val::utf8_str(name.to_owned()));
            }
            Val::obj(object)
        })
        .collect()
}
