//! The tools: what a client is told of each, and the function that answers its calls.

mod outside;
mod reading;
mod running;
mod waiting;

use super::call::Call;
use super::fault::Fault;
use rmcp::model::{Tool, ToolAnnotations};
#[cfg(debug_assertions)]
use schemars::JsonSchema;
use serde_json::{Map, Value};

/// JSON Schemas of a tool's arguments and of its result.
type Schemas = (Map<String, Value>, Map<String, Value>);

/// A tool.
pub(super) struct Row {
    /// Its name.
    pub(super) name: &'static str,
    /// Its name for people.
    title: &'static str,
    /// What it does, for a model.
    about: &'static str,
    /// Whether it writes nothing.
    reads: bool,
    /// Schemas of arguments and result.
    schemas: fn(tool: &str) -> Schemas,
    /// Answers a call.
    pub(super) call: fn(&Call<'_>) -> Result<Value, Fault>,
}

/// The tools, in the order in which they are listed.
pub(super) const ROWS: &[Row] = &[
    waiting::CHECK_STAGE_COMPLETION,
    waiting::WAIT_FOR_SUBAGENT,
    waiting::AGGREGATE_BATCH_RESULTS,
    outside::NEXT_BATCH,
    outside::SUBMIT_BATCH,
    outside::RELEASE_BATCH,
    running::RUN,
    reading::PLAN,
    reading::STATUS,
    reading::WHY,
    reading::LOG,
    reading::VERIFY,
];

/// The tool of this name.
pub(super) fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

impl Row {
    /// As clients are told of it.
    pub(super) fn tool(&self) -> Tool {
        let (arguments, result) = (self.schemas)(self.name);
        let annotations = ToolAnnotations::from_raw(
            None,
            Some(self.reads),
            (!self.reads).then_some(false),
            Some(true),
            Some(!self.reads),
        );
        Tool::new(self.name, self.about, arguments)
            .with_title(self.title)
            .with_raw_output_schema(result.into())
            .with_annotations(annotations)
    }
}

/// Derives the schemas from the types.
#[cfg(debug_assertions)]
fn schemas_of<A: JsonSchema, R: JsonSchema>(_: &str) -> Schemas {
    use super::schemas;
    (schemas::arguments::<A>(), schemas::result::<R>())
}

/// Returns the committed schemas. A test compares them with the types.
#[cfg(not(debug_assertions))]
fn schemas_of<A, R>(tool: &str) -> Schemas {
    static TOOLS: std::sync::LazyLock<Vec<Value>> = std::sync::LazyLock::new(|| {
        serde_json::from_str(include_str!("../tools.json")).unwrap_or_default()
    });
    let tool = TOOLS.iter().find(|committed| committed["name"] == tool);
    let schema = |key: &str| {
        let schema = tool.and_then(|committed| committed[key].as_object());
        schema.cloned().unwrap_or_default()
    };
    (schema("inputSchema"), schema("outputSchema"))
}
