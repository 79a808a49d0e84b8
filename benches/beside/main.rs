//! Milepost beside Ninja, Make and others on the same work, in turn: `cargo bench --bench beside -- --help`.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::too_many_arguments,
    reason = "a harness makes files, starts programs, takes the time and prints by itself"
)]

mod book;
mod changed;
mod child;
mod cold;
mod floor;
mod growth;
mod machine;
mod settled;
mod stand;
mod start;
mod table;
mod tools;
mod turns;
mod work;

use book::Book;
use clap::Parser;
use stand::Stand;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use tools::Tool;

/// What fails here ends the harness, with its message.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Sets Milepost beside other tools on the same work, in turn (A B A B), and prints medians and ratios.
///
/// The work is N JSON files of 4 KB, each mapped to an output, then one aggregate over all outputs. Ninja, Make and the others do it
/// by `cp`; Milepost by `cp` and by its own steps, and validates every output by a JSON Schema.
#[derive(Parser)]
#[command(name = "beside")]
struct Options {
    /// Numbers of batches, smallest first
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
    batches: Vec<usize>,
    /// How often each is measured [default: 5; first runs 3 up to 1,000 batches, 1 beyond]
    #[arg(long)]
    rounds: Option<usize>,
    /// Which measures are taken [default: all]
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Measure>,
    /// Which tools stand beside, where they are installed
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Tool::Ninja, Tool::Make, Tool::N2, Tool::Snakemake])]
    tools: Vec<Tool>,
    /// Folder to work in; its disk is the one that is measured [default: in the folder `target`]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Leave the work in the folder, and take it up again next time
    #[arg(long)]
    keep: bool,
    /// Another build of Milepost to measure
    #[arg(long)]
    milepost: Option<PathBuf>,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// A group of measures that share their preparation.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Measure {
    /// The binary with an empty project.
    Start,
    /// First runs: by a command, by own steps, beside the others and beside `cp -r`.
    Cold,
    /// Nothing to do.
    NoOp,
    /// `plan`, `status` and `why` beside a run with nothing to do.
    Questions,
    /// One input has other content, with and without the aggregate.
    OneChanged,
    /// All inputs have a later mtime and the same content.
    Touched,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if !options.bench {
        // `cargo test --benches` and `--all-targets` start benches too: whoever tests does not want to wait for this.
        eprintln!("nothing measured: run it by `cargo bench --bench beside`");
        return ExitCode::SUCCESS;
    }
    match measure(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("beside: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<()> {
    let folder = options
        .folder
        .clone()
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("beside"));
    std::fs::create_dir_all(&folder)?;
    let folder = std::fs::canonicalize(folder)?;
    let milepost = options
        .milepost
        .clone()
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_milepost")));
    let milepost = std::fs::canonicalize(milepost)?;
    let wants = |measure: Measure| options.only.is_empty() || options.only.contains(&measure);
    let tools = tools::installed(&options.tools);

    machine::print(&folder, &milepost, &tools);
    let mut book = Book::default();
    if wants(Measure::Start) {
        start::measure(&milepost, &folder, options.rounds.unwrap_or(30), &mut book)?;
    }
    for &batches in &options.batches {
        let stand = Stand::new(&folder, &milepost, batches, options.rounds, &tools);
        eprintln!("{batches} batches, in {}", stand.work.folder.display());
        stand.work.make()?;
        if wants(Measure::Cold) {
            cold::measure(&stand, &mut book)?;
        }
        if wants(Measure::NoOp) || wants(Measure::Questions) {
            settled::measure(&stand, &wants, &mut book)?;
        }
        if wants(Measure::OneChanged) {
            changed::one(&stand, &mut book)?;
        }
        if wants(Measure::Touched) {
            changed::all_touched(&stand, &mut book)?;
        }
        if wants(Measure::OneChanged) {
            changed::one_without_aggregate(&stand, &mut book)?;
        }
        if !options.keep {
            stand.work.remove()?;
        }
    }
    growth::rows(&options.batches, &mut book);
    book.print();
    machine::print_load();
    Ok(())
}
