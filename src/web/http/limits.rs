//! The limits of connections and requests, in one place.

use std::time::Duration;

/// The most open connections.
pub(super) const CONNECTIONS: usize = 512;

/// The most bytes of the body of a request.
pub(super) const BODY: usize = 4 << 20;

/// The most bytes of the head of a request.
pub(super) const HEAD: usize = 64 << 10;

/// The most headers of a request.
pub(super) const HEADERS: usize = 64;

/// The longest time for the head of a request, from the start of the connection or the end of the last answer.
pub(super) const HEAD_TIME: Duration = Duration::from_secs(30);

/// The longest time for the body of a request.
pub(super) const BODY_TIME: Duration = Duration::from_secs(30);

/// The longest wait for answers and open connections at the end: an event stream ends only when its client closes it.
pub(super) const DRAIN: Duration = Duration::from_secs(2);
