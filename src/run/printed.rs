//! What the programs of an attempt print, kept in a file that is made when there is something to keep.

use super::attempt::Bench;
use crate::base::path::RelPath;
use crate::store::disk::{DiskFile, parent};
use crate::store::layout;
use std::io::{self, Write};

/// The log of an attempt.
pub struct Printed<'a> {
    bench: &'a Bench<'a>,
    path: RelPath,
    file: Option<DiskFile>,
}

impl<'a> Printed<'a> {
    /// The log of this attempt; nothing is written yet.
    pub fn new(bench: &'a Bench<'_>, name: &str, serial: u64) -> Printed<'a> {
        let path = layout::log(bench.run_id, name, serial);
        Printed {
            bench,
            path,
            file: None,
        }
    }

    /// Where it is kept in the workspace; none: nothing was printed.
    pub fn kept(self) -> Option<String> {
        self.file.map(|_| self.path.to_string())
    }
}

impl Write for Printed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() && !bytes.is_empty() {
            let path = self.bench.ctx.layout.at(&self.path);
            let disk = self.bench.ctx.disk;
            disk.create_dir_all(parent(&path))
                .map_err(io::Error::other)?;
            self.file = Some(disk.create(&path).map_err(io::Error::other)?);
        }
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
