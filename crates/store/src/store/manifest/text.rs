//! The lines of a page of a manifest: files as `sha256sum` writes them, everything else after `#`.

use crate::store::disk::DiskError;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::model::fingerprint::Facts;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::record::{BatchRecord, Made};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum number of outputs on a page.
pub const PAGE_LINES: usize = 1000;

/// The form of the pages that this program writes. It reads every older one.
pub(super) const FORMAT: u64 = 1;

/// How the last line of a page begins: without it, the page is cut off. The digest of the lines before follows; earlier versions wrote
/// none.
pub(super) const END: &str = "# end";

/// A manifest that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A page is not as it was written.
    #[error(
        "{path}, line {line}: {problem}. The manifest was damaged: put the page back from a copy, \
         or remove its folder, and the next run rebuilds it from the journal"
    )]
    Damaged {
        /// The page.
        path: PathBuf,
        /// The line, from 1 on.
        line: usize,
        problem: String,
    },
    /// A page has a later form.
    #[error(
        "{path} is written by a newer Milepost (format {format}; this one reads up to {}): update milepost",
        FORMAT
    )]
    Newer {
        /// The page.
        path: PathBuf,
        format: u64,
    },
    /// The pages kept changing while they were read.
    #[error("the manifest in {path} is being rewritten: try again")]
    Moving {
        /// The folder.
        path: PathBuf,
    },
    /// A record could not be written as JSON.
    #[error("a batch of the manifest cannot be written: {0}")]
    Record(#[from] serde_json::Error),
}

/// One line of a page.
pub(super) enum PageLine {
    Header(Header),
    Facts(String, Facts),
    /// A record, whose outputs have no paths and digests yet, and the number of pieces with its outputs.
    Batch(BatchRecord<NamedOutput>, usize),
    More(More),
    Failed(Failed),
    Remains(Remains),
    Waiting(Waiting),
    Output(Digest, RelPath),
    End,
}

/// An output in a record: its path and its digest are on a line of their own.
#[derive(Serialize, Deserialize)]
pub(super) struct NamedOutput {
    pub(crate) name: String,
    pub(crate) size: u64,
}

/// The number of pieces with the outputs of a record; written if there are several.
#[derive(Deserialize)]
struct PartCount {
    parts: usize,
}

pub(super) struct Header {
    pub(crate) stage: String,
    pub(crate) number: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct More {
    pub(crate) key: String,
    pub(crate) part: usize,
    pub(crate) outputs: Vec<NamedOutput>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Failed {
    pub(crate) key: String,
    pub(crate) outcome: Outcome,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Remains {
    pub(crate) key: String,
    pub(crate) files: BTreeMap<RelPath, Digest>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Waiting {
    pub(crate) key: String,
}

/// Returns a page as earlier versions wrote it, without a digest of its lines.
pub(super) fn without_digest(page: &str) -> String {
    let (lines, _) = page.rsplit_once(END).unwrap_or((page, ""));
    format!("{lines}{END}\n")
}

/// Returns false if a page has a digest of its lines, and they are others.
pub(super) fn is_as_written(page: &[u8]) -> bool {
    let end = memchr::memmem::rfind(page, END.as_bytes()).unwrap_or(page.len());
    let (lines, end) = page.split_at(end);
    let digest = end.get(END.len()..).unwrap_or_default().trim_ascii();
    digest.is_empty() || digest == Digest::of(lines).hex().as_bytes()
}

type WriteResult = Result<(), serde_json::Error>;

pub(super) fn header(stage: &str, number: u32) -> String {
    format!("# milepost manifest {FORMAT} stage {stage} number {number}\n")
}

pub(super) fn facts(page: &mut String, id: &str, facts: &Facts) -> WriteResult {
    comment(page, &format!("facts {id}"), facts)
}

/// A record, its outputs by name and size; then `outputs`, the first of them, as lines.
pub(super) fn batch(page: &mut String, record: &BatchRecord, outputs: &[Made]) -> WriteResult {
    let parts = record.outputs.len().div_ceil(PAGE_LINES);
    let kept = record.clone().with_outputs(named(outputs));
    if parts > 1 {
        let mut value = serde_json::to_value(kept)?;
        value["parts"] = parts.into();
        comment(page, "batch", &value)?;
    } else {
        comment(page, "batch", &kept)?;
    }
    files(page, outputs);
    Ok(())
}

/// More outputs of a batch.
pub(super) fn more(page: &mut String, key: &str, part: usize, outputs: &[Made]) -> WriteResult {
    let more = More {
        key: key.to_owned(),
        part,
        outputs: named(outputs),
    };
    comment(page, "more", &more)?;
    files(page, outputs);
    Ok(())
}

pub(super) fn failed(page: &mut String, key: &str, outcome: &Outcome) -> WriteResult {
    let (key, outcome) = (key.to_owned(), outcome.clone());
    comment(page, "failed", &Failed { key, outcome })
}

pub(super) fn remains(
    page: &mut String,
    key: &str,
    files: &BTreeMap<RelPath, Digest>,
) -> WriteResult {
    let (key, files) = (key.to_owned(), files.clone());
    comment(page, "remains", &Remains { key, files })
}

pub(super) fn waiting(page: &mut String, key: &str) -> WriteResult {
    let key = key.to_owned();
    comment(page, "waiting", &Waiting { key })
}

fn comment(page: &mut String, word: &str, data: &impl Serialize) -> WriteResult {
    page.push_str("# ");
    page.push_str(word);
    page.push(' ');
    serde_json::to_writer(PageWriter(page), data)?;
    page.push('\n');
    Ok(())
}

/// Writes JSON to a page.
struct PageWriter<'a>(&'a mut String);

impl io::Write for PageWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .push_str(std::str::from_utf8(bytes).map_err(io::Error::other)?);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn named(outputs: &[Made]) -> Vec<NamedOutput> {
    let named = |made: &Made| NamedOutput {
        name: made.name.clone(),
        size: made.size,
    };
    outputs.iter().map(named).collect()
}

fn files(page: &mut String, outputs: &[Made]) {
    for made in outputs {
        // Writing into a String does not fail.
        let _ = writeln!(page, "{}  {}", made.digest.hex(), made.path);
    }
}

/// Returns the lines of a page with their numbers, from 1 on.
pub(super) fn lines<'a>(
    path: &Path,
    bytes: &'a [u8],
) -> Result<impl Iterator<Item = (usize, &'a str)>, ManifestError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count();
        damaged(path, line, "the text is not UTF-8")
    })?;
    Ok((1..).zip(text.lines()))
}

/// Reads one line.
pub(super) fn line(path: &Path, (number, text): (usize, &str)) -> Result<PageLine, ManifestError> {
    let wrong = |problem: &dyn std::fmt::Display| damaged(path, number, &problem.to_string());
    let Some(comment) = text.strip_prefix("# ") else {
        let (hex, file) = text
            .split_once("  ")
            .ok_or_else(|| wrong(&"neither a file nor a comment"))?;
        let digest = Digest::from_hex(hex).map_err(|error| wrong(&error))?;
        let file = RelPath::parse(file).map_err(|error| wrong(&error))?;
        return Ok(PageLine::Output(digest, file));
    };
    let (word, data) = comment.split_once(' ').unwrap_or((comment, ""));
    let json = |error: serde_json::Error| wrong(&error);
    Ok(match word {
        "milepost" => PageLine::Header(header_of(path, number, data)?),
        "facts" => {
            let (id, data) = data.split_once(' ').unwrap_or((data, ""));
            PageLine::Facts(id.to_owned(), serde_json::from_str(data).map_err(json)?)
        }
        "batch" => {
            let record: BatchRecord<NamedOutput> = serde_json::from_str(data).map_err(json)?;
            let parts = if record.outputs.len() < PAGE_LINES {
                1
            } else {
                serde_json::from_str(data).map_or(1, |parts: PartCount| parts.parts)
            };
            PageLine::Batch(record, parts)
        }
        "more" => PageLine::More(serde_json::from_str(data).map_err(json)?),
        "failed" => PageLine::Failed(serde_json::from_str(data).map_err(json)?),
        "remains" => PageLine::Remains(serde_json::from_str(data).map_err(json)?),
        "waiting" => PageLine::Waiting(serde_json::from_str(data).map_err(json)?),
        "end" => PageLine::End,
        _ => return Err(wrong(&format!("`# {word}` is not a line of a manifest"))),
    })
}

fn header_of(path: &Path, line: usize, data: &str) -> Result<Header, ManifestError> {
    let wrong = || damaged(path, line, "a page begins with `# milepost manifest`");
    let rest = data.strip_prefix("manifest ").ok_or_else(wrong)?;
    let (format, rest) = rest.split_once(' ').ok_or_else(wrong)?;
    let format: u64 = format.parse().map_err(|_| wrong())?;
    if format > FORMAT {
        return Err(ManifestError::Newer {
            path: path.to_owned(),
            format,
        });
    }
    let rest = rest.strip_prefix("stage ").ok_or_else(wrong)?;
    let (stage, number) = rest.rsplit_once(" number ").ok_or_else(wrong)?;
    Ok(Header {
        stage: stage.to_owned(),
        number: number.parse().map_err(|_| wrong())?,
    })
}

pub(super) fn damaged(path: &Path, line: usize, problem: &str) -> ManifestError {
    ManifestError::Damaged {
        path: path.to_owned(),
        line,
        problem: problem.to_owned(),
    }
}
