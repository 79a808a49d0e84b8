//! The corrections that the table has already for the fields of a review sheet.

use super::data::{ExistingCorrection, ItemName};
use crate::ops::change::corrections::Table;
use crate::ops::project::error::OpsError;
use crate::run::ReviewSheet;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The corrections that the table has for the fields of a sheet.
pub(super) struct Settled {
    /// The column of the table with the key.
    pub(super) key: String,
    by_item: HashMap<ItemName, BTreeMap<String, ExistingCorrection>>,
    /// How often each value was chosen for a field.
    chosen: HashMap<(String, String), u64>,
}

impl Settled {
    pub(super) fn of(table: &Table, sheet: &ReviewSheet<'_>) -> Result<Self, OpsError> {
        let mut fields = BTreeSet::new();
        for field in sheet.review.fields.values() {
            fields.insert(field.field());
        }
        let mut settled = Self {
            key: table.key()?,
            by_item: HashMap::new(),
            chosen: HashMap::new(),
        };
        table.each_row(&mut |line, (column, target), cells| {
            let field = cells.text("field");
            if !fields.contains(field.as_str()) {
                return;
            }
            let name = if column == settled.key {
                ItemName::Key(target)
            } else {
                ItemName::SharedKey(target)
            };
            let value = cells.text("value");
            *settled
                .chosen
                .entry((field.clone(), value.clone()))
                .or_default() += 1;
            let correction = ExistingCorrection {
                line,
                value,
                who: cells.text("who"),
                why: cells.text("why"),
            };
            let of_item = settled.by_item.entry(name).or_default();
            of_item.insert(field, correction);
        });
        Ok(settled)
    }

    /// Returns the corrections of an item, by field.
    pub(super) fn of_item(&self, name: &ItemName) -> Option<&BTreeMap<String, ExistingCorrection>> {
        self.by_item.get(name)
    }

    /// Returns how often people chose a value for a field.
    pub(super) fn chosen(&self, field: &str, value: &str) -> u64 {
        let key = (field.to_owned(), value.to_owned());
        self.chosen.get(&key).copied().unwrap_or_default()
    }

    /// Returns true if the table corrects a field of an item.
    pub(super) fn has(&self, name: &ItemName) -> bool {
        self.by_item.contains_key(name)
    }
}
