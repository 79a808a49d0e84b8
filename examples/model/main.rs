//! Writes a building model (IFC4) of any size, and its revisions: `cargo run --example model -- OUT.ifc --elements 300`.
//!
//! The same options give the same bytes on every machine: there is no clock and no chance in it. The sample in
//! `workspace/inputs/sample.ifc` is written by it, with the options left as they are.

#![allow(
    clippy::too_many_arguments,
    clippy::too_many_lines,
    reason = "a building is written part by part"
)]

mod building;
mod catalogue;
mod definitions;
mod elements;
mod geometry;
mod layout;
mod lower;
mod properties;
mod records;
mod relations;
mod revision;
mod shape;
mod step_file;
mod upper;

use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;

pub use layout::Options;
pub use records::{Counts, write_model};

use clap::Parser;

/// Writes a building model (IFC4) of any size, and its revisions.
#[derive(Parser)]
struct Arguments {
    /// File to write.
    out: PathBuf,
    /// Take-off elements in the model.
    #[arg(long, default_value_t = Options::default().elements)]
    elements: usize,
    /// Issue of the model: 0 is the first; in each further one some elements are changed, dropped, new.
    #[arg(long, visible_alias = "revision", default_value_t = 0)]
    rev: u32,
    /// Another seed is another building.
    #[arg(long, default_value_t = Options::default().seed)]
    seed: u64,
}

#[allow(clippy::print_stderr, reason = "an example prints for itself")]
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match write(&arguments) {
        Ok(counts) => {
            eprintln!(
                "{}: {} elements, {} openings, {} records",
                arguments.out.display(),
                counts.elements,
                counts.openings,
                counts.records
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}: {error}", arguments.out.display());
            ExitCode::FAILURE
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the only file that this example writes"
)]
fn write(arguments: &Arguments) -> io::Result<Counts> {
    let options = Options {
        elements: arguments.elements,
        revision: arguments.rev,
        seed: arguments.seed,
    };
    let mut file = BufWriter::with_capacity(1 << 20, std::fs::File::create(&arguments.out)?);
    write_model(&mut file, &options)
}
