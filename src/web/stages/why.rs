//! Why a stage, a batch or a file is in its present state, in the words of `why`.

use crate::view;
use crate::web::request::PageRequest;
use crate::web::response::{PageResponse, WebError};
use crate::web::site::Site;
use milepost_engine::ops;
use minijinja::context;

/// Shows the explanation of `of`.
pub(in crate::web) fn why(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let of = request.required("of")?;
    let found = ops::why::why(&site.request, of)?;
    let data = context! { of, text => view::why::why(&found) };
    Ok(site.page("why.html", "stages", &format!("Why {of}"), data)?)
}
