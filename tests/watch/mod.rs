//! `watch` as people meet it: the program is started, files change, and what it says is waited for.

mod changes;
mod hindrances;
pub mod session;
