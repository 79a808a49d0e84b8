//! Reading and listing: nothing outside the project and the workspace.

use super::sample::path;
use milepost_core::base::glob::Glob;
use milepost_core::base::path::{FilePath, Root};
use milepost_store::store::files::{FileError, Files};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

struct Folders {
    _folder: tempfile::TempDir,
    workspace: PathBuf,
    files: Files,
}

fn folders() -> Folders {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let workspace = root.join("project/workspace");
    for (file, text) in [
        ("project/rules/a.toml", "rules"),
        ("project/workspace/inputs/b_10.json", "{}"),
        ("project/workspace/inputs/b_2.json", "{}"),
        ("project/workspace/inputs/b_2.txt", ""),
        ("project/workspace/inputs/deep/b_1.json", "{}"),
        ("project/workspace/.milepost/x/b_1.json", "{}"),
        ("outside/secret.json", "secret"),
    ] {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let files = Files::new(&root.join("project"), &workspace);
    Folders {
        _folder: folder,
        workspace,
        files,
    }
}

fn list(folders: &Folders, pattern: &str) -> Result<Vec<String>, FileError> {
    let glob = Glob::parse(pattern).unwrap();
    let found = folders.files.list(&glob, Root::Workspace)?;
    Ok(found.iter().map(ToString::to_string).collect())
}

fn file(text: &str) -> FilePath {
    text.parse().unwrap()
}

#[test]
fn reads_what_is_inside() {
    let folders = folders();
    let source = folders.files.source(&file("project:rules/a.toml")).unwrap();
    let mut text = String::new();
    source.open().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(
        (source.name().as_str(), text.as_str()),
        ("project:rules/a.toml", "rules")
    );
    symlink("b_2.json", folders.workspace.join("inputs/latest.json")).unwrap();
    let linked = file("inputs/latest.json");
    assert_eq!(
        folders.files.resolve(&linked).unwrap(),
        folders.workspace.join("inputs/latest.json")
    );
    assert!(folders.files.exists(&linked).unwrap());
    assert!(!folders.files.exists(&file("inputs/b_2.json/x")).unwrap());
    assert!(!folders.files.exists(&file("new/folder/x.json")).unwrap());
    let missing = folders.files.source(&file("x.json")).err().unwrap();
    assert_eq!(missing.to_string(), "`x.json` is not there");
    let no_file = folders.files.source(&file("inputs")).err().unwrap();
    assert_eq!(
        no_file.to_string(),
        "`inputs`: expected a regular file, found a folder: remove it, or put the file itself there"
    );
}

#[test]
fn refuses_what_a_link_leads_out() {
    let folders = folders();
    let inputs = folders.workspace.join("inputs");
    symlink("../../../outside/secret.json", inputs.join("link.json")).unwrap();
    symlink("../../../outside", inputs.join("folder")).unwrap();
    symlink("../../../outside/new.json", inputs.join("dangling.json")).unwrap();
    for name in [
        "inputs/link.json",
        "inputs/folder/secret.json",
        "inputs/folder/new/x.json",
        "inputs/dangling.json",
    ] {
        let error = folders.files.resolve(&file(name)).unwrap_err();
        assert!(matches!(error, FileError::Leaves { .. }), "{name}: {error}");
    }
    let error = list(&folders, "inputs/l*.json").unwrap_err().to_string();
    assert!(
        error.starts_with("`inputs/link.json` leaves the workspace by a symbolic link, to "),
        "{error}"
    );
    assert!(list(&folders, "inputs/*/*.json").is_err());
    assert_eq!(list(&folders, "inputs/b_*.json").unwrap().len(), 2);
}

#[test]
fn lists_in_natural_order() {
    let folders = folders();
    let inputs = ["inputs/b_2.json", "inputs/b_10.json"];
    assert_eq!(list(&folders, "inputs/b_*.json").unwrap(), inputs);
    let deep = [
        "inputs/b_2.json",
        "inputs/b_10.json",
        "inputs/deep/b_1.json",
    ];
    assert_eq!(list(&folders, "**/b_*.json").unwrap(), deep);
    assert_eq!(list(&folders, "inputs/*/b_*.json").unwrap(), deep[2..]);
    assert_eq!(list(&folders, "nowhere/*.json").unwrap(), [""; 0]);
    symlink("nobody@host.1", folders.workspace.join("inputs/.#lock")).unwrap();
    assert_eq!(list(&folders, "inputs/b_*.json").unwrap(), inputs);
}

#[test]
fn reports_names_that_are_lost_elsewhere() {
    let folders = folders();
    let inputs = folders.workspace.join("inputs");
    fs::write(inputs.join("B_2.json"), "{}").unwrap();
    let twins = list(&folders, "inputs/*.json").unwrap_err();
    let FileError::Case { a, b } = twins else {
        panic!("{twins}");
    };
    let mut pair = [a, b];
    pair.sort();
    assert_eq!(pair, [path("inputs/B_2.json"), path("inputs/b_2.json")]);
    fs::remove_file(inputs.join("B_2.json")).unwrap();
    let odd = inputs.join(std::ffi::OsStr::from_bytes(b"b_\xff.json"));
    if fs::write(&odd, "{}").is_err() {
        eprintln!("skipped: this file system takes no such name");
        return;
    }
    let error = list(&folders, "inputs/*.json").unwrap_err().to_string();
    assert!(error.contains("cannot be written in a record"), "{error}");
    assert_eq!(list(&folders, "inputs/*.txt").unwrap().len(), 1);
}
