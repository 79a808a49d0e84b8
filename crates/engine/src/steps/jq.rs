//! The step `jq`: one value to JSON, strings to text, base64 to binary.

use super::batch_context::{
    BatchContext, StepReport, StepResult, input_failure, output_failure, parse_failure,
};
use super::{values, worker};
use milepost_core::expr::scope::Format;
use milepost_core::expr::select::Select;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::stage::Program;
use serde_json::Value;
use std::io::{self, Write};

/// How many records are handed over at once.
const AHEAD: usize = 64;

/// Runs the step.
///
/// # Errors
/// When an input cannot be read, the program fails, or its result does not suit the format of the output.
pub(crate) fn jq(
    ctx: &mut BatchContext<'_>,
    out: &str,
    program: &Program,
    stream: Option<&Select>,
) -> StepResult {
    let value = match stream {
        None => {
            let (input, vars) = values::scope_of(ctx, program)?;
            worker::jq::one(program, input, vars, ctx.stage.policy.memory, ctx.cancel)?
        }
        Some(select) => streamed(ctx, program, select)?,
    };
    write(ctx, out, &value)?;
    Ok(StepReport::default())
}

/// Runs a program that reads records with `inputs`. jq pulls records and the reader pushes them, so a thread reads ahead.
fn streamed(
    ctx: &mut BatchContext<'_>,
    program: &Program,
    select: &Select,
) -> Result<Value, Outcome> {
    let name = select.first();
    // Only mentioned names are loaded: the whole scope would load the streamed records too.
    let input = ctx.scope.value_for(program.jq.mentions().dotted())?;
    let vars = ctx.scope.vars_of(&program.jq)?;
    let sources = ctx.scope.sources(name).ok_or_else(|| {
        input_failure(
            name,
            "`stream` reads input files or what an earlier step made",
        )
    })?;
    let rest = values::within(ctx, select)?;
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
                    // The receiver may be gone already.
                    let _ = sender.send(Err(format!("{}: {error}", source.name())));
                    return;
                }
            }
        });
        let mut inputs = receiver.into_iter().flat_map(|texts| match texts {
            // Checked once for each chunk.
            Ok(texts) => match ctx.cancel.check() {
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
        n => Err(parse_failure(format!("expected one value, found {n}"))),
    }
}

/// Writes a value as an output or `out`: one value to JSON, strings to text, base64 to binary.
///
/// # Errors
/// When the value does not suit the output's format, or cannot be written.
pub(crate) fn write(ctx: &BatchContext<'_>, out: &str, value: &Value) -> Result<(), Outcome> {
    let format = ctx
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
            .ok_or_else(|| parse_failure(format!("`{out}` is binary: expected base64")))?,
        (_, Value::String(text)) => text.clone().into_bytes(),
        (_, other) => {
            let shown: String = other.to_string().chars().take(80).collect();
            return Err(parse_failure(format!(
                "`{out}` is text: expected a string, found {shown}"
            )));
        }
    };
    let mut sink = ctx.outputs.create(out, None).map_err(failed)?;
    sink.write_all(&bytes).map_err(failed)?;
    sink.finish().map_err(failed)
}
