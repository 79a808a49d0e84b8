//! Properties of a PDF document, and why one could not be written.

use serde_json::Value;

/// Properties of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PdfInfo {
    /// The title in the file's properties and below each page; if empty, the first heading.
    pub title: String,
    /// The creation date in the file's properties. The clock is never read: the same text and properties produce the same bytes.
    pub date: Option<jiff::civil::Date>,
    /// Language of the text as a BCP 47 tag, such as `en` or `de-CH`.
    pub language: String,
    /// Name of the program that wrote the document.
    pub producer: String,
}

impl Default for PdfInfo {
    fn default() -> Self {
        Self {
            title: String::new(),
            date: None,
            language: "en".to_owned(),
            producer: "milepost".to_owned(),
        }
    }
}

/// Why a text could not be typeset as PDF.
#[derive(Debug, thiserror::Error)]
pub enum PdfError {
    /// A fenced block named `chart` does not hold a chart.
    #[error(
        "chart {number} of the text: {reason}\n  help: write a chart block as \
         {{\"kind\": \"bar\", \"title\": …, \"rows\": [{{…}}], \"label\": field, \"value\": field}}"
    )]
    Chart {
        /// The number of the chart in the text, from 1.
        number: usize,
        /// The problem of the block.
        #[source]
        reason: ChartError,
    },
    /// A fenced block named `drawing` does not hold a drawing.
    #[error(
        "drawing {number} of the text: {reason}\n  help: write a drawing block as {{\"title\": …, \"scale\": 100, \"extent\": [x0, y0, x1, y1], \
         \"layers\": [{{\"fill\": \"#d9dfe5\", \"stroke\": …, \"width\": mm, \"dash\": [mm], \"paths\": [\"M0 0 5 0 5 4Z\"]}}]}}"
    )]
    Drawing {
        /// The number of the drawing in the text, from 1.
        number: usize,
        /// The problem of the block.
        #[source]
        reason: DrawingError,
    },
    /// An embedded font cannot be read.
    #[error("font {name}: {reason}")]
    Font {
        /// The name of the font.
        name: &'static str,
        /// The parser's message.
        reason: String,
    },
    /// A stream of the file could not be compressed.
    #[error("cannot compress a part of the PDF: {0}")]
    Compress(#[source] std::io::Error),
}

/// Why a fenced block named `chart` holds no chart.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// The block is not JSON, or does not have the fields of a chart.
    #[error(transparent)]
    Fields(#[from] serde_json::Error),
    /// A value is not a number.
    #[error("`{field}` of row {row} is not a number: {found}")]
    Value {
        /// The field with the values.
        field: String,
        /// The number of the row, from 1.
        row: usize,
        /// The value.
        found: Value,
    },
}

/// Why a fenced block named `drawing` holds no drawing.
#[derive(Debug, thiserror::Error)]
pub enum DrawingError {
    /// The block is not JSON, or does not have the fields of a drawing.
    #[error(transparent)]
    Fields(#[from] serde_json::Error),
    /// The extent is empty or too large.
    #[error("`extent` is left, lower, right and upper edge in metres, at most 1e9 m apart: {0:?}")]
    Extent([f64; 4]),
    /// The scale is none.
    #[error("`scale` is 100 for 1:100, from 1 to 1e12: {0}")]
    Scale(f64),
    /// A colour is not written as `#rrggbb`.
    #[error("a colour is written as `#rrggbb`: {0:?}")]
    Color(String),
    /// A path is not a list of rings.
    #[error("a path is `M x y x y … Z` for each ring, in metres: {0:?}")]
    Path(String),
    /// There are more points than a drawing may have.
    #[error("more than {0} points")]
    Points(usize),
}

impl DrawingError {
    pub(crate) fn path(text: &str) -> Self {
        let mut shown: String = text.chars().take(60).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        Self::Path(shown)
    }
}
