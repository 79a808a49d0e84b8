//! A TOML file as tables whose keys are checked: syntax, places, unknown keys, types of values.

pub(crate) mod fields;
pub(crate) mod hints;
pub(crate) mod located_text;
mod syntax;
pub(crate) mod tree;
mod value_types;
