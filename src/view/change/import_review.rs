//! `import-review` as text: the imported corrections, and the command that applies them.

use crate::view::text::next_steps::lines;
use milepost_core::base::visible::visible;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::change::import_review::{Correction, Imported};

/// Returns the imported corrections, a line each, and the next command.
pub(crate) fn import_review(data: &Imported, invocation: &Invocation) -> String {
    let file = visible(&invocation.near(&data.file)).into_owned();
    let from = format!("{file}, sheet {}", visible(&data.sheet));
    let into = visible(&data.into);
    if data.added.is_empty() && data.known.is_empty() {
        return format!("nothing to import from {from}: no correction is filled in\n");
    }
    let mut text = String::new();
    if !data.added.is_empty() {
        let count = counted(data.added.len());
        text.push_str(&format!("imported {count} from {from}, into {into}\n"));
        data.added.iter().for_each(|one| text.push_str(&line(one)));
    }
    if !data.known.is_empty() {
        let count = counted(data.known.len());
        text.push_str(&format!("skipped  {count} already in {into}\n"));
        data.known.iter().for_each(|one| text.push_str(&line(one)));
    }
    let next = match &data.output_of {
        Some(stage) => (
            invocation.run(&["--force", stage]),
            format!("apply the corrections; the edited {file} goes to quarantine"),
        ),
        None => (invocation.run(&[]), "apply the corrections".to_owned()),
    };
    for line in lines(&[next], "next", &str::to_owned) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn counted(corrections: usize) -> String {
    match corrections {
        1 => "1 correction".to_owned(),
        many => format!("{many} corrections"),
    }
}

fn line(one: &Correction) -> String {
    format!("         {}\n", visible(&one.to_string()))
}
