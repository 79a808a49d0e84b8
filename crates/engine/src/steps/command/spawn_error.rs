//! Why a command could not be run.

use std::io;
use std::path::PathBuf;

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The list is empty, or its first word is.
    #[error("the command is empty: name a program")]
    Empty,
    /// No folder of `PATH` has it.
    #[error(
        "program `{program}` was not found in PATH ({searched}): install it, or name it by its path"
    )]
    NotFound {
        /// First word of the command.
        program: String,
        /// The search path.
        searched: String,
    },
    /// Named by a path, where nothing is.
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
    /// It is there, but not for us to run.
    #[error("program `{program}` may not be executed: try `chmod +x {}`", file.display())]
    NotExecutable {
        /// First word of the command.
        program: String,
        /// The file.
        file: PathBuf,
    },
    /// The kernel does not know its format.
    #[error("program `{program}` ({}) is not a program of this machine: a script needs a first line such as `#!/bin/sh`", file.display())]
    NotAProgram {
        /// First word of the command.
        program: String,
        /// The file.
        file: PathBuf,
    },
    /// It is there, but what runs it is not.
    #[error("program `{program}` ({}) needs an interpreter that does not exist: see its first line (`#!`)", file.display())]
    NoInterpreter {
        /// First word of the command.
        program: String,
        /// The file.
        file: PathBuf,
    },
    /// The working folder is not there.
    #[error("program `{program}` was not started: its working folder {} is not there", folder.display())]
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
    /// More than the kernel takes.
    #[error(
        "program `{program}` was not started: its arguments and environment are longer than the system allows; hand a long list over as a \
         file: `{{{{ paths.NAME | as_file }}}}` is the path of a file with one value a line"
    )]
    TooLong {
        /// First word of the command.
        program: String,
    },
    /// Something that no process can be given.
    #[error("program `{program}` was not started: {what}")]
    Impossible {
        /// First word of the command.
        program: String,
        /// What and where.
        what: String,
    },
    /// It ran, but what it said could not be kept.
    #[error("the log of program `{program}` cannot be written: {source}")]
    Log {
        /// First word of the command.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// Not even `SIGKILL` ended it: it hangs in the kernel.
    #[error(
        "program `{program}` (process {pid}) does not end, even by force: it hangs in the kernel, perhaps on a disk that does not respond"
    )]
    Unending {
        /// First word of the command.
        program: String,
        /// Process id.
        pid: u32,
    },
    /// Anything else, such as no more processes for this user.
    #[error("program `{program}` cannot be run: {source}")]
    Other {
        /// First word of the command.
        program: String,
        /// Why.
        source: io::Error,
    },
}

/// What to say of a program that is not there. A relative path begins in the folder of the attempt, where no file of the project is.
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
    /// Whether there is nothing to start, now or at another try.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::Empty | Self::NotFound { .. } | Self::NoFile { .. } | Self::NoInterpreter { .. }
        )
    }
}
