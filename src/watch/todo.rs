//! What a plan leaves to do, as the state machine compares it: each thing by its name, with how it stands.

use super::machine::{Item, Key, Kind, Todo, What};
use milepost_core::model::reason::Reason;
use milepost_engine::ops::plan::{BatchFacts, Plan, RunningBatch, StagePlan};
use milepost_engine::ops::run::Report;
use std::collections::BTreeMap;

/// What is to be done by a plan, and what hinders it.
pub(crate) fn of(plan: &Plan) -> Todo {
    let forgotten = plan.forgotten.iter();
    let forgotten = forgotten.map(|stage| thing(stage, What::Forgotten, "", "", Kind::Open));
    forgotten
        .chain(plan.stages.iter().flat_map(of_stage))
        .collect()
}

/// What failed in a run, with the facts that it was tried with.
pub(crate) fn tried(report: &Report) -> BTreeMap<Key, String> {
    let stages = report.stages.iter();
    let tried = stages.flat_map(|stage| stage.tried.iter().map(|tried| (&stage.stage, tried)));
    tried
        .map(|(stage, (batch, facts))| {
            let (key, _) = thing(stage, What::Batch, batch, "", Kind::Failed);
            (key, facts.clone())
        })
        .collect()
}

fn of_stage(stage: &StagePlan) -> Vec<(Key, Item)> {
    let name = stage.stage.as_str();
    let mut all = Vec::new();
    let mut add = |what, of: &str, facts: &str, kind| all.push(thing(name, what, of, facts, kind));
    for missing in &stage.missing {
        add(What::Batch, &missing.batch, &missing.why, Kind::Trouble);
    }
    for batch in &stage.retire {
        add(What::Retired, batch, "", Kind::Open);
    }
    if stage.checkpoint {
        add(What::Checkpoint, "", "", Kind::Open);
    }
    for file in &stage.altered {
        let found = file.found.to_string();
        add(What::Altered, &file.path, &found, Kind::Trouble);
    }
    if let Some(why) = &stage.problem {
        add(What::Hindered, "", why, Kind::Trouble);
    }
    if let Some(why) = &stage.blocked {
        add(What::Blocked, "", why, Kind::Trouble);
    }
    let mut batch = |name: &str, facts: &BatchFacts, kind| {
        let (key, item) = thing(stage.stage.as_str(), What::Batch, name, &facts.all, kind);
        let item = Item {
            outside: facts.outside.clone(),
            by_people: facts.by_people,
            ..item
        };
        all.push((key, item));
    };
    for will in &stage.will {
        batch(&will.batch, &will.facts, kind(will));
    }
    for tried in &stage.tried {
        batch(&tried.batch, &tried.facts, Kind::Failed);
    }
    for judge in &stage.judge {
        batch(&judge.batch, &judge.facts, Kind::Open);
    }
    all
}

fn kind(will: &RunningBatch) -> Kind {
    let has_failed = |reason: &Reason| matches!(reason, Reason::Failed { .. });
    if will.reasons.iter().any(has_failed) {
        Kind::Failed
    } else {
        Kind::Open
    }
}

fn thing(stage: &str, what: What, name: &str, facts: &str, kind: Kind) -> (Key, Item) {
    let key = Key {
        stage: stage.to_owned(),
        what,
        name: name.to_owned(),
    };
    let item = Item {
        facts: facts.to_owned(),
        outside: None,
        by_people: false,
        kind,
    };
    (key, item)
}
