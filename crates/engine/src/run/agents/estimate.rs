//! Estimates calls, tokens and cost of the agents of a stage.

mod waiting;

use crate::run::agents::budget::{Budget, Standing};
use crate::run::agents::dry_run::{DryRun, DryRunResult, PlannedRequest};
use crate::run::agents::project_agents::of_stage;
use crate::run::context::Context;
use crate::steps::agent::request_parts::RequestParts;
use crate::steps::agent::{Agents, StageAgents, most_calls};
use milepost_core::base::digest::Digest;
use milepost_core::base::in_order::in_order;
use milepost_core::base::path::Root;
use milepost_core::model::call::Spent;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::pipeline::Limits;
use milepost_core::model::stage::Stage;
use milepost_core::plan::estimate::{Basis, ExpectedCalls, ONE_ANSWER, Past, WHOLE_ANSWER, expect};
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::scan::BatchScan;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::answers::Answers;
use milepost_store::store::calls;
use serde::Serialize;
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::sync::OnceLock;

/// The expected calls of a stage's batches to paid agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Asks {
    /// The agent: name and provider.
    pub agents: Vec<String>,
    /// Requests, if nothing is asked twice: those of all agent steps, with `[refine]` of one iteration.
    pub calls: u64,
    /// The requests among `calls` whose prompts earlier answers of their batch decide.
    pub later_calls: u64,
    /// True if answers decide whether there are more: how many items a step has, or whether it runs.
    pub more_calls: bool,
    /// Calls at most: of every agent step in every iteration, with all `attempts` and `tries`, and with requests that are too long
    /// split down to one question. None: no bound is known, as earlier stages decide what is asked.
    pub most_calls: Option<u64>,
    /// Maximum iterations of `[refine]` in one batch; none if the stage has no loop, or its limit cannot be computed.
    pub iterations: Option<u64>,
    /// Questions in them.
    pub questions: u64,
    /// Answers that are kept and used.
    pub kept: u64,
    /// Batches whose questions are not known before they run. For the others, questions that depend on an answer are not counted.
    pub unknown: u64,
    /// Why not, of the first of them.
    pub why: Option<String>,
    /// Tokens of input, expected.
    pub input_tokens: u64,
    /// Tokens of answers, expected.
    pub output_tokens: u64,
    /// Basis of the estimate.
    pub basis: Basis,
    /// The expected cost; none if no price is known.
    pub cost: Option<NanoUsd>,
    /// The expected cost if each batch needs all iterations of `[refine]`, each at the cost of the first; none if the stage
    /// has no loop, or no price is known.
    pub most_cost: Option<NanoUsd>,
    /// Maximum cost of the first requests of the batches, which a budget reserves; none if no price is known. Retries and
    /// `later_calls` are not in it.
    pub reserved: Option<NanoUsd>,
    /// True if a budget of money limits the run.
    #[serde(skip)]
    pub has_budget: bool,
}

/// The characters of a prompt that are shown.
const PROMPT: usize = 400;

/// The first program or request of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct FirstAction {
    /// The batch's key.
    pub batch: String,
    /// Program and arguments without keys. Outputs have the paths that they are moved to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Vec<String>>,
    /// The agent that is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The beginning of its prompt, without keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// Estimates what a run would ask.
pub(crate) struct CostEstimator<'a> {
    ctx: Context<'a>,
    agents: &'a Agents,
    answers: Answers,
    fresh: bool,
    budget: Budget,
    /// True if the options of the run limit its spending, besides the limits of the workspace.
    has_budget: bool,
    /// The reservation of the calls of the stages so far.
    expected: Cell<Standing>,
    /// The spending of the workspace; read when first needed.
    spent: OnceLock<Spent>,
    /// Past calls by stage and provider; read when first needed.
    past: Option<BTreeMap<(String, String), Past>>,
}

impl<'a> CostEstimator<'a> {
    /// Creates an estimator of a run with these options. It writes nothing.
    pub(crate) fn new(ctx: Context<'a>, agents: &'a Agents, options: &RunOptions) -> Self {
        let project = ctx.files.folder(Root::Project);
        Self {
            ctx,
            agents,
            answers: Answers::open(ctx.disk, project, ctx.layout, "plan"),
            fresh: options.fresh,
            budget: Budget::new(options, &ctx.pipeline.limits),
            has_budget: Budget::new(options, &Limits::default()).is_limited(),
            expected: Cell::default(),
            spent: OnceLock::new(),
            past: None,
        }
    }

    /// Estimates what these batches of a stage would ask; `None` if all their agents are free. With `settled`, no earlier stage
    /// changes their inputs, so that the number of calls has a bound.
    ///
    /// # Errors
    /// When an agent is unavailable, or records of calls cannot be read.
    pub(crate) fn asks(
        &mut self,
        stage: &Stage,
        batches: &[&BatchScan],
        settled: bool,
    ) -> Result<Option<Asks>, String> {
        let mut asked = called(&self.ctx, stage);
        // Nothing is sent to external agents.
        asked.retain(|_, called| !called.is_external);
        if asked.is_empty() || batches.is_empty() {
            return Ok(None);
        }
        let agents = of_stage(&self.ctx, stage, self.agents)?;
        let simulated = self.simulate(stage, &agents, batches);
        let mut asks = self.sum(stage, &agents, &asked, &simulated)?;
        if stage.refine.is_some() {
            asks.iterations = simulated.iter().filter_map(|batch| batch.iterations).max();
            let all = asks.iterations.zip(asks.cost);
            asks.most_cost = all.map(|(count, cost)| NanoUsd(cost.0.saturating_mul(count)));
        }
        if settled {
            asks.most_calls = simulated
                .iter()
                .map(|batch| most_calls_of(&self.ctx, stage, batch))
                .try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)));
        }
        Ok(Some(asks))
    }

    /// Returns true if the stage asks agents that cost something.
    pub(crate) fn is_paid(&self, stage: &Stage) -> bool {
        let called = called(&self.ctx, stage);
        called.values().any(|called| !called.is_external)
    }

    /// Returns the first request that a batch would send, or why there is none.
    ///
    /// # Errors
    /// When an agent is unavailable.
    pub(crate) fn request(
        &self,
        stage: &Stage,
        batch: &BatchScan,
    ) -> Result<Result<PlannedRequest, String>, String> {
        if called(&self.ctx, stage).is_empty() {
            return Ok(Err("all its agents are free".to_owned()));
        }
        let agents = of_stage(&self.ctx, stage, self.agents)?;
        let schemas = Schemas::default();
        let dry_run = self.dry_run(stage, &schemas, &agents);
        let simulated = dry_run.of(batch, &HashSet::new());
        Ok(match (simulated.request, simulated.unknown) {
            (Some(request), _) => Ok(request),
            (None, Some(why)) => Err(format!("the request is unknown before it runs: {why}")),
            (None, None) => Err(match simulated.kept {
                0 => "nothing is asked".to_owned(),
                _ => "every answer is cached".to_owned(),
            }),
        })
    }

    /// Returns the program that a batch would start first, or the agent that it would ask first, with its prompt; `None` if it
    /// does neither or it is unknown.
    ///
    /// # Errors
    /// When an agent is unavailable.
    pub(crate) fn first(
        &self,
        stage: &Stage,
        batch: &BatchScan,
    ) -> Result<Option<FirstAction>, String> {
        let agents = of_stage(&self.ctx, stage, self.agents)?;
        let schemas = Schemas::default();
        let dry_run = DryRun {
            in_parts: true,
            with_program: true,
            ..self.dry_run(stage, &schemas, &agents)
        };
        let simulated = dry_run.of(batch, &HashSet::new());
        let redactor = self.ctx.redactor;
        let batch = batch.batch.key.clone();
        if let Some(program) = simulated.program {
            let words = program.iter().map(|word| redactor.text(word).into_owned());
            return Ok(Some(FirstAction {
                batch,
                program: Some(words.collect()),
                ..FirstAction::default()
            }));
        }
        let asked = simulated.request.zip(simulated.parts);
        Ok(asked.map(|(request, parts)| {
            let prompt = parts.prompt();
            let start: String = prompt.trim_start().chars().take(PROMPT).collect();
            FirstAction {
                batch,
                program: None,
                agent: Some(request.sent.agent),
                prompt: Some(redactor.text(&start).into_owned()),
            }
        }))
    }

    /// Returns the names of the external agents of a stage.
    pub(crate) fn outside(&self, stage: &Stage) -> Vec<String> {
        let asked = called(&self.ctx, stage).into_iter();
        asked
            .filter(|(_, called)| called.is_external)
            .map(|(name, _)| name)
            .collect()
    }

    /// Returns the request of a batch to an external agent, in parts; `None` if the first request goes to another agent or
    /// there is none. With `anew`, kept answers do not count.
    ///
    /// # Errors
    /// When an agent is unavailable.
    pub(crate) fn parts(
        &self,
        stage: &Stage,
        batch: &BatchScan,
        anew: bool,
    ) -> Result<Result<Option<(PlannedRequest, RequestParts)>, String>, String> {
        let agents = of_stage(&self.ctx, stage, self.agents)?;
        let schemas = Schemas::default();
        let dry_run = DryRun {
            anew,
            in_parts: true,
            ..self.dry_run(stage, &schemas, &agents)
        };
        let simulated = dry_run.of(batch, &HashSet::new());
        if let Some(why) = simulated.unknown {
            return Ok(Err(why));
        }
        let is_outside = |(request, _): &(PlannedRequest, RequestParts)| {
            let agent = agents.named(&request.sent.agent);
            agent.is_some_and(|handle| handle.agent.is_external())
        };
        let found = simulated.request.zip(simulated.parts);
        Ok(Ok(found.filter(is_outside)))
    }

    fn dry_run<'b>(
        &'b self,
        stage: &'b Stage,
        schemas: &'b Schemas,
        agents: &'b StageAgents,
    ) -> DryRun<'b> {
        DryRun {
            ctx: self.ctx,
            stage,
            schemas,
            agents,
            answers: &self.answers,
            fresh: self.fresh,
            anew: false,
            in_parts: false,
            with_program: false,
            is_limited: self.budget.is_limited(),
        }
    }

    fn simulate(
        &self,
        stage: &Stage,
        agents: &StageAgents,
        batches: &[&BatchScan],
    ) -> Vec<DryRunResult> {
        let schemas = Schemas::default();
        let dry_run = self.dry_run(stage, &schemas, agents);
        let mut all = simulate_apart(&dry_run, batches);
        // A later batch does not repeat the questions of an earlier one.
        let mut taken: HashSet<Digest> = HashSet::new();
        for (simulated, batch) in all.iter_mut().zip(batches) {
            if simulated.asked.iter().any(|asked| taken.contains(asked)) {
                *simulated = without_body(dry_run.of(batch, &taken));
            }
            taken.extend(std::mem::take(&mut simulated.asked));
        }
        all
    }

    fn sum(
        &mut self,
        stage: &Stage,
        agents: &StageAgents,
        asked: &BTreeMap<String, CalledAgent>,
        simulated: &[DryRunResult],
    ) -> Result<Asks, String> {
        let mut by_agent: BTreeMap<&str, ExpectedCalls> = BTreeMap::new();
        let mut reserved = Some(NanoUsd::ZERO);
        let mut asks = Asks {
            agents: asked
                .iter()
                .map(|(name, called)| format!("{name} ({})", called.who))
                .collect(),
            calls: 0,
            later_calls: 0,
            more_calls: false,
            most_calls: None,
            iterations: None,
            questions: 0,
            kept: simulated.iter().map(|batch| batch.kept).sum(),
            unknown: simulated
                .iter()
                .filter(|batch| batch.unknown.is_some())
                .count() as u64,
            why: simulated.iter().find_map(|batch| batch.unknown.clone()),
            input_tokens: 0,
            output_tokens: 0,
            basis: Basis::Assumed(0),
            cost: Some(NanoUsd::ZERO),
            most_cost: None,
            reserved: None,
            has_budget: self.budget.run.or(self.budget.workspace).is_some(),
        };
        for batch in simulated {
            let first = batch.request.as_ref().map(|request| &request.sent);
            if first.is_some() || batch.waits {
                asks.more_calls |= batch.later.is_open;
                for (agent, calls) in &batch.later.steps {
                    asks.calls += calls;
                    asks.later_calls += calls;
                    asks.questions += calls;
                    let sum = by_agent.entry(agent.as_str()).or_default();
                    sum.calls += calls;
                    sum.questions += calls;
                    // Their prompts are expected to be as long as the first one.
                    if let Some(first) = first {
                        sum.likely_input += first.likely_input.saturating_mul(*calls);
                        sum.most_output += first.most_output.saturating_mul(*calls);
                    }
                }
            }
            let Some(sent) = first else {
                continue;
            };
            if !asked.contains_key(&sent.agent) {
                continue;
            }
            by_agent.entry(sent.agent.as_str()).or_default().batches += 1;
            for sent in std::iter::once(sent).chain(&batch.others) {
                let sum = by_agent.entry(sent.agent.as_str()).or_default();
                asks.calls += 1;
                asks.questions += sent.questions;
                sum.calls += 1;
                sum.questions += sent.questions;
                sum.likely_input += sent.likely_input;
                sum.most_output += sent.most_output;
                reserved = reserved.zip(sent.reserved).map(|(sum, one)| sum + one);
            }
        }
        asks.reserved = reserved;
        let declared = stage.estimate.as_ref();
        if declared.is_some() && asks.unknown > 0 {
            // A declared estimate also applies to batches that cannot be simulated.
            if let Some(name) = asked.keys().next() {
                by_agent.entry(name).or_default().batches += asks.unknown;
            }
        }
        for (name, sum) in by_agent {
            let Some(called) = asked.get(name) else {
                continue;
            };
            let past = self.past(stage, &called.who)?;
            let one = if called.answers_questions {
                ONE_ANSWER
            } else {
                WHOLE_ANSWER
            };
            let (usage, basis) = expect(&sum, &past, declared, one);
            asks.input_tokens += usage.total_input();
            asks.output_tokens += usage.output;
            asks.basis = basis;
            let cost = agents.named(name).and_then(|handle| {
                handle
                    .costs
                    .of_call(handle.model(), handle.agent.is_batched(), &usage, None)
            });
            // A command line that reports costs reported them in past calls.
            let reported = past.cost_of(sum.calls.max(sum.batches));
            asks.cost = asks.cost.zip(cost.or(reported)).map(|(sum, one)| sum + one);
        }
        Ok(asks)
    }

    fn past(&mut self, stage: &Stage, provider: &str) -> Result<Past, String> {
        let past = match &mut self.past {
            Some(past) => past,
            None => {
                let folder = self.ctx.layout.calls();
                let all = calls::read(&folder);
                let all = all.map_err(|error| format!("{}: {error}", folder.display()))?;
                let mut past: BTreeMap<(String, String), Past> = BTreeMap::new();
                for call in all {
                    if let Some(response) = &call.response {
                        let of = (call.sent.stage.clone(), call.sent.provider.clone());
                        past.entry(of).or_default().add(&call.sent, response);
                    }
                }
                self.past.insert(past)
            }
        };
        let found = past.get(&(stage.name.clone(), provider.to_owned()));
        Ok(found.copied().unwrap_or_default())
    }
}

/// Simulates each batch as if it were the only one.
fn simulate_apart(dry_run: &DryRun<'_>, batches: &[&BatchScan]) -> Vec<DryRunResult> {
    let none = HashSet::new();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut all: Vec<DryRunResult> = Vec::with_capacity(batches.len());
    let Ok(()) = in_order::<_, _, Infallible>(
        threads.min(batches.len()),
        &|| Box::new(|batch: &&BatchScan| without_body(dry_run.of(batch, &none))),
        |each| batches.iter().try_for_each(each),
        &mut |simulated| {
            all.push(simulated);
            Ok(())
        },
    );
    all
}

/// Removes the body: the bytes of many requests would fill the memory.
fn without_body(mut simulated: DryRunResult) -> DryRunResult {
    if let Some(request) = &mut simulated.request {
        request.body = Vec::new();
    }
    simulated
}

/// An agent that is called: one that costs money, is external, or replays records.
struct CalledAgent {
    /// The description in one line.
    who: String,
    /// True if it answers questions that `split` wrote; false if it gets a whole prompt.
    answers_questions: bool,
    is_external: bool,
}

/// Returns the most calls of a simulated batch; `None` if its iterations or questions are unknown.
fn most_calls_of(ctx: &Context<'_>, stage: &Stage, batch: &DryRunResult) -> Option<u64> {
    if batch.request.is_none() && batch.unknown.is_none() && !batch.waits {
        return Some(0);
    }
    let mut sum = 0_u64;
    for step in &stage.steps {
        if let Some(asked) = step.kind.agent()
            && let Some(agent) = ctx.settings.agent(ctx.pipeline, &asked.agent)
            && !agent.is_free()
            && !agent.is_external()
        {
            let questions = asked.questions.then_some(batch.questions);
            let one = match questions {
                Some(count) => most_calls(agent, step.attempts, Some(count?)),
                None => most_calls(agent, step.attempts, None),
            };
            let prompts = match asked.each {
                Some(_) => batch.items.get(&step.out).copied().flatten()?,
                None => 1,
            };
            sum = sum.saturating_add(one.saturating_mul(prompts));
        }
    }
    Some(sum.saturating_mul(batch.iterations?.max(1)))
}

/// Returns the agents that a stage calls, by their names after replacements.
fn called(ctx: &Context<'_>, stage: &Stage) -> BTreeMap<String, CalledAgent> {
    let mut called = BTreeMap::new();
    for step in &stage.steps {
        if let Some(asked) = step.kind.agent()
            && let Some(agent) = ctx.settings.agent(ctx.pipeline, &asked.agent)
            && !agent.is_free()
        {
            let one = CalledAgent {
                who: agent.describe(),
                answers_questions: asked.questions,
                is_external: agent.is_external(),
            };
            called.insert(agent.name.clone(), one);
        }
    }
    called
}
