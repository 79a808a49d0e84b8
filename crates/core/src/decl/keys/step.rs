//! Keys of a step: those of its kind, and those that any step may have.

use super::Kind::{Duration, File, Integer, Jq, Name, Plain};
use super::Need::{Beside, Optional};
use super::{Key, Table, key};
use crate::model::step::KindName;

/// `[step]` and `[[step]]`.
pub static STEP: Table = Table {
    what: "step",
    header: "[step]",
    short: None,
    keys: &KEYS,
};

static KEYS: [Key; count()] = keys();

/// Keys that any step may have, and `schema`, which two kinds share.
const SHARED: [Key; 6] = [
    key(
        "out",
        Name,
        Optional,
        "the only output",
        "The output that the step makes; a name that is no output is for later steps only.",
    ),
    key(
        "when",
        Jq,
        Optional,
        "true",
        "Only then; else the step is skipped.",
    ),
    key(
        "role",
        Plain,
        Optional,
        "the stage's",
        "`agent_name` in the journal.",
    ),
    key(
        "timeout",
        Duration,
        Optional,
        "10m for agent, command and http, 2m for wait",
        "The time of one try of the step, such as \"30m\": then it is stopped, and the try has failed with the outcome `timeout`.",
    ),
    key(
        "attempts",
        Integer,
        Optional,
        "3 for agent and http, else 1",
        "Tries of the step, with pauses that grow. A step that computes, and an agent that does, is tried once.",
    ),
    key(
        "schema",
        File,
        Beside(&["agent", "http"]),
        "of agent: the output's, without `result`",
        "JSON Schema of one answer; of http: of the reply, which is JSON then.",
    ),
];

const fn count() -> usize {
    let mut count = SHARED.len();
    let mut kind = 0;
    while kind < KindName::ALL.len() {
        count += KindName::ALL[kind].info().keys.len();
        kind += 1;
    }
    count
}

/// The keys that declare the kinds, then those of any step, then those that each kind has beside.
const fn keys() -> [Key; count()] {
    let mut keys = [SHARED[0]; count()];
    let kinds = KindName::ALL;
    let mut kind = 0;
    while kind < kinds.len() {
        keys[kind] = kinds[kind].info().keys[0];
        kind += 1;
    }
    let mut at = kinds.len();
    let mut shared = 0;
    while shared < SHARED.len() {
        keys[at] = SHARED[shared];
        at += 1;
        shared += 1;
    }
    kind = 0;
    while kind < kinds.len() {
        let beside = kinds[kind].info().keys;
        let mut own = 1;
        while own < beside.len() {
            keys[at] = beside[own];
            at += 1;
            own += 1;
        }
        kind += 1;
    }
    keys
}
