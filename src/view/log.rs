//! `log` as text: a line for each record, then what programs printed.

use crate::view::calls;
use crate::view::text::table::time;
use crate::view::text::words::grouped;
use milepost_core::base::visible::{visible, visible_lines};
use milepost_core::model::event::{Event, EventType, Record};
use milepost_engine::ops::inspect::log::Log;

/// Returns the records, without those that only maintain the journal.
pub fn log(data: &Log) -> String {
    let mut text = String::new();
    if data.left_out > 0 {
        let what = if data.calls.is_empty() {
            "records"
        } else {
            "calls"
        };
        text.push_str(&left_out(data.left_out, what));
    }
    let calls: Vec<String> = data.calls.iter().map(calls::exchange).collect();
    text.push_str(&calls.join("\n"));
    text.push_str(&RecordLines::default().lines(&data.records));
    for printed in &data.printed {
        let cut = match printed.cut {
            0 => String::new(),
            cut => format!(" (without the first {} bytes)", grouped(cut)),
        };
        text.push_str(&format!("\n{}{cut}:\n", visible(printed.path.as_str())));
        text.push_str(&crate::view::text::words::indented(
            &visible_lines(&printed.text),
            4,
        ));
    }
    if let Some(broken) = &data.broken {
        text.push_str(&format!("\n{}\n", visible(broken)));
    }
    if text.is_empty() {
        "no records\n".to_owned()
    } else {
        text
    }
}

/// Returns a line about records or calls that are not shown.
pub(crate) fn left_out(count: u64, what: &str) -> String {
    format!("… {} earlier {what}\n", grouped(count))
}

/// Formats records as lines in columns, which keep their width from call to call.
#[derive(Debug, Default)]
pub(crate) struct RecordLines {
    kind: usize,
    agent: usize,
}

impl RecordLines {
    /// Returns columns for records that are not known yet: most fit.
    pub(crate) fn of_unknown() -> Self {
        Self { kind: 8, agent: 8 }
    }

    /// Returns a line for each record and for its details, without records that only maintain the journal.
    pub(crate) fn lines(&mut self, records: &[Record]) -> String {
        let shown = || records.iter().filter(|record| is_shown(record));
        let width = |text: &str| visible(text).chars().count();
        for record in shown() {
            self.kind = self.kind.max(width(word(record.event_type)));
            self.agent = self.agent.max(width(&record.agent_name));
        }
        let mut text = String::new();
        for record in shown() {
            let line = format!(
                "{}  {:kind$}  {:agent$}  {}",
                time(record.timestamp),
                word(record.event_type),
                visible(&record.agent_name),
                visible(&record.summary),
                kind = self.kind,
                agent = self.agent,
            );
            text.push_str(line.trim_end());
            text.push('\n');
            for detail in details(record) {
                for line in detail.lines() {
                    text.push_str(&format!("    {}\n", visible(line)));
                }
            }
        }
        text
    }
}

fn is_shown(record: &Record) -> bool {
    !matches!(
        record.event,
        Event::Barrier
            | Event::Sealed { .. }
            | Event::ChildStarted(_)
            | Event::ServiceStarted { again: true, .. }
    )
}

fn word(kind: EventType) -> &'static str {
    match kind {
        EventType::Invoke => "invoke",
        EventType::Handoff => "handoff",
        EventType::Review => "review",
        EventType::Revision => "revision",
        EventType::Complete => "complete",
        EventType::Error => "error",
    }
}

fn details(record: &Record) -> &[String] {
    match &record.event {
        Event::AttemptFailed { outcome, .. } | Event::BatchFailed { outcome, .. } => {
            &outcome.details
        }
        Event::AnswersRefused { violations, .. } => violations,
        Event::CorrectionsImported { corrections, .. } => corrections,
        _ => &[],
    }
}
