//! Everything that could change a batch's outputs, as data.
//!
//! A fingerprint is a list of facts. A fact's key is a kind and a name (`input intermediate/parsed_data.json`), its value a
//! digest or a short value. Facts of the *made* part change what is made; facts of the *judged* part only whether it is valid.
//! Never a fact: modification times, absolute paths, host, time, run, stage number, concurrency, retries, budgets.

pub use super::facts::{FactValue, Facts};
use crate::base::parsed::parsed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What a fact is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FactKind {
    /// The declaration of the steps, outputs and `each`, rendered.
    Step,
    /// A file that is read: its digest.
    Input,
    /// The item that the batch is for: its value's digest.
    Item,
    /// A parameter that is mentioned: its value.
    Param,
    /// A file of the project that says how: prompt, template, jq program, workbook. Its digest.
    File,
    /// Who answers: its digest.
    Agent,
    /// An environment variable that is declared: the digest of its value.
    Env,
    /// A value of the workspace that is mentioned: `today`, `name`.
    Workspace,
    /// The version of a step's work.
    Version,
    /// A schema of an output or an answer. Judged.
    Schema,
    /// A check. Judged.
    Check,
    /// Conservation. Judged.
    Conserve,
    /// What another fact is made of, part by part: it says what of that fact changed. Facts that earlier versions recorded have none.
    Detail,
}

const KINDS: [(FactKind, &str); 13] = [
    (FactKind::Step, "step"),
    (FactKind::Input, "input"),
    (FactKind::Item, "item"),
    (FactKind::Param, "param"),
    (FactKind::File, "file"),
    (FactKind::Agent, "agent"),
    (FactKind::Env, "env"),
    (FactKind::Workspace, "workspace"),
    (FactKind::Version, "version"),
    (FactKind::Schema, "schema"),
    (FactKind::Check, "check"),
    (FactKind::Conserve, "conserve"),
    (FactKind::Detail, "detail"),
];

/// Stands in the name of a detail between the fact that it belongs to and what it is called itself.
const OF: &str = " | ";

impl FactKind {
    /// The word in keys and messages.
    pub fn word(self) -> &'static str {
        KINDS
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("", |(_, word)| word)
    }

    /// The kind of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        let found = KINDS.iter().find(|(_, known)| *known == word);
        found.map(|(kind, _)| *kind)
    }

    /// Whether it only says what is valid.
    pub fn is_judged(self) -> bool {
        matches!(self, Self::Schema | Self::Check | Self::Conserve)
    }
}

/// What a fact is about, and which.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactKey {
    /// The kind.
    pub kind: FactKind,
    /// Which of the kind.
    pub name: Arc<str>,
}

impl fmt::Display for FactKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.name)
    }
}

impl FactKey {
    /// The key of a detail of this fact, which reasons call `kind name`.
    #[must_use]
    pub fn detail(&self, kind: FactKind, name: &str) -> Self {
        let name = format!("{self}{OF}{} {name}", kind.word()).into();
        let kind = FactKind::Detail;
        Self { kind, name }
    }

    /// The fact that a detail belongs to, and what reasons call it; none of other facts.
    pub fn detailed(&self) -> Option<(Self, Self)> {
        let (whole, part) = self.name.split_once(OF)?;
        let is_detail = self.kind == FactKind::Detail;
        is_detail.then_some((whole.parse().ok()?, part.parse().ok()?))
    }
}

impl FromStr for FactKey {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (word, name) = text.split_once(' ').unwrap_or((text, ""));
        let kind = FactKind::of_word(word);
        let kind = kind.ok_or_else(|| format!("`{word}` is no kind of fact"))?;
        Ok(Self {
            kind,
            name: name.into(),
        })
    }
}

impl Serialize for FactKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FactKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

impl schemars::JsonSchema for FactKey {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Fact".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let words: Vec<&str> = KINDS.iter().map(|(_, word)| *word).collect();
        let pattern = format!("^({})( |$)", words.join("|"));
        schemars::json_schema!({ "type": "string", "pattern": pattern })
    }
}

/// How one fact differs between what is recorded and what is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Change {
    /// What it is about, such as `input intermediate/parsed_data.json`.
    #[schemars(with = "String")]
    pub fact: FactKey,
    /// What was recorded; none when it is there only in the present.
    pub old: Option<String>,
    /// What is; none when it is gone.
    pub new: Option<String>,
    /// The fact that it is a part of, where only a part differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub of: Option<FactKey>,
}

/// The differences between two fingerprints: of each, facts that many batches share and those of one, with no key twice.
///
/// Where both have details of a fact, these decide: a table of rules of which only a comment changed is the same. Where one of them
/// has none, since an earlier version recorded it, the fact itself does.
pub fn changes(old: [&Facts; 2], new: [&Facts; 2]) -> Vec<Change> {
    if old == new {
        return Vec::new();
    }
    let (mut old, new) = (Whole::of(old), Whole::of(new));
    let mut found = Vec::new();
    for (fact, (value, details)) in new.0 {
        match old.0.remove(&fact) {
            Some((old, mut before)) if !before.is_empty() && !details.is_empty() => {
                let mut details = details;
                // The same bytes under another name are the same.
                if old == value {
                    before.retain(|part, _| part.kind != FactKind::File);
                    details.retain(|part, _| part.kind != FactKind::File);
                }
                compare(before, details, Some(&fact), &mut found);
            }
            before => {
                let before = before.map(|(old, _)| (fact.clone(), old));
                let present = [(fact, value)].into();
                compare(before.into_iter().collect(), present, None, &mut found);
            }
        }
    }
    for (fact, (value, _)) in old.0 {
        compare([(fact, value)].into(), BTreeMap::new(), None, &mut found);
    }
    found.sort_by(|a, b| a.fact.cmp(&b.fact));
    // A file that two facts hold is named once.
    found.dedup_by(|a, b| a.fact == b.fact);
    found
}

/// Facts, each with its details under the names that reasons call them by.
struct Whole(BTreeMap<FactKey, (FactValue, BTreeMap<FactKey, FactValue>)>);

impl Whole {
    fn of(facts: [&Facts; 2]) -> Self {
        let mut whole = Self(BTreeMap::new());
        let mut parts = Vec::new();
        for (key, value) in facts.into_iter().flat_map(Facts::iter) {
            match key.detailed() {
                Some((of, part)) => parts.push((of, part, value.clone())),
                None => {
                    whole
                        .0
                        .insert(key.clone(), (value.clone(), BTreeMap::new()));
                }
            }
        }
        for (of, part, value) in parts {
            if let Some((_, details)) = whole.0.get_mut(&of) {
                details.insert(part, value);
            }
        }
        whole
    }
}

/// Adds what differs between the facts of two maps.
fn compare(
    mut old: BTreeMap<FactKey, FactValue>,
    new: BTreeMap<FactKey, FactValue>,
    of: Option<&FactKey>,
    found: &mut Vec<Change>,
) {
    let of = || of.cloned();
    let text = |value: FactValue| value.to_string();
    for (fact, value) in new {
        let before = old.remove(&fact);
        if before.as_ref() != Some(&value) {
            let (old, new) = (before.map(text), Some(text(value)));
            let of = of();
            found.push(Change { fact, old, new, of });
        }
    }
    // Documents bore the workspace's day, and it was a fact; now they bear that of their run, which is none.
    let is_date = |fact: &FactKey| fact.kind == FactKind::Workspace && &*fact.name == "today";
    old.retain(|fact, _| !is_date(fact));
    found.extend(old.into_iter().map(|(fact, value)| Change {
        fact,
        old: Some(text(value)),
        new: None,
        of: of(),
    }));
}
