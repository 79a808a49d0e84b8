//! `clean` and `gc` as text: the removed files.

use crate::view::run::notice::kept;
use crate::view::text::style::Style;
use crate::view::text::table::{Side, table};
use crate::view::text::words::{count, grouped};
use milepost_core::base::visible::visible;
use milepost_engine::ops::change::clean::Cleaned;
use milepost_engine::ops::change::gc::Collected;

/// The most removed files that are listed; a dry run lists all.
const LISTED: usize = 20;

/// Returns the outputs that `clean` removed.
pub fn clean(data: &Cleaned) -> String {
    let mut text = String::new();
    let all = if data.dry_run {
        data.removed.len()
    } else {
        LISTED
    };
    for path in data.removed.iter().take(all) {
        text.push_str(&format!("  {}\n", visible(path)));
    }
    if data.removed.len() > all {
        let more = (data.removed.len() - all) as u64;
        text.push_str(&format!("  and {} more\n", grouped(more)));
    }
    for path in data.altered.iter().filter(|_| data.dry_run) {
        text.push_str(&format!(
            "  {}  (modified by hand: goes to quarantine)\n",
            visible(path)
        ));
    }
    let verb = if data.dry_run {
        "would be removed"
    } else {
        "removed"
    };
    text.push_str(&format!(
        "{} {verb}, {} bytes\n",
        count(data.removed.len() as u64, "file", "files"),
        grouped(data.bytes)
    ));
    for line in kept(Style::PLAIN, &data.quarantined) {
        text.push_str(&line);
        text.push('\n');
    }
    text + &left(&data.left)
}

/// Returns the files that `gc` removed.
pub fn gc(data: &Collected) -> String {
    let rows: Vec<Vec<String>> = data
        .removed
        .iter()
        .map(|one| {
            vec![
                one.kind.clone(),
                count(one.files, "file", "files"),
                format!("{} bytes", grouped(one.bytes)),
                one.path.clone(),
            ]
        })
        .collect();
    let sides = [Side::Left, Side::Right, Side::Right, Side::Left];
    let verb = if data.dry_run {
        "would be freed"
    } else {
        "freed"
    };
    format!(
        "{}{}{} bytes {verb}\n",
        table(&sides, &rows),
        left(&data.left),
        grouped(data.bytes)
    )
}

fn left(lines: &[String]) -> String {
    let lines = lines.iter();
    lines
        .map(|line| format!("left: {}\n", visible(line)))
        .collect()
}
