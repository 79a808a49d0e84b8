//! A run does what the plan shows: every run of the tests is compared with the plan made just before.

use super::run::{RunResult, name};
use super::{Digests, Project};
use milepost_core::base::digest::Digest;
use serde_json::Value;
use std::collections::BTreeSet;

/// A plan and the run that followed it.
pub struct Agreement<'a> {
    pub project: &'a Project,
    pub plan: &'a Value,
    pub ran: &'a RunResult,
    /// The files before the run.
    pub before: &'a Digests,
}

impl Agreement<'_> {
    /// Checks that the run made as many calls as planned, and more only where the plan says that some may follow.
    fn check_asked(&self, name: &str, stage: &Value) {
        let called = self.ran.data("called");
        let called = called.filter(|data| data["stage"] == name).count() as u64;
        let planned = stage["asks"]["calls"].as_u64().unwrap_or(0);
        let failed = !self.ran.batches("batch_failed").is_empty() || self.ran.code != 0;
        assert!(
            called >= planned || failed,
            "{name}: {called} calls, {planned} were planned\n{self}"
        );
        if stage["asks"].is_null() && stage["may_ask"].is_null() {
            let may = stage["certain"] == false || !stage["may"].as_array().unwrap().is_empty();
            assert!(
                called == 0 || may,
                "{name}: {called} calls, none were planned\n{self}"
            );
        }
    }

    /// Checks that the run rebuilt every batch that the plan says will run and none that it calls up to date, and a batch that may
    /// run only if its condition came true. After a failure, planned batches need not have run.
    pub fn check(&self) {
        let tried: BTreeSet<String> = self.ran.tried().into_iter().collect();
        let judged = self.ran.judged();
        let after = self.project.digests();
        let failed = !self.ran.batches("batch_failed").is_empty() || self.ran.code == 130;
        // A batch that may run may also need more money than the run has.
        let waits_for_budget = self.ran.output.contains("--until-paid excludes")
            || self.ran.output.contains("raise --budget-usd");
        let mut named = BTreeSet::new();
        for stage in self.plan["stages"].as_array().unwrap() {
            let stage_name = stage["stage"].as_str().unwrap();
            self.check_asked(stage_name, stage);
            let of = |kind: &str| -> Vec<(String, &Value)> {
                let list = stage[kind].as_array().unwrap();
                list.iter()
                    .map(|batch| (name(stage_name, batch["batch"].as_str().unwrap()), batch))
                    .collect()
            };
            for (batch, _) in of("will") {
                assert!(
                    tried.contains(&batch) || failed,
                    "planned and not run: {batch}\n{self}"
                );
                named.insert(batch);
            }
            let gone = self.ran.batches("retired");
            for (batch, may) in of("may")
                .into_iter()
                .filter(|(batch, _)| !gone.contains(batch))
            {
                let differs = |path: &str| {
                    let glob = milepost_core::base::glob::Glob::parse(path).unwrap();
                    let matching = |files: &Digests| -> Vec<(String, Digest)> {
                        let all = files.iter().filter(|(file, _)| {
                            glob.matches(&milepost_core::base::path::RelPath::parse(file).unwrap())
                        });
                        all.map(|(file, digest)| (file.clone(), *digest)).collect()
                    };
                    matching(self.before) != matching(&after)
                };
                let conditions = may["conditions"].as_array().unwrap();
                let differing: Vec<&Value> = conditions
                    .iter()
                    .filter(|condition| condition["path"].as_str().is_some_and(differs))
                    .collect();
                // A file of many items may differ in those of other batches only.
                let by_item = |condition: &&Value| condition["condition"] == "item_changes";
                let by_run = |condition: &&Value| condition["path"].is_null();
                let came_true = match differing.as_slice() {
                    // Money, or an external agent: the run waits without them.
                    [] if self.ran.code == 3 && conditions.iter().any(|one| by_run(&one)) => {
                        vec![false, true]
                    }
                    [] => vec![conditions.iter().any(|one| by_run(&one))],
                    all if all.iter().all(by_item) => vec![false, true],
                    _ => vec![true],
                };
                let waits = stage["may_ask"].is_object() && waits_for_budget;
                assert!(
                    came_true.contains(&tried.contains(&batch))
                        || self.ran.restored().contains(&batch)
                        || failed
                        || waits,
                    "may run, its condition is {came_true:?}: {batch}\n{self}"
                );
                named.insert(batch);
            }
            for (batch, _) in of("judge") {
                assert!(
                    tried.contains(&batch) != judged.contains(&batch) || failed,
                    "either is valid or runs: {batch}\n{self}"
                );
                named.insert(batch);
            }
            let planned = stage["restore"].as_array().unwrap().iter();
            let planned: BTreeSet<String> = planned
                .map(|key| name(stage_name, key.as_str().unwrap()))
                .collect();
            let mut restored: BTreeSet<String> = self.ran.restored().into_iter().collect();
            restored.retain(|batch| batch.split('/').next() == Some(stage_name));
            let may: BTreeSet<String> = of("may").into_iter().map(|(batch, _)| batch).collect();
            assert!(
                restored.is_superset(&planned)
                    && restored
                        .difference(&planned)
                        .all(|batch| may.contains(batch))
                    || stage["certain"] == false
                    || failed,
                "planned to restore {planned:?}, restored {restored:?}\n{self}"
            );
            if stage["certain"] == false {
                let prefix = format!("{stage_name}/");
                named.extend(
                    tried
                        .iter()
                        .filter(|batch| batch.starts_with(&prefix))
                        .cloned(),
                );
            }
            let retired: BTreeSet<&str> = self
                .ran
                .data("retired")
                .filter(|data| data["stage"] == stage_name)
                .map(|data| data["batch"].as_str().unwrap())
                .collect();
            let planned: BTreeSet<&str> = stage["retire"]
                .as_array()
                .unwrap()
                .iter()
                .map(|key| key.as_str().unwrap())
                .collect();
            assert!(
                retired.is_superset(&planned)
                    && (retired == planned || stage["certain"] == false || failed),
                "planned to retire {planned:?}, retired {retired:?}\n{self}"
            );
        }
        let unplanned: Vec<&String> = tried.difference(&named).collect();
        assert!(
            unplanned.is_empty(),
            "run and not planned: {unplanned:?}\n{self}"
        );
        let altered = |stage: &Value| !stage["altered"].as_array().unwrap().is_empty();
        let stops = self.plan["stages"].as_array().unwrap().iter().any(altered);
        assert_eq!(
            stops,
            self.ran.code == 5,
            "a plan names modified files if, and only if, the run stops at them\n{self}"
        );
    }
}

impl std::fmt::Display for Agreement<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "plan: {:#}\nprinted: {}", self.plan, self.ran.output)
    }
}
