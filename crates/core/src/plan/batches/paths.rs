//! Paths of a declaration, rendered for a batch.

use crate::base::path::FilePath;
use crate::model::stage::{ExpressionError, PathTemplate};
use serde_json::Value;

/// Renders a path or pattern in a scope. Each value becomes one safe component, unless the whole path is one `{{ }}`.
///
/// # Errors
/// If a name is missing or the path leaves its folder.
pub fn render(path: &PathTemplate, scope: &Value) -> Result<FilePath, ExpressionError> {
    let rendered = if path.is_whole() {
        path.template.render(scope)?
    } else {
        path.template.render_path(scope)?
    };
    path.place(&rendered)
        .map_err(|error| ExpressionError::Path {
            declared: path.shown(),
            error,
        })
}
