//! Scratch that a program leaves read-only, or that belongs to another user, stops no command.

use crate::support::required::require;
use crate::support::unprivileged::root;
use crate::support::{Output, Project};
use std::os::unix::fs::PermissionsExt as _;

/// A stage whose program does this after it wrote its output `$1`.
fn leaving(program: &str) -> Project {
    let stage = format!(
        r#"[step]
command = ["sh", "-c", 'mkdir -p cache/a && echo x > cache/a/f && echo made > "$1"; {program}', "sh", "{{{{ paths.o }}}}"]

[outputs]
o = "outputs/made/o.txt"
"#
    );
    let project = Project::new(&[
        ("milepost.toml", "name = \"scratch\"\n"),
        ("stages/1_make.toml", &stage),
    ]);
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::create_dir_all(project.at("workspace")).unwrap();
    std::fs::set_permissions(project.at(""), open).unwrap();
    project.give_away("");
    project
}

/// Runs commands one after another as a user other than root.
macro_rules! commands {
    ($project:expr, $($arguments:expr),*) => {
        [$({
            let mut command = require!($project.unprivileged(&$arguments));
            Output::of(&command.output().unwrap())
        }),*]
    };
}

#[test]
fn read_only_folders_are_removed() {
    let program = r#"chmod 555 cache/a cache "$(dirname "$1")""#;
    let project = leaving(program);
    let all = commands!(
        project,
        ["run", "-q"],
        ["run", "-q", "--force"],
        ["gc", "--yes"],
        ["clean", "--yes"]
    );
    for output in &all {
        assert_eq!(
            (output.code, output.err.as_str()),
            (0, ""),
            "{}",
            output.out
        );
    }
    assert!(!project.exists("workspace/.milepost/scratch"));
    assert!(!project.exists("workspace/outputs/made/o.txt"));
}

#[test]
fn a_read_only_folder_of_a_failed_batch_moves_to_quarantine() {
    let project = leaving("chmod 555 cache . ; exit 3");
    let all = commands!(
        project,
        ["run"],
        ["run"],
        ["gc", "--older-than", "1ms", "--yes"]
    );
    let codes = all.each_ref().map(|output| output.code);
    assert_eq!(codes, [1, 1, 0], "{}{}", all[0].err, all[2].err);
    for output in &all {
        assert!(!output.err.contains("no permission"), "{}", output.err);
    }
    assert!(!project.exists("workspace/.milepost/scratch"));
    assert_eq!(project.quarantine(), Vec::<String>::new());
}

#[test]
fn folders_of_another_user_move_to_quarantine_with_a_warning() {
    require!(root());
    let project = leaving("true");
    project.write("workspace/.milepost/scratch/OLD/made/only~1/cache/f", "x");
    project.give_away("workspace");
    let foreign = "workspace/.milepost/scratch/OLD/made/only~1/cache";
    std::os::unix::fs::chown(project.at(foreign), Some(0), Some(0)).unwrap();
    let [ran, again, collected] = commands!(
        project,
        ["run", "-q"],
        ["run", "-q"],
        ["gc", "--older-than", "1ms", "--yes"]
    );
    let folder = project.list(".milepost/quarantine")[0].clone();
    let folder = folder.split('/').next().unwrap();
    let root = project.path().canonicalize().unwrap();
    let root = root.display();
    let problem =
        format!("cannot empty {root}/{foreign}: another user owns it: remove it as that user");
    let warning = format!(
        "warning: {problem}\n    help: the scratch files are in .milepost/quarantine/{folder}\n"
    );
    assert_eq!((ran.code, ran.err), (0, warning));
    assert_eq!((again.code, again.err.as_str()), (0, ""));
    assert!(!project.exists("workspace/.milepost/scratch"));
    let left = format!(
        "left: .milepost/quarantine/{folder}: cannot empty {root}/workspace/.milepost/quarantine/{folder}/OLD/made/only~1/cache: another user owns it: \
         remove it as that user\n"
    );
    assert_eq!(collected.code, 0, "{}", collected.err);
    assert!(collected.out.contains(&left), "{}", collected.out);
}
