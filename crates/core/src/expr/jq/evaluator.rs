//! Programs over foreign values. They run here if program and values are bounded, and otherwise where limits hold.

use std::borrow::Cow;
use std::cell::OnceCell;

use jaq_json::Val;
use serde_json::Value;

use super::direct::demand::WHOLE;
use super::fault::{JqError, Limit};
use super::values::{part, to_value, write};
use super::{Bound, Jq};
use crate::base::texts::Texts;

/// The longest values that a program gets here, in bytes. Filters make a multiple of a text before it can be counted.
const SMALL: usize = 4 << 20;

/// How much a run may do here: a unit is a step, or about 64 bytes.
const UNITS: u64 = 1 << 20;

/// The bytes of inputs that an evaluator gets at once, if the variables are not longer.
const AT_ONCE: usize = 256 << 10;

/// Runs programs with limits of memory, stack and time, for several threads at once.
pub trait Evaluator: Sync {
    /// Returns the outputs for each input, or the error that the program raises.
    ///
    /// # Errors
    /// When a limit ends the program, or it cannot be run.
    fn evaluate(
        &self,
        evaluation: Evaluation<'_>,
    ) -> Result<Vec<Result<Vec<Value>, String>>, JqError>;
}

/// A program with its inputs. All values are JSON texts.
pub struct Evaluation<'a> {
    pub jq: &'a Jq,
    /// The values of its variables.
    pub vars: &'a [String],
    /// The variables that each input sets.
    pub set: &'a [&'a str],
    pub inputs: &'a [EvaluationInput<'a>],
    /// Whether more than one output, or none, is an error.
    pub only: bool,
}

/// An input of a program.
pub struct EvaluationInput<'a> {
    pub value: Cow<'a, str>,
    /// The values of the variables that each input sets, in their order.
    pub variables: Vec<Cow<'a, str>>,
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for EvaluationInput<'a> {
    fn from(value: T) -> Self {
        Self {
            value: value.into(),
            variables: Vec::new(),
        }
    }
}

/// A program with values for its variables. An evaluator runs what this process must not.
pub struct Limited<'a> {
    bound: Bound<'a>,
    evaluator: &'a dyn Evaluator,
    /// The bytes that an input may have here; `None` if the program must not run here.
    room: Option<usize>,
    /// The values of the variables as JSON, for the evaluator.
    texts: OnceCell<Vec<String>>,
}

impl<'a> Limited<'a> {
    pub(super) fn new(mut bound: Bound<'a>, evaluator: &'a dyn Evaluator) -> Self {
        bound.units = UNITS;
        let mut left = SMALL;
        let is_small = bound.vars.iter().all(|val| fits(val, &mut left));
        Self {
            room: (bound.jq.is_bounded() && is_small).then_some(left),
            bound,
            evaluator,
            texts: OnceCell::new(),
        }
    }

    /// Returns all outputs.
    ///
    /// # Errors
    /// Errors that the program raises, values that JSON cannot express, and limits.
    pub fn all(&self, input: &Value) -> Result<Vec<Value>, JqError> {
        self.run(input, false)
    }

    /// Returns the only output.
    ///
    /// # Errors
    /// The errors of [`Limited::all`], and if there is no output or more than one.
    pub fn one(&self, input: &Value) -> Result<Value, JqError> {
        self.run(input, true).map(first)
    }

    /// Returns the outputs: the only one, or all.
    ///
    /// # Errors
    /// The errors of [`Limited::one`] and [`Limited::all`].
    pub(crate) fn run(&self, input: &Value, only: bool) -> Result<Vec<Value>, JqError> {
        let demand = &self.bound.jq.demands.input;
        match self.here(part(input, demand), only) {
            // An error message may show parts of the input that the program does not need: run again with all of it.
            Some(Err(_)) if !demand.whole => self.bound.values(part(input, &WHOLE), only),
            Some(found) => found,
            None => self.elsewhere(input.to_string(), only),
        }
    }

    /// Like [`Limited::run`], for an input that contains only the parts that the program needs. Error messages show no more than
    /// that.
    ///
    /// # Errors
    /// The errors of [`Limited::run`].
    pub(crate) fn of_part(&self, input: &Val, only: bool) -> Result<Vec<Value>, JqError> {
        if let Some(found) = self.here(input.clone(), only) {
            return found;
        }
        self.elsewhere(self.text(input)?, only)
    }

    /// Returns the outputs; `None` if the program must not run here with this input.
    fn here(&self, input: Val, only: bool) -> Option<Result<Vec<Value>, JqError>> {
        let mut left = self.room?;
        if !fits(&input, &mut left) {
            return None;
        }
        let found = self.bound.values(input, only);
        (!is_over(&found)).then_some(found)
    }

    fn elsewhere(&self, input: String, only: bool) -> Result<Vec<Value>, JqError> {
        let found = self.evaluate(&[], &[input.into()], only)?.pop();
        let found = found.ok_or_else(|| self.bound.jq.fault("it was not run"))?;
        found.map_err(|why| self.bound.jq.fault(&why))
    }

    /// Returns all outputs for each JSON text. One call for many texts is faster.
    ///
    /// # Errors
    /// The errors of [`Limited::all`], for the first text that has one, and if a text is not JSON.
    pub fn all_of_each(
        &mut self,
        inputs: &[EvaluationInput<'_>],
    ) -> Result<Vec<Vec<Value>>, JqError> {
        let mut all: Vec<Vec<Value>> = (0..inputs.len()).map(|_| Vec::new()).collect();
        self.of_each(&[], inputs, false, &mut |at, output| {
            all[at].push(output.value()?);
            Ok(())
        })?;
        Ok(all)
    }

    /// Returns the only output for each input, while the variables `set` have the values of each. One call for many inputs is
    /// faster.
    ///
    /// # Errors
    /// The errors of [`Limited::one`], for the first input that has one, and if a text is not JSON.
    pub fn one_of_each(
        &mut self,
        set: &[&str],
        inputs: &[EvaluationInput<'_>],
    ) -> Result<Vec<Value>, JqError> {
        let mut values = Vec::with_capacity(inputs.len());
        self.of_each(set, inputs, true, &mut |_, output| {
            values.push(output.value()?);
            Ok(())
        })?;
        Ok(values)
    }

    /// Like [`Limited::one_of_each`], but returns JSON texts.
    ///
    /// # Errors
    /// The errors of [`Limited::one_of_each`].
    pub fn text_of_each(
        &mut self,
        set: &[&str],
        inputs: &[EvaluationInput<'_>],
    ) -> Result<Texts, JqError> {
        let mut texts = Texts::default();
        let mut text = Vec::new();
        self.of_each(set, inputs, true, &mut |_, output| {
            text.clear();
            output.write(&mut text)?;
            texts.add(std::str::from_utf8(&text).map_err(|error| error.to_string())?);
            Ok(())
        })?;
        Ok(texts)
    }

    /// Passes each output to `each`, with the index of its input.
    fn of_each(
        &mut self,
        set: &[&str],
        inputs: &[EvaluationInput<'_>],
        only: bool,
        each: &mut dyn FnMut(usize, Output) -> Result<(), String>,
    ) -> Result<(), JqError> {
        for (at, input) in inputs.iter().enumerate() {
            let length: usize = input.variables.iter().map(|text| text.len()).sum();
            if self.has_room(input.value.len() + length) {
                // Nothing is given twice if a program takes too many steps.
                let mut outputs = Vec::new();
                let found = self.bound.of_text(set, input, only, &mut |val| {
                    outputs.push(val);
                    Ok(())
                });
                if !is_over(&found) {
                    found?;
                    for val in outputs {
                        let given = each(at, Output::Val(val));
                        given.map_err(|message| self.bound.jq.fault(&message))?;
                    }
                    continue;
                }
            }
            let found = self.evaluate(set, &inputs[at..], only)?;
            for (at, found) in (at..).zip(found) {
                for value in found.map_err(|why| self.bound.jq.fault(&why))? {
                    let given = each(at, Output::Value(value));
                    given.map_err(|message| self.bound.jq.fault(&message))?;
                }
            }
            return Ok(());
        }
        Ok(())
    }

    /// Returns the best number of bytes of inputs for one call; 0 if the program runs here.
    pub fn at_once(&self) -> usize {
        match self.room {
            Some(_) => 0,
            // The variables travel with each call.
            None => self
                .texts()
                .iter()
                .map(String::len)
                .sum::<usize>()
                .max(AT_ONCE),
        }
    }

    fn has_room(&self, length: usize) -> bool {
        self.room.is_some_and(|room| length <= room)
    }

    fn evaluate(
        &self,
        set: &[&str],
        inputs: &[EvaluationInput<'_>],
        only: bool,
    ) -> Result<Vec<Result<Vec<Value>, String>>, JqError> {
        self.evaluator.evaluate(Evaluation {
            jq: self.bound.jq,
            vars: self.texts(),
            set,
            inputs,
            only,
        })
    }

    fn texts(&self) -> &[String] {
        self.texts.get_or_init(|| {
            let text = |val: &Val| self.text(val).unwrap_or_else(|_| Value::Null.to_string());
            self.bound.vars.iter().map(text).collect()
        })
    }

    fn text(&self, val: &Val) -> Result<String, JqError> {
        let mut text = Vec::new();
        let written = write(val, &mut text).map(|()| String::from_utf8_lossy(&text).into_owned());
        written.map_err(|message| self.bound.jq.fault(&message))
    }
}

/// An output of a program.
enum Output {
    /// As it ran here.
    Val(Val),
    /// As the evaluator returned it.
    Value(Value),
}

impl Output {
    fn value(self) -> Result<Value, String> {
        match self {
            Self::Val(val) => to_value(val),
            Self::Value(value) => Ok(value),
        }
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::Val(val) => write(val, out),
            Self::Value(value) => {
                serde_json::to_writer(out, value).map_err(|error| error.to_string())
            }
        }
    }
}

/// Returns true if a program took too many steps to be run here.
fn is_over<T>(found: &Result<T, JqError>) -> bool {
    matches!(found, Err(error) if error.limit == Some(Limit::Steps))
}

fn first(mut values: Vec<Value>) -> Value {
    if values.is_empty() {
        Value::Null
    } else {
        values.swap_remove(0)
    }
}

/// Deducts the size of a value from the remaining budget. Returns false if the budget is too small.
fn fits(val: &Val, left: &mut usize) -> bool {
    let size = match val {
        Val::TStr(text) | Val::BStr(text) => text.len(),
        _ => 8,
    };
    let Some(rest) = left.checked_sub(size) else {
        return false;
    };
    *left = rest;
    match val {
        Val::Arr(items) => items.iter().all(|item| fits(item, left)),
        Val::Obj(object) => object
            .iter()
            .all(|(key, item)| fits(key, left) && fits(item, left)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Mutex;

    /// Notes how many inputs it gets at once.
    #[derive(Default)]
    struct Noted(Mutex<Vec<usize>>);

    impl Noted {
        fn take(&self) -> Vec<usize> {
            std::mem::take(&mut *self.0.lock().unwrap())
        }
    }

    impl Evaluator for Noted {
        fn evaluate(
            &self,
            evaluation: Evaluation<'_>,
        ) -> Result<Vec<Result<Vec<Value>, String>>, JqError> {
            self.0.lock().unwrap().push(evaluation.inputs.len());
            let parsed = |text: &String| serde_json::from_str(text).unwrap();
            let vars: Vec<Value> = evaluation.vars.iter().map(parsed).collect();
            let mut bound = evaluation.jq.bind(&vars)?;
            let mut of = |input: &EvaluationInput<'_>| {
                bound.values_of_text(evaluation.set, input, evaluation.only)
            };
            let found = evaluation
                .inputs
                .iter()
                .map(|input| of(input).map_err(|error| error.message));
            Ok(found.collect())
        }
    }

    /// Returns the outputs of a program, and how often the evaluator ran it.
    fn run(source: &str, input: Value) -> (Value, Vec<usize>) {
        let noted = Noted::default();
        let jq = Jq::compile("p", source, &["v"]).unwrap();
        let mut limited = jq.limited(&[json!([1, 2])], &noted).unwrap();
        let by_value = limited.all(&input);
        let by_text = limited.all_of_each(&[input.to_string().into()]);
        assert_eq!(by_value, by_text.map(|mut found| found.remove(0)));
        let found = json!(by_value.unwrap());
        (found, noted.take())
    }

    #[test]
    fn what_is_small_runs_here_and_the_rest_with_limits() {
        assert_eq!(run(".a + $v[0]", json!({"a": 1})), (json!([2]), vec![]));
        assert_eq!(run("[range(.)]", json!(2)), (json!([[0, 1]]), vec![1, 1]));
        let long = json!("x".repeat(SMALL + 1));
        assert_eq!(run("length", long).1, [1, 1]);
        let list: Vec<usize> = (0..100).collect();
        let cube = "[.[] as $a | .[] as $b | .[] | $a + $b + .] | length";
        assert_eq!(run(cube, json!(list)), (json!([1_000_000]), vec![1, 1]));
        let square = "[.[] as $a | .[] | $a + .] | length";
        assert_eq!(run(square, json!(list)), (json!([10_000]), vec![]));
        let copies = ". as $all | [.[] | $all] | [.[] | tojson | length] | add";
        assert_eq!(run(copies, json!(list)), (json!([29_100]), vec![]));
        // Lists that contain a list many times are written as often.
        let copies = ". as $all | [.[] | $all] | [.[] as $one | .] | tojson | length";
        assert_eq!(run(copies, json!(vec![0; 120])).1, [1, 1]);
    }

    #[test]
    fn an_error_shows_the_list_that_was_taken_for_an_object() {
        let jq = Jq::compile("p", "$v.a", &["v"]).unwrap();
        let noted = Noted::default();
        let limited = jq.limited(&[json!([1, 2])], &noted).unwrap();
        let error = limited.one(&Value::Null).unwrap_err();
        assert!(error.message.contains("[1,2]"), "{}", error.message);
    }

    #[test]
    fn many_records_are_asked_for_at_once() {
        let noted = Noted::default();
        let jq = Jq::compile("p", "[range(.)] + [$v]", &["v"]).unwrap();
        let mut limited = jq.limited(&[Value::Null], &noted).unwrap();
        assert_eq!(limited.at_once(), AT_ONCE);
        let inputs = |count: usize| {
            let inputs = (0..count).map(|n| EvaluationInput {
                value: (n % 2).to_string().into(),
                variables: vec![json!(n).to_string().into()],
            });
            inputs.collect::<Vec<_>>()
        };
        let found = limited.one_of_each(&["v"], &inputs(20_000)).unwrap();
        assert_eq!(found[..3], [json!([0]), json!([0, 1]), json!([2])]);
        assert_eq!(noted.take(), [20_000]);
        // Those that run here need no evaluator.
        let jq = Jq::compile("p", "[., $v]", &["v"]).unwrap();
        let mut limited = jq.limited(&[Value::Null], &noted).unwrap();
        assert_eq!(limited.at_once(), 0);
        let found = limited.one_of_each(&["v"], &inputs(3)).unwrap();
        let texts = limited.text_of_each(&["v"], &inputs(3)).unwrap();
        assert_eq!(
            texts.iter().collect::<Vec<_>>(),
            ["[0,0]", "[1,1]", "[0,2]"]
        );
        assert_eq!(found, [json!([0, 0]), json!([1, 1]), json!([0, 2])]);
        assert_eq!(noted.take(), [0; 0]);
    }
}
