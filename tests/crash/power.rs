//! The power fails: of what was not flushed, some is there, some is not, some is half. What the journal says is finished is whole.

use super::project::{assert_same, operations};
use super::sweep::{in_parallel, setting};
use crate::support::{Files, Project};

/// A change between a first run, which was whole, and the one whose power fails; or none, and the first run's power fails.
type Change = Option<fn(&Project)>;

const MAIN: &[&str] = &["run", "--set", "batch_size=3"];
const RUN: &[&str] = &["run"];

struct Case {
    make: fn() -> Project,
    words: &'static [&'static str],
    change: Change,
}

const CASES: &[Case] = &[
    Case {
        make: Project::six,
        words: MAIN,
        change: None,
    },
    Case {
        make: Project::small,
        words: RUN,
        change: None,
    },
    Case {
        make: Project::rounds,
        words: RUN,
        change: None,
    },
    Case {
        make: Project::small,
        words: RUN,
        change: Some(super::changes::everything),
    },
];

/// What is known of a case.
struct Known {
    base: Project,
    before: Files,
    after: Files,
    operations: usize,
}

fn known(case: &Case) -> Known {
    let base = (case.make)();
    if case.change.is_some() {
        base.complete(case.words);
    }
    let before = base.outputs();
    let whole = base.copy();
    if let Some(change) = case.change {
        change(&base);
        change(&whole);
    }
    let operations = operations(&whole, case.words).len();
    Known {
        before,
        after: whole.outputs(),
        base,
        operations,
    }
}

/// A number below `below` of a seed, each `at` another one.
pub fn chosen(seed: usize, at: usize, below: usize) -> usize {
    let mixed = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ (at as u64) << 32);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as usize % below
}

/// `MILEPOST_TEST_SEEDS` says how many times the power fails; `MILEPOST_TEST_SEED` is the first of them.
#[test]
fn after_a_power_failure_everything_finished_is_whole() {
    let first = setting("MILEPOST_TEST_SEED", 0);
    let seeds: Vec<usize> = (first..first + setting("MILEPOST_TEST_SEEDS", 120)).collect();
    let all: Vec<Known> = CASES.iter().map(known).collect();
    in_parallel(&seeds, |&seed| {
        let (case, known) = (&CASES[seed % CASES.len()], &all[seed % CASES.len()]);
        let project = known.base.copy();
        let power = |at: usize, operations: usize| {
            let n = chosen(seed, at, operations + 1) + 1;
            let half = if chosen(seed, at + 1, 2) == 0 {
                ":half"
            } else {
                ""
            };
            let folder = project.at("workspace");
            format!(
                "{n}{half},power={}@{}",
                seed / CASES.len(),
                folder.display()
            )
        };
        // Entries of folders that come and go one by one may leave a renamed file at neither place: then its batch is made again,
        // and what is packed anew may be packed in another way. What comes after the merge is the same.
        let in_order = (seed / CASES.len()).is_multiple_of(2);
        let look = || {
            if in_order {
                project.assert_truth(&[&known.before, &known.after], &Files::new());
            } else {
                project.state();
                project.journal();
                project.assert_checkpoints(&Files::new());
            }
        };
        project.run_on_disk(case.words, &power(0, known.operations));
        look();
        // It fails again while the next run puts things in order.
        if chosen(seed, 4, 2) == 0 {
            project.run_on_disk(case.words, &power(5, 60));
            look();
        }
        project.complete(case.words);
        if in_order {
            project.assert_complete(&known.after);
        } else {
            project.assert_checkpoints(&Files::new());
            let outputs = |files: &Files| -> Files {
                let outputs = files
                    .iter()
                    .filter(|(path, _)| path.starts_with("outputs/"));
                outputs
                    .map(|(path, bytes)| (path.clone(), bytes.clone()))
                    .collect()
            };
            assert_same(&outputs(&project.outputs()), &outputs(&known.after));
        }
        project.assert_verified();
    });
}
