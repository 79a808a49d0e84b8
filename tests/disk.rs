//! The disk: what each operation leaves, what it says when it cannot, and that a debug build can stop at each.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use milepost::store::disk::{Disk, DiskError, temporary_name};

/// Does one of everything that changes a disk.
fn one_of_everything(disk: &Disk, folder: &Path) -> Result<(), DiskError> {
    let deep = folder.join("a/b");
    disk.create_dir_all(&deep)?;
    let mut file = disk.create(&deep.join("file"))?;
    file.write_bytes(b"0123456789")?;
    file.sync()?;
    let mut journal = disk.open_append(&folder.join("journal"))?;
    journal.write_bytes(b"one\n")?;
    journal.flush_data()?;
    disk.open_append(&folder.join("journal"))?
        .write_bytes(b"two\n")?;
    journal.truncate(4)?;
    disk.copy_file(&deep.join("file"), &deep.join("copy"))?;
    disk.write_atomic(&folder.join("atomic"), b"old")?;
    disk.write_atomic(&folder.join("atomic"), b"whole")?;
    disk.rename(&deep.join("copy"), &folder.join("moved"))?;
    disk.sync_dir(folder)?;
    disk.sync_filesystem(folder)?;
    disk.remove_file(&deep.join("file"))?;
    disk.remove_dir_all(&folder.join("a"))?;
    Ok(())
}

/// Names and contents of what is in a folder, in order.
fn content(folder: &Path) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let text = fs::read_to_string(entry.path()).unwrap_or_else(|_| "a folder".to_owned());
            (entry.file_name().into_string().unwrap(), text)
        })
        .collect();
    found.sort();
    found
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn each_operation_does_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    one_of_everything(&Disk::real(), folder.path()).unwrap();
    let expected = [
        ("atomic", "whole"),
        ("journal", "one\n"),
        ("moved", "0123456789"),
    ];
    assert_eq!(content(folder.path()), pairs(&expected));
}

#[test]
fn what_is_not_there_is_removed_already() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, path) = (Disk::real(), folder.path().join("x"));
    assert!(!disk.remove_file(&path).unwrap());
    assert!(!disk.remove_dir_all(&path).unwrap());
    disk.create_dir_all(&path).unwrap();
    assert!(disk.remove_dir_all(&path).unwrap());
}

#[test]
fn a_write_takes_over_what_a_crash_left_and_follows_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let (path, outside) = (folder.path().join("file"), folder.path().join("outside"));
    fs::write(&outside, "untouched").unwrap();
    std::os::unix::fs::symlink(&outside, temporary_name(&path)).unwrap();
    Disk::real().write_atomic(&path, b"text").unwrap();
    assert_eq!(
        content(folder.path()),
        pairs(&[("file", "text"), ("outside", "untouched")])
    );
}

#[test]
fn a_copy_can_be_written_even_if_its_source_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::write(&from, "text").unwrap();
    fs::set_permissions(&from, fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(Disk::real().copy_file(&from, &to).unwrap(), 4);
    assert_ne!(fs::metadata(&to).unwrap().permissions().mode() & 0o200, 0);
}

#[test]
fn errors_name_operation_and_path_and_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::real();
    let at = |name: &str| folder.path().join(name);
    let error = |result: Result<(), DiskError>| result.unwrap_err().to_string();
    let shown = folder.path().display();

    assert_eq!(
        error(disk.create(&at("no/file")).map(drop)),
        format!("cannot create {shown}/no/file: No such file or directory (os error 2)")
    );
    assert_eq!(
        error(disk.rename(&at("absent"), &at("there"))),
        format!("cannot move {shown}/absent: No such file or directory (os error 2)")
    );
    fs::write(at("plain"), "").unwrap();
    assert_eq!(
        error(disk.rename(&at("plain"), &at("no/plain"))),
        format!("cannot put a file at {shown}/no/plain: No such file or directory (os error 2)")
    );
    assert_eq!(
        error(disk.create_dir_all(&at("plain/deep"))),
        format!("cannot create the folder {shown}/plain: File exists (os error 17)")
    );
    let say = |kind| {
        DiskError::new("write", Path::new("/w/file"), std::io::Error::from(kind)).to_string()
    };
    assert_eq!(
        say(std::io::ErrorKind::StorageFull),
        "cannot write /w/file: the disk is full: make room and run again"
    );
    assert_eq!(
        say(std::io::ErrorKind::PermissionDenied),
        "cannot write /w/file: permission denied: let this user write there (`ls -ld /w` shows who may)"
    );
    assert_eq!(
        say(std::io::ErrorKind::ReadOnlyFilesystem),
        "cannot write /w/file: the file system is read-only: mount it writable, or choose another workspace"
    );
}

/// `/dev/full` is a disk that is always full.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_through_writers_too() {
    let mut file = Disk::real().create(Path::new("/dev/full")).unwrap();
    let expected = "cannot write /dev/full: the disk is full: make room and run again";
    let error = file.write_bytes(b"text").unwrap_err();
    assert!(error.is_full());
    assert_eq!(error.to_string(), expected);
    let error = std::io::BufWriter::new(file)
        .write_all(&vec![0; 100_000])
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (std::io::ErrorKind::StorageFull, expected)
    );
}

#[cfg(debug_assertions)]
mod stopping {
    use std::process::{Command, Stdio};

    use super::*;

    const SETTING: &str = "MILEPOST_TEST_STOP_AT";
    const FOLDER: &str = "MILEPOST_TEST_DISK";

    /// In another process: one of everything, by a setting; in this one nothing.
    #[test]
    fn in_another_process() {
        let Ok(setting) = std::env::var(SETTING) else {
            return;
        };
        let disk = Disk::from_setting(Some(&setting)).unwrap();
        one_of_everything(&disk, Path::new(&std::env::var(FOLDER).unwrap())).unwrap();
    }

    /// What a crash leaves there, or `None` if there was none.
    fn crashed(setting: &str) -> Option<Vec<(String, String)>> {
        let folder = tempfile::tempdir().unwrap();
        let ended = Command::new(std::env::current_exe().unwrap())
            .args(["disk::stopping::in_another_process", "--exact"])
            .env(SETTING, setting)
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        (!ended.success()).then(|| content(folder.path()))
    }

    #[test]
    fn every_operation_is_counted_and_can_be_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::stopping_at(u64::MAX);
        one_of_everything(&disk, folder.path()).unwrap();
        let count = disk.clone().count();
        assert_eq!(count, 30);

        assert_eq!(crashed("1"), Some(Vec::new()));
        assert_eq!(crashed("2"), Some(pairs(&[("a", "a folder")])));
        let last = [
            ("a", "a folder"),
            ("atomic", "whole"),
            ("journal", "one\n"),
            ("moved", "0123456789"),
        ];
        assert_eq!(crashed(&count.to_string()), Some(pairs(&last)));
        assert_eq!(crashed(&(count + 1).to_string()), None);
    }

    #[test]
    fn a_write_can_be_torn() {
        // The ninth operation writes the first line of the journal, the twenty-second the second content of `atomic`.
        let journal = [("a", "a folder"), ("journal", "on")];
        assert_eq!(crashed("9:half"), Some(pairs(&journal)));
        let atomic = [
            (".atomic.new", "wh"),
            ("a", "a folder"),
            ("atomic", "old"),
            ("journal", "one\n"),
        ];
        assert_eq!(crashed("22:half"), Some(pairs(&atomic)));
    }

    #[test]
    fn settings() {
        assert_eq!(Disk::from_setting(None).unwrap().count(), 0);
        let error = Disk::from_setting(Some("7:third")).err().unwrap();
        assert_eq!(
            error,
            "`7:third` is neither a number nor a number and `:half`"
        );
    }
}
