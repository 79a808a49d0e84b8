//! Keys of a step: those of its kind, and those that any step may have.

use super::ValueKind::{Duration, File, Integer, Jq, Name, Outcomes, Plain};
use super::{KeySpec, TableSpec, key};
use crate::model::step::KindName;

/// `[step]` and `[[step]]`.
pub(crate) static STEP: TableSpec = TableSpec {
    what: "step",
    header: "[step]",
    short: None,
    keys: &KEYS,
};

static KEYS: [KeySpec; count()] = keys();

/// Keys that any step may have, and `schema`, which two kinds share.
const SHARED: [KeySpec; 8] = [
    key("out", Name).default("the only output").doc(
        "The output that the step writes. A name that is not an output \
         is visible to later steps only.",
    ),
    key("when", Jq)
        .default("true")
        .doc("A condition; the step is skipped unless it is true."),
    key("role", Plain)
        .default("the stage's")
        .doc("`agent_name` in the journal."),
    key("summary", Jq).doc(
        "Counts, names and warnings of the result, for the journal's \
         records of the step's end and of hand-offs to another role.",
    ),
    key("timeout", Duration)
        .default("10m for agent, command, http, ifc, jq and pdf_text, 2m for wait")
        .doc(
            "The time limit of one attempt of the step, such as \"30m\". The \
             attempt then fails with the outcome `timeout`.",
        ),
    key("attempts", Integer)
        .default("3 for agent and http, else 1")
        .doc(
            "Maximum attempts of the step, with growing pauses. Steps and \
             agents that compute locally run once.",
        ),
    key("errors", Outcomes)
        .default("the stage's")
        .doc("Custom error codes for outcomes of this step."),
    key("schema", File)
        .beside(&["agent", "http"])
        .default("of agent: the output's, without `result`")
        .doc(
            "The JSON Schema of one answer; for `http`, of the response, \
             which must then be JSON.",
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

/// Returns the keys that declare the kinds, then those of any step, then those that each kind has beside.
const fn keys() -> [KeySpec; count()] {
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
