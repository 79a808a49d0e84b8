//! Work for agents outside: batches of stages whose agent is `external` are leased, answered and handed in, one by one.

mod next;
mod release;
mod shapes;
mod submit;
mod wording;
mod workspace;

pub use next::{LeaseOptions, next_batch};
pub use release::{Released, release_batch};
pub use shapes::{Leased, Left, NextBatch, Nothing, Refusal, Submitted, Violation, WhyNothing};
pub use submit::{Submission, submit_batch};
