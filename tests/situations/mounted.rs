//! A file system of a test's own.

use crate::support::required::{self, Missing};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system of its own at a folder; gone with this value.
pub struct Mounted(PathBuf);

impl Mounted {
    /// Mounts it by these arguments of `mount`.
    pub fn at(folder: &Path, arguments: &[&str]) -> Result<Mounted, Missing> {
        std::fs::create_dir_all(folder).unwrap();
        let folder_name = folder.to_str().unwrap();
        required::program("mount", &[arguments, &[folder_name]].concat())?;
        Ok(Mounted(folder.to_owned()))
    }

    /// Mounts a new ext4, made with these options of `mkfs.ext4`, from an image.
    pub fn ext4(folder: &Path, image: &Path, options: &[&str]) -> Result<Mounted, Missing> {
        let file = std::fs::File::create(image).unwrap();
        file.set_len(16 << 20).unwrap();
        let image = image.to_str().unwrap();
        required::program("mkfs.ext4", &[&["-q"], options, &[image]].concat())?;
        Mounted::at(folder, &["-o", "loop", image])
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
