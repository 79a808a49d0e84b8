//! Finds the program of a command as `execvp` would in the command's own environment.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::spawn_error::SpawnError;

/// The search path if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// Returns the file of a program: the path itself if `name` contains `/` (relative to `cwd`), otherwise the first executable in
/// `PATH`.
///
/// `std::process::Command` would fork instead of using `posix_spawn` if `PATH` differs, which is some forty times slower in a
/// large process. And the error can name the searched folders.
pub(crate) fn find(
    name: &str,
    cwd: &Path,
    env: &[(String, String)],
) -> Result<PathBuf, SpawnError> {
    if name.contains('/') {
        let path = cwd.join(name);
        return match look(&path) {
            Candidate::Program => Ok(path),
            Candidate::Absent => Err(SpawnError::NoFile {
                program: name.to_owned(),
                file: path,
            }),
            Candidate::Folder => Err(SpawnError::Folder {
                program: name.to_owned(),
            }),
            Candidate::NotExecutable => Err(SpawnError::NotExecutable {
                program: name.to_owned(),
                file: path,
            }),
        };
    }
    let searched = env
        .iter()
        .rev()
        .find(|(key, _)| key == "PATH")
        .map_or(DEFAULT_PATH, |(_, value)| value.as_str());
    let mut unusable = None;
    for folder in searched.split(':') {
        let path = cwd.join(folder).join(name);
        match look(&path) {
            Candidate::Program => return Ok(path),
            Candidate::NotExecutable if unusable.is_none() => unusable = Some(path),
            _ => {}
        }
    }
    Err(match unusable {
        Some(file) => SpawnError::NotExecutable {
            program: name.to_owned(),
            file,
        },
        None => SpawnError::NotFound {
            program: name.to_owned(),
            searched: searched.to_owned(),
        },
    })
}

enum Candidate {
    Program,
    Absent,
    Folder,
    NotExecutable,
}

fn look(path: &Path) -> Candidate {
    match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Candidate::NotExecutable
        }
        Err(_) => Candidate::Absent,
        Ok(data) if data.is_dir() => Candidate::Folder,
        Ok(_) if is_executable(path) => Candidate::Program,
        Ok(_) => Candidate::NotExecutable,
    }
}

/// Returns true if this process may execute a file.
pub(crate) fn is_executable(path: &Path) -> bool {
    access(path, Access::EXEC_OK).is_ok()
}
