//! Step `xlsx`: a workbook file over the scope of a stage, written as an Excel workbook.

mod chunks;
mod declared;
mod figures;
mod review;
mod rows;
mod sheet_rows;
mod write;

use std::io;

use jiff::tz::TimeZone;
use milepost_core::model::pipeline::Asset;
use milepost_formats::xlsx::XlsxInfo;

use super::batch_context::{BatchContext, StepReport, StepResult, parse_failure};
use super::cancel::CancellableSink;
use super::files;

#[cfg(debug_assertions)]
pub use declared::workbook_schema;
pub use declared::{Workbook, WorkbookError};
pub(crate) use review::{
    ReviewSheet, declared_columns, read_review, read_workbook_row, review_sheets,
};
pub(crate) use sheet_rows::SheetRows;
pub use write::{WrittenSheet, file_feed, write_workbook};

/// Writes the workbook that a workbook file describes.
///
/// # Errors
/// When the workbook file is wrong or an input cannot be read.
pub(crate) fn write(ctx: &mut BatchContext<'_>, out: &str, file: &Asset) -> StepResult {
    let workbook = Workbook::parse(file.path.as_str(), &file.text).map_err(parse_failure)?;
    let names = ctx.stage.scope_names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut compiled = workbook.compile(&names).map_err(parse_failure)?;
    compiled.leave_out(|name| ctx.scope.is_absent(name));
    let scope = ctx.scope.value_for(&compiled.names())?;
    let title = compiled.title(&scope, &*ctx.jq).map_err(parse_failure)?;
    let name = || {
        let workspace = ctx.base.get("workspace")?;
        workspace.get("name")?.as_str().map(str::to_owned)
    };
    let info = XlsxInfo {
        title: title.or_else(name).unwrap_or_default(),
        date: Some(ctx.moment.to_zoned(TimeZone::UTC).date()),
        scratch: Some(ctx.folder),
        rows_per_tab: None,
    };
    let mut feed = file_feed(|name: &str| {
        let source = ctx
            .scope
            .source(name)
            .ok_or_else(|| io::Error::other("expected one file"))?;
        source.open()
    });
    let mut bytes = io::Cursor::new(Vec::new());
    let guarded = CancellableSink::new(ctx.cancel, &mut bytes);
    write_workbook(
        &compiled,
        &scope,
        &mut feed,
        &info,
        &*ctx.jq,
        ctx.threads,
        guarded,
    )
    .map_err(parse_failure)?;
    drop(feed);
    files::put(ctx, out, bytes.get_ref())?;
    Ok(StepReport::default())
}
