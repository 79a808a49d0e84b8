//! The project and the disk of the schedule's tests: plain values, no file is read.

use super::{Observe, ObserveError, PolicyOf, Waiting};
use crate::base::digest::Digest;
use crate::base::path::RelPath;
use crate::decl::{ProjectFiles, load};
use crate::model::call::SentCall;
use crate::model::fingerprint::Facts;
use crate::model::pipeline::Pipeline;
use crate::model::reason::Condition;
use crate::model::stage::Stage;
use crate::model::state::State;
use crate::plan::batches::expand::Batch;
use crate::plan::batches::inputs::Missed;
use crate::plan::decide::Decision;
use crate::plan::pending::Pending;
use crate::plan::scan::{BatchScan, StageScan};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Three stages: `b` reads what `a` writes, and `c` what `b` writes. `b` tolerates failures.
struct Project;

impl ProjectFiles for Project {
    fn read(&self, path: &RelPath) -> Option<Result<Vec<u8>, String>> {
        let stage = |input: &str, output: &str, more: &str| {
            format!(
                "{input}\n[step]\ncommand = [\"true\"]\n\n[outputs]\nout = {{ path = \"{output}\", schema = false }}\n{more}"
            )
        };
        let reads = |path: &str| format!("[inputs]\nit = \"{path}\"\n");
        let text = match path.as_str() {
            "milepost.toml" => "name = \"p\"\n".to_owned(),
            "stages/1_a.toml" => stage("", "a.json", ""),
            "stages/2_b.toml" => stage(
                &reads("a.json"),
                "b.json",
                "\n[policy]\non_failure = \"continue\"\n",
            ),
            "stages/3_c.toml" => stage(&reads("b.json"), "c.json", ""),
            _ => return None,
        };
        Some(Ok(text.into_bytes()))
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let names: &[&str] = match folder {
            "" => &["milepost.toml", "stages"],
            "stages" => &["1_a.toml", "2_b.toml", "3_c.toml"],
            _ => &[],
        };
        names.iter().map(|&name| name.to_owned()).collect()
    }
}

pub(super) fn pipeline() -> Pipeline {
    match load(&Project) {
        Ok((pipeline, _)) => pipeline,
        Err(problems) => panic!("{}", problems.render(false)),
    }
}

/// The observations of a test: decisions by stage and batch, and the keys of batches that wait.
#[derive(Default)]
pub(super) struct Disk {
    #[expect(clippy::type_complexity)]
    pub(super) scans: BTreeMap<&'static str, Vec<(&'static str, Result<Decision, Missed>)>>,
    pub(super) gone: BTreeSet<&'static str>,
    pub(super) uncertain: bool,
    pub(super) waiting: BTreeSet<&'static str>,
    /// True if every call costs money that the run does not pay.
    pub(super) unpaid: bool,
    /// True if earlier stages decide which calls there are.
    pub(super) unknown: bool,
    pub(super) checkpoint: Option<Digest>,
}

/// Why the run does not pay.
pub(super) const PAID: &str = "agent `api` costs money";

impl Disk {
    pub(super) fn with(
        mut self,
        stage: &'static str,
        batches: impl IntoIterator<Item = (&'static str, Result<Decision, Missed>)>,
    ) -> Self {
        self.scans.insert(stage, batches.into_iter().collect());
        self
    }
}

impl Observe for Disk {
    fn scan(
        &self,
        stage: &Stage,
        _: &State,
        _: &Pending,
        _: &PolicyOf<'_>,
    ) -> Result<StageScan, ObserveError> {
        let batches = self.scans.get(stage.name.as_str()).cloned();
        let batches = batches.unwrap_or_else(|| vec![("", Ok(Decision::UpToDate))]);
        let batches = (1..)
            .zip(batches)
            .map(|(position, (key, decision))| BatchScan {
                decision,
                ..BatchScan::reused(Batch {
                    key: key.to_owned(),
                    position,
                    items: Vec::new(),
                    refused: None,
                })
            });
        Ok(StageScan {
            shared: Arc::new(Facts::default()),
            batches: batches.collect(),
            certain: !self.uncertain,
            gone: self.gone.iter().map(|&key| key.to_owned()).collect(),
            ..StageScan::default()
        })
    }

    fn checkpoint(&self, _: &Stage) -> Result<Option<(RelPath, Digest)>, ObserveError> {
        let path = RelPath::parse("checkpoint.json").unwrap();
        Ok(self.checkpoint.map(|digest| (path, digest)))
    }

    fn external(&self, _: &Stage) -> Vec<String> {
        vec!["person".to_owned()]
    }

    fn unpaid(&self, _: &Stage) -> Result<Option<String>, ObserveError> {
        Ok(self.unpaid.then(|| PAID.to_owned()))
    }

    fn waiting(
        &self,
        _: &Stage,
        batches: &[&BatchScan],
        settled: bool,
    ) -> Result<Vec<Option<Waiting>>, ObserveError> {
        if self.unpaid {
            let paid = |_: &&BatchScan| Some(Waiting::Money(PAID.to_owned()));
            return Ok(batches.iter().map(paid).collect());
        }
        if self.unknown {
            let unknown =
                |_: &&BatchScan| (!settled).then_some(Waiting::Unknown(Condition::BudgetAllows));
            return Ok(batches.iter().map(unknown).collect());
        }
        let waits = |batch: &&BatchScan| self.waiting.contains(batch.batch.key.as_str());
        Ok(batches
            .iter()
            .map(|batch| waits(batch).then(|| Waiting::Agent(Box::new(sent()))))
            .collect())
    }
}

fn sent() -> SentCall {
    SentCall {
        stage: String::new(),
        batch: String::new(),
        attempt: 1,
        agent: "person".to_owned(),
        provider: String::new(),
        model: String::new(),
        asked: Digest::of(""),
        request: Digest::of(""),
        questions: 1,
        likely_input: 0,
        most_input: 0,
        most_output: 0,
        reserved: None,
        batched: false,
    }
}
