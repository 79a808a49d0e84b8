//! `accept` as text: what was pinned, adopted and written again.

use super::notice::kept;
use super::paint::Paint;
use super::reason::change;
use super::words::place;
use milepost_engine::ops::change::accept::Accepted;

/// What was accepted.
pub fn accept(data: &Accepted) -> String {
    let mut text = String::new();
    for pinned in &data.pinned {
        text.push_str(&format!(
            "pinned   {} of {} ({}… → {}…)\n",
            pinned.path,
            place(&pinned.stage, &pinned.batch),
            pinned.old.short(),
            pinned.new.short()
        ));
    }
    for adopted in &data.adopted {
        for one in &adopted.changes {
            text.push_str(&format!(
                "adopted  {}: {}\n",
                place(&adopted.stage, &adopted.batch),
                change(one)
            ));
        }
    }
    for checkpoint in &data.checkpoints {
        text.push_str(&format!("written  {checkpoint}\n"));
    }
    for line in kept(Paint::PLAIN, &data.quarantined) {
        text.push_str(&line);
        text.push('\n');
    }
    if text.is_empty() {
        "nothing to accept\n".to_owned()
    } else {
        text
    }
}
