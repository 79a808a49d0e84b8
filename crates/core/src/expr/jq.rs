//! jq programs, compiled once and run many times over JSON values, by `jaq`.
//!
//! A program sees its input, its variables and the records of `inputs`; no clock, environment, file or terminal. Two
//! differences to `jaq`: `del` keeps the order of keys, and `@csv`, `@tsv`, `IN`, `INDEX`, `toarray`, `trimstr` and
//! `leaf_paths` exist, as in `jq`.

mod balance;
mod data;
mod depth;
mod direct;
mod evaluator;
mod fault;
mod include;
mod jaq;
mod library;
mod native;
mod regex;
mod values;
mod walk;

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use jaq_core::load::lex::Lexer;
use jaq_core::load::parse::Parser;
use jaq_json::Val;
use serde_json::Value;

#[cfg(test)]
pub(crate) use direct::PROGRAMS;
use direct::demand::WHOLE;
pub(crate) use direct::demand::{Demand, Demands, NOTHING};
use direct::program::{Direct, Halt, Space};
pub use evaluator::{Evaluation, EvaluationInput, Evaluator, Limited};
use fault::ProgramText;
pub use fault::{JqError, Limit};
pub(crate) use include::{check_definitions, includes};
use jaq::JaqFilter;
pub(crate) use values::{part, read_checked};
use values::{read, to_val, to_value};

use super::mentions::Mentions;

/// A compiled program. It can be shared between threads; each thread runs it with values of its own.
#[derive(Clone)]
pub struct Jq {
    filter: JaqFilter,
    source: Arc<str>,
    vars: Vec<String>,
    names: BTreeSet<String>,
    mentions: Mentions,
    roots: Mentions,
    whole: bool,
    grows: bool,
    direct: Option<Arc<Direct>>,
    demands: Arc<Demands>,
}

impl std::fmt::Debug for Jq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Jq({})", self.name())
    }
}

impl Jq {
    /// Compiles a program.
    ///
    /// `name` is its file or its key, for messages. `vars` are the names of its variables, without `$`, in the order of the
    /// values of each run.
    ///
    /// # Errors
    /// Syntax errors, unknown names and filters, and unsupported regular expressions, each with its place in the program.
    pub fn compile(name: &str, source: &str, vars: &[&str]) -> Result<Jq, JqError> {
        let program = ProgramText {
            program: name,
            source,
            vars,
        };
        if let Some(at) = depth::too_deep(source) {
            let hint = "move its parts into definitions: def part: …;";
            let part = source.get(at..).unwrap_or_default();
            return Err(program.fault(
                part,
                "the program is nested too deeply",
                Some(hint.to_owned()),
            ));
        }
        let tokens = Lexer::new(source)
            .lex()
            .map_err(|errors| program.lex(&errors))?;
        let mut term = Parser::new(&tokens).parse(Parser::term).map_err(|errors| {
            errors.first().map_or_else(
                || program.fault(source, "the program cannot be read", None),
                |(expected, found)| program.parse(expected, *found),
            )
        })?;
        balance::balance(&mut term);
        let found = walk::walk(&term);
        let filter = JaqFilter::compile(&program, term.clone())?;
        for (at, regex, flags) in &found.regexes {
            check_regex(&program, at, regex, flags)?;
        }
        let (direct, demands) = match direct::build(&term, vars) {
            Some((direct, demands)) => (Some(Arc::new(direct)), demands),
            None => (None, demands(&found, vars)),
        };
        Ok(Jq {
            filter,
            source: source.into(),
            vars: vars.iter().map(|&var| var.to_owned()).collect(),
            names: found.names,
            mentions: found.mentions,
            roots: found.roots,
            whole: found.whole,
            grows: found.grows,
            direct,
            demands: Arc::new(demands),
        })
    }

    /// Returns the program's name, as given.
    pub fn name(&self) -> &str {
        self.filter.name()
    }

    /// Returns its text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns every identifier that the program uses as a field (`.x`, `."x"`, `["x"]`, `{x}`) or a variable (`$x`).
    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Returns the dotted names in the program: `$params.x` and `.params.x` as `params.x`, `$params` alone as `params`.
    pub fn mentions(&self) -> &Mentions {
        &self.mentions
    }

    /// Returns the dotted names that are fields of the program's own input, or variables. With [`Jq::takes_whole`], this is all
    /// that the program sees of its scope, so it decides what is loaded and fingerprinted.
    pub fn roots(&self) -> &Mentions {
        &self.roots
    }

    /// Returns what the program needs of its values.
    pub(crate) fn demands(&self) -> &Demands {
        &self.demands
    }

    /// Returns true if the program uses the variable at this position. A field of the same name does not count.
    pub(crate) fn uses_var(&self, at: usize) -> bool {
        self.demands.used.get(at).copied().unwrap_or(true)
    }

    /// Returns the names of its variables, in order.
    pub fn vars(&self) -> &[String] {
        &self.vars
    }

    /// Returns true if the program may use more of its input than the fields that it names: `.`, `.[]`, `to_entries`, …
    pub fn takes_whole(&self) -> bool {
        self.whole
    }

    /// Returns true if time and memory of the program are bounded by a power of the size of its values: it has no recursion, no
    /// state, and no filter that repeats as often as a value says.
    pub fn is_bounded(&self) -> bool {
        self.direct.is_some() && !self.grows
    }

    /// Binds values to the variables, so that many inputs can be run without converting the values again. The evaluator runs
    /// what could take more memory or stack than this process may lose.
    ///
    /// # Errors
    /// If the number of values is not the number of variables.
    pub fn limited<'a>(
        &'a self,
        vars: &[impl Borrow<Value>],
        evaluator: &'a dyn Evaluator,
    ) -> Result<Limited<'a>, JqError> {
        Ok(Limited::new(self.bind(vars)?, evaluator))
    }

    /// Like [`Jq::limited`], for values that contain only the parts that the program needs.
    pub(crate) fn limited_by<'a>(
        &'a self,
        vars: Vec<Val>,
        evaluator: &'a dyn Evaluator,
    ) -> Limited<'a> {
        Limited::new(self.bound(vars), evaluator)
    }

    /// Binds values to the variables. The program runs in this process without limits: only for a process that may end, and
    /// for programs and values that are known.
    ///
    /// # Errors
    /// If the number of values is not the number of variables.
    pub fn bind(&self, vars: &[impl Borrow<Value>]) -> Result<Bound<'_>, JqError> {
        if vars.len() != self.vars.len() {
            let message = format!(
                "it needs values for {}, not {}",
                fault::names(&self.vars),
                vars.len()
            );
            return Err(self.fault(&message));
        }
        let named = self.vars.iter().zip(&self.demands.vars).zip(vars);
        let needed = named.map(|((name, demand), value)| {
            // Variables that the program never mentions need no value.
            if self.names.contains(name) {
                part(value.borrow(), demand)
            } else {
                Val::Null
            }
        });
        Ok(self.bound(needed.collect()))
    }

    fn bound(&self, vars: Vec<Val>) -> Bound<'_> {
        Bound {
            jq: self,
            vars,
            units: u64::MAX,
            space: self.direct.as_ref().map(|direct| direct.space()),
        }
    }

    /// Returns all outputs.
    ///
    /// # Errors
    /// Errors that the program raises, and values that JSON cannot express.
    pub(crate) fn all(&self, input: Value, vars: &[Value]) -> Result<Vec<Value>, JqError> {
        self.bind(vars)?.all(input)
    }

    /// Returns the only output.
    ///
    /// # Errors
    /// The errors of [`Jq::all`], and if there is no output or more than one.
    pub fn one(&self, input: Value, vars: &[Value]) -> Result<Value, JqError> {
        self.bind(vars)?.one(input)
    }

    /// Returns all outputs while `input` and `inputs` read from `inputs`, one record at a time.
    ///
    /// # Errors
    /// The errors of [`Jq::all`], and errors of `inputs`.
    pub fn stream(
        &self,
        input: Value,
        vars: &[Value],
        inputs: &mut dyn Iterator<Item = Result<Value, String>>,
    ) -> Result<Vec<Value>, JqError> {
        let mut values = Vec::new();
        self.bind(vars)?.each(input, inputs, &mut |value| {
            values.push(value);
            Ok(())
        })?;
        Ok(values)
    }

    fn fault(&self, message: &str) -> JqError {
        JqError::running(self.name(), message)
    }

    /// Returns the program as jaq runs it, with all of its values.
    #[cfg(test)]
    pub(crate) fn with_all_demands(&self) -> Jq {
        let demands = Demands {
            input: WHOLE.clone(),
            vars: vec![WHOLE.clone(); self.vars.len()],
            used: vec![true; self.vars.len()],
            record: WHOLE.clone(),
        };
        Jq {
            direct: None,
            demands: Arc::new(demands),
            ..self.clone()
        }
    }
}

/// A program with values for its variables, for one thread.
pub struct Bound<'a> {
    jq: &'a Jq,
    vars: Vec<Val>,
    /// How much a run may do, if the program has no recursion.
    units: u64,
    space: Option<Space>,
}

impl Bound<'_> {
    /// Sets a variable to a JSON text; unless `whole`, parts that the program does not use are skipped.
    fn set(&mut self, name: &str, text: &str, whole: bool) -> Result<(), JqError> {
        if let Some(at) = self.jq.vars.iter().position(|var| var == name)
            && self.jq.names.contains(name)
        {
            let demand = self.jq.demands.vars.get(at).filter(|_| !whole);
            let val = read(text, demand.unwrap_or(&WHOLE));
            self.vars[at] = val.map_err(|error| self.jq.fault(&error.to_string()))?;
        }
        Ok(())
    }

    /// Returns all outputs while `inputs` reads the JSON texts of records.
    ///
    /// # Errors
    /// The errors of [`Jq::stream`], and if a text is not JSON.
    pub fn stream_texts(
        &self,
        input: Value,
        texts: &mut dyn Iterator<Item = Result<String, String>>,
    ) -> Result<Vec<Value>, JqError> {
        let demand = &self.jq.demands.record;
        let mut inputs = texts.map(|text| read(&text?, demand).map_err(|error| error.to_string()));
        let mut values = Vec::new();
        self.run(to_val(input), &mut inputs, &mut |val| {
            values.push(to_value(val)?);
            Ok(())
        })?;
        Ok(values)
    }

    fn read(&self, text: &str, demand: &Demand) -> Result<Val, JqError> {
        read(text, demand).map_err(|error| self.jq.fault(&error.to_string()))
    }

    /// See [`Jq::all`].
    ///
    /// # Errors
    /// See there.
    pub fn all(&self, input: Value) -> Result<Vec<Value>, JqError> {
        self.values(to_val(input), false)
    }

    /// See [`Jq::one`].
    ///
    /// # Errors
    /// See there.
    pub fn one(&self, input: Value) -> Result<Value, JqError> {
        self.one_val(to_val(input))
    }

    /// Returns the outputs: the only one, or all.
    fn values(&self, input: Val, only: bool) -> Result<Vec<Value>, JqError> {
        if only {
            return self.one_val(input).map(|value| vec![value]);
        }
        let mut values = Vec::new();
        self.run(input, &mut std::iter::empty(), &mut |val| {
            values.push(to_value(val)?);
            Ok(())
        })?;
        Ok(values)
    }

    fn one_val(&self, input: Val) -> Result<Value, JqError> {
        let mut value = Value::Null;
        self.only(input, &mut |val| {
            value = to_value(val)?;
            Ok(())
        })?;
        Ok(value)
    }

    /// Returns the outputs for an input, while the variables `set` have its values: the only one, or all.
    ///
    /// # Errors
    /// The errors of [`Jq::one`] or [`Jq::all`], and if a text is not JSON.
    pub fn values_of_text(
        &mut self,
        set: &[&str],
        input: &EvaluationInput<'_>,
        only: bool,
    ) -> Result<Vec<Value>, JqError> {
        let mut values = Vec::new();
        self.of_text(set, input, only, &mut |val| {
            values.push(to_value(val)?);
            Ok(())
        })?;
        Ok(values)
    }

    /// Passes each output for an input to `each`. Reads only the parts of its texts that the program uses, unless it fails: its
    /// message may show the rest.
    fn of_text(
        &mut self,
        set: &[&str],
        input: &EvaluationInput<'_>,
        only: bool,
        each: &mut dyn FnMut(Val) -> Result<(), String>,
    ) -> Result<(), JqError> {
        for (name, value) in set.iter().zip(&input.variables) {
            self.set(name, value, false)?;
        }
        let mut count = 0;
        let text = &*input.value;
        let found = self.each_of_text(text, &self.jq.demands.input, only, &mut |val| {
            count += 1;
            each(val)
        });
        match found {
            Err(error) if error.limit.is_none() && count == 0 => {
                for (name, value) in set.iter().zip(&input.variables) {
                    self.set(name, value, true)?;
                }
                self.each_of_text(text, &WHOLE, only, each)
            }
            found => found,
        }
    }

    fn each_of_text(
        &self,
        text: &str,
        demand: &Demand,
        only: bool,
        each: &mut dyn FnMut(Val) -> Result<(), String>,
    ) -> Result<(), JqError> {
        let input = self.read(text, demand)?;
        if only {
            self.only(input, each)
        } else {
            self.run(input, &mut std::iter::empty(), each)
        }
    }

    /// Passes the only output to `take`.
    fn only(
        &self,
        input: Val,
        take: &mut dyn FnMut(Val) -> Result<(), String>,
    ) -> Result<(), JqError> {
        let mut only = None;
        self.run(input, &mut std::iter::empty(), &mut |val| {
            if only.replace(val).is_some() {
                return Err(
                    "it returned more than one value, expected one; write `[…]` around it, or `first(…)`"
                        .to_owned(),
                );
            }
            Ok(())
        })?;
        let only = only.ok_or_else(|| {
            self.jq
                .fault("it returned no value, expected one; `… // null` returns null instead")
        })?;
        take(only).map_err(|message| self.jq.fault(&message))
    }

    /// Passes each output to `each` while `input` and `inputs` read from `inputs`. Nothing is collected.
    ///
    /// # Errors
    /// Errors that the program raises, errors of `inputs` and `each`, and values that JSON cannot express.
    pub(crate) fn each(
        &self,
        input: Value,
        inputs: &mut dyn Iterator<Item = Result<Value, String>>,
        each: &mut dyn FnMut(Value) -> Result<(), String>,
    ) -> Result<(), JqError> {
        let mut inputs = inputs.map(|record| record.map(to_val));
        self.run(to_val(input), &mut inputs, &mut |val| each(to_value(val)?))
    }

    fn run(
        &self,
        input: Val,
        inputs: &mut dyn Iterator<Item = Result<Val, String>>,
        each: &mut dyn FnMut(Val) -> Result<(), String>,
    ) -> Result<(), JqError> {
        let mut wrong = None;
        let mut take = |output: Result<Val, jaq_core::Error<Val>>| {
            let taken = output
                .map_err(|error| told(error.into_val()))
                .and_then(&mut *each);
            wrong = taken.err();
            wrong.is_none()
        };
        match (&self.jq.direct, &self.space) {
            (Some(direct), Some(space)) => {
                let mut give = |val| take(Ok(val));
                let (vars, units) = (&self.vars, self.units);
                match direct.run(space, vars, input, inputs, units, &mut give) {
                    Ok(()) | Err(Halt::Enough) => {}
                    Err(Halt::Error(error)) => _ = take(Err(error)),
                    Err(Halt::Spent) => {
                        let message = "it takes too many steps to run here";
                        return Err(self.jq.fault(message).of(Limit::Steps));
                    }
                }
            }
            _ => {
                let vars = self.vars.clone();
                let mut give = |output| take(output).then_some(()).ok_or(());
                // `take` has stored the error in `wrong`.
                let _ = self.jq.filter.run(vars, input, inputs, &mut give);
            }
        }
        wrong.map_or(Ok(()), |message| Err(self.jq.fault(&message)))
    }
}

/// Returns what a program that is not run directly needs.
fn demands(found: &walk::Found<'_>, vars: &[&str]) -> Demands {
    let fields = Demand::of_fields(found.roots.roots());
    let of_var = |name: &&str| match found.roots.keys_of(name) {
        Some(keys) => Demand::of_fields(keys.into_iter().map(str::to_owned)),
        None => WHOLE.clone(),
    };
    Demands {
        input: if found.whole { WHOLE.clone() } else { fields },
        vars: vars.iter().map(of_var).collect(),
        used: vec![true; vars.len()],
        record: WHOLE.clone(),
    }
}

fn told(error: Val) -> String {
    match error {
        Val::TStr(text) => String::from_utf8_lossy(&text).into_owned(),
        other => other.to_string(),
    }
}

/// Tries regular expressions on nothing.
static TRIAL: OnceLock<Option<Jq>> = OnceLock::new();

/// Refuses a literal regular expression that would fail whenever the program is run.
fn check_regex(
    program: &ProgramText<'_>,
    at: &str,
    regex: &str,
    flags: &str,
) -> Result<(), JqError> {
    if let Some(what) = walk::unsupported(regex) {
        let hint = "jaq's regular expressions have no look-around and no back-references: match more and take the part with `capture`, or test twice";
        return Err(program.regex(at, regex, &format!("has {what}"), Some(hint)));
    }
    let trial = TRIAL.get_or_init(|| {
        Jq::compile("regex", "[matches($regex; $flags)]", &["regex", "flags"]).ok()
    });
    if let Some(trial) = trial {
        trial
            .all(Value::from(""), &[Value::from(regex), Value::from(flags)])
            .map_err(|error| {
                program.regex(
                    at,
                    regex,
                    &format!("cannot be used: {}", error.message),
                    None,
                )
            })?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "jq/tests.rs"]
mod tests;
