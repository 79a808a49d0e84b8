//! Work for external agents: a client leases a batch, answers its questions, and submits the answers.

mod busy;
mod next_batch;
mod refusals;
mod release_batch;
mod results;
mod submit_batch;
mod workspace;

pub use next_batch::{LeaseOptions, next_batch};
pub use release_batch::release_batch;
pub use results::{
    AnswerFile, Expected, Leased, Left, NextBatch, Nothing, Refusal, Released, Submitted,
    Violation, WhyNothing, WhyRefused,
};
pub use submit_batch::{Submission, submit_batch};
