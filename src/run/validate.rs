//! Judges what was made: schemas, conservation, checks.

use crate::base::source::Source;
use crate::check::conserve::{Conservation, Tally};
use crate::check::schema::{Schema, Violation};
use crate::expr::scope::Scope;
use crate::expr::select::Select;
use crate::model::outcome::{Outcome, OutcomeKind};
use crate::model::pipeline::Asset;
use crate::model::stage::Stage;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::sync::{Arc, Mutex, PoisonError};

/// Violations that are kept of one file.
const KEPT: usize = 20;

/// Schemas of a project, compiled once.
#[derive(Default)]
pub struct Schemas {
    compiled: Mutex<BTreeMap<String, Arc<Schema>>>,
}

impl Schemas {
    /// The compiled schema of an asset.
    ///
    /// # Errors
    /// When it is no schema.
    pub fn get(&self, asset: &Asset) -> Result<Arc<Schema>, Outcome> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let key = format!("{} {}", asset.path, asset.digest);
        if let Some(schema) = compiled.get(&key) {
            return Ok(Arc::clone(schema));
        }
        let schema = Schema::compile(asset.path.as_str(), &asset.text, &|_| None)
            .map_err(|error| Outcome::new(OutcomeKind::Schema, error.to_string()))?;
        let schema = Arc::new(schema);
        compiled.insert(key, Arc::clone(&schema));
        Ok(schema)
    }
}

/// Judges one file by a schema; `stream` names the array that is judged item by item.
///
/// # Errors
/// The violations, as an outcome.
pub fn file(schemas: &Schemas, asset: &Asset, source: &dyn Source, stream: Option<&Select>) -> Result<(), Outcome> {
    let schema = schemas.get(asset)?;
    let opened = source.open().map_err(|error| {
        Outcome::new(OutcomeKind::Output, format!("`{}` cannot be read: {error}", source.name()))
    })?;
    let violations = schema.validate_stream(BufReader::with_capacity(1 << 16, opened), stream, KEPT);
    refuse(&source.name(), asset, &violations)
}

fn refuse(name: &str, asset: &Asset, violations: &[Violation]) -> Result<(), Outcome> {
    let Some(first) = violations.first() else {
        return Ok(());
    };
    let at = if first.pointer.is_empty() { String::new() } else { format!(" at {}", first.pointer) };
    let message = format!("`{name}` does not match {}: {}{at}", asset.path, first.message);
    let details = violations.iter().map(|violation| {
        let at = if violation.pointer.is_empty() { "/" } else { &violation.pointer };
        format!("{at}: {}", violation.message)
    });
    Err(Outcome::new(OutcomeKind::Schema, message).with_details(details.collect()))
}

/// Judges conservation. Gives the number of elements that came out.
///
/// # Errors
/// What was lost, doubled or invented, as an outcome.
pub fn conservation(stage: &Stage, scope: &mut Scope) -> Result<Option<u64>, Outcome> {
    let Some(conserve) = &stage.conserve else {
        return Ok(None);
    };
    let mut tally = Tally::new();
    let unreadable = |select: &Select, why: &dyn std::fmt::Display| {
        Outcome::new(OutcomeKind::Conserve, format!("`{select}` cannot be counted: {why}"))
    };
    scope
        .select(&conserve.input, &mut |key| {
            tally.goes_in(&key);
            Ok(())
        })
        .map_err(|error| unreadable(&conserve.input, &error))?;
    let mut out = 0;
    scope
        .select(&conserve.output, &mut |key| {
            tally.comes_out(&key);
            out += 1;
            Ok(())
        })
        .map_err(|error| unreadable(&conserve.output, &error))?;
    if tally.holds() {
        return Ok(Some(out));
    }
    let mut named = tally.differing();
    for select in [&conserve.input, &conserve.output] {
        let output = std::ptr::eq(select, &raw const conserve.output);
        scope
            .select(select, &mut |key| {
                named.name(&key, output);
                Ok(())
            })
            .map_err(|error| unreadable(select, &error))?;
    }
    let Conservation { lost, invented, doubled } = named.finish();
    let mut parts = Vec::new();
    let mut details = Vec::new();
    for (what, keys) in [("lost", lost), ("invented", invented), ("doubled", doubled)] {
        if keys.total > 0 {
            parts.push(format!("{} {what}", keys.total));
            details.extend(keys.first.iter().map(|key| format!("{what}: {key}")));
        }
    }
    let message = format!("what goes in does not come out: {} ({} → {})", parts.join(", "), conserve.input, conserve.output);
    Err(Outcome::new(OutcomeKind::Conserve, message).with_details(details))
}

/// Judges the `[[check]]`s of a stage.
///
/// # Errors
/// The first that is not true, with its declared error.
pub fn checks(stage: &Stage, scope: &mut Scope) -> Result<(), Outcome> {
    for check in &stage.checks {
        let (input, vars) = program_scope(scope, &check.test)?;
        let verdict = check.test.jq.one(input, &vars);
        let failed = match verdict {
            Ok(Value::Bool(true)) => continue,
            Ok(Value::Bool(false)) => None,
            Ok(other) => Some(format!("it gave {other}, where true or false was expected")),
            Err(error) => Some(error.to_string()),
        };
        let message = match &check.message {
            Some(template) => {
                let names = template.mentions().roots();
                let values = scope.value_for(&names).map_err(|error| Outcome::new(OutcomeKind::Check, error.to_string()))?;
                template.render(&values).unwrap_or_else(|error| error.to_string())
            }
            None => format!("`{}` is not true", check.test.source.trim()),
        };
        let mut outcome = Outcome::new(OutcomeKind::Check, message);
        outcome.code.clone_from(&check.error);
        outcome.details.extend(failed);
        return Err(outcome);
    }
    Ok(())
}

/// The value of a program of the stage over the scope: `summary`, `verdict`.
///
/// # Errors
/// When it fails.
pub fn value(scope: &mut Scope, program: &crate::model::stage::Program) -> Result<Value, Outcome> {
    let (input, vars) = program_scope(scope, program)?;
    program.jq.one(input, &vars).map_err(|error| Outcome::new(OutcomeKind::Parse, error.to_string()))
}

fn program_scope(scope: &mut Scope, program: &crate::model::stage::Program) -> Result<(Value, Vec<Value>), Outcome> {
    let names: &BTreeSet<String> = program.jq.names();
    let found = scope.value_for(names).map_err(|error| Outcome::new(OutcomeKind::Parse, error.to_string()))?;
    let Value::Object(found) = found else {
        return Ok((Value::Object(Map::new()), Vec::new()));
    };
    let vars = program.values(&found);
    Ok((Value::Object(found), vars))
}

/// Counts the items of an output that is declared with `stream`.
pub fn streamed_items(stage: &Stage, scope: &mut Scope) -> Option<u64> {
    let output = stage.outputs.iter().find(|output| output.stream.is_some())?;
    let stream = output.stream.as_ref()?;
    let select = Select::of_name(&output.name).then(stream).list();
    let mut count = 0;
    let counted = scope.select(&select, &mut |_| {
        count += 1;
        Ok(())
    });
    counted.ok().map(|()| count)
}
