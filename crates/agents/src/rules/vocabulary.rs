//! The words that answers consist of, as data: what an element or a material may be, and what follows from each word.

use serde::Deserialize;
use std::sync::Arc;

/// A word of the vocabulary, shared by all answers.
pub(super) type Word = Arc<str>;

/// The words of a rules file that declares none.
const DEFAULT: &str = include_str!("vocabulary.toml");

/// The words that an answer consists of.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Vocabulary {
    /// The word for an unknown element type or category.
    pub(super) unknown: String,
    /// The functions.
    pub(super) functions: Vec<String>,
    /// The locations.
    pub(super) locations: Vec<String>,
    /// The location if neither the rule nor the type decides it.
    pub(super) location_by: LocationBy,
    /// The element types.
    pub(super) element_type: Vec<ElementType>,
    /// The categories of materials.
    pub(super) category: Vec<Category>,
}

/// Locations by IsExternal and the storey.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct LocationBy {
    /// IsExternal is true.
    pub(super) external: String,
    /// IsExternal is false.
    pub(super) not_external: String,
    /// IsExternal is unknown, and the storey is below the ground.
    pub(super) below_ground: String,
}

/// An element type.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ElementType {
    /// Name, as answers use it.
    pub(super) name: String,
    /// Function of elements of this type, unless a rule overrides it.
    pub(super) function: String,
    /// Location of elements of this type. Default: by IsExternal and storey.
    pub(super) location: Option<String>,
}

/// A category of materials.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Category {
    /// Name, as answers use it.
    pub(super) name: String,
    /// Role of a layer of this category, unless a `[[material]]` overrides it.
    pub(super) layer: Layer,
}

/// The role of a layer, which determines the primary one: the thickest structural layer, else the thickest solid one, else the
/// thickest filling; `never` is never primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum Layer {
    Never,
    Filling,
    Solid,
    Structural,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum WordKind {
    ElementType,
    Function,
    Location,
    Category,
}

/// A word that the vocabulary does not have.
#[derive(Debug)]
pub(super) struct UnknownWord(pub(super) String);

impl Vocabulary {
    /// Returns the words of a rules file that declares none. The tests read them.
    pub(super) fn default_words() -> Result<Self, toml::de::Error> {
        toml::from_str(DEFAULT)
    }

    /// Returns all words of a kind, in their order.
    pub(super) fn words(&self, kind: WordKind) -> Vec<&str> {
        match kind {
            WordKind::ElementType => self.element_type.iter().map(|it| &*it.name).collect(),
            WordKind::Function => self.functions.iter().map(|it| &**it).collect(),
            WordKind::Location => self.locations.iter().map(|it| &**it).collect(),
            WordKind::Category => self.category.iter().map(|it| &*it.name).collect(),
        }
    }

    /// Checks a word.
    pub(super) fn check(&self, kind: WordKind, word: &str) -> Result<(), UnknownWord> {
        let known = self.words(kind);
        if known.contains(&word) {
            return Ok(());
        }
        let kind = match kind {
            WordKind::ElementType => "element type",
            WordKind::Function => "function",
            WordKind::Location => "location",
            WordKind::Category => "category",
        };
        let known = known.join("`, `");
        Err(UnknownWord(format!(
            "unknown {kind} `{word}`, expected one of `{known}`"
        )))
    }

    /// Checks the words that the vocabulary itself uses.
    pub(super) fn check_itself(&self) -> Result<(), UnknownWord> {
        self.check(WordKind::ElementType, &self.unknown)?;
        self.check(WordKind::Category, &self.unknown)?;
        for one in &self.element_type {
            self.check(WordKind::Function, &one.function)?;
        }
        let by = &self.location_by;
        let fixed = self
            .element_type
            .iter()
            .filter_map(|it| it.location.as_ref());
        for word in fixed.chain([&by.external, &by.not_external, &by.below_ground]) {
            self.check(WordKind::Location, word)?;
        }
        Ok(())
    }

    /// Returns the element type of a name.
    pub(super) fn element_type(&self, name: &str) -> Option<&ElementType> {
        self.element_type.iter().find(|it| it.name == name)
    }

    /// Returns what a layer of a category does.
    pub(super) fn layer(&self, category: &str) -> Layer {
        let found = self.category.iter().find(|it| it.name == category);
        found.map_or(Layer::Solid, |it| it.layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_words_are_whole() {
        let words = Vocabulary::default_words().unwrap();
        assert!(words.check_itself().is_ok());
        assert!(words.element_type("load_bearing_wall").is_some());
        assert_eq!(words.layer("air"), Layer::Never);
    }
}
