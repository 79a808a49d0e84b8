//! Dry runs: finds out what a batch would ask first, by running its steps in memory up to that call.

mod later;

pub(crate) use later::LaterCalls;

use crate::run::batch::in_memory::MemoryOutputDir;
use crate::run::check::scopes;
use crate::run::context::Context;
use crate::steps::agent::request_parts::RequestParts;
use crate::steps::agent::{StageAgents, count_items, count_questions};
use crate::steps::attempt::attempt;
use crate::steps::batch_context::{
    AttemptLimits, AttemptObserver, BatchContext, IterationStore, StepEvent,
};
use crate::steps::calls::{Calls, NextCall, ValidAnswer};
use crate::steps::cancel::CancelToken;
use crate::steps::command::{StartedProcess, StopSignal};
use crate::steps::http::connection::Client;
use crate::steps::worker::JqWorkers;
use milepost_agents::http::Cancelled;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::Root;
use milepost_core::base::redact::Redactor;
use milepost_core::model::call::{CallResponse, SentCall};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::AnswersOf;
use milepost_core::model::stage::Stage;
use milepost_core::model::step::Step;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::scan::BatchScan;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::answers::Answers;
use serde_json::Value;
use std::cell::{Cell, LazyCell};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A request that would be sent.
#[derive(Debug, Clone)]
pub(crate) struct PlannedRequest {
    pub(crate) sent: SentCall,
    /// The exact bytes; for a command line, its content as JSON.
    pub(crate) body: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct DryRunResult {
    /// The first request that it would send; `None` if there is none or it is unknown.
    pub(crate) request: Option<PlannedRequest>,
    /// The requests that it would send at the same time, or in later steps if answers do not change them.
    pub(crate) others: Vec<SentCall>,
    /// The calls of later steps of the same iteration that answers change.
    pub(crate) later: LaterCalls,
    /// The number of items of each step with `each`, by the step's `out`; `None` if an earlier step decides it.
    pub(crate) items: BTreeMap<String, Option<u64>>,
    /// The addresses of its questions that other batches may ask too.
    pub(crate) asked: Vec<Digest>,
    /// How many kept answers it would use.
    pub(crate) kept: u64,
    /// The program that it would start first, if requested.
    pub(crate) program: Option<Vec<String>>,
    /// The request in parts, if requested.
    pub(crate) parts: Option<RequestParts>,
    /// The reason why its requests are unknown.
    pub(crate) unknown: Option<String>,
    /// True if it only waits for another batch that asks the same.
    pub(crate) waits: bool,
    /// The most iterations of `[refine]`, 1 without; `None` if the limit cannot be computed.
    pub(crate) iterations: Option<u64>,
    /// The number of questions in its file, if a step answers questions; `None` if they cannot be read.
    pub(crate) questions: Option<u64>,
}

/// A dry run of batches of one stage.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each selects one thing that a dry run returns or counts"
)]
pub(crate) struct DryRun<'a> {
    pub(crate) ctx: Context<'a>,
    pub(crate) stage: &'a Stage,
    pub(crate) schemas: &'a Schemas,
    /// The agents of the stage, prepared for a plan.
    pub(crate) agents: &'a StageAgents,
    pub(crate) answers: &'a Answers,
    /// True if kept answers do not count.
    pub(crate) fresh: bool,
    /// True if kept answers of external agents do not count either.
    pub(crate) anew: bool,
    /// True if the request is returned in parts too.
    pub(crate) in_parts: bool,
    /// True if the program that a batch would start first is returned.
    pub(crate) with_program: bool,
    /// True if a budget limits calls.
    pub(crate) is_limited: bool,
}

impl DryRun<'_> {
    /// Runs a batch. `taken` are questions that earlier batches ask.
    pub(crate) fn of(&self, found: &BatchScan, taken: &HashSet<Digest>) -> DryRunResult {
        let calls = NoCalls {
            dry_run: self,
            taken,
            observed: Mutex::default(),
        };
        let mut simulated = DryRunResult::default();
        let ended = self.within(found, &calls, &mut simulated);
        let observed = calls.observed.into_inner();
        let observed = observed.unwrap_or_else(PoisonError::into_inner);
        let asked = observed.request.as_ref().map(|asked| &asked.sent);
        let asked = asked.into_iter().chain(&observed.others);
        let asked: u64 = asked.map(|sent| sent.questions).sum();
        // The requests contain questions without an answer and those whose answer is no longer valid.
        let wrong = asked.saturating_sub(observed.missed);
        let is_known = observed.request.is_some() || observed.waits;
        DryRunResult {
            kept: observed.kept.saturating_sub(wrong),
            unknown: ended
                .err()
                .filter(|_| !is_known)
                .map(|outcome| outcome.message),
            asked: observed.asked,
            request: observed.request,
            others: observed.others,
            parts: observed.parts,
            waits: observed.waits,
            ..simulated
        }
    }

    fn within(
        &self,
        found: &BatchScan,
        calls: &NoCalls<'_>,
        simulated: &mut DryRunResult,
    ) -> Result<(), Outcome> {
        let cancel = CancelToken::new(Arc::default());
        let moment = self.ctx.moment();
        let scope = scopes::of_inputs(&self.ctx, self.stage, found, moment, &cancel)?;
        let name = batch_name(&self.stage.name, &found.batch.key);
        let root = self.ctx.layout.root();
        let outputs = MemoryOutputDir::new(self.stage, root, &found.targets);
        let observer = ProgramObserver {
            is_wanted: self.with_program,
            program: Mutex::default(),
            steps: &self.stage.steps,
            reached: AtomicUsize::new(0),
        };
        let environment = BTreeMap::new();
        let nowhere = Path::new("");
        let mut batch_ctx = BatchContext {
            stage: self.stage,
            name: &name,
            scope,
            base: LazyCell::new(Box::new(move || {
                found.base(self.ctx.pipeline, self.ctx.settings, moment)
            })),
            moment,
            outputs: &outputs,
            iterations: &NoObserver,
            log: &mut std::io::sink(),
            stop: &NoObserver,
            cancel: &cancel,
            jq: Rc::new(JqWorkers::new(self.stage, &cancel)),
            left: &|| None,
            observer: &observer,
            schemas: self.schemas,
            agents: self.agents,
            calls,
            asked_since: if self.fresh {
                Some(&[])
            } else {
                found.asked_since.as_deref()
            },
            client: &Client::default(),
            probe: None,
            facts: &String::new,
            sent: &Cell::default(),
            environment: &environment,
            declared_env: &self.ctx.settings.env,
            folder: nowhere,
            project: self.ctx.files.folder(Root::Project),
            token: "",
            previous: &|_| None,
            find: &|_| Ok(None),
            limits: AttemptLimits::default(),
            threads: 1,
            is_dry_run: true,
        };
        simulated.iterations = match &self.stage.refine {
            Some(refine) => refine.max_iterations.number(&batch_ctx.base).ok(),
            None => Some(1),
        };
        let ended = attempt(&mut batch_ctx).map(drop);
        simulated.program = observer.program().take();
        let answers_questions =
            |step: &Step| step.kind.agent().is_some_and(|asked| asked.questions);
        if ended.is_err() && self.stage.steps.iter().any(answers_questions) {
            simulated.questions = count_questions(&batch_ctx).ok();
        }
        if ended.is_err() {
            let reached = observer.reached.load(Ordering::Relaxed);
            simulated.later = self.later(&mut batch_ctx, reached, calls);
            for step in &self.stage.steps {
                if let Some(each) = step.kind.agent().and_then(|asked| asked.each.as_deref()) {
                    let count = count_items(&batch_ctx, each);
                    simulated.items.insert(step.out.clone(), count);
                }
            }
        }
        ended
    }
}

/// Ignores all events and never stops.
struct NoObserver;

impl IterationStore for NoObserver {
    fn resume(&self) -> Result<Vec<Value>, Outcome> {
        Ok(Vec::new())
    }

    fn keep(&self, _: u32, _: Value) -> Result<(), Outcome> {
        Ok(())
    }

    fn content(&self, digest: Digest) -> Result<Vec<u8>, Outcome> {
        let message = format!("{digest}: nothing is kept");
        Err(Outcome::new(OutcomeKind::Output, message))
    }

    fn over(&self) {}
}

impl StopSignal for NoObserver {
    fn stopping(&self) -> bool {
        false
    }

    fn wait(&self, _most: Duration) {}
}

/// Keeps the first program that would be started and the last step, and ignores all other events.
struct ProgramObserver<'a> {
    is_wanted: bool,
    program: Mutex<Option<Vec<String>>>,
    steps: &'a [Step],
    /// The position of the last step that began.
    reached: AtomicUsize,
}

impl ProgramObserver<'_> {
    fn program(&self) -> MutexGuard<'_, Option<Vec<String>>> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AttemptObserver for ProgramObserver<'_> {
    fn wants_plan(&self) -> bool {
        self.is_wanted
    }

    fn would_start(&self, program: Vec<String>) {
        self.program().get_or_insert(program);
    }

    fn event(&self, event: StepEvent<'_>) {
        if let StepEvent::Step(step, _) = event
            && let Some(at) = self.steps.iter().position(|it| std::ptr::eq(it, step))
        {
            self.reached.store(at, Ordering::Relaxed);
        }
    }

    fn started(&self, _child: &StartedProcess, _program: &[String]) {}

    fn called(&self, _number: u64, _sent: &SentCall, _response: &CallResponse) {}

    fn trying_again(&self, _failed: u32, _outcome: &Outcome, _wait: Duration) {}
}

/// Returns kept answers, and sends nothing.
struct NoCalls<'a> {
    dry_run: &'a DryRun<'a>,
    /// Questions that earlier batches ask.
    taken: &'a HashSet<Digest>,
    observed: Mutex<ObservedCalls>,
}

#[derive(Default)]
struct ObservedCalls {
    kept: u64,
    missed: u64,
    asked: Vec<Digest>,
    waits: bool,
    request: Option<PlannedRequest>,
    others: Vec<SentCall>,
    parts: Option<RequestParts>,
}

impl NoCalls<'_> {
    fn observed(&self) -> MutexGuard<'_, ObservedCalls> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many answers were looked up.
    fn lookups(&self) -> u64 {
        let observed = self.observed();
        observed.kept + observed.missed
    }

    /// Returns the answers at these addresses; with `since`, only those of these runs.
    fn at(
        &self,
        addresses: &[Digest],
        since: Option<&[String]>,
    ) -> Result<Vec<Option<(Value, AnswersOf)>>, Outcome> {
        let mut all = Vec::with_capacity(addresses.len());
        let mut observed = self.observed();
        for &address in addresses {
            let found = self.dry_run.answers.peek(address);
            let found = found
                .map_err(|error| Outcome::new(OutcomeKind::Input, error.to_string()).for_good())?;
            let found = found.filter(|found| since.is_none_or(|runs| runs.contains(&found.call.0)));
            match found {
                Some(_) => observed.kept += 1,
                None => observed.missed += 1,
            }
            all.push(found.map(|found| {
                let (run, call) = found.call;
                (found.answer, AnswersOf::one(&run, call))
            }));
        }
        Ok(all)
    }
}

impl Calls for NoCalls<'_> {
    fn known(
        &self,
        addresses: &[Digest],
        since: Option<&[String]>,
    ) -> Result<Vec<Option<(Value, AnswersOf)>>, Outcome> {
        self.at(addresses, since)
    }

    fn kept(&self, addresses: &[Digest]) -> Result<Vec<Option<(Value, AnswersOf)>>, Outcome> {
        self.at(addresses, self.dry_run.anew.then_some(&[]))
    }

    fn about_to_ask(&self, parts: &dyn Fn() -> RequestParts) {
        if self.dry_run.in_parts {
            self.observed().parts.get_or_insert_with(parts);
        }
    }

    fn run(&self) -> &'static str {
        ""
    }

    fn is_limited(&self) -> bool {
        self.dry_run.is_limited
    }

    fn claim(&self, addresses: &[Digest], _: bool) -> Result<Vec<Digest>, Outcome> {
        let mut observed = self.observed();
        let mut free = addresses.to_vec();
        free.retain(|it| !self.taken.contains(it) && !observed.asked.contains(it));
        observed.asked.extend(&free);
        Ok(free)
    }

    fn release(&self, _: &[Digest]) {}

    fn wait(&self, _: Digest, _: bool, _: Cancelled<'_>, _: &dyn Fn(&str)) -> Result<(), Outcome> {
        self.observed().waits = true;
        Ok(())
    }

    fn keep(&self, _: Vec<ValidAnswer>) -> Result<(), Outcome> {
        Ok(())
    }

    fn sending(&self, call: NextCall<'_>) -> Result<u64, Outcome> {
        let (sent, body) = (&*call.sent, call.body);
        let mut observed = self.observed();
        if observed.request.is_some() {
            observed.others.push(sent.clone());
        } else {
            observed.request = Some(PlannedRequest {
                sent: sent.clone(),
                body: body.to_vec(),
            });
        }
        Err(Outcome::new(OutcomeKind::Cancelled, "it is only simulated").for_good())
    }

    fn received(
        &self,
        _: u64,
        _: &SentCall,
        response: CallResponse,
        _: &[u8],
    ) -> Result<CallResponse, Outcome> {
        Ok(response)
    }

    fn redactor(&self) -> &Redactor {
        self.dry_run.ctx.redactor
    }
}
