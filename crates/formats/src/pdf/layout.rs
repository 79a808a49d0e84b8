//! Blocks to pages: headings, paragraphs, lists, quotes and code.

use pdf_writer::types::StructRole;

use super::chart::BarChart;
use super::drawing::Drawing;
use super::flow::{ACCENT, BODY, BOTTOM, Flow, HAIR, INK, LEADING, LEFT, MUTED, PALE, TOP, WIDTH};
use super::font::{Fonts, Style, measure};
use super::info::PdfError;
use super::inline::{Span, extent, wrap};
use super::markdown::MarkdownBlock;
use super::page::{Color, Document, DrawnItem, OutlineEntry, Shape};
use super::tags::{DOCUMENT, Tag};

/// Size of code in points.
const CODE: f32 = 8.8;

/// Lays the blocks out on pages.
pub(crate) fn lay_out(
    blocks: &[MarkdownBlock],
    fonts: &mut Fonts,
    title: &str,
) -> Result<Document, PdfError> {
    let mut flow = Flow::new(fonts);
    flow.blocks(blocks, LEFT, WIDTH, DOCUMENT)?;
    flow.missing();
    flow.footers(title);
    Ok(Document {
        pages: flow.pages,
        outline: flow.outline,
        tags: flow.tags,
    })
}

impl Flow<'_> {
    /// Lays blocks out between `left` and `left + width`.
    fn blocks(
        &mut self,
        blocks: &[MarkdownBlock],
        left: f32,
        width: f32,
        parent: Tag,
    ) -> Result<(), PdfError> {
        for (place, block) in blocks.iter().enumerate() {
            match block {
                MarkdownBlock::Heading { level, spans } => {
                    self.heading(*level, spans, &blocks[place + 1..], (left, width), parent);
                }
                MarkdownBlock::Paragraph(spans) => {
                    let tag = self.tags.add(parent, StructRole::P);
                    self.paragraph(spans, left, width, tag);
                    self.y += 5.0;
                }
                MarkdownBlock::List { start, items } => {
                    self.list(*start, items, (left, width), parent)?;
                    self.y += 3.0;
                }
                MarkdownBlock::Quote(inner) => self.quote(inner, left, width, parent)?,
                MarkdownBlock::Code(text) => self.code(text, left, width, parent),
                MarkdownBlock::Table(table) => {
                    self.gap(3.0);
                    self.table(table, left, width, parent);
                    self.y += 10.0;
                }
                MarkdownBlock::Chart(text) => {
                    self.charts += 1;
                    let chart = BarChart::parse(text).map_err(|reason| PdfError::Chart {
                        number: self.charts,
                        reason,
                    })?;
                    self.gap(4.0);
                    self.chart(&chart, left, width, parent);
                    self.y += 12.0;
                }
                MarkdownBlock::Drawing(text) => {
                    self.drawings += 1;
                    let drawing = Drawing::parse(text).map_err(|reason| PdfError::Drawing {
                        number: self.drawings,
                        reason,
                    })?;
                    self.gap(4.0);
                    self.drawing(&drawing, left, width, parent);
                    self.y += 12.0;
                }
                MarkdownBlock::Rule => {
                    self.need(12.0);
                    let y = self.y + 5.0;
                    self.fill((left, y), (width, 0.7), HAIR);
                    self.y += 12.0;
                }
            }
        }
        Ok(())
    }

    fn heading(
        &mut self,
        level: u8,
        spans: &[Span],
        after: &[MarkdownBlock],
        (left, width): (f32, f32),
        parent: Tag,
    ) {
        let (size, before, below, color) = heading_look(level);
        let lines = wrap(self.fonts, spans, size, width);
        let height = lines.len() as f32 * size * 1.25 + below;
        let next = self.beginning(after, width);
        self.gap(before);
        self.need((height + next).min(self.whole()));
        let role = match level {
            1 => StructRole::H1,
            2 => StructRole::H2,
            3 => StructRole::H3,
            4 => StructRole::H4,
            5 => StructRole::H5,
            _ => StructRole::H6,
        };
        let tag = self.tags.add(parent, role);
        self.outline.push(OutlineEntry {
            level,
            text: spans.iter().map(|s| s.text.as_str()).collect(),
            page: self.pages.len() - 1,
            y: (self.y - 6.0).max(0.0),
        });
        for line in &lines {
            self.line(line, left, size, 1.25, color, tag);
        }
        if level == 1 {
            let y = self.y + 3.0;
            self.fill((left, y), (width, 1.2), ACCENT);
        }
        self.y += below;
    }

    /// Height that must follow a heading on its page: the beginning of the next block.
    fn beginning(&mut self, after: &[MarkdownBlock], width: f32) -> f32 {
        match after.first() {
            Some(MarkdownBlock::Heading { level, .. }) => {
                let (size, before, below, _) = heading_look(*level);
                before + size * 1.25 + below + self.beginning(&after[1..after.len().min(2)], width)
            }
            Some(MarkdownBlock::Table(table)) => {
                let least = 4.0 * 18.0;
                let whole = self.kept_together(table, width);
                whole.map_or(least, |whole| whole.max(least))
            }
            Some(MarkdownBlock::Chart(text)) => {
                BarChart::parse(text).map_or(0.0, |c| c.height() + 4.0)
            }
            Some(MarkdownBlock::Drawing(text)) => match Drawing::parse(text) {
                Ok(drawing) => self.drawing_height(&drawing, width) + 4.0,
                Err(_) => 0.0,
            },
            Some(MarkdownBlock::Paragraph(spans)) => {
                // A line that leads to a table, a chart or a drawing stays with it.
                let lines = extent(self.fonts, spans, BODY).0 / width;
                let own = (lines.ceil().clamp(1.0, 3.0)) * BODY * LEADING;
                let led = matches!(
                    after.get(1),
                    Some(
                        MarkdownBlock::Table(_)
                            | MarkdownBlock::Chart(_)
                            | MarkdownBlock::Drawing(_)
                    )
                );
                own + if led && lines <= 3.0 {
                    5.0 + self.beginning(&after[1..2], width)
                } else {
                    0.0
                }
            }
            Some(_) => 2.0 * BODY * LEADING,
            None => 0.0,
        }
    }

    /// Notes that some signs could not be shown: a reader must not mistake their replacements for the text.
    fn missing(&mut self) {
        let text = match self.fonts.missing() {
            0 => return,
            1 => "A sign that the typefaces of this document lack is shown as \u{FFFD}.".to_owned(),
            signs => format!(
                "{signs} different signs that the typefaces of this document lack are shown as \u{FFFD}."
            ),
        };
        self.gap(BODY);
        let tag = self.tags.add(DOCUMENT, StructRole::P);
        let style = Style::default();
        self.paragraph(&[Span { text, style }], LEFT, WIDTH, tag);
    }

    fn paragraph(&mut self, spans: &[Span], left: f32, width: f32, tag: Tag) {
        let lines = wrap(self.fonts, spans, BODY, width);
        if lines.len() > 1 {
            self.need(2.0 * BODY * LEADING);
        }
        for line in &lines {
            self.line(line, left, BODY, LEADING, INK, tag);
        }
    }

    fn list(
        &mut self,
        start: Option<u64>,
        items: &[Vec<MarkdownBlock>],
        (left, width): (f32, f32),
        parent: Tag,
    ) -> Result<(), PdfError> {
        let list = self.tags.add(parent, StructRole::L);
        let indent = indent(start, items.len());
        for (place, item) in items.iter().enumerate() {
            let tag = self.tags.add(list, StructRole::LI);
            let label = self.tags.add(tag, StructRole::Lbl);
            let body = self.tags.add(tag, StructRole::LBody);
            let first = self.first(item, width - indent);
            self.need(first);
            let mark = match start {
                Some(first) => format!("{}.", first.saturating_add(place as u64)),
                None => "•".to_owned(),
            };
            let glyphs = self.fonts.line(&mark, Style::default());
            let x = match start {
                Some(_) => left + indent - 5.0 - measure(&glyphs) * BODY,
                None => left + 3.0,
            };
            let base = self.y + BODY * (LEADING * 0.5 + 0.33);
            self.glyphs((x, base), BODY, MUTED, &glyphs, label);
            if item.is_empty() {
                self.y += BODY * LEADING;
            }
            // Items of one line each are set close together.
            if let [MarkdownBlock::Paragraph(spans)] = item.as_slice() {
                let p = self.tags.add(body, StructRole::P);
                self.paragraph(spans, left + indent, width - indent, p);
                self.y += 2.0;
            } else {
                self.blocks(item, left + indent, width - indent, body)?;
            }
        }
        Ok(())
    }

    /// Height that must follow the mark of a list's item on its page: two lines, or what else the item begins with.
    fn first(&mut self, item: &[MarkdownBlock], width: f32) -> f32 {
        match item.first() {
            Some(MarkdownBlock::Paragraph(spans)) => {
                let lines = wrap(self.fonts, spans, BODY, width).len();
                lines.clamp(1, 2) as f32 * BODY * LEADING
            }
            Some(MarkdownBlock::List { start, items }) => match items.first() {
                Some(first) => self.first(first, width - indent(*start, items.len())),
                None => BODY * LEADING,
            },
            Some(MarkdownBlock::Quote(inner)) => self.first(inner, width - 12.0),
            Some(_) => (self.beginning(item, width) + 4.0).min(self.whole()),
            None => BODY * LEADING,
        }
    }

    fn quote(
        &mut self,
        inner: &[MarkdownBlock],
        left: f32,
        width: f32,
        parent: Tag,
    ) -> Result<(), PdfError> {
        let tag = self.tags.add(parent, StructRole::BlockQuote);
        let (first, from) = (self.pages.len() - 1, self.y);
        self.blocks(inner, left + 12.0, width - 12.0, tag)?;
        let last = self.pages.len() - 1;
        for number in first..=last {
            let top = if number == first { from } else { TOP };
            let end = if number == last { self.y - 4.0 } else { BOTTOM };
            if end > top {
                let shape = Shape::Fill {
                    x: left,
                    y: top,
                    width: 2.0,
                    height: end - top,
                    color: HAIR,
                };
                self.pages[number]
                    .items
                    .push(DrawnItem { shape, tag: None });
            }
        }
        Ok(())
    }

    fn code(&mut self, text: &str, left: f32, width: f32, parent: Tag) {
        let tag = self.tags.add(parent, StructRole::Code);
        let style = Style {
            mono: true,
            ..Style::default()
        };
        self.gap(2.0);
        let cell = self.fonts.glyph('0', style).map_or(0.6, |g| g.advance);
        let columns = (((width - 16.0) / CODE / cell) as usize).max(1);
        for source in text.trim_end_matches('\n').split('\n') {
            let source = source.replace('\t', "    ");
            let glyphs = self.fonts.line(&source, style);
            let mut rest = glyphs.as_slice();
            loop {
                let (now, later) = rest.split_at(rest.len().min(columns));
                let height = CODE * LEADING;
                self.need(height);
                let y = self.y;
                self.fill((left, y), (width, height + 0.2), PALE);
                self.glyphs((left + 8.0, y + CODE), CODE, INK, now, tag);
                self.y += height;
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
        }
        self.y += 7.0;
    }
}

/// Returns the distance of the text of a list from its left edge: the room of its widest mark.
fn indent(start: Option<u64>, items: usize) -> f32 {
    let last = start.map(|first| first.saturating_add(items as u64));
    last.map_or(13.0, |n| 10.0 + 5.5 * n.to_string().len() as f32)
}

/// Size, space before, space below and colour of a heading.
fn heading_look(level: u8) -> (f32, f32, f32, Color) {
    match level {
        1 => (20.0, 14.0, 15.0, INK),
        2 => (13.0, 14.0, 5.0, ACCENT),
        3 => (11.0, 9.0, 4.0, INK),
        _ => (BODY, 6.0, 3.0, INK),
    }
}
