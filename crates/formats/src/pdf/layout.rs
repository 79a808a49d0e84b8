//! Blocks to pages: the cursor that goes down a page, and headings, paragraphs, lists and code.

use pdf_writer::types::StructRole;

use super::PdfError;
use super::chart::Chart;
use super::font::{Fonts, Glyph, Style, measure};
use super::inline::{Line, Span, extent, wrap};
use super::markdown::Block;
use super::page::{Color, Document, Entry, Item, PAPER, Page, Shape};
use super::tags::{DOCUMENT, Tag, Tags};

/// Margins and sizes in points.
pub const LEFT: f32 = 56.0;
pub const WIDTH: f32 = PAPER.0 - 2.0 * LEFT;
const TOP: f32 = 56.0;
const BOTTOM: f32 = PAPER.1 - 66.0;
const FOOT: f32 = PAPER.1 - 38.0;
/// Size of the running text, and the distance of its lines.
pub const BODY: f32 = 9.5;
pub const LEADING: f32 = 1.42;
const CODE: f32 = 8.8;

pub const INK: Color = [0x1f, 0x29, 0x33];
pub const MUTED: Color = [0x5f, 0x6c, 0x7b];
pub const HAIR: Color = [0xd9, 0xdf, 0xe5];
pub const ACCENT: Color = [0x2b, 0x5c, 0x8a];
pub const PALE: Color = [0xf3, 0xf6, 0xf9];

/// The document as it grows, and the place where the next block goes.
pub struct Flow<'f> {
    pub fonts: &'f mut Fonts,
    pub tags: Tags,
    pages: Vec<Page>,
    outline: Vec<Entry>,
    /// Upper edge of the next block, from the top of the page.
    pub y: f32,
    /// Charts met so far, for the errors that name them.
    charts: usize,
}

/// Lays the blocks out on pages.
pub fn lay_out(blocks: &[Block], fonts: &mut Fonts, title: &str) -> Result<Document, PdfError> {
    let mut flow = Flow {
        fonts,
        tags: Tags::default(),
        pages: vec![Page::default()],
        outline: Vec::new(),
        y: TOP,
        charts: 0,
    };
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
    /// Height that is left on the page.
    pub fn room(&self) -> f32 {
        BOTTOM - self.y
    }

    /// Height of an empty page.
    #[expect(clippy::unused_self, reason = "asked of the flow, as what is left is")]
    pub fn whole(&self) -> f32 {
        BOTTOM - TOP
    }

    /// True at the top of a page.
    pub fn fresh(&self) -> bool {
        self.y <= TOP
    }

    pub fn new_page(&mut self) {
        self.pages.push(Page::default());
        self.y = TOP;
    }

    /// Goes to a new page if less than `height` is left and a new page would have more.
    pub fn need(&mut self, height: f32) {
        if self.room() < height && !self.fresh() {
            self.new_page();
        }
    }

    fn gap(&mut self, height: f32) {
        if !self.fresh() {
            self.y += height;
        }
    }

    fn draw(&mut self, shape: Shape, tag: Option<Tag>) {
        if let Some(page) = self.pages.last_mut() {
            page.items.push(Item { shape, tag });
        }
    }

    pub fn fill(&mut self, at: (f32, f32), extent: (f32, f32), color: Color) {
        let shape = Shape::Fill {
            x: at.0,
            y: at.1,
            width: extent.0,
            height: extent.1,
            color,
        };
        self.draw(shape, None);
    }

    pub fn glyphs(
        &mut self,
        at: (f32, f32),
        size: f32,
        color: Color,
        glyphs: &[Glyph],
        tag: impl Into<Option<Tag>>,
    ) {
        if glyphs.is_empty() {
            return;
        }
        let shape = Shape::Text {
            x: at.0,
            y: at.1,
            size,
            color,
            glyphs: glyphs.to_vec(),
        };
        self.draw(shape, tag.into());
    }

    /// Lays blocks out between `left` and `left + width`.
    fn blocks(
        &mut self,
        blocks: &[Block],
        left: f32,
        width: f32,
        parent: Tag,
    ) -> Result<(), PdfError> {
        for (place, block) in blocks.iter().enumerate() {
            match block {
                Block::Heading { level, spans } => {
                    self.heading(*level, spans, &blocks[place + 1..], (left, width), parent);
                }
                Block::Paragraph(spans) => {
                    let tag = self.tags.add(parent, StructRole::P);
                    self.paragraph(spans, left, width, tag);
                    self.y += 5.0;
                }
                Block::List { start, items } => {
                    self.list(*start, items, (left, width), parent)?;
                    self.y += 3.0;
                }
                Block::Quote(inner) => self.quote(inner, left, width, parent)?,
                Block::Code(text) => self.code(text, left, width, parent),
                Block::Table(table) => {
                    self.gap(3.0);
                    self.table(table, left, width, parent);
                    self.y += 10.0;
                }
                Block::Chart(text) => {
                    self.charts += 1;
                    let chart = Chart::parse(text).map_err(|reason| PdfError::Chart {
                        number: self.charts,
                        reason,
                    })?;
                    self.gap(4.0);
                    self.chart(&chart, left, width, parent);
                    self.y += 12.0;
                }
                Block::Rule => {
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
        after: &[Block],
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
        self.outline.push(Entry {
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
    fn beginning(&mut self, after: &[Block], width: f32) -> f32 {
        match after.first() {
            Some(Block::Heading { level, .. }) => {
                let (size, before, below, _) = heading_look(*level);
                before + size * 1.25 + below + self.beginning(&after[1..after.len().min(2)], width)
            }
            Some(Block::Table(table)) => {
                let least = 4.0 * 18.0;
                let whole = self.kept_together(table, width);
                whole.map_or(least, |whole| whole.max(least))
            }
            Some(Block::Chart(text)) => Chart::parse(text).map_or(0.0, |c| c.height() + 4.0),
            Some(Block::Paragraph(spans)) => {
                // A line that leads to a table or a chart stays with it.
                let lines = extent(self.fonts, spans, BODY).0 / width;
                let own = (lines.ceil().clamp(1.0, 3.0)) * BODY * LEADING;
                let led = matches!(after.get(1), Some(Block::Table(_) | Block::Chart(_)));
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

    /// Draws one line and goes below it; a line never crosses the end of a page.
    fn line(&mut self, line: &Line, left: f32, size: f32, leading: f32, color: Color, tag: Tag) {
        self.need(size * leading);
        let base = self.y + size * (leading * 0.5 + 0.33);
        self.glyphs((left, base), size, color, &line.glyphs, tag);
        self.y += size * leading;
    }

    /// Says that some signs could not be shown: a reader must not take what stands for them for the text.
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
        let style = super::font::Style::default();
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
        items: &[Vec<Block>],
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
            // Items of one line each stand close together.
            if let [Block::Paragraph(spans)] = item.as_slice() {
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
    fn first(&mut self, item: &[Block], width: f32) -> f32 {
        match item.first() {
            Some(Block::Paragraph(spans)) => {
                let lines = wrap(self.fonts, spans, BODY, width).len();
                lines.clamp(1, 2) as f32 * BODY * LEADING
            }
            Some(Block::List { start, items }) => match items.first() {
                Some(first) => self.first(first, width - indent(*start, items.len())),
                None => BODY * LEADING,
            },
            Some(Block::Quote(inner)) => self.first(inner, width - 12.0),
            Some(_) => (self.beginning(item, width) + 4.0).min(self.whole()),
            None => BODY * LEADING,
        }
    }

    fn quote(
        &mut self,
        inner: &[Block],
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
                self.pages[number].items.push(Item { shape, tag: None });
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

    /// Below each page: the title, and which page of how many.
    fn footers(&mut self, title: &str) {
        let count = self.pages.len();
        for number in 0..count {
            let place = format!("page {} of {count}", number + 1);
            let right = self.fonts.line(&place, Style::default());
            let x = LEFT + WIDTH - measure(&right) * 8.0;
            let left = self
                .fonts
                .cut(title, Style::default(), 8.0, x - LEFT - 20.0);
            let rule = Shape::Fill {
                x: LEFT,
                y: FOOT - 13.0,
                width: WIDTH,
                height: 0.5,
                color: HAIR,
            };
            let text = |x: f32, glyphs: Vec<Glyph>| Shape::Text {
                x,
                y: FOOT,
                size: 8.0,
                color: MUTED,
                glyphs,
            };
            let items = [rule, text(LEFT, left), text(x, right)];
            self.pages[number]
                .items
                .extend(items.map(|shape| Item { shape, tag: None }));
        }
    }
}

/// How far the text of a list stands from its left edge: as far as its widest mark asks for.
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
