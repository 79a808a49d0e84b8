//! Why a command could not be run.

use milepost_core::base::in_order::no_thread::no_thread;
use std::io;
use std::path::PathBuf;

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The list is empty, or its first word is.
    #[error("the command is empty: name a program")]
    Empty,
    /// The program is in no folder of `PATH`.
    #[error(
        "program `{program}` was not found in PATH ({searched}): install it, or name it by its path"
    )]
    NotFound {
        /// First word of the command.
        program: String,
        /// The search path.
        searched: String,
    },
    /// There is no file at the path of the program.
    #[error("{}", no_file(program, file))]
    NoFile {
        /// First word of the command.
        program: String,
        /// Where it was expected.
        file: PathBuf,
    },
    /// A folder was named.
    #[error("program `{program}` is a folder")]
    Folder {
        /// First word of the command.
        program: String,
    },
    /// The file may not be executed.
    #[error("program `{program}` may not be executed: try `chmod +x {}`", file.display())]
    NotExecutable {
        /// First word of the command.
        program: String,
        /// The file.
        file: PathBuf,
    },
    /// The kernel does not support the format of the file.
    #[error("program `{program}` ({}) is not a program of this machine: a script needs a first line such as `#!/bin/sh`", file.display())]
    NotAProgram {
        /// First word of the command.
        program: String,
        /// The file.
        file: PathBuf,
    },
    /// The interpreter of the script does not exist.
    #[error("program `{program}` ({}) needs an interpreter that does not exist: see its first line (`#!`)", file.display())]
    NoInterpreter {
        /// First word of the command.
        program: String,
        /// The file.
        file: PathBuf,
    },
    /// The working folder does not exist.
    #[error("program `{program}` was not started: its working folder {} does not exist", folder.display())]
    NoWorkingFolder {
        /// First word of the command.
        program: String,
        /// The folder.
        folder: PathBuf,
    },
    /// The file for standard input cannot be opened.
    #[error("program `{program}` was not started: cannot open its standard input {}: {source}", file.display())]
    Stdin {
        /// First word of the command.
        program: String,
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Arguments and environment are too long for the kernel.
    #[error(
        "program `{program}` was not started: its arguments and environment are longer than the system allows; hand a long list over as a \
         file: `{{{{ paths.NAME | as_file }}}}` is the path of a file with one value a line"
    )]
    TooLong {
        /// First word of the command.
        program: String,
    },
    /// The command contains data that no process can be given.
    #[error("program `{program}` was not started: {what}")]
    Impossible {
        /// First word of the command.
        program: String,
        /// The invalid data and its place.
        what: String,
    },
    /// The command ran, but its log cannot be written.
    #[error("the log of program `{program}` cannot be written: {source}")]
    Log {
        /// First word of the command.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// `SIGKILL` did not end it: it hangs in the kernel.
    #[error(
        "program `{program}` (process {pid}) cannot be killed: it hangs in the kernel, perhaps on a disk that does not respond"
    )]
    Unending {
        /// First word of the command.
        program: String,
        /// Process id.
        pid: u32,
    },
    /// Anything else, such as no more processes for this user.
    #[error("program `{program}` cannot be run: {}", reason(source))]
    Other {
        /// First word of the command.
        program: String,
        /// Why.
        source: io::Error,
    },
}

/// Returns what a refusal of the system means.
fn reason(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => no_thread(source),
        _ => source.to_string(),
    }
}

/// Returns the message about a program that does not exist. A relative path starts in the folder of the attempt, which has no
/// project files.
fn no_file(program: &str, file: &std::path::Path) -> String {
    if std::path::Path::new(program).is_absolute() {
        return format!("program `{program}` does not exist ({})", file.display());
    }
    let path = program.strip_prefix("./").unwrap_or(program);
    format!(
        "there is no program `{program}` in the scratch folder where the command runs: for a file of the project, write \"project:{path}\""
    )
}

impl SpawnError {
    /// Returns true if the program is missing, so that a retry cannot help.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::Empty | Self::NotFound { .. } | Self::NoFile { .. } | Self::NoInterpreter { .. }
        )
    }
}
