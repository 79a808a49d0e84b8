//! Finds out what a batch would ask first of an agent that costs something: by doing it, in memory and up to that call.

use crate::run::batch::in_memory::MemoryOuts;
use crate::run::check::scopes;
use crate::run::context::Context;
use crate::steps::agent::parts::Parts;
use crate::steps::agent::{Answerers, count_questions};
use crate::steps::alarm::Alarm;
use crate::steps::attempt::attempt;
use crate::steps::calls::{Calls, Pace, Valid};
use crate::steps::command::{Started, Stop};
use crate::steps::work::{Limits, Rounds, Told, Watcher, Work};
use milepost_agents::http::SharedHttp;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::Root;
use milepost_core::model::call::{Heard, Sent};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::AnswersOf;
use milepost_core::model::stage::Stage;
use milepost_core::model::step::Step;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::scan::BatchScan;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::answers::Answers;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A request that would be sent.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// What would be recorded of it.
    pub(crate) sent: Sent,
    /// Its exact bytes; for a command line what it is asked, as JSON.
    pub(crate) body: Vec<u8>,
}

/// What a batch would ask.
#[derive(Debug, Default)]
pub(crate) struct DryRunResult {
    /// Its first request that would be sent; none: it needs none, or that cannot be told.
    pub(crate) request: Option<Request>,
    /// The addresses of its questions, where it asks questions that others may ask, too.
    pub(crate) asked: Vec<Digest>,
    /// Answers that are kept and would be used.
    pub(crate) kept: u64,
    /// The same in parts, where they are wished for.
    pub(crate) parts: Option<Parts>,
    /// Why it cannot be told what it would ask.
    pub(crate) unknown: Option<String>,
    /// Whether it asks nothing itself unless another batch that asks the same fails.
    pub(crate) waits: bool,
    /// Iterations of its stage's `[refine]` at most, 1 without; none: its limit cannot be computed.
    pub(crate) iterations: Option<u64>,
    /// Questions in its file, where it may call agents and a step answers questions; none: they cannot be read.
    pub(crate) questions: Option<u64>,
}

/// What rehearsals of a stage's batches share.
pub(crate) struct DryRun<'a> {
    /// What a run needs.
    pub(crate) ctx: Context<'a>,
    /// The stage.
    pub(crate) stage: &'a Stage,
    /// The schemas of the project.
    pub(crate) schemas: &'a Schemas,
    /// The agents that the stage asks, made ready for a plan.
    pub(crate) agents: &'a Answerers,
    /// Answers that are kept.
    pub(crate) answers: &'a Answers,
    /// Whether they are asked for once more.
    pub(crate) fresh: bool,
    /// Whether that holds for what nobody can be asked once more, too.
    pub(crate) anew: bool,
    /// Whether the parts of a request are wished for.
    pub(crate) in_parts: bool,
}

impl DryRun<'_> {
    /// Rehearses a batch. `taken` are questions that batches before it ask.
    pub(crate) fn of(&self, found: &BatchScan, taken: &HashSet<Digest>) -> DryRunResult {
        let calls = NoCalls {
            ctx: self.ctx,
            answers: self.answers,
            anew: self.anew,
            in_parts: self.in_parts,
            taken,
            seen: Mutex::default(),
        };
        let mut simulated = DryRunResult::default();
        let ended = self.within(found, &calls, &mut simulated);
        let seen = calls.seen.into_inner();
        let seen = seen.unwrap_or_else(PoisonError::into_inner);
        let asked = seen.request.as_ref();
        // Of those that are not kept, and those that are no longer valid.
        let wrong = asked.map_or(0, |asked| asked.sent.questions.saturating_sub(seen.missed));
        let told = seen.request.is_some() || seen.waits;
        DryRunResult {
            kept: seen.kept.saturating_sub(wrong),
            unknown: ended.err().filter(|_| !told).map(|outcome| outcome.message),
            asked: seen.asked,
            request: seen.request,
            parts: seen.parts,
            waits: seen.waits,
            ..simulated
        }
    }

    fn within(
        &self,
        found: &BatchScan,
        calls: &NoCalls<'_>,
        simulated: &mut DryRunResult,
    ) -> Result<(), Outcome> {
        let alarm = Alarm::new(Arc::new(AtomicBool::new(false)));
        let moment = self.ctx.moment();
        let scope = scopes::of_inputs(&self.ctx, self.stage, found, moment, &alarm)?;
        let name = batch_name(&self.stage.name, &found.batch.key);
        let outs = MemoryOuts::new(self.stage);
        let environment = BTreeMap::new();
        let nowhere = Path::new("");
        let mut work = Work {
            stage: self.stage,
            name: &name,
            scope,
            base: found.base(self.ctx.pipeline, self.ctx.settings, moment),
            moment,
            outs: &outs,
            rounds: &Nobody,
            log: &mut std::io::sink(),
            stop: &Nobody,
            alarm: &alarm,
            left: &|| None,
            watcher: &Nobody,
            schemas: self.schemas,
            agents: self.agents,
            calls,
            asked_since: if self.fresh {
                Some(&[])
            } else {
                found.asked_since.as_deref()
            },
            http: &SharedHttp::default(),
            environment: &environment,
            declared_env: &self.ctx.settings.env,
            folder: nowhere,
            project: self.ctx.files.folder(Root::Project),
            token: "",
            previous: &|_| None,
            find: &|_| Ok(None),
            limits: Limits {
                grace: Duration::ZERO,
                backoff: Duration::ZERO,
                log_cap: 0,
                poll: Duration::ZERO,
                stable: Duration::ZERO,
                pace: Pace::default(),
            },
            is_rehearsed: true,
        };
        simulated.iterations = match &self.stage.refine {
            Some(refine) => refine.max_iterations.number(&work.base).ok(),
            None => Some(1),
        };
        let ended = attempt(&mut work).map(drop);
        let answers_questions =
            |step: &Step| step.kind.agent().is_some_and(|asked| asked.questions);
        if ended.is_err() && self.stage.steps.iter().any(answers_questions) {
            simulated.questions = count_questions(&work).ok();
        }
        ended
    }
}

/// Nobody wishes to stop, and nobody watches.
struct Nobody;

impl Rounds for Nobody {
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

impl Stop for Nobody {
    fn stopping(&self) -> bool {
        false
    }

    fn wait(&self, _most: Duration) {}
}

impl Watcher for Nobody {
    fn told(&self, _told: Told<'_>) {}

    fn started(&self, _child: &Started) {}

    fn called(&self, _number: u64, _sent: &Sent, _heard: &Heard) {}

    fn trying_again(&self, _failed: u32, _outcome: &Outcome, _wait: Duration) {}
}

/// Knows the answers that are kept, and sends nothing.
struct NoCalls<'a> {
    ctx: Context<'a>,
    answers: &'a Answers,
    anew: bool,
    in_parts: bool,
    /// Questions that earlier batches ask.
    taken: &'a HashSet<Digest>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    kept: u64,
    missed: u64,
    asked: Vec<Digest>,
    waits: bool,
    request: Option<Request>,
    parts: Option<Parts>,
}

impl NoCalls<'_> {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept at addresses; with `since`, only what came in one of these runs.
    fn at(
        &self,
        addresses: &[Digest],
        since: Option<&[String]>,
    ) -> Result<Vec<Option<(Value, AnswersOf)>>, Outcome> {
        let mut all = Vec::with_capacity(addresses.len());
        let mut seen = self.seen();
        for &address in addresses {
            let found = self.answers.peek(address);
            let found = found
                .map_err(|error| Outcome::new(OutcomeKind::Input, error.to_string()).for_good())?;
            let found = found.filter(|found| since.is_none_or(|runs| runs.contains(&found.call.0)));
            match found {
                Some(_) => seen.kept += 1,
                None => seen.missed += 1,
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
        self.at(addresses, self.anew.then_some(&[]))
    }

    fn asking(&self, parts: &dyn Fn() -> Parts) {
        if self.in_parts {
            self.seen().parts.get_or_insert_with(parts);
        }
    }

    fn run(&self) -> &'static str {
        ""
    }

    fn claim(&self, address: Digest) -> bool {
        let is_free = !self.taken.contains(&address);
        if is_free {
            self.seen().asked.push(address);
        }
        is_free
    }

    fn release(&self, _: &[Digest]) {}

    fn wait(&self, _: Digest, _: &dyn Fn() -> bool) {
        self.seen().waits = true;
    }

    fn keep(&self, _answer: Valid) -> Result<(), Outcome> {
        Ok(())
    }

    fn sending(&self, sent: &Sent, body: &[u8]) -> Result<u64, Outcome> {
        let mut seen = self.seen();
        seen.request.get_or_insert_with(|| Request {
            sent: sent.clone(),
            body: body.to_vec(),
        });
        Err(Outcome::new(OutcomeKind::Cancelled, "it is only simulated").for_good())
    }

    fn heard(&self, _: u64, _: &Sent, heard: Heard, _: &[u8]) -> Result<Heard, Outcome> {
        Ok(heard)
    }

    fn without_keys<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.ctx.redactor.bytes(bytes)
    }
}
