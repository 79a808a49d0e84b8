//! Ends processes that survived an earlier run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::{Signal, kill_process_group};

use super::StartedProcess;
use super::processes::{self, Process};
use super::stop::{Terminate, terminate};

/// Ends the commands of an earlier run with all their processes, by `SIGTERM`, `grace`, `SIGKILL`, and returns the ids of the
/// ended processes in ascending order.
///
/// A group is ended only if its leader is the recorded process (id, start time and boot), or if the leader is gone and a member
/// names one of `tokens`, because ids are reused. Besides, every readable process that names one of `tokens` in its environment
/// is ended, with its descendants. A token that ends in `/` matches all tokens that start with it, which is a whole run. On
/// systems without process identities (not Linux), nothing is ended.
pub fn end_survivors(children: &[StartedProcess], tokens: &[String], grace: Duration) -> Vec<u32> {
    if processes::all().is_none() || (children.is_empty() && tokens.is_empty()) {
        return Vec::new();
    }
    let mut survivors = Survivors {
        children,
        tokens: tokens.iter().map(String::as_str).collect(),
        seen: BTreeMap::new(),
    };
    if survivors.lives() {
        terminate(&mut survivors, grace, &mut std::thread::sleep);
    }
    survivors
        .seen
        .values()
        .filter(|process| !process.runs())
        .map(|process| process.pid)
        .collect()
}

struct Survivors<'a> {
    children: &'a [StartedProcess],
    tokens: BTreeSet<&'a str>,
    seen: BTreeMap<u32, Process>,
}

impl Survivors<'_> {
    /// Returns true if a token matches one of those of the earlier run.
    fn names(&self, token: &str) -> bool {
        let run = token.split_inclusive('/').next().unwrap_or(token);
        self.tokens.contains(token) || self.tokens.contains(run)
    }

    /// Returns the survivors that run, and the groups that consist of them.
    fn find(&mut self) -> (Vec<Process>, BTreeSet<u32>) {
        let spared = ourselves();
        let all: Vec<Process> = processes::all()
            .unwrap_or_default()
            .into_iter()
            .filter_map(Process::look)
            .collect();
        let names: BTreeSet<u32> = if self.tokens.is_empty() {
            BTreeSet::new()
        } else {
            let named = all
                .iter()
                .filter(|process| !process.ended && !spared.contains(&process.pid));
            named
                .filter(|process| {
                    processes::attempt_of(process.pid).is_some_and(|token| self.names(&token))
                })
                .map(|process| process.pid)
                .collect()
        };
        let own_group = processes::own_group();
        let mut groups = BTreeSet::new();
        for child in self.children {
            if child.boot_id.is_empty()
                || child.boot_id != processes::boot_id()
                || child.group <= 1
                || child.group == own_group
            {
                continue;
            }
            let ours = match all.iter().find(|process| process.pid == child.pid) {
                Some(leader) => {
                    leader.start_time == child.start_time && leader.group == child.group
                }
                None => all
                    .iter()
                    .any(|process| process.group == child.group && names.contains(&process.pid)),
            };
            if ours {
                groups.insert(child.group);
            }
        }
        let known = self
            .seen
            .values()
            .filter(|process| process.runs())
            .map(|process| process.pid);
        let in_groups = all
            .iter()
            .filter(|process| groups.contains(&process.group))
            .map(|process| process.pid);
        let mut found =
            processes::with_descendants(names.iter().copied().chain(in_groups).chain(known));
        found.retain(|process| !process.ended && !spared.contains(&process.pid));
        self.seen
            .extend(found.iter().map(|process| (process.pid, *process)));
        (found, groups)
    }
}

impl Terminate for Survivors<'_> {
    fn lives(&mut self) -> bool {
        !self.find().0.is_empty()
    }

    fn signal(&mut self, signal: Signal) {
        let (found, groups) = self.find();
        for group in &groups {
            if let Some(group) = processes::kernel_id(*group) {
                let _ = kill_process_group(group, signal);
            }
        }
        for process in found
            .iter()
            .filter(|process| !groups.contains(&process.group))
        {
            process.signal(signal);
        }
    }
}

/// Returns this process and its ancestors: a process that must be ended may have started this run.
fn ourselves() -> BTreeSet<u32> {
    let mut spared = BTreeSet::from([0, 1]);
    let mut pid = std::process::id();
    while spared.insert(pid) {
        pid = Process::look(pid).map_or(0, |process| process.parent);
    }
    spared
}
