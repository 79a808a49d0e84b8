//! Pages, code and headings of the lines of a document.

use super::lines::{TextLine, set_apart};
use super::text::{Code, Heading, PdfPage, PdfText};
use std::collections::BTreeMap;

/// A heading is so much larger than the text, at least.
const LARGER: f32 = 1.15;

/// The longest heading, in letters.
const HEADING: usize = 120;

/// Returns the text of a document with these lines on its pages, these bookmarks, and pages with notes.
pub(crate) fn of(
    mut pages: Vec<(u32, Vec<TextLine>)>,
    (outline, has_ring): (Vec<Heading>, bool),
    with_notes: Vec<u32>,
) -> PdfText {
    set_apart(&mut pages);
    PdfText {
        outline,
        has_ring,
        with_notes,
        headings: Some(headings(&pages)),
        pages: pages
            .iter()
            .map(|(number, lines)| page(*number, lines))
            .collect(),
    }
}

fn page(number: u32, lines: &[TextLine]) -> PdfPage {
    let mut text = String::new();
    let mut code: Vec<Code> = Vec::new();
    let mut is_open = false;
    for line in lines {
        if !text.is_empty() {
            text.push('\n');
            text.push_str(&"\n".repeat(usize::from(line.blank.min(1))));
        }
        text.push_str(&line.text);
        if !line.is_fixed {
            is_open = false;
            continue;
        }
        match code.last_mut().filter(|_| is_open) {
            Some(block) => {
                block
                    .content
                    .push_str(&"\n".repeat(1 + usize::from(line.blank)));
                block.content.push_str(&line.text);
                block.line_count += 1 + u32::from(line.blank);
            }
            None => code.push(Code {
                content: line.text.clone(),
                line_count: 1,
            }),
        }
        is_open = true;
    }
    PdfPage {
        number,
        text,
        code: Some(code),
    }
}

/// Returns lines that are larger than the text, or heavy and apart, with their depth by size.
fn headings(pages: &[(u32, Vec<TextLine>)]) -> Vec<Heading> {
    let half = |line: &TextLine| (line.size * 2.0).round() as u32;
    let all = || pages.iter().flat_map(|(_, lines)| lines);
    let mut letters: BTreeMap<u32, usize> = BTreeMap::new();
    for line in all().filter(|line| !line.is_fixed) {
        *letters.entry(half(line)).or_default() += line.text.chars().count();
    }
    let body = letters.into_iter().max_by_key(|(_, count)| *count);
    let body = body.map_or(0, |(size, _)| size) as f32;
    let is_title = |line: &TextLine| {
        let length = line.text.chars().count();
        let has_letters = line.text.chars().filter(|c| c.is_alphabetic()).count() >= 2;
        !line.is_fixed && has_letters && length <= HEADING && !has_leader(&line.text)
    };
    let is_large = |line: &TextLine| is_title(line) && half(line) as f32 >= LARGER * body;
    let is_heavy = |line: &TextLine| {
        let is_closed = line.text.ends_with(['.', ',', ';', ':']);
        // Columns are of the head of a table.
        let is_one = !is_closed && !line.text.contains("  ");
        is_title(line) && line.is_bold && half(line) as f32 >= body && is_one
    };
    let mut sizes: Vec<u32> = all().filter(|line| is_large(line)).map(half).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup();
    let mut found: Vec<Heading> = Vec::new();
    for (number, lines) in pages {
        // The size of the heading that the last line was.
        let mut open: Option<u32> = None;
        for (at, line) in lines.iter().enumerate() {
            let is_apart = at == 0 || line.blank > 0;
            let is_heading = is_large(line) || is_apart && is_heavy(line);
            let level = sizes.iter().position(|size| *size == half(line));
            let level = level.unwrap_or(sizes.len()) as u8 + 1;
            match (is_heading, open, found.last_mut()) {
                (true, Some(size), Some(last)) if size == half(line) && !is_apart => {
                    last.title.push(' ');
                    last.title.push_str(&line.text);
                }
                (true, _, _) => found.push(Heading {
                    title: line.text.clone(),
                    page: *number,
                    level,
                }),
                _ => {}
            }
            open = is_heading.then(|| half(line));
        }
    }
    found
}

/// Returns true if points lead from words to a number, as in a table of contents.
fn has_leader(text: &str) -> bool {
    let marks: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let mut four = marks.windows(4);
    four.any(|four| matches!(four, ['.' | ':' | '_' | '·', rest @ ..] if rest.iter().all(|c| *c == four[0])))
}
