//! Leases of batches: which client outside answers which batch, and until when. A folder for each, with what is asked.
//!
//! `.milepost/leases/ID/` holds `lease.json`, written last and whole, and beside it the files that the client reads and the one that it
//! writes. Everything about leases is done under one lock, which is held for as long as a request of a client takes.

use crate::store::disk::{Disk, DiskError};
use crate::store::layout::Layout;
use crate::store::lock::SharedLock;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::model::call::Sent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// The lease itself, in its folder.
const LEASE: &str = "lease.json";

/// The bytes of the request, in its folder.
const REQUEST: &str = "request";

/// How long a lease that is over can still be told from one that never was.
const REMEMBERED: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

/// A lease of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// Its id.
    pub id: String,
    /// The stage.
    pub stage: String,
    /// The batch; empty for the only one of its stage.
    pub batch: String,
    /// Who has it.
    pub client: String,
    /// Since when.
    pub since: Timestamp,
    /// Until when.
    pub expires: Timestamp,
    /// What became of it.
    pub state: LeaseState,
    /// The output of the step that asks.
    pub out: String,
    /// Everything that the batch depends on, as it was.
    pub fingerprint: Digest,
    /// The request.
    pub sent: Sent,
    /// Its questions: the id of each, and the address of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<(String, Digest)>,
    /// The address of the answer, where the prompt is the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Digest>,
    /// Whether `id` is part of what an answer must be.
    pub keeps_id: bool,
    /// The name of the file for the answer.
    pub answer: String,
}

/// What became of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseState {
    /// It holds until it expires.
    Leased,
    /// What was handed in made its batch.
    Submitted,
    /// It was given back.
    Released,
}

impl Lease {
    /// Whether nobody else may have its batch.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.state == LeaseState::Leased && now < self.expires
    }

    /// The addresses of the answers that it is for.
    pub fn addresses(&self) -> impl Iterator<Item = Digest> {
        let questions = self.questions.iter().map(|(_, address)| *address);
        questions.chain(self.address)
    }
}

/// The leases of a workspace, while this holds the lock on them.
pub struct Leases {
    disk: Disk,
    folder: PathBuf,
    _lock: SharedLock,
}

/// Why leases cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A lease that is none.
    #[error("the lease `{path}` is damaged ({why}): remove its folder; its batch is then free")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Leases {
    /// Takes the lock on the leases of a workspace, and waits for whoever has it.
    ///
    /// # Errors
    /// What the disk says.
    pub fn lock(disk: &Disk, layout: &Layout) -> Result<Self, LeaseError> {
        let folder = layout.leases();
        disk.create_dir_all(&folder)?;
        let lock = SharedLock::wait_alone(disk, &folder.join("lock"))?;
        Ok(Self {
            disk: disk.clone(),
            folder,
            _lock: lock,
        })
    }

    /// The folder of a lease.
    pub fn folder(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    /// The lease with an id; none: there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn get(&self, id: &str) -> Result<Option<Lease>, LeaseError> {
        if ulid::Ulid::from_string(id).is_err() {
            return Ok(None);
        }
        read(&self.folder(id))
    }

    /// All leases, the oldest first.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn all(&self) -> Result<Vec<Lease>, LeaseError> {
        let mut all = Vec::new();
        for id in names(&self.folder)? {
            all.extend(read(&self.folder(&id))?);
        }
        Ok(all)
    }

    /// Makes a lease, with the files that its client reads, by their names, and the bytes of the request. It is there when this
    /// returns, or not at all.
    ///
    /// # Errors
    /// What the disk says.
    pub fn make(
        &self,
        lease: &Lease,
        request: &[u8],
        files: &[(String, Vec<u8>)],
    ) -> Result<(), LeaseError> {
        let folder = self.folder(&lease.id);
        self.disk.create_dir_all(&folder)?;
        for (name, bytes) in files {
            self.disk.write_atomic(&folder.join(name), bytes)?;
        }
        self.disk.write_atomic(&folder.join(REQUEST), request)?;
        self.put(lease)
    }

    /// Replaces a lease durably.
    ///
    /// # Errors
    /// What the disk says.
    pub fn put(&self, lease: &Lease) -> Result<(), LeaseError> {
        let path = self.folder(&lease.id).join(LEASE);
        let text = serde_json::to_vec_pretty(lease).map_err(|error| LeaseError::Damaged {
            path: path.clone(),
            why: error.to_string(),
        })?;
        Ok(self.disk.write_atomic(&path, &text)?)
    }

    /// The bytes of the request of a lease.
    ///
    /// # Errors
    /// What the disk says.
    pub fn request(&self, id: &str) -> Result<Vec<u8>, LeaseError> {
        let path = self.folder(id).join(REQUEST);
        let read = std::fs::read(&path);
        Ok(read.map_err(|error| DiskError::new("read", &path, error))?)
    }

    /// Removes the folders of leases that have been over for long, and those that a crash left without a lease.
    ///
    /// # Errors
    /// What the disk says.
    pub fn sweep(&self, now: Timestamp) -> Result<(), LeaseError> {
        for id in names(&self.folder)? {
            let folder = self.folder(&id);
            let is_over = |lease: Lease| lease.expires + REMEMBERED < now;
            if read(&folder)?.is_none_or(is_over) {
                self.disk.remove_dir_all(&folder)?;
            }
        }
        Ok(())
    }
}

/// The ids of the leases in a folder, the oldest first.
fn names(folder: &Path) -> Result<BTreeSet<String>, LeaseError> {
    let failed = |error: io::Error| DiskError::new("read the folder", folder, error);
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_str().unwrap_or_default();
        if ulid::Ulid::from_string(name).is_ok() {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

fn read(folder: &Path) -> Result<Option<Lease>, LeaseError> {
    let path = folder.join(LEASE);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DiskError::new("read", &path, error).into()),
    };
    let lease = serde_json::from_slice(&text);
    lease.map(Some).map_err(|error| LeaseError::Damaged {
        path,
        why: error.to_string(),
    })
}
