//! What a page of a PDF shows as text, piece by piece, in the order in which it is drawn (ISO 32000-1, 9.3 and 9.4).

use super::fonts::Font;
use lopdf::content::Content;
use lopdf::{Dictionary, Document, Object};
use std::collections::HashMap;

/// Bytes that the content of one page, or of a form on it, may grow to.
pub(crate) const CONTENT: usize = 256 << 20;

/// Forms inside of forms that are followed.
const DEPTH: u8 = 12;

/// Letters that stand on one line with no gap between them, in one font.
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

type Matrix = [f32; 6];

const SAME: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// First `a`, then `b`.
fn times(a: &Matrix, b: &Matrix) -> Matrix {
    [
        a[0] * b[0] + a[1] * b[2],
        a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3],
        a[4] * b[0] + a[5] * b[2] + b[4],
        a[4] * b[1] + a[5] * b[3] + b[5],
    ]
}

#[derive(Clone)]
struct TextState<'f> {
    page: Matrix,
    font: Option<&'f Font<'f>>,
    size: f32,
    letters: f32,
    words: f32,
    stretch: f32,
    leading: f32,
    rise: f32,
}

/// Reads pages.
pub(crate) struct PageReader<'f> {
    /// The document.
    pub(crate) doc: &'f Document,
    /// Its fonts.
    pub(crate) fonts: &'f HashMap<*const Dictionary, Font<'f>>,
}

impl PageReader<'_> {
    /// Returns the pieces of text that a page shows, in drawing order.
    pub(crate) fn read(&self, page: lopdf::ObjectId) -> Result<Vec<TextPiece>, lopdf::Error> {
        for content in self.doc.get_page_contents(page) {
            let stream = self.doc.get_object(content).and_then(Object::as_stream);
            stream?.get_plain_content_with_limit(CONTENT)?;
        }
        let (own, inherited) = self.doc.get_page_resources(page)?;
        let inherited = inherited
            .iter()
            .filter_map(|id| self.doc.get_dictionary(*id).ok());
        let resources: Vec<&Dictionary> = own.into_iter().chain(inherited).collect();
        let content = self.doc.get_page_content_with_limit(page, CONTENT)?;
        let mut reading = ContentReader {
            pages: self,
            pieces: Vec::new(),
            text: SAME,
            line: SAME,
            last: None,
        };
        let state = TextState {
            page: SAME,
            font: None,
            size: 0.0,
            letters: 0.0,
            words: 0.0,
            stretch: 1.0,
            leading: 0.0,
            rise: 0.0,
        };
        reading.content(&content, &resources, state, 0)?;
        Ok(reading.pieces)
    }
}

struct ContentReader<'p, 'f> {
    pages: &'p PageReader<'f>,
    pieces: Vec<TextPiece>,
    text: Matrix,
    line: Matrix,
    /// The font of the last piece.
    last: Option<*const Font<'f>>,
}

impl<'f> ContentReader<'_, 'f> {
    fn content(
        &mut self,
        bytes: &[u8],
        resources: &[&'f Dictionary],
        mut state: TextState<'f>,
        depth: u8,
    ) -> Result<(), lopdf::Error> {
        let content = Content::decode(bytes)?;
        let mut saved = Vec::new();
        for operation in &content.operations {
            let given = &operation.operands;
            let number = |at: usize| {
                given
                    .get(at)
                    .and_then(|it| it.as_float().ok())
                    .unwrap_or(0.0)
            };
            let matrix = || [0, 1, 2, 3, 4, 5].map(number);
            match operation.operator.as_str() {
                "q" => saved.push(state.clone()),
                "Q" => state = saved.pop().unwrap_or(state),
                "cm" => state.page = times(&matrix(), &state.page),
                "BT" => (self.text, self.line) = (SAME, SAME),
                "Tc" => state.letters = number(0),
                "Tw" => state.words = number(0),
                "Tz" => state.stretch = number(0) / 100.0,
                "TL" => state.leading = number(0),
                "Ts" => state.rise = number(0),
                "Tf" => {
                    let name = given.first().and_then(|it| it.as_name().ok());
                    let font = name.and_then(|name| self.resource(resources, b"Font", name));
                    let key = font
                        .and_then(|font| font.as_dict().ok())
                        .map(std::ptr::from_ref);
                    state.font = key.and_then(|key| self.pages.fonts.get(&key));
                    state.size = number(1);
                }
                "Td" => self.next_line(number(0), number(1)),
                "TD" => {
                    state.leading = -number(1);
                    self.next_line(number(0), number(1));
                }
                "Tm" => (self.text, self.line) = (matrix(), matrix()),
                "T*" => self.next_line(0.0, -state.leading),
                "Tj" => self.show(given.first(), &state),
                "'" => {
                    self.next_line(0.0, -state.leading);
                    self.show(given.first(), &state);
                }
                "\"" => {
                    (state.words, state.letters) = (number(0), number(1));
                    self.next_line(0.0, -state.leading);
                    self.show(given.get(2), &state);
                }
                "TJ" => {
                    let list = given.first().and_then(|it| it.as_array().ok());
                    for item in list.into_iter().flatten() {
                        match item.as_float() {
                            Ok(back) => {
                                self.advance(-back / 1000.0 * state.size * state.stretch);
                            }
                            Err(_) => self.show(Some(item), &state),
                        }
                    }
                }
                "Do" if depth < DEPTH => {
                    let name = given.first().and_then(|it| it.as_name().ok());
                    let form = name.and_then(|name| self.resource(resources, b"XObject", name));
                    self.form(form, resources, &state, depth)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn resource(&self, all: &[&'f Dictionary], kind: &[u8], name: &[u8]) -> Option<&'f Object> {
        let doc = self.pages.doc;
        all.iter().find_map(|resources| {
            let of_kind = resources.get_deref(kind, doc).ok()?.as_dict().ok()?;
            of_kind.get_deref(name, doc).ok()
        })
    }

    fn form(
        &mut self,
        form: Option<&'f Object>,
        outer: &[&'f Dictionary],
        state: &TextState<'f>,
        depth: u8,
    ) -> Result<(), lopdf::Error> {
        let Some(stream) = form.and_then(|form| form.as_stream().ok()) else {
            return Ok(());
        };
        let is_form = stream.dict.get(b"Subtype").and_then(Object::as_name);
        if is_form.ok() != Some(b"Form") {
            return Ok(());
        }
        let doc = self.pages.doc;
        let mut state = state.clone();
        let matrix = stream
            .dict
            .get_deref(b"Matrix", doc)
            .and_then(Object::as_array);
        if let Ok([a, b, c, d, e, f]) = matrix.map(Vec::as_slice) {
            let own = [a, b, c, d, e, f].map(|it| it.as_float().unwrap_or(0.0));
            state.page = times(&own, &state.page);
        }
        let own = stream
            .dict
            .get_deref(b"Resources", doc)
            .and_then(Object::as_dict);
        let resources: Vec<&Dictionary> = own.into_iter().chain(outer.iter().copied()).collect();
        let content = stream.get_plain_content_with_limit(CONTENT);
        let content = content?;
        let outside = (self.text, self.line);
        self.content(&content, &resources, state, depth + 1)?;
        (self.text, self.line) = outside;
        Ok(())
    }

    fn next_line(&mut self, x: f32, y: f32) {
        self.line = times(&[1.0, 0.0, 0.0, 1.0, x, y], &self.line);
        self.text = self.line;
    }

    fn advance(&mut self, by: f32) {
        self.text = times(&[1.0, 0.0, 0.0, 1.0, by, 0.0], &self.text);
    }

    fn show(&mut self, string: Option<&Object>, state: &TextState<'f>) {
        let (Some(font), Some(Ok(bytes))) = (state.font, string.map(Object::as_str)) else {
            return;
        };
        font.each(bytes, |text, width, is_blank| {
            let size = state.size * state.stretch;
            let start = self.place(state);
            let blank = if is_blank { state.words } else { 0.0 };
            let spaced = width / 1000.0 * size + (state.letters + blank) * state.stretch;
            self.advance(spaced);
            let end = self.place(state);
            self.take(text, start, end, font, state);
        });
    }

    /// Where the next letter stands: the matrix from its space to the page.
    fn place(&self, state: &TextState<'_>) -> Matrix {
        let raised = times(&[1.0, 0.0, 0.0, 1.0, 0.0, state.rise], &self.text);
        times(&raised, &state.page)
    }

    fn take(
        &mut self,
        text: &str,
        start: Matrix,
        end: Matrix,
        font: &'f Font<'f>,
        state: &TextState<'f>,
    ) {
        let size = state.size.abs() * start[2].hypot(start[3]);
        let length = start[0].hypot(start[1]);
        let is_real = start.iter().chain(&end).all(|it| it.is_finite());
        if !(is_real && size > 0.0 && length > 0.0) {
            return;
        }
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
