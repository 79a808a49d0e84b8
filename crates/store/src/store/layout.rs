//! The paths of a workspace, and the names that are reserved for Milepost.

use super::redirects::Redirects;
use milepost_core::base::path::{RelPath, component};
pub use milepost_core::base::reserved::{MANIFESTS, OWN};
use milepost_core::base::safe_name;
use milepost_core::plan::expand::batch_name;
use std::path::{Path, PathBuf};

/// The folder of finished iterations, below Milepost's own.
pub(crate) const ROUNDS: &str = "rounds";

const LOGS: &str = "logs";

/// The paths of one workspace.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
    redirects: Redirects,
}

impl Layout {
    /// Creates the layout of the workspace in this folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            redirects: Redirects::default(),
        }
    }

    /// Returns the folder of the workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the redirects of readers.
    pub fn redirects(&self) -> &Redirects {
        &self.redirects
    }

    /// Returns the absolute path of a path in the workspace. Readers follow a redirect.
    pub fn at(&self, path: &RelPath) -> PathBuf {
        match self.redirects.target(&self.root, path) {
            Some(target) => self.root.join(target.as_str()),
            None => self.root.join(path.as_str()),
        }
    }

    /// Returns `.milepost`.
    pub fn own(&self) -> PathBuf {
        self.root.join(OWN)
    }

    /// Returns `.milepost/workspace.json`, the identity of the workspace.
    pub fn identity(&self) -> PathBuf {
        self.own().join("workspace.json")
    }

    /// Returns `.milepost/lock`, the file that a run locks. It is never removed.
    pub fn lock(&self) -> PathBuf {
        self.own().join("lock")
    }

    /// Returns `.milepost/stat-cache`, the digests of files by their stamps. It may be removed at any time.
    pub fn stat_cache(&self) -> PathBuf {
        self.own().join("stat-cache")
    }

    /// Returns `.milepost/glance`, the observations of the last up-to-date run. It may be removed at any time.
    pub fn up_to_date_notes(&self) -> PathBuf {
        self.own().join("glance")
    }

    /// Returns `.milepost/.glance-events.tmp`, what a run observed of very many files. It exists only for a moment.
    pub fn up_to_date_events(&self) -> PathBuf {
        self.own().join(".glance-events.tmp")
    }

    /// Returns `.milepost/journal`, the folder of the segments.
    pub fn journal(&self) -> PathBuf {
        self.at(&journal())
    }

    /// Returns the path of a segment, such as `.milepost/journal/000001.jsonl`. Segments are numbered from 1.
    pub fn segment(&self, number: u64) -> PathBuf {
        self.journal().join(format!("{number:06}.jsonl"))
    }

    /// Returns `.milepost/answers`, the answers that batches of this workspace use.
    pub fn answers(&self) -> PathBuf {
        self.own().join("answers")
    }

    /// Returns `.milepost/calls`, the calls of agents, a file for each run.
    pub fn calls(&self) -> PathBuf {
        self.own().join("calls")
    }

    /// Returns `.milepost/batches`, the provider batches, a file for each run.
    pub fn batches(&self) -> PathBuf {
        self.own().join("batches")
    }

    /// `.milepost/leases`: batches that clients outside answer, a folder for each lease.
    pub(crate) fn leases(&self) -> PathBuf {
        self.own().join("leases")
    }

    /// Returns `.milepost/ui.html`, which leads a browser to the pages of a server.
    pub fn browser_file(&self) -> PathBuf {
        self.own().join("ui.html")
    }

    /// Returns `.milepost/scratch`, the private folders of attempts, by run.
    pub fn scratch(&self) -> PathBuf {
        self.at(&scratch())
    }

    /// Returns `.milepost/jobs`, the submissions to schedulers, a folder for each.
    pub fn jobs(&self) -> PathBuf {
        self.at(&jobs())
    }

    /// `.milepost/logs`: what programs printed, by run.
    pub(crate) fn logs(&self) -> PathBuf {
        self.own().join(LOGS)
    }

    /// `.milepost/quarantine`: what was set aside.
    pub(crate) fn quarantine(&self) -> PathBuf {
        self.at(&quarantine())
    }

    /// Returns `manifests`, which has a folder for each stage.
    pub fn manifests(&self) -> PathBuf {
        self.root.join(MANIFESTS)
    }

    /// Returns the path of the checkpoint of a stage, such as `stage_1_complete.json`.
    pub fn checkpoint(&self, number: u32) -> PathBuf {
        self.at(&checkpoint(number))
    }
}

/// Returns `.milepost/journal`, relative to the workspace.
pub fn journal() -> RelPath {
    RelPath::of_parts([OWN, "journal"])
}

/// Returns `.milepost/journal-head.json`, relative to the workspace.
pub fn journal_head() -> RelPath {
    RelPath::of_parts([OWN, "journal-head.json"])
}

/// Returns `.milepost/scratch`, relative to the workspace.
pub fn scratch() -> RelPath {
    RelPath::of_parts([OWN, "scratch"])
}

/// Returns `.milepost/jobs`, relative to the workspace.
pub fn jobs() -> RelPath {
    RelPath::of_parts([OWN, "jobs"])
}

/// `.milepost/quarantine`, in the workspace.
pub(crate) fn quarantine() -> RelPath {
    RelPath::of_parts([OWN, "quarantine"])
}

/// `.milepost/accepted`, in the workspace: copies of outputs that people accepted as modified, by digest.
pub(crate) fn accepted() -> RelPath {
    RelPath::of_parts([OWN, "accepted"])
}

/// `.milepost/rounds/STAGE`, in the workspace: finished iterations of unfinished batches.
pub(crate) fn rounds(stage: &str) -> RelPath {
    RelPath::of_parts([OWN, ROUNDS, stage])
}

/// The longest name of a stage, and of a batch, in the name of a log, in bytes. A number and an ending follow.
const LOG_PART: usize = 115;

/// Returns `.milepost/logs/RUN/STAGE.BATCH-N.log`, the output of the programs of an attempt, relative to the workspace.
pub fn log(run: &str, stage: &str, batch: &str, serial: u64) -> RelPath {
    let name = format!("{}-{serial}.log", log_stem(stage, batch));
    RelPath::of_parts([OWN, LOGS, run, name.as_str()])
}

/// Returns the name of a batch in the names of its logs. The name of a stage contains no dot.
pub fn log_stem(stage: &str, batch: &str) -> String {
    let stage = safe_name::safe_name(stage, LOG_PART);
    match batch {
        "" => stage,
        batch => format!("{stage}.{}", safe_name::safe_name(batch, LOG_PART)),
    }
}

/// Returns the name of a batch in the names of logs of earlier versions, which other batches may share.
pub fn earlier_log_stem(stage: &str, batch: &str) -> String {
    component(&batch_name(stage, batch))
}

/// Returns `.milepost/calls/RUN/N.request` or `N.answer`, the bytes of a call, relative to the workspace.
pub fn call(run: &str, number: u64, what: &str) -> RelPath {
    let name = format!("{number:06}.{what}");
    RelPath::of_parts([OWN, "calls", run, name.as_str()])
}

/// Returns `.milepost/calls/RUN.jsonl`, the records of the calls of a run, relative to the workspace.
pub fn call_record(run: &str) -> RelPath {
    let name = format!("{run}.jsonl");
    RelPath::of_parts([OWN, "calls", name.as_str()])
}

/// Returns `manifests/STAGE`, the folder of a stage's manifest, relative to the workspace.
pub fn manifest(stage: &str) -> RelPath {
    RelPath::of_parts([MANIFESTS, stage])
}

/// Returns the path of a checkpoint, such as `stage_1_complete.json`, relative to the workspace.
pub fn checkpoint(number: u32) -> RelPath {
    RelPath::of_parts([format!("stage_{number}_complete.json").as_str()])
}

/// Returns `.milepost/answers` of the project, the answers that its workspaces share.
pub fn answers(project: &Path) -> PathBuf {
    project.join(OWN).join("answers")
}

/// Returns `lock` in this folder of answers. Runs that use the answers share it, `gc` needs it alone. It is never removed.
pub fn answers_lock(answers: &Path) -> PathBuf {
    answers.join("lock")
}

/// Returns a name for a folder: the name itself if it is short and safe, else its beginning and a digest.
pub(crate) fn safe_name(name: &str) -> String {
    const LONG: usize = 80;
    // The only batch of a stage has no key.
    const ONLY: &str = "only";
    match name {
        "" => ONLY.to_owned(),
        ONLY => format!("{ONLY}{}", safe_name::mark(ONLY)),
        name => safe_name::safe_name(name, LONG),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_different_names_differ() {
        assert_eq!(
            Layout::new("w").segment(7),
            Path::new("w/.milepost/journal/000007.jsonl")
        );
        assert_eq!(manifest("../x").as_str(), "manifests/.._x");
        let logs = [
            ("a", ""),
            ("a", "b"),
            ("a", "b_c"),
            ("a_b", "c"),
            ("a", "b:c"),
            ("a", "b/c"),
            ("a_b_c", ""),
        ];
        let paths = logs.map(|(stage, batch)| log("run", stage, batch, 1));
        for (at, path) in paths.iter().enumerate() {
            assert!(!paths[..at].contains(path), "{path}");
        }
        assert_eq!(paths[0].as_str(), ".milepost/logs/run/a-1.log");
        assert_eq!(paths[1].as_str(), ".milepost/logs/run/a.b-1.log");
        assert_ne!(safe_name(""), safe_name("only"));
    }
}
