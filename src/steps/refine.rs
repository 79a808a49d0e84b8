//! The rounds of `[refine]`: the steps in turn, again and again, until the result is what it shall be.

use super::attempt::{round, take};
use super::values;
use super::work::{Said, Told, Work, input_failure, output_failure, parse_failure};
use crate::model::event::Round;
use crate::model::outcome::{Outcome, OutcomeKind};
use crate::model::stage::{Program, Refine};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};

/// A round that may stand in the end.
struct Kept {
    number: u32,
    score: f64,
    /// What each output and `out` held; none: it was not there. Those that there are of each round lie there anyway.
    files: Vec<(String, Option<Vec<u8>>)>,
}

/// Does the rounds. Each sees its number as `iteration`, and what the one before made as `previous`.
///
/// # Errors
/// The outcome of a step that failed, or that no round was right.
pub fn rounds(work: &mut Work<'_>, refine: &Refine) -> Result<Said, Outcome> {
    let most = refine.max_iterations.number(&work.base);
    let most = u32::try_from(most.map_err(parse_failure)?.max(1)).unwrap_or(u32::MAX);
    let mut said = Said::default();
    let mut told: Vec<String> = Vec::new();
    let mut best: Option<Kept> = None;
    work.scope.absent("previous");
    for number in 1..=most {
        if let Some(how) = told.last() {
            work.watcher.told(Told::Revises(number, how));
        }
        begin(work, number);
        said.add(round(work, number)?);
        if is_right(work, &refine.until)? {
            tell(work, number, "right");
            // It stands whatever its score.
            let score = score(work, refine.score.as_ref()).unwrap_or_default();
            judged(work, number, true, score);
            return Ok(said);
        }
        let score = score(work, refine.score.as_ref())?;
        judged(work, number, false, score);
        let how = score.map_or_else(
            || "not right".to_owned(),
            |score| format!("not right, score {score}"),
        );
        tell(work, number, &how);
        told.push(format!("round {number}: {how}"));
        if let Some(score) = score.filter(|_| refine.best)
            && best.as_ref().is_none_or(|best| score > best.score)
        {
            let files = files(work)?;
            best = Some(Kept {
                number,
                score,
                files,
            });
        }
        if number < most {
            let previous = previous(work);
            work.scope.insert_value("previous", previous);
        }
    }
    let Some(best) = best else {
        let until = refine.until.source.trim();
        let rounds = if most == 1 {
            "the only round".to_owned()
        } else {
            format!("{most} rounds")
        };
        let message = format!("after {rounds} `{until}` is not true");
        return Err(Outcome::new(OutcomeKind::Refine, message).with_details(told));
    };
    said.warnings.push(format!(
        "no round of {most} was right: round {} stands, with the score {}",
        best.number, best.score
    ));
    restore(work, best)?;
    Ok(said)
}

fn begin(work: &mut Work<'_>, number: u32) {
    work.outs.round(number);
    work.scope.insert_value("iteration", number.into());
}

/// Says in the attempt's log how a round was.
fn tell(work: &mut Work<'_>, number: u32, how: &str) {
    // A log that cannot be written ends no work.
    let _ = writeln!(work.log, "round {number}: {how}");
}

/// Tells how a round was, with what the stage's `summary` says of it, should it say anything at this point.
fn judged(work: &Work<'_>, round: u32, right: bool, score: Option<f64>) {
    let summary = work.stage.summary.as_ref();
    let summary = summary.and_then(|program| value(work, program).ok());
    work.watcher.told(Told::Judged(Round {
        round,
        right,
        score,
        summary,
    }));
}

fn is_right(work: &Work<'_>, until: &Program) -> Result<bool, Outcome> {
    match value(work, until)? {
        Value::Bool(yes) => Ok(yes),
        other => Err(parse_failure(format!(
            "`until` gave {other}: true or false was expected"
        ))),
    }
}

fn score(work: &Work<'_>, program: Option<&Program>) -> Result<Option<f64>, Outcome> {
    let Some(program) = program else {
        return Ok(None);
    };
    match value(work, program)? {
        Value::Number(score) => Ok(score.as_f64()),
        Value::Null => Ok(None),
        other => Err(parse_failure(format!(
            "`score` gave {other}: a number was expected"
        ))),
    }
}

fn value(work: &Work<'_>, program: &Program) -> Result<Value, Outcome> {
    let (input, vars) = values::scope_of(work, program)?;
    program.jq.one(input, &vars).map_err(parse_failure)
}

/// Every output and `out`, each once.
fn made_names(work: &Work<'_>) -> BTreeSet<String> {
    let outputs = work.stage.outputs.iter().map(|output| &output.name);
    let outs = work.stage.steps.iter().map(|step| &step.out);
    outputs.chain(outs).cloned().collect()
}

/// What the round made, as values: its files are written over by the next one.
fn previous(work: &Work<'_>) -> Value {
    let mut previous = Map::new();
    for name in made_names(work) {
        // What is no text or data has no value.
        let value = work.scope.value(&name).unwrap_or_default();
        previous.insert(name, value);
    }
    Value::Object(previous)
}

/// What the files of the round hold that the next one writes over.
fn files(work: &Work<'_>) -> Result<Vec<(String, Option<Vec<u8>>)>, Outcome> {
    let mut files = Vec::new();
    for name in made_names(work) {
        let bytes = match work.scope.source(&name) {
            None => None,
            Some(source) => {
                let mut bytes = Vec::new();
                let read = source
                    .open()
                    .and_then(|mut file| file.read_to_end(&mut bytes));
                read.map_err(|error| input_failure(&source.name(), error))?;
                Some(bytes)
            }
        };
        files.push((name, bytes));
    }
    Ok(files)
}

/// Makes a round's files what the attempt made.
fn restore(work: &mut Work<'_>, kept: Kept) -> Result<(), Outcome> {
    begin(work, kept.number);
    for (name, bytes) in kept.files {
        let output = work.stage.output(&name);
        if output.is_none_or(|output| !output.per_round) {
            let failed = |error| output_failure(&name, error);
            work.outs.clear(&name).map_err(failed)?;
            if let Some(bytes) = bytes {
                let mut sink = work.outs.create(&name, None).map_err(failed)?;
                sink.write_all(&bytes).map_err(failed)?;
                sink.finish().map_err(failed)?;
            }
        }
        take(work, &name)?;
    }
    Ok(())
}
