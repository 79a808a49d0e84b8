//! The limits of the server, in one place. `docs/reference/mcp.md` lists them.

use std::time::Duration;

/// The most calls of one client in progress, without those that wait for a file.
pub(super) const CALLS: usize = 16;

/// The most calls of one client that wait for a file.
pub(super) const WAITS: usize = 64;

/// The most calls of all clients that wait for a file.
pub(super) const ALL_WAITS: usize = 256;

/// The most calls of all clients in progress that only read. Each holds a thread until it ends.
pub(super) const ALL_READS: usize = 256;

/// The most calls of all clients in progress that may write. Such a call may wait for a lock, and holds a thread until it ends.
pub(super) const ALL_CHANGES: usize = 128;

/// The most bytes of a message on standard input.
pub(super) const LINE: usize = 16 << 20;

/// The most requests on standard input that wait for their answers to be read.
pub(super) const UNREAD: usize = CALLS + WAITS + 48;

/// The most open connections.
pub(super) const CONNECTIONS: usize = 512;

/// The most open sessions: more than connections, so that one without a request in progress can be found.
pub(super) const SESSIONS: usize = 640;

/// The most HTTP requests of one session in progress.
pub(super) const REQUESTS: usize = CALLS + WAITS + 16;

/// The most bytes of the body of an HTTP request.
pub(super) const BODY: usize = 4 << 20;

/// The most bytes of the head of an HTTP request.
pub(super) const HEAD: usize = 64 << 10;

/// The most headers of an HTTP request.
pub(super) const HEADERS: usize = 64;

/// The longest time for the head of a request, from the start of the connection or the end of the last answer.
pub(super) const HEAD_TIME: Duration = Duration::from_secs(30);

/// The longest time for the body of a request.
pub(super) const BODY_TIME: Duration = Duration::from_secs(30);

/// The longest time that a client may take to read a part of an answer.
pub(crate) const STALL_TIME: Duration = Duration::from_secs(30);

/// The longest time that a session is kept without a message: longer than the longest call that waits for a file.
pub(super) const SESSION_TIME: Duration = Duration::from_hours(2);

/// How long the answer of a call can be fetched again after its connection broke.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(5);

/// The longest wait for answers and open connections at the end: an event stream ends only when its client closes it.
pub(super) const DRAIN: Duration = Duration::from_secs(2);
