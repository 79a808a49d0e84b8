//! The lock of a workspace: the kernel keeps it, and its file names the holder. Only one run holds it at a time.

use crate::store::read;
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::disk::{Disk, DiskError, DiskFile};

/// How often a lock's file is opened until it is the one at its path, without other hard links.
const TRIES: usize = 5;

/// The holder of a lock, as the lock's file names it in one JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    /// When the process was started, in clock ticks since boot; 0 where the system does not say.
    pub(crate) start_time: u64,
    /// Which boot that was; empty where the system does not say.
    pub(crate) boot_id: String,
    /// The namespace of its process ids, of which a container has its own; empty where the system does not say.
    #[serde(default)]
    pub(crate) pid_namespace: String,
    pub run_id: String,
    /// The time at which it took the lock.
    pub since: Timestamp,
    /// The name of the machine.
    pub host: String,
    /// The command that started the run, for messages.
    pub command: String,
}

impl Holder {
    /// Returns this process as a holder.
    pub fn this(run_id: &str, since: Timestamp, command: &str) -> Holder {
        let pid = std::process::id();
        Holder {
            pid,
            start_time: start_time(pid).unwrap_or(0),
            boot_id: boot_id(),
            pid_namespace: pid_namespace(),
            run_id: run_id.to_owned(),
            since,
            host: host(),
            command: command.to_owned(),
        }
    }

    /// Returns true if it is this process. Another container may have a process with the same id.
    pub fn is_this(&self) -> bool {
        *self == Self::this(&self.run_id, self.since, &self.command)
    }

    /// Returns whether its process exists; `None` if only another machine or container knows.
    pub fn exists(&self) -> Option<bool> {
        if self.boot_id.is_empty() || self.start_time == 0 {
            let pid = i32::try_from(self.pid).ok();
            let pid = pid.and_then(rustix::process::Pid::from_raw);
            let is_gone =
                |pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
            return Some(pid.is_some_and(|pid| !is_gone(pid)));
        }
        if self.boot_id != boot_id() {
            return (self.host == host()).then_some(false);
        }
        let is_near = self.pid_namespace.is_empty() || self.pid_namespace == pid_namespace();
        is_near.then(|| start_time(self.pid) == Some(self.start_time))
    }

    /// Returns true if its process exists. One of another machine counts as existing, one of another container as ended.
    pub fn is_alive(&self) -> bool {
        self.exists().unwrap_or_else(|| self.boot_id != boot_id())
    }
}

/// A lock that could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another run holds it.
    #[error("{}", taken(path, holder.as_deref()))]
    Taken {
        /// The lock's file.
        path: PathBuf,
        /// Who; not known if it was taken just this moment.
        holder: Option<Box<Holder>>,
    },
    /// The file cannot be opened or written.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl LockError {
    /// Returns true if this process holds the lock.
    pub fn is_ours(&self) -> bool {
        match self {
            Self::Taken { holder, .. } => holder.as_ref().is_some_and(|holder| holder.is_this()),
            Self::Disk(_) => false,
        }
    }
}

fn taken(path: &Path, holder: Option<&Holder>) -> String {
    let Some(holder) = holder else {
        return format!(
            "another run is starting in this workspace (lock {}); if this lasts, `lslocks` shows the process that \
             holds the lock",
            path.display()
        );
    };
    let Holder { pid, run_id, .. } = holder;
    let advice = if holder.is_this() {
        "wait for it, or cancel the call that began it".to_owned()
    } else {
        format!("wait for it, as `milepost run --wait 1h` does, or end it by `kill {pid}`")
    };
    format!(
        "another run is in progress in this workspace: `{}` (run {run_id}, process {pid} on {}) since {:.0}: {advice}",
        holder.command, holder.host, holder.since
    )
}

/// An exclusive lock, held until it is dropped. The file stays, because two runs could otherwise lock two files of one name.
pub struct Lock {
    file: DiskFile,
}

impl Lock {
    /// Takes the lock and writes the holder into its file. Also returns the last holder, if it died while it held the lock.
    ///
    /// # Errors
    /// Fails with [`LockError::Taken`] if another run holds the lock.
    pub fn take(
        disk: &Disk,
        path: &Path,
        holder: &Holder,
    ) -> Result<(Lock, Option<Holder>), LockError> {
        let Some(mut file) = locked(disk, path, File::try_lock)? else {
            return Err(LockError::Taken {
                path: path.to_owned(),
                holder: content(path).map(Box::new),
            });
        };
        let dead = content(path);
        file.truncate(0)?;
        let text = serde_json::to_string(holder)
            .map_err(|error| DiskError::new("describe the holder of", path, error.into()))?;
        file.write_bytes(format!("{text}\n").as_bytes())?;
        Ok((Lock { file }, dead))
    }

    /// Returns the holder, which may have died (see [`Holder::is_alive`]). This does not touch the lock, so it never delays a
    /// run.
    pub fn peek(path: &Path) -> Option<Holder> {
        content(path)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // An empty file says that the last run ended in order.
        let _ = self.file.truncate(0);
        release(&self.file);
    }
}

/// A lock that is shared or exclusive, held until it is dropped. Its file stays, and is empty if nothing writes into it.
pub struct SharedLock {
    file: DiskFile,
}

impl Drop for SharedLock {
    fn drop(&mut self) {
        release(&self.file);
    }
}

/// Frees a lock. Closing the file is not enough: a process that is being started has a copy of it until it executes its program.
fn release(file: &DiskFile) {
    let _ = file.file().unlock();
}

impl SharedLock {
    /// Takes the lock together with other readers; waits for an exclusive holder.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub(crate) fn take(disk: &Disk, path: &Path) -> Result<Self, DiskError> {
        Self::wait(disk, path, File::lock_shared)
    }

    /// Takes the lock exclusively; waits for all other holders.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn wait_alone(disk: &Disk, path: &Path) -> Result<Self, DiskError> {
        Self::wait(disk, path, File::lock)
    }

    /// Takes the lock exclusively. Returns `None` if another process holds it.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn take_alone(disk: &Disk, path: &Path) -> Result<Option<Self>, DiskError> {
        Ok(locked(disk, path, File::try_lock)?.map(|file| Self { file }))
    }

    /// Writes into its empty file.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), DiskError> {
        self.file.write_bytes(text.as_bytes())
    }

    fn wait(
        disk: &Disk,
        path: &Path,
        lock: impl Fn(&File) -> io::Result<()>,
    ) -> Result<Self, DiskError> {
        let lock = |file: &File| lock(file).map_err(TryLockError::Error);
        let file = locked(disk, path, lock)?;
        let busy = || DiskError::new("lock", path, io::ErrorKind::WouldBlock.into());
        file.map(|file| Self { file }).ok_or_else(busy)
    }
}

/// Opens a lock's file and locks it; `None` if another process holds it. A hard-linked copy of a workspace gets a lock of its own.
fn locked(
    disk: &Disk,
    path: &Path,
    lock: impl Fn(&File) -> Result<(), TryLockError>,
) -> Result<Option<DiskFile>, DiskError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let file = disk.open_lock(path)?;
        let taken = loop {
            match lock(file.file()) {
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                taken => break taken,
            }
        };
        match taken {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(DiskError::new("lock", path, error)),
        }
        match file.links() {
            Some(1) => return Ok(Some(file)),
            // Where inodes are not stable, only the lock shows that the path has the file that was opened.
            None if tries == TRIES && is_locked(disk, path)? => return Ok(Some(file)),
            _ if tries == TRIES => {
                let cause = "it is replaced or linked again and again: end the program that does so, or remove the other hard links of the file, then run again";
                return Err(DiskError::new("lock", path, io::Error::other(cause)));
            }
            Some(_) => match file.file().try_lock() {
                Ok(()) if file.links().is_some_and(|links| links > 1) => disk.separate(path)?,
                // Others share the lock, and only one may replace the file. A copy that has the same file does no harm meanwhile.
                Err(_) if lock(file.file()).is_ok() && file.links().is_some() => {
                    return Ok(Some(file));
                }
                Ok(()) | Err(_) => {}
            },
            // Another process replaced the file before it was locked.
            None => {}
        }
    }
}

/// Returns true if the file that is now at the path is locked.
fn is_locked(disk: &Disk, path: &Path) -> Result<bool, DiskError> {
    let file = disk.open_lock(path)?;
    Ok(matches!(
        file.file().try_lock(),
        Err(TryLockError::WouldBlock)
    ))
}

fn content(path: &Path) -> Option<Holder> {
    let mut text = String::new();
    read::open(path)
        .and_then(|file| file.take(1 << 16).read_to_string(&mut text))
        .ok()?;
    serde_json::from_str(&text).ok()
}

/// Field 22 of `/proc/PID/stat` (proc_pid_stat(5)).
fn start_time(pid: u32) -> Option<u64> {
    let stat = read::bytes(format!("/proc/{pid}/stat")).ok()?;
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    std::str::from_utf8(&stat[name_end + 1..])
        .ok()?
        .split_ascii_whitespace()
        .nth(22 - 3)?
        .parse()
        .ok()
}

fn host() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

fn pid_namespace() -> String {
    let link = rustix::fs::readlink("/proc/self/ns/pid", Vec::new());
    let link = link.unwrap_or_default();
    link.to_string_lossy().into_owned()
}

fn boot_id() -> String {
    read::text("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn one_at_a_time_and_each_says_who() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert_eq!(Lock::peek(&path), None);
        let since: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let first = Holder::this("R1", since, "milepost run");
        let second = Holder {
            run_id: "R2".to_owned(),
            ..first.clone()
        };

        let (lock, dead) = Lock::take(&Disk::real(), &path, &first).unwrap();
        assert_eq!((dead, Lock::peek(&path)), (None, Some(first.clone())));
        assert!(first.is_alive());
        let error = Lock::take(&Disk::real(), &path, &second)
            .err()
            .unwrap()
            .to_string();
        let (pid, host) = (first.pid, &first.host);
        assert_eq!(
            error,
            format!(
                "another run is in progress in this workspace: `milepost run` (run R1, process {pid} on {host}) since \
                 2026-03-01T12:00:00Z: wait for it, or cancel the call that began it"
            )
        );
        assert_eq!(Lock::peek(&path), Some(first));
        drop(lock);
        assert_eq!(Lock::peek(&path), None);
        assert!(path.exists());
        assert!(Lock::take(&Disk::real(), &path, &second).is_ok());
    }

    #[test]
    fn a_process_of_another_container_is_another_one() {
        let this = Holder::this("R1", Timestamp::UNIX_EPOCH, "milepost mcp");
        let other = Holder {
            pid_namespace: "pid:[1]".to_owned(),
            ..this.clone()
        };
        let rebooted = Holder {
            boot_id: "another".to_owned(),
            ..this.clone()
        };
        let remote = Holder {
            host: "elsewhere".to_owned(),
            ..rebooted.clone()
        };
        let found = [this, other, rebooted, remote]
            .map(|holder| (holder.is_this(), holder.exists(), holder.is_alive()));
        let expected = [
            (true, Some(true), true),
            (false, None, false),
            (false, Some(false), false),
            (false, None, true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn who_died_with_it_is_told_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let ours = Holder::this(
            "R2",
            Timestamp::UNIX_EPOCH,
            "milepost run --until a_long_name",
        );
        let dead = Holder {
            run_id: "R1".to_owned(),
            start_time: ours.start_time + 1,
            ..ours.clone()
        };
        std::fs::write(&path, serde_json::to_string_pretty(&dead).unwrap()).unwrap();
        assert!(!dead.is_alive());
        let (_lock, told) = Lock::take(&Disk::real(), &path, &ours).unwrap();
        assert_eq!((told, Lock::peek(&path)), (Some(dead), Some(ours)));
    }

    #[test]
    fn many_hold_a_shared_lock_or_one_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (disk, path) = (Disk::real(), folder.path().join("lock"));
        let alone = || SharedLock::take_alone(&disk, &path).unwrap();
        let two = [(); 2].map(|()| SharedLock::take(&disk, &path).unwrap());
        assert!(alone().is_none());
        drop(two);
        let held = alone();
        assert!(held.is_some() && alone().is_none());
        drop(held);
        assert!(SharedLock::take(&disk, &path).is_ok());
    }

    #[test]
    fn a_lock_is_free_although_a_process_that_starts_still_has_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let (disk, path) = (Disk::real(), folder.path().join("lock"));
        let ours = Holder::this("R1", Timestamp::UNIX_EPOCH, "milepost");
        let (lock, _) = Lock::take(&disk, &path, &ours).unwrap();
        let inherited = lock.file.file().try_clone().unwrap();
        drop(lock);
        let lock = Lock::take(&disk, &path, &ours);
        assert!(lock.is_ok());
        drop((lock, inherited));
        let lock = SharedLock::take_alone(&disk, &path).unwrap().unwrap();
        let inherited = lock.file.file().try_clone().unwrap();
        drop(lock);
        assert!(SharedLock::take_alone(&disk, &path).unwrap().is_some());
        drop(inherited);
    }

    #[test]
    fn a_hard_linked_copy_has_a_lock_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("lock"), "").unwrap();
        std::fs::hard_link(path("lock"), path("copy")).unwrap();
        let ours = Holder::this("R1", Timestamp::UNIX_EPOCH, "milepost");
        let (_one, _) = Lock::take(&Disk::real(), &path("lock"), &ours).unwrap();
        let (_two, _) = Lock::take(&Disk::real(), &path("copy"), &ours).unwrap();
        assert!(Lock::take(&Disk::real(), &path("lock"), &ours).is_err());
        assert!(Lock::take(&Disk::real(), &path("copy"), &ours).is_err());
    }

    #[test]
    fn only_an_exclusive_holder_separates_a_hard_linked_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("lock"), "").unwrap();
        std::fs::hard_link(path("lock"), path("copy")).unwrap();
        let other = File::open(path("lock")).unwrap();
        other.lock_shared().unwrap();
        let links = || std::fs::metadata(path("lock")).unwrap().nlink();
        let shared = SharedLock::take(&Disk::real(), &path("lock")).unwrap();
        assert_eq!(links(), 2);
        assert!(
            SharedLock::take_alone(&Disk::real(), &path("lock"))
                .unwrap()
                .is_none()
        );
        drop((other, shared));
        let shared = SharedLock::take(&Disk::real(), &path("lock")).unwrap();
        assert_eq!(links(), 1);
        assert!(
            SharedLock::take_alone(&Disk::real(), &path("lock"))
                .unwrap()
                .is_none()
        );
        drop(shared);
    }

    #[test]
    fn a_file_that_is_replaced_or_linked_all_the_time_is_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let change: [&dyn Fn(); 2] = [
            &|| {
                let new = folder.path().join("new");
                std::fs::write(&new, "").unwrap();
                std::fs::rename(new, &path).unwrap();
            },
            &|| {
                let link = folder.path().join("link");
                let _ = std::fs::remove_file(&link);
                std::fs::hard_link(&path, link).unwrap();
            },
        ];
        for change in change {
            let lock = |file: &File| {
                file.try_lock()?;
                change();
                Ok(())
            };
            let refused = locked(&Disk::real(), &path, lock).unwrap_err().to_string();
            assert_eq!(
                refused,
                format!(
                    "cannot lock {}: it is replaced or linked again and again: end the program that does so, or remove the other hard links of the file, then run again",
                    path.display()
                )
            );
        }
    }

    #[test]
    fn a_new_lock_is_never_open_to_who_may_only_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = Disk::real().open_lock(&folder.path().join("lock")).unwrap();
        let mode = file.file().metadata().unwrap().mode();
        assert_eq!(mode & 0o044, (mode & 0o022) << 1, "{mode:o}");
    }

    #[test]
    fn a_torn_content_is_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "{\"pid\": 1").unwrap();
        let ours = Holder::this("R1", Timestamp::UNIX_EPOCH, "milepost");
        assert_eq!(Lock::take(&Disk::real(), &path, &ours).unwrap().1, None);
    }
}
