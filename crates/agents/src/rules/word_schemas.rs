//! JSON Schemas of the words of a rules file, for editors. Debug builds only: they generate the published schemas.

use super::vocabulary::{Vocabulary, WordKind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Suggests the default words of a kind to editors: a file with a vocabulary of its own may have others.
fn suggestions(kind: WordKind, description: &str) -> Schema {
    static WORDS: LazyLock<Option<Vocabulary>> = LazyLock::new(|| Vocabulary::default_words().ok());
    let words = WORDS.as_ref().map(|words| words.words(kind));
    json_schema!({
        "description": description,
        "anyOf": [{ "enum": words.unwrap_or_default() }, { "type": "string" }],
    })
}

/// Declares the schema of a kind of word.
macro_rules! word_schema {
    ($name:ident, $kind:expr, $description:literal) => {
        pub(super) struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                suggestions($kind, $description)
            }
        }
    };
}

word_schema!(ElementTypeName, WordKind::ElementType, "An element type.");
word_schema!(FunctionName, WordKind::Function, "A function.");
word_schema!(LocationName, WordKind::Location, "Where an element is.");
word_schema!(
    CategoryName,
    WordKind::Category,
    "The category of a material."
);
