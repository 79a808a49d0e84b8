//! `log` as text: a line for each record, then what programs printed.

use crate::view::calls;
use crate::view::text::table::{Side, table, time};
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
        text.push_str(&format!("… {} earlier {what}\n", grouped(data.left_out)));
    }
    let calls: Vec<String> = data.calls.iter().map(calls::exchange).collect();
    text.push_str(&calls.join("\n"));
    let shown: Vec<&Record> = data
        .records
        .iter()
        .filter(|record| is_shown(record))
        .collect();
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|record| {
            vec![
                time(record.timestamp),
                word(record.event_type).to_owned(),
                record.agent_name.clone(),
                record.summary.clone(),
            ]
        })
        .collect();
    let lines = table(&[Side::Left; 4], &rows);
    let mut lines = lines.lines();
    for record in shown {
        text.push_str(lines.next().unwrap_or_default());
        text.push('\n');
        for detail in details(record) {
            for line in detail.lines() {
                text.push_str(&format!("    {}\n", visible(line)));
            }
        }
    }
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
