//! The list of stages: what each does, its state, and what a run would do about it.

use crate::page::value;
use crate::web::response::{PageResponse, WebError};
use crate::web::site::Site;
use minijinja::context;

/// Shows the stages.
pub(in crate::web) fn stages(site: &Site) -> Result<PageResponse, WebError> {
    let now = site.live.overview()?;
    let data = context! {
        stages => value(&now.status.stages),
        is_running => now.status.runner.is_some(),
        at => now.at,
    };
    Ok(site.page("stages.html", "stages", "Stages", data)?)
}
