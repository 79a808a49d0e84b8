//! Which file the first word of a command names, looked for as `execvp` would in the command's own environment.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::spawn_error::SpawnError;

/// Where programs are looked for when a command's environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// The file that `name` names: as it is with a `/` in it (from `cwd` if relative), else the first executable of `PATH`.
///
/// It is found here, and not by `std::process::Command`, because a changed `PATH` and a bare name make that fork instead of
/// `posix_spawn`, some forty times slower in a large process; and because only the one who searched can say where.
pub(super) fn find(
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
        Ok(_) if access(path, Access::EXEC_OK).is_ok() => Candidate::Program,
        Ok(_) => Candidate::NotExecutable,
    }
}
