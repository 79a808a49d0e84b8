//! `accept` as text: the accepted outputs and changes.

use crate::view::run::notice::kept;
use crate::view::text::reason::change;
use crate::view::text::style::Style;
use crate::view::text::words::place;
use milepost_core::base::visible::visible;
use milepost_engine::ops::change::accept::Accepted;

/// Returns the accepted outputs and changes, a line each.
pub fn accept(data: &Accepted) -> String {
    let mut text = String::new();
    for pinned in &data.pinned {
        text.push_str(&format!(
            "pinned   {} of {} ({}… → {}…)\n",
            visible(pinned.path.as_str()),
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
        text.push_str(&format!("written  {}\n", visible(checkpoint)));
    }
    for line in kept(Style::PLAIN, &data.quarantined) {
        text.push_str(&line);
        text.push('\n');
    }
    if text.is_empty() {
        "nothing to accept\n".to_owned()
    } else {
        text
    }
}
