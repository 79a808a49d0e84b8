//! A worker: limits its own process, and serves requests.

use super::frames::{DataWriter, end};
use super::pipe::wait_for;
use super::{Request, STACK};
use milepost_core::base::in_order::no_thread;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// How long a worker waits for its next request.
const IDLE: Duration = Duration::from_secs(30);

/// A worker that holds more memory than this after a request does not wait for another, in bytes.
const HELD: u64 = 256 << 20;

/// The most open files.
const FILES: u64 = 64;

/// Serves requests until `input` ends or no request arrives for a while. `errors` is the standard error. The caller then ends the
/// process at once, although a thread may still read a file.
///
/// # Errors
/// When a thread cannot be started.
pub fn serve(input: File, output: File, errors: &File) -> io::Result<()> {
    limit(Resource::Core, 0);
    limit(Resource::Nofile, FILES);
    quieten(errors);
    let watched = input.try_clone()?;
    let (ended, is_over) = channel();
    let closed = ended.clone();
    // It starts first: a request limits the memory for stacks too.
    thread::Builder::new().spawn(move || {
        // The parent process may end while a file is read.
        while let Ok(false) = wait_for(&watched, PollFlags::HUP, IDLE) {}
        let _ = closed.send(());
    })?;
    let thread = thread::Builder::new().stack_size(STACK);
    thread.spawn(move || {
        // The runner may be gone, so an error cannot be reported.
        let _ = answer_all(input, output);
        let _ = ended.send(());
    })?;
    let _ = is_over.recv();
    Ok(())
}

fn answer_all(input: File, output: File) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let mut output = BufWriter::new(output);
    let mut text = Vec::new();
    while data_size() < HELD && wait_for(input.get_ref(), PollFlags::IN, IDLE)? {
        if input.fill_buf()?.is_empty() {
            break;
        }
        let mut length = [0; size_of::<u64>()];
        input.read_exact(&mut length)?;
        text.clear();
        (&mut input)
            .take(u64::from_le_bytes(length))
            .read_to_end(&mut text)?;
        let request: Request = serde_json::from_slice(&text)?;
        limit(Resource::Data, data_size().saturating_add(request.memory));
        if let Some(seconds) = request.seconds {
            let seconds = seconds.saturating_mul(request.work.threads());
            limit(Resource::Cpu, seconds.saturating_add(used_seconds()));
        }
        let result = catch_unwind(AssertUnwindSafe(|| {
            request
                .work
                .perform(&mut DataWriter(&mut output), &|| Ok(()))
        }));
        let result = result.unwrap_or_else(|panic| {
            if let Some(message) = no_thread::of_panic(&*panic) {
                return Err(Outcome::new(OutcomeKind::Memory, message));
            }
            let message = format!(
                "{} panicked: this is a defect of Milepost, please report it with the file",
                request.work.subject()
            );
            Err(Outcome::new(OutcomeKind::Crash, message).for_good())
        });
        end(&mut output, result)?;
        output.flush()?;
        // The next request is read under its own limit, not under this one.
        limit(Resource::Data, u64::MAX);
        limit(Resource::Cpu, u64::MAX);
    }
    Ok(())
}

/// Prints nothing about panics, and lets nothing that is printed wait for a reader: the program reads what a worker printed
/// when it has ended.
fn quieten(errors: &File) {
    panic::set_hook(Box::new(|_| ()));
    if let Ok(flags) = fcntl_getfl(errors) {
        // A file or terminal does not wait either.
        let _ = fcntl_setfl(errors, flags | OFlags::NONBLOCK);
    }
}

/// Lowers a limit of this process. A limit that the system refuses stays as it is.
fn limit(resource: Resource, most: u64) {
    let Rlimit { maximum, .. } = getrlimit(resource);
    let current = Some(maximum.map_or(most, |maximum| maximum.min(most)));
    let _ = setrlimit(resource, Rlimit { current, maximum });
}

/// Returns the processor time that this process has used, in seconds, rounded up.
fn used_seconds() -> u64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(used.tv_sec).unwrap_or(0) + 1
}

/// Returns the bytes that count for the limit of memory: heap and stacks, but no mapped file. 0 if the system does not tell.
#[cfg(target_os = "linux")]
fn data_size() -> u64 {
    // The sixth number of `proc_pid_statm(5)`, in pages.
    let sizes = milepost_store::store::read::text("/proc/self/statm").unwrap_or_default();
    let pages = sizes.split(' ').nth(5).and_then(|size| size.parse().ok());
    pages.unwrap_or(0_u64) * rustix::param::page_size() as u64
}

#[cfg(not(target_os = "linux"))]
fn data_size() -> u64 {
    0
}
