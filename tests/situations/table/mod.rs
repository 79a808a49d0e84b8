//! The table of situations: each row a group of tests, each variant of a row a test.
//!
//! | situation | tests |
//! |---|---|
//! | SIGKILL of all, of the runner alone, Ctrl-C, in mid-batch | `killed` |
//! | output altered, mtime kept; with a new mtime; cut to 0 bytes; deleted | `outputs` |
//! | the aggregate altered or deleted | `aggregate` |
//! | a batch's input deleted, fewer batches than before | `batches` |
//! | input changed, mtime kept; with an older mtime; all inputs touched; one deleted; one added | `inputs` |
//! | command, prompt, rule, schema changed | `declared` |
//! | clocks and times that mislead, an input edited while its batch runs | `times` |
//! | who may run, and who may look beside a run | `locks` |
//!
//! Where it can make a difference, a row is gone through twice: after a run that made everything, and where the next run would
//! only check its notes. Afterwards everything must be as a first run of the same inputs makes it, and the next run has nothing to do.

mod aggregate;
mod batches;
mod declared;
mod inputs;
mod killed;
mod locks;
mod outputs;
mod times;

use super::letters::{checked, completed};
use crate::support::Project;

/// A row, in a workspace that was run once, and in one in which the next run would only check its notes.
fn both(row: impl Fn(&Project)) {
    for project in [completed(), checked()] {
        row(&project);
    }
}

/// What stages made is what a first run makes of the same inputs, and the next run has nothing to do.
#[track_caller]
fn matches_a_fresh_run(project: &Project) {
    let anew = project.without_results();
    assert_eq!(anew.run_unplanned(&[]).code, 0);
    assert_eq!(project.output_digests(), anew.output_digests());
    let again = project.run(&[]);
    again.expect(0, &[]);
    assert!(again.records.is_empty(), "{:#?}", again.records);
}
