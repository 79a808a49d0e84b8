//! Approves the batches of a stage that waits for a person.

use crate::web::request::PageRequest;
use crate::web::response::{PageResponse, WebError};
use crate::web::site::Site;
use milepost_engine::ops::change::approve::{self, ApproveOptions};

/// Records the approval of a form: its stage, reason and name.
pub(in crate::web) fn approve(
    site: &Site,
    request: &PageRequest,
) -> Result<PageResponse, WebError> {
    let missing = || WebError::Wrong("the form lacks the field `stage`".to_owned());
    let stage = request.form("stage").ok_or_else(missing)?;
    let mut by = site.request.clone();
    by.command = format!("milepost approve {stage} (page)");
    let options = ApproveOptions {
        stages: vec![stage.to_owned()],
        why: request.form("why").unwrap_or_default().to_owned(),
        who: request.form("who").map(str::to_owned),
    };
    approve::approve(&by, &options)?;
    Ok(PageResponse::see(&site.url("stage", &[("stage", stage)])))
}
