//! `approve` as text: what was approved, and which stages need no approval.

use crate::view::text::next_steps;
use crate::view::text::overrides::approved;
use milepost_core::base::visible::visible;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::change::approve::{Approved, Unneeded};

/// Returns a line for each stage, and the command that continues.
pub(crate) fn approve(data: &Approved, invocation: &Invocation) -> String {
    let mut text = String::new();
    for (stage, approval) in &data.approved {
        let line = approved(approval);
        text.push_str(&format!("approved {}: {line}\n", visible(stage)));
    }
    let mut continues = !data.approved.is_empty();
    for (stage, why) in &data.unneeded {
        let why = match why {
            Unneeded::UpToDate => "up to date, nothing to approve".to_owned(),
            Unneeded::Approved { approval } => {
                continues = true;
                format!("already approved: {}", approved(approval))
            }
            Unneeded::Unchanged => {
                continues = true;
                "nothing to approve: its batches are rebuilt with nothing changed".to_owned()
            }
        };
        text.push_str(&format!("{}: {why}\n", visible(stage)));
    }
    if continues {
        let next = [(invocation.run(&[]), "continue".to_owned())];
        for line in next_steps::lines(&next, "next", &str::to_owned) {
            text.push_str(&format!("{line}\n"));
        }
    }
    text
}
