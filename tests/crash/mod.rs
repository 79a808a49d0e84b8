//! Durability: killed anywhere, a run leaves a workspace that resumes to the same bytes, and nothing that it says is untrue.
//!
//! | test | what it does | stops in a sample | longer |
//! |---|---|---|---|
//! | `crash::every` | the main example and a project of commands, two runs at once; stopped before an operation or in a write or removal; stops recovery too | 48 and 64 | `MILEPOST_TEST_PAIRS=1` tests every pair of stops |
//! | `crash::rounds` | a run with `[refine]`; no finished iteration runs again | 40 | |
//! | `crash::agents` | agents in batches and iterations, and a service; no kept answer is asked again, and only valid ones are kept. The power fails; `gc` is stopped; three workspaces run beside `gc` | 40, `gc` 24 | `MILEPOST_TEST_SEEDS=5000` |
//! | `external::crash` | an external client that leases or submits is stopped; another continues | every 11th | |
//! | `crash::corrections` | an import of corrections is stopped; a person edits the table meanwhile. No row is lost, and each has a record | 24 | |
//! | `crash::half_published` | a run is stopped at a move of a file; no command that reads reports a modified file, and the plan is what the next run does | 16 each | |
//! | `crash::changes` | eleven kinds of change between two runs, the second one stopped | 24 each | |
//! | `crash::power` | the power fails: a shadow of what was flushed becomes one state that a disk may show afterwards, by a seed | 120 | `MILEPOST_TEST_SEEDS=5000` |
//! | `crash::forced` | a run with `--force`, finished by a plain run; each batch is rebuilt once | 32 | |
//! | `crash::notes` | a run that writes notes is stopped, or the power fails; then files change, and the next run sees it | 60 and 40 | `MILEPOST_TEST_SEEDS=5000` |
//! | `crash::kill` | SIGKILL from outside at any moment, of the runner alone or with its programs | 16 | `MILEPOST_TEST_KILLS=1000`, with a release build |
//! | `remote` | SIGKILL at random moments of a run whose batches are jobs; no batch runs twice | 8, with Slurm 3 | `just cluster`: 50 each |
//! | `crash::by_hand` | an edited output is accepted, replaced or cleaned; the edit exists at every moment | 24 each | |
//! | `crash::machine` | the state machine takes only the events that a table allows; replaying a journal gives the same state | | |
//! | `crash::journal` | the next run reads the state that the last one knew; a run can start from every prefix of a journal | | |
//! | `crash::joined` | `gc` is stopped while it joins segments of the journal; readers beside it read every record | all | |
//! | `situations::table` | what `run` does after a kill, a change, a deletion, under misleading clocks, beside another run | | |
//! | `mutated` | journals, checkpoints, manifests, declarations, models and PDFs with changed bytes; models and PDFs whose references lead anywhere | 300 each; 1,500 each | `MILEPOST_TEST_SECONDS=600`; `fuzz/` has the same as targets of cargo-fuzz |
//!
//! A sample contains each kind of operation (the action, such as `rename`, and the sort of file) and further stops at equal intervals.
//! After a kill, nothing shows whether a flush was done, so a stop after a flush equals the stop before it and is left out.
//! `cargo build --profile crash --features faults` builds a program that can be stopped and is five times as fast, for
//! `MILEPOST_TEST_BINARY`.

mod agents;
mod by_hand;
mod changes;
mod corrections;
mod every;
mod forced;
mod half_published;
mod joined;
mod journal;
mod kill;
mod machine;
mod notes;
mod power;
pub mod project;
mod rounds;
pub mod sweep;
mod untrue;
