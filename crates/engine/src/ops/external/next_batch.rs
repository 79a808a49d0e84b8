//! Leases the next batch that an external client can answer.

use super::busy;
use super::results::{Leased, Left, NextBatch, Nothing, WhyNothing};
use super::workspace::{external_agents, with_workspace};
use crate::ops::project::error::OpsError;
use crate::ops::project::lock::fresh_id;
use crate::ops::project::open::open;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::run::StopFlag;
use crate::run::agents::dry_run;
use crate::run::agents::estimate::CostEstimator;
use crate::run::agents::external::{AnswerFormat, RequestParts, fingerprint};
use crate::run::observe::Observations;
use crate::run::record::recorder::Recorder;
use jiff::{SignedDuration, Timestamp};
use milepost_core::model::stage::Stage;
use milepost_core::model::step::AnswerForm;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::pending::Pending;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_core::plan::schedule::{
    AwaitedApproval, Candidate, HeldLease, LeaseRequest, NotLeased, Schedule, StageDecision,
    needs_approval, next_lease,
};
use milepost_core::plan::selection::Selection;
use milepost_store::store::leases::{Lease, LeaseState, Leases};
use milepost_store::store::lock::Holder;
use serde_json::{Value, json};

/// The default duration of a lease, in seconds.
const SECONDS: u64 = 600;

/// The longest duration of a lease, in seconds.
const LONGEST: u64 = 24 * 60 * 60;

/// Batches that are listed if nothing is leased.
const NAMED: usize = 20;

/// Which batch to lease, and how.
#[derive(Debug, Clone, Default)]
pub struct LeaseOptions {
    /// The stage, by name or number; by default the first that has a batch to lease.
    pub stage: Option<String>,
    /// The name of the client, under which its answers are kept.
    pub client: String,
    /// True if the lease belongs to this process while it lives; false: to every client that knows the id of the lease.
    pub is_server: bool,
    /// How long the lease lasts, in seconds; 600 by default.
    pub seconds: Option<u64>,
    /// Returns the text of the prompt, besides the file that holds it.
    pub with_prompt: bool,
}

/// Leases the next batch that asks an external agent to a client. While the batch of another client is built, it waits until `stop` is
/// set.
///
/// # Errors
/// When there is no project, its declarations are wrong, another process runs in the workspace, or the disk fails.
/// [`OpsError::LeasesBusy`] if a batch is being built when `stop` is set.
pub fn next_batch(
    request: &Request,
    options: &LeaseOptions,
    stop: &StopFlag,
) -> Result<NextBatch, OpsError> {
    let mut opened = open(request)?;
    let seconds = options.seconds.unwrap_or(SECONDS);
    if seconds == 0 || seconds > LONGEST {
        return Err(OpsError::Usage(format!(
            "a lease lasts from 1 to {LONGEST} seconds, not {seconds}"
        )));
    }
    if options.client.trim().is_empty() {
        let why = "`client` is empty: expected the name under which answers are kept";
        return Err(OpsError::Usage(why.to_owned()));
    }
    let stages: Vec<Stage> = match &options.stage {
        Some(name) => vec![opened.stage(name)?.clone()],
        None => opened.pipeline.stages.clone(),
    };
    let is_external = |stage: &Stage| !external_agents(&opened, stage).is_empty();
    let stages: Vec<Stage> = stages.into_iter().filter(is_external).collect();
    if stages.is_empty() {
        return Ok(not_external(options));
    }
    opened.check_schemas()?;
    let agents = opened.planned_agents(request)?;
    opened.workspace.prepare(&opened.disk)?;
    let leases = busy::lock(&opened, stop)?;
    let now = opened.clock.now();
    leases.sweep(now)?;
    let all = leases.all()?;
    let command = format!("next_batch for {}", options.client);
    with_workspace(&mut opened, request, &command, |opened, recorder| {
        let estimator = CostEstimator::new(opened.context(), &agents, &RunOptions::default());
        let search = Search {
            opened,
            leases: &leases,
            all: &all,
            estimator: &estimator,
            options,
            seconds,
            now,
        };
        // The first stage that is not complete tells why nothing is leased.
        let mut first: Option<NextBatch> = None;
        for stage in &stages {
            let found = search.of(recorder, stage)?;
            let is_complete = |found: &NextBatch| {
                let nothing = found.nothing.as_ref();
                nothing.is_some_and(|nothing| nothing.reason == WhyNothing::Complete)
            };
            if found.leased.is_some() {
                return Ok(found);
            }
            if first.as_ref().is_none_or(is_complete) {
                first = Some(found);
            }
        }
        Ok(first.unwrap_or_else(|| not_external(options)))
    })
}

fn not_external(options: &LeaseOptions) -> NextBatch {
    let stage = options.stage.as_deref();
    none(Nothing::new(WhyNothing::NotExternal, stage), None)
}

fn none(nothing: Nothing, left: Option<Left>) -> NextBatch {
    NextBatch {
        leased: None,
        nothing: Some(nothing),
        left,
    }
}

/// Searches a batch to lease.
struct Search<'a> {
    opened: &'a OpenProject,
    leases: &'a Leases,
    all: &'a [Lease],
    estimator: &'a CostEstimator<'a>,
    options: &'a LeaseOptions,
    seconds: u64,
    now: Timestamp,
}

impl Search<'_> {
    /// Leases the next batch of a stage.
    fn of(&self, recorder: &Recorder<'_>, stage: &Stage) -> Result<NextBatch, OpsError> {
        let ctx = recorder.ctx;
        let nothing = |reason| Nothing::new(reason, Some(&stage.name));
        let all = Selection::default();
        let schedule = Schedule::new(ctx.pipeline, &all);
        let disk = Observations::new(ctx, None);
        let decision = schedule.stage(stage, &recorder.state, &Pending::default(), &disk);
        let why_not = match decision.map_err(|why| OpsError::World(why.0))? {
            StageDecision::Ready(found) => return self.first(recorder, stage, &found),
            StageDecision::Blocked(blocker) => Nothing {
                missing: Some(blocker),
                ..nothing(WhyNothing::Blocked)
            },
            StageDecision::Failed(why) => Nothing {
                problem: Some(why),
                ..nothing(WhyNothing::Failed)
            },
            StageDecision::Modified(_, files) => Nothing {
                modified: files
                    .iter()
                    .map(|(_, file)| file.path.to_string())
                    .collect(),
                ..nothing(WhyNothing::Modified)
            },
            // Everything is selected, and no stage before this one had its turn.
            StageDecision::Skipped | StageDecision::Stopped(_) => {
                return Ok(not_external(self.options));
            }
        };
        Ok(none(why_not, None))
    }

    /// Leases the first batch of a stage that can begin.
    fn first(
        &self,
        recorder: &Recorder<'_>,
        stage: &Stage,
        found: &StageScan,
    ) -> Result<NextBatch, OpsError> {
        let (not_leased, chosen) = self.choose(recorder, stage, found)?;
        let is_open = |batch: &&BatchScan| matches!(batch.decision, Ok(Decision::Will(_)) | Err(_));
        let open = found.batches.iter().filter(is_open).count() as u64;
        let leased = not_leased.leased.len() as u64 + u64::from(chosen.is_some());
        let left = Some(Left {
            batches: found.batches.len() as u64,
            done: found.batches.len() as u64 - open,
            leased,
            open: open - leased,
        });
        if let Some(chosen) = chosen {
            return Ok(NextBatch {
                leased: Some(self.lease(stage, found, chosen)?),
                nothing: None,
                left,
            });
        }
        let known = recorder.state.stages.get(&stage.name);
        let has_checkpoint = known.is_some_and(|known| known.status.is_some());
        Ok(none(why_not(stage, not_leased, has_checkpoint), left))
    }

    /// Asks the schedule for the batch to lease.
    fn choose<'f>(
        &self,
        recorder: &Recorder<'_>,
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
                    LeaseRequest::Asks((request, parts), addresses)
                }
                Ok(None) => LeaseRequest::Nothing,
                Err(why) => LeaseRequest::Unknown(format!(
                    "the questions of batch `{}` are known only when it runs ({why}): move the steps before its agent to a stage of their own",
                    batch.batch.key
                )),
            })
        };
        let state = &recorder.state;
        let waits = |batch: &BatchScan| {
            stage.approve.is_some() && needs_approval(stage, state, found, batch)
        };
        let (not, chosen) = next_lease(found, self.now, &lease_of, &waits, &mut ask)
            .map_err(|why| OpsError::World(why.0))?;
        Ok((not, chosen))
    }

    /// Records a lease, and writes the files of its folder.
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
        let id = fresh_id(self.now)?;
        let asking = AnswerFormat::of(stage, &parts.out);
        let form = asking.map_or(AnswerForm::Json, |asking| asking.form);
        let (answer, form) = match form {
            AnswerForm::Json => ("answer.json", "json"),
            AnswerForm::Text => ("answer.txt", "text"),
            AnswerForm::TapYaml => ("answer.txt", "tap-yaml"),
        };
        let seconds = SignedDuration::from_secs(i64::try_from(self.seconds).unwrap_or(i64::MAX));
        let expires = self.now.checked_add(seconds).unwrap_or(Timestamp::MAX);
        let questions = parts.questions.iter();
        let this = || Holder::this(&id, self.now, "milepost mcp");
        let lease = Lease {
            id: id.clone(),
            stage: stage.name.clone(),
            batch: batch.batch.key.clone(),
            client: self.options.client.clone(),
            server: self.options.is_server.then(this),
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
            prompt: self.options.with_prompt.then_some(prompt),
            attachments: attachments.iter().map(|name| at(name)).collect(),
            failed,
        })
    }
}

/// Returns why no batch of a stage that can begin is leased.
fn why_not(stage: &Stage, not_leased: NotLeased, has_checkpoint: bool) -> Nothing {
    let NotLeased {
        leased,
        unapproved,
        ready,
        failed,
    } = not_leased;
    let nothing = |reason| Nothing::new(reason, Some(&stage.name));
    if let Some(by) = stage.approve.as_ref().filter(|_| !unapproved.is_empty()) {
        Nothing {
            approval: Some(AwaitedApproval {
                by: by.clone(),
                batches: unapproved.len() as u64,
            }),
            batches: unapproved.into_iter().take(NAMED).collect(),
            ..nothing(WhyNothing::Approval)
        }
    } else if let Some(until) = leased.values().min() {
        Nothing {
            until: Some(*until),
            batches: leased.keys().take(NAMED).cloned().collect(),
            ..nothing(WhyNothing::Leased)
        }
    } else if let Some((_, first)) = failed.first() {
        Nothing {
            problem: Some(first.clone()),
            batches: failed
                .iter()
                .take(NAMED)
                .map(|(batch, _)| batch.clone())
                .collect(),
            ..nothing(WhyNothing::Failed)
        }
    } else if ready.is_empty() && has_checkpoint {
        nothing(WhyNothing::Complete)
    } else {
        Nothing {
            ready: ready.len() as u64,
            batches: ready.into_iter().take(NAMED).collect(),
            ..nothing(WhyNothing::Ready)
        }
    }
}

/// The batch to lease, with its request.
type Chosen<'f> = Candidate<'f, (dry_run::PlannedRequest, RequestParts)>;
