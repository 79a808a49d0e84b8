//! Leases the next batch that a client outside can answer.

use super::shapes::{Leased, Left, NextBatch, Nothing, WhyNothing};
use super::workspace::{outside, with_workspace};
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::opened::Opened;
use crate::ops::project::request::Request;
use crate::run::agents::dry_run;
use crate::run::agents::estimate::CostEstimator;
use crate::run::agents::external::{Asking, Parts, fingerprint};
use crate::run::observe::Observations;
use crate::run::record::recorder::Recorder;
use jiff::{SignedDuration, Timestamp};
use milepost_core::model::stage::Stage;
use milepost_core::model::step::AnswerForm;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::pending::Pending;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_core::plan::schedule::{
    Candidate, HeldLease, NotLeased, Question, Schedule, StageDecision, next_lease,
};
use milepost_core::plan::selection::Selection;
use milepost_store::store::id::new_id;
use milepost_store::store::leases::{Lease, LeaseState, Leases};
use serde_json::{Value, json};

/// How long a lease holds where nothing is said, in seconds.
const SECONDS: u64 = 600;

/// The longest that a lease may hold, in seconds.
const LONGEST: u64 = 24 * 60 * 60;

/// Batches that are named where nothing is leased.
const NAMED: usize = 20;

/// Which batch is wanted.
#[derive(Debug, Clone, Default)]
pub struct LeaseOptions {
    /// The stage, by name or number; none: the first that has one.
    pub stage: Option<String>,
    /// Who asks: the name under which the answers are kept.
    pub client: String,
    /// How long the lease holds, in seconds; 600 where nothing is said.
    pub seconds: Option<u64>,
    /// Whether the prompt is told, besides the file that holds it.
    pub with_prompt: bool,
}

/// Leases the next batch of a stage whose agent is external to a client.
///
/// # Errors
/// When there is no project, its declarations are wrong, a run is at work in the workspace, or the disk fails.
pub fn next_batch(request: &Request, wanted: &LeaseOptions) -> Result<NextBatch, OpsError> {
    let mut opened = open(request)?;
    let seconds = wanted.seconds.unwrap_or(SECONDS);
    if seconds == 0 || seconds > LONGEST {
        return Err(OpsError::Usage(format!(
            "a lease holds from 1 to {LONGEST} seconds, not {seconds}"
        )));
    }
    if wanted.client.trim().is_empty() {
        let why = "say who asks: `client` is the name under which answers are kept";
        return Err(OpsError::Usage(why.to_owned()));
    }
    let stages: Vec<Stage> = match &wanted.stage {
        Some(name) => {
            let stage = opened.pipeline.stage(name);
            let stage = stage.ok_or_else(|| OpsError::Usage(format!("there is no stage `{name}`")));
            vec![stage?.clone()]
        }
        None => opened.pipeline.stages.clone(),
    };
    let external = |stage: &&Stage| !outside(&opened, stage).is_empty();
    let stages: Vec<Stage> = stages.iter().filter(external).cloned().collect();
    if stages.is_empty() {
        return Ok(NextBatch {
            leased: None,
            nothing: Some(not_external(wanted)),
            left: None,
        });
    }
    let agents = opened.planned_agents(request)?;
    opened.workspace.prepare(&opened.disk)?;
    let leases = Leases::lock(&opened.disk, &opened.workspace.layout)?;
    let now = opened.clock.now();
    leases.sweep(now)?;
    let all = leases.all()?;
    let command = format!("next_batch for {}", wanted.client);
    with_workspace(&mut opened, request, &command, |opened, recorder| {
        let estimator = CostEstimator::new(opened.context(), &opened.project, &agents, false);
        let search = Search {
            opened,
            leases: &leases,
            all: &all,
            estimator: &estimator,
            wanted,
            seconds,
            now,
        };
        let mut why: Option<NextBatch> = None;
        for stage in &stages {
            let found = search.of(recorder, stage)?;
            let is_complete = |found: &NextBatch| {
                let nothing = found.nothing.as_ref();
                nothing.is_some_and(|nothing| nothing.reason == WhyNothing::Complete)
            };
            if found.leased.is_some() {
                return Ok(found);
            }
            if why.as_ref().is_none_or(is_complete) {
                why = Some(found);
            }
        }
        Ok(why.unwrap_or_else(|| NextBatch {
            leased: None,
            nothing: Some(not_external(wanted)),
            left: None,
        }))
    })
}

fn not_external(wanted: &LeaseOptions) -> Nothing {
    let message = match &wanted.stage {
        Some(stage) => format!("stage `{stage}` asks nobody outside"),
        None => "no stage asks anybody outside".to_owned(),
    };
    Nothing {
        reason: WhyNothing::NotExternal,
        stage: wanted.stage.clone(),
        message,
        hint: "declare its agent with `external = true` under [agents.NAME], or put such an agent in its place with `--agent`"
            .to_owned(),
        until: None,
        missing: None,
        batches: Vec::new(),
    }
}

/// A search for a batch.
struct Search<'a> {
    opened: &'a Opened,
    leases: &'a Leases,
    all: &'a [Lease],
    estimator: &'a CostEstimator<'a>,
    wanted: &'a LeaseOptions,
    seconds: u64,
    now: Timestamp,
}

impl Search<'_> {
    /// The next batch of a stage, or why there is none.
    fn of(&self, recorder: &Recorder<'_>, stage: &Stage) -> Result<NextBatch, OpsError> {
        let ctx = recorder.ctx;
        let nothing = |reason, message: String, hint: &str| Nothing {
            reason,
            stage: Some(stage.name.clone()),
            message,
            hint: hint.to_owned(),
            until: None,
            missing: None,
            batches: Vec::new(),
        };
        let without = |nothing, left| NextBatch {
            leased: None,
            nothing: Some(nothing),
            left,
        };
        let all = Selection::default();
        let schedule = Schedule::new(ctx.pipeline, &all);
        let disk = Observations::new(ctx, None);
        let decision = schedule.stage(stage, &recorder.state, &Pending::default(), &disk);
        let found = match decision.map_err(|why| OpsError::World(why.0))? {
            StageDecision::Ready(found) => found,
            StageDecision::Blocked(blocker) => {
                let message = format!("stage `{}` cannot begin: {blocker}", stage.name);
                let hint = format!("complete stage `{}` first: run it", blocker.stage);
                let blocked = Nothing {
                    missing: Some(blocker),
                    ..nothing(WhyNothing::Blocked, message, &hint)
                };
                return Ok(without(blocked, None));
            }
            StageDecision::Failed(why) => {
                let hint = "put that right, and ask again";
                return Ok(without(nothing(WhyNothing::Failed, why, hint), None));
            }
            StageDecision::Modified(_, files) => {
                let files = files.iter().map(|(_, file)| file.path.to_string());
                let message = format!(
                    "somebody altered what stage `{}` made: {}",
                    stage.name,
                    files.collect::<Vec<_>>().join(", ")
                );
                let hint = "a person decides: `milepost accept` keeps the files, `milepost run --force` makes them again";
                return Ok(without(nothing(WhyNothing::Altered, message, hint), None));
            }
            // Everything is selected, and no stage before this one had its turn.
            StageDecision::Skipped | StageDecision::Stopped(_) => {
                return Ok(without(not_external(self.wanted), None));
            }
        };
        let (mut against, chosen) = self.choose(stage, &found)?;
        let is_open = |batch: &&BatchScan| matches!(batch.decision, Ok(Decision::Will(_)) | Err(_));
        let open = found.batches.iter().filter(is_open).count() as u64;
        let leased = against.leased.len() as u64 + u64::from(chosen.is_some());
        let left = Some(Left {
            batches: found.batches.len() as u64,
            done: found.batches.len() as u64 - open,
            leased,
            open: open - leased,
        });
        if let Some(chosen) = chosen {
            let leased = self.lease(stage, &found, chosen)?;
            return Ok(NextBatch {
                leased: Some(leased),
                nothing: None,
                left,
            });
        }
        let named = |names: &mut dyn Iterator<Item = String>| names.take(NAMED).collect::<Vec<_>>();
        let run = format!("milepost run {}", stage.name);
        let why = if let Some(until) = against.leased.values().min() {
            let message = format!(
                "every batch of stage `{}` that is open is leased, the first until {until}",
                stage.name
            );
            Nothing {
                until: Some(*until),
                batches: named(&mut against.leased.keys().cloned()),
                ..nothing(WhyNothing::Leased, message, "ask again then")
            }
        } else if let Some((_, first)) = against.failed.first() {
            let message = format!("stage `{}` is not complete: {first}", stage.name);
            let hint = format!("put that right, then `{run}`");
            Nothing {
                batches: named(&mut against.failed.iter().map(|(batch, _)| batch.clone())),
                ..nothing(WhyNothing::Failed, message, &hint)
            }
        } else if !against.ready.is_empty() {
            let message = format!(
                "every question of stage `{}` is answered, and {} of its batches are not made yet",
                stage.name,
                against.ready.len()
            );
            let hint = format!("`{run}` makes them");
            Nothing {
                batches: named(&mut against.ready.drain(..)),
                ..nothing(WhyNothing::Ready, message, &hint)
            }
        } else {
            let status = recorder.state.stages.get(&stage.name);
            if status.is_some_and(|known| known.status.is_some()) {
                let message = format!("every batch of stage `{}` is made", stage.name);
                nothing(
                    WhyNothing::Complete,
                    message,
                    "go on with the stages after it",
                )
            } else {
                let message = format!(
                    "every question of stage `{}` is answered, and it has no checkpoint yet",
                    stage.name
                );
                nothing(WhyNothing::Ready, message, &format!("`{run}` ends it"))
            }
        };
        Ok(without(why, left))
    }

    /// Asks the schedule for the batch to lease.
    fn choose<'f>(
        &self,
        stage: &Stage,
        found: &'f StageScan,
    ) -> Result<(NotLeased, Option<Chosen<'f>>), OpsError> {
        let live = self.all.iter().filter(|lease| lease.holds(self.now));
        let live: Vec<&Lease> = live.filter(|lease| lease.stage == stage.name).collect();
        let lease_of = |batch: &BatchScan| {
            // A lease of a batch that has changed since does not count.
            let lease = live.iter().find(|lease| {
                lease.batch == batch.batch.key && lease.fingerprint == fingerprint(found, batch)
            })?;
            Some(HeldLease {
                expires: lease.expires,
                addresses: lease.addresses().collect(),
            })
        };
        let mut ask = |batch: &BatchScan, anew: bool| {
            Ok(match self.estimator.parts(stage, batch, anew)? {
                Ok(Some((request, parts))) => {
                    let questions = parts.questions.iter();
                    let addresses = questions.map(|(_, _, address)| *address).collect();
                    Question::Asks((request, parts), addresses)
                }
                Ok(None) => Question::Nothing,
                Err(why) => Question::Unknown(format!(
                    "what batch `{}` asks cannot be told before it runs ({why}): put the steps before its agent into a stage of their own",
                    batch.batch.key
                )),
            })
        };
        let (not, chosen) = next_lease(found, self.now, &lease_of, &mut ask)
            .map_err(|why| OpsError::World(why.0))?;
        Ok((not, chosen))
    }

    fn lease(
        &self,
        stage: &Stage,
        found: &StageScan,
        chosen: Chosen<'_>,
    ) -> Result<Leased, OpsError> {
        let Candidate {
            batch,
            request: (request, parts),
            failed,
        } = chosen;
        let id = new_id(self.now);
        let id = id.map_err(|error| OpsError::World(format!("no random numbers: {error}")))?;
        let asking = Asking::of(stage, &parts.out);
        let form = asking.map_or(AnswerForm::Json, |asking| asking.form);
        let (answer, form) = match form {
            AnswerForm::Json => ("answer.json", "json"),
            AnswerForm::Text => ("answer.txt", "text"),
            AnswerForm::TapYaml => ("answer.txt", "tap-yaml"),
        };
        let seconds = SignedDuration::from_secs(i64::try_from(self.seconds).unwrap_or(i64::MAX));
        let expires = self.now.checked_add(seconds).unwrap_or(Timestamp::MAX);
        let questions = parts.questions.iter();
        let lease = Lease {
            id: id.clone(),
            stage: stage.name.clone(),
            batch: batch.batch.key.clone(),
            client: self.wanted.client.clone(),
            since: self.now,
            expires,
            state: LeaseState::Leased,
            out: parts.out.clone(),
            fingerprint: fingerprint(found, batch),
            sent: request.sent.clone(),
            questions: questions
                .map(|(id, _, address)| (id.clone(), *address))
                .collect(),
            address: parts.address,
            keeps_id: parts.keeps_id,
            answer: answer.to_owned(),
        };
        let prompt = parts.prompt();
        let schema = parts.schema();
        let mut files = vec![("prompt.md".to_owned(), prompt.clone().into_bytes())];
        let pretty = |value: &Value| {
            let text = serde_json::to_string_pretty(value);
            text.map(|text| format!("{text}\n").into_bytes())
                .map_err(|error| OpsError::World(error.to_string()))
        };
        if !parts.questions.is_empty() {
            let list: Vec<Value> = parts
                .questions
                .iter()
                .map(|(id, question, _)| json!({ "id": id, "question": question }))
                .collect();
            files.push(("questions.json".to_owned(), pretty(&list.into())?));
        }
        if let Some(schema) = &schema {
            files.push(("schema.json".to_owned(), pretty(schema)?));
        }
        let mut attachments = Vec::new();
        for (number, file) in parts.attachments().iter().enumerate() {
            let name = format!("attached-{}-{}", number + 1, file.name);
            files.push((name.clone(), file.bytes.clone()));
            attachments.push(name);
        }
        self.leases.make(&lease, &request.body, &files)?;
        let folder = self.leases.folder(&id);
        let at = |name: &str| folder.join(name).display().to_string();
        let of_project = asking.and_then(|asking| asking.schema).map(|asset| {
            let path = self.opened.project.join(asset.path.as_str());
            path.display().to_string()
        });
        let input = if parts.questions.is_empty() {
            "prompt.md"
        } else {
            "questions.json"
        };
        Ok(Leased {
            lease: id.clone(),
            expires,
            stage: stage.name.clone(),
            number: stage.number,
            batch: lease.batch.clone(),
            agent: request.sent.agent.clone(),
            client: lease.client.clone(),
            questions: parts.questions.len() as u64,
            input_file: at(input),
            output_file: at(answer),
            answer: form.to_owned(),
            schema_file: match &schema {
                Some(_) => Some(at("schema.json")),
                None => of_project,
            },
            schema,
            prompt_file: at("prompt.md"),
            prompt: self.wanted.with_prompt.then_some(prompt),
            attachments: attachments.iter().map(|name| at(name)).collect(),
            failed,
        })
    }
}

/// The batch that is leased next, with its request.
type Chosen<'f> = Candidate<'f, (dry_run::Request, Parts)>;
