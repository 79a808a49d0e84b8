//! The timeline: when stages and agents worked, drawn for the run that a person selects.

use super::request::PageRequest;
use super::response::{PageResponse, WebError};
use super::site::Site;
use crate::page::{timeline, value};
use crate::view::run::summary::shown;
use milepost_engine::ops::inspect::history::timeline::Window;
use milepost_engine::ops::inspect::history::{Run, timestamp};
use minijinja::context;
use serde::Serialize;

/// The width of the drawing in pixels. A screen shows it in the width that it has.
const WIDTH: u32 = 1000;

/// The most lanes that are drawn.
const LANES: usize = 60;

/// The most runs that can be selected: the latest in which batches ran.
const RUNS: usize = 50;

/// A run to select.
#[derive(Serialize)]
struct RunChoice {
    run: String,
    text: String,
    is_shown: bool,
}

/// Shows the timeline of a run; without one, that of the last run.
pub(super) fn timeline(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let all = request.query("run") == Some("all");
    let window = Window {
        run: request.query("run").filter(|_| !all).map(str::to_owned),
        width: WIDTH,
        lanes: LANES,
        ..Window::default()
    };
    let seen = site.live.timeline(window, !all)?;
    let run = seen.run.as_deref();
    let link = |stage: &str, batch: &str| site.url("batch", &[("stage", stage), ("batch", batch)]);
    let runs: Vec<RunChoice> = seen
        .runs
        .iter()
        .rev()
        .filter(|one| one.batches > 0 || one.status.is_none() || Some(one.run.as_str()) == run)
        .take(RUNS)
        .map(|one| choice(one, run))
        .collect();
    let drawn = &seen.timeline;
    let data = context! {
        at => seen.at,
        runs => value(runs),
        is_all => run.is_none(),
        is_empty => seen.runs.iter().all(|one| one.batches == 0),
        left_out => drawn.left_out,
        drawing => timeline::element(drawn, "timeline", Some(&link)),
    };
    Ok(site.page("timeline.html", "timeline", "Timeline", data)?)
}

fn choice(run: &Run, selected: Option<&str>) -> RunChoice {
    let begin = crate::view::text::table::time(timestamp(run.from));
    let end = run.status.as_deref().map_or("not ended", shown);
    RunChoice {
        text: format!("{begin}: {end} ({})", run.command),
        is_shown: Some(run.run.as_str()) == selected,
        run: run.run.clone(),
    }
}
