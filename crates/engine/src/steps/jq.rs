//! The step `jq`: one value to JSON, strings to text, base64 to binary.

use super::values;
use super::work::{Said, StepResult, Work, input_failure, output_failure, parse_failure};
use milepost_core::expr::scope::Format;
use milepost_core::expr::select::Select;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::stage::Program;
use serde_json::Value;
use std::io::{self, Write};
use std::sync::Arc;

/// Records that are handed over at once.
const AHEAD: usize = 64;

/// Does the step.
///
/// # Errors
/// When an input cannot be read, the program fails, or what it gives does not suit the output's format.
pub(crate) fn jq(
    work: &mut Work<'_>,
    out: &str,
    program: &Program,
    stream: Option<&Select>,
) -> StepResult {
    let value = match stream {
        None => {
            let (input, vars) = values::scope_of(work, program)?;
            let jq = Arc::clone(&program.jq);
            // jq cannot be told to end, and it owns nothing but memory.
            let value = work.alarm.apart(move || jq.one(input, &vars))?;
            value.map_err(parse_failure)?
        }
        Some(select) => streamed(work, program, select)?,
    };
    write(work, out, &value)?;
    Ok(Said::default())
}

/// Runs a program whose records come by `inputs`. jq pulls and a file is read by pushing, so a thread reads ahead a little.
fn streamed(work: &mut Work<'_>, program: &Program, select: &Select) -> Result<Value, Outcome> {
    let name = select.first();
    // The whole scope would be in memory, with the records that are to come one at a time: only what is named is loaded.
    let input = work.scope.value_for(program.jq.mentions().dotted())?;
    let vars = work.scope.vars_of(&program.jq)?;
    let sources = work.scope.sources(name).ok_or_else(|| {
        input_failure(
            name,
            "`stream` reads input files or what an earlier step made",
        )
    })?;
    let rest = values::within(work, select)?;
    let bound = program.jq.bind(&vars).map_err(parse_failure)?;
    let (sender, receiver) = std::sync::mpsc::sync_channel::<Result<Vec<String>, String>>(4);
    let found = std::thread::scope(|threads| {
        threads.spawn(move || {
            for source in &sources {
                let mut texts = Vec::with_capacity(AHEAD);
                let send = |texts: &mut Vec<String>| {
                    let ready = std::mem::replace(texts, Vec::with_capacity(AHEAD));
                    sender.send(Ok(ready)).map_err(|_| "not wanted".to_owned())
                };
                let read = source
                    .open()
                    .map_err(|error| error.to_string())
                    .and_then(|file| {
                        rest.read_text(file, &mut |text, _| {
                            texts.push(text.to_owned());
                            if texts.len() < AHEAD {
                                return Ok(());
                            }
                            send(&mut texts)
                        })
                        .map_err(|error| error.to_string())
                    });
                let read = read.and_then(|_| send(&mut texts));
                if let Err(error) = read {
                    // The receiver may have stopped before the end: then nobody waits for this.
                    let _ = sender.send(Err(format!("{}: {error}", source.name())));
                    return;
                }
            }
        });
        let mut inputs = receiver.into_iter().flat_map(|texts| match texts {
            // Looked at once for each handful of records.
            Ok(texts) => match work.alarm.look() {
                Ok(()) => texts.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error.to_string())],
            },
            Err(error) => vec![Err(error)],
        });
        bound.stream_texts(input, &mut inputs)
    });
    let mut found = found.map_err(parse_failure)?;
    match found.len() {
        1 => Ok(found.remove(0)),
        n => Err(parse_failure(format!(
            "the program gave {n} values where one was expected"
        ))),
    }
}

/// Writes a value as an output or `out`: one value to JSON, strings to text, base64 to binary.
///
/// # Errors
/// When the value does not suit the output's format, or cannot be written.
pub(crate) fn write(work: &Work<'_>, out: &str, value: &Value) -> Result<(), Outcome> {
    let format = work
        .stage
        .output(out)
        .map_or(Format::Json, |output| output.format);
    let failed = |error: io::Error| output_failure(out, error);
    let bytes = match (format, value) {
        (Format::Json, value) => {
            let mut bytes = serde_json::to_vec_pretty(value).map_err(parse_failure)?;
            bytes.push(b'\n');
            bytes
        }
        (Format::Ndjson, Value::Array(values)) => values
            .iter()
            .flat_map(|value| format!("{value}\n").into_bytes())
            .collect(),
        (Format::Binary, Value::String(text)) => values::from_base64(text)
            .ok_or_else(|| parse_failure(format!("`{out}` is binary: base64 was expected")))?,
        (_, Value::String(text)) => text.clone().into_bytes(),
        (_, other) => {
            let shown: String = other.to_string().chars().take(80).collect();
            return Err(parse_failure(format!(
                "`{out}` is text: a string was expected, and not {shown}"
            )));
        }
    };
    let mut sink = work.outs.create(out, None).map_err(failed)?;
    sink.write_all(&bytes).map_err(failed)?;
    sink.finish().map_err(failed)
}
