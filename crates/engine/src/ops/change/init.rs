//! Creates a project from a template.

use crate::ops::change::templates::TEMPLATES;
use crate::ops::project::error::OpsError;
use crate::ops::schema::{FOLDER, schemas, text};
use milepost_core::decl::PROJECT_FILE;
use milepost_store::store::disk::{Disk, parent};
use milepost_store::store::files::real_path;
use serde_json::json;
use std::path::Path;

pub use crate::ops::change::templates::Initiated;

/// Milepost's own files and outputs are not for version control.
const IGNORED: &str = "/.milepost/\n/workspace*/*\n!/workspace*/inputs/\n";

/// Returns the names and descriptions of the templates.
pub fn templates() -> Vec<(&'static str, &'static str)> {
    TEMPLATES
        .iter()
        .map(|template| (template.name, template.about))
        .collect()
}

/// Creates a project from a template. `base` is the folder that `folder` is relative to.
///
/// # Errors
/// When there is no such template, a file of it exists already, or the disk fails.
pub fn init(disk: &Disk, base: &Path, folder: &str, name: &str) -> Result<Initiated, OpsError> {
    let template = TEMPLATES.iter().find(|template| template.name == name);
    let Some(template) = template else {
        let known: Vec<String> = templates()
            .iter()
            .map(|(name, about)| format!("`{name}` ({about})"))
            .collect();
        let message = format!(
            "there is no template `{name}`; available: {}",
            known.join(", ")
        );
        return Err(OpsError::Usage(message));
    };
    let root = base.join(folder);
    let project = real_path(&root);
    let project = project.file_name().and_then(|name| name.to_str());
    let content = |path: &str, bytes: &[u8]| match (path, project) {
        (PROJECT_FILE, Some(name)) => named(name, at_home(path, bytes)),
        _ => at_home(path, bytes),
    };
    let mut files: Vec<(String, Vec<u8>)> = template
        .files
        .iter()
        .map(|(path, bytes)| ((*path).to_owned(), content(path, bytes)))
        .collect();
    for (name, schema) in schemas() {
        if template.schemas.contains(&name) {
            let path = format!("{FOLDER}/{name}.schema.json");
            files.push((path, text(&schema).into_bytes()));
        }
    }
    if !files.iter().any(|(path, _)| path == ".gitignore") {
        files.push((".gitignore".to_owned(), IGNORED.as_bytes().to_vec()));
    }
    let there: Vec<&str> = files
        .iter()
        .filter(|(path, _)| root.join(path).symlink_metadata().is_ok())
        .map(|(path, _)| path.as_str())
        .collect();
    if let Some(first) = there.first() {
        let more = match there.len() {
            1 => String::new(),
            many => format!(" (and {} more)", many - 1),
        };
        return Err(OpsError::Usage(format!(
            "`{first}`{more} already exists in {}, and `init` overwrites nothing: name another folder, `milepost init {name} DIR`",
            root.display()
        )));
    }
    for (path, bytes) in &files {
        let path = root.join(path);
        disk.create_dir_all(parent(&path))?;
        disk.write_atomic(&path, bytes)?;
    }
    let place = if matches!(folder, "" | ".") {
        String::new()
    } else {
        format!(" -C {folder}")
    };
    Ok(Initiated {
        template: template.name.to_owned(),
        about: template.about.to_owned(),
        folder: folder.to_owned(),
        files: files.into_iter().map(|(path, _)| path).collect(),
        next: vec![
            format!("milepost{place} plan"),
            format!("milepost{place} run"),
        ],
    })
}

/// Returns the declaration of a project under another name.
fn named(name: &str, declaration: Vec<u8>) -> Vec<u8> {
    // TOML and JSON write strings without control characters alike.
    if name.chars().any(char::is_control) {
        return declaration;
    }
    let Ok(text) = String::from_utf8(declaration.clone()) else {
        return declaration;
    };
    let line = |line: &str| {
        if line.starts_with("name = ") {
            format!("name = {}\n", json!(name))
        } else {
            line.to_owned()
        }
    };
    text.split_inclusive('\n')
        .map(line)
        .collect::<String>()
        .into_bytes()
}

/// Returns the content of a template's file, with the path of the schema for editors changed from the repository to the project.
fn at_home(path: &str, bytes: &[u8]) -> Vec<u8> {
    let declared = || {
        let text = std::str::from_utf8(bytes).ok()?;
        let rest = text.strip_prefix("#:schema ")?;
        let (_, named) = rest.split_once(FOLDER)?;
        let up = match path.matches('/').count() {
            0 => "./".to_owned(),
            depth => "../".repeat(depth),
        };
        Some(format!("#:schema {up}{FOLDER}{named}").into_bytes())
    };
    declared().unwrap_or_else(|| bytes.to_vec())
}
