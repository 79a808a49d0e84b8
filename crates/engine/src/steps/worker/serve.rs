//! A worker: limits its own process, and serves requests.

use super::frames::{DataWriter, end};
use super::{Request, STACK};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How long a worker waits for its next request.
const IDLE: Duration = Duration::from_secs(30);

/// A worker that holds more memory than this after a request does not wait for another, in bytes.
const HELD: u64 = 256 << 20;

/// The most open files.
const FILES: u64 = 64;

enum Event {
    Request(Request),
    /// The request was answered.
    Answered,
    /// The program has ended or needs no worker any more.
    Closed,
}

/// Serves requests until `input` ends or no request arrives for a while. The caller then ends the process at once, although a
/// thread may still read a file.
///
/// # Errors
/// When a thread cannot be started.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    limit(Resource::Core, 0);
    limit(Resource::Nofile, FILES);
    let (sender, events) = channel();
    let (jobs, received) = channel();
    let answered = sender.clone();
    let thread = thread::Builder::new().stack_size(STACK);
    thread.spawn(move || answer_all(&received, output, &answered))?;
    thread::Builder::new().spawn(move || read_all(input, &sender))?;
    let mut is_idle = true;
    loop {
        match events.recv_timeout(IDLE) {
            Ok(Event::Request(request)) => {
                is_idle = false;
                if jobs.send(request).is_err() {
                    return Ok(());
                }
            }
            Ok(Event::Answered) if data_size() < HELD => is_idle = true,
            // The program watches the time of a request.
            Err(RecvTimeoutError::Timeout) if !is_idle => {}
            Ok(Event::Answered | Event::Closed) | Err(_) => return Ok(()),
        }
    }
}

fn read_all(input: impl BufRead, events: &Sender<Event>) {
    for line in input.lines() {
        let request = line.ok().and_then(|line| serde_json::from_str(&line).ok());
        let Some(request) = request else { break };
        if events.send(Event::Request(request)).is_err() {
            return;
        }
    }
    let _ = events.send(Event::Closed);
}

fn answer_all(requests: &Receiver<Request>, mut output: impl Write, events: &Sender<Event>) {
    for request in requests {
        limit(Resource::Data, data_size().saturating_add(request.memory));
        let result = catch_unwind(AssertUnwindSafe(|| {
            request
                .work
                .perform(&mut DataWriter(&mut output), &|| Ok(()))
        }));
        let result = result.unwrap_or_else(|_| {
            let message = format!(
                "{} panicked: this is a defect of Milepost, please report it with the file",
                request.work.subject()
            );
            Err(Outcome::new(OutcomeKind::Crash, message).for_good())
        });
        let sent = end(&mut output, result).and_then(|()| output.flush());
        let event = match sent {
            Ok(()) => Event::Answered,
            Err(_) => Event::Closed,
        };
        if events.send(event).is_err() {
            return;
        }
    }
}

/// Lowers a limit of this process. A limit that the system refuses stays as it is.
fn limit(resource: Resource, most: u64) {
    let Rlimit { maximum, .. } = getrlimit(resource);
    let current = Some(maximum.map_or(most, |maximum| maximum.min(most)));
    let _ = setrlimit(resource, Rlimit { current, maximum });
}

/// Returns the bytes that count for the limit of memory: heap and stacks, but no mapped file. 0 if the system does not tell.
#[cfg(target_os = "linux")]
fn data_size() -> u64 {
    let status = milepost_store::store::read::text("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    let size = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    size.unwrap_or_default() << 10
}

#[cfg(not(target_os = "linux"))]
fn data_size() -> u64 {
    0
}
