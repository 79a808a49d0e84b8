//! The pending work of a plan, in the form that the state machine compares.

use super::machine::{PendingItem, PendingKey, PendingKind, PendingWork, Remedy};
use milepost_core::model::reason::Reason;
use milepost_engine::ops::plan::{BatchFacts, Plan, RunningBatch, StagePlan};
use milepost_engine::ops::run::Report;
use std::collections::BTreeMap;

/// Returns the work of a plan, and its obstacles.
pub(crate) fn of(plan: &Plan) -> PendingWork {
    let forgotten = plan.forgotten.iter();
    let forgotten = forgotten.map(|stage| work(stage, PendingKind::Forgotten, "", "", Remedy::Run));
    forgotten
        .chain(plan.stages.iter().flat_map(of_stage))
        .collect()
}

/// Returns the batches that failed in a run, with their facts.
pub(crate) fn tried(report: &Report) -> BTreeMap<PendingKey, String> {
    let stages = report.stages.iter();
    let tried = stages.flat_map(|stage| stage.tried.iter().map(|tried| (&stage.stage, tried)));
    tried
        .map(|(stage, (batch, facts))| {
            let (key, _) = work(stage, PendingKind::Batch, batch, "", Remedy::Retry);
            (key, facts.clone())
        })
        .collect()
}

fn of_stage(stage: &StagePlan) -> Vec<(PendingKey, PendingItem)> {
    let name = stage.stage.as_str();
    let mut all = Vec::new();
    let mut add =
        |kind, of: &str, facts: &str, remedy| all.push(work(name, kind, of, facts, remedy));
    for missing in &stage.missing {
        let kind = [PendingKind::Batch, PendingKind::Sent][usize::from(missing.sent)];
        add(kind, &missing.batch, &missing.why, Remedy::Person);
    }
    for batch in &stage.retire {
        add(PendingKind::Retired, batch, "", Remedy::Run);
    }
    if stage.checkpoint {
        add(PendingKind::Checkpoint, "", "", Remedy::Run);
    }
    for file in &stage.altered {
        let found = file.found.to_string();
        add(PendingKind::Modified, &file.path, &found, Remedy::Person);
    }
    if let Some(why) = &stage.problem {
        add(PendingKind::Problem, "", why, Remedy::Person);
    }
    if let Some(why) = &stage.blocked {
        add(PendingKind::Blocked, "", why, Remedy::Person);
    }
    if let Some(approval) = &stage.approval {
        let facts = approval.batches.to_string();
        add(PendingKind::Approval, "", &facts, Remedy::Person);
    }
    let mut batch = |name: &str, facts: &BatchFacts, remedy| {
        let (key, item) = work(
            stage.stage.as_str(),
            PendingKind::Batch,
            name,
            &facts.all,
            remedy,
        );
        let item = PendingItem {
            outside: facts.outside.clone(),
            by_people: facts.by_people,
            ..item
        };
        all.push((key, item));
    };
    for will in &stage.will {
        batch(&will.batch, &will.facts, remedy(will));
    }
    for unpaid in &stage.unpaid {
        batch(&unpaid.batch, &unpaid.facts, Remedy::Person);
    }
    for tried in &stage.tried {
        batch(&tried.batch, &tried.facts, Remedy::Retry);
    }
    for restore in &stage.restore {
        batch(restore, &BatchFacts::default(), Remedy::Run);
    }
    for judge in &stage.judge {
        batch(&judge.batch, &judge.facts, Remedy::Run);
    }
    all
}

fn remedy(will: &RunningBatch) -> Remedy {
    let has_failed = |reason: &Reason| matches!(reason, Reason::Failed { .. });
    if will.reasons.iter().any(has_failed) {
        Remedy::Retry
    } else {
        Remedy::Run
    }
}

fn work(
    stage: &str,
    kind: PendingKind,
    name: &str,
    facts: &str,
    remedy: Remedy,
) -> (PendingKey, PendingItem) {
    let key = PendingKey {
        stage: stage.to_owned(),
        kind,
        name: name.to_owned(),
    };
    let item = PendingItem {
        facts: facts.to_owned(),
        outside: None,
        by_people: false,
        remedy,
    };
    (key, item)
}
