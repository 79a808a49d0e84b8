//! The files that the program of a batch named in its depfile.

use crate::run::context::Context;
use jiff::Timestamp;
use milepost_core::base::glob::{Glob, escaped};
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::base::reserved::reserved;
use milepost_core::model::fingerprint::{FactKind, FactValue, Facts};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::plan::world::World as _;
use milepost_store::store::files::Files;
use std::path::{Component, Path, PathBuf};

/// Returns the files of project and workspace among absolute paths. Those of Milepost, such as the files in scratch, are left out.
///
/// # Errors
/// If no record can hold the name of one, a folder cannot be listed, or one is neither a file nor a folder.
pub(crate) fn named(files: &Files, paths: &[PathBuf]) -> Result<Vec<FilePath>, Outcome> {
    let mut found = Vec::new();
    for path in paths {
        let path = without_dots(path);
        let roots = [Root::Workspace, Root::Project];
        let inside = |root| Some((root, path.strip_prefix(files.folder(root)).ok()?));
        let Some((root, inside)) = roots.into_iter().find_map(inside) else {
            continue;
        };
        let failed = |error: &dyn std::fmt::Display| {
            let why = format!("depfile: `{}`: {error}", path.display());
            Outcome::new(OutcomeKind::Path, why)
        };
        let file = RelPath::parse(&inside.to_string_lossy()).map_err(|error| failed(&error))?;
        if reserved(root, &file).is_some() {
            continue;
        }
        let all = if path.is_dir() {
            let glob = Glob::parse(&format!("{}/**", escaped(file.as_str())));
            let glob = glob.map_err(|error| failed(&error))?;
            let listed = files.list(&glob, root).map_err(|error| failed(&error))?;
            listed.files
        } else {
            let place = FilePath { root, path: file };
            let real = files.resolve(&place).map_err(|error| failed(&error))?;
            if real.symlink_metadata().is_ok() && !real.is_file() {
                return Err(failed(&"expected a regular file or a folder"));
            }
            vec![place.path]
        };
        let read = all.into_iter().map(|path| FilePath { root, path });
        found.extend(read.filter(|file| reserved(root, &file.path).is_none()));
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Returns a path without `.` and `..`.
fn without_dots(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = found.pop(),
            Component::CurDir => {}
            part => found.push(part),
        }
    }
    found
}

/// Returns a file that changed since this moment: the program may have read it before.
pub(crate) fn changed_since(files: &Files, read: &[FilePath], begun: Timestamp) -> Option<String> {
    let is_newer = |file: &&FilePath| {
        let path = files.folder(file.root).join(file.path.as_str());
        let time = path.metadata().and_then(|data| data.modified()).ok();
        let time = time.and_then(|time| Timestamp::try_from(time).ok());
        time.is_some_and(|time| time >= begun)
    };
    read.iter()
        .find(is_newer)
        .map(|file| file.text().to_string())
}

/// Returns the facts of files that a batch read besides its inputs. The next up-to-date check checks them.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn facts(ctx: &Context<'_>, own: &Facts, read: &[FilePath]) -> Result<Facts, String> {
    let mut facts = Facts::default();
    let is_other = |file: &&FilePath| own.get(FactKind::Input, &file.text()).is_none();
    for file in read.iter().filter(is_other) {
        let digest = ctx.digest(file)?;
        let value = digest.map_or_else(|| "absent".into(), FactValue::from);
        facts.add(FactKind::Dependency, file.text(), value);
    }
    Ok(facts)
}
