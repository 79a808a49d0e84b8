//! What other users of the machine can read while a run works and after it.

use crate::situations::mounted::Mounted;
use crate::support::Project;
use crate::support::required::require;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

/// A step that prints the permissions of the folder of all attempts, and complains.
fn fixture() -> Project {
    Project::new(&[
        ("milepost.toml", "name = \"others\"\n"),
        (
            "stages/1_one.toml",
            r#"[[step]]
command = ["sh", "-c", 'stat -c %a ../../.. > "$1"; echo secret >&2', "sh", "{{ paths.mode }}"]
out = "mode"

[outputs]
mode = "outputs/mode.txt"
"#,
        ),
    ])
}

fn mode(project: &Project, path: &str) -> u32 {
    std::fs::metadata(project.at(path)).unwrap().mode() & 0o777
}

#[test]
fn scratch_and_logs_are_for_the_owner_only() {
    let project = fixture();
    let usual = mode(&project, "stages");
    assert_eq!(project.output("-q").code, 0);
    assert_eq!(project.read("workspace/outputs/mode.txt"), "700\n");
    // Outputs have the permissions of the umask.
    let plain = mode(&project, "workspace/outputs/mode.txt");
    assert_eq!(plain, mode(&project, "milepost.toml"));
    let logs = "workspace/.milepost/logs";
    assert_eq!(mode(&project, logs), 0o700);
    let log = &project.list(".milepost/logs")[0];
    assert_eq!(project.read(&format!("{logs}/{log}")), "secret\n");
    assert_eq!(mode(&project, &format!("{logs}/{log}")), 0o600);

    // Folders of an earlier version are closed.
    for folder in [logs, "workspace/.milepost/scratch"] {
        std::fs::create_dir_all(project.at(folder)).unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(project.at(folder), open).unwrap();
    }
    assert_eq!(project.output("-q --force").code, 0);
    assert_eq!(project.read("workspace/outputs/mode.txt"), "700\n");
    assert_eq!(mode(&project, logs), 0o700);

    // The project may leave it to the umask.
    project.edit("milepost.toml", "name =", "permissions = \"umask\"\nname =");
    std::fs::remove_dir_all(project.at(logs)).unwrap();
    assert_eq!(project.output("-q --force").code, 0);
    let open = format!("{usual:o}\n");
    assert_eq!(project.read("workspace/outputs/mode.txt"), open);
    assert_eq!(mode(&project, logs), usual);
}

#[test]
fn a_folder_that_cannot_be_closed_is_a_warning() {
    let project = fixture();
    let calls = project.at("workspace/.milepost/calls");
    let other = ["-t", "tmpfs", "-o", "ro,mode=755", "tmpfs"];
    let _disk = require!(Mounted::at(&calls, &other));
    let (code, said) = project.milepost(&["run"]);
    assert_eq!(code, 0, "{said}");
    let calls = calls.canonicalize().unwrap();
    let warning = format!(
        "warning: other users can read prompts and answers in {0}\n    help: ask the owner to run `chmod 700 {0}`; if other users may read them, write \
         `permissions = \"umask\"` in milepost.toml\n",
        calls.display()
    );
    assert!(said.contains(&warning), "{said}");
    project.edit("milepost.toml", "name =", "permissions = \"umask\"\nname =");
    let (code, said) = project.milepost(&["run", "--force"]);
    assert_eq!((code, said.contains("warning")), (0, false), "{said}");
}
