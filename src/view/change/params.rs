//! `params` as text: tables of parameters and agents, and warnings about stored values.

use crate::view::run::notice::kept;
use crate::view::text::style::Style;
use crate::view::text::table::{Side, table};
use crate::view::text::words::shortened;
use jiff::Timestamp;
use milepost_core::base::visible::visible;
use milepost_core::model::choice::StoredNote;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::change::params::{AgentLine, Params, Source};
use serde_json::Value;

/// The most characters of a value in a table.
const WIDTH: usize = 48;

/// Returns the tables of parameters and agents, with the warnings about stored values below.
pub(crate) fn params(style: Style, data: &Params, invocation: &Invocation) -> String {
    let mut text = format!(
        "{} {}\n\n",
        style.strong(visible(&data.project)),
        style.dim(format!("in {}", visible(&invocation.near(&data.workspace))))
    );
    let is_described = data.params.iter().any(|line| line.description.is_some());
    let described = if is_described { "description" } else { "" };
    let heading = |cells: [&str; 5]| cells.map(str::to_owned).to_vec();
    let mut rows = vec![heading([
        "parameter",
        "value",
        "default",
        "source",
        described,
    ])];
    rows.extend(data.params.iter().map(|line| {
        let default = line.default.as_ref().map_or_else(String::new, short);
        vec![
            line.name.clone(),
            short(&line.value),
            default,
            source(line.source, line.at, line.by.as_deref()),
            line.description.clone().unwrap_or_default(),
        ]
    }));
    if data.params.is_empty() {
        text.push_str("this project declares no parameters\n");
    } else {
        text.push_str(&table(&[Side::Left; 5], &rows));
    }
    if !data.agents.is_empty() {
        let heading = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let mut rows = vec![heading(["agent", "answered by", "source"])];
        rows.extend(data.agents.iter().map(|line| {
            let source = source(line.source, line.at, line.by.as_deref());
            vec![line.name.clone(), answered_by(line), source]
        }));
        text.push('\n');
        text.push_str(&table(&[Side::Left; 3], &rows));
    }
    if !data.other_agents.is_empty() {
        text.push_str(&format!("other agents: {}\n", data.other_agents.join(", ")));
    }
    let mut lines = kept(style, &data.quarantined);
    lines.extend(notes(style, &data.notes, invocation));
    if let Some(problem) = &data.problem {
        lines.push(format!(
            "{} a run rejects these values: {}",
            style.warn("warning:"),
            visible(problem)
        ));
    }
    if !lines.is_empty() {
        text.push_str(&format!("\n{}\n", lines.join("\n")));
    }
    text
}

/// Returns a line for each replaced agent.
pub(crate) fn replaced(agents: &[AgentLine]) -> String {
    let line = |line: &AgentLine| {
        let text = format!(
            "agent {} is replaced by {}, {}",
            line.name,
            answered_by(line),
            source(line.source, line.at, line.by.as_deref())
        );
        format!("{}\n", visible(&text))
    };
    agents.iter().map(line).collect()
}

/// Returns warnings and notes about stored values and agents, each with the command that resolves it.
pub(crate) fn notes(style: Style, notes: &[StoredNote], invocation: &Invocation) -> Vec<String> {
    notes
        .iter()
        .flat_map(|note| {
            let (label, text) = match note {
                StoredNote::NotSet { .. } => ("note:", said(note)),
                _ => ("warning:", said(note)),
            };
            let help = remedy(note, invocation).map(|command| {
                let label = style.strong("help:");
                format!("{label} {}", style.code(command))
            });
            std::iter::once(format!("{} {text}", style.warn(label))).chain(help)
        })
        .collect()
}

/// Returns a note in one line.
pub(crate) fn said(note: &StoredNote) -> String {
    let text = match note {
        StoredNote::HidesDefault {
            name,
            value,
            default,
            at,
            by,
        } => format!(
            "{name} = {} was set for this workspace {}; milepost.toml now has {}",
            short(value),
            when(*at, by),
            short(default)
        ),
        StoredNote::UnusedParam { name, value } => format!(
            "{name} = {} is set for this workspace, but milepost.toml declares no parameter `{name}`",
            short(value)
        ),
        StoredNote::UnusedAgent { name, agent } => format!(
            "`{agent}` was chosen to answer for `{name}` in this workspace, but milepost.toml declares no agent `{name}`"
        ),
        StoredNote::NotSet { name, value } => format!(
            "{name} is not set for this workspace; milepost.toml has {}",
            short(value)
        ),
    };
    visible(&text).into_owned()
}

fn remedy(note: &StoredNote, invocation: &Invocation) -> Option<String> {
    match note {
        StoredNote::HidesDefault { name, .. } | StoredNote::UnusedParam { name, .. } => {
            Some(invocation.line(&["params", "--unset", name]))
        }
        StoredNote::UnusedAgent { name, .. } => {
            Some(invocation.line(&["params", "--agent", &format!("{name}=default")]))
        }
        StoredNote::NotSet { .. } => None,
    }
}

/// Returns `claude (anthropic claude-sonnet-4-5)`, or only the model for the declared agent.
fn answered_by(line: &AgentLine) -> String {
    let answers = line.answers.as_deref().unwrap_or("not declared");
    if line.agent == line.name {
        answers.to_owned()
    } else {
        format!("{} ({answers})", line.agent)
    }
}

fn source(source: Source, at: Option<Timestamp>, by: Option<&str>) -> String {
    let set = match (at, by) {
        (Some(at), Some(by)) => format!("set {}", when(at, by)),
        _ => "set for this workspace".to_owned(),
    };
    match source {
        Source::Declared => "milepost.toml".to_owned(),
        Source::Set => set,
        Source::Unused => format!("unused, {set}"),
        Source::Environment => "SOURCE_DATE_EPOCH".to_owned(),
    }
}

/// Returns `on 2026-11-20 by ann`.
fn when(at: Timestamp, by: &str) -> String {
    format!("on {} by {by}", at.strftime("%Y-%m-%d"))
}

/// Shortens a value to one line.
fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => text.replace('\n', " "),
        other => other.to_string(),
    };
    shortened(text, WIDTH)
}
