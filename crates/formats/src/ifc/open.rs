//! Opens models: plain and zipped STEP files; says why other files are refused.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use thiserror::Error;
use zip::ZipArchive;

use super::encoding::in_utf8;
use super::limits::{UNZIP_RATIO, UNZIPPED, UNZIPPED_ANYWAY};
use super::map::Bytes;
use super::schema::{KNOWN, Schema};
use super::step;

/// Why a model was not read. Each names the file, what was expected, and what to do.
#[derive(Debug, Error)]
pub enum IfcError {
    /// The file could not be opened, mapped or read.
    #[error("{file}: cannot be read: {source}; check that it exists and may be read")]
    Read {
        /// The file's name.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The file has no bytes.
    #[error(
        "{file}: the file is empty, but a building model (IFC) was expected; export or copy it again"
    )]
    Empty {
        /// The file's name.
        file: String,
    },
    /// The file is something else.
    #[error(
        "{file}: not an IFC file: it should begin with `ISO-10303-21;` but begins with `{found}`{hint}; export the model as IFC (STEP text, .ifc or .ifczip)"
    )]
    NotIfc {
        /// The file's name.
        file: String,
        /// The first characters of the file.
        found: String,
        /// The likely kind of file, after a comma, or nothing.
        hint: &'static str,
    },
    /// The archive is broken or of a kind that is not read.
    #[error(
        "{file}: the archive cannot be read: {reason}; zip the .ifc again, or give it as it is"
    )]
    Archive {
        /// The file's name.
        file: String,
        /// The problem.
        reason: String,
    },
    /// The archive holds no model, or several.
    #[error(
        "{file}: the archive must contain one .ifc file, but contains {found}; zip one model alone, or use it without zip"
    )]
    ArchiveContent {
        /// The file's name.
        file: String,
        /// The text that was found.
        found: String,
    },
    /// The file stops before its end.
    #[error(
        "{file}: the file is cut off: {what} (line {line}, byte {byte}), and no `END-ISO-10303-21;` closes it; export or copy it again"
    )]
    Truncated {
        /// The file's name.
        file: String,
        /// The part that is cut off.
        what: String,
        /// Where, counted from 1.
        line: usize,
        /// Where, counted from 0.
        byte: usize,
    },
    /// A string or comment is never closed, so that nothing after it can be read.
    #[error(
        "{file}: from line {line} (byte {byte}) on nothing can be read: the record there opens a string or comment that never ends; repair that line, or export the model again"
    )]
    Unreadable {
        /// The file's name.
        file: String,
        /// Where, counted from 1.
        line: usize,
        /// Where, counted from 0.
        byte: usize,
    },
    /// The header declares no schema that is known.
    #[error(
        "{file}: its schema is {declared}, but one of {KNOWN} was expected; export the model in one of these"
    )]
    Schema {
        /// The file's name.
        file: String,
        /// The schema in `FILE_SCHEMA`.
        declared: String,
    },
    /// There is no section with records.
    #[error(
        "{file}: it has a header but no `DATA;` section with the model's records; export it again"
    )]
    NoData {
        /// The file's name.
        file: String,
    },
    /// The parser failed.
    #[error(
        "{file}: the STEP parser failed on this file: {message}; open and save it in another program, and report this with the file"
    )]
    Parser {
        /// The file's name.
        file: String,
        /// The message.
        message: String,
    },
    /// The model is larger than is read: what of it, and how much is read.
    #[error("{file}: {what}, which is the limit; export the model again without it, or in parts")]
    Limit {
        /// The file's name.
        file: String,
        /// The limit that is exceeded, with the record.
        what: String,
    },
    /// The result could not be written.
    #[error(
        "{file}: what was read from it cannot be written: {source}; check the space and the permissions of the disk"
    )]
    Write {
        /// The model's name.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
}

/// A file that begins like a model.
pub(super) struct OpenedModel {
    pub(super) bytes: Bytes,
    pub(super) schema: Schema,
    /// Where its records begin.
    pub(super) data: usize,
    /// Whether it ends as it should.
    pub(super) whole: bool,
    /// The warning that it is not UTF-8.
    pub(super) encoding: Option<String>,
}

/// Opens a model: plain text, or an archive with one in it, recognized by its first bytes and not by its name.
pub(super) fn open(model: &Path, name: &str) -> Result<OpenedModel, IfcError> {
    let bytes = bytes(model, name)?;
    let file = || name.to_owned();
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    if !starts_as_step(text) {
        let (found, hint) = beginning(text);
        return Err(IfcError::NotIfc {
            file: file(),
            found,
            hint,
        });
    }
    let (bytes, encoding) = in_utf8(bytes);
    let declared = step::declared_schemas(&bytes);
    let whole = ends_as_step(&bytes);
    let Some(data) = step::data_start(&bytes) else {
        return Err(if whole {
            IfcError::NoData { file: file() }
        } else {
            let (byte, line) = (bytes.len(), line(&bytes, bytes.len()));
            IfcError::Truncated {
                file: file(),
                what: "it ends within its header".to_owned(),
                line,
                byte,
            }
        });
    };
    let Some(schema) = Schema::of(&declared) else {
        let declared = if declared.is_empty() {
            "not declared (no FILE_SCHEMA in the header)".to_owned()
        } else {
            listed(&declared)
        };
        return Err(IfcError::Schema {
            file: file(),
            declared,
        });
    };
    Ok(OpenedModel {
        bytes,
        schema,
        data,
        whole,
        encoding,
    })
}

fn bytes(model: &Path, name: &str) -> Result<Bytes, IfcError> {
    let read = |source| IfcError::Read {
        file: name.to_owned(),
        source,
    };
    // A named pipe at the path is refused, not waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(model, flags, Mode::empty());
    let mut file = File::from(opened.map_err(|error| read(error.into()))?);
    let about = file.metadata().map_err(read)?;
    if about.is_dir() {
        return Err(read(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    if !about.is_file() {
        return Err(read(io::Error::other("it is not a regular file")));
    }
    if about.len() == 0 {
        return Err(IfcError::Empty {
            file: name.to_owned(),
        });
    }
    let mut magic = Vec::with_capacity(4);
    (&mut file).take(4).read_to_end(&mut magic).map_err(read)?;
    file.seek(SeekFrom::Start(0)).map_err(read)?;
    if magic.starts_with(b"PK\x03\x04") || magic.starts_with(b"PK\x05\x06") {
        return inflate(file, about.len(), name);
    }
    Bytes::map(&file).map_err(read)
}

/// Unpacks the one model of an archive. Files that macOS and other packers add do not count.
fn inflate(file: File, size: u64, name: &str) -> Result<Bytes, IfcError> {
    let broken = |reason: String| IfcError::Archive {
        file: name.to_owned(),
        reason,
    };
    let mut archive = ZipArchive::new(file).map_err(|error| broken(error.to_string()))?;
    let (mut models, mut others) = (Vec::new(), Vec::new());
    for at in 0..archive.len() {
        let entry = archive
            .by_index_raw(at)
            .map_err(|error| broken(error.to_string()))?;
        let path = entry
            .name()
            .map_err(|error| broken(error.to_string()))?
            .into_owned();
        if entry.is_dir() || path.starts_with("__MACOSX/") {
            continue;
        }
        let is_model = Path::new(&path)
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("ifc"));
        if is_model {
            models.push((at, path));
        } else {
            others.push(path);
        }
    }
    let [(at, path)] = models.as_slice() else {
        let found = match (models.len(), others.as_slice()) {
            (0, []) => "nothing".to_owned(),
            (0, others) => format!("none ({})", listed(others)),
            (several, _) => {
                let names: Vec<_> = models.into_iter().map(|(_, path)| path).collect();
                format!("{several} ({})", listed(&names))
            }
        };
        return Err(IfcError::ArchiveContent {
            file: name.to_owned(),
            found,
        });
    };
    let entry = archive
        .by_index(*at)
        .map_err(|error| broken(format!("{path}: {error}")))?;
    let most = size
        .saturating_mul(UNZIP_RATIO)
        .clamp(UNZIPPED_ANYWAY, UNZIPPED);
    let too_large = || IfcError::Limit {
        file: name.to_owned(),
        what: format!("{path} in its {size} bytes has more than {most} bytes"),
    };
    if entry.size() > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // The size in the archive is only a hint: it may be wrong, or exceed the memory.
    let _ = bytes.try_reserve(usize::try_from(entry.size()).unwrap_or(0));
    entry
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| broken(format!("{path}: {error}")))?;
    if bytes.len() as u64 > most {
        return Err(too_large());
    }
    if bytes.is_empty() {
        return Err(IfcError::Empty {
            file: format!("{name}: {path}"),
        });
    }
    Ok(Bytes::Copied(bytes))
}

/// Returns the first few of `names`.
fn listed(names: &[String]) -> String {
    let shown = names
        .iter()
        .take(3)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > 3 {
        format!("{shown}, …")
    } else {
        shown
    }
}

/// How a STEP file starts.
const START: &[u8] = b"ISO-10303-21";

/// How it ends.
const END: &[u8] = b"END-ISO-10303-21";

/// Returns true if `ISO-10303-21` comes first, after nothing but spaces and comments.
fn starts_as_step(text: &[u8]) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        let Some(comment) = rest.strip_prefix(b"/*") else {
            break;
        };
        let Some(end) = comment.windows(2).position(|two| two == b"*/") else {
            break;
        };
        rest = &comment[end + 2..];
    }
    rest.get(..START.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(START))
}

/// How much of a file's end is searched for its closing mark: signatures may follow it.
const TAIL: usize = 64 * 1024;

fn ends_as_step(bytes: &[u8]) -> bool {
    let tail = &bytes[bytes.len().saturating_sub(TAIL)..];
    tail.windows(END.len())
        .rev()
        .any(|window| window.eq_ignore_ascii_case(END))
}

/// Returns the first characters of a file, fit for a message, and a hint at its kind.
fn beginning(text: &[u8]) -> (String, &'static str) {
    let hint = match text {
        [b'<', ..] => ", which looks like XML",
        [0x1f, 0x8b, ..] => ", which is gzip",
        [b'%', b'P', b'D', b'F', ..] => ", which is a PDF",
        [0xD0, 0xCF, 0x11, 0xE0, ..] => ", which looks like an authoring tool's own file",
        [b'{' | b'[', ..] => ", which looks like JSON",
        _ => "",
    };
    let start = String::from_utf8_lossy(&text[..text.len().min(120)]);
    let shown = start
        .chars()
        .map(|c| if c.is_control() { '.' } else { c })
        .take(40)
        .collect();
    (shown, hint)
}

/// Returns the line, from 1, of a byte: lines end by LF, CR or both.
pub(super) fn line(bytes: &[u8], byte: usize) -> usize {
    let before = &bytes[..byte.min(bytes.len())];
    let feeds = before.split(|&byte| byte == b'\n').count() - 1;
    let returns = before
        .windows(2)
        .filter(|two| two[0] == b'\r' && two[1] != b'\n')
        .count();
    1 + feeds + returns + usize::from(before.last() == Some(&b'\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_by_lf_cr_or_both() {
        assert_eq!(line(b"a\nb\nc", 4), 3);
        assert_eq!(line(b"a\rb\rc", 4), 3);
        assert_eq!(line(b"a\r\nb\r\nc", 6), 3);
        assert_eq!(line(b"abc", 0), 1);
    }

    #[test]
    fn comments_and_spaces_may_stand_first() {
        assert!(starts_as_step(b" /* made by hand */\r\niso-10303-21;"));
        assert!(!starts_as_step(b"/* never closed ISO-10303-21;"));
        assert!(!starts_as_step(b"ISO-10303-2"));
    }
}
