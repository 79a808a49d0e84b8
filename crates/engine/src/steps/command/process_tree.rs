//! A running command and all its processes, including those that left its group.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

use rustix::process::{Signal, WaitOptions, kill_process_group, waitpid};

use super::processes::{self, Process};
use super::spawn::{self, Leader, LeaderKind};
use super::spec::{Exit, StartedProcess};
use super::stop::Terminate;

/// The leader of a command, its group, and the processes outside the group that descend from it.
pub(super) struct ProcessTree<'a> {
    leader: Leader,
    started: StartedProcess,
    token: &'a str,
    /// The start times of all known processes. After its parent has ended, a process that cleared its environment could not be
    /// recognized otherwise.
    known: BTreeMap<u32, u64>,
}

impl<'a> ProcessTree<'a> {
    pub(super) fn new(leader: Leader, token: &'a str) -> ProcessTree<'a> {
        let pid = leader.pid();
        // The process stays readable after its end, because only this process reaps it.
        let start_time = Process::look(pid).map_or(0, |process| process.start_time);
        let started = StartedProcess {
            pid,
            group: pid,
            start_time,
            boot_id: processes::boot_id().to_owned(),
        };
        ProcessTree {
            leader,
            started,
            token,
            known: BTreeMap::new(),
        }
    }

    pub(super) fn started(&self) -> &StartedProcess {
        &self.started
    }

    /// Returns true if the leader has ended.
    pub(super) fn leader_has_ended(&self) -> bool {
        self.leader.has_ended()
    }

    /// Returns how the leader ended.
    pub(super) fn status(&mut self) -> Option<Exit> {
        let status = self.leader.reap()?;
        Some(match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or_default()),
        })
    }

    /// Returns the running processes except for the leader. Usually this reads only the list of our own children.
    fn members(&mut self) -> Vec<Process> {
        let mut roots = if spawn::adopting() {
            self.adopted()
        } else {
            self.named()
        };
        if self.leader.reap().is_none() {
            roots.extend(processes::children_of(self.started.pid));
        }
        roots.extend(self.known.iter().filter_map(|(pid, start_time)| {
            Process::look(*pid)
                .filter(|process| process.start_time == *start_time)
                .map(|process| process.pid)
        }));
        let mut members = processes::with_descendants(roots);
        members.retain(|process| !process.ended);
        self.known = members
            .iter()
            .map(|process| (process.pid, process.start_time))
            .collect();
        members
    }

    /// Returns orphans of this command among our own children, and reaps ended orphans of any command.
    fn adopted(&self) -> Vec<u32> {
        let leaders = spawn::leaders();
        let own_group = processes::own_group();
        let (mut ours, mut nameless, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        for pid in processes::own_children() {
            if leaders.contains(&pid) {
                continue;
            }
            let Some(process) = Process::look(pid) else {
                continue;
            };
            // The program that uses this library started a child in our own group itself.
            if process.group == own_group || process.parent != std::process::id() {
            } else if process.ended {
                ended.push(pid);
            } else if process.group == self.started.group
                || self.known.get(&pid) == Some(&process.start_time)
            {
                ours.push(pid);
            } else {
                match processes::attempt_of(pid) {
                    Some(token) if token == self.token => ours.push(pid),
                    None if process.start_time >= self.started.start_time => nameless.push(pid),
                    None => spawn::strayed(),
                    Some(_) => {}
                }
            }
        }
        if !ended.is_empty() || !nameless.is_empty() {
            spawn::between_starts(|leaders| {
                for pid in ended.into_iter().filter(|pid| !leaders.contains_key(pid)) {
                    let _ = processes::kernel_id(pid)
                        .map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
                }
                // A process that cleared its environment belongs to the only running command.
                let mut nameless = nameless
                    .into_iter()
                    .filter(|pid| !leaders.contains_key(pid));
                let is_ours = |(leader, kind): (&u32, &LeaderKind)| {
                    *leader == self.started.pid || *kind == LeaderKind::Worker
                };
                if leaders.iter().all(is_ours) {
                    ours.extend(nameless);
                } else if nameless.next().is_some() {
                    spawn::strayed();
                }
            });
        }
        ours
    }

    /// Returns all processes that name this command's attempt, for systems where orphans are not adopted.
    fn named(&self) -> Vec<u32> {
        let all = processes::all().unwrap_or_default().into_iter();
        all.filter(|pid| *pid != self.started.pid && *pid != std::process::id())
            .filter(|pid| processes::attempt_of(*pid).is_some_and(|token| token == self.token))
            .collect()
    }
}

impl Terminate for ProcessTree<'_> {
    fn lives(&mut self) -> bool {
        self.leader.reap().is_none()
            || !self.members().is_empty()
            || processes::group_runs(self.started.group)
    }

    fn signal(&mut self, signal: Signal) {
        // Processes outside the group are found first: without their parents they are harder to recognize.
        let members = self.members();
        if let Some(group) = processes::kernel_id(self.started.group) {
            let _ = kill_process_group(group, signal);
        }
        for process in members
            .iter()
            .filter(|process| process.group != self.started.group)
        {
            process.signal(signal);
        }
    }
}
