//! Lines of text from the pieces of a page: words apart, paragraphs apart, code with its indents.

use super::pieces::TextPiece;
use std::collections::BTreeMap;

/// A gap between letters that is one between words, as a share of their size. Justified text has gaps from about 0.2.
const WORD: f32 = 0.17;

/// A gap as between columns of a table.
const COLUMN: f32 = 2.0;

/// A step down that is more than one line, as a share of the usual step between lines that are set alike.
const PARAGRAPH: f32 = 1.25;

/// The same between lines that are not, as a share of the smaller size.
const MIXED: f32 = 1.6;

/// A line of a page.
#[derive(Debug, Clone)]
pub(crate) struct TextLine {
    pub(crate) text: String,
    /// How many characters that is, while pieces are added.
    count: usize,
    /// Where it begins, ends and lies, in points.
    from: f32,
    to: f32,
    height: f32,
    /// The size of most of its letters, in points.
    pub(crate) size: f32,
    angle: i16,
    /// All of it is in a font with letters of one width.
    pub(crate) is_fixed: bool,
    /// All of it is in a heavy font.
    pub(crate) is_bold: bool,
    /// Blank lines before it.
    pub(crate) blank: u8,
}

/// Returns the lines of a page: first those in the direction of most letters, then the rest, each in the order of the page.
pub(crate) fn lines(pieces: Vec<TextPiece>) -> Vec<TextLine> {
    let mut lines: Vec<TextLine> = Vec::new();
    let mut before: Option<TextPiece> = None;
    for piece in pieces {
        // Bold is sometimes feigned by printing twice.
        let is_shadow = before.as_ref().is_some_and(|before| {
            let near = 0.2 * piece.size;
            before.text == piece.text
                && (before.from - piece.from).abs() < near
                && (before.height - piece.height).abs() < near
        });
        if is_shadow {
            continue;
        }
        match lines.last_mut().filter(|line| line.continues(&piece)) {
            Some(line) => line.add(&piece),
            None => lines.push(TextLine::of(&piece)),
        }
        before = Some(piece);
    }
    lines.retain(|line| !line.text.trim().is_empty());
    let main = lines.iter().fold(BTreeMap::new(), |mut sum, line| {
        *sum.entry(line.angle).or_insert(0) += line.text.len();
        sum
    });
    let main = main.into_iter().max_by_key(|(_, letters)| *letters);
    // A stable sort: within a direction the order is that of the page.
    lines.sort_by_key(|line| Some(line.angle) != main.map(|(angle, _)| angle));
    indent(&mut lines);
    for line in &mut lines {
        let kept = if line.is_fixed {
            line.text.trim_end()
        } else {
            line.text.trim()
        };
        line.text = kept.to_owned();
    }
    lines
}

impl TextLine {
    fn of(piece: &TextPiece) -> Self {
        let text = plain(&piece.text);
        Self {
            count: text.chars().count(),
            text,
            from: piece.from,
            to: piece.to,
            height: piece.height,
            size: piece.size,
            angle: piece.angle,
            is_fixed: piece.is_fixed,
            is_bold: piece.is_bold,
            blank: 0,
        }
    }

    fn continues(&self, piece: &TextPiece) -> bool {
        let size = self.size.max(piece.size);
        self.angle == piece.angle
            && (self.height - piece.height).abs() < 0.5 * size
            && piece.from > self.to - size
    }

    fn add(&mut self, piece: &TextPiece) {
        let gap = piece.from - self.to;
        let has_blank = self.text.ends_with(' ') || piece.text.starts_with(' ');
        if self.is_fixed && piece.is_fixed {
            let blanks = (gap / self.letter()).round().clamp(0.0, 200.0) as usize;
            self.text.extend(std::iter::repeat_n(' ', blanks));
            self.count += blanks;
        } else if gap > COLUMN * self.size {
            self.text.push_str("  ");
            self.count += 2;
        } else if gap > WORD * self.size.min(piece.size) && !has_blank {
            self.text.push(' ');
            self.count += 1;
        }
        let text = plain(&piece.text);
        let count = text.chars().count();
        if !text.trim().is_empty() {
            self.is_fixed &= piece.is_fixed;
            self.is_bold &= piece.is_bold;
            if count > self.count {
                (self.size, self.height) = (piece.size, piece.height);
            }
        }
        self.text.push_str(&text);
        self.count += count;
        self.to = self.to.max(piece.to);
    }

    /// Returns the width of a letter, where all are as wide.
    fn letter(&self) -> f32 {
        ((self.to - self.from) / self.count.max(1) as f32).max(0.3 * self.size)
    }
}

/// Ligatures as letters, and every blank as one.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{FB00}' => plain.push_str("ff"),
            '\u{FB01}' => plain.push_str("fi"),
            '\u{FB02}' => plain.push_str("fl"),
            '\u{FB03}' => plain.push_str("ffi"),
            '\u{FB04}' => plain.push_str("ffl"),
            '\u{FB05}' | '\u{FB06}' => plain.push_str("st"),
            // A hyphen that shows only at the end of a line, and marks of width none.
            '\u{AD}' | '\u{200B}' | '\u{200C}' | '\u{FEFF}' => {}
            c if c.is_whitespace() || c.is_control() => plain.push(' '),
            c => plain.push(c),
        }
    }
    plain
}

/// Lines that are set alike: of one size, in half points, and in letters of one width or not.
type LineSetting = (u32, bool);

fn class(line: &TextLine) -> LineSetting {
    ((line.size * 2.0).round() as u32, line.is_fixed)
}

/// How far a line lies below the one before, if they lead alike.
fn down(before: &TextLine, line: &TextLine) -> Option<f32> {
    (before.angle == line.angle).then_some(before.height - line.height)
}

/// Counts the blank lines before each line, by how far apart lines that are set alike are in the document.
pub(crate) fn set_apart(pages: &mut [(u32, Vec<TextLine>)]) {
    let mut steps: BTreeMap<LineSetting, Vec<f32>> = BTreeMap::new();
    for pair in pages.iter().flat_map(|(_, lines)| lines.windows(2)) {
        let [before, line] = pair else { continue };
        let step = down(before, line).filter(|_| class(before) == class(line));
        let near = step.filter(|step| (0.8 * line.size..3.0 * line.size).contains(step));
        steps.entry(class(line)).or_default().extend(near);
    }
    let usual = |mut steps: Vec<f32>| {
        steps.sort_by(f32::total_cmp);
        // Few are less: paragraphs have at least one line, and most have more.
        steps.get(steps.len() / 5).copied()
    };
    let usual: BTreeMap<LineSetting, Option<f32>> = steps
        .into_iter()
        .map(|(class, steps)| (class, usual(steps)))
        .collect();
    for (_, lines) in pages {
        for at in 1..lines.len() {
            let (before, line) = (&lines[at - 1], &lines[at]);
            let usual = usual.get(&class(line)).copied().flatten();
            let usual = usual.filter(|_| class(before) == class(line));
            let most = usual.map_or(MIXED * line.size.min(before.size), |usual| {
                PARAGRAPH * usual
            });
            let step = down(before, line);
            let is_apart = step.is_none_or(|step| step > most || step < -0.5 * line.size);
            let is_code = before.is_fixed && line.is_fixed;
            lines[at].blank = match (is_apart, usual.zip(step)) {
                (false, _) => 0,
                (true, Some((usual, step))) if is_code && step > 0.0 => {
                    ((step / usual).round() - 1.0).clamp(1.0, 3.0) as u8
                }
                (true, _) => 1,
            };
        }
    }
}

/// Gives code its indents: lines of letters of one width, one below the other, by how far they begin to the right.
fn indent(lines: &mut [TextLine]) {
    let mut at = 0;
    while at < lines.len() {
        let end = (at..lines.len())
            .find(|&i| !lines[i].is_fixed)
            .unwrap_or(lines.len());
        if let Some(left) = lines[at..end]
            .iter()
            .map(|line| line.from)
            .min_by(f32::total_cmp)
        {
            for line in &mut lines[at..end] {
                let blanks = ((line.from - left) / line.letter())
                    .round()
                    .clamp(0.0, 200.0);
                line.text.insert_str(0, &" ".repeat(blanks as usize));
            }
        }
        at = end.max(at + 1);
    }
}
