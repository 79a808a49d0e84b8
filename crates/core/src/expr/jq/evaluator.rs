//! Programs over foreign values. They run here if program and values are bounded, and otherwise where limits hold.

use std::cell::OnceCell;

use serde_json::Value;

use super::fault::{JqError, Limit};
use super::values::to_value;
use super::{Bound, Jq};

/// The longest values that a program gets here, in bytes. Filters make a multiple of a text before it can be counted.
const SMALL: usize = 4 << 20;

/// How much a run may do here: a unit is a step, or about 64 bytes.
const UNITS: u64 = 1 << 20;

/// The bytes of inputs that an evaluator gets at once, if the variables are not longer.
const AT_ONCE: usize = 256 << 10;

/// Runs programs with limits of memory, stack and time.
pub trait Evaluator {
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
    /// The program.
    pub jq: &'a Jq,
    /// The values of its variables.
    pub vars: &'a [String],
    /// The variables that each input sets.
    pub set: &'a [&'a str],
    /// The inputs.
    pub inputs: Vec<EvaluationInput>,
    /// Whether more than one output, or none, is an error.
    pub only: bool,
}

/// An input of a program.
pub struct EvaluationInput {
    /// The value.
    pub value: String,
    /// The values of the variables that each input sets, in their order.
    pub variables: Vec<String>,
}

impl From<String> for EvaluationInput {
    fn from(value: String) -> Self {
        Self {
            value,
            variables: Vec::new(),
        }
    }
}

/// Inputs that are gathered until there are enough to ask for at once.
pub struct Gathered<T> {
    items: Vec<T>,
    length: usize,
    at_once: usize,
}

impl<T> Gathered<T> {
    /// Gathers this many bytes (see [`Limited::at_once`]).
    pub fn new(at_once: usize) -> Self {
        Self {
            items: Vec::new(),
            length: 0,
            at_once,
        }
    }

    /// Adds an item of `length` bytes. Returns all items if that is enough.
    pub fn add(&mut self, item: T, length: usize) -> Option<Vec<T>> {
        self.items.push(item);
        self.length += length;
        if self.length < self.at_once {
            return None;
        }
        self.length = 0;
        Some(std::mem::take(&mut self.items))
    }

    /// Returns the items that are left.
    pub fn rest(self) -> Vec<T> {
        self.items
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
    pub(super) fn new(mut bound: Bound<'a>, vars: &[Value], evaluator: &'a dyn Evaluator) -> Self {
        bound.units = UNITS;
        let jq = bound.jq;
        let mut left = SMALL;
        let used = jq.vars.iter().zip(vars);
        let is_small = used
            .filter(|(name, _)| jq.names.contains(*name))
            .all(|(_, value)| fits(value, &mut left));
        Self {
            room: (jq.is_bounded() && is_small).then_some(left),
            bound,
            evaluator,
            texts: OnceCell::new(),
        }
    }

    /// Returns all outputs.
    ///
    /// # Errors
    /// Errors that the program raises, values that JSON cannot express, and limits.
    pub fn all(&self, input: Value) -> Result<Vec<Value>, JqError> {
        self.run(input, false)
    }

    /// Returns the only output.
    ///
    /// # Errors
    /// As [`Limited::all`], and if there is no output or more than one.
    pub fn one(&self, input: Value) -> Result<Value, JqError> {
        self.run(input, true).map(first)
    }

    fn run(&self, input: Value, only: bool) -> Result<Vec<Value>, JqError> {
        if self.room.is_some_and(|mut left| fits(&input, &mut left)) {
            let found = if only {
                self.bound.one(input.clone()).map(|value| vec![value])
            } else {
                self.bound.all(input.clone())
            };
            if !is_over(&found) {
                return found;
            }
        }
        let text = input.to_string();
        // A long input is not kept beside its text.
        drop(input);
        let found = self.evaluate(&[], vec![text.into()], only)?.pop();
        let found = found.ok_or_else(|| self.bound.jq.fault("it was not run"))?;
        found.map_err(|why| self.bound.jq.fault(&why))
    }

    /// Returns all outputs for each JSON text. Asking for many at once is faster.
    ///
    /// # Errors
    /// As [`Limited::all`], for the first text that has one, and if a text is no JSON.
    pub fn all_of_each(&mut self, texts: Vec<String>) -> Result<Vec<Vec<Value>>, JqError> {
        let inputs = texts.into_iter().map(Into::into).collect();
        self.of_each(&[], inputs, false)
    }

    /// Returns the only output for each input, while the variables `set` have the values of each. Asking for many at once is faster.
    ///
    /// # Errors
    /// As [`Limited::one`], for the first input that has one, and if a text is no JSON.
    pub fn one_of_each(
        &mut self,
        set: &[&str],
        inputs: Vec<EvaluationInput>,
    ) -> Result<Vec<Value>, JqError> {
        let found = self.of_each(set, inputs, true)?;
        Ok(found.into_iter().map(first).collect())
    }

    fn of_each(
        &mut self,
        set: &[&str],
        inputs: Vec<EvaluationInput>,
        only: bool,
    ) -> Result<Vec<Vec<Value>>, JqError> {
        let mut values = Vec::with_capacity(inputs.len());
        let mut rest = Vec::new();
        for input in inputs {
            let length: usize = input.variables.iter().map(String::len).sum();
            if rest.is_empty() && self.has_room(input.value.len() + length) {
                for (name, variable) in set.iter().zip(&input.variables) {
                    self.bound.set_text(name, variable)?;
                }
                let found = self.bound.values_of_text(&input.value, only);
                if !is_over(&found) {
                    values.push(found?);
                    continue;
                }
            }
            rest.push(input);
        }
        if !rest.is_empty() {
            for found in self.evaluate(set, rest, only)? {
                values.push(found.map_err(|why| self.bound.jq.fault(&why))?);
            }
        }
        Ok(values)
    }

    /// Returns the bytes of inputs that are best asked for at once; 0 if the program runs here.
    pub fn at_once(&self) -> usize {
        match self.room {
            Some(_) => 0,
            // The variables are sent each time.
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
        inputs: Vec<EvaluationInput>,
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
            let text = |val: &jaq_json::Val| to_value(val.clone()).unwrap_or_default().to_string();
            self.bound.vars.iter().map(text).collect()
        })
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

/// Subtracts the size of a value from what is left. Returns false if it does not fit.
fn fits(value: &Value, left: &mut usize) -> bool {
    let size = match value {
        Value::String(text) => text.len(),
        _ => 8,
    };
    let Some(rest) = left.checked_sub(size) else {
        return false;
    };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| fits(item, left)),
        Value::Object(map) => map.iter().all(|(key, item)| {
            *left = left.saturating_sub(key.len());
            fits(item, left)
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::cell::RefCell;

    /// Notes how many inputs it gets at once.
    #[derive(Default)]
    struct Noted(RefCell<Vec<usize>>);

    impl Evaluator for Noted {
        fn evaluate(
            &self,
            evaluation: Evaluation<'_>,
        ) -> Result<Vec<Result<Vec<Value>, String>>, JqError> {
            self.0.borrow_mut().push(evaluation.inputs.len());
            let parsed = |text: &String| serde_json::from_str(text).unwrap();
            let vars: Vec<Value> = evaluation.vars.iter().map(parsed).collect();
            let mut bound = evaluation.jq.bind(&vars)?;
            let mut of = |input: &EvaluationInput| {
                for (name, text) in evaluation.set.iter().zip(&input.variables) {
                    bound.set_text(name, text)?;
                }
                bound.values_of_text(&input.value, evaluation.only)
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
        let by_value = limited.all(input.clone());
        let by_text = limited.all_of_each(vec![input.to_string()]);
        assert_eq!(by_value, by_text.map(|mut found| found.remove(0)));
        let found = json!(by_value.unwrap());
        (found, noted.0.into_inner())
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
    fn many_records_are_asked_for_at_once() {
        let noted = Noted::default();
        let jq = Jq::compile("p", "[range(.)] + [$v]", &["v"]).unwrap();
        let mut limited = jq.limited(&[Value::Null], &noted).unwrap();
        assert_eq!(limited.at_once(), AT_ONCE);
        let inputs = |count: usize| {
            let inputs = (0..count).map(|n| EvaluationInput {
                value: (n % 2).to_string(),
                variables: vec![json!(n).to_string()],
            });
            inputs.collect::<Vec<_>>()
        };
        let found = limited.one_of_each(&["v"], inputs(20_000)).unwrap();
        assert_eq!(found[..3], [json!([0]), json!([0, 1]), json!([2])]);
        assert_eq!(noted.0.take(), [20_000]);
        // Those that run here need no evaluator.
        let jq = Jq::compile("p", "[., $v]", &["v"]).unwrap();
        let mut limited = jq.limited(&[Value::Null], &noted).unwrap();
        assert_eq!(limited.at_once(), 0);
        let found = limited.one_of_each(&["v"], inputs(3)).unwrap();
        assert_eq!(found, [json!([0, 0]), json!([1, 1]), json!([0, 2])]);
        assert_eq!(noted.0.take(), [0; 0]);
    }
}
