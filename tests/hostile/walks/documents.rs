//! PDF: rings of links, counts that are no counts, and small files that grow large.

use super::soon;
use crate::hostile::files::hostile_file;
use crate::mutated::structures::{page, pdf, stream};
use milepost_formats::pdf_text::{Heading, PdfText, PdfTextError, read};

pub(super) const SENTENCE: &str = "Hello world, this is a sentence of a page.";

/// The text of the pages and the bookmarks.
pub(super) fn told(read: PdfText) -> (Vec<String>, Vec<Heading>) {
    let pages = read.pages.into_iter().map(|page| page.text);
    (pages.collect(), read.outline)
}

pub(super) fn bookmark(title: &str, level: u8) -> Heading {
    Heading {
        title: title.to_owned(),
        page: 1,
        level,
    }
}

/// The sentence of an error about a limit.
fn limit(bytes: &[u8]) -> String {
    match soon(|| read(bytes)) {
        Err(PdfTextError::Limit(what)) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_that_broke_an_earlier_version() {
    let sentence = "Hello world this is a fairly normal sentence of text on a page.";
    let limit = "page 1: more than 11676500 bytes in a stream";
    let expected = [
        ("firstself.pdf", Ok((vec![sentence.to_owned()], vec![]))),
        (
            "nextself.pdf",
            Ok((vec![sentence.to_owned()], vec![bookmark("a", 1)])),
        ),
        ("namescycle.pdf", Ok((vec![sentence.to_owned()], vec![]))),
        (
            "kidcount.pdf",
            Err(PdfTextError::Cut("1 of its 2 pages were found".to_owned())),
        ),
        ("deepq60.pdf", Err(PdfTextError::Limit(limit.to_owned()))),
    ];
    for (name, expected) in expected {
        let bytes = hostile_file(name);
        assert_eq!(soon(|| read(&bytes)).map(told), expected, "{name}");
    }
}

#[test]
fn bookmarks_of_rings_are_read_once() {
    let mut objects = page("/Outlines 6 0 R/Names<</Dests 9 0 R>>", "");
    objects.extend([
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
    ]);
    let read = soon(|| read(&pdf(&objects)));
    let expected = vec![bookmark("one", 1), bookmark("é", 2)];
    assert_eq!(read.map(told), Ok((vec![SENTENCE.to_owned()], expected)));
}

#[test]
fn a_page_tree_that_holds_itself_lacks_pages() {
    let mut objects = page("", "");
    objects[1].1 = "<</Type/Pages/Kids[2 0 R 2 0 R 3 0 R]/Count 99999999999999>>".to_owned();
    let read = soon(|| read(&pdf(&objects)));
    let message = "its number of pages is missing".to_owned();
    assert_eq!(read, Err(PdfTextError::Damaged(message)));
}

#[test]
fn a_long_chain_of_page_tree_nodes_above_a_page_does_no_harm() {
    let mut objects = page("", "/Parent 10 0 R");
    let nodes = (10..60_000).map(|node| (node, format!("<</Parent {} 0 R>>", node + 1)));
    objects.extend(nodes);
    let read = soon(|| read(&pdf(&objects))).map(told);
    assert_eq!(read, Ok((vec![SENTENCE.to_owned()], vec![])));
}

#[test]
fn lengths_do_not_lead_from_stream_to_stream() {
    let mut objects = page("", "");
    let streams = (10..60_000).map(|number| {
        let stream = format!("<</Length {} 0 R>>\nstream\nx\nendstream", number + 1);
        (number, stream)
    });
    objects.extend(streams);
    let read = soon(|| read(&pdf(&objects))).map(told);
    assert_eq!(read, Ok((vec![SENTENCE.to_owned()], vec![])));
}

/// A PDF with a cross-reference stream of these entries in its dictionary.
fn with_section(dictionary: &str, content: &str) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n".to_vec();
    let at = bytes.len();
    let section = stream(&format!("/Type/XRef/Root 1 0 R{dictionary}"), content);
    bytes.extend(format!("1 0 obj\n{section}\nendobj\nstartxref\n{at}\n%%EOF\n").into_bytes());
    bytes
}

#[test]
fn a_cross_reference_stream_cannot_ask_for_memory() {
    for dictionary in [
        "/Size 1/W[1 1000000000000 1]",
        "/Size 1/A(stream)/#57[1 %c\n 99 1]",
        "/Size 1/W[0 0 0]/Index[0 4000000000]",
        "/Size 1/Index[0 4000000000]/W[0 1 0]",
        "/Size 4000000000/W[0 1 0]",
    ] {
        let read = soon(|| read(&with_section(dictionary, "abc")));
        let message = "no pages were found in it".to_owned();
        assert_eq!(read, Err(PdfTextError::Damaged(message)), "{dictionary}");
    }
}

#[test]
fn objects_that_the_table_lists_over_and_over_are_read_once() {
    let mut objects = page("", "");
    objects.push((6, stream("", &"x".repeat(100_000))));
    let bytes = String::from_utf8(pdf(&objects)).unwrap();
    let (before, after) = bytes.split_once("6 1\n").unwrap();
    let entry = after.split_inclusive('\n').next().unwrap();
    let bytes = format!(
        "{before}6 1000\n{}{}",
        entry.repeat(1000),
        &after[entry.len()..]
    );
    let read = soon(|| read(bytes.as_bytes())).map(told);
    assert_eq!(read, Ok((vec![SENTENCE.to_owned()], vec![])));
}

/// A document whose font has these entries.
pub(super) fn with_font(font: &str, more: &[(u32, String)]) -> Vec<u8> {
    let mut objects = page("", "");
    objects[4].1 = format!("<</Type/Font/BaseFont/A{font}>>");
    objects.extend_from_slice(more);
    pdf(&objects)
}

#[test]
fn a_map_to_unicode_cannot_cover_four_billion_codes() {
    let map = "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapName /A def\n/CMapType 2 def\n\
        1 begincodespacerange\n<00000000> <FFFFFFFF>\nendcodespacerange\n\
        1 beginbfrange\n<00000000> <FFFFFFFF> <0041>\nendbfrange\n\
        endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n";
    let bytes = with_font("/Subtype/Type1/ToUnicode 6 0 R", &[(6, stream("", map))]);
    let (pages, _) = told(soon(|| read(&bytes)).unwrap());
    // Each letter is counted from the first of the map.
    assert!(pages[0].ends_with("¢¨¦o"), "{}", pages[0]);
}

#[test]
fn widths_of_fonts_cannot_multiply() {
    let descendant = |widths: &str| format!("<</Type/Font/Subtype/CIDFontType2/W[{widths}]>>");
    let ranges = descendant(&"0 65000 500 ".repeat(1000));
    let bytes = with_font("/Subtype/Type0/DescendantFonts[6 0 R]", &[(6, ranges)]);
    let expected = "page 1: more than 131072 widths in a font";
    assert_eq!(limit(&bytes), expected);
    let list = (6, format!("[{}]", "500 ".repeat(2000)));
    let lists = (7, descendant(&"1 6 0 R ".repeat(10_000)));
    let bytes = with_font("/Subtype/Type0/DescendantFonts[7 0 R]", &[list, lists]);
    assert_eq!(limit(&bytes), expected);
    // Many fonts share one.
    let numbers = 100..200;
    let fonts: String = numbers
        .clone()
        .map(|at| format!("/G{at} {at} 0 R"))
        .collect();
    let mut objects = page("", "");
    objects[2].1 =
        format!("<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<<{fonts}>>>>>>");
    let shown: String = numbers
        .clone()
        .map(|at| format!("/G{at} 9 Tf (x) Tj "))
        .collect();
    objects[3].1 = stream("", &format!("BT {shown} ET"));
    objects.push((6, descendant(&"0 65000 500 ".repeat(2))));
    let font = "<</Type/Font/BaseFont/A/Subtype/Type0/DescendantFonts[6 0 R]>>";
    objects.extend(numbers.map(|at| (at, font.to_owned())));
    assert_eq!(
        limit(&pdf(&objects)),
        "page 1: more than 8000000 widths in fonts"
    );
}

#[test]
fn forms_that_draw_forms_are_counted() {
    let mut objects = page("", "/Resources<</XObject<</X 10 0 R>>>>");
    objects[3].1 = stream("", "/X Do\n");
    // Each of ten draws the next ten times.
    let forms = (10..20).map(|number| {
        let resources = format!("/Resources<</XObject<</X {} 0 R>>>>", number + 1);
        let entries = format!("/Type/XObject/Subtype/Form{resources}");
        (number, stream(&entries, &"/X Do ".repeat(10)))
    });
    objects.extend(forms);
    let expected = "page 1: more than 5000 forms drawn inside of forms";
    assert_eq!(limit(&pdf(&objects)), expected);
}

#[test]
fn a_form_that_draws_itself_is_drawn_once() {
    let mut objects = page("", "/Resources<</Font<</F1 5 0 R>>/XObject<</X 10 0 R>>>>");
    objects[3].1 = stream("", "/X Do /X Do\n");
    let content = "BT /F1 12 Tf 72 700 Td (Once or twice.) Tj ET /X Do /X Do /X Do";
    let entries = "/Type/XObject/Subtype/Form/Resources<</Font<</F1 5 0 R>>/XObject<</X 10 0 R>>>>";
    objects.push((10, stream(entries, content)));
    let (pages, _) = told(soon(|| read(&pdf(&objects))).unwrap());
    assert_eq!(pages, ["Once or twice."]);
}

#[test]
fn a_page_has_only_so_many_states_and_letters() {
    let with = |content: &str| {
        let mut objects = page("", "");
        objects[3].1 = stream("", content);
        limit(&pdf(&objects))
    };
    let states = "page 1: more than 10000 graphics states saved at once";
    assert_eq!(with(&"q ".repeat(30_000)), states);
    let letters = format!("BT /F1 1 Tf ({}) Tj ET ", "a".repeat(1_200_000));
    assert_eq!(with(&letters), "page 1: more than 1000000 characters on it");
}
