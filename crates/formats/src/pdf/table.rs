//! Tables of the PDF reports: widths from content, and rows that continue below a repeated header.

use pdf_writer::types::StructRole;

use super::flow::{Flow, HAIR, INK, MUTED, PALE};
use super::inline::{Span, WrappedLine, extent, wrap};
use super::markdown::{Align, MarkdownTable};
use super::tags::Tag;

const SIZE: f32 = 8.5;
const LINE: f32 = SIZE * 1.32;
/// Space above and below the text of a cell, and between the texts of two columns.
const PAD: f32 = 2.7;
const GUTTER: f32 = 12.0;
/// A word up to this wide, such as a GlobalId, is not cut if the page has room for it.
const WORD: f32 = 132.0;
/// More columns than this cannot be read on a page; a note says how many are left out.
const COLUMNS: usize = 24;
/// A table of at most this many rows is kept on one page, if it fits.
const SHORT: usize = 14;
/// Cells of later rows carry no structure of their own: it would outweigh the text.
const TAGGED_ROWS: usize = 2_000;

/// The tags of a row: the row's own and what its cells are.
type Cells = Vec<Tag>;

impl Flow<'_> {
    /// Draws a table between `left` and `left + width`.
    pub(crate) fn table(&mut self, table: &MarkdownTable, left: f32, width: f32, parent: Tag) {
        let columns = table.head.len().min(COLUMNS);
        if columns == 0 {
            return;
        }
        let widths = self.widths(table, columns, width);
        let whole: f32 = widths.iter().sum();
        let tag = self.tags.add(parent, StructRole::Table);
        let head = self.cells(&table.head, &widths);
        if let Some(all) = self.kept_together(table, width) {
            self.need(all);
        }
        self.need(height(&head) + 3.0 * (LINE + 2.0 * PAD));
        if head.iter().flatten().all(|line| line.glyphs.is_empty()) {
            // GFM tables must have a header; an empty one is left out.
            let y = self.y;
            self.fill((left, y), (whole, 0.4), HAIR);
        } else {
            let tags = self.row_tags(tag, columns, StructRole::TH);
            self.header(&head, table, left, &widths, Some(&tags));
        }
        for (number, row) in table.rows.iter().enumerate() {
            let cells = self.cells(row, &widths);
            let tags = if number < TAGGED_ROWS {
                self.row_tags(tag, columns, StructRole::TD)
            } else {
                vec![tag; columns]
            };
            let tall = height(&cells);
            let page = self.whole() - height(&head) - 2.0;
            // The last row goes over with the one before it: alone under a header it reads as a table of its own.
            let last_two = match table.rows.get(number + 1) {
                Some(next) if number > 0 && number + 2 == table.rows.len() => {
                    tall + height(&self.cells(next, &widths))
                }
                _ => tall,
            };
            if last_two > self.room() && last_two <= page {
                self.new_page();
                self.header(&head, table, left, &widths, None);
            }
            // A row that no page holds is drawn a page's worth of lines at a time.
            let most = cells.iter().map(Vec::len).max().unwrap_or(0);
            let mut from = 0;
            while from < most || from == 0 {
                let mut fit = ((self.room() - 2.0 * PAD) / LINE) as usize;
                if fit == 0 {
                    self.new_page();
                    self.header(&head, table, left, &widths, None);
                    fit = (((self.room() - 2.0 * PAD) / LINE) as usize).max(1);
                }
                let to = most.min(from + fit);
                let part: Vec<&[WrappedLine]> = cells
                    .iter()
                    .map(|c| &c[from.min(c.len())..to.min(c.len())])
                    .collect();
                self.row(&part, table, left, &widths, Some(&tags));
                from = to.max(from + 1);
            }
            let y = self.y - 0.4;
            self.fill((left, y), (whole, 0.4), HAIR);
        }
        if table.head.len() > columns {
            let note = format!("{} more columns are not shown", table.head.len() - columns);
            let glyphs = self.fonts.line(&note, super::font::Style::default());
            self.need(LINE + PAD);
            let base = self.y + PAD + SIZE;
            self.glyphs((left, base), SIZE - 1.0, MUTED, &glyphs, tag);
            self.y += LINE + PAD;
        }
    }

    /// Returns the height of a table that is not divided over pages; none of one that is.
    pub(crate) fn kept_together(&mut self, table: &MarkdownTable, width: f32) -> Option<f32> {
        if table.rows.len() > SHORT || table.head.is_empty() {
            return None;
        }
        let widths = self.widths(table, table.head.len().min(COLUMNS), width);
        let head = self.cells(&table.head, &widths);
        let is_headed = head.iter().flatten().any(|line| !line.glyphs.is_empty());
        let mut all = if is_headed { height(&head) } else { 0.0 };
        for row in &table.rows {
            all += height(&self.cells(row, &widths));
        }
        (all <= self.whole() / 2.0).then_some(all)
    }

    fn row_tags(&mut self, table: Tag, columns: usize, role: StructRole) -> Cells {
        let row = self.tags.add(table, StructRole::TR);
        (0..columns).map(|_| self.tags.add(row, role)).collect()
    }

    fn cells(&mut self, row: &[Vec<Span>], widths: &[f32]) -> Vec<Vec<WrappedLine>> {
        widths
            .iter()
            .enumerate()
            .map(|(at, width)| match row.get(at) {
                Some(spans) => wrap(self.fonts, spans, SIZE, (width - GUTTER).max(1.0)),
                None => vec![WrappedLine::default()],
            })
            .collect()
    }

    /// The header row; where it is repeated on a later page it is decoration, without tags.
    fn header(
        &mut self,
        head: &[Vec<WrappedLine>],
        table: &MarkdownTable,
        left: f32,
        widths: &[f32],
        tags: Option<&[Tag]>,
    ) {
        if head.iter().flatten().all(|line| line.glyphs.is_empty()) {
            return;
        }
        // A header that fills the page would leave no room for rows: only its first lines are shown.
        let most = ((self.whole() / 3.0 / LINE) as usize).max(1);
        let part: Vec<&[WrappedLine]> = head.iter().map(|c| &c[..c.len().min(most)]).collect();
        let lines = part.iter().map(|c| c.len()).max().unwrap_or(1);
        let tall = lines as f32 * LINE + 2.0 * PAD;
        let whole: f32 = widths.iter().sum();
        let y = self.y;
        self.fill((left, y), (whole, tall), PALE);
        self.row(&part, table, left, widths, tags);
        let y = self.y - 0.8;
        self.fill((left, y), (whole, 0.8), MUTED);
    }

    fn row(
        &mut self,
        cells: &[&[WrappedLine]],
        table: &MarkdownTable,
        left: f32,
        widths: &[f32],
        tags: Option<&[Tag]>,
    ) {
        let lines = cells.iter().map(|c| c.len()).max().unwrap_or(1);
        let mut x = left;
        for (at, cell) in cells.iter().enumerate() {
            let room = widths[at] - GUTTER;
            for (number, line) in cell.iter().enumerate() {
                let shift = match table.aligns.get(at).copied().unwrap_or_default() {
                    Align::Left => 0.0,
                    Align::Center => (room - line.width) / 2.0,
                    Align::Right => room - line.width,
                };
                let base = self.y + PAD + number as f32 * LINE + SIZE * 0.98;
                let at_x = x + GUTTER / 2.0 + shift.max(0.0);
                self.glyphs((at_x, base), SIZE, INK, &line.glyphs, tags.map(|t| t[at]));
            }
            x += widths[at];
        }
        self.y += lines as f32 * LINE + 2.0 * PAD;
    }

    /// Widths of the columns: what the texts want, if the page has it; else each its widest word,
    /// and the rest by want.
    fn widths(&mut self, table: &MarkdownTable, columns: usize, width: f32) -> Vec<f32> {
        let mut wants = vec![0.0f32; columns];
        let mut words = vec![0.0f32; columns];
        for row in std::iter::once(&table.head).chain(&table.rows) {
            for (at, spans) in row.iter().take(columns).enumerate() {
                let (whole, word) = extent(self.fonts, spans, SIZE);
                wants[at] = wants[at].max(whole + GUTTER + 0.1);
                words[at] = words[at].max(word.min(WORD) + GUTTER + 0.1);
            }
        }
        share(&wants, &words, width)
    }
}

/// Shares `width` among columns that want `wants` and can do with `least`.
fn share(wants: &[f32], least: &[f32], width: f32) -> Vec<f32> {
    let want: f32 = wants.iter().sum();
    let low: f32 = least.iter().sum();
    if want <= width {
        // A table that fills most of the page fills it whole; a small one stays small.
        let spare = if want > width * 0.55 {
            (width - want) / wants.len() as f32
        } else {
            0.0
        };
        return wants.iter().map(|w| w + spare).collect();
    }
    if low >= width {
        return least.iter().map(|l| l * width / low).collect();
    }
    // Clamp excessive demands, so that one column cannot starve the others.
    let over: Vec<f32> = wants
        .iter()
        .zip(least)
        .map(|(w, l)| (w - l).clamp(0.0, width))
        .collect();
    let total: f32 = over.iter().sum();
    least
        .iter()
        .zip(&over)
        .map(|(l, o)| l + o / total * (width - low))
        .collect()
}

fn height(cells: &[Vec<WrappedLine>]) -> f32 {
    cells.iter().map(Vec::len).max().unwrap_or(1) as f32 * LINE + 2.0 * PAD
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn widths_are_shared_by_want() {
        assert_eq!(share(&[40.0, 40.0], &[20.0, 20.0], 200.0), [40.0, 40.0]);
        assert_eq!(share(&[80.0, 60.0], &[20.0, 20.0], 200.0), [110.0, 90.0]);
        assert_eq!(share(&[300.0, 50.0], &[40.0, 50.0], 200.0), [150.0, 50.0]);
        assert_eq!(
            share(&[300.0, 300.0], &[200.0, 200.0], 200.0),
            [100.0, 100.0]
        );
    }
}
