//! A scheduler of the tests, which plays PBS.

use crate::support::required::{self, Missing};
use crate::support::temporary;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running scheduler. It ends with this.
pub struct Pbs {
    spool: tempfile::TempDir,
    server: Child,
}

impl Pbs {
    /// Starts it with so many slots.
    pub fn start(slots: usize) -> Result<Self, Missing> {
        required::program("python3", &["--version"])?;
        let spool = temporary();
        std::fs::write(spool.path().join("pbs.py"), include_str!("pbs.py")).unwrap();
        let mut server = Command::new("python3");
        server.arg(spool.path().join("pbs.py")).arg("serve");
        server.arg(spool.path()).arg(slots.to_string());
        server.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut server = server.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Ok(Self { spool, server })
    }

    /// Returns the declaration of an executor that uses it, with more keys.
    pub fn executor(&self, more: &str) -> String {
        let spool = self.spool.path().display();
        let command = format!("python3 {spool}/pbs.py");
        format!(
            "[executor.command]\n\
             submit = \"{command} submit {spool} {{{{ script }}}} {{{{ output }}}} {{{{ jobs }}}} {{{{ at_once }}}} {{{{ memory_mb }}}}\"\n\
             poll = \"{command} poll {spool} {{{{ ids }}}}\"\n\
             cancel = \"{command} cancel {spool} {{{{ id }}}}\"\n\
             index = \"PBS_ARRAY_INDEX\"\npoll_interval = \"100ms\"\nvisible = \"1s\"\n{more}\n"
        )
    }

    /// Returns the declaration of an executor that also finds jobs by their name.
    pub fn executor_that_finds(&self, more: &str) -> String {
        let spool = self.spool.path().display();
        let find = format!("find = \"python3 {spool}/pbs.py find {spool} {{{{ name }}}}\"\n{more}");
        let memory = "{{ memory_mb }}";
        self.executor(&find)
            .replace(memory, &format!("{memory} {{{{ name }}}}"))
    }

    /// Returns a line of shell by which a batch asks for a fault, once.
    pub fn fault(&self, key: &str, name: &str) -> String {
        let spool = self.spool.path().display();
        format!(
            "if [ $key = {key} ] && mkdir {spool}/once-{key}-{name} 2>/dev/null; then echo $$ >{spool}/fault/{name}; sleep 60; fi;"
        )
    }

    /// Waits until no job waits or runs.
    pub fn wait_for_end(&self) {
        let end = Instant::now() + Duration::from_mins(1);
        let is_busy = || {
            let states = std::fs::read_to_string(self.spool.path().join("states")).unwrap();
            states.contains("\"running\"") || states.contains("\"queued\"")
        };
        while is_busy() {
            assert!(Instant::now() < end, "the jobs never ended");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the file that lists the submissions, a line for each.
    pub fn list(&self) -> String {
        self.spool.path().join("submissions").display().to_string()
    }

    /// Returns the jobs, the most at once and the memory of each submission.
    pub fn submissions(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.spool.path().join("submissions"));
        text.unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

impl Drop for Pbs {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
