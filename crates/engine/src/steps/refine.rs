//! The rounds of `[refine]`: the steps in turn, again and again, until the result is what it shall be.

use super::iteration::{round, take};
use super::values;
use super::work::{Said, Told, Work, input_failure, output_failure, parse_failure};
use milepost_core::base::digest::Digest;
use milepost_core::model::event::Round;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::{Program, Refine};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};

/// A round that may stand in the end.
struct Best {
    number: u32,
    score: f64,
    /// What each output and `out` held; none: it was not there. Those that there are of each round lie there anyway.
    files: Vec<(String, Option<Vec<u8>>)>,
}

/// What is to be known of a finished round by who goes on after it.
#[derive(Serialize, Deserialize)]
struct Note {
    number: u32,
    how: String,
    score: Option<f64>,
    said: Said,
    /// Of outputs that there are of each round: which round's file the name stands for; none: it is null.
    stands: BTreeMap<String, Option<u32>>,
    /// Of every output and `out` the digest, where the best round may stand in the end.
    files: Vec<(String, Option<Digest>)>,
}

/// What is known after some rounds.
#[derive(Default)]
struct Done {
    said: Said,
    told: Vec<String>,
    best: Option<Best>,
    /// The round with the highest score, and that score.
    highest: Option<(u32, f64)>,
}

/// Does the rounds. Each sees its number as `iteration`, and what the one before made as `previous`. Those that an earlier run
/// finished are not done again.
///
/// # Errors
/// The outcome of a step that failed, or that no round was right.
pub(crate) fn rounds(work: &mut Work<'_>, refine: &Refine) -> Result<Said, Outcome> {
    let most = refine.max_iterations.number(&work.base);
    let most = u32::try_from(most.map_err(parse_failure)?.max(1)).unwrap_or(u32::MAX);
    let mut done = Done::default();
    work.scope.absent("previous");
    let finished = resume(work, refine, &mut done)?;
    for number in finished + 1..=most {
        if let Some(how) = done.told.last() {
            work.watcher.told(Told::Revises(number, how));
        }
        begin(work, number);
        let said = round(work, number)?;
        if is_right(work, &refine.until)? {
            tell(work, number, "right");
            // It stands whatever its score.
            let score = score(work, refine.score.as_ref()).unwrap_or_default();
            judged(work, number, true, score);
            done.said.add(said);
            work.rounds.over();
            return Ok(done.said);
        }
        let score = score(work, refine.score.as_ref())?;
        judged(work, number, false, score);
        let how = score.map_or_else(
            || "not right".to_owned(),
            |score| format!("not right, score {score}"),
        );
        tell(work, number, &how);
        let held = if refine.best {
            files(work)?
        } else {
            Vec::new()
        };
        let digests = held.iter().map(|(name, bytes)| {
            let digest = bytes.as_ref().map(Digest::of);
            (name.clone(), digest)
        });
        let note = Note {
            number,
            how,
            score,
            said,
            files: digests.collect(),
            stands: stands(work, number)?,
        };
        if number < most {
            let note = serde_json::to_value(&note).map_err(parse_failure)?;
            work.rounds.keep(number, note)?;
            go_on(work);
        }
        done.take(note, refine, || Ok(held))?;
    }
    work.rounds.over();
    let Done {
        mut said,
        told,
        best,
        highest,
    } = done;
    let Some(best) = best else {
        let message = message(work, refine, most, highest);
        return Err(Outcome::new(OutcomeKind::Refine, message).with_details(told));
    };
    said.warnings.push(format!(
        "no round of {most} was right: round {} stands, with the score {}",
        best.number, best.score
    ));
    restore(work, best)?;
    Ok(said)
}

impl Done {
    /// Takes in a round that was not right.
    fn take(
        &mut self,
        note: Note,
        refine: &Refine,
        files: impl FnOnce() -> Result<Vec<(String, Option<Vec<u8>>)>, Outcome>,
    ) -> Result<(), Outcome> {
        let Note { number, how, .. } = note;
        self.said.add(note.said);
        self.told.push(format!("round {number}: {how}"));
        if let Some(score) = note.score
            && self.highest.is_none_or(|(_, highest)| score > highest)
        {
            self.highest = Some((number, score));
        }
        if let Some(score) = note.score.filter(|_| refine.best)
            && self.best.as_ref().is_none_or(|best| score > best.score)
        {
            let files = files()?;
            self.best = Some(Best {
                number,
                score,
                files,
            });
        }
        Ok(())
    }
}

/// Returns what to say of a loop in which no round was right.
fn message(work: &mut Work<'_>, refine: &Refine, most: u32, highest: Option<(u32, f64)>) -> String {
    let until = refine.until.source.trim();
    let rounds = if most == 1 {
        "the only round".to_owned()
    } else {
        format!("{most} rounds")
    };
    let plain = format!("after {rounds} `{until}` is not true");
    let Some(template) = &refine.message else {
        return plain;
    };
    let (iteration, score) = highest.unzip();
    // A score that is whole is shown without a point, as the program gave it.
    let score = score.map(|score| format!("{score}").parse::<Number>().ok());
    let best = json!({ "iteration": iteration, "score": score });
    work.scope.insert_value("best", best);
    let values = work.scope.context_of(template).ok();
    let rendered = values.and_then(|values| template.render(&values).ok());
    rendered.unwrap_or(plain)
}

/// Goes on after the rounds that an earlier run finished: names stand for what they stood for. Gives the number of the last.
fn resume(work: &mut Work<'_>, refine: &Refine, done: &mut Done) -> Result<u32, Outcome> {
    let mut last = None;
    for note in work.rounds.resume()? {
        let note: Note = serde_json::from_value(note).map_err(parse_failure)?;
        tell(
            work,
            note.number,
            &format!("{}, by an earlier run", note.how),
        );
        let kept = note.files.clone();
        let rounds = work.rounds;
        last = Some((note.number, note.stands.clone()));
        done.take(note, refine, || {
            let read = |(name, digest): (String, Option<Digest>)| {
                let bytes = digest.map(|digest| rounds.content(digest)).transpose();
                Ok((name, bytes?))
            };
            kept.into_iter().map(read).collect()
        })?;
    }
    let Some((number, stands)) = last else {
        return Ok(0);
    };
    for name in made_names(work) {
        match stands.get(&name) {
            Some(None) => work.scope.absent(&name),
            Some(Some(round)) => {
                work.outs.round(*round);
                take(work, &name)?;
            }
            None => take(work, &name)?,
        }
    }
    begin(work, number);
    go_on(work);
    Ok(number)
}

/// What the round made is what the next one sees as `previous`.
fn go_on(work: &mut Work<'_>) {
    let previous = previous(work);
    work.scope.insert_value("previous", previous);
}

/// Of outputs that there are of each round: of which round up to this one the file is that the name stands for. A step that was
/// skipped leaves that of an earlier one.
fn stands(work: &Work<'_>, number: u32) -> Result<BTreeMap<String, Option<u32>>, Outcome> {
    let mut stands = BTreeMap::new();
    for output in work.stage.outputs.iter().filter(|output| output.per_round) {
        let name = &output.name;
        let shown = work.scope.source(name).map(|source| source.name());
        let mut found = None;
        for round in (1..=number).rev().filter(|_| shown.is_some()) {
            work.outs.round(round);
            let made = work.outs.made(name);
            let made = made.map_err(|error| output_failure(name, error))?;
            if made.first().map(|file| file.name()) == shown {
                found = Some(round);
                break;
            }
        }
        stands.insert(name.clone(), found);
    }
    work.outs.round(number);
    Ok(stands)
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
fn restore(work: &mut Work<'_>, kept: Best) -> Result<(), Outcome> {
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
