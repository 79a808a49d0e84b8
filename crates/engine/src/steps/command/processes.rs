//! Reads processes from `/proc`: their identity, children, and attempt. Other systems than Linux have no `/proc`; there only
//! groups can be ended.

use std::collections::BTreeSet;

use rustix::process::{Pid, Signal, kill_process, test_kill_process_group};

#[cfg(target_os = "linux")]
pub(super) use linux::{all, attempt_of, boot_id, children_of, own_children};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{all, attempt_of, boot_id, children_of, own_children};

/// One process as it was read. Its id together with its start time is its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) group: u32,
    /// Clock ticks since boot.
    pub(super) start_time: u64,
    /// It has ended, and was not reaped yet.
    pub(super) ended: bool,
}

impl Process {
    /// Reads the process with this id.
    #[cfg(target_os = "linux")]
    pub(super) fn look(pid: u32) -> Option<Process> {
        linux::look(pid)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn look(_pid: u32) -> Option<Process> {
        None
    }

    /// Returns true if this process still runs.
    pub(super) fn runs(&self) -> bool {
        Process::look(self.pid)
            .is_some_and(|there| there.start_time == self.start_time && !there.ended)
    }

    /// Sends it a signal, but not to another process that got its id.
    pub(super) fn signal(&self, signal: Signal) {
        let Some(pid) = kernel_id(self.pid) else {
            return;
        };
        #[cfg(target_os = "linux")]
        if let Ok(handle) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            if self.runs() {
                let _ = rustix::process::pidfd_send_signal(handle, signal);
            }
            return;
        }
        if self.runs() {
            let _ = kill_process(pid, signal);
        }
    }
}

/// Converts a process id; `None` if it is invalid.
pub(super) fn kernel_id(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Returns our own group. It is 0 if its leader is outside of our PID namespace; `getpgrp` has no value for that.
pub(super) fn own_group() -> u32 {
    Process::look(std::process::id()).map_or(0, |own| own.group)
}

/// Returns true if a process of the group runs.
pub(super) fn group_runs(group: u32) -> bool {
    let Some(pid) = kernel_id(group) else {
        return false;
    };
    if test_kill_process_group(pid) == Err(rustix::io::Errno::SRCH) {
        return false;
    }
    // The kernel also counts ended members that were not reaped.
    match all() {
        Some(all) => all
            .into_iter()
            .filter_map(Process::look)
            .any(|process| process.group == group && !process.ended),
        None => true,
    }
}

/// Returns `roots` and all their descendants.
pub(super) fn with_descendants(roots: impl IntoIterator<Item = u32>) -> Vec<Process> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<u32> = roots.into_iter().collect();
    let mut found = Vec::new();
    while let Some(pid) = open.pop() {
        if seen.insert(pid)
            && let Some(process) = Process::look(pid)
        {
            open.extend(children_of(pid));
            found.push(process);
        }
    }
    found
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io::Read as _;
    use std::path::Path;
    use std::sync::OnceLock;

    use crate::steps::command::processes::Process;
    use crate::steps::command::spec::ATTEMPT_VARIABLE;
    use milepost_store::store::read;

    /// Reads `/proc/PID/stat` (proc_pid_stat(5)). The name in parentheses may contain anything, so fields are counted from its
    /// end.
    pub(in super::super) fn look(pid: u32) -> Option<Process> {
        // Long enough for the needed fields: a file without a size would be read in small pieces.
        let mut stat = [0; 1024];
        let mut file = read::open(format!("/proc/{pid}/stat")).ok()?;
        let length = file.read(&mut stat).ok()?;
        let stat = &stat[..length];
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let text = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let number = |field: usize| {
            fields
                .get(field - 3)
                .and_then(|text| text.parse::<u64>().ok())
        };
        // A process with an ended main thread runs while it has other threads.
        let ended = matches!(*fields.first()?, "Z" | "X") && number(20)? <= 1;
        Some(Process {
            pid,
            parent: number(4)? as u32,
            group: number(5)? as u32,
            start_time: number(22)?,
            ended,
        })
    }

    /// Returns the attempt in the environment of a process; `None` also if it cannot be read or the process has ended.
    pub(in super::super) fn attempt_of(pid: u32) -> Option<String> {
        let environment = read::bytes(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|byte| *byte == 0).find_map(|variable| {
            let value = variable
                .strip_prefix(ATTEMPT_VARIABLE.as_bytes())?
                .strip_prefix(b"=")?;
            Some(String::from_utf8_lossy(value).into_owned())
        })
    }

    /// Returns all process ids.
    pub(in super::super) fn all() -> Option<Vec<u32>> {
        let entries = fs::read_dir("/proc").ok()?;
        Some(
            entries
                .flatten()
                .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
                .collect(),
        )
    }

    /// Returns the children of a process.
    pub(in super::super) fn children_of(pid: u32) -> Vec<u32> {
        if lists_children() {
            let tasks = fs::read_dir(format!("/proc/{pid}/task"))
                .into_iter()
                .flatten()
                .flatten();
            tasks
                .flat_map(|task| children_listed(&task.path().join("children")))
                .collect()
        } else {
            let all = all().unwrap_or_default().into_iter().filter_map(look);
            all.filter(|process| process.parent == pid)
                .map(|process| process.pid)
                .collect()
        }
    }

    /// Returns our own children, including adopted orphans. Children of other threads may be missing: the kernel lists children
    /// by thread, and gives orphans to the main thread.
    ///
    /// The list may be incomplete while processes end (proc_pid_task_children(5)), so it is read until two reads agree.
    pub(in super::super) fn own_children() -> Vec<u32> {
        let us = std::process::id();
        if !lists_children() {
            return children_of(us);
        }
        let list = format!("/proc/self/task/{us}/children");
        let mut before = children_listed(Path::new(&list));
        for _ in 0..4 {
            if before.is_empty() {
                break;
            }
            let after = children_listed(Path::new(&list));
            if after == before {
                break;
            }
            before = after;
        }
        before
    }

    fn children_listed(list: &Path) -> Vec<u32> {
        let text = read::text(list).unwrap_or_default();
        text.split_ascii_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect()
    }

    /// Returns true if this kernel lists children.
    fn lists_children() -> bool {
        static LISTS: OnceLock<bool> = OnceLock::new();
        *LISTS.get_or_init(|| Path::new("/proc/thread-self/children").exists())
    }

    /// Returns the id of the current boot.
    pub(in super::super) fn boot_id() -> &'static str {
        static ID: OnceLock<String> = OnceLock::new();
        ID.get_or_init(|| {
            read::text("/proc/sys/kernel/random/boot_id")
                .unwrap_or_default()
                .trim()
                .to_owned()
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    pub(in super::super) fn attempt_of(_pid: u32) -> Option<String> {
        None
    }

    pub(in super::super) fn all() -> Option<Vec<u32>> {
        None
    }

    pub(in super::super) fn children_of(_pid: u32) -> Vec<u32> {
        Vec::new()
    }

    pub(in super::super) fn own_children() -> Vec<u32> {
        Vec::new()
    }

    pub(in super::super) fn boot_id() -> &'static str {
        ""
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use crate::steps::command::processes::Process;

    #[test]
    fn we_are_who_we_are() {
        let us = Process::look(std::process::id()).unwrap();
        assert_eq!(us.parent, std::os::unix::process::parent_id());
        assert_eq!(us.group, rustix::process::getpgrp().as_raw_pid() as u32);
        assert!(us.start_time > 0 && us.runs());
        let stranger = Process {
            start_time: us.start_time + 1,
            ..us
        };
        assert!(!stranger.runs());
    }
}
