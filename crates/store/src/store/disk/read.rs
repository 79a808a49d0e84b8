//! The one reader: opens regular files, and refuses everything else without waiting for it.

#![allow(clippy::disallowed_methods, reason = "the one reader of the disk")]

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Opening with these flags waits for no other process and takes no terminal. They mean nothing to regular files.
pub(crate) const AT_ONCE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// Repeats a system call until no signal interrupts it.
///
/// # Errors
/// As the call.
pub fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Something that is not a regular file where one is needed.
#[derive(Debug, thiserror::Error)]
#[error("expected a regular file, found {0}: remove it, or put the file itself there")]
struct NotRegular(&'static str);

/// Opens a regular file for reading.
///
/// # Errors
/// Fails if the file cannot be opened, or a folder, named pipe, socket or device is there; with `IsADirectory` for a folder.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(AT_ONCE.bits().cast_signed())
        .open(path.as_ref());
    checked(path.as_ref(), opened)
}

/// Opens a folder, for a lock.
///
/// # Errors
/// Fails if it cannot be opened, or is no folder.
pub(crate) fn open_folder(path: &Path) -> io::Result<File> {
    let flags = AT_ONCE.union(OFlags::DIRECTORY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Reads a regular file whole.
///
/// # Errors
/// The errors of [`open`].
pub fn bytes(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a regular file whole, as UTF-8 text.
///
/// # Errors
/// The errors of [`open`]; with `InvalidData` if the file is not UTF-8.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    let mut file = open(path)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the names in a folder that are UTF-8, in order; none where there is no folder.
///
/// # Errors
/// Fails if the folder cannot be read.
pub fn names(folder: impl AsRef<Path>) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
    let mut names: Vec<String> = names
        .filter_map(io::Result::transpose)
        .collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}

/// Opens a path that a person named on the command line, which may be a pipe or a terminal (`/dev/stdin`, `<(…)`). It waits for
/// the writer.
///
/// # Errors
/// Fails if it cannot be opened.
pub fn open_stream(path: impl AsRef<Path>) -> io::Result<File> {
    File::open(path)
}

/// Returns the opened file if it is a regular file.
pub(crate) fn checked(path: &Path, opened: io::Result<File>) -> io::Result<File> {
    let found = match &opened {
        Ok(file) => file.metadata()?.file_type(),
        // The system refuses to open a socket, and a pipe for writing without a reader.
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            path.metadata()?.file_type()
        }
        Err(_) => return opened,
    };
    if found.is_file() {
        return opened;
    }
    let kind = if found.is_dir() {
        io::ErrorKind::IsADirectory
    } else {
        io::ErrorKind::InvalidInput
    };
    Err(io::Error::new(kind, NotRegular(kind_of(found))))
}

/// Returns what lies at a path, for messages.
pub(crate) fn kind_of(found: FileType) -> &'static str {
    if found.is_symlink() {
        "a symbolic link"
    } else if found.is_dir() {
        "a folder"
    } else if found.is_fifo() {
        "a named pipe"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::os::unix::net::UnixListener;

    #[test]
    fn refuses_what_is_no_regular_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        mkfifoat(CWD, at("pipe"), Mode::RWXU).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("link")).unwrap();
        std::os::unix::fs::symlink("pipe", at("link to a pipe")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        for (name, found) in [
            ("pipe", "a named pipe"),
            ("link to a pipe", "a named pipe"),
            ("socket", "a socket"),
            ("link", "a device"),
            ("folder", "a folder"),
        ] {
            let expected = format!(
                "expected a regular file, found {found}: remove it, or put the file itself there"
            );
            assert_eq!(open(at(name)).unwrap_err().to_string(), expected);
            assert_eq!(bytes(at(name)).unwrap_err().to_string(), expected);
            assert_eq!(text(at(name)).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn an_interrupted_call_is_repeated() {
        let mut left = 3;
        let done = uninterrupted(|| {
            left -= 1;
            match left {
                0 => Ok("done"),
                _ => Err(Errno::INTR.into()),
            }
        });
        assert_eq!((done.unwrap(), left), ("done", 0));
        let failed = uninterrupted(|| Err::<(), _>(io::ErrorKind::NotFound.into()));
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn reads_a_regular_file_over_a_link() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "ä").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("a", &link).unwrap();
        assert_eq!(text(&link).unwrap(), "ä");
        assert_eq!(bytes(&link).unwrap(), "ä".as_bytes());
        let missing = open(folder.path().join("b")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
