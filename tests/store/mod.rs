//! Layer `store`: what is on the disk is the old or the new, and a break is found where it is.

mod crash;
mod files;
mod follow;
mod journal;
mod manifest;
mod publish;
mod replay;
mod sample;

use milepost_store::store::layout::Layout;

/// A workspace in a temporary folder.
pub struct Place {
    _folder: tempfile::TempDir,
    pub layout: Layout,
}

pub fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::new(folder.path().canonicalize().unwrap());
    Place {
        _folder: folder,
        layout,
    }
}
