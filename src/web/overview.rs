//! The overview: the stages as a graph, what runs now, what needs a person, and what happened last.

use super::response::{PageResponse, WebError};
use super::site::Site;
use crate::page::{self, value};
use crate::view::status::last_end;
use crate::view::text::words::{
    NAMED, approval, awaits, batches, count, needs_money, place, some_of,
};
use milepost_core::model::event::{Event, Record};
use milepost_engine::ops::inspect::live::OpenReview;
use milepost_engine::ops::inspect::status::StageOverview;
use minijinja::context;
use serde::Serialize;

/// The latest events that are shown.
const SHOWN: usize = 15;

/// The most outputs that are listed.
const OUTPUTS: usize = 12;

/// A thing that needs a person.
#[derive(Serialize)]
pub(super) struct Need {
    /// The class of its mark.
    pub(super) kind: &'static str,
    word: &'static str,
    place: String,
    text: String,
    href: Option<String>,
}

/// The most failed batches that are listed for a stage.
const LISTED: usize = 5;

/// Shows the overview.
pub(super) fn overview(site: &Site) -> Result<PageResponse, WebError> {
    let now = site.live.overview()?;
    let stages = now.status.stages.iter();
    let of_stages = stages.flat_map(|stage| needs(site, stage));
    let of_review = now.review.iter().flat_map(|review| reviews(site, *review));
    let needs: Vec<Need> = of_stages.chain(of_review).collect();
    let data = context! {
        status => value(&*now.status),
        last_word => last_end(&now.status),
        needs => value(needs),
        outputs => value(site.live.results(OUTPUTS)?),
        graph => page::graph::element(&now.graph, &|stage| site.url("stage", &[("stage", stage)])),
        is_checked => now.is_checked,
        running => value(&now.running),
        more_running => now.more_running,
        latest => value(now.latest.iter().rev().filter(|record| !is_internal(record)).take(SHOWN).collect::<Vec<_>>()),
        at => now.at,
    };
    Ok(site.page("overview.html", "overview", "Overview", data)?)
}

/// Returns true for a record that tells people nothing.
fn is_internal(record: &Record) -> bool {
    matches!(
        record.event,
        Event::Barrier | Event::Sealed { .. } | Event::ChildStarted(_)
    )
}

/// Returns what waits for a review.
fn reviews(site: &Site, review: OpenReview) -> Vec<Need> {
    let need = |word, text, page| Need {
        kind: "review",
        word,
        place: "Review".to_owned(),
        text,
        href: Some(site.url(page, &[])),
    };
    let mut needs = Vec::new();
    if review.items > 0 {
        let items = count(review.items, "item needs", "items need");
        needs.push(need("review", format!("{items} review"), "review"));
    }
    if review.is_unapplied {
        let text = "corrections are saved, and no run has applied them yet".to_owned();
        needs.push(need("apply", text, "plan"));
    }
    needs
}

/// Returns what needs a person in a stage.
pub(super) fn needs(site: &Site, stage: &StageOverview) -> Vec<Need> {
    let name = stage.stage.as_str();
    let of_stage = |kind, word, text: String| Need {
        kind,
        word,
        place: name.to_owned(),
        text,
        href: Some(site.url("stage", &[("stage", name)])),
    };
    let mut needs: Vec<Need> = Vec::new();
    for failed in stage.failed.iter().take(LISTED) {
        needs.push(Need {
            place: place(name, &failed.batch),
            href: Some(site.url("batch", &[("stage", name), ("batch", &failed.batch)])),
            ..of_stage("failed", "failed", failed.outcome.clone())
        });
    }
    if stage.failed.len() > LISTED {
        let more = (stage.failed.len() - LISTED) as u64;
        needs.push(of_stage(
            "failed",
            "failed",
            format!("{} more", batches(more)),
        ));
    }
    let Some(due) = &stage.due else {
        return needs;
    };
    if !due.altered.is_empty() {
        let files = some_of(due.altered.iter().map(String::as_str), NAMED);
        needs.push(of_stage(
            "modified",
            "modified",
            format!("modified by hand: {files}"),
        ));
    }
    if let Some(awaited) = &due.approval {
        needs.push(of_stage("waiting", "waiting", approval(awaited)));
    }
    if let Some(awaited) = &due.awaits {
        needs.push(of_stage("waiting", "waiting", awaits(awaited)));
    }
    if let Some(awaited) = &due.money {
        needs.push(of_stage("waiting", "waiting", needs_money(awaited)));
    }
    if let Some(problem) = &due.problem {
        needs.push(of_stage("failed", "cannot run", problem.clone()));
    }
    needs
}
