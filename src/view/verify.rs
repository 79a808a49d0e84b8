//! `verify` as text: the findings, then what was checked.

use crate::view::text::overrides;
use crate::view::text::words::{count, grouped, place};
use milepost_core::base::visible::visible;
use milepost_engine::ops::inspect::verify::{Finding, Severity, Verified};

/// The most notes that are listed; other findings are all listed.
const NOTES: usize = 20;

/// Returns the findings, and the number of checked files.
pub fn verify(data: &Verified) -> String {
    let mut text = String::new();
    let mut notes = 0;
    for finding in &data.findings {
        if finding.severity == Severity::Note {
            notes += 1;
            if notes > NOTES {
                continue;
            }
        }
        text.push_str(&format!("{:8} {}\n", word(finding.severity), line(finding)));
    }
    if notes > NOTES {
        text.push_str(&format!(
            "note     and {} more\n",
            grouped((notes - NOTES) as u64)
        ));
    }
    for one in &data.overrides {
        text.push_str(&format!("modified {}\n", overrides::line(one)));
    }
    for (stage, approval) in &data.approvals {
        let line = overrides::approved(approval);
        text.push_str(&format!("approved {}: {line}\n", visible(stage)));
    }
    let checked = &data.checked;
    if !text.is_empty() {
        text.push('\n');
    }
    if let Some(head) = &data.head {
        text.push_str(&format!("head of the journal: {head}\n"));
    }
    text.push_str(&format!(
        "checked {} ({} bytes), {} and {}",
        count(checked.files, "file", "files"),
        grouped(checked.bytes),
        count(checked.checkpoints, "checkpoint", "checkpoints"),
        count(
            checked.records,
            "record of the journal",
            "records of the journal"
        ),
    ));
    if data.deep {
        text.push_str(&format!(
            "; validated {} again",
            count(checked.batches, "batch", "batches")
        ));
    }
    let of = |severity| {
        let all = data.findings.iter();
        all.filter(|finding| finding.severity == severity).count() as u64
    };
    let found = [Severity::Modified, Severity::Missing, Severity::Invalid];
    let found = found.map(|severity| (of(severity), word(severity)));
    let found = found.iter().filter(|(number, _)| *number > 0);
    let found: Vec<String> = found
        .map(|(number, word)| format!("{} {word}", grouped(*number)))
        .collect();
    let verdict = if !found.is_empty() {
        found.join(", ")
    } else if data.overrides.is_empty() {
        "everything matches the record".to_owned()
    } else {
        let files = count(data.overrides.len() as u64, "output", "outputs");
        format!("everything matches the record, {files} modified by hand and accepted")
    };
    text.push_str(&format!(": {verdict}\n"));
    text
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Modified => "modified",
        Severity::Missing => "missing",
        Severity::Invalid => "invalid",
        Severity::Note => "note",
    }
}

fn line(finding: &Finding) -> String {
    let name = finding
        .stage
        .as_ref()
        .map(|stage| place(stage, finding.batch.as_deref().unwrap_or_default()));
    let text = match (&finding.path, name) {
        (Some(path), Some(name)) => format!("{path} (of {name}): {}", finding.message),
        (Some(path), None) => format!("{path}: {}", finding.message),
        (None, Some(name)) => format!("{name}: {}", finding.message),
        (None, None) => finding.message.clone(),
    };
    visible(&text).into_owned()
}
