//! PDF: damage never changes the text.

use super::documents::told;
use super::soon;
use crate::mutated::structures::{page, pdf, stream};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use milepost_formats::pdf::{PdfInfo, markdown_to_pdf};
use milepost_formats::pdf_text::{PdfTextError, read};
use std::io::Write;

/// A document of several pages, with headings, code and bookmarks.
fn sample() -> Vec<u8> {
    let part = |number: u32| {
        let lines = "It is one of several that this part consists of.\n\n".repeat(20);
        format!("## Part {number}\n\n{lines}```\nfor part in {number}:\n    read(part)\n```\n\n")
    };
    let parts: String = (1..=5).map(part).collect();
    markdown_to_pdf(&format!("# Parts\n\n{parts}"), &PdfInfo::default()).unwrap()
}

#[test]
fn a_file_that_ends_anywhere_has_its_whole_text_or_none() {
    let bytes = sample();
    let whole = read(&bytes).unwrap();
    assert!(
        whole.pages.len() > 2 && whole.outline.len() == 6,
        "{whole:#?}"
    );
    let (mut same, mut refused) = (0, 0);
    for end in (0..=bytes.len()).step_by(bytes.len() / 200) {
        match soon(|| read(&bytes[..end])) {
            Ok(text) => {
                assert_eq!(text, whole, "{end}");
                same += 1;
            }
            Err(_) => refused += 1,
        }
    }
    // The table of objects may be missing.
    assert!(
        refused > same && same > 0,
        "{same} whole, {refused} refused"
    );
}

#[test]
fn a_hole_anywhere_is_no_panic() {
    let bytes = sample();
    for begin in (0..bytes.len()).step_by(bytes.len() / 200) {
        let mut damaged = bytes.clone();
        let end = bytes.len().min(begin + 40);
        damaged[begin..end].fill(0);
        if let Ok(text) = soon(|| read(&damaged)) {
            assert!(text.pages.len() > 2, "{begin}");
        }
        damaged.drain(begin..end);
        if let Ok(text) = soon(|| read(&damaged)) {
            assert!(text.pages.len() > 2, "{begin}");
        }
    }
}

#[test]
fn a_content_that_breaks_off_is_no_text() {
    let mut objects = page("", "");
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    let line = |number: u32| format!("0 -14 Td (Line {number} of forty.) Tj ");
    let lines: String = (1..=40).map(line).collect();
    write!(zlib, "BT /F1 12 Tf 72 700 Td {lines} ET").unwrap();
    let whole = zlib.finish().unwrap();
    let hex = |part: &[u8]| -> String {
        let digits = part.iter().map(|byte| format!("{byte:02x}"));
        digits.collect::<String>() + ">"
    };
    let mut with = |part: &[u8]| {
        objects[3].1 = stream("/Filter[/ASCIIHexDecode/FlateDecode]", &hex(part));
        let found = soon(|| read(&pdf(&objects)));
        found.map(|text| told(text).0)
    };
    assert_eq!(with(&whole).unwrap()[0].lines().count(), 40);
    let message = "page 1: its content is cut off".to_owned();
    let half = with(&whole[..whole.len() / 2]);
    assert_eq!(half, Err(PdfTextError::Cut(message)));
    objects[3].1 = "null".to_owned();
    let message = "page 1: its content is missing".to_owned();
    let lost = soon(|| read(&pdf(&objects)));
    assert_eq!(lost, Err(PdfTextError::Cut(message)));
}

#[test]
fn a_row_of_samples_has_a_limit() {
    let mut rows = page("", "");
    let predictor = "/DecodeParms[<</Predictor 12/Columns 2147483647/Colors 9>>]";
    rows[3].1 = stream(&format!("/Filter[/LZWDecode]{predictor}"), "x");
    let expected = "page 1: more than 1048576 bytes in a row of samples";
    let found = soon(|| read(&pdf(&rows)));
    assert_eq!(found, Err(PdfTextError::Limit(expected.to_owned())));
}

#[test]
fn letters_are_known_where_others_of_their_font_are_not() {
    let shown = |font: &str, text: &str| {
        let mut objects = page("", "");
        objects[3].1 = stream("", &format!("BT /F1 12 Tf 72 700 Td {text} Tj ET"));
        objects[4].1 = format!("<</Type/Font/BaseFont/A{font}>>");
        told(soon(|| read(&pdf(&objects))).unwrap()).0[0].clone()
    };
    let own = "/Subtype/Type1/Encoding<</Differences[1/uni00E9/f_i/g7/Gamma.alt]>>";
    assert_eq!(shown(own, "<0102030441>"), "éfi\u{FFFD}ΓA");
    let wide = |encoding: &str| {
        format!("/Subtype/Type0/Encoding/{encoding}/DescendantFonts[<</Subtype/CIDFontType0>>]")
    };
    assert_eq!(shown(&wide("90ms-RKSJ-H"), "<93FA967B41>"), "日本A");
    assert_eq!(shown(&wide("UniJIS-UTF16-H"), "<65E5672C0041>"), "日本A");
    assert_eq!(shown(&wide("Identity-H"), "<00010002>"), "\u{FFFD}\u{FFFD}");
}
