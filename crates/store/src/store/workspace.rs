//! The identity of a workspace: `.milepost/workspace.json`, which the first run writes.

use super::disk::{Disk, DiskError};
use super::id::new_id;
use super::layout::{Layout, OWN, answers};
use super::scan::files::real_path;
use super::self_checked::{self, SelfCheck, SelfChecked};
use crate::store::read;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::model::checkpoint::FORMAT;
use milepost_core::model::choice::{ChosenAgent, SetParam};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The content of `.milepost/workspace.json`: what all runs of a workspace share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Identity {
    /// The version of this file's form.
    pub(crate) format: u32,
    /// The id in every record of the journal; empty before the workspace exists.
    pub session_id: String,
    /// The name of the folder when the workspace was created.
    pub name: String,
    /// The name as one word for file names: lower-case letters, digits and `-`.
    pub slug: String,
    /// The day of creation, or the day that was set. Deprecated.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub today: Date,
    /// When it was made; the moment of `SOURCE_DATE_EPOCH` where that was set.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub(crate) created: Timestamp,
    /// The parameters set with `--set`, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Value>,
    /// The time and user of each value. Values stored by an older Milepost are missing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params_set: BTreeMap<String, SetParam>,
    /// The agents selected with `--agent`, by the name of the agent that they replace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, ChosenAgent>,
    /// The digest of this file without this line. Earlier versions wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checksum: Option<Digest>,
}

impl SelfChecked for Identity {
    fn checksum(&mut self) -> &mut Option<Digest> {
        &mut self.checksum
    }
}

impl Identity {
    /// Returns the default date of reports: the day on which the workspace was created.
    pub fn first_day(&self) -> Date {
        self.created.to_zoned(TimeZone::UTC).date()
    }

    fn apply(&mut self, changes: &Changes) {
        for name in &changes.unset {
            self.params.remove(name);
            self.params_set.remove(name);
        }
        for (name, (value, default)) in &changes.set {
            let is_known = |set: &SetParam| set.default == *default;
            if self.params.get(name) != Some(value)
                || !self.params_set.get(name).is_some_and(is_known)
            {
                let set = SetParam {
                    at: changes.at,
                    by: changes.by.clone(),
                    default: default.clone(),
                };
                self.params_set.insert(name.clone(), set);
            }
            self.params.insert(name.clone(), value.clone());
        }
        for (name, chosen) in &changes.agents {
            match chosen {
                None => {
                    self.agents.remove(name);
                }
                Some(agent) if self.agents.get(name).is_some_and(|it| it.agent == *agent) => {}
                Some(agent) => {
                    let chosen = ChosenAgent {
                        agent: agent.clone(),
                        at: changes.at,
                        by: changes.by.clone(),
                    };
                    self.agents.insert(name.clone(), chosen);
                }
            }
        }
        self.today = changes.today.unwrap_or(self.today);
    }
}

/// Changes of the stored values of `--set`, `--unset` and `--agent`.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The values to store by parameter, each with the declared default.
    pub set: BTreeMap<String, (Value, Value)>,
    /// The parameters whose values are removed.
    pub unset: BTreeSet<String>,
    /// The agents to store by the name that they replace; `None` removes the choice.
    pub agents: BTreeMap<String, Option<String>>,
    /// The date of reports.
    pub today: Option<Date>,
    /// The user who makes the changes.
    pub by: String,
    /// The time of the changes.
    pub at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct Workspace {
    pub layout: Layout,
    /// The identity; if the workspace does not exist yet, the identity that it would get now.
    pub identity: Identity,
    /// True if the file of the identity exists.
    pub is_made: bool,
}

/// A workspace that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// There are no random numbers for its id.
    #[error("{0}")]
    Random(io::Error),
    /// The folder is a link.
    #[error(
        "{path} is a symbolic link to {target}: a workspace is a folder of its own, name that one"
    )]
    Link {
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// The path is not a folder.
    #[error("{path} is not a folder, and a workspace must be one")]
    NoFolder { path: PathBuf },
    /// The user may not write there.
    #[error("no permission to write in {path}: check the folder's owner (`ls -ld {path}`)")]
    NotWritable {
        /// The folder.
        path: PathBuf,
    },
    /// A newer Milepost wrote the identity.
    #[error(
        "{path} is written by a newer Milepost (format {format}; this one reads up to {FORMAT}): update milepost"
    )]
    Newer { path: PathBuf, format: u64 },
    /// The identity is damaged.
    #[error(
        "{path} is damaged: {problem}. Restore it from a copy; or remove it, and the next run creates it again, with the day of that run and without the values of `--set`"
    )]
    Damaged { path: PathBuf, problem: String },
}

impl Identity {
    /// Returns the time of creation, to the second, as expressions see it.
    pub fn created_text(&self) -> String {
        self.created.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl WorkspaceError {
    /// Returns true if the named folder cannot be a workspace.
    pub fn is_wrong_folder(&self) -> bool {
        matches!(self, Self::Link { .. } | Self::NoFolder { .. })
    }
}

impl Workspace {
    /// Opens a workspace without changing anything. A workspace that does not exist yet has the identity that it would get: the
    /// name of its folder and the day of `now`.
    pub fn open(folder: &Path, now: Timestamp) -> Result<Workspace, WorkspaceError> {
        check_is_folder(folder)?;
        // `..` and links above the folder are followed, so that one workspace has one place.
        let root = real_path(folder);
        let layout = Layout::new(root);
        check_is_folder(&layout.own())?;
        let found = read_identity(&layout.identity())?;
        let is_made = found.is_some();
        let identity = found.unwrap_or_else(|| virtual_identity(layout.root(), now));
        Ok(Workspace {
            layout,
            identity,
            is_made,
        })
    }

    /// Creates the workspace if it does not exist. Returns true if it did so. The caller holds the lock, whose folder
    /// [`Workspace::prepare`] creates.
    pub fn make(&mut self, disk: &Disk, now: Timestamp) -> Result<bool, WorkspaceError> {
        self.prepare(disk)?;
        // Another run may have made it between the opening and the lock.
        if let Some(found) = read_identity(&self.layout.identity())? {
            self.identity = found;
            self.is_made = true;
            return Ok(false);
        }
        self.identity.session_id = new_id(now).map_err(WorkspaceError::Random)?;
        self.write(disk)?;
        self.is_made = true;
        Ok(true)
    }

    /// Creates the folders of the workspace and checks that they can be written.
    pub fn prepare(&self, disk: &Disk) -> Result<(), WorkspaceError> {
        let own = self.layout.own();
        for folder in [self.layout.root(), &own] {
            if folder.exists() && !may_write(folder) {
                return Err(WorkspaceError::NotWritable {
                    path: folder.to_owned(),
                });
            }
        }
        Ok(disk.create_dir_all(&own)?)
    }

    /// Restricts the folders of answers, calls, prompts and leases to their owner: an earlier version left them to the umask.
    /// Returns those that other users may still read.
    pub fn close_folders(&self, disk: &Disk, project: &Path) -> Vec<PathBuf> {
        let (layout, disk) = (&self.layout, disk.private());
        let folders = [
            layout.answers(),
            layout.calls(),
            layout.batches(),
            layout.leases(),
            layout.quarantine(),
            layout.scratch(),
            layout.jobs(),
            layout.logs(),
            answers(project),
        ];
        let open = folders.into_iter();
        open.filter(|folder| !disk.close_folder(folder)).collect()
    }

    /// Applies changes and writes the identity. Returns false if nothing changed. A value that is stored already over the same
    /// default keeps its time and user.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn update(&mut self, disk: &Disk, changes: &Changes) -> Result<bool, WorkspaceError> {
        let before = self.identity.clone();
        self.identity.apply(changes);
        let differs = self.identity != before;
        if differs && self.is_made {
            self.write(disk)?;
        }
        Ok(differs)
    }

    fn write(&self, disk: &Disk) -> Result<(), WorkspaceError> {
        let path = self.layout.identity();
        let bytes =
            self_checked::to_bytes(&self.identity).map_err(|error| WorkspaceError::Damaged {
                path: path.clone(),
                problem: error.to_string(),
            })?;
        Ok(disk.write_atomic(&path, &bytes)?)
    }
}

/// A name as one word: small letters, digits and `-`; `workspace` when nothing is left.
pub(crate) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "workspace" } else { slug }.to_owned()
}

fn virtual_identity(root: &Path, now: Timestamp) -> Identity {
    let name = root
        .file_name()
        .map_or_else(|| "workspace".into(), |name| name.to_string_lossy());
    Identity {
        format: FORMAT,
        session_id: String::new(),
        name: name.clone().into_owned(),
        slug: slug(&name),
        today: now.to_zoned(TimeZone::UTC).date(),
        created: now,
        params: BTreeMap::new(),
        params_set: BTreeMap::new(),
        agents: BTreeMap::new(),
        checksum: None,
    }
}

/// Returns `.milepost/workspace.json`, relative to the workspace.
pub fn identity() -> RelPath {
    RelPath::of_parts([OWN, "workspace.json"])
}

/// Returns whether the file of the identity is as it was written; `None` if it cannot be read.
pub fn check_identity(layout: &Layout) -> Option<SelfCheck> {
    let bytes = read::bytes(layout.identity()).ok()?;
    Some(self_checked::read::<Identity>(&bytes).1)
}

fn read_identity(path: &Path) -> Result<Option<Identity>, WorkspaceError> {
    let text = match read::text(path) {
        Ok(text) => text,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(DiskError::new("read", path, cause).into()),
    };
    let damaged = |error: serde_json::Error| WorkspaceError::Damaged {
        path: path.to_owned(),
        problem: error.to_string(),
    };
    let value: Value = serde_json::from_str(&text).map_err(damaged)?;
    let format = value["format"].as_u64().unwrap_or_default();
    if format > u64::from(FORMAT) {
        return Err(WorkspaceError::Newer {
            path: path.to_owned(),
            format,
        });
    }
    let identity: Identity = serde_json::from_value(value).map_err(damaged)?;
    Ok(Some(Identity {
        checksum: None,
        ..identity
    }))
}

/// A folder, or nothing, but no link and no file.
fn check_is_folder(path: &Path) -> Result<(), WorkspaceError> {
    let read = DiskError::reading(path);
    let path = path.to_owned();
    match std::fs::symlink_metadata(&path) {
        Ok(found) if found.is_symlink() => {
            let target = std::fs::read_link(&path).map_err(&read)?;
            Err(WorkspaceError::Link { path, target })
        }
        Ok(found) if !found.is_dir() => Err(WorkspaceError::NoFolder { path }),
        Ok(_) => Ok(()),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(()),
        Err(cause) if cause.kind() == ErrorKind::NotADirectory => {
            Err(WorkspaceError::NoFolder { path })
        }
        Err(cause) => Err(read(cause).into()),
    }
}

fn may_write(folder: &Path) -> bool {
    use rustix::fs::{Access, access};
    access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-21T23:30:00Z".parse().unwrap()
    }

    #[test]
    fn is_the_same_over_all_runs() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("Haus Nr. 7");
        let mut first = Workspace::open(&root, now()).unwrap();
        assert_eq!((first.is_made, root.exists()), (false, false));
        assert_eq!(first.identity.slug, "haus-nr-7");
        assert_eq!(first.identity.today.to_string(), "2026-11-21");
        let disk = Disk::real();
        assert!(first.make(&disk, now()).unwrap());
        let set = |value: &str, at: Timestamp| Changes {
            set: BTreeMap::from([("model".to_owned(), (value.into(), "b.ifc".into()))]),
            by: "ann".to_owned(),
            ..changes(at)
        };
        assert!(first.update(&disk, &set("a.ifc", now())).unwrap());

        let later = "2027-01-01T00:00:00Z".parse().unwrap();
        assert!(!first.update(&disk, &set("a.ifc", later)).unwrap());
        let mut second = Workspace::open(&root, later).unwrap();
        assert!(second.is_made);
        assert_eq!(second.identity, first.identity);
        assert!(!second.make(&disk, later).unwrap());
        let day = "2027-01-02".parse().unwrap();
        let on = Changes {
            today: Some(day),
            ..changes(later)
        };
        second.update(&disk, &on).unwrap();
        let third = Workspace::open(&root, later).unwrap().identity;
        assert_eq!(
            (third.today, third.first_day()),
            (day, first.identity.today)
        );
        assert_eq!(third.params, first.identity.params);
        assert_eq!(third.params_set["model"].at, now());
    }

    fn changes(at: Timestamp) -> Changes {
        Changes {
            at,
            ..Changes::default()
        }
    }

    #[test]
    fn values_and_agents_are_stored_and_removed() {
        let mut identity = virtual_identity(Path::new("w"), now());
        let bare = identity.clone();
        let names = |agent: Option<&str>| {
            let agent = agent.map(str::to_owned);
            BTreeMap::from([("reader".to_owned(), agent)])
        };
        let size = ("size".to_owned(), (Value::from(5), Value::from(20)));
        let stored = Changes {
            set: BTreeMap::from([size]),
            agents: names(Some("claude")),
            by: "ann".to_owned(),
            ..changes(now())
        };
        identity.apply(&stored);
        assert_eq!(identity.params_set["size"].by, "ann");
        assert_eq!(identity.agents["reader"].agent, "claude");
        // The same value over another default is set anew: the user has seen that default.
        let later: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let mut again = stored.clone();
        again.at = later;
        identity.apply(&again);
        assert_eq!(identity.params_set["size"].at, now());
        assert_eq!(identity.agents["reader"].at, now());
        again.set.insert("size".to_owned(), (5.into(), 80.into()));
        identity.apply(&again);
        assert_eq!(identity.params_set["size"].at, later);
        let removed = Changes {
            unset: BTreeSet::from(["size".to_owned(), "other".to_owned()]),
            agents: names(None),
            ..changes(later)
        };
        identity.apply(&removed);
        assert_eq!(identity, bare);
    }

    #[test]
    fn says_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let error = |path: &Path| {
            let opened = Workspace::open(path, now());
            opened.unwrap_err().to_string()
        };
        std::os::unix::fs::symlink(&root, root.join("link")).unwrap();
        assert!(error(&root.join("link")).contains("link is a symbolic link to"));
        std::fs::write(root.join("file"), "").unwrap();
        assert!(
            error(&root.join("file"))
                .ends_with("file is not a folder, and a workspace must be one")
        );
        assert!(
            error(&root.join("file/w")).ends_with("is not a folder, and a workspace must be one")
        );
        std::fs::create_dir(root.join(".milepost")).unwrap();
        let identity = root.join(".milepost/workspace.json");
        std::fs::write(&identity, r#"{"format":3}"#).unwrap();
        let newer =
            "written by a newer Milepost (format 3; this one reads up to 2): update milepost";
        assert!(error(&root).ends_with(newer));
        std::fs::write(&identity, r#"{"format":1,"#).unwrap();
        assert!(error(&root).contains("workspace.json is damaged: EOF"));
    }
}
