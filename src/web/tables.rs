//! Sortable columns and pages of tables.

use super::site::Site;
use serde::Serialize;

/// A column of a table, with the link that sorts by it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct SortColumn {
    title: &'static str,
    is_number: bool,
    href: String,
    /// `ascending` or `descending`, if the table is sorted by it.
    sorted: Option<&'static str>,
}

/// The columns of a table.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Columns(Vec<SortColumn>);

impl Columns {
    /// Creates columns of the name of the order, the title, and whether it is of numbers. The first one is the order without a
    /// parameter `order`. Numbers begin with the largest.
    pub(super) fn new(
        site: &Site,
        path: &str,
        parameters: &[(&str, &str)],
        columns: &[(&'static str, &'static str, bool)],
        descending: bool,
    ) -> Self {
        let order = parameters.iter().find(|(name, _)| *name == "order");
        let first = columns.first().map_or("", |column| column.0);
        let order = order.map_or(first, |(_, order)| *order);
        let column = |&(name, title, is_number): &(&'static str, &'static str, bool)| {
            let is_sorted = name == order;
            let next_descends = if is_sorted { !descending } else { is_number };
            let kept = parameters.iter().filter(|(name, _)| *name != "order");
            let mut parameters: Vec<(&str, &str)> = kept.copied().collect();
            parameters.push(("order", name));
            if next_descends {
                parameters.push(("descending", "1"));
            }
            let word = if descending {
                "descending"
            } else {
                "ascending"
            };
            SortColumn {
                title,
                is_number,
                href: site.url(path, &parameters),
                sorted: is_sorted.then_some(word),
            }
        };
        Self(columns.iter().map(column).collect())
    }
}

/// The pages of a table.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Pages {
    page: u64,
    of: u64,
    rows: u64,
    first: Option<String>,
    previous: Option<String>,
    next: Option<String>,
    last: Option<String>,
}

impl Pages {
    /// Creates links to the other pages of a table: the page, the number of pages, and the number of rows.
    pub(super) fn new(
        site: &Site,
        path: &str,
        parameters: &[(&str, &str)],
        (page, pages, rows): (u64, u64, u64),
    ) -> Self {
        let url = |page: u64| {
            let number = page.to_string();
            let mut parameters = parameters.to_vec();
            parameters.push(("page", &number));
            site.url(path, &parameters)
        };
        Self {
            page,
            of: pages,
            rows,
            first: (page > 2).then(|| url(1)),
            previous: (page > 1).then(|| url(page - 1)),
            next: (page < pages).then(|| url(page + 1)),
            last: (page + 1 < pages).then(|| url(pages)),
        }
    }
}
