//! Killed at any moment, a run of `examples/diagrams` goes on, and ends with the same diagrams.

use super::{example, made};
use crate::support::goes_on_after_kills;

#[test]
fn killed_at_ten_moments_it_goes_on_to_the_same_bytes() {
    if example().is_none() {
        return;
    }
    goes_on_after_kills(|| example().unwrap(), made);
}
