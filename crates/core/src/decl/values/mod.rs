//! The values of keys: files of the project, expressions and the names that they may use.

mod command_paths;
mod defaults;
mod expression;
mod includes;
pub(crate) mod names;
pub(crate) mod reader;
pub(crate) mod schema_refs;
pub(crate) mod template_choice;
