//! Actions: a run starts only after its plan and cost were shown, and does exactly what they say.

use super::request::PageRequest;
use super::response::{PageResponse, WebError};
use super::site::Site;
use crate::page::value;
use crate::view::text::style::Style;
use crate::view::text::words::shell_word;
use milepost_core::base::digest::Digest;
use milepost_engine::ops;
use milepost_engine::ops::plan::Plan;
use milepost_engine::ops::run::RunOptions;
use minijinja::context;

/// The options of a run that a page offers, as they are named in URLs and forms.
const SWITCHES: [&str; 4] = ["failed", "keep_going", "force", "until_paid"];

/// Shows what a run would do and cost, with the button that starts it.
pub(super) fn plan(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let targets = request.query_all("target");
    let options = options(targets, |name| request.query(name).is_some());
    shown(site, &options, None)
}

/// Starts the run that was shown. If it would do something else by now, shows that instead.
pub(super) fn run(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let options = options(request.form_all("target"), |name| {
        request.form(name).is_some()
    });
    let plan = ops::plan::plan(&site.request, &options)?;
    if request.form("plan") != Some(digest(&plan).as_str()) {
        let why = "The plan has changed since it was shown. This is the new one.";
        return shown(site, &options, Some(why));
    }
    let mut words = words(&options);
    words.insert(0, "milepost run".to_owned());
    let mut request = site.request.clone();
    request.command = format!("{} (page)", words.join(" "));
    let started = site.runs.start(&request, options, &site.invocation);
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
    let plan = ops::plan::plan(&site.request, options)?;
    let is_idle = plan
        .stages
        .iter()
        .all(|stage| stage.skipped || (stage.is_idle() && !stage.checkpoint));
    let data = context! {
        notice,
        text => crate::view::plan::text(Style::PLAIN, &plan, &site.invocation),
        is_idle,
        digest => digest(&plan),
        targets => options.targets.clone(),
        choices => value(choices(&plan, options)),
        words => words(options).join(" "),
        switches => value([
            ("failed", options.failed),
            ("keep_going", options.keep_going),
            ("force", options.force),
            ("until_paid", options.until_paid),
        ]),
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
fn options<'a>(
    targets: impl Iterator<Item = &'a str>,
    is_set: impl Fn(&str) -> bool,
) -> RunOptions {
    let [failed, keep_going, force, until_paid] = SWITCHES.map(is_set);
    RunOptions {
        targets: targets
            .filter(|target| !target.is_empty())
            .map(str::to_owned)
            .collect(),
        failed,
        keep_going,
        force,
        until_paid,
        ..RunOptions::default()
    }
}

/// Returns the options as words of a command line.
fn words(options: &RunOptions) -> Vec<String> {
    let set = [
        options.failed,
        options.keep_going,
        options.force,
        options.until_paid,
    ];
    let names = SWITCHES.iter().zip(set).filter(|(_, set)| *set);
    let flags = names.map(|(name, _)| format!("--{}", name.replace('_', "-")));
    flags
        .chain(options.targets.iter().map(|target| shell_word(target)))
        .collect()
}

/// Returns the digest of a plan: a run that was shown is started only if it is still the same.
fn digest(plan: &Plan) -> String {
    let text = serde_json::to_string(plan).unwrap_or_default();
    Digest::of(text).to_string()
}
