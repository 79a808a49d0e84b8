//! Commands of a user whom the modes of files stop: root is not stopped.

use super::Project;
use super::required::{self, Missing};
use std::process::Command;

/// The user and the group that root's tests run the program as.
const OTHER: u32 = 65534;

/// Returns true if the tests run as root.
pub fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// Checks that the tests run as root, who can give files away.
pub fn root() -> Result<(), Missing> {
    let missing = || Missing("only root can give files to another user".to_owned());
    is_root().then_some(()).ok_or_else(missing)
}

impl Project {
    /// Returns a command of the program that runs as a user other than root.
    pub fn unprivileged(&self, arguments: &[&str]) -> Result<Command, Missing> {
        let plain = self.command(arguments);
        if !is_root() {
            return Ok(plain);
        }
        let other = [
            format!("--reuid={OTHER}"),
            format!("--regid={OTHER}"),
            "--clear-groups".to_owned(),
        ];
        let [user, group, groups] = other.each_ref().map(String::as_str);
        required::program("setpriv", &[user, group, groups, "true"])?;
        // The folders above the program may be closed to others.
        let program = self.at("milepost");
        if !program.exists() {
            std::fs::copy(plain.get_program(), &program).unwrap();
        }
        let mut command = Command::new("setpriv");
        command
            .args(other)
            .arg(program)
            .args(plain.get_args())
            .current_dir(self.at(""))
            .env_clear()
            .env("PATH", "/usr/bin:/bin");
        Ok(command)
    }

    /// Gives a file or folder and everything in it to that user, if the tests run as root.
    pub fn give_away(&self, path: &str) {
        let all = walkdir::WalkDir::new(self.at(path)).into_iter().flatten();
        for entry in all.filter(|_| is_root()) {
            std::os::unix::fs::lchown(entry.path(), Some(OTHER), Some(OTHER)).unwrap();
        }
    }
}
