//! The other tools: what they are called, whether they are here, and how they are told to build.

use crate::Result;
use crate::work::Work;
use std::process::Command;

/// A tool that stands beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Tool {
    Ninja,
    Make,
    N2,
    /// Up to 1,000 batches: beyond it takes hours.
    Snakemake,
    /// Up to 1,000 batches, and only when named: they take a quarter of an hour.
    Dvc,
}

/// A tool that is installed.
pub struct Installed {
    /// Which.
    pub tool: Tool,
    /// What it says of its version.
    pub version: String,
}

impl std::fmt::Display for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Those of the tools that are here.
pub fn installed(tools: &[Tool]) -> Vec<Installed> {
    let mut found = Vec::new();
    for &tool in tools {
        match Command::new(tool.name()).arg("--version").output() {
            Ok(output) if output.status.success() => {
                let text = String::from_utf8_lossy(&output.stdout);
                let version = text.lines().next().unwrap_or_default().to_owned();
                found.push(Installed { tool, version });
            }
            _ => println!("skipped: {tool} is not installed"),
        }
    }
    found
}

impl Tool {
    /// The program's name.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Ninja => "ninja",
            Tool::Make => "make",
            Tool::N2 => "n2",
            Tool::Snakemake => "snakemake",
            Tool::Dvc => "dvc",
        }
    }

    /// The most batches that it is given.
    pub fn most(self) -> usize {
        match self {
            Tool::Ninja | Tool::Make | Tool::N2 => 100_000,
            Tool::Snakemake | Tool::Dvc => 1_000,
        }
    }

    /// Builds what is not up to date.
    pub fn build(self, work: &Work, jobs: usize) -> Command {
        let mut command = Command::new(self.name());
        command.current_dir(&work.folder);
        let jobs = jobs.to_string();
        match self {
            Tool::Ninja | Tool::N2 => {
                command.args(["-f", &format!("{}.build", self.name()), "-j", &jobs]);
                if self == Tool::Ninja {
                    command.arg("--quiet");
                }
            }
            Tool::Make => {
                command.args(["-s", "-j", &jobs]);
            }
            Tool::Snakemake => {
                command.args(["--quiet", "all", "--cores", &jobs]);
            }
            Tool::Dvc => {
                command.args(["repro", "--quiet"]);
            }
        }
        command
    }

    /// Takes away what it made and knows, so that its next build is its first.
    pub fn clear(self, work: &Work) -> Result<()> {
        let knows: &[&str] = match self {
            Tool::Ninja => &[".ninja_log", ".ninja_deps"],
            Tool::Make => &[],
            Tool::N2 => &[".n2_db"],
            Tool::Snakemake => &[".snakemake"],
            Tool::Dvc => &[".dvc", "dvc.lock"],
        };
        work.clear_made(self.name(), knows)?;
        if self == Tool::Dvc {
            let mut init = Command::new("dvc");
            init.args(["init", "--no-scm", "--quiet"]);
            let status = init.current_dir(&work.folder).status()?;
            if !status.success() {
                return Err(format!("dvc init ended with {status}").into());
            }
        }
        Ok(())
    }
}
