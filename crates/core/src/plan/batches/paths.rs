//! Paths of a declaration, rendered for a batch.

use crate::base::path::FilePath;
use crate::model::stage::PathTemplate;
use serde_json::Value;

/// The path or pattern that a template gives in a scope. What is put into a path is one safe component, unless the whole path
/// is one `{{ }}`.
///
/// # Errors
/// When a name is missing or the path leaves its folder; the text says which declaration.
pub fn render(path: &PathTemplate, scope: &Value) -> Result<FilePath, String> {
    let rendered = if path.is_whole() {
        path.template
            .render(scope)
            .map_err(|error| error.to_string())?
    } else {
        path.template
            .render_path(scope)
            .map_err(|error| error.to_string())?
    };
    path.place(&rendered)
        .map_err(|error| format!("`{}`: {error}", path.shown()))
}
