//! The stages that wait for approval, and what else needs a person.

use super::reviewer::reviewer;
use crate::page::value;
use crate::web::overview::needs;
use crate::web::request::PageRequest;
use crate::web::response::{PageResponse, WebError};
use crate::web::site::Site;
use crate::web::stages::approve;
use minijinja::context;

/// Shows the form of each stage that waits for approval.
pub(in crate::web) fn approvals(
    site: &Site,
    request: &PageRequest,
) -> Result<PageResponse, WebError> {
    let now = site.live.overview()?;
    let mut forms = Vec::new();
    for stage in &now.status.stages {
        forms.extend(approve::form(site, stage)?);
    }
    let stages = now.status.stages.iter();
    let others = stages.flat_map(|stage| needs(site, stage));
    let others: Vec<_> = others.filter(|need| need.kind != "approval").collect();
    let data = context! {
        forms => value(forms),
        others => value(others),
        is_checked => now.is_checked,
        who => reviewer(site, request),
        at => now.at,
    };
    let page = site.page("approvals.html", "review", "Stages to approve", data)?;
    Ok(page)
}
