//! The files of a dry run, which exist in memory only.

use crate::steps::batch_context::OutputDir;
use milepost_core::base::path::RelPath;
use milepost_core::base::source::{Sink, Source};
use milepost_core::model::stage::Stage;
use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The files of each output or `out`: the text in place of `*`, and the content.
type Made = BTreeMap<String, Vec<(String, Arc<[u8]>)>>;

/// The files of an attempt in memory.
pub(crate) struct MemoryOutputDir<'a> {
    stage: &'a Stage,
    /// The folder and the paths in it that programs are shown. Nothing is written there.
    shown: (&'a Path, &'a BTreeMap<String, RelPath>),
    made: Arc<Mutex<Made>>,
    iteration: AtomicU32,
}

impl<'a> MemoryOutputDir<'a> {
    pub(crate) fn new(
        stage: &'a Stage,
        root: &'a Path,
        targets: &'a BTreeMap<String, RelPath>,
    ) -> Self {
        Self {
            stage,
            shown: (root, targets),
            made: Arc::default(),
            iteration: AtomicU32::new(1),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_per_round(&self, out: &str) -> bool {
        self.stage
            .output(out)
            .is_some_and(|output| output.per_round)
    }

    /// Returns the text that replaces the `*` or the iteration of an output.
    fn star(&self, out: &str, star: Option<&str>) -> String {
        match star {
            Some(star) => star.to_owned(),
            None if self.is_per_round(out) => self.iteration.load(Ordering::Relaxed).to_string(),
            None => String::new(),
        }
    }
}

impl OutputDir for MemoryOutputDir<'_> {
    fn create(&self, out: &str, star: Option<&str>) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(MemorySink {
            out: out.to_owned(),
            star: self.star(out, star),
            bytes: Vec::new(),
            made: Arc::clone(&self.made),
        }))
    }

    fn program_path(&self, out: &str) -> io::Result<PathBuf> {
        let (root, targets) = self.shown;
        let target = targets.get(out).map(|path| root.join(path.as_str()));
        Ok(target.unwrap_or_else(|| PathBuf::from(out)))
    }

    fn write_helper(&self, name: &str, _bytes: &[u8]) -> io::Result<PathBuf> {
        Ok(PathBuf::from(name))
    }

    fn set_iteration(&self, number: u32) {
        self.iteration.store(number, Ordering::Relaxed);
    }

    fn clear(&self, out: &str) -> io::Result<()> {
        let round = self.iteration.load(Ordering::Relaxed).to_string();
        let keeps_others = self.is_per_round(out);
        if let Some(files) = self.lock().get_mut(out) {
            files.retain(|(star, _)| keeps_others && *star != round);
        }
        Ok(())
    }

    fn written(&self, out: &str) -> io::Result<Vec<Arc<dyn Source>>> {
        let round = self.iteration.load(Ordering::Relaxed).to_string();
        let only_round = self.is_per_round(out);
        let made = self.lock();
        let files = made.get(out).into_iter().flatten();
        let mut files: Vec<_> = files
            .filter(|(star, _)| !only_round || *star == round)
            .collect();
        files.sort_by(|a, b| milepost_core::base::natural::natural(&a.0, &b.0));
        let source = |(star, bytes): &(String, Arc<[u8]>)| -> Arc<dyn Source> {
            Arc::new(MemorySource {
                name: self.name(out, star),
                bytes: Arc::clone(bytes),
            })
        };
        Ok(files.into_iter().map(source).collect())
    }
}

impl MemoryOutputDir<'_> {
    /// Returns a path with the extension that the file would have, because it decides the format.
    fn name(&self, out: &str, star: &str) -> String {
        match self.stage.output(out) {
            Some(output) => output.path.shown().replace('*', star),
            None => out.to_owned(),
        }
    }
}

struct MemorySource {
    name: String,
    bytes: Arc<[u8]>,
}

impl Source for MemorySource {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn path(&self) -> &Path {
        Path::new("")
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(Cursor::new(Arc::clone(&self.bytes))))
    }
}

struct MemorySink {
    out: String,
    star: String,
    bytes: Vec<u8>,
    made: Arc<Mutex<Made>>,
}

impl Write for MemorySink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for MemorySink {
    fn path(&self) -> &Path {
        Path::new("")
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let files = made.entry(self.out).or_default();
        files.retain(|(star, _)| *star != self.star);
        files.push((self.star, self.bytes.into()));
        Ok(())
    }
}
