//! The log of an attempt: a file that is created when there is something to write.

use crate::run::batch::live::LineBuffer;
use crate::run::batch::stage_context::StageContext;
use milepost_core::base::path::RelPath;
use milepost_store::store::disk::{DiskFile, parent};
use milepost_store::store::layout;
use std::io::{self, Write};

/// The log of an attempt. Keys are removed line by line.
pub(crate) struct AttemptLog<'a> {
    stage_ctx: &'a StageContext<'a>,
    path: RelPath,
    file: Option<DiskFile>,
    lines: LineBuffer,
}

impl<'a> AttemptLog<'a> {
    pub(crate) fn new(stage_ctx: &'a StageContext<'_>, batch: &str, serial: u64) -> AttemptLog<'a> {
        let path = layout::log(stage_ctx.run_id, &stage_ctx.stage.name, batch, serial);
        AttemptLog {
            stage_ctx,
            path,
            file: None,
            lines: LineBuffer::default(),
        }
    }

    /// Ends the log and returns its path in the workspace; `None` if nothing was printed.
    pub(crate) fn kept(mut self) -> Option<String> {
        // A log that cannot be written does not fail the batch.
        let rest = self.lines.rest();
        let _ = self.put(&rest);
        self.file.map(|_| self.path.to_string())
    }

    fn put(&mut self, lines: &[u8]) -> io::Result<()> {
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
            Some(file) => file.write_all(&self.stage_ctx.ctx.redactor.bytes(lines)),
            None => Ok(()),
        }
    }
}

impl Write for AttemptLog<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lines = self.lines.push(bytes);
        self.put(&lines)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
