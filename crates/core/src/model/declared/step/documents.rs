//! The kinds of steps that write or read documents: workbooks, building models, PDF.

use super::geometry::Geometry;
use super::info::{Describe, KindInfo, PROGRAM_TIMEOUT};
use super::part::Part;
use crate::expr::scope::Format;
use crate::model::declared::asset::Asset;
use crate::model::declared::expression::Templated;
use crate::model::declared::keys::ValueKind::{File, Name, Names, Text};
use crate::model::declared::keys::key;

/// Writes a workbook.
#[derive(Debug, Clone)]
pub struct XlsxStep {
    /// The description of the workbook.
    pub workbook: Asset,
}

impl Describe for XlsxStep {
    const INFO: KindInfo = KindInfo {
        ending: Some("xlsx"),
        format: Format::Binary,
        computes: false,
        writes_by_path: true,
        ..KindInfo::computing(
            "xlsx",
            &[key("xlsx", File)
                .what()
                .doc("Writes an Excel workbook as this file describes.")],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self { workbook } = self;
        vec![
            ("xlsx", Part::Workbook(workbook)),
            // The title of the document.
            ("xlsx", Part::Mention("workspace.name")),
        ]
    }
}

/// Reads a building model.
#[derive(Debug, Clone)]
pub struct IfcStep {
    /// The name of the input with the model.
    pub input: String,
    /// The elements whose geometry is measured; none if the key is absent.
    pub geometry: Option<Templated<Geometry>>,
}

impl Describe for IfcStep {
    const INFO: KindInfo = KindInfo {
        ending: Some("json"),
        computes: false,
        timeout: Some(PROGRAM_TIMEOUT),
        ..KindInfo::computing(
            "ifc",
            &[
                key("ifc", Name)
                    .what()
                    .doc("Reads the building model in this input."),
                key("geometry", Text)
                    .beside(&["ifc"])
                    .default("\"off\"")
                    .doc(
                        "The elements to measure by their geometry: `off` (none), `missing` (those \
                         without a usable volume) or `all`.",
                    ),
            ],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self { input, geometry } = self;
        let geometry = Part::optional(geometry.as_ref(), Part::Geometry);
        vec![("ifc", Part::Reads(input)), ("geometry", geometry)]
    }
}

/// Converts Markdown to PDF.
#[derive(Debug, Clone)]
pub struct PdfStep {
    /// The name of the Markdown file.
    pub input: String,
}

impl Describe for PdfStep {
    const INFO: KindInfo = KindInfo {
        ending: Some("pdf"),
        format: Format::Binary,
        computes: false,
        ..KindInfo::computing(
            "pdf",
            &[key("pdf", Name)
                .what()
                .doc("Writes this Markdown (an input or an earlier `out`) as PDF.")],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self { input } = self;
        vec![("pdf", Part::Reads(input))]
    }
}

/// Reads the text of a PDF.
#[derive(Debug, Clone)]
pub struct PdfTextStep {
    /// The name of the PDF file.
    pub input: String,
    /// The engines: if one fails, the next is tried.
    pub engines: Vec<PdfEngine>,
}

impl Describe for PdfTextStep {
    const INFO: KindInfo = KindInfo {
        ending: Some("json"),
        computes: false,
        reaches_out: true,
        timeout: Some(PROGRAM_TIMEOUT),
        ..KindInfo::computing(
            "pdf_text",
            &[
                key("pdf_text", Name)
                    .what()
                    .doc("Reads the text of this PDF (an input or earlier `out`), page by page."),
                key("engines", Names)
                    .beside(&["pdf_text"])
                    .default("[\"builtin\", \"pdftotext\"]")
                    .doc(
                        "The engines that read the PDF, in order; the next is tried if one fails.",
                    ),
            ],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self { input, engines: _ } = self;
        vec![("pdf_text", Part::Reads(input)), ("engines", Part::Literal)]
    }
}

/// An engine that reads the text of a PDF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PdfEngine {
    /// Milepost itself.
    Builtin,
    /// The program of Poppler.
    Pdftotext,
}

impl PdfEngine {
    /// All engines, in the order in which they are tried where the step names none.
    pub(crate) const ALL: [Self; 2] = [Self::Builtin, Self::Pdftotext];

    /// Returns the name in declarations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Pdftotext => "pdftotext",
        }
    }
}
