//! The paths of a workspace, and the names that are reserved for Milepost.

use milepost_core::base::digest::Digest;
use milepost_core::base::path::{RelPath, component};
use std::path::{Path, PathBuf};

/// The folder of Milepost's own files, in the workspace and in the project.
pub const OWN: &str = ".milepost";

/// The folder of the manifests, in the workspace.
pub const MANIFESTS: &str = "manifests";

/// The folder of finished rounds, below Milepost's own.
pub(crate) const ROUNDS: &str = "rounds";

const LOGS: &str = "logs";

/// The paths of one workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Creates the layout of the workspace in this folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the folder of the workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the absolute path of a path in the workspace.
    pub fn at(&self, path: &RelPath) -> PathBuf {
        self.root.join(path.as_str())
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
    pub fn glance(&self) -> PathBuf {
        self.own().join("glance")
    }

    /// Returns `.milepost/.glance-events.tmp`, what a run observed of very many files. It exists only for a moment.
    pub fn glance_events(&self) -> PathBuf {
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

    /// Returns `.milepost/mcp-token`, the token that clients of the MCP server by HTTP must bear.
    pub fn token(&self) -> PathBuf {
        self.own().join("mcp-token")
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

/// `.milepost/rounds/STAGE`, in the workspace: finished rounds of batches that are not.
pub(crate) fn rounds(stage: &str) -> RelPath {
    RelPath::of_parts([OWN, ROUNDS, stage])
}

/// The longest name of a batch in the name of a log, in bytes. A number and an ending follow.
const LOG_STEM: usize = 240;

/// Returns `.milepost/logs/RUN/STAGE/BATCH-N.log`, the output of the programs of an attempt, relative to the workspace.
pub fn log(run: &str, batch: &str, serial: u64) -> RelPath {
    let name = format!("{}-{serial}.log", log_stem(batch));
    RelPath::of_parts([OWN, LOGS, run, name.as_str()])
}

/// Returns the name of a batch in the names of its logs: file systems take 255 bytes, so a long name ends in a digest.
pub fn log_stem(batch: &str) -> String {
    let part = component(batch);
    if part.len() <= LOG_STEM {
        part
    } else {
        shortened(&part, LOG_STEM, batch)
    }
}

/// Returns the beginning of a name and the digest of the whole, in `most` bytes.
fn shortened(part: &str, most: usize, whole: &str) -> String {
    let mut end = part.len().min(most - 13);
    while !part.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{}", &part[..end], Digest::of(whole).short())
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

/// The number in the name of a checkpoint; none for other names.
pub(crate) fn checkpoint_number(name: &str) -> Option<u32> {
    let number = name
        .strip_prefix("stage_")?
        .strip_suffix("_complete.json")?;
    let plain = !number.starts_with('0') || number == "0";
    number
        .parse()
        .ok()
        .filter(|_| plain && !number.starts_with('+'))
}

/// Returns `.milepost/answers` of the project, the answers that its workspaces share.
pub fn answers(project: &Path) -> PathBuf {
    project.join(OWN).join("answers")
}

/// Returns `lock` in this folder of answers. Runs that use the answers share it, `gc` needs it alone. It is never removed.
pub fn answers_lock(answers: &Path) -> PathBuf {
    answers.join("lock")
}

/// Returns what Milepost reserves a path for, or `None` if an output may have this path. Case is ignored, because some file
/// systems ignore it.
pub fn own_name(path: &RelPath) -> Option<&'static str> {
    let lower = path.as_str().to_lowercase();
    let first = lower.split('/').next().unwrap_or_default();
    if first == OWN {
        Some("Milepost's own folder")
    } else if first == MANIFESTS {
        Some("the folder of the manifests")
    } else if checkpoint_number(first).is_some() {
        Some("a checkpoint")
    } else {
        None
    }
}

/// A name for a folder: the name itself where it is short and safe, else its beginning and a digest.
pub(crate) fn safe_name(name: &str) -> String {
    const LONG: usize = 80;
    if name.is_empty() {
        return "only".to_owned();
    }
    let part = component(name);
    if part == name && name.len() <= LONG {
        return part;
    }
    shortened(&part, LONG, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_own_names() {
        for (path, own) in [
            (".milepost/x", true),
            (".MilePost", true),
            ("manifests/a.json", true),
            ("stage_12_complete.json", true),
            ("Stage_1_complete.json", true),
            ("stage_x_complete.json", false),
            ("stage_01_complete.json", false),
            ("stage_+1_complete.json", false),
            ("intermediate/stage_1_complete.json", false),
            ("outputs/manifests/a", false),
        ] {
            let parsed = RelPath::parse(path).unwrap();
            assert_eq!(own_name(&parsed).is_some(), own, "{path}");
        }
        assert_eq!(
            Layout::new("w").segment(7),
            Path::new("w/.milepost/journal/000007.jsonl")
        );
        assert_eq!(manifest("../x").as_str(), "manifests/.._x");
    }
}
