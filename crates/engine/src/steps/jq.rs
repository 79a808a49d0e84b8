//! The step `jq`: one value to JSON, strings to text, base64 to binary.

use super::batch_context::{
    BatchContext, StepReport, StepResult, input_failure, output_failure, parse_failure,
};
use super::values;
use super::worker::{self, JqValues, RecordFile, Work};
use milepost_core::base::source::Source;
use milepost_core::expr::scope::Format;
use milepost_core::expr::select::Select;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::stage::Program;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::io::{self, Write};

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
        None => ctx.jq.one(program, &ctx.scope)?,
        Some(select) => streamed(ctx, program, select)?,
    };
    write(ctx, out, &value)?;
    Ok(StepReport::default())
}

/// Runs a program that reads records with `inputs`.
fn streamed(
    ctx: &mut BatchContext<'_>,
    program: &Program,
    select: &Select,
) -> Result<Value, Outcome> {
    let name = select.first();
    // Only mentioned names are loaded: the whole scope would load the streamed records too.
    let input = ctx.scope.value_for(program.jq.mentions().dotted())?;
    let vars = ctx.scope.vars_of(&program.jq)?;
    let vars: Vec<String> = vars.iter().map(Value::to_string).collect();
    let sources = ctx.scope.sources(name).ok_or_else(|| {
        input_failure(
            name,
            "`stream` reads input files or the `out` of an earlier step",
        )
    })?;
    let files = sources.iter().map(|source| file(&**source));
    let work = Work::JqStream {
        program: JqValues::new(&program.jq, &vars).map_err(parse_failure)?,
        input: to_raw_value(&input).map_err(parse_failure)?,
        records: values::within(ctx, select)?.to_string(),
        files: files.collect::<Result<_, _>>()?,
    };
    let found: Vec<Box<RawValue>> = worker::run(ctx, work, "", &mut io::sink())?;
    match found.as_slice() {
        [one] => serde_json::from_str(one.get()).map_err(parse_failure),
        many => Err(parse_failure(format!(
            "expected one value, found {}",
            many.len()
        ))),
    }
}

fn file(source: &dyn Source) -> Result<RecordFile, Outcome> {
    let is_in_memory = source.path().as_os_str().is_empty();
    let content = is_in_memory.then(|| source.open().and_then(io::read_to_string));
    Ok(RecordFile {
        name: source.name(),
        path: source.path().into(),
        content: content
            .transpose()
            .map_err(|error| input_failure(&source.name(), error))?,
    })
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
