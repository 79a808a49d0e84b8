//! Leases of batches to external agents. Each lease has a folder with the request.
//!
//! `.milepost/leases/ID/` contains `lease.json`, which is written last, the files that the client reads, and the file that it
//! writes. One lock protects all leases; a request of a client holds it until it is answered.

use crate::store::disk::{Disk, DiskError};
use crate::store::layout::Layout;
use crate::store::lock::{Holder, SharedLock};
use crate::store::read;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::model::call::SentCall;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The lease itself, in its folder.
const LEASE: &str = "lease.json";

/// The bytes of the request, in its folder.
const REQUEST: &str = "request";

/// How long an expired lease is remembered, so that it differs from one that never existed.
const REMEMBERED: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

/// A lease of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    pub id: String,
    pub stage: String,
    /// The batch; empty for the only one of its stage.
    pub batch: String,
    /// The name of the client.
    pub client: String,
    /// The server that took it, which alone may submit it while it lives; `None`: every client that knows the id may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Holder>,
    /// The time at which the lease was granted.
    pub since: Timestamp,
    /// The time at which it expires.
    pub expires: Timestamp,
    pub state: LeaseState,
    /// The output of the step that asks.
    pub out: String,
    /// The fingerprint of the batch when it was leased.
    pub fingerprint: Digest,
    pub sent: SentCall,
    /// The id of each question and the address of its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<(String, Digest)>,
    /// The address of the answer, if the batch is one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Digest>,
    /// True if `id` is part of an answer.
    pub keeps_id: bool,
    /// The name of the file for the answer.
    pub answer: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseState {
    /// The lease is valid until it expires.
    Leased,
    /// The submitted answer finished its batch.
    Submitted,
    /// The client returned it.
    Released,
}

impl Lease {
    /// Returns true if no other client may have its batch.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.state == LeaseState::Leased && now < self.expires
    }

    /// Returns the addresses of the answers that it asks for.
    pub fn addresses(&self) -> impl Iterator<Item = Digest> {
        let questions = self.questions.iter().map(|(_, address)| *address);
        questions.chain(self.address)
    }
}

/// The leases of a workspace, and the lock on them.
pub struct Leases {
    disk: Disk,
    folder: PathBuf,
    _lock: SharedLock,
}

/// Leases that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file of a lease is damaged.
    #[error("the lease `{path}` is damaged ({why}): remove its folder; its batch is then free")]
    Damaged { path: PathBuf, why: String },
}

impl Leases {
    /// Takes the lock on the leases of a workspace. Returns `None` if another client has it.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn try_lock(disk: &Disk, layout: &Layout) -> Result<Option<Self>, LeaseError> {
        let (folder, disk) = (layout.leases(), disk.private());
        disk.create_own_dir(&folder)?;
        let lock = SharedLock::take_alone(&disk, &folder.join("lock"))?;
        Ok(lock.map(|lock| Self {
            disk,
            folder,
            _lock: lock,
        }))
    }

    /// Returns the folder of a lease.
    pub fn folder(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    /// Returns the lease with an id, if it exists.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn get(&self, id: &str) -> Result<Option<Lease>, LeaseError> {
        if ulid::Ulid::from_string(id).is_err() {
            return Ok(None);
        }
        read(&self.folder(id))
    }

    /// Returns all leases, the oldest first.
    ///
    /// # Errors
    /// Fails if one cannot be read.
    pub fn all(&self) -> Result<Vec<Lease>, LeaseError> {
        let mut all = Vec::new();
        for id in names(&self.folder)? {
            all.extend(read(&self.folder(&id))?);
        }
        Ok(all)
    }

    /// Creates a lease with the named files for its client and the bytes of the request. After a crash the lease exists completely or
    /// not at all.
    ///
    /// # Errors
    /// Fails if the disk fails.
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
    /// Fails if the disk fails.
    pub fn put(&self, lease: &Lease) -> Result<(), LeaseError> {
        let path = self.folder(&lease.id).join(LEASE);
        let text = serde_json::to_vec_pretty(lease).map_err(|error| LeaseError::Damaged {
            path: path.clone(),
            why: error.to_string(),
        })?;
        Ok(self.disk.write_atomic(&path, &text)?)
    }

    /// Returns the bytes of the request of a lease.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn request(&self, id: &str) -> Result<Vec<u8>, LeaseError> {
        let path = self.folder(id).join(REQUEST);
        let read = read::bytes(&path);
        Ok(read.map_err(|error| DiskError::new("read", &path, error))?)
    }

    /// Removes the folders of leases that ended long ago, and folders that a crash left without a lease.
    ///
    /// # Errors
    /// Fails if the disk fails.
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

/// Returns the ids of the leases in a folder, the oldest first.
fn names(folder: &Path) -> Result<Vec<String>, LeaseError> {
    let names = read::names(folder);
    let mut names = names.map_err(|error| DiskError::new("read the folder", folder, error))?;
    names.retain(|name| ulid::Ulid::from_string(name).is_ok());
    Ok(names)
}

fn read(folder: &Path) -> Result<Option<Lease>, LeaseError> {
    let path = folder.join(LEASE);
    let text = match read::bytes(&path) {
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
