//! The tools, in the order in which clients list them.

mod entry;
mod external;
mod inspect;
mod orchestration;
mod run;

pub(super) use entry::ToolEntry;

pub(super) const TOOLS: &[ToolEntry] = &[
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
    inspect::LOG,
    inspect::VERIFY,
];

/// Returns the tool of this name.
pub(super) fn tool(name: &str) -> Option<&'static ToolEntry> {
    TOOLS.iter().find(|tool| tool.name == name)
}
