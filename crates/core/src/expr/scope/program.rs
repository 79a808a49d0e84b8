//! The part of a scope that a program sees: only the parts of files that it can use.

use std::rc::Rc;

use jaq_json::{Map as ValMap, Val};
use serde_json::Value;

use super::{Format, Scope, ScopeEntry, ScopeError, ScopeFile, source};
use crate::expr::jq::{Demand, Evaluator, Jq, JqError, NOTHING, part, read_checked};
use std::collections::BTreeSet;

/// The longest document of which parts are read from memory, in bytes. The value of a shorter one is never too large.
const SHORT: usize = 64 << 20;

impl Scope {
    /// Returns all outputs of a program whose `.` is the scope. Reads only the parts of files that it can use, and all of them if
    /// it fails: its message may show the rest.
    ///
    /// # Errors
    /// If a file that it mentions cannot be read or is binary; errors of the program are `Ok(Err(_))`.
    pub fn all(
        &self,
        jq: &Jq,
        evaluator: &dyn Evaluator,
    ) -> Result<Result<Vec<Value>, JqError>, ScopeError> {
        self.run(jq, evaluator, false)
    }

    /// Returns the output of a program that has exactly one; otherwise like [`Scope::all`].
    ///
    /// # Errors
    /// The errors of [`Scope::all`]. No output, or several, is `Ok(Err(_))`.
    pub fn one(
        &self,
        jq: &Jq,
        evaluator: &dyn Evaluator,
    ) -> Result<Result<Value, JqError>, ScopeError> {
        let found = self.run(jq, evaluator, true)?;
        Ok(found.map(|mut values| values.pop().unwrap_or_default()))
    }

    fn run(
        &self,
        jq: &Jq,
        evaluator: &dyn Evaluator,
        only: bool,
    ) -> Result<Result<Vec<Value>, JqError>, ScopeError> {
        let (input, vars) = self.used_by(jq)?;
        let limited = jq.limited_by(vars, evaluator);
        match limited.of_part(&input, only) {
            Err(error) if error.limit.is_none() && jq.demands().input.is_part() => {
                Ok(limited.run(&self.input_of(jq)?, only))
            }
            found => Ok(found),
        }
    }

    /// Returns the input of a program and its variables. A file is read in the order of names even where the program mentions but
    /// never uses it, so that the first one that cannot be read is reported.
    fn used_by(&self, jq: &Jq) -> Result<(Val, Vec<Val>), ScopeError> {
        let (roots, demands) = (jq.roots(), jq.demands());
        let mut input = ValMap::default();
        let mut vars: Vec<Option<Val>> = vec![None; jq.vars().len()];
        let var = |at: usize, name: &str| {
            let (keys, demand) = (roots.keys_of(name), &demands.vars[at]);
            without_binary(self.used(name, keys.as_ref(), demand))
        };
        let is_used = |at: usize, name: &str| roots.has(name) && jq.uses_var(at);
        for name in self.names() {
            let is_whole = jq.takes_whole();
            let is_listed = is_whole && self.unlisted.as_deref() != Some(name);
            if !is_listed && !roots.has(name) {
                continue;
            }
            let keys = roots.keys_of(name).filter(|_| !is_whole);
            let Some(demand) = demands.input.field(name) else {
                let at = jq.vars().iter().position(|var| var == name);
                match at.filter(|at| !is_whole && is_used(*at, name)) {
                    Some(at) => vars[at] = Some(var(at, name)?.unwrap_or_default()),
                    None => drop(without_binary(self.used(name, keys.as_ref(), &NOTHING))?),
                }
                continue;
            };
            if let Some(val) = without_binary(self.used(name, keys.as_ref(), demand))? {
                input.insert(Val::utf8_str(name.to_owned()), val);
            }
        }
        let named = jq.vars().iter().enumerate().zip(vars);
        let vars = named.map(|((at, name), known)| match known {
            Some(val) => Ok(val),
            None if is_used(at, name) && self.has(name) => Ok(var(at, name)?.unwrap_or_default()),
            None => Ok(Val::Null),
        });
        let vars = vars.collect::<Result<_, ScopeError>>()?;
        Ok((Val::obj(input), vars))
    }

    /// Returns what is needed of a name with its members: all of them, or those in `keys`.
    fn used(
        &self,
        name: &str,
        keys: Option<&BTreeSet<&str>>,
        demand: &Demand,
    ) -> Result<Val, ScopeError> {
        let mut val = match self.entry(name) {
            Some(entry) => entry.used(name, keys, demand)?,
            None => Val::obj(ValMap::default()),
        };
        if let Val::Obj(object) = &mut val {
            for (known, member, entry) in self.members(name, keys) {
                let needed = demand.field(member);
                let member_val = entry.used(known, None, needed.unwrap_or(&NOTHING))?;
                if needed.is_some() {
                    Rc::make_mut(object).insert(Val::utf8_str(member.to_owned()), member_val);
                }
            }
        }
        Ok(val)
    }
}

/// Replaces a binary file by nothing: a program may mention a name without using the file.
fn without_binary(found: Result<Val, ScopeError>) -> Result<Option<Val>, ScopeError> {
    match found {
        Err(ScopeError::Binary { .. }) => Ok(None),
        found => found.map(Some),
    }
}

impl ScopeEntry {
    fn used(
        &self,
        name: &str,
        keys: Option<&BTreeSet<&str>>,
        demand: &Demand,
    ) -> Result<Val, ScopeError> {
        match self {
            Self::Value(value) => Ok(part(value, demand)),
            Self::File(file) => file.used(name, keys, demand),
            Self::Files(files) => {
                let items = demand.items();
                let used = files.iter().filter_map(|file| {
                    let found = file.used(name, None, items.unwrap_or(&NOTHING));
                    // A list without needed items is an empty list.
                    (items.is_some() || found.is_err()).then_some(found)
                });
                used.collect()
            }
            Self::Absent => Ok(Val::Null),
        }
    }
}

impl ScopeFile {
    fn used(
        &self,
        name: &str,
        keys: Option<&BTreeSet<&str>>,
        demand: &Demand,
    ) -> Result<Val, ScopeError> {
        if !demand.whole
            && self.parsed.get().is_none()
            && self.reading.format == Format::Json
            && let Ok(text) = source::text_within(&*self.source, SHORT)
            && let Ok(val) = read_checked(&text, demand)
        {
            return Ok(val);
        }
        match keys.and_then(|keys| self.fields(keys)) {
            Some(fields) => Ok(part(&fields, demand)),
            None => Ok(part(&*self.value(name)?, demand)),
        }
    }
}

#[cfg(test)]
mod tests;
