//! Paths of a declaration, rendered for a batch.

use crate::base::glob::{escaped, is_pattern};
use crate::base::path::{FilePath, PathError, RelPath};
use crate::base::reserved::reserved;
use crate::model::stage::{ExpressionError, PathTemplate};
use serde_json::Value;

/// The files that a rendered path names. Only a declaration, or the value of a parameter, is a pattern.
#[derive(Debug)]
pub enum Named {
    /// One file; characters of its path are never wildcards.
    File(FilePath),
    /// The files that match a pattern.
    Pattern(FilePath),
}

impl Named {
    /// Returns a pattern for these files.
    pub fn into_pattern(self) -> FilePath {
        match self {
            Self::Pattern(pattern) => pattern,
            Self::File(file) => FilePath {
                root: file.root,
                path: RelPath::parse(&escaped(file.path.as_str())).unwrap_or(file.path),
            },
        }
    }
}

/// Renders the path of one file. Each value becomes one safe component, unless the whole path is one `{{ }}`.
///
/// # Errors
/// If a name is missing, the path leaves its folder, or it is reserved.
pub fn render(path: &PathTemplate, scope: &Value) -> Result<FilePath, ExpressionError> {
    let rendered = if path.is_whole() {
        path.template.render(scope)?
    } else {
        path.template.render_path(scope)?
    };
    place(path, &rendered)
}

/// Renders a path that a stage reads: a file or a pattern.
///
/// # Errors
/// The errors of [`render`].
pub fn read(path: &PathTemplate, scope: &Value) -> Result<Named, ExpressionError> {
    if path.is_pattern() {
        let rendered = path.template.render_pattern(scope)?;
        return place(path, &rendered).map(Named::Pattern);
    }
    let file = render(path, scope)?;
    Ok(if path.may_be_pattern() && is_pattern(file.path.as_str()) {
        Named::Pattern(file)
    } else {
        Named::File(file)
    })
}

fn place(path: &PathTemplate, rendered: &str) -> Result<FilePath, ExpressionError> {
    let placed = path.place(rendered).and_then(unreserved);
    placed.map_err(|error| ExpressionError::Path {
        declared: path.shown(),
        error,
    })
}

/// Returns the path, unless it is reserved for Milepost.
///
/// # Errors
/// [`PathError::Reserved`].
pub(crate) fn unreserved(file: FilePath) -> Result<FilePath, PathError> {
    match reserved(file.root, &file.path) {
        Some(owner) => Err(PathError::Reserved(file.to_string(), owner)),
        None => Ok(file),
    }
}
