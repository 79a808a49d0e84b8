//! The log of an attempt: a file that is created when there is something to write.

use crate::run::batch::stage_context::StageContext;
use milepost_core::base::path::RelPath;
use milepost_store::store::disk::{DiskFile, parent};
use milepost_store::store::layout;
use std::io::{self, Write};

/// The longest line that is held back until it ends. A longer line is written up to its last space.
const LINE: usize = 1 << 16;

/// The log of an attempt. Keys are removed line by line.
pub(crate) struct AttemptLog<'a> {
    stage_ctx: &'a StageContext<'a>,
    path: RelPath,
    file: Option<DiskFile>,
    line: Vec<u8>,
}

impl<'a> AttemptLog<'a> {
    pub(crate) fn new(stage_ctx: &'a StageContext<'_>, name: &str, serial: u64) -> AttemptLog<'a> {
        let path = layout::log(stage_ctx.run_id, name, serial);
        AttemptLog {
            stage_ctx,
            path,
            file: None,
            line: Vec::new(),
        }
    }

    /// Ends the log and returns its path in the workspace; `None` if nothing was printed.
    pub(crate) fn kept(mut self) -> Option<String> {
        // A log that cannot be written does not fail the batch.
        let _ = self.put(self.line.len());
        self.file.map(|_| self.path.to_string())
    }

    /// Writes so many of the held-back bytes.
    fn put(&mut self, bytes: usize) -> io::Result<()> {
        let lines: Vec<u8> = self.line.drain(..bytes).collect();
        if lines.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            let path = self.stage_ctx.ctx.layout.at(&self.path);
            let disk = self.stage_ctx.ctx.disk.private();
            disk.create_dir_all(parent(&path))
                .map_err(io::Error::other)?;
            self.file = Some(disk.create(&path).map_err(io::Error::other)?);
        }
        match &mut self.file {
            Some(file) => file.write_all(&self.stage_ctx.ctx.redactor.bytes(&lines)),
            None => Ok(()),
        }
    }
}

impl Write for AttemptLog<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        let after = |place: usize| place + 1;
        let end = self.line.iter().rposition(|&byte| byte == b'\n').map(after);
        let end = match end {
            None if self.line.len() > LINE => {
                let space = self.line.iter().rposition(u8::is_ascii_whitespace);
                Some(space.map_or(self.line.len(), after))
            }
            end => end,
        };
        if let Some(end) = end {
            self.put(end)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
