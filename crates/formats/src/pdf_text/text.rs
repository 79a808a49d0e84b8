//! The text of a PDF, why there is none, and whether it can be trusted.

use serde::{Deserialize, Serialize};

/// The character for a letter without Unicode.
pub(crate) const UNKNOWN: char = '\u{FFFD}';

/// The share of letters that may lack Unicode.
const UNKNOWN_SHARE: f64 = 0.05;

/// A run of more Latin letters than this is several words.
const LONGEST: usize = 40;

/// The text of a PDF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfText {
    /// The pages, in order.
    pub pages: Vec<PdfPage>,
    /// The bookmarks, in order.
    pub outline: Vec<Heading>,
    /// Whether the bookmarks or the tree of their destinations link to themselves; each was read once.
    pub has_ring: bool,
    /// The numbers of the pages with form fields or notes, whose text is not read.
    pub with_notes: Vec<u32>,
    /// Lines that look like headings; `None` if the reader does not see fonts.
    pub headings: Option<Vec<Heading>>,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfPage {
    /// The number, from 1.
    pub number: u32,
    /// The lines, with an empty line between paragraphs.
    pub text: String,
    /// The blocks in a monospaced font; `None` if the reader does not see fonts.
    pub code: Option<Vec<Code>>,
}

/// A block of a page that is set in a monospaced font.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// The lines, with their indents.
    pub content: String,
    /// The number of lines.
    pub line_count: u32,
}

/// A heading or bookmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// The text of the heading.
    pub title: String,
    /// The page, from 1.
    pub page: u32,
    /// The depth, from 1.
    pub level: u8,
}

/// Why a PDF has no text that can be trusted. Messages continue a sentence that begins with the name of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum PdfTextError {
    /// The document is encrypted and the empty password does not open it.
    #[error(
        "needs a password ({0}): save a copy without one, such as with `qpdf --decrypt --password=… in.pdf out.pdf`"
    )]
    Password(String),
    /// The file has no bytes.
    #[error("is empty: put the file there again")]
    Empty,
    /// The file does not begin as a PDF; its first bytes.
    #[error("is not a PDF, it begins with {0:?}: save it as PDF")]
    Other(String),
    /// The file is truncated, or pages are missing.
    #[error("is cut off ({0}): copy or download it again")]
    Cut(String),
    /// The pages hold pictures only; the number of pages.
    #[error(
        "has no text on its pages ({0}), as in a scan: add a text layer, such as with `ocrmypdf in.pdf out.pdf`"
    )]
    NoText(usize),
    /// The text does not match what the pages show.
    #[error("{0}: export it again from its source")]
    Unreadable(String),
    /// The parser cannot read the document.
    #[error("cannot be read ({0}): print it to a new PDF, such as with `qpdf in.pdf out.pdf`")]
    Damaged(String),
    /// A part of the document is larger than is read: which, and how much is read.
    #[error(
        "exceeds a limit of the reader ({0}): print it to a new PDF, such as with `qpdf in.pdf out.pdf`, or split it"
    )]
    Limit(String),
    /// Another program that reads PDFs is missing or failed.
    #[error("{0}")]
    Program(String),
}

impl PdfTextError {
    /// Returns how much the error tells about the file, from 1 to 7. Where several readers fail, report the highest.
    pub fn weight(&self) -> u8 {
        match self {
            Self::Password(_) => 7,
            Self::Empty | Self::Other(_) => 6,
            Self::Cut(_) | Self::Limit(_) => 5,
            Self::NoText(_) => 4,
            Self::Unreadable(_) => 3,
            Self::Damaged(_) => 2,
            Self::Program(_) => 1,
        }
    }
}

/// Counts of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextCounts {
    /// Characters other than white space.
    pub letters: usize,
    /// Those that have no Unicode: U+FFFD and private use.
    pub unknown: usize,
    /// The numbers of the pages without text.
    pub empty: Vec<u32>,
}

/// Checks whether a text can be trusted.
///
/// # Errors
/// When there is none, more than 5 % of its letters have no Unicode, or its words are not separated.
pub fn check_text(text: &PdfText) -> Result<TextCounts, PdfTextError> {
    let has_none = |page: &&PdfPage| page.text.trim().is_empty();
    let all = || text.pages.iter().flat_map(|page| page.text.chars());
    let is_unknown = |c: char| c == UNKNOWN || ('\u{E000}'..='\u{F8FF}').contains(&c);
    let counted = TextCounts {
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
        return Err(PdfTextError::NoText(text.pages.len()));
    }
    if counted.unknown as f64 > UNKNOWN_SHARE * counted.letters as f64 {
        let (unknown, letters) = (counted.unknown, counted.letters);
        let message = format!("has no Unicode for {unknown} of its {letters} characters");
        return Err(PdfTextError::Unreadable(message));
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
        let message = "has no spaces between its words".to_owned();
        return Err(PdfTextError::Unreadable(message));
    }
    Ok(counted)
}

/// Checks the beginning and end of a file, which is fast.
///
/// # Errors
/// When the file is empty, not a PDF, or its end is missing.
pub fn check_file(bytes: &[u8]) -> Result<(), PdfTextError> {
    if bytes.is_empty() {
        return Err(PdfTextError::Empty);
    }
    let begin = &bytes[..bytes.len().min(1024)];
    if !begin.windows(5).any(|five| five == b"%PDF-") {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(16)]);
        return Err(PdfTextError::Other(shown.into_owned()));
    }
    // The mark of the end; more objects after it are of an addition that has none.
    let mark = bytes.windows(5).rposition(|five| five == b"%%EOF");
    let rest = mark.map(|at| &bytes[at..]);
    let has_more = rest.is_none_or(|rest| {
        rest.windows(5)
            .any(|five| five == b" obj\n" || five == b" obj\r")
    });
    if has_more {
        return Err(PdfTextError::Cut(format!(
            "it ends after {} bytes, without its end mark",
            bytes.len()
        )));
    }
    Ok(())
}

/// Returns the pages of what the program `pdftotext` prints: each page ends with a form feed.
pub fn from_pdftotext(printed: &str) -> PdfText {
    let mut pages: Vec<&str> = printed.split('\u{c}').collect();
    if pages.len() > 1 && pages.last().is_some_and(|last| last.trim().is_empty()) {
        pages.pop();
    }
    let pages = (1..).zip(pages).map(|(number, text)| PdfPage {
        number,
        text: text.trim_end().to_owned(),
        code: None,
    });
    PdfText {
        pages: pages.collect(),
        outline: Vec::new(),
        has_ring: false,
        with_notes: Vec::new(),
        headings: None,
    }
}

#[cfg(test)]
mod tests {
    use super::from_pdftotext;

    #[test]
    fn pages_end_with_a_form_feed() {
        let text = from_pdftotext("one\n\u{c}\u{c}three\n\n\u{c}");
        let found: Vec<_> = text
            .pages
            .iter()
            .map(|page| (page.number, page.text.as_str()))
            .collect();
        assert_eq!(found, [(1, "one"), (2, ""), (3, "three")]);
    }
}
