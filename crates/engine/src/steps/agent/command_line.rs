//! A request to a command line: its files, its process and its answer.

use super::call_context::{CallContext, CallError};
use super::handle::AgentHandle;
use crate::steps::batch_context::output_failure;
use crate::steps::cancel::StopAfterGrace;
use crate::steps::command::{CommandSpec, Exit, run_command};
use milepost_agents::cli::{CommandExit, CommandOutput, Tool};
use milepost_agents::fault::{CallFault, FaultKind};
use milepost_agents::request::{AgentRequest, Reply};
use milepost_store::store::read;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Runs a command line. Its standard output is the answer; its standard error goes to the log. `place` ends the names of its own
/// files, so that calls that run at once have different ones.
pub(crate) fn run(
    ctx: &CallContext<'_>,
    tool: &Tool,
    request: &AgentRequest,
    handle: &AgentHandle,
    place: &str,
    within: Duration,
) -> Result<Result<Reply, CallFault>, CallError> {
    let invocation = match tool.invocation(request, handle.agent.limits.max_usd_per_call) {
        Ok(invocation) => invocation,
        Err(fault) => return Ok(Err(fault)),
    };
    // The step is not retried: a retry would make more calls than a plan counts.
    let failed = |error| CallError::Failed(output_failure("the request", error).for_good());
    let written = |name: &str, bytes: &[u8]| {
        let written = ctx.write_own(&format!("{name}{place}"), bytes);
        written.map_err(failed)
    };
    let stdin = written(".request", &invocation.stdin)?;
    for (name, bytes) in &invocation.files {
        ctx.write_shared(name, bytes).map_err(failed)?;
    }
    for file in &request.attachments {
        ctx.write_shared(&file.name, &file.bytes).map_err(failed)?;
    }
    let answer = written(".answer", b"")?;
    let program: Vec<String> = ["sh", "-c", "exec \"$@\" > \"$MILEPOST_ANSWER\"", "sh"]
        .into_iter()
        .map(str::to_owned)
        .chain(invocation.argv.iter().cloned())
        .collect();
    let mut environment: BTreeMap<String, String> = invocation.env.into_iter().collect();
    environment.extend(ctx.environment.clone());
    environment.insert("MILEPOST_ANSWER".to_owned(), answer.display().to_string());
    let environment: Vec<(String, String)> = environment.into_iter().collect();
    // By its token a command finds what it leaves running, and nothing of a call beside it.
    let token = format!("{}{}", ctx.token, place.replace('_', "#"));
    let mut complaints = Vec::new();
    let observer = ctx.observer;
    // Lines of programs that run at once are not mixed.
    let is_alone = ctx.is_alone();
    let exit = run_command(
        CommandSpec {
            program_and_args: &program,
            cwd: ctx.folder,
            env: &environment,
            stdin: Some(&stdin),
            timeout: within,
            grace: ctx.limits.grace,
            token: &token,
            may_leave: false,
            log: &mut complaints,
            errors: None,
            log_cap: ctx.limits.log_cap,
            live: &|bytes| {
                if is_alone {
                    observer.printed(bytes);
                }
            },
        },
        &StopAfterGrace {
            stop: ctx.stop,
            cancel: ctx.cancel,
            grace: ctx.limits.calls,
        },
        &mut |child| observer.started(child, &invocation.argv),
    );
    if !is_alone {
        if !complaints.is_empty() && !complaints.ends_with(b"\n") {
            complaints.push(b'\n');
        }
        observer.printed(&complaints);
    }
    observer.printed_all();
    ctx.log(&complaints);
    let stdout = read_capped(&answer).unwrap_or_default();
    // The file may go to quarantine.
    if let Cow::Owned(hidden) = ctx.calls.redactor().bytes(&stdout) {
        written(".answer", &hidden)?;
    }
    let ended = match exit {
        Ok(Exit::Code(code)) => CommandExit::Code(code),
        Ok(Exit::Signal(signal)) => CommandExit::Signal(signal),
        Ok(Exit::TimedOut) => CommandExit::TimedOut,
        Ok(Exit::Cancelled) => CommandExit::Cancelled,
        Err(error) => {
            let fault = CallFault::new(FaultKind::BadRequest, error.to_string());
            return Ok(Err(fault));
        }
    };
    let output = CommandOutput {
        ended,
        stdout: &stdout,
        stderr: &complaints,
    };
    Ok(tool.read(output))
}

/// The most bytes of an answer that are read.
const MOST: u64 = 64 << 20;

fn read_capped(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    read::open(path)?.take(MOST).read_to_end(&mut bytes)?;
    Ok(bytes)
}
