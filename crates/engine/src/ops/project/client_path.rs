//! Paths that a client names: inside the workspace or the project.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use milepost_core::base::path::{FilePath, RelPath, Root};
use std::path::Path;

/// Finds the file or folder that a client names: relative to the workspace, relative to the project if it leads into the workspace,
/// or absolute inside either.
///
/// # Errors
/// When the path leaves both, by its text or through a symbolic link.
pub(crate) fn client_path(opened: &OpenProject, text: &str) -> Result<FilePath, OpsError> {
    let file = place(opened, text)?;
    // Follows links only inside the folder.
    let found = opened.files.resolve(&file);
    found.map_err(|error| OpsError::Outside(error.to_string()))?;
    Ok(file)
}

fn place(opened: &OpenProject, text: &str) -> Result<FilePath, OpsError> {
    let workspace = opened.files.folder(Root::Workspace);
    let project = opened.files.folder(Root::Project);
    let inside = |root: Root, folder: &Path, path: &Path| {
        let rest = path.strip_prefix(folder).ok()?.to_str()?;
        let path = RelPath::parse(rest).ok()?;
        Some(FilePath { root, path })
    };
    if Path::new(text).is_absolute() {
        let path = Path::new(text);
        let typed = opened.workspace.layout.root();
        let found = inside(Root::Workspace, workspace, path)
            .or_else(|| inside(Root::Workspace, typed, path))
            .or_else(|| inside(Root::Project, project, path))
            .or_else(|| inside(Root::Project, &opened.project, path));
        return found.ok_or_else(|| {
            OpsError::Outside(format!(
                "`{text}` is neither in the workspace `{}` nor in the project `{}`",
                workspace.display(),
                project.display()
            ))
        });
    }
    let file: FilePath = text
        .parse()
        .map_err(|error: milepost_core::base::path::PathError| {
            OpsError::Outside(error.to_string())
        })?;
    if file.root == Root::Workspace
        && let Some(found) = inside(
            Root::Workspace,
            workspace,
            &project.join(file.path.as_str()),
        )
    {
        return Ok(found);
    }
    Ok(file)
}
