//! What came out of a PDF, why nothing did, and whether what came out can be believed.

use super::fonts::UNKNOWN;
use serde::Serialize;

/// More of the letters than this may not be without Unicode.
const UNKNOWN_SHARE: f64 = 0.05;

/// Words of Latin letters that are longer stand for several.
const LONGEST: usize = 40;

/// The text of a PDF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Its pages, in order.
    pub pages: Vec<Page>,
    /// Its bookmarks.
    pub outline: Vec<Heading>,
    /// Its lines that look like headings; none: the engine does not see fonts.
    pub headings: Option<Vec<Heading>>,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Page {
    /// From 1.
    pub number: u32,
    /// Its lines; an empty one between paragraphs.
    pub text: String,
    /// Its parts that are set in letters of one width, as code is; none: the engine does not see fonts.
    pub code: Option<Vec<Code>>,
}

/// A part of a page that is set as code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Code {
    /// Its lines, with their indents.
    pub content: String,
    /// How many.
    pub line_count: u32,
}

/// A title and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Heading {
    /// What it says.
    pub title: String,
    /// The page, from 1.
    pub page: u32,
    /// How deep it stands, from 1.
    pub level: u8,
}

/// Why there is no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nobody may read it.
    #[error(
        "needs a password ({0}): save a copy without one, such as by `qpdf --decrypt --password=… in.pdf out.pdf`"
    )]
    Password(String),
    /// It has no bytes.
    #[error("is empty: put the file there again")]
    Empty,
    /// It is something else.
    #[error("is no PDF, it begins with {0:?}: save it as PDF")]
    Other(String),
    /// A part of it is not there.
    #[error("breaks off ({0}): copy or download it once more")]
    Cut(String),
    /// There are pictures only.
    #[error(
        "has no text on its pages ({0}), as scans have none: give it one, such as by `ocrmypdf in.pdf out.pdf`"
    )]
    NoText(usize),
    /// What came out is not what stands there.
    #[error("{0}: export it once more from where it comes")]
    Unreadable(String),
    /// It could not be understood.
    #[error("cannot be read ({0}): print it to a new PDF, such as by `qpdf in.pdf out.pdf`")]
    Damaged(String),
    /// The program of the engine is not there, or failed.
    #[error("{0}")]
    Program(String),
}

impl Fault {
    /// How much it says of the file: of several engines, that is told which says most.
    pub fn weight(&self) -> u8 {
        match self {
            Self::Password(_) => 7,
            Self::Empty | Self::Other(_) => 6,
            Self::Cut(_) => 5,
            Self::NoText(_) => 4,
            Self::Unreadable(_) => 3,
            Self::Damaged(_) => 2,
            Self::Program(_) => 1,
        }
    }
}

/// What was counted in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Letters, without blanks.
    pub letters: usize,
    /// Those that have no Unicode.
    pub unknown: usize,
    /// Pages without any.
    pub empty: Vec<u32>,
}

/// Whether a text can be believed.
///
/// # Errors
/// When there is none, its letters are unknown, or its words are not apart.
pub fn check(text: &Text) -> Result<Counted, Fault> {
    let has_none = |page: &&Page| page.text.trim().is_empty();
    let all = || text.pages.iter().flat_map(|page| page.text.chars());
    let is_unknown = |c: char| c == UNKNOWN || ('\u{E000}'..='\u{F8FF}').contains(&c);
    let counted = Counted {
        letters: all().filter(|c| !c.is_whitespace()).count(),
        unknown: all().filter(|c| is_unknown(*c)).count(),
        empty: text
            .pages
            .iter()
            .filter(has_none)
            .map(|page| page.number)
            .collect(),
    };
    if counted.letters == 0 {
        return Err(Fault::NoText(text.pages.len()));
    }
    if counted.unknown as f64 > UNKNOWN_SHARE * counted.letters as f64 {
        let (unknown, letters) = (counted.unknown, counted.letters);
        let message = format!("does not say what {unknown} of its {letters} letters are");
        return Err(Fault::Unreadable(message));
    }
    let (mut latin, mut joined) = (0, 0);
    let words = text
        .pages
        .iter()
        .flat_map(|page| page.text.split_whitespace());
    for word in words {
        let letters = word.chars().filter(char::is_ascii_alphabetic).count();
        latin += letters;
        joined += if letters > LONGEST { letters } else { 0 };
    }
    if joined * 2 > latin {
        let message = "does not say where its words end".to_owned();
        return Err(Fault::Unreadable(message));
    }
    Ok(counted)
}

/// What the bytes say before any engine is asked.
///
/// # Errors
/// When it is empty, no PDF, or its end is missing.
pub fn look(bytes: &[u8]) -> Result<(), Fault> {
    if bytes.is_empty() {
        return Err(Fault::Empty);
    }
    let begin = &bytes[..bytes.len().min(1024)];
    if !begin.windows(5).any(|five| five == b"%PDF-") {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(16)]);
        return Err(Fault::Other(shown.into_owned()));
    }
    // The mark of the end; more objects after it are of an addition that has none.
    let mark = bytes.windows(5).rposition(|five| five == b"%%EOF");
    let rest = mark.map(|at| &bytes[at..]);
    let goes_on = rest.is_none_or(|rest| {
        rest.windows(5)
            .any(|five| five == b" obj\n" || five == b" obj\r")
    });
    if goes_on {
        return Err(Fault::Cut(format!(
            "it ends after {} bytes, without its end mark",
            bytes.len()
        )));
    }
    Ok(())
}
