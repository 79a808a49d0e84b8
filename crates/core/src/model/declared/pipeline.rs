//! A project as declared: parameters, environment, agents, limits and stages.

use super::agent::Agent;
pub use super::asset::Asset;
use super::executor::Executors;
use super::expression::{Program, Text};
pub(crate) use super::param::Param;
use super::stage::Stage;
use crate::model::money::NanoUsd;
use std::collections::BTreeMap;
use std::time::Duration;

/// The declarations in `milepost.toml` and in `stages/`.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub name: String,
    /// Parameters, in the order of the file.
    pub params: Vec<Param>,
    /// Environment variables that declarations may read, with their defaults.
    pub env: BTreeMap<String, String>,
    /// Agents by name.
    pub agents: BTreeMap<String, Agent>,
    /// The limits of a workspace over all its runs.
    pub limits: Limits,
    /// Prices of models that win over those that Milepost knows: `prices.toml`, if it is there.
    pub prices: Option<Asset>,
    /// Services by name.
    pub services: BTreeMap<String, Service>,
    /// Where batches can run besides this machine.
    pub executors: Executors,
    /// How workspace lists are read.
    pub manifest: Manifest,
    /// True if the umask decides who can read answers, calls, prompts and leases, and not only their owner.
    pub is_shared: bool,
    /// Names for outcomes, for all stages.
    pub errors: BTreeMap<String, String>,
    /// The stages, by number.
    pub stages: Vec<Stage>,
}

/// How workspace lists are read, and how their runs are summed up. The programs see `.` only.
#[derive(Debug, Clone, Default)]
pub struct Manifest {
    /// The program that returns the entries; `None`: the file is the list.
    pub select: Option<Program>,
    /// The program that sums up the runs.
    pub summary: Option<Program>,
}

/// The limits of a workspace's calls, over all its runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Money.
    pub usd: Option<NanoUsd>,
    /// Tokens, input and output.
    pub tokens: Option<u64>,
    pub calls: Option<u64>,
    /// The sum of the durations of calls.
    pub time: Option<Duration>,
}

impl Pipeline {
    /// Returns the stage of this name, or of this number.
    pub fn stage(&self, name: &str) -> Option<&Stage> {
        self.stages
            .iter()
            .find(|stage| stage.name == name || stage.number.to_string() == name)
    }

    /// Returns the parameter of this name.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name)
    }
}

/// A process that stages need and that ends with the run.
#[derive(Debug, Clone)]
pub struct Service {
    /// The name in `[services.NAME]`.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<Text>,
    /// True if the declaration is one string, which runs by `sh -c`.
    pub shell: bool,
    /// The URL that answers when the service is ready.
    pub ready: Text,
    /// The declared environment variables that it sees.
    pub env: Vec<String>,
}
