//! The items of a review sheet, one at a time.

use super::reviewer::{remember, reviewer};
use crate::page::value;
use crate::web::request::PageRequest;
use crate::web::response::{PageResponse, WebError};
use crate::web::site::Site;
use hyper::StatusCode;
use milepost_engine::ops::change::review::{
    FieldDecision, ItemName, ReviewDecision, ReviewItem, ReviewList, ReviewOptions, correct,
    review_list,
};
use milepost_engine::ops::project::OpsError;
use minijinja::context;
use serde::Serialize;
use std::collections::BTreeMap;

/// The alternatives that have a number key.
const NUMBERED: usize = 9;

/// Which item a page shows, by the parameters of its URL.
struct Shown {
    sheet: Option<String>,
    /// The place among the open items.
    place: u64,
    /// The item to show, in any place of the list.
    item: Option<ItemName>,
}

/// The values of a form, and their problems.
#[derive(Default, Serialize)]
struct Filled {
    /// Selected values, by header.
    chosen: BTreeMap<String, String>,
    /// Typed values, by header.
    written: BTreeMap<String, String>,
    who: String,
    why: String,
    /// Problems by header; those of the whole form under an empty header.
    problems: BTreeMap<String, Vec<String>>,
}

/// Shows an item.
pub(in crate::web) fn review(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let shown = Shown::of(|name| request.query(name))?;
    let filled = Filled {
        who: reviewer(site, request),
        ..Filled::default()
    };
    page(site, &shown, &filled, request)
}

/// Saves the decision on an item, and goes to the next one.
pub(in crate::web) fn decide(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let shown = Shown::of(|name| request.form(name))?;
    let item = shown.item.clone();
    let item = item.ok_or_else(|| WebError::Wrong("expected the name of an item".to_owned()))?;
    let mut filled = Filled::of(request);
    let decision = ReviewDecision {
        sheet: shown.sheet.clone(),
        item: item.clone(),
        fields: filled.decisions(),
        who: Some(filled.who.clone()),
        why: filled.why.clone(),
    };
    if filled.problems.is_empty() {
        let mut by = site.request.clone();
        "milepost import-review (page)".clone_into(&mut by.command);
        match correct(&by, &decision) {
            Ok(corrected) => {
                let saved = corrected.added.len() + corrected.known.len();
                let saved = saved.to_string();
                let place = shown.place.to_string();
                let (kind, name) = parameter(&item);
                let last = format!("last_{kind}");
                let mut parameters = vec![("place", place.as_str()), ("saved", &saved)];
                parameters.push((&last, name));
                parameters.extend(shown.sheet.as_deref().map(|sheet| ("sheet", sheet)));
                let next = PageResponse::see(&site.url("review", &parameters));
                return Ok(remember(next, &filled.who));
            }
            Err(OpsError::NotImported(problems)) => filled.refuse(problems),
            // There is no such item, so its form cannot be shown again.
            Err(error @ OpsError::Usage(_)) => return Err(error.into()),
            Err(error) => filled.refuse(vec![error.to_string()]),
        }
    }
    let again = page(site, &shown, &filled, request)?;
    Ok(again.with_status(StatusCode::UNPROCESSABLE_ENTITY))
}

impl Shown {
    /// Reads the parameters of a URL or form.
    fn of<'a>(parameter: impl Fn(&'static str) -> Option<&'a str>) -> Result<Self, WebError> {
        let place = parameter("place").unwrap_or("0").parse();
        let key = parameter("key").map(|key| ItemName::Key(key.to_owned()));
        let shared = parameter("shared").map(|key| ItemName::SharedKey(key.to_owned()));
        Ok(Self {
            sheet: parameter("sheet").map(str::to_owned),
            place: place
                .map_err(|_| WebError::Wrong("`place`: expected a number, from 0".to_owned()))?,
            item: key.or(shared),
        })
    }

    /// Reads the list with the item.
    fn read(&self, site: &Site) -> Result<Option<ReviewList>, OpsError> {
        let options = ReviewOptions {
            sheet: self.sheet.clone(),
            offset: self.place,
            limit: 1,
            open_only: true,
            item: self.item.clone(),
        };
        review_list(&site.request, &options)
    }
}

impl Filled {
    fn of(request: &PageRequest) -> Self {
        let mut filled = Self {
            who: request.form("who").unwrap_or_default().trim().to_owned(),
            why: request.form("why").unwrap_or_default().to_owned(),
            ..Self::default()
        };
        for header in request.form_all("field") {
            let of_field = |kind: &str| request.form(&format!("{kind}:{header}"));
            if let Some(chosen) = of_field("choice") {
                filled.chosen.insert(header.to_owned(), chosen.to_owned());
            }
            if let Some(written) = of_field("other") {
                filled.written.insert(header.to_owned(), written.to_owned());
            }
        }
        filled
    }

    /// Returns the decisions on fields. A field with two different values is a problem.
    fn decisions(&mut self) -> BTreeMap<String, FieldDecision> {
        let mut decisions = BTreeMap::new();
        for (header, written) in &self.written {
            decisions.insert(header.clone(), FieldDecision::Value(written.clone()));
        }
        for (header, chosen) in &self.chosen {
            let decision = match chosen.strip_prefix("value:") {
                Some(value) => FieldDecision::Value(value.to_owned()),
                None => FieldDecision::Keep,
            };
            if let Some(other) = decisions.insert(header.clone(), decision.clone())
                && other != decision
            {
                let problem = "expected one value, found a choice and another value: remove one";
                let of_field = self.problems.entry(header.clone()).or_default();
                of_field.push(problem.to_owned());
            }
        }
        decisions
    }

    /// Sorts what is wrong by the headers that it begins with.
    fn refuse(&mut self, problems: Vec<String>) {
        for problem in problems {
            let fields = self.chosen.keys().chain(self.written.keys());
            let named = fields.filter_map(|header| {
                let rest = problem.strip_prefix(header.as_str())?;
                Some((header.clone(), rest.strip_prefix(": ")?.to_owned()))
            });
            // A header can begin with another.
            let named = named.max_by_key(|(header, _)| header.len());
            let (header, text) = named.unwrap_or((String::new(), problem));
            self.problems.entry(header).or_default().push(text);
        }
    }
}

fn page(
    site: &Site,
    shown: &Shown,
    filled: &Filled,
    request: &PageRequest,
) -> Result<PageResponse, WebError> {
    let list = shown.read(site)?;
    let item = list.as_ref().and_then(|list| list.items.first());
    let is_settled = item.is_some_and(is_settled);
    let total = list.as_ref().map_or(0, |list| list.total);
    let place = item.map_or(shown.place, |item| item.place);
    let sheet = shown.sheet.as_deref().map(|sheet| ("sheet", sheet));
    let at = |place: u64| {
        let place = place.to_string();
        let mut parameters = vec![("place", place.as_str())];
        parameters.extend(sheet);
        site.url("review", &parameters)
    };
    let next = if is_settled {
        place
    } else {
        place.saturating_add(1)
    };
    // The item that was decided last is open no more: it has a URL of its own.
    let last = ["key", "shared"].into_iter().find_map(|kind| {
        let name = request.query(&format!("last_{kind}"))?;
        let mut parameters = vec![(kind, name)];
        parameters.extend(sheet);
        Some(site.url("review", &parameters))
    });
    let before = place.min(total).checked_sub(1);
    let title = match item {
        Some(_) if !is_settled => format!("Review {} of {total}", place.saturating_add(1)),
        _ => "Review".to_owned(),
    };
    let name = item.map(|item| parameter(&item.name));
    let data = context! {
        list => value(&list),
        item => value(item),
        item_kind => name.map(|(kind, _)| kind),
        item_name => name.map(|(_, name)| name),
        is_settled,
        is_gone => shown.item.is_some() && item.is_none(),
        place,
        numbered => NUMBERED,
        filled => value(filled),
        saved => request.query("saved").and_then(|saved| saved.parse::<u64>().ok()),
        next => (next < total).then(|| at(next)),
        previous => last.or_else(|| before.map(at)),
        first => at(0),
    };
    Ok(site.page("review.html", "review", &title, data)?)
}

/// Returns true if the table has a correction for the item.
fn is_settled(item: &ReviewItem) -> bool {
    item.fields.iter().any(|field| field.correction.is_some())
}

/// Returns the parameter of URLs and forms that names an item.
fn parameter(item: &ItemName) -> (&'static str, &str) {
    match item {
        ItemName::Key(name) => ("key", name),
        ItemName::SharedKey(name) => ("shared", name),
    }
}
