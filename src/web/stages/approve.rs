//! Approves the batches of a stage that waits for a person, as they were shown with what they will cost.

use crate::view;
use crate::view::text::style::Style;
use crate::view::text::words::approval;
use crate::web::request::PageRequest;
use crate::web::response::{PageResponse, WebError};
use crate::web::review::reviewer::remember;
use crate::web::site::Site;
use milepost_core::base::digest::Digest;
use milepost_engine::ops;
use milepost_engine::ops::change::approve::{self, ApproveOptions};
use milepost_engine::ops::inspect::status::StageOverview;
use milepost_engine::ops::project::OpsError;
use milepost_engine::ops::run::RunOptions;
use serde::Serialize;

/// The form that approves a stage.
#[derive(Serialize)]
pub(in crate::web) struct ApprovalForm {
    stage: String,
    /// Who must approve how many batches.
    waits: String,
    /// The digest of these batches.
    shown: Digest,
    /// The plan of the stage, with its cost.
    plan: String,
}

/// Returns the form of a stage, if it waits for approval.
pub(in crate::web) fn form(
    site: &Site,
    stage: &StageOverview,
) -> Result<Option<ApprovalForm>, WebError> {
    let due = stage.due.as_ref();
    let Some(awaited) = due.and_then(|due| due.approval.as_ref()) else {
        return Ok(None);
    };
    // If the batches change after this, the plan shows others, and the approval is refused.
    let Some(shown) = approve::shown(&site.request, &stage.stage)? else {
        return Ok(None);
    };
    let options = RunOptions {
        targets: vec![stage.stage.clone()],
        ..RunOptions::default()
    };
    let plan = ops::plan::plan(&site.request, &options)?;
    Ok(Some(ApprovalForm {
        stage: stage.stage.clone(),
        waits: approval(awaited),
        shown,
        plan: view::plan::text(Style::PLAIN, &plan, &site.request.invocation),
    }))
}

/// Records the approval of a form: its stage, reason and name. If other batches wait by now, shows those instead.
pub(in crate::web) fn approve(
    site: &Site,
    request: &PageRequest,
) -> Result<PageResponse, WebError> {
    let missing = |name: &str| WebError::Wrong(format!("the form lacks the field `{name}`"));
    let stage = request.form("stage").ok_or_else(|| missing("stage"))?;
    let shown = request.form("shown").and_then(|shown| shown.parse().ok());
    let mut by = site.request.clone();
    by.command = format!("milepost approve {stage} (page)");
    let options = ApproveOptions {
        stages: vec![stage.to_owned()],
        why: request.form("why").unwrap_or_default().to_owned(),
        who: request.form("who").map(str::to_owned),
        expected: Some(shown.ok_or_else(|| missing("shown"))?),
    };
    let mut parameters = vec![("stage", stage)];
    match approve::approve(&by, &options) {
        Ok(_) => {}
        Err(OpsError::NotAsShown(_)) => {
            parameters.extend([("changed", "1"), ("why", options.why.as_str())]);
        }
        Err(error) => return Err(error.into()),
    }
    let shown = PageResponse::see(&site.url("stage", &parameters));
    Ok(remember(shown, request.form("who").unwrap_or_default()))
}
