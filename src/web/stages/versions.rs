//! Changes of outputs by the last run that built a batch, as the journal records them.

use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::model::event::{Event, Record};
use milepost_core::model::record::Made;
use serde::Serialize;

/// The most outputs that are listed.
const LISTED: usize = 100;

/// The last publication of a batch.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct LastVersion {
    run: String,
    when: Timestamp,
    outputs: Vec<OutputChange>,
    /// The number of outputs that are left out.
    more: usize,
}

/// How an output differs from its version before.
#[derive(Debug, PartialEq, Serialize)]
struct OutputChange {
    path: String,
    /// The class of its mark.
    kind: &'static str,
    word: &'static str,
    old: Option<String>,
    /// The size of the version before; `None` if no record of the log has it.
    old_size: Option<u64>,
    new: String,
    size: u64,
}

impl LastVersion {
    /// Returns the last publication among the records of a batch, oldest first.
    pub(super) fn of(records: &[Record]) -> Option<Self> {
        let mut earlier: Vec<&Made> = Vec::new();
        let mut last = None;
        for record in records {
            if let Event::Published {
                record: built,
                files,
                ..
            } = &record.event
                && let Some((_, outputs, _)) = last.replace((record, &built.outputs, files))
            {
                earlier.extend(outputs);
            }
        }
        let (record, outputs, files) = last?;
        let change = |made: &Made| {
            let of_path = || earlier.iter().rev().filter(|one| one.path == made.path);
            let file = files.iter().find(|file| file.path == made.path);
            // An output that was deleted has only its record.
            let before = of_path().next().map(|one| one.digest);
            let old = file.and_then(|file| file.old).or(before);
            let is_by_hand = file.is_some_and(|file| file.quarantine.is_some());
            let old_size = of_path().find(|one| Some(one.digest) == old);
            let (kind, word) = match old {
                None => ("idle", "new"),
                Some(old) if old == made.digest => ("matches", "same bytes"),
                Some(_) if is_by_hand => ("modified", "replaced a modified file"),
                Some(_) => ("modified", "changed"),
            };
            let text = |digest: Digest| digest.to_string();
            OutputChange {
                path: made.path.to_string(),
                kind,
                word,
                old: old.map(text),
                old_size: old_size.map(|one| one.size),
                new: text(made.digest),
                size: made.size,
            }
        };
        Some(Self {
            run: record.run_id.clone(),
            when: record.timestamp,
            outputs: outputs.iter().take(LISTED).map(change).collect(),
            more: outputs.len().saturating_sub(LISTED),
        })
    }
}
