//! The timeline: who worked when, drawn for the run and the time that a person selects.

use super::request::PageRequest;
use super::response::{PageResponse, WebError};
use super::site::Site;
use crate::page::{timeline, value};
use crate::view::run::summary::shown;
use milepost_engine::ops::inspect::history::timeline::{Timeline, Window};
use milepost_engine::ops::inspect::history::{Run, timestamp};
use minijinja::context;
use serde::Serialize;

/// The width of the drawing in pixels. A screen shows it in the width that it has.
const WIDTH: u32 = 1000;

/// The most lanes that are drawn.
const LANES: usize = 60;

/// The most runs that can be selected: the latest in which batches ran.
const RUNS: usize = 50;

/// The shortest time that is drawn, in milliseconds.
const SHORTEST: i64 = 10;

/// The latest time that is drawn, in milliseconds since 1970: the end of the year 9999.
const LATEST: i64 = 253_402_300_800_000;

/// A run to select.
#[derive(Serialize)]
struct RunChoice {
    run: String,
    text: String,
    is_shown: bool,
}

/// A link to another part of the timeline.
#[derive(Serialize)]
struct ZoomLink {
    name: &'static str,
    href: String,
}

/// Shows the timeline of a run; without one, that of the last run.
pub(super) fn timeline(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let all = request.query("run") == Some("all");
    // What is no time, or one that no run can have, is left out.
    let at = |name: &str| {
        let at = request.query(name)?.parse::<i64>().ok()?;
        (0..LATEST).contains(&at).then_some(at)
    };
    let window = Window {
        run: request.query("run").filter(|_| !all).map(str::to_owned),
        from: at("from"),
        to: at("to"),
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
        from => drawn.from,
        to => drawn.to,
        is_empty => seen.runs.iter().all(|one| one.batches == 0),
        left => timeline::LABELS,
        width => WIDTH,
        left_out => drawn.left_out,
        drawing => timeline::element(drawn, "timeline", Some(&link)),
        steps => value(steps(site, run, drawn)),
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

/// Returns links to parts of the timeline beside the present one.
fn steps(site: &Site, run: Option<&str>, shown: &Timeline) -> Vec<ZoomLink> {
    let (from, to) = (shown.from, shown.to);
    let span = to.saturating_sub(from).max(SHORTEST);
    let step = |name: &'static str, from: i64, to: i64| {
        let (from, to) = (from.to_string(), to.to_string());
        let parameters = [("run", run.unwrap_or("all")), ("from", &from), ("to", &to)];
        ZoomLink {
            name,
            href: site.url("timeline", &parameters),
        }
    };
    let (half, quarter) = (span / 2, (span / 4).max(SHORTEST / 2));
    let (after, before) = (i64::saturating_add, i64::saturating_sub);
    let middle = after(from, to.saturating_sub(from) / 2);
    vec![
        step("Zoom in", before(middle, quarter), after(middle, quarter)),
        step("Zoom out", before(from, half), after(to, half)),
        step("Earlier", before(from, half), before(to, half)),
        step("Later", after(from, half), after(to, half)),
        ZoomLink {
            name: "Whole run",
            href: site.url("timeline", &[("run", run.unwrap_or("all"))]),
        },
    ]
}
