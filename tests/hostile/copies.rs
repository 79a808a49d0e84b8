//! Hard-linked copies of a workspace, and locks that readers hold.

use crate::support::{Project, files_below};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Copies a folder as `cp -al` does.
fn link_copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let to = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(to).unwrap();
        } else {
            std::fs::hard_link(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn a_run_changes_no_hard_linked_copy() {
    let project = Project::letters();
    assert_eq!(project.output("-q").code, 0);
    let copy = project.at("copy");
    link_copy(&project.at("workspace"), &copy);
    let before = files_below(&copy, |_| true);

    project.remove("workspace/inputs/person_1.json");
    project.write("workspace/inputs/person_1.json", "{\"name\": \"Eve\"}\n");
    assert_eq!(project.output("-q").code, 0);
    assert_eq!(project.output("run -q --force").code, 0);
    project.remove("workspace/outputs/page.txt");
    project.write("workspace/outputs/page.txt", "Hello Eve\n");
    assert_eq!(project.output("accept join --why checked").code, 0);
    assert_eq!(files_below(&copy, |_| true), before);

    let after = files_below(&project.at("workspace"), |_| true);
    assert_eq!(project.output("run -q --force --workspace copy").code, 0);
    assert_eq!(files_below(&project.at("workspace"), |_| true), after);
    assert_eq!(project.output("verify").code, 0);
    assert_eq!(project.output("verify --workspace copy").code, 0);
}

#[test]
fn who_may_only_read_cannot_open_the_lock() {
    let project = Project::letters();
    let lock = project.at("workspace/.milepost/lock");
    for (before, after) in [
        (0o644, 0o600),
        (0o664, 0o660),
        (0o666, 0o666),
        (0o600, 0o600),
    ] {
        project.write("workspace/.milepost/lock", "");
        std::fs::set_permissions(&lock, std::fs::Permissions::from_mode(before)).unwrap();
        assert_eq!(project.output("-q").code, 0);
        let found = lock.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(found, after, "{before:o}");
    }
}
