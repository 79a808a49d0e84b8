//! The stand: Milepost and the other tools before the same work, each told what to do by one call.

use crate::Result;
use crate::child::{Sample, run};
use crate::machine::cores;
use crate::tools::{Installed, Tool};
use crate::work::{Step, Work};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

/// How long files may take to settle, and how much longer for each batch.
const PATIENCE: Duration = Duration::from_secs(90);
const PATIENCE_OF_BATCH: Duration = Duration::from_micros(500);

/// Milepost and the other tools before the work of one size.
pub struct Stand {
    /// The work.
    pub work: Work,
    /// The tools that are given it.
    pub tools: Vec<Tool>,
    milepost: PathBuf,
    rounds: Option<usize>,
    said: PathBuf,
}

impl Stand {
    /// A stand below a folder.
    pub fn new(
        folder: &Path,
        milepost: &Path,
        batches: usize,
        rounds: Option<usize>,
        tools: &[Installed],
    ) -> Self {
        let (tools, left): (Vec<Tool>, Vec<Tool>) = tools
            .iter()
            .map(|installed| installed.tool)
            .partition(|tool| batches <= tool.most());
        for tool in left {
            println!("skipped: {tool} with {batches} batches takes too long");
        }
        Self {
            work: Work::new(folder, batches),
            tools,
            milepost: milepost.to_owned(),
            rounds,
            said: folder.join("said"),
        }
    }

    /// Rounds of what takes a moment.
    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(5)
    }

    /// Rounds of first runs.
    pub fn cold_rounds(&self) -> usize {
        let default = if self.work.batches > 1_000 { 1 } else { 3 };
        self.rounds.unwrap_or(default)
    }

    /// Whether only what tells how cost grows is measured.
    pub fn is_huge(&self) -> bool {
        self.work.batches > 100_000
    }

    /// Milepost, with these arguments.
    pub fn milepost(&self, arguments: &[&str]) -> Result<Sample> {
        let mut command = Command::new(&self.milepost);
        command.args(arguments).current_dir(&self.work.folder);
        run(&mut command, &self.said, &[0])
    }

    /// A run of Milepost that does whatever there is to do.
    pub fn run(&self, jobs: usize) -> Result<Sample> {
        self.milepost(&["run", "--quiet", "--jobs", &jobs.to_string()])
    }

    /// Another tool that does whatever there is to do.
    pub fn build(&self, tool: Tool, jobs: usize) -> Result<Sample> {
        run(&mut tool.build(&self.work, jobs), &self.said, &[0])
    }

    /// A copy of all inputs by `cp -r`.
    pub fn copy_inputs(&self) -> Result<Sample> {
        let to = self.work.made("cp");
        let mut command = Command::new("cp");
        command.arg("-r").arg(self.work.inputs()).arg(&to);
        run(&mut command, &self.said, &[0])
    }

    /// Runs until there is nothing to do and the notes are kept. Returns whether that was reached: a file that changed in the
    /// last 2 seconds is hashed again by every run, so this waits until none is that young.
    pub fn settle(&self) -> Result<bool> {
        let began = Instant::now();
        let batches = u32::try_from(self.work.batches)?;
        // A run keeps its notes when nothing is young. Those of an earlier one would look the same: they are a cache.
        let notes = self.notes();
        if notes.exists() {
            std::fs::remove_file(&notes)?;
        }
        while began.elapsed() < PATIENCE + PATIENCE_OF_BATCH * batches {
            let before = self.notes_time();
            self.run(cores())?;
            if before.is_some() && before == self.notes_time() {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(700));
        }
        println!(
            "note: Milepost keeps no notes with {} batches",
            self.work.batches
        );
        Ok(false)
    }

    /// Declares the stages, and settles. What is there is made anew only if it must be.
    pub fn settle_by(&self, step: Step, aggregate: bool) -> Result<bool> {
        self.work.declare(step, aggregate)?;
        self.settle()
    }

    /// Brings another tool to where there is nothing to do.
    pub fn settle_tool(&self, tool: Tool) -> Result<()> {
        if !self.work.made(tool.name()).exists() {
            tool.clear(&self.work)?;
        }
        self.build(tool, cores()).map(drop)
    }

    fn notes_time(&self) -> Option<SystemTime> {
        std::fs::metadata(self.notes()).ok()?.modified().ok()
    }

    fn notes(&self) -> PathBuf {
        self.work.folder.join("workspace/.milepost/glance")
    }
}
