//! The engine `pdftotext` of Poppler, if it is installed.

use crate::steps::batch_context::{BatchContext, cancelled};
use crate::steps::command::{CommandSpec, Exit, StartedProcess, run_command};
use crate::steps::worker::{self, PDF_MEMORY};
use milepost_core::model::outcome::Outcome;
use milepost_formats::pdf_text::{PdfText, PdfTextError, from_pdftotext};
use std::path::Path;
use std::time::Duration;

/// The most text, in bytes.
const MOST: u64 = 1 << 30;

const PROGRAM: &str = "pdftotext";

/// Returns the version of the program.
///
/// # Errors
/// When the program is not installed, or the run is stopped.
pub(crate) fn version(ctx: &mut BatchContext<'_>) -> Result<Result<String, PdfTextError>, Outcome> {
    let (exit, said) = match run(ctx, &["-v"], Duration::from_secs(10))? {
        Ok(ran) => ran,
        Err(fault) => return Ok(Err(fault)),
    };
    let first = said.lines().next().unwrap_or_default();
    Ok(match exit {
        // Older versions end with 99.
        Exit::Code(0 | 99) => Ok(first.to_owned()),
        _ => Err(PdfTextError::Program(format!(
            "`{PROGRAM} -v` failed: {first}"
        ))),
    })
}

/// Reads a PDF.
///
/// # Errors
/// The outer error if the run is stopped; the inner one if the program is not installed or fails.
pub(crate) fn read(
    ctx: &mut BatchContext<'_>,
    file: &Path,
    time: Duration,
) -> Result<Result<PdfText, PdfTextError>, Outcome> {
    let file = file.display().to_string();
    // `-raw` keeps the order of the file and so separates columns; `-q` prints only text, because both streams share a pipe.
    let arguments = ["-raw", "-enc", "UTF-8", "-eol", "unix", "-q", &file, "-"];
    let (exit, text) = match run(ctx, &arguments, time)? {
        Ok(ran) => ran,
        Err(fault) => return Ok(Err(fault)),
    };
    let program = |message: String| Err(PdfTextError::Program(message));
    Ok(match exit {
        Exit::Code(0) => Ok(from_pdftotext(&text)),
        Exit::Code(1) => Err(PdfTextError::Damaged(format!(
            "{PROGRAM} could not open it"
        ))),
        Exit::Code(3) => program("does not allow copying its text".to_owned()),
        Exit::Code(code) => program(format!("`{PROGRAM}` ended with exit code {code}")),
        Exit::Signal(signal) => program(format!("`{PROGRAM}` was ended by signal {signal}")),
        Exit::TimedOut => program(format!("`{PROGRAM}` took too long")),
        Exit::Cancelled => return Err(cancelled()),
    })
}

fn run(
    ctx: &mut BatchContext<'_>,
    arguments: &[&str],
    timeout: Duration,
) -> Result<Result<(Exit, String), PdfTextError>, Outcome> {
    let mut program = vec![PROGRAM.to_owned()];
    program.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    let environment = ctx.environment.clone();
    let environment: Vec<(String, String)> = environment.into_iter().collect();
    let mut said = Vec::new();
    let memory = worker::memory_of(ctx.stage, PDF_MEMORY);
    let observer = ctx.observer;
    let exit = run_command(
        CommandSpec {
            program_and_args: &program,
            cwd: ctx.project,
            env: &environment,
            stdin: None,
            timeout,
            grace: ctx.limits.grace,
            token: ctx.token,
            may_leave: false,
            log: &mut said,
            errors: None,
            log_cap: MOST,
            live: &|_| (),
        },
        ctx.stop,
        &mut |child: &StartedProcess| {
            observer.started(child, &program);
            worker::limit_memory(child.pid, memory);
        },
    );
    Ok(match exit {
        Ok(Exit::Cancelled) => {
            return Err(cancelled());
        }
        Ok(exit) => Ok((exit, String::from_utf8_lossy(&said).into_owned())),
        Err(error) => Err(PdfTextError::Program(error.to_string())),
    })
}
