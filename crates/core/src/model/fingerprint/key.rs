//! The keys of facts: a kind and a name.

use crate::base::parsed::parsed;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use strum::{EnumString, IntoStaticStr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr)]
#[cfg_attr(debug_assertions, derive(strum::VariantNames))]
#[strum(serialize_all = "lowercase")]
pub enum FactKind {
    /// The declaration of the steps, outputs and `each`, rendered.
    Step,
    /// The digest of an input file.
    Input,
    /// The item of the batch.
    Item,
    /// The value of a parameter that the stage uses.
    Param,
    /// The digest of a file of the project: prompt, template, jq program or workbook.
    File,
    /// The digest of an agent.
    Agent,
    /// The digest of the value of an environment variable.
    Env,
    /// A value of the workspace that the stage uses: `today`, `name`.
    Workspace,
    /// The version of a step's work.
    Version,
    /// The content of a program outside the project that a command names; of a large one its path, size and time.
    Program,
    /// The digest of a file that the program of a batch named in its depfile, or `absent`.
    Dependency,
    /// A schema of an output or an answer. Judged.
    Schema,
    /// A check. Judged.
    Check,
    /// Conservation. Judged.
    Conserve,
    /// A part of another fact, recorded to report which part changed. Facts that earlier versions recorded have none.
    Detail,
}

/// Separates the fact and the part in the name of a detail.
const OF: &str = " | ";

impl FactKind {
    /// Returns the word in keys and messages.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Returns the kind of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        word.parse().ok()
    }

    /// Returns true if such a fact only decides whether outputs are valid.
    pub fn only_validates(self) -> bool {
        matches!(self, Self::Schema | Self::Check | Self::Conserve)
    }
}

/// The identity of a fact: its kind and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactKey {
    pub kind: FactKind,
    /// The name, unique in the kind: a path for `Input`, a parameter for `Param`.
    pub name: Arc<str>,
}

impl fmt::Display for FactKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.name)
    }
}

impl FactKey {
    /// Returns the key of a detail of this fact, which reasons call `kind name`.
    #[must_use]
    pub(crate) fn detail(&self, kind: FactKind, name: &str) -> Self {
        let name = format!("{self}{OF}{} {name}", kind.word()).into();
        let kind = FactKind::Detail;
        Self { kind, name }
    }

    /// Returns the fact that a detail belongs to, and what reasons call it; none of other facts.
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
        let kind = kind.ok_or_else(|| format!("`{word}` is not a kind of fact"))?;
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

#[cfg(debug_assertions)]
impl schemars::JsonSchema for FactKey {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Fact".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let words = <FactKind as strum::VariantNames>::VARIANTS;
        let pattern = format!("^({})( |$)", words.join("|"));
        schemars::json_schema!({ "type": "string", "pattern": pattern })
    }
}
