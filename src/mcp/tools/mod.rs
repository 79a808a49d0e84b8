//! The tools, in the order in which clients list them.

mod entry;
mod external;
mod inspect;
mod orchestration;
mod run;

pub(super) use entry::{ToolCall, ToolEntry};
pub(super) use orchestration::WaitStatus;

use rmcp::model::Tool;
use std::sync::LazyLock;

/// The tools as clients list them. Copies share the schemas, so that an answer that is kept for its client takes few bytes.
pub(super) static LISTED: LazyLock<Vec<Tool>> =
    LazyLock::new(|| TOOLS.iter().map(ToolEntry::tool).collect());

const TOOLS: &[ToolEntry] = &[
    orchestration::CHECK_STAGE_COMPLETION,
    orchestration::WAIT_FOR_SUBAGENT,
    orchestration::AGGREGATE_BATCH_RESULTS,
    external::NEXT_BATCH,
    external::SUBMIT_BATCH,
    external::RELEASE_BATCH,
    run::RUN,
    inspect::PLAN,
    inspect::STATUS,
    inspect::WHY,
    inspect::TRACE,
    inspect::LOG,
    inspect::VERIFY,
];

/// Returns the tool of this name as clients list it.
pub(super) fn listed(name: &str) -> Option<Tool> {
    LISTED.iter().find(|tool| tool.name == name).cloned()
}

/// Returns the tool of this name.
pub(super) fn tool(name: &str) -> Option<&'static ToolEntry> {
    TOOLS.iter().find(|tool| tool.name == name)
}
