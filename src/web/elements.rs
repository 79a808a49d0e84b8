//! Elements: search by key or text, and the way of a value drawn from left to right.

use super::request::PageRequest;
use super::response::{PageResponse, WebError};
use super::site::Site;
use crate::page::value;
use crate::view::trace::{ShownStation, notes, stations};
use milepost_engine::ops::project::OpsError;
use milepost_engine::ops::trace::{
    FoundElements, StationKind, Trace, TraceOptions, find_elements, trace,
};
use minijinja::value::merge_maps;
use minijinja::{Value, context};
use serde::Serialize;

/// The most elements that a search lists.
const LISTED: usize = 50;

/// A station of the way, with a link to its file or batch.
#[derive(Serialize)]
struct LinkedStation {
    title: String,
    place: String,
    href: Option<String>,
    lines: Vec<(String, String)>,
    blocks: Vec<(String, String)>,
}

/// Searches an element, and draws its way.
pub(super) fn elements(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let what = request.query("what").unwrap_or_default();
    let field = request.query("field").unwrap_or_default();
    let nothing = context! { message => (), found => (), columns => () };
    let shown = if what.is_empty() {
        nothing
    } else {
        merge_maps([nothing, found(site, what, field, request)?])
    };
    let data = context! { what, field, ..shown };
    Ok(site.page("elements.html", "elements", "Elements", data)?)
}

/// Traces a key or a file; if it is neither, searches for the text in the records of the elements.
fn found(site: &Site, what: &str, field: &str, request: &PageRequest) -> Result<Value, WebError> {
    let given = |name: &str| request.query(name).map(str::to_owned);
    let options = TraceOptions {
        what: what.to_owned(),
        cell: given("cell"),
        pointer: given("pointer"),
        element: given("element"),
        field: (!field.is_empty()).then(|| field.to_owned()),
        confined: true,
    };
    let error = match trace(&site.request, &options) {
        Ok(traced) => return Ok(way(site, &traced)),
        Err(OpsError::Usage(error)) => error,
        Err(error) => return Err(error.into()),
    };
    let FoundElements { elements, more } = find_elements(&site.request, what, LISTED)?;
    Ok(match elements.len() {
        0 => context! { message => error },
        _ => context! {
            found_title => if more { format!("The first {LISTED} elements with this text") } else { "Elements with this text".to_owned() },
            found => value(elements),
        },
    })
}

/// Arranges the stations in columns: those that lead to a station are left of it.
fn way(site: &Site, traced: &Trace) -> Value {
    let all = stations(traced, &site.request.invocation);
    let mut depths: Vec<usize> = Vec::with_capacity(all.len());
    for station in &all {
        let depth = station
            .to
            .and_then(|to| depths.get(to))
            .map_or(0, |depth| depth + 1);
        depths.push(depth);
    }
    let last = depths.iter().copied().max().unwrap_or(0);
    let mut columns: Vec<Vec<LinkedStation>> = Vec::new();
    columns.resize_with(last + 1, Vec::new);
    for ((station, depth), traced) in all.into_iter().zip(depths).zip(&traced.stations) {
        let href = match (&traced.about, &traced.file) {
            (StationKind::Batch(batch), _) => {
                Some(site.url("batch", &[("stage", &batch.stage), ("batch", &batch.batch)]))
            }
            (_, Some(file)) => Some(site.url("file", &[("path", &file.path)])),
            _ => None,
        };
        let ShownStation {
            title,
            place,
            lines,
            blocks,
            ..
        } = station;
        columns[last - depth].push(LinkedStation {
            title,
            place,
            href,
            lines,
            blocks,
        });
    }
    let question = &traced.question;
    let title = match (&question.key, &question.field) {
        (Some(key), Some(field)) => format!("{field} of {key}"),
        (Some(key), None) => key.clone(),
        (None, _) => question.what.clone(),
    };
    context! { title, columns => value(columns), notes => notes(traced) }
}
