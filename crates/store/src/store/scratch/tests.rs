//! Attempts' places: what is written is hashed, what is left is kept or removed, and no link is taken for an output.

use super::sink::GATHERED;
use super::*;
use milepost_core::base::digest::Digest;
use std::io::Write as _;

const NAME: AttemptName<'_> = AttemptName {
    run: "RUN",
    stage: "classify",
    batch: "batch_1",
    number: 2,
};

fn made(folder: &tempfile::TempDir, name: &AttemptName<'_>, pool: Option<&ScratchPool>) -> Scratch {
    let (layout, disk) = (Layout::new(folder.path()), Disk::real());
    let files = Files::new(folder.path(), folder.path());
    let targets = [path("x/y/a.json"), path("x/b.json")];
    Scratch::create(&disk, &files, &layout, name, pool, &mut targets.iter()).unwrap()
}

fn scratch(folder: &tempfile::TempDir, is_folder: bool) -> Scratch {
    made(folder, &NAME, is_folder.then(ScratchPool::default).as_ref())
}

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

fn content(text: &str) -> FileContent {
    FileContent {
        digest: Digest::of(text),
        size: text.len() as u64,
    }
}

fn put(scratch: &Scratch, file: &RelPath, parts: &[&str]) {
    let mut sink = scratch.sink(file).unwrap();
    for part in parts {
        sink.write_all(part.as_bytes()).unwrap();
    }
    assert_eq!(scratch.made(file), None);
    sink.finish().unwrap();
    assert_eq!(scratch.made(file), Some(content(&parts.concat())));
}

#[test]
fn hashes_what_is_written_and_what_a_command_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = scratch(&folder, true);
    let mine = path("intermediate/a.json");
    put(&scratch, &mine, &["he", "llo"]);
    let theirs = path("intermediate/b.json");
    std::fs::write(scratch.at(&theirs), "theirs").unwrap();
    assert_eq!(scratch.content(&mine).unwrap(), Some(content("hello")));
    assert_eq!(scratch.content(&theirs).unwrap(), Some(content("theirs")));
    std::fs::write(scratch.at(&mine), "HELLO").unwrap();
    assert_eq!(scratch.content(&mine).unwrap(), Some(content("HELLO")));
    assert_eq!(
        scratch.inside(&mine).as_str(),
        ".milepost/scratch/RUN/classify/batch_1~2/intermediate/a.json"
    );
    assert_eq!(scratch.content(&path("x/y")).unwrap(), None);
    let at = scratch.path().to_owned();
    scratch.remove();
    assert!(!at.exists());
}

#[test]
fn files_of_ours_lie_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = scratch(&folder, false);
    let (a, b, c) = (path("x/a.json"), path(".steps/b"), path("x/c"));
    put(&scratch, &a, &["one"]);
    put(
        &scratch,
        &b,
        &[
            &"long".repeat(GATHERED / 4),
            "er",
            &"x".repeat(GATHERED - 1),
        ],
    );
    put(&scratch, &a, &["t", "wo"]);
    drop(scratch.sink(&c).unwrap());
    assert_eq!(scratch.files(), [a.clone(), b.clone()]);
    let inside = ".milepost/scratch/RUN/classify/batch_1~2";
    assert_eq!(scratch.inside(&b).as_str(), format!("{inside}.1"));
    assert_eq!(scratch.at(&c), folder.path().join(format!("{inside}.2")));
    assert_eq!(std::fs::read(scratch.at(&a)).unwrap(), b"two");
    assert_eq!(scratch.content(&a).unwrap(), Some(content("two")));
    assert_eq!(scratch.content(&c).unwrap(), None);
    scratch.forget(&b).unwrap();
    assert_eq!(scratch.files(), std::slice::from_ref(&a));
    std::fs::rename(scratch.at(&a), folder.path().join("a.json")).unwrap();
    scratch.published(&a);
    let parent = scratch.path().parent().unwrap().to_owned();
    scratch.remove();
    assert_eq!(std::fs::read_dir(parent).unwrap().count(), 0);
}

#[test]
fn what_is_left_is_kept() {
    for is_folder in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let scratch = scratch(&folder, is_folder);
        assert!(scratch.is_empty());
        put(&scratch, &path("x/a.json"), &["one"]);
        assert!(!scratch.is_empty());
        let layout = Layout::new(folder.path());
        scratch.keep(&layout, &path("kept")).unwrap();
        let kept = std::fs::read(folder.path().join("kept/x/a.json")).unwrap();
        assert_eq!(kept, b"one");
    }
}

#[test]
fn only_a_folder_that_is_as_it_was_made_is_used_again() {
    use std::os::unix::fs::PermissionsExt as _;
    type Change = fn(&Path);
    let changes: [(Change, bool); 6] = [
        (|_| {}, true),
        (|at| std::fs::write(at.join("x/left"), "").unwrap(), false),
        (|at| std::fs::create_dir(at.join("more")).unwrap(), false),
        (|at| std::fs::remove_dir(at.join("x/y")).unwrap(), false),
        (
            |at| std::os::unix::fs::symlink("/", at.join("x/link")).unwrap(),
            false,
        ),
        (
            |at| {
                let rights = std::fs::Permissions::from_mode(0o700);
                std::fs::set_permissions(at.join("x"), rights).unwrap();
            },
            false,
        ),
    ];
    for (number, (change, is_used)) in changes.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let pool = ScratchPool::default();
        let first = made(&folder, &NAME, Some(&pool));
        first.make_folder_of(&path("x/y/a.json")).unwrap();
        let before = first.path().symlink_metadata().unwrap().ino();
        let was_at = first.path().to_owned();
        change(first.path());
        first.return_to(&pool);
        assert_eq!(was_at.exists(), is_used, "{number}");
        let second = made(&folder, &AttemptName { number: 3, ..NAME }, Some(&pool));
        assert!(!was_at.exists());
        let after = second.path().symlink_metadata().unwrap().ino();
        let has_folders = second.at(&path("x/y")).is_dir();
        assert_eq!(has_folders, is_used, "{number}");
        assert!(!is_used || before == after);
        let third = made(&folder, &AttemptName { number: 4, ..NAME }, Some(&pool));
        assert!(third.is_empty() && !third.at(&path("x")).exists());
    }
}

#[test]
fn takes_no_link_for_an_output() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = scratch(&folder, true);
    std::os::unix::fs::symlink("/etc/passwd", scratch.path().join("a.json")).unwrap();
    std::os::unix::fs::symlink("/etc", scratch.path().join("b")).unwrap();
    std::fs::create_dir(scratch.path().join("c.json")).unwrap();
    for (file, what) in [
        ("a.json", "output `a.json` is a symbolic link"),
        ("b/passwd", "output `b/passwd` is behind a symbolic link"),
        ("c.json", "output `c.json` is a folder"),
    ] {
        let error = scratch.content(&path(file)).unwrap_err().to_string();
        assert!(error.starts_with(what), "{error}");
    }
}

#[test]
fn names_folders_safely() {
    assert_eq!(safe_name("batch_1"), "batch_1");
    assert_eq!(safe_name(""), "only");
    assert_ne!(safe_name("a/b"), safe_name("a_b"));
    assert!(safe_name(&"é".repeat(200)).len() <= 80);
}
