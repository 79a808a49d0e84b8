//! Reading and listing: nothing outside the project and the workspace.

use milepost_core::base::glob::Glob;
use milepost_core::base::path::{FilePath, Root};
use milepost_store::store::files::{FileError, Files};
use milepost_store::store::redirects::{Redirect, Redirects};
use std::collections::BTreeMap;
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

fn list(folders: &Folders, pattern: &str) -> Vec<String> {
    let (files, refused) = matches(folders, pattern);
    assert_eq!(refused, []);
    files
}

/// The files that match a pattern, and the refused matches with their reasons.
fn matches(folders: &Folders, pattern: &str) -> (Vec<String>, Vec<(String, String)>) {
    let glob = Glob::parse(pattern).unwrap();
    let found = folders.files.list(&glob, Root::Workspace).unwrap();
    let files = found.files.iter().map(ToString::to_string).collect();
    let refused = found.refused.into_iter().map(|file| (file.name, file.why));
    (files, refused.collect())
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
    assert_eq!(missing.to_string(), "`x.json` does not exist");
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
    let (files, refused) = matches(&folders, "inputs/l*.json");
    let [(name, why)] = &refused[..] else {
        panic!("{refused:?}");
    };
    assert_eq!((files.len(), name.as_str()), (0, "inputs/link.json"));
    let leaves = "`inputs/link.json` leaves the workspace by a symbolic link, to ";
    assert!(why.starts_with(leaves), "{why}");
    let (files, refused) = matches(&folders, "inputs/*/*.json");
    assert_eq!(files, ["inputs/deep/b_1.json"]);
    let [(name, why)] = &refused[..] else {
        panic!("{refused:?}");
    };
    assert_eq!(name, "inputs/folder");
    let leaves = "`inputs/folder` leaves the workspace by a symbolic link, to ";
    assert!(why.starts_with(leaves), "{why}");
    assert_eq!(list(&folders, "inputs/b_*.json").len(), 2);
}

#[test]
fn lists_in_natural_order() {
    let folders = folders();
    let inputs = ["inputs/b_2.json", "inputs/b_10.json"];
    assert_eq!(list(&folders, "inputs/b_*.json"), inputs);
    let deep = [
        "inputs/b_2.json",
        "inputs/b_10.json",
        "inputs/deep/b_1.json",
    ];
    assert_eq!(list(&folders, "**/b_*.json"), deep);
    assert_eq!(list(&folders, "inputs/*/b_*.json"), deep[2..]);
    assert_eq!(list(&folders, "nowhere/*.json"), [""; 0]);
    symlink("nobody@host.1", folders.workspace.join("inputs/.#lock")).unwrap();
    assert_eq!(list(&folders, "inputs/b_*.json"), inputs);
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no such names or files")]
fn reports_names_that_no_record_can_hold() {
    let folders = folders();
    let inputs = folders.workspace.join("inputs");
    for odd in [b"b_\xff.json".as_slice(), b"b_\\xff.json", b"b_\n.json"] {
        fs::write(inputs.join(std::ffi::OsStr::from_bytes(odd)), "{}").unwrap();
    }
    let (files, refused) = matches(&folders, "inputs/*.json");
    assert_eq!(files, ["inputs/b_2.json", "inputs/b_10.json"]);
    let expected = [r"b_\\xff", r"b_\n", r"b_\xff"].map(|stem| {
        let name = format!("inputs/{stem}.json");
        let why = format!("the name of `{name}` cannot be written in a record: rename the file to UTF-8 without control characters and backslashes");
        (name, why)
    });
    assert_eq!(refused, expected);
    assert_eq!(list(&folders, "inputs/*.txt").len(), 1);
}

#[test]
fn a_reader_finds_a_published_file_that_is_moved_meanwhile() {
    let folders = folders();
    let (made, scratch) = (file("outputs/a.txt"), file(".milepost/scratch/r/a.txt"));
    let place = |file: &FilePath| folders.workspace.join(file.path.as_str());
    fs::create_dir_all(place(&scratch).parent().unwrap()).unwrap();
    fs::create_dir(folders.workspace.join("outputs")).unwrap();
    fs::write(place(&scratch), "new").unwrap();
    let redirects = Redirects::default();
    let redirect = Redirect::Published(scratch.path.clone());
    redirects.set(BTreeMap::from([(made.path.clone(), redirect)]), true);
    let files = folders.files.clone().with_redirects(&redirects);
    let source = files.source(&made).unwrap();
    let read = || {
        let mut text = String::new();
        source.open().unwrap().read_to_string(&mut text).unwrap();
        text
    };
    // The first reader has the file that the check opened.
    assert_eq!((read(), read()), ("new".to_owned(), "new".to_owned()));
    fs::rename(place(&scratch), place(&made)).unwrap();
    assert_eq!(read(), "new");
    assert_eq!(source.path(), place(&made));
}
