//! PDF reports (PDF 1.7, ISO 32000-1) set from Markdown on A4 pages: headings, lists, tables, code, bar charts and drawings to scale.
//!
//! ```
//! use milepost_formats::pdf::{PdfInfo, markdown_to_pdf};
//!
//! let text = "# Volumes\n\n| Type | m³ |\n|---|--:|\n| wall | 12.50 |\n";
//! let bytes = markdown_to_pdf(text, &PdfInfo::default())?;
//! assert!(bytes.starts_with(b"%PDF-1.7"));
//! # Ok::<(), milepost_formats::pdf::PdfError>(())
//! ```
//!
//! The text is CommonMark with GFM tables, strikethrough and task lists. Fonts are embedded as subsets. The document is tagged
//! (headings, lists, tables, figures), has bookmarks, and page numbers in its footer. Characters that no embedded font has are
//! shown as U+FFFD, and a note at the end counts them.

mod chart;
mod drawing;
mod flow;
mod font;
mod info;
mod inline;
mod layout;
mod markdown;
mod opentype;
mod page;
mod table;
mod tags;

pub use info::{ChartError, DrawingError, PdfError, PdfInfo};

/// Sets Markdown on A4 pages and returns the bytes of the PDF.
///
/// A fenced block named `chart` is drawn as a bar chart: a JSON object with `kind` (`"bar"`), `title`, `rows` (objects), and the
/// names of the fields with `label` and `value`. A fenced block named `drawing` is drawn to scale: a JSON object with `title`,
/// `scale`, `extent`, `bar`, `layers` and `legend`. HTML is shown as text, other fenced blocks as code. The same text and
/// properties produce the same bytes. Text of any size and nesting is safe: nesting beyond 8 levels is shown at level 8.
///
/// # Errors
/// When a chart block does not hold a chart, or a drawing block no drawing. The other errors mean that the program itself is
/// damaged.
pub fn markdown_to_pdf(markdown: &str, info: &PdfInfo) -> Result<Vec<u8>, PdfError> {
    set_markdown(markdown, info).map(|document| document.bytes)
}

/// A PDF, and the content that it does not show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PdfDocument {
    /// The file.
    pub bytes: Vec<u8>,
    /// The number of distinct characters that no embedded font has; U+FFFD is drawn instead.
    pub missing: usize,
}

/// Sets Markdown on A4 pages as [`markdown_to_pdf`] does, and counts the characters that it cannot show.
///
/// # Errors
/// The errors of [`markdown_to_pdf`].
pub fn set_markdown(markdown: &str, info: &PdfInfo) -> Result<PdfDocument, PdfError> {
    let mut fonts = font::Fonts::load()?;
    let blocks = markdown::blocks(markdown);
    let mut info = info.clone();
    if info.title.is_empty() {
        info.title = first_heading(&blocks);
    }
    let document = layout::lay_out(&blocks, &mut fonts, &info.title)?;
    Ok(PdfDocument {
        bytes: page::write(document, &mut fonts, &info)?,
        missing: fonts.missing(),
    })
}

fn first_heading(blocks: &[markdown::MarkdownBlock]) -> String {
    blocks
        .iter()
        .find_map(|block| match block {
            markdown::MarkdownBlock::Heading { spans, .. } => {
                Some(spans.iter().map(|s| s.text.as_str()).collect())
            }
            _ => None,
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use page::Shape;

    fn pages(markdown: &str) -> Vec<Vec<String>> {
        let mut fonts = font::Fonts::load().unwrap();
        let blocks = markdown::blocks(markdown);
        let document = layout::lay_out(&blocks, &mut fonts, "Title").unwrap();
        document
            .pages
            .iter()
            .map(|page| {
                page.items
                    .iter()
                    .filter_map(|item| match &item.shape {
                        Shape::Text { glyphs, .. } => Some(glyphs.iter().map(|g| g.sign).collect()),
                        Shape::Fill { .. } | Shape::Paths(_) => None,
                    })
                    .collect()
            })
            .collect()
    }

    #[test]
    fn a_report_has_its_parts_in_order() {
        let text = "# Über 3 m³\n\nA **b** c.\n\n| T | m³ |\n|---|--:|\n| wall | 1.50 |\n\n\
            ```chart\n{\"kind\":\"bar\",\"title\":\"Volume\",\"rows\":[{\"t\":\"wall\",\"v\":1.5}],\
            \"label\":\"t\",\"value\":\"v\"}\n```\n\n- x\n\n1. y\n";
        let want = [
            "Über 3 m³",
            "A b c.",
            "T",
            "m³",
            "wall",
            "1.50",
            "Volume",
            "wall",
            "1.50",
            "•",
            "x",
            "1.",
            "y",
            "Title",
            "page 1 of 1",
        ];
        assert_eq!(pages(text), [want]);
    }

    #[test]
    fn the_header_of_a_table_stands_on_each_of_its_pages() {
        let rows: String = (0..120).map(|n| format!("| r{n} | {n} |\n")).collect();
        let pages = pages(&format!("| Name | Count |\n|---|--:|\n{rows}"));
        assert_eq!(pages.len(), 3);
        for (number, page) in pages.iter().enumerate() {
            assert_eq!(page[..2], ["Name", "Count"]);
            assert_eq!(page.last().unwrap(), &format!("page {} of 3", number + 1));
        }
        let names: Vec<String> = pages
            .concat()
            .into_iter()
            .filter(|t| t.starts_with('r'))
            .collect();
        let all: Vec<String> = (0..120).map(|n| format!("r{n}")).collect();
        assert_eq!(names, all);
    }

    #[test]
    fn the_last_row_of_a_table_does_not_stand_alone_on_a_page() {
        for count in 30..60 {
            let rows: String = (0..count).map(|n| format!("| r{n} | {n} |\n")).collect();
            let pages = pages(&format!("| Name | Count |\n|---|--:|\n{rows}"));
            let last = pages.last().unwrap().iter().filter(|t| t.starts_with('r'));
            assert!(last.count() > 1, "{count} rows");
        }
    }

    #[test]
    fn a_heading_stands_on_the_page_of_its_table() {
        for lines in 10..60 {
            let text = "a line\n\n".repeat(lines);
            let long = "word ".repeat(40);
            let rows: String = (0..6).map(|n| format!("| r{n} | {long} |\n")).collect();
            for page in pages(&format!("{text}## Made\n\n| | |\n|---|---|\n{rows}")) {
                let has = |text: &str| page.iter().any(|shown| shown == text);
                assert_eq!(has("Made"), has("r0"), "{lines} lines: {page:?}");
                assert_eq!(has("r0"), has("r5"), "{lines} lines: {page:?}");
            }
        }
    }

    #[test]
    fn the_mark_of_a_list_stands_on_the_page_of_its_item() {
        let long = "word ".repeat(40);
        let table = "| a |\n  |---|\n  | r0 |\n  | r1 |";
        for item in [
            format!("- {long}\n"),
            format!("7. {long}\n"),
            format!("- - {long}\n"),
            format!("- > {long}\n"),
            format!("- {table}\n"),
            "- ```\n  code\n  ```\n".to_owned(),
            format!("- ### Head\n\n  {long}\n"),
        ] {
            for lines in 30..60 {
                let pages = pages(&format!("{}{item}", "a line\n\n".repeat(lines)));
                for page in &pages {
                    let shown = &page[..page.len() - 2];
                    let last = shown.last().map_or("", String::as_str);
                    assert!(!["•", "7."].contains(&last), "{lines} lines, then {item}");
                }
            }
        }
    }

    #[test]
    fn signs_that_no_face_has_are_shown_and_said() {
        let note = |text: &str| pages(text).concat().into_iter().rev().nth(2).unwrap();
        assert_eq!(
            note("Стена Außenwand größe τοίχος"),
            "Стена Außenwand größe τοίχος"
        );
        let document = set_markdown("外壁 wall", &PdfInfo::default()).unwrap();
        assert_eq!(document.missing, 2);
        assert_eq!(
            pages("外壁 wall")[0][..2],
            [
                "\u{FFFD}\u{FFFD} wall",
                "2 different signs that the typefaces of this document lack are shown as \u{FFFD}."
            ]
        );
        assert_eq!(
            note("| a |\n|---|\n| 壁 壁 |"),
            "A sign that the typefaces of this document lack is shown as \u{FFFD}."
        );
    }

    #[test]
    fn the_same_text_gives_the_same_bytes_and_the_date_comes_from_outside() {
        let info = |day| PdfInfo {
            title: "T".to_owned(),
            date: Some(jiff::civil::date(2026, 11, day)),
            ..PdfInfo::default()
        };
        let text = "# T\n\n*italic* **bold** ***both*** `code` €\n";
        let first = markdown_to_pdf(text, &info(1)).unwrap();
        assert_eq!(first, markdown_to_pdf(text, &info(1)).unwrap());
        assert_ne!(first, markdown_to_pdf(text, &info(2)).unwrap());
        assert!(first.starts_with(b"%PDF-1.7"));
        assert!(first.windows(10).any(|w| w == b"D:20261101"));
    }

    #[test]
    fn hostile_text_is_shown_without_harm() {
        let word = "x".repeat(100_000);
        let wide = format!(
            "|{}\n|{}\n|{}\n",
            "a|".repeat(300),
            "-|".repeat(300),
            "b|".repeat(300)
        );
        let tall = format!("|a|b|\n|-|-|\n|{}|c|\n", "word ".repeat(20_000));
        let lists: String = (0..300)
            .map(|n| format!("{}- x\n", " ".repeat(2 * n)))
            .collect();
        let head = format!("|{}|\n|-|\n|x|\n", "head ".repeat(5_000));
        for text in [
            "",
            "\u{0}\u{7f}\u{202e}",
            "<script>alert(1)</script>\n\n<div onclick='x'>y</div>",
            "```unknown {\n<x>\n```",
            "![a](javascript:x) [b](file:///etc/passwd)",
            &word,
            &format!("# {word}\n\n`{word}`\n\n```\n{word}\n```\n\n|{word}|\n|-|\n|{word}|"),
            &wide,
            &tall,
            &lists,
            &head,
            &format!("{} x", ">".repeat(50_000)),
            &"[".repeat(50_000),
            &"*".repeat(50_000),
            &"![".repeat(20_000),
            "99999999999999999999. x\n\n18446744073709551615. y",
            "|a|\n|-|\n",
        ] {
            let bytes = markdown_to_pdf(text, &PdfInfo::default()).unwrap();
            assert!(bytes.ends_with(b"%%EOF"));
        }
        let html = pages("<div>\n<b>x</b>\n</div>");
        assert_eq!(html[0][..3], ["<div>", "<b>x</b>", "</div>"]);
    }

    #[test]
    fn the_first_heading_is_the_title_if_none_is_given() {
        let bytes = markdown_to_pdf("text\n\n## Mass *and* volume\n", &PdfInfo::default()).unwrap();
        let title = b"/Title(Mass and volume)";
        assert!(bytes.windows(title.len()).any(|w| w == title));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
        #[test]
        fn no_text_stops_the_layout(parts in proptest::collection::vec(proptest::prelude::prop_oneof![
            proptest::strategy::Just("\n\n".to_owned()), proptest::strategy::Just("\n|a|b|\n|-|-:|\n".to_owned()),
            "[#>*`|~<!&_=+. \n-]{1,9}", "\\PC{0,30}", "[0-9]{1,25}[.)] ", "(   ?[-*>] ){1,9}", "<[a-z/!]{1,5}>?",
        ], 0..60)) {
            let text = parts.concat();
            let bytes = markdown_to_pdf(&text, &PdfInfo::default()).unwrap();
            proptest::prop_assert!(bytes.ends_with(b"%%EOF"));
        }
    }

    #[test]
    fn a_chart_that_is_none_is_named() {
        let text = "```chart\n{\"kind\":\"bar\",\"rows\":[],\"label\":\"a\",\"value\":\"b\"}\n```\n\
            ```chart\n{}\n```\n";
        let error = markdown_to_pdf(text, &PdfInfo::default()).unwrap_err();
        let said = error.to_string();
        assert!(
            said.starts_with("chart 2 of the text: missing field `kind`"),
            "{said}"
        );
    }
}
