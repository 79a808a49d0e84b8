//! PDF by the engine `hayro`: damage never changes the text, and hostile files do no harm.

use super::documents::{SENTENCE, bookmark, check_broken, told, with_font};
use super::soon;
use crate::mutated::structures::{page, pdf, stream};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use milepost_formats::pdf::{PdfInfo, markdown_to_pdf};
use milepost_formats::pdf_text::{Parser, PdfText, PdfTextError};
use std::io::Write;

fn read(bytes: &[u8]) -> Result<PdfText, PdfTextError> {
    Parser::Hayro.read(bytes)
}

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
fn both_parsers_read_the_same() {
    let bytes = sample();
    let text = read(&bytes).unwrap();
    assert!(text.pages.len() > 2 && text.outline.len() == 6, "{text:#?}");
    assert_eq!(text, Parser::Builtin.read(&bytes).unwrap());
}

#[test]
fn a_file_that_ends_anywhere_has_its_whole_text_or_none() {
    let bytes = sample();
    let whole = read(&bytes).unwrap();
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
    let message = "page 1: its content breaks off".to_owned();
    let half = with(&whole[..whole.len() / 2]);
    assert_eq!(half, Err(PdfTextError::Cut(message)));
    objects[3].1 = "null".to_owned();
    let message = "page 1: its content is missing".to_owned();
    let lost = soon(|| read(&pdf(&objects)));
    assert_eq!(lost, Err(PdfTextError::Cut(message)));
}

#[test]
fn files_that_broke_an_earlier_version() {
    check_broken(&read, "page 1: more than 11676500 bytes in a stream");
}

#[test]
fn rings_end_and_limits_hold() {
    let limit = |bytes: &[u8]| match soon(|| read(bytes)) {
        Err(PdfTextError::Limit(what)) => what,
        other => panic!("{other:?}"),
    };
    let mut rings = page(
        "/Outlines 6 0 R/Names<</Dests 9 0 R>>",
        "/Resources<</Font<</F1 5 0 R>>/XObject<</X 10 0 R>>>>",
    );
    rings[3].1 = stream("", "/X Do");
    let form = "/Type/XObject/Subtype/Form/Resources<</Font<</F1 5 0 R>>/XObject<</X 10 0 R>>>>";
    let content = format!("BT /F1 12 Tf 72 700 Td ({SENTENCE}) Tj ET /X Do /X Do");
    rings.extend([
        (6, "<</First 7 0 R/Last 8 0 R>>".to_owned()),
        (
            7,
            "<</Title(one)/Dest[3 0 R/Fit]/First 8 0 R/Next 8 0 R>>".to_owned(),
        ),
        (
            8,
            "<</Title<FEFF00E9>/A<</S/GoTo/D(there)>>/First 7 0 R/Next 7 0 R>>".to_owned(),
        ),
        (
            9,
            "<</Kids[9 0 R 9 0 R]/Names[(there)<</D[3 0 R/Fit]>>(odd)[]]>>".to_owned(),
        ),
        (10, stream(form, &content)),
    ]);
    let expected = vec![bookmark("one", 1), bookmark("é", 2)];
    let found = soon(|| read(&pdf(&rings))).map(told);
    assert_eq!(found, Ok((vec![SENTENCE.to_owned()], expected)));

    let ranges = "0 65000 500 ".repeat(1000);
    let descendant = (
        6,
        format!("<</Type/Font/Subtype/CIDFontType2/W[{ranges}]>>"),
    );
    let widths = with_font("/Subtype/Type0/DescendantFonts[6 0 R]", &[descendant]);
    assert_eq!(limit(&widths), "page 1: more than 8000000 widths in fonts");

    let mut forms = page("", "/Resources<</XObject<</X 10 0 R>>>>");
    forms[3].1 = stream("", "/X Do\n");
    forms.extend((10..20).map(|number| {
        let resources = format!("/Resources<</XObject<</X {} 0 R>>>>", number + 1);
        let entries = format!("/Type/XObject/Subtype/Form{resources}");
        (number, stream(&entries, &"/X Do ".repeat(10)))
    }));
    let expected = "page 1: more than 5000 forms drawn inside of forms";
    assert_eq!(limit(&pdf(&forms)), expected);

    let mut rows = page("", "");
    let predictor = "/DecodeParms[<</Predictor 12/Columns 2147483647/Colors 9>>]";
    rows[3].1 = stream(&format!("/Filter[/LZWDecode]{predictor}"), "x");
    let expected = "page 1: more than 1048576 bytes in a row of samples";
    assert_eq!(limit(&pdf(&rows)), expected);

    let mut letters = page("", "");
    let long = "a".repeat(1_200_000);
    letters[3].1 = stream("", &format!("BT /F1 1 Tf ({long}) Tj ET "));
    assert_eq!(
        limit(&pdf(&letters)),
        "page 1: more than 1000000 characters on it"
    );
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
