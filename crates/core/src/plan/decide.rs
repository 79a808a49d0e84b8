//! Whether a batch must run, and why: one decision for `plan`, `run` and `why`.

use crate::base::digest::Digest;
use crate::base::glob::{Glob, is_pattern};
use crate::base::path::RelPath;
use crate::model::event::Event;
use crate::model::fingerprint::{Change, FactKind, Facts, changes};
use crate::model::forced::Forced;
use crate::model::reason::{Condition, Reason};
use crate::model::record::{BatchRecord, Made};
use crate::model::state::BatchState;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The facts about a batch on the disk, in the declaration and in the records.
pub struct Found<'a> {
    /// The recorded state.
    pub known: Option<&'a BatchState>,
    /// The recorded facts that it shared with other batches.
    pub recorded_shared: Arc<Facts>,
    /// The current facts that the stage's batches share.
    pub shared: &'a Facts,
    /// The current facts of the batch itself.
    pub own: &'a Facts,
    /// The paths that it writes, as far as they are known before it runs.
    pub paths: &'a [RelPath],
    /// Recorded outputs whose files have another name now.
    pub renamed: Vec<(RelPath, RelPath)>,
    /// The digests of the files at these and at the recorded paths.
    pub on_disk: &'a BTreeMap<RelPath, Digest>,
    /// Returns true if Milepost wrote this content of a file for another batch.
    pub made_elsewhere: &'a dyn Fn(&RelPath, Digest) -> bool,
    /// The changes that earlier stages may still make.
    pub pending: Vec<Condition>,
    /// Which batches to rebuild.
    pub policy: RebuildPolicy,
    /// The earlier run with `--force` that selected the batch, if it is not rebuilt yet.
    pub forced: Option<&'a Forced>,
}

/// Which batches to rebuild, by the selection and the stage's declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebuildPolicy {
    /// Those that are out of date; stop at modified outputs.
    Needed,
    /// Those that are out of date, and those with modified outputs.
    NeededAndModified,
    Forced,
}

/// The decision on a batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "decision", content = "reasons", rename_all = "snake_case")]
pub enum Decision {
    /// It runs, for these reasons.
    Will(Vec<Reason>),
    /// It is up to date.
    #[serde(rename = "reused")]
    UpToDate,
    /// Its outputs are in quarantine, and up to date: this event puts them back in place.
    Restore(Box<Event>),
    /// It is up to date, but its outputs must be revalidated.
    #[serde(rename = "judge")]
    Revalidate(Vec<Change>),
    /// It runs if one of these conditions holds.
    May(Vec<Condition>),
    /// Outputs were modified by hand: they are neither used nor overwritten.
    #[serde(rename = "altered")]
    Modified(Vec<Modification>),
}

/// An output that was modified by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Modification {
    pub path: RelPath,
    /// The recorded digest; `None` if the file is untracked.
    pub recorded: Option<Digest>,
    /// The digest of the file as it is.
    pub found: Digest,
    /// True if the batch is out of date, but a person accepted the output.
    pub pinned: bool,
}

/// Decides whether a batch runs.
pub fn decide(found: &Found<'_>) -> Decision {
    let record = found.known.and_then(|known| known.record.as_ref());
    let modifications = modifications(found, record);
    if !modifications.is_empty() && found.policy == RebuildPolicy::Needed {
        return Decision::Modified(modifications);
    }
    let mut reasons: Vec<Reason> = modifications
        .into_iter()
        .map(|altered| Reason::Modified { path: altered.path })
        .collect();
    if found.policy == RebuildPolicy::Forced {
        reasons.push(Reason::Forced);
    } else if let Some(forced) = found.forced {
        reasons.push(Reason::ForcedBefore {
            run: forced.run.clone(),
            interrupted: !forced.ended,
        });
    }
    if let Some(outcome) = found.known.and_then(BatchState::last_failure) {
        reasons.push(Reason::Failed {
            outcome: outcome.clone(),
        });
    }
    let Some(record) = record else {
        if !reasons
            .iter()
            .any(|reason| matches!(reason, Reason::Failed { .. }))
        {
            // A million new batches have one reason each.
            reasons.reserve_exact(1);
            reasons.push(Reason::NeverMade);
        }
        return Decision::Will(reasons);
    };
    if let Some(input) = &record.stale {
        reasons.push(Reason::Stale {
            input: input.clone(),
        });
    }
    if let Some(outcome) = record.failure() {
        reasons.push(Reason::Failed {
            outcome: outcome.into_owned(),
        });
    }
    for made in &record.outputs {
        if !found.on_disk.contains_key(&made.path) {
            reasons.push(Reason::Deleted {
                path: made.path.clone(),
            });
        }
    }
    for (from, to) in &found.renamed {
        reasons.push(Reason::Renamed {
            from: from.clone(),
            to: to.clone(),
        });
    }
    let differing = changes(
        [&found.recorded_shared, &record.facts],
        [found.shared, found.own],
    );
    let (judged, made): (Vec<_>, Vec<_>) = differing
        .into_iter()
        .partition(|change| change.fact.kind.only_validates());
    // The files of a list and the items of a file are not known while an earlier stage may still make others.
    let waits: Vec<Glob> = found
        .pending
        .iter()
        .filter_map(|condition| match condition {
            Condition::OutputChanges { path, .. } if is_pattern(path) => Glob::parse(path).ok(),
            _ => None,
        })
        .collect();
    let item_may_differ = found
        .pending
        .iter()
        .any(|condition| matches!(condition, Condition::ItemChanges { .. }));
    let may_still = |change: &Change| {
        if change.fact.kind == FactKind::Item {
            return item_may_differ;
        }
        let path = RelPath::parse(&change.fact.name);
        change.fact.kind == FactKind::Input
            && path.is_ok_and(|path| waits.iter().any(|wait| wait.matches(&path)))
    };
    let made = made.into_iter().filter(|change| !may_still(change));
    reasons.extend(made.map(Reason::Changed));
    if reasons.is_empty() {
        if !found.pending.is_empty() {
            return Decision::May(found.pending.clone());
        }
        return if judged.is_empty() {
            Decision::UpToDate
        } else {
            Decision::Revalidate(judged)
        };
    }
    // An accepted edit blocks the rebuild: the person must decide. If they deleted the outputs that they accepted, nothing blocks
    // it. Accepting an output also cancels `--force`, so in a batch that is still forced they accepted it before.
    let pinned = pinned(record, found);
    if !pinned.is_empty() && found.policy == RebuildPolicy::Needed && found.forced.is_none() {
        return Decision::Modified(pinned);
    }
    Decision::Will(reasons)
}

fn modifications(found: &Found<'_>, record: Option<&BatchRecord>) -> Vec<Modification> {
    let remains = found.known.map(|known| &known.remains);
    let mut altered = Vec::new();
    for (path, digest) in found.on_disk {
        let made = record.and_then(|record| record.outputs.iter().find(|made| made.path == *path));
        let recorded = made.map(|made| made.digest);
        let ours = remains.and_then(|remains| remains.get(path)).copied();
        if recorded == Some(*digest) || ours == Some(*digest) {
            continue;
        }
        // Ignores untracked files that the batch does not write.
        if recorded.is_none() && !found.paths.contains(path) {
            continue;
        }
        if (found.made_elsewhere)(path, *digest) {
            continue;
        }
        altered.push(Modification {
            path: path.clone(),
            recorded,
            found: *digest,
            pinned: false,
        });
    }
    altered
}

fn pinned(record: &BatchRecord, found: &Found<'_>) -> Vec<Modification> {
    let by_hand = |made: &&Made| record.is_by_hand(&made.path);
    let there = record.outputs.iter().filter(by_hand).filter_map(|made| {
        let digest = found.on_disk.get(&made.path)?;
        Some(Modification {
            path: made.path.clone(),
            recorded: Some(made.digest),
            found: *digest,
            pinned: true,
        })
    });
    there.collect()
}
