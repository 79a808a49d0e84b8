//! Actions: a run starts only after its plan and cost were shown, and does exactly what they say.

use super::request::PageRequest;
use super::response::{PageResponse, WebError};
use super::site::Site;
use crate::page::value;
use crate::view::text::style::Style;
use milepost_core::plan::options::flags::Flags as _;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops;
use milepost_engine::ops::plan::{Plan, PlanDetails};
use milepost_engine::ops::run::RunOptions;
use minijinja::context;

/// Shows what a run would do and cost, with the button that starts it.
pub(super) fn plan(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let targets = request.query_all("target");
    let options = options(targets, |name| request.query(name))?;
    shown(site, &options, None)
}

/// Starts the run that was shown. If it would do something else by now, shows that instead.
pub(super) fn run(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let options = options(request.form_all("target"), |name| request.form(name))?;
    let plan = ops::plan::plan_with(&site.request, &options, PlanDetails::WITH_FACTS)?;
    let digest = plan.digest();
    if request.form("plan") != Some(digest.to_string().as_str()) {
        let why = "The plan has changed since it was shown. This is the new one.";
        return shown(site, &options, Some(why));
    }
    let mut request = site.request.clone();
    request.shown = Some(digest);
    request.invocation.options = options.clone();
    request.command = format!("{} (page)", request.invocation.same_run());
    request.invocation.stored = true;
    let started = site.runs.start(&request, options);
    started.map_err(|error| WebError::Wrong(error.to_string()))?;
    Ok(PageResponse::see(&site.url("", &[])))
}

/// Stops the run that was started on a page.
pub(super) fn stop(site: &Site) -> Result<PageResponse, WebError> {
    if site.runs.stop() {
        return Ok(PageResponse::see(&site.url("", &[])));
    }
    Err(WebError::Wrong(
        "no run started from these pages is running; stop any other run where it was started, with Ctrl-C".to_owned(),
    ))
}

fn shown(
    site: &Site,
    options: &RunOptions,
    notice: Option<&str>,
) -> Result<PageResponse, WebError> {
    let plan = ops::plan::plan_with(&site.request, options, PlanDetails::WITH_FACTS)?;
    let is_idle = plan
        .stages
        .iter()
        .all(|stage| stage.skipped || (stage.is_idle() && !stage.checkpoint));
    let invocation = Invocation {
        options: options.clone(),
        ..site.request.invocation.clone()
    };
    let offered = RunOptions::FLAGS.iter();
    let switches = offered.filter_map(|flag| Some((flag.name, flag.page?, flag.is_given(options))));
    let data = context! {
        notice,
        text => crate::view::plan::text(Style::PLAIN, &plan, &invocation),
        is_idle,
        digest => plan.digest().to_string(),
        targets => options.targets.clone(),
        choices => value(choices(&plan, options)),
        command => invocation.same_run(),
        switches => value(switches.collect::<Vec<_>>()),
    };
    Ok(site.page("plan.html", "run", "Run", data)?)
}

/// Returns what can be selected: every stage, and the targets that are selected already.
fn choices<'a>(plan: &'a Plan, options: &'a RunOptions) -> Vec<(&'a str, bool)> {
    let is_chosen = |name: &str| options.targets.iter().any(|target| target == name);
    let stages = plan.stages.iter().map(|stage| stage.stage.as_str());
    let stages: Vec<(&str, bool)> = stages.map(|name| (name, is_chosen(name))).collect();
    let is_new = |target: &&str| !stages.iter().any(|(name, _)| name == target);
    let others = options.targets.iter().map(String::as_str).filter(is_new);
    let others: Vec<(&str, bool)> = others.map(|target| (target, true)).collect();
    [stages, others].concat()
}

/// Returns the options of a run. Unknown names are not options.
///
/// # Errors
/// If a value cannot be read.
fn options<'a>(
    targets: impl Iterator<Item = &'a str>,
    value: impl Fn(&str) -> Option<&'a str>,
) -> Result<RunOptions, WebError> {
    let targets = targets.filter(|target| !target.is_empty());
    let mut options = RunOptions {
        targets: targets.map(str::to_owned).collect(),
        ..RunOptions::default()
    };
    for flag in RunOptions::FLAGS.iter().filter(|flag| flag.page.is_some()) {
        if let Some(value) = value(flag.name) {
            let read = (flag.read)(&mut options, value);
            read.map_err(|error| WebError::Wrong(format!("`{}`: {error}", flag.name)))?;
        }
    }
    Ok(options)
}
