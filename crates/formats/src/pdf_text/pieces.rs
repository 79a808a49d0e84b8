//! The pieces of text on a page, as letters are drawn one after another (ISO 32000-1, 9.3 and 9.4).

use super::limits::CHARACTERS;
use super::metrics::Metrics;

/// Letters on one line with no gap between them, in one font.
#[derive(Debug, Clone)]
pub(crate) struct TextPiece {
    /// The letters.
    pub(crate) text: String,
    /// Where it begins and ends along the line, and how high the line lies, in points.
    pub(crate) from: f32,
    /// See `from`.
    pub(crate) to: f32,
    /// See `from`.
    pub(crate) height: f32,
    /// The size of the letters, in points.
    pub(crate) size: f32,
    /// Where the line leads, in degrees.
    pub(crate) angle: i16,
    /// All letters of the font are as wide.
    pub(crate) is_fixed: bool,
    /// The font is a heavy one.
    pub(crate) is_bold: bool,
}

pub(crate) type Matrix = [f32; 6];

pub(crate) const SAME: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// First `a`, then `b`.
pub(crate) fn times(a: &Matrix, b: &Matrix) -> Matrix {
    [
        a[0] * b[0] + a[1] * b[2],
        a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3],
        a[4] * b[0] + a[5] * b[2] + b[4],
        a[4] * b[1] + a[5] * b[3] + b[5],
    ]
}

/// The text state that operators set.
#[derive(Clone)]
pub(crate) struct TextState<F> {
    pub(crate) page: Matrix,
    pub(crate) font: Option<F>,
    pub(crate) size: f32,
    pub(crate) letters: f32,
    pub(crate) words: f32,
    pub(crate) stretch: f32,
    pub(crate) leading: f32,
    pub(crate) rise: f32,
}

impl<F> TextState<F> {
    /// The state at the beginning of a page.
    pub(crate) fn new() -> Self {
        Self {
            page: SAME,
            font: None,
            size: 0.0,
            letters: 0.0,
            words: 0.0,
            stretch: 1.0,
            leading: 0.0,
            rise: 0.0,
        }
    }
}

/// Draws the letters of a page.
pub(crate) struct Pen {
    /// The pieces, in drawing order.
    pub(crate) pieces: Vec<TextPiece>,
    /// Where the next letter and the current line begin.
    pub(crate) text: Matrix,
    /// See `text`.
    pub(crate) line: Matrix,
    /// How many characters the page shows.
    pub(crate) characters: usize,
    /// The font of the last piece.
    last: Option<*const Metrics>,
}

impl Pen {
    pub(crate) fn new() -> Self {
        Self {
            pieces: Vec::new(),
            text: SAME,
            line: SAME,
            characters: 0,
            last: None,
        }
    }

    pub(crate) fn set(&mut self, matrix: Matrix) {
        (self.text, self.line) = (matrix, matrix);
    }

    pub(crate) fn next_line(&mut self, x: f32, y: f32) {
        self.line = times(&[1.0, 0.0, 0.0, 1.0, x, y], &self.line);
        self.text = self.line;
    }

    /// Moves back by this many thousandths of the size.
    pub(crate) fn adjust<F>(&mut self, back: f32, state: &TextState<F>) {
        self.advance(-back / 1000.0 * state.size * state.stretch);
    }

    fn advance(&mut self, by: f32) {
        self.text = times(&[1.0, 0.0, 0.0, 1.0, by, 0.0], &self.text);
    }

    /// Draws the letter of a code. `width` is in thousandths of the size.
    pub(crate) fn show<F>(
        &mut self,
        text: &str,
        width: f32,
        is_blank: bool,
        font: &Metrics,
        state: &TextState<F>,
    ) {
        let size = state.size * state.stretch;
        let start = self.place(state);
        let blank = if is_blank { state.words } else { 0.0 };
        let spaced = width / 1000.0 * size + (state.letters + blank) * state.stretch;
        self.advance(spaced);
        let end = self.place(state);
        self.take(text, start, end, font, state);
    }

    /// Returns the matrix from the space of the next letter to the page.
    fn place<F>(&self, state: &TextState<F>) -> Matrix {
        let raised = times(&[1.0, 0.0, 0.0, 1.0, 0.0, state.rise], &self.text);
        times(&raised, &state.page)
    }

    fn take<F>(
        &mut self,
        text: &str,
        start: Matrix,
        end: Matrix,
        font: &Metrics,
        state: &TextState<F>,
    ) {
        let size = state.size.abs() * start[2].hypot(start[3]);
        let length = start[0].hypot(start[1]);
        if self.characters > CHARACTERS {
            return;
        }
        let is_real = start.iter().chain(&end).all(|it| it.is_finite());
        if !(is_real && size > 0.0 && length > 0.0) {
            return;
        }
        self.characters += text.chars().count();
        let length = length.copysign(state.size);
        let (dx, dy) = (start[0] / length, start[1] / length);
        let along = |at: &Matrix| at[4] * dx + at[5] * dy;
        let (from, to) = (along(&start), along(&end));
        let height = start[5] * dx - start[4] * dy;
        let angle = dy.atan2(dx).to_degrees().round() as i16;
        let key = std::ptr::from_ref(font);
        if self.last == Some(key)
            && let Some(piece) = self.pieces.last_mut()
            && piece.angle == angle
            && (piece.size - size).abs() < 0.01 * size
            && (piece.height - height).abs() < 0.05 * size
            && (piece.to - from).abs() < 0.1 * size
        {
            piece.text.push_str(text);
            piece.to = to;
            return;
        }
        self.last = Some(key);
        self.pieces.push(TextPiece {
            text: text.to_owned(),
            from,
            to,
            height,
            size,
            angle,
            is_fixed: font.is_fixed,
            is_bold: font.is_bold,
        });
    }
}
