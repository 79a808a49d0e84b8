//! The changes between two revisions as text: counts and quantities by group, then the records that differ.

use crate::view::text::table::{Side, table};
use crate::view::text::words::{count, grouped, shortened};
use milepost_core::base::visible::visible;
use milepost_engine::ops::inspect::revision::Revision;
use milepost_engine::steps::diff::{ChangeKind, GroupChange, QuantityChange, RecordChange};
use serde_json::Value;

/// The most characters that are shown of a value.
const SHOWN: usize = 60;

/// Returns the changes, or that there are none.
pub(super) fn revision(revision: &Revision) -> String {
    let all = &revision.totals;
    let mut text = format!(
        "\n{} before, {} after: {} added, {} removed, {} changed, {} unchanged\n",
        count(all.before, "record", "records"),
        grouped(all.after),
        grouped(all.added),
        grouped(all.removed),
        grouped(all.changed),
        grouped(all.unchanged)
    );
    let groups: Vec<&GroupChange> = all
        .groups
        .iter()
        .filter(|group| has_changes(group))
        .collect();
    if groups.is_empty() {
        return text;
    }
    text.push('\n');
    text.push_str(&counts(&groups));
    let sums = sums(&groups);
    if !sums.is_empty() {
        text.push('\n');
        text.push_str(&sums);
    }
    for kind in [ChangeKind::Changed, ChangeKind::Added, ChangeKind::Removed] {
        text.push_str(&listed(revision, kind));
    }
    text
}

fn has_changes(group: &GroupChange) -> bool {
    let has_differences = group.quantities.iter().any(differs);
    has_differences || group.before + group.after > 2 * group.unchanged
}

fn differs(sum: &QuantityChange) -> bool {
    sum.difference != Some(0.0)
}

fn counts(groups: &[&GroupChange]) -> String {
    let heads = [
        "",
        "before",
        "after",
        "added",
        "removed",
        "changed",
        "moved in",
        "moved out",
        "unchanged",
    ];
    let numbers = |group: &GroupChange| {
        [
            group.before,
            group.after,
            group.added,
            group.removed,
            group.changed,
            group.moved_in,
            group.moved_out,
            group.unchanged,
        ]
    };
    let has_moved = groups
        .iter()
        .any(|group| group.moved_in + group.moved_out > 0);
    let is_shown = |column: usize| has_moved || !matches!(column, 6 | 7);
    let row = |cells: Vec<String>| -> Vec<String> {
        let cells = cells.into_iter().enumerate();
        cells
            .filter(|(column, _)| is_shown(*column))
            .map(|(_, cell)| cell)
            .collect()
    };
    let mut rows = vec![row(heads.map(str::to_owned).to_vec())];
    for group in groups {
        let mut cells = vec![group.group.clone()];
        cells.extend(numbers(group).map(grouped));
        rows.push(row(cells));
    }
    let sides: Vec<Side> = (0..rows[0].len())
        .map(|column| if column == 0 { Side::Left } else { Side::Right })
        .collect();
    table(&sides, &rows)
}

/// Returns the quantities whose sums differ.
fn sums(groups: &[&GroupChange]) -> String {
    let mut rows = vec![
        ["", "", "before", "after", "difference"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for group in groups {
        let differing = group.quantities.iter().filter(|sum| differs(sum));
        rows.extend(differing.map(|sum| {
            vec![
                group.group.clone(),
                sum.quantity.clone(),
                sum.before.map_or_else(unknown, amount),
                sum.after.map_or_else(unknown, amount),
                sum.difference.map_or_else(unknown, signed),
            ]
        }));
    }
    if rows.len() == 1 {
        return String::new();
    }
    table(
        &[
            Side::Left,
            Side::Left,
            Side::Right,
            Side::Right,
            Side::Right,
        ],
        &rows,
    )
}

fn unknown() -> String {
    "–".to_owned()
}

/// Formats a sum with thousands separators and three decimals: `1,234.500`.
fn amount(number: f64) -> String {
    let text = format!("{:.3}", number.abs());
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, "000"));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    let sign = if number < 0.0 { "-" } else { "" };
    format!("{sign}{whole}.{decimals}")
}

fn signed(number: f64) -> String {
    let sign = if number > 0.0 { "+" } else { "" };
    format!("{sign}{}", amount(number))
}

fn listed(revision: &Revision, kind: ChangeKind) -> String {
    let of_kind = revision
        .changes
        .iter()
        .filter(|change| change.change == kind);
    let of_kind: Vec<&RecordChange> = of_kind.collect();
    let sign = match kind {
        ChangeKind::Changed => '~',
        ChangeKind::Added => '+',
        ChangeKind::Removed => '-',
    };
    let mut text = String::new();
    for change in &of_kind {
        let fields = change.to.as_ref().or(change.from.as_ref());
        let name = fields.and_then(|fields| fields.get("name")?.as_str());
        let name = name.map_or_else(String::new, |name| format!("  {}", visible(name)));
        let (key, group) = (visible(&change.key), visible(&change.group));
        text.push_str(&format!("{sign} {key}  {group}{name}\n"));
        for field in &change.differs {
            let of = |side: &Option<serde_json::Map<String, Value>>| {
                let found = side.as_ref().and_then(|side| side.get(field));
                value(found.unwrap_or(&Value::Null))
            };
            let (from, to) = (of(&change.from), of(&change.to));
            text.push_str(&format!("      {}: {from} → {to}\n", visible(field)));
        }
    }
    let more = revision.count(kind) - of_kind.len() as u64;
    if more > 0 {
        text.push_str(&format!("{sign} and {} more\n", grouped(more)));
    }
    if text.is_empty() {
        text
    } else {
        format!("\n{text}")
    }
}

/// Returns a value for people: text without quotes, null as a dash, numbers with at most six decimals.
fn value(value: &Value) -> String {
    let text = match value {
        Value::Null => return unknown(),
        Value::String(text) => visible(text).into_owned(),
        Value::Number(number) if number.is_f64() => {
            let exact = number.as_f64().unwrap_or_default();
            ((exact * 1e6).round() / 1e6).to_string()
        }
        other => visible(&other.to_string()).into_owned(),
    };
    shortened(text, SHOWN)
}

#[cfg(test)]
mod tests {
    use super::{amount, signed};

    #[test]
    fn sums_have_separators_and_signs() {
        assert_eq!(amount(1_234_567.891_2), "1,234,567.891");
        assert_eq!(amount(-0.5), "-0.500");
        assert_eq!(signed(2.0), "+2.000");
        assert_eq!(signed(-1_000.0), "-1,000.000");
    }
}
