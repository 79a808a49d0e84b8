//! A file system of a test's own, where it is allowed to mount one.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system of its own at a folder, where that is allowed; gone with this value.
pub struct Mounted(PathBuf);

impl Mounted {
    /// Mounts it by these arguments of `mount`.
    pub fn at(folder: &Path, arguments: &[&str]) -> Option<Mounted> {
        std::fs::create_dir_all(folder).unwrap();
        let mounted = Command::new("mount").args(arguments).arg(folder).output();
        let done = mounted.is_ok_and(|output| output.status.success());
        if !done {
            eprintln!("skipped: a file system cannot be mounted here");
        }
        done.then(|| Mounted(folder.to_owned()))
    }

    /// Mounts it again with other options.
    pub fn again(&self, options: &str) {
        let done = Command::new("mount")
            .args(["-o", &format!("remount,{options}")])
            .arg(&self.0)
            .status()
            .unwrap();
        assert!(done.success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l"]).arg(&self.0).status();
    }
}
