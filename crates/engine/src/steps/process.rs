//! The step `command`: starts a program with the batch's files by absolute path.

use super::batch_context::{
    BatchContext, StepReport, StepResult, cancelled, input_failure, output_failure, parse_failure,
};
use super::command::{CommandSpec, Exit, StartedProcess, prerequisites, run_command};
use super::values;
use milepost_core::expr::mentions::Mentions;
use milepost_core::expr::shell::{HELP, Misplaced, invocation, script, script_of};
use milepost_core::expr::template::text;
use milepost_core::expr::template::{RenderedPart, TemplateError};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::step::{CommandStep, PROGRAM_TIMEOUT, Text};
use milepost_store::store::read;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most bytes of a program's output that a failure shows.
const SHOWN: usize = 2000;

/// The exit code of a shell one of whose programs wrote to a pipe that its reader had closed: 128 + SIGPIPE.
const CLOSED_PIPE: i32 = 128 + 13;

/// The exit code of a shell that does not find a program (POSIX, Shell Command Language 2.8.2).
const NOT_FOUND: i32 = 127;

/// Runs the step.
///
/// # Errors
/// When the program cannot be started, fails, takes too long, or the run is stopped.
pub(crate) fn command(
    ctx: &mut BatchContext<'_>,
    step: &CommandStep,
    timeout: Duration,
) -> StepResult {
    let program = planned(ctx, step)?;
    let mut environment: BTreeMap<String, String> = ctx.environment.clone();
    for name in &step.env {
        if let Some(value) = ctx.declared_env.get(name) {
            environment.insert(name.clone(), value.clone());
        }
    }
    let environment: Vec<(String, String)> = environment.into_iter().collect();
    let stdin = match &step.stdin {
        Some(name) => {
            let source = ctx
                .scope
                .source(name)
                .ok_or_else(|| input_failure(name, "no file for standard input"))?;
            Some(source.path().to_owned())
        }
        None => None,
    };
    let mut kept = TailLog {
        inner: ctx.log,
        tail: Vec::new(),
    };
    let observer = ctx.observer;
    let exit = run_command(
        CommandSpec {
            program_and_args: &program,
            cwd: ctx.folder,
            env: &environment,
            stdin: stdin.as_deref(),
            timeout,
            grace: ctx.limits.grace,
            token: ctx.token,
            may_leave: false,
            log: &mut kept,
            errors: None,
            log_cap: ctx.limits.log_cap,
            live: &|bytes| observer.printed(bytes),
        },
        ctx.stop,
        &mut |child: &StartedProcess| observer.started(child, &program),
    );
    observer.printed_all();
    let details = without_folder(kept.lines(), ctx.folder);
    // The message leaves out the arguments: they contain paths of this attempt and would differ each time.
    let name = program.first().map_or("", String::as_str);
    let failure = match exit {
        Ok(Exit::Code(0)) => {
            return Ok(StepReport {
                read: read_files(ctx, step)?,
                ..StepReport::default()
            });
        }
        // The program will still be missing at a retry.
        Ok(Exit::Code(NOT_FOUND)) => Outcome::new(
            OutcomeKind::Exit,
            format!("`{name}` ended with exit code {NOT_FOUND}: a program was not found"),
        )
        .for_good(),
        Ok(Exit::Code(code)) => {
            let why = if step.shell && code == CLOSED_PIPE {
                ": the reader of a pipe ended before its writer; if that is meant, begin the command with `set +o pipefail`"
            } else {
                ""
            };
            let text = format!("`{name}` ended with exit code {code}{why}");
            Outcome::new(OutcomeKind::Exit, text)
        }
        Ok(Exit::Signal(signal)) => Outcome::new(
            OutcomeKind::Exit,
            format!("`{name}` was ended by signal {signal}"),
        ),
        Ok(Exit::TimedOut) => Outcome::new(
            OutcomeKind::Timeout,
            took_longer(name, timeout, PROGRAM_TIMEOUT),
        ),
        Ok(Exit::Cancelled) => cancelled(),
        Err(error) => {
            let outcome = Outcome::new(OutcomeKind::Exit, error.to_string());
            if error.is_missing() {
                outcome.for_good()
            } else {
                outcome
            }
        }
    };
    Err(failure.with_details(details))
}

/// Returns the files that the program listed in its depfile.
///
/// # Errors
/// When the depfile cannot be read.
fn read_files(ctx: &mut BatchContext<'_>, step: &CommandStep) -> Result<Vec<PathBuf>, Outcome> {
    let Some(depfile) = &step.depfile else {
        return Ok(Vec::new());
    };
    let scope = scope(ctx, std::slice::from_ref(depfile))?;
    let path = depfile.template.render(&scope).map_err(parse_failure)?;
    let path = ctx.folder.join(path);
    let text = read::text(&path).map_err(|error| {
        let shown = path.strip_prefix(ctx.folder).unwrap_or(&path).display();
        Outcome::new(OutcomeKind::Output, format!("depfile `{shown}`: {error}"))
    })?;
    let names = prerequisites(&text).into_iter();
    Ok(names.map(|name| ctx.folder.join(name)).collect())
}

/// Returns program and arguments as the step would start them, with the files of lists where `OutputDir` has them.
///
/// # Errors
/// When a name is missing, or a value is in a place where it cannot be quoted.
pub(crate) fn planned(
    ctx: &mut BatchContext<'_>,
    step: &CommandStep,
) -> Result<Vec<String>, Outcome> {
    let arguments = step.arguments.as_slice();
    let scope = scope(ctx, arguments)?;
    let outs = ctx.outputs;
    let mut write = |name: &str, bytes: &[u8]| outs.write_helper(name, bytes);
    program(arguments, step.shell, &scope, ctx.project, &mut write)
}

/// Returns the message of a step that timed out. `default` is the limit of a step without `timeout`.
pub(crate) fn took_longer(step: &str, timeout: Duration, default: Duration) -> String {
    let time = milepost_core::base::duration::show_duration(timeout);
    let which = if timeout == default {
        ", the default limit"
    } else {
        ""
    };
    format!("`{step}` took longer than {time}{which}: set `timeout` in the step to give it more")
}

/// Returns printed lines with paths in the scratch folder made relative.
fn without_folder(lines: Vec<String>, folder: &Path) -> Vec<String> {
    let folder = format!("{}/", folder.display());
    lines
        .into_iter()
        .map(|line| line.replace(&folder, ""))
        .collect()
}

/// Writes a file for a program, and returns its path.
pub(crate) type WriteFile<'a> = dyn FnMut(&str, &[u8]) -> std::io::Result<PathBuf> + 'a;

/// Renders a program and its arguments. `project:PATH` becomes the absolute path of a project file. In a shell script each value
/// becomes a quoted word. `write` writes the files of `as_file`.
///
/// # Errors
/// When a name is missing, a path leaves the project, or a value is in a place where it cannot be quoted.
pub(crate) fn program(
    arguments: &[Text],
    shell: bool,
    scope: &Value,
    project: &Path,
    write: &mut WriteFile<'_>,
) -> Result<Vec<String>, Outcome> {
    let mut files = ListFiles { count: 0, write };
    if let (true, [argument]) = (shell, arguments) {
        let script = shell_script(argument, scope, &mut files)?;
        return Ok(invocation(&argument.source, script));
    }
    let is_script = script_of(arguments.iter().map(|argument| argument.source.as_str()));
    let mut program = Vec::new();
    for (at, argument) in arguments.iter().enumerate() {
        // A script that is a single value runs unquoted.
        if is_script == Some(at) && !argument.template.is_single() {
            program.push(shell_script(argument, scope, &mut files)?);
            continue;
        }
        for word in words(argument, scope, &mut files)? {
            program.push(match argument.project_file(&word) {
                Some(Ok((before, None))) => format!("{before}{}", project.display()),
                Some(Ok((before, Some(file)))) => {
                    format!("{before}{}", project.join(file.path.as_str()).display())
                }
                Some(Err(error)) => {
                    let why = format!("`{word}`: {error}");
                    return Err(Outcome::new(OutcomeKind::Path, why));
                }
                None => word,
            });
        }
    }
    Ok(program)
}

struct ListFiles<'a, 'b> {
    count: u32,
    write: &'a mut WriteFile<'b>,
}

impl ListFiles<'_, '_> {
    /// Writes the names of a part, and returns the path of the file.
    fn of(&mut self, part: &RenderedPart) -> Result<String, Outcome> {
        let RenderedPart::File { names, nul } = part else {
            return Ok(String::new());
        };
        self.count += 1;
        let end = if *nul { "\0" } else { "\n" };
        let lines = names.iter().flat_map(|name| [name.as_str(), end]);
        let content: String = lines.collect();
        let name = format!(".list_{}.txt", self.count);
        match (self.write)(&name, content.as_bytes()) {
            Ok(path) => Ok(path.display().to_string()),
            Err(error) => Err(input_failure("as_file", error)),
        }
    }
}

/// A value that is misplaced in a script.
struct MisplacedValue(Outcome);

impl From<Misplaced> for MisplacedValue {
    fn from(wrong: Misplaced) -> Self {
        Self(parse_failure(format!(
            "`command`: {} ({HELP})",
            wrong.message
        )))
    }
}

fn shell_script(
    argument: &Text,
    scope: &Value,
    files: &mut ListFiles<'_, '_>,
) -> Result<String, Outcome> {
    let parts = argument
        .template
        .render_parts(scope)
        .map_err(parse_failure)?;
    script(&parts, &mut |part| files.of(part).map_err(MisplacedValue))
        .map_err(|MisplacedValue(outcome)| outcome)
}

/// Returns the words of one argument: one for each value of a list, none for null, otherwise one.
fn words(
    argument: &Text,
    scope: &Value,
    files: &mut ListFiles<'_, '_>,
) -> Result<Vec<String>, Outcome> {
    let template = &argument.template;
    let failed = |error: TemplateError| parse_failure(error);
    if template.has_files() {
        let mut word = String::new();
        for part in template.render_parts(scope).map_err(failed)? {
            match part {
                RenderedPart::Text(text) => word.push_str(&text),
                RenderedPart::Value(value) => word.push_str(&text(&value)),
                RenderedPart::File { .. } => word.push_str(&files.of(&part)?),
            }
        }
        return Ok(vec![word]);
    }
    Ok(match template.render_value(scope).map_err(failed)? {
        Value::Array(values) => values.iter().map(text).collect(),
        Value::Null => Vec::new(),
        value => vec![text(&value)],
    })
}

/// Returns the scope of arguments, in which `paths` and the `path` of items are absolute.
fn scope(ctx: &mut BatchContext<'_>, arguments: &[Text]) -> Result<Value, Outcome> {
    let mut mentions = Mentions::default();
    for argument in arguments {
        mentions.extend(argument.template.mentions());
    }
    let wants_paths = mentions.has("paths");
    let mut scope = values::named(ctx, mentions.dotted())?;
    for each in &ctx.stage.each {
        let file = format!("{}.data", each.name);
        if let (Some(source), Some(Value::Object(item))) =
            (ctx.scope.source(&file), scope.get_mut(&each.name))
        {
            item.insert(
                "path".into(),
                Value::from(source.path().display().to_string()),
            );
        }
    }
    if wants_paths {
        let mut paths = Map::new();
        for output in &ctx.stage.outputs {
            let place = ctx
                .outputs
                .program_path(&output.name)
                .map_err(|error| output_failure(&output.name, error))?;
            paths.insert(
                output.name.clone(),
                Value::from(place.display().to_string()),
            );
        }
        for name in ctx
            .stage
            .inputs
            .iter()
            .map(|input| &input.name)
            .chain(ctx.stage.steps.iter().map(|step| &step.out))
        {
            if let Some(sources) = ctx.scope.sources(name) {
                let shown = |place: &std::path::Path| Value::from(place.display().to_string());
                let value = if ctx.scope.is_list(name) {
                    Value::Array(sources.iter().map(|source| shown(source.path())).collect())
                } else {
                    sources
                        .first()
                        .map_or(Value::Null, |source| shown(source.path()))
                };
                paths.insert(name.clone(), value);
            }
        }
        for step in &ctx.stage.steps {
            if !paths.contains_key(&step.out) {
                let place = ctx
                    .outputs
                    .program_path(&step.out)
                    .map_err(|error| output_failure(&step.out, error))?;
                paths.insert(step.out.clone(), Value::from(place.display().to_string()));
            }
        }
        scope.insert("paths".into(), Value::Object(paths));
    }
    Ok(Value::Object(scope))
}

/// A log that also keeps the last bytes, which a failure shows.
struct TailLog<'a> {
    inner: &'a mut (dyn std::io::Write + Send),
    tail: Vec<u8>,
}

impl std::io::Write for TailLog<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.tail.extend_from_slice(&bytes[..n]);
        if self.tail.len() > 2 * SHOWN {
            let cut = self.tail.len() - SHOWN;
            self.tail.drain(..cut);
        }
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

impl TailLog<'_> {
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.tail);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..]
            .iter()
            .map(|line| (*line).to_owned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_was_not_declared_is_called_the_default() {
        assert_eq!(
            took_longer("sh", PROGRAM_TIMEOUT, PROGRAM_TIMEOUT),
            "`sh` took longer than 10 min, the default limit: set `timeout` in the step to give it more"
        );
        assert_eq!(
            took_longer("sh", Duration::from_mins(2), PROGRAM_TIMEOUT),
            "`sh` took longer than 2 min: set `timeout` in the step to give it more"
        );
    }
}
