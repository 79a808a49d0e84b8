//! A stage: what it does, its state, what a run would do and why, and the table of its batches.

use super::due::DueBatches;
use crate::page::value;
use crate::view;
use crate::view::text::overrides::approved;
use crate::web::request::PageRequest;
use crate::web::response::{PageResponse, WebError};
use crate::web::review::reviewer::reviewer;
use crate::web::site::Site;
use crate::web::stages::approve;
use crate::web::tables::{Columns, Pages};
use milepost_engine::ops;
use milepost_engine::ops::change::approve::last;
use milepost_engine::ops::inspect::batches::{BatchOrder, BatchQuery, BatchStatus};
use milepost_engine::ops::inspect::live::Overview;
use milepost_engine::ops::why::Why;
use minijinja::{Value, context};

/// The most batches of a stage whose reasons are on its page. Those of more take time, and are a page of their own.
const EXPLAINED: u64 = 1_000;

/// The most outputs that are listed.
const OUTPUTS: usize = 60;

/// The parameters that select batches, beside `page`.
const PARAMETERS: [&str; 4] = ["stage", "text", "status", "order"];

/// The statuses by which batches are filtered, with their words.
const STATUSES: [(BatchStatus, &str); 5] = [
    (BatchStatus::Failed, "failed"),
    (BatchStatus::Running, "running"),
    (BatchStatus::Retrying, "retrying"),
    (BatchStatus::Unfinished, "unfinished"),
    (BatchStatus::Complete, "built"),
];

/// The columns of the table.
const COLUMNS: [(&str, &str, bool); 7] = [
    ("name", "Batch", false),
    ("status", "Last attempt", false),
    ("run", "Run", false),
    ("duration", "Duration", true),
    ("attempts", "Attempts", true),
    ("elements", "Elements", true),
    ("cost", "Cost", true),
];

/// Shows a stage.
pub(in crate::web) fn stage(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let name = request.required("stage")?;
    let query = BatchQuery {
        name: None,
        text: request.query("text").map(str::to_owned),
        status: request.choice::<BatchStatus>("status")?,
        order: request.choice::<BatchOrder>("order")?.unwrap_or_default(),
        descending: request.query("descending").is_some(),
        page: request.number("page")?.unwrap_or(1),
    };
    let page = site.live.batches(name, &query)?;
    let now = site.live.overview()?;
    let stages = now.status.stages.iter().zip(&now.graph.stages);
    let Some((stage, declared)) = stages.clone().find(|(stage, _)| stage.stage == name) else {
        // A stage has several names, such as its number; its page has one.
        let (stage, _) = stages
            .into_iter()
            .find(|(stage, _)| stage.number.to_string() == name)
            .ok_or_else(|| WebError::Wrong(format!("there is no stage `{name}`")))?;
        return Ok(PageResponse::see(
            &site.url("stage", &[("stage", &stage.stage)]),
        ));
    };
    let parameters = request.parameters(&PARAMETERS);
    let with_order = request.parameters(&["stage", "text", "status", "order", "descending"]);
    let due = stage.due.as_ref();
    let data = context! {
        stage => value(stage),
        declared => value(declared),
        outputs => value(site.live.stage_outputs(name, OUTPUTS)?),
        edges => value(now.graph.edges.iter().filter(|edge| edge.to == name).collect::<Vec<_>>()),
        due => due.map(|due| view::status::due_text(stage, due, &now.status, &site.request.invocation)),
        approval => value(approve::form(site, stage)?),
        approved => last(&site.request, name)?.as_ref().map(approved),
        who => reviewer(site, request),
        reason => request.query("why"),
        has_changed => request.query("changed").is_some(),
        why => why(site, &now, name, request.query("text"))?,
        is_running => now.status.runner.is_some(),
        is_checked => now.is_checked,
        totals => value(page.totals),
        rows => value(&page.rows),
        columns => value(Columns::new(site, "stage", &parameters, &COLUMNS, query.descending)),
        pages => value(Pages::new(site, "stage", &with_order, (page.page, page.pages, page.matching))),
        statuses => value(STATUSES.map(|(status, word)| (status, word, query.status == Some(status)))),
        text => query.text,
        is_filtered => query.status.is_some() || request.query("text").is_some(),
        order => request.query("order"),
        descending => query.descending,
        at => now.at,
    };
    Ok(site.page("stage.html", "stages", name, data)?)
}

/// Returns the text of `why`, if a run would do something and there are not many batches. Otherwise, only whether it has its own page.
fn why(site: &Site, now: &Overview, name: &str, contains: Option<&str>) -> Result<Value, WebError> {
    let stage = now.status.stages.iter().find(|stage| stage.stage == name);
    let due = stage.and_then(|stage| stage.due.as_ref());
    let (Some(stage), Some(_), None) = (stage, due, &now.status.runner) else {
        return Ok(context! { text => (), batches => (), has_page => false });
    };
    let is_short = stage.batches.is_some_and(|batches| batches <= EXPLAINED);
    if !is_short {
        return Ok(context! { text => (), batches => (), has_page => true });
    }
    let why = ops::why::why(&site.request, name)?;
    let batches = match &why {
        Why::Stage(stage) => DueBatches::of(stage, contains),
        Why::Batch(_) | Why::File(_) => None,
    };
    Ok(context! { text => view::why::why(&why), batches => value(batches), has_page => false })
}
