//! Killed at any moment, a run of `examples/diagrams` goes on, and ends with the same diagrams.

use super::{example, made};
use crate::support::continues_after_kills;
use crate::support::required::require;

#[test]
fn killed_at_ten_moments_it_continues_to_the_same_bytes() {
    require!(example());
    continues_after_kills(|| example().unwrap(), made);
}
