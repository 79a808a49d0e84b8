//! The document as it grows: pages, the cursor that goes down a page, and what is drawn at it.

use super::font::{Fonts, Glyph, Style, measure};
use super::inline::WrappedLine;
use super::page::{Color, DrawnItem, DrawnPage, OutlineEntry, PAPER, Shape};
use super::tags::{Tag, Tags};

/// Margins and sizes in points.
pub(crate) const LEFT: f32 = 56.0;
pub(crate) const WIDTH: f32 = PAPER.0 - 2.0 * LEFT;
pub(crate) const TOP: f32 = 56.0;
pub(crate) const BOTTOM: f32 = PAPER.1 - 66.0;
const FOOT: f32 = PAPER.1 - 38.0;
/// Size of the running text, and the distance of its lines.
pub(crate) const BODY: f32 = 9.5;
pub(crate) const LEADING: f32 = 1.42;

pub(crate) const INK: Color = [0x1f, 0x29, 0x33];
pub(crate) const MUTED: Color = [0x5f, 0x6c, 0x7b];
pub(crate) const HAIR: Color = [0xd9, 0xdf, 0xe5];
pub(crate) const ACCENT: Color = [0x2b, 0x5c, 0x8a];
pub(crate) const PALE: Color = [0xf3, 0xf6, 0xf9];

/// The document as it grows, and the place where the next block goes.
pub(crate) struct Flow<'f> {
    pub(crate) fonts: &'f mut Fonts,
    pub(crate) tags: Tags,
    pub(crate) pages: Vec<DrawnPage>,
    pub(crate) outline: Vec<OutlineEntry>,
    /// Upper edge of the next block, from the top of the page.
    pub(crate) y: f32,
    /// Charts and drawings met so far, for the errors that name them.
    pub(crate) charts: usize,
    pub(crate) drawings: usize,
}

impl<'f> Flow<'f> {
    /// Starts a document with one empty page.
    pub(crate) fn new(fonts: &'f mut Fonts) -> Self {
        Self {
            fonts,
            tags: Tags::default(),
            pages: vec![DrawnPage::default()],
            outline: Vec::new(),
            y: TOP,
            charts: 0,
            drawings: 0,
        }
    }

    /// Height that is left on the page.
    pub(crate) fn room(&self) -> f32 {
        BOTTOM - self.y
    }

    /// Height of an empty page.
    #[expect(clippy::unused_self, reason = "asked of the flow, as what is left is")]
    pub(crate) fn whole(&self) -> f32 {
        BOTTOM - TOP
    }

    /// True at the top of a page.
    pub(crate) fn fresh(&self) -> bool {
        self.y <= TOP
    }

    pub(crate) fn new_page(&mut self) {
        self.pages.push(DrawnPage::default());
        self.y = TOP;
    }

    /// Goes to a new page if less than `height` is left and a new page would have more.
    pub(crate) fn need(&mut self, height: f32) {
        if self.room() < height && !self.fresh() {
            self.new_page();
        }
    }

    pub(crate) fn gap(&mut self, height: f32) {
        if !self.fresh() {
            self.y += height;
        }
    }

    pub(crate) fn draw(&mut self, shape: Shape, tag: Option<Tag>) {
        if let Some(page) = self.pages.last_mut() {
            page.items.push(DrawnItem { shape, tag });
        }
    }

    pub(crate) fn fill(&mut self, at: (f32, f32), extent: (f32, f32), color: Color) {
        let shape = Shape::Fill {
            x: at.0,
            y: at.1,
            width: extent.0,
            height: extent.1,
            color,
        };
        self.draw(shape, None);
    }

    pub(crate) fn glyphs(
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

    /// Draws one line and goes below it; a line never crosses the end of a page.
    #[expect(clippy::too_many_arguments)]
    pub(crate) fn line(
        &mut self,
        line: &WrappedLine,
        left: f32,
        size: f32,
        leading: f32,
        color: Color,
        tag: Tag,
    ) {
        self.need(size * leading);
        let base = self.y + size * (leading * 0.5 + 0.33);
        self.glyphs((left, base), size, color, &line.glyphs, tag);
        self.y += size * leading;
    }

    /// Below each page: the title, and which page of how many.
    pub(crate) fn footers(&mut self, title: &str) {
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
                .extend(items.map(|shape| DrawnItem { shape, tag: None }));
        }
    }
}
