//! Sentences for external clients: why no batch was leased, why an answer was refused, what is wrong with it.

use crate::view::text::words;
use milepost_core::base::visible::visible;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::external::{
    AnswerFile, Expected, Nothing, Refusal, Violation, WhyNothing, WhyRefused,
};

/// Ids that are listed if an answer names another.
const NAMED: usize = 20;

/// A message and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    pub message: String,
    /// The remedy.
    pub hint: String,
}

impl Advice {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        let shown = |text: String| visible(&text).into_owned();
        Self {
            message: shown(message.into()),
            hint: shown(hint.into()),
        }
    }
}

/// Explains why no batch was leased.
pub fn nothing(nothing: &Nothing, invocation: &Invocation) -> Advice {
    let stage = nothing.stage.as_deref().unwrap_or_default();
    let run = invocation.run(&[stage]);
    match nothing.reason {
        WhyNothing::NotExternal => Advice::new(
            match &nothing.stage {
                Some(stage) => format!("stage `{stage}` asks no external agent"),
                None => "no stage asks an external agent".to_owned(),
            },
            "declare its agent with `external = true` under [agents.NAME], or select such an agent with `--agent`",
        ),
        WhyNothing::Blocked => {
            let blocker = nothing.missing.as_ref();
            let why = blocker.map(ToString::to_string).unwrap_or_default();
            let first = blocker.map_or(stage, |blocker| &blocker.stage);
            Advice::new(
                format!("stage `{stage}` cannot begin: {why}"),
                format!("complete stage `{first}` first: run it"),
            )
        }
        WhyNothing::Failed => {
            let why = nothing.problem.as_deref().unwrap_or_default();
            if nothing.batches.is_empty() {
                Advice::new(why, "correct this, then ask again")
            } else {
                Advice::new(
                    format!("stage `{stage}` is not complete: {why}"),
                    format!("correct this, then `{run}`"),
                )
            }
        }
        WhyNothing::Modified => Advice::new(
            format!(
                "outputs of stage `{stage}` were modified by hand: {}",
                nothing.modified.join(", ")
            ),
            modified(stage, invocation),
        ),
        WhyNothing::Leased => {
            let until = nothing.until.map(|until| until.to_string());
            Advice::new(
                format!(
                    "every open batch of stage `{stage}` is leased, the first until {}",
                    until.unwrap_or_default()
                ),
                "ask again then",
            )
        }
        WhyNothing::Approval => {
            let approval = nothing.approval.as_ref();
            let waits = approval.map_or_else(String::new, words::approval);
            Advice::new(
                format!("stage `{stage}` is {waits}"),
                format!(
                    "a person decides: `{}`; ask again then",
                    invocation.line(&["approve", stage, "--why", "TEXT"])
                ),
            )
        }
        WhyNothing::Ready if nothing.ready == 0 => Advice::new(
            format!("every question of stage `{stage}` is answered, and it has no checkpoint yet"),
            format!("`{run}` completes it"),
        ),
        WhyNothing::Ready => Advice::new(
            format!(
                "every question of stage `{stage}` is answered, and {} of its batches are not built yet",
                nothing.ready
            ),
            format!("`{run}` builds them"),
        ),
        WhyNothing::Complete => Advice::new(
            format!("every batch of stage `{stage}` is up to date"),
            "continue with the stages after it",
        ),
    }
}

/// Returns how a person decides about outputs of a stage that were modified by hand.
pub(crate) fn modified(stage: &str, invocation: &Invocation) -> String {
    format!(
        "a person decides: `{}` keeps the files, `{}` rebuilds them",
        invocation.line(&["accept", stage, "--why", "TEXT"]),
        invocation.run(&["--force", stage])
    )
}

/// Explains why an answer or a release was refused.
pub fn refusal(refusal: &Refusal) -> Advice {
    let of = &refusal.of;
    let not_built = |why: &str| {
        Advice::new(
            format!("{of} was not built: {why}"),
            "the answer is kept: correct this, then run the stage or submit again",
        )
    };
    match &refusal.why {
        WhyRefused::UnknownLease => Advice::new(
            format!("this workspace has no lease `{of}`"),
            "lease a batch with next_batch, and submit under the lease that it returns",
        ),
        WhyRefused::ForeignLease { holder, client } => Advice::new(
            match client {
                Some(client) => format!("{of} is leased to `{holder}`, not to `{client}`"),
                None => format!("{of} is leased to `{holder}` by another running server"),
            },
            "lease a batch of your own with next_batch",
        ),
        WhyRefused::LeaseReleased => Advice::new(
            format!("the lease of {of} was released"),
            "lease the batch again with next_batch, and submit the same answer under the new lease",
        ),
        WhyRefused::AlreadySubmitted => Advice::new(
            format!("the answer to {of} was submitted under this lease, and the batch is built"),
            "continue with next_batch; to correct the outputs, change the inputs of the project",
        ),
        WhyRefused::LeaseExpired { at } => Advice::new(
            format!("the lease of {of} expired at {at}"),
            "valid answers are kept; lease the batch again with next_batch, and answer the rest",
        ),
        WhyRefused::AlreadyMade => {
            Advice::new(format!("{of} is up to date"), "continue with next_batch")
        }
        WhyRefused::Stale => Advice::new(
            format!("the inputs of {of} changed since it was leased"),
            "valid answers to questions that are still open are kept; lease the batch again with next_batch",
        ),
        WhyRefused::AnswerMissing { path, problem } => {
            let problem = match problem {
                AnswerFile::Missing => "there is no such file",
                AnswerFile::NotAFile => "it is not a regular file",
                AnswerFile::Unreadable(error) => error,
                AnswerFile::NotUtf8 => "it is not UTF-8",
            };
            Advice::new(
                format!("there is no answer to {of} at `{path}`: {problem}"),
                "write the answer to exactly this file, or pass it in the call",
            )
        }
        WhyRefused::Blocked { problem } => not_built(problem),
        WhyRefused::Modified { path: Some(path) } => {
            not_built(&format!("`{path}` was modified by hand"))
        }
        WhyRefused::Modified { path: None } => not_built("outputs were modified by hand"),
        WhyRefused::NotMade { problem } => {
            not_built(problem.as_deref().unwrap_or("the run did not reach it"))
        }
    }
}

/// Explains what was expected of an answer that violates it: the message says what was expected.
pub fn violation(violation: &Violation) -> Advice {
    let id = violation.id.as_deref().unwrap_or_default();
    match &violation.expected {
        Expected::Json => Advice::new(
            "the answer alone, as one value in its form",
            "write the answer again, without any text around it",
        ),
        Expected::List => Advice::new(
            "a JSON array with an object for each question",
            "put every answer into one array, each with the `id` of its question",
        ),
        Expected::Id => Advice::new(
            "`id`: the id of the question that this answers",
            "add the id of the question, or remove the answer",
        ),
        Expected::OneOf(ids) => {
            let named = ids.iter().take(NAMED).map(String::as_str);
            let more = if ids.len() > NAMED { ", …" } else { "" };
            Advice::new(
                format!(
                    "one of the ids of the questions: {}{more}",
                    named.collect::<Vec<_>>().join(", ")
                ),
                format!("remove `{id}`, or write the id of its question"),
            )
        }
        Expected::Answer => Advice::new(
            format!("an answer with `id` \"{id}\""),
            format!("answer `{id}`"),
        ),
        Expected::OneAnswer => Advice::new(
            format!("exactly one answer with `id` \"{id}\""),
            format!("keep one answer to `{id}`"),
        ),
        Expected::Keyword(keyword) => Advice::new(
            format!("a value that the schema allows here (`{keyword}`)"),
            "correct the value at the pointer as the schema of the answer requires",
        ),
        Expected::Outcome(message) => Advice::new(
            message,
            "correct the answers that cause this, and submit those again",
        ),
    }
}
