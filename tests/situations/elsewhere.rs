//! Outputs that cannot be renamed into place are refused before anything runs.

use crate::situations::mounted::Mounted;
use crate::support::required::require;
use crate::support::{Project, temporary};
use std::os::unix::fs::symlink;

#[test]
fn an_output_on_another_file_system() {
    let project = Project::letters();
    let outputs = project.at("workspace/intermediate");
    let _disk = require!(Mounted::at(&outputs, &["-t", "tmpfs", "tmpfs"]));
    let ran = project.run(&[]);
    ran.expect(1, &[]).says(
        "`intermediate/person_1.json`: it is on another file system than `.milepost`, from where finished files are renamed: put the whole workspace on one file system",
    );
}

#[test]
fn an_output_behind_a_link() {
    let project = Project::letters();
    let elsewhere = temporary();
    symlink(elsewhere.path(), project.at("workspace/intermediate")).unwrap();
    let ran = project.run(&[]);
    let says = "`intermediate/person_1.json` leaves the workspace by a symbolic link, to ";
    ran.expect(1, &[]).says(says);
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}
