//! The limits of the server, in one place. `docs/reference/mcp.md` lists them.

use std::time::Duration;

/// The most calls in progress, without those that wait for a file. Each holds a thread until it ends.
pub(super) const CALLS: usize = 16;

/// The most calls that wait for a file.
pub(super) const WAITS: usize = 64;

/// The most bytes of a message.
pub(super) const LINE: usize = 16 << 20;

/// The most requests that wait for their answers to be read.
pub(super) const UNREAD: usize = CALLS + WAITS + 48;

/// Maximum wait at the end for answers that the client has not read.
pub(super) const DRAIN: Duration = Duration::from_secs(2);
