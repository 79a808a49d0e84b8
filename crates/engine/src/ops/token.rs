//! The token that clients of the MCP server by HTTP must bear: made once for a workspace, in a file that only its owner can read.

use crate::ops::project::error::OpsError;
use crate::ops::project::find::find_project;
use crate::ops::project::open::workspace_of;
use crate::ops::project::request::Request;
use milepost_store::store::id::random_bytes;
use milepost_store::store::lock::SharedLock;
use milepost_store::store::workspace::Workspace;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The environment variable that sets the token.
const VARIABLE: &str = "MILEPOST_MCP_TOKEN";

/// The fewest characters of a token in the environment.
const SHORTEST: usize = 16;

/// The random bytes of a new token.
const BYTES: usize = 32;

/// The token of a server.
#[derive(Clone)]
pub struct AccessToken {
    /// The token.
    pub text: String,
    /// The file that keeps it; `None` if the environment sets it, or if there is no project.
    pub file: Option<PathBuf>,
}

/// Returns the token of the environment, or else that of the workspace, which it makes if there is none. A token whose file others
/// could read is replaced.
///
/// # Errors
/// When the token of the environment is too short or not printable, or the file cannot be written.
pub fn token(request: &Request) -> Result<AccessToken, OpsError> {
    if let Some(text) = request.environment.get(VARIABLE) {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.len() < SHORTEST || !is_plain {
            return Err(OpsError::Usage(format!(
                "`{VARIABLE}` is not a token: expected at least {SHORTEST} letters, digits and signs without spaces; \
                 unset it to use a token that Milepost makes"
            )));
        }
        let text = text.clone();
        return Ok(AccessToken { text, file: None });
    }
    let Ok(project) = find_project(&request.folder) else {
        let text = random_token()?;
        return Ok(AccessToken { text, file: None });
    };
    let workspace = Workspace::open(&workspace_of(request, &project), request.now())?;
    let file = workspace.layout.token();
    if let Some(text) = kept(&file) {
        let file = Some(file);
        return Ok(AccessToken { text, file });
    }
    workspace.prepare(&request.disk)?;
    let disk = request.disk.private();
    if std::fs::symlink_metadata(&file).is_ok() && !is_own(&file) {
        disk.remove_file(&file)?;
    }
    // Of servers that start at once, the first one makes the token of all.
    let lock = SharedLock::wait_alone(&disk, &file)?;
    let text = match kept(&file) {
        Some(text) => text,
        None => {
            let text = random_token()?;
            disk.write_atomic(&file, format!("{text}\n").as_bytes())?;
            text
        }
    };
    drop(lock);
    let file = Some(file);
    Ok(AccessToken { text, file })
}

/// Returns true if only this user could read or write a file.
fn is_own(file: &Path) -> bool {
    std::fs::symlink_metadata(file).is_ok_and(|found| {
        found.is_file()
            && found.mode() & 0o777 == 0o600
            && found.uid() == rustix::process::geteuid().as_raw()
    })
}

/// Returns the token in a file, if only its owner could read or write it.
fn kept(file: &Path) -> Option<String> {
    let text = milepost_store::store::read::text(file)
        .ok()
        .filter(|_| is_own(file))?;
    let text = text.trim_end();
    let is_token = text.len() == 2 * BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_token.then(|| text.to_owned())
}

/// Returns a random token of 64 hexadecimal digits.
///
/// # Errors
/// When the system has no random numbers.
pub fn random_token() -> Result<String, OpsError> {
    let bytes = random_bytes::<BYTES>();
    let bytes = bytes.map_err(|error| OpsError::World(format!("no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
