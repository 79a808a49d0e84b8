//! What a page of a PDF shows as text, piece by piece, in the order in which it is drawn (ISO 32000-1, 9.3 and 9.4).

use super::content::Operations;
use super::fonts::Font;
use super::limits::{
    CHARACTERS, CONTENT, CONTENTS, FORM_DEPTH, FORMS, OPERATORS, PARENTS, ReadError, STATES, check,
    inflated,
};
use lopdf::content::Operation;
use lopdf::{Dictionary, Document, Error, Object, ObjectId, Stream};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

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
    /// How many operators were read.
    pub(crate) operators: Cell<usize>,
    /// How many bytes of content were inflated.
    pub(crate) contents: Cell<usize>,
}

impl<'f> PageReader<'f> {
    /// Returns the pieces of text that a page shows, in drawing order.
    pub(crate) fn read(&self, page: ObjectId) -> Result<Vec<TextPiece>, ReadError> {
        let mut content = Vec::new();
        for part in self.doc.get_page_contents(page) {
            let stream = self.doc.get_object(part).and_then(Object::as_stream)?;
            content.extend(self.inflated(stream, CONTENT.saturating_sub(content.len()))?);
            content.push(b'\n');
        }
        let resources = self.resources(page)?;
        let mut reading = ContentReader {
            pages: self,
            pieces: Vec::new(),
            text: SAME,
            line: SAME,
            last: None,
            characters: 0,
            forms: 0,
            open: Vec::new(),
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
        reading.content(&content, &resources, state)?;
        Ok(reading.pieces)
    }

    fn inflated(&self, stream: &Stream, most: usize) -> Result<Vec<u8>, ReadError> {
        let content = inflated(stream, most)?;
        // An empty stream takes time too.
        self.contents.set(self.contents.get() + content.len() + 1);
        check(self.contents.get(), CONTENTS, "bytes of content")?;
        Ok(content)
    }

    /// The resources of a page: its own, and those that the nodes above it refer to.
    fn resources(&self, page: ObjectId) -> Result<Vec<&'f Dictionary>, ReadError> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut node = self.doc.get_dictionary(page)?;
        loop {
            match node.get(b"Resources") {
                Ok(Object::Dictionary(own)) if seen.is_empty() => found.push(own),
                Ok(Object::Reference(id)) => found.extend(self.doc.get_dictionary(*id)),
                _ => {}
            }
            let Ok(parent) = node.get(b"Parent").and_then(Object::as_reference) else {
                return Ok(found);
            };
            if !seen.insert(parent) {
                return Err(Error::ReferenceCycle(parent).into());
            }
            check(seen.len(), PARENTS, "nodes above a page")?;
            node = self.doc.get_dictionary(parent)?;
        }
    }
}

struct ContentReader<'p, 'f> {
    pages: &'p PageReader<'f>,
    pieces: Vec<TextPiece>,
    text: Matrix,
    line: Matrix,
    /// The font of the last piece.
    last: Option<*const Font<'f>>,
    /// How many characters the page shows.
    characters: usize,
    /// How many forms are drawn inside of forms.
    forms: usize,
    /// The forms that are being drawn, each inside of the one before.
    open: Vec<*const Stream>,
}

impl<'f> ContentReader<'_, 'f> {
    fn content(
        &mut self,
        bytes: &[u8],
        resources: &[&'f Dictionary],
        mut state: TextState<'f>,
    ) -> Result<(), ReadError> {
        let mut operations = Operations::new(bytes);
        let mut saved = Vec::new();
        loop {
            let some = operations.decode_some()?;
            if some.is_empty() {
                return Ok(());
            }
            let operators = &self.pages.operators;
            operators.set(operators.get() + some.len());
            check(operators.get(), OPERATORS, "operators")?;
            for operation in &some {
                self.operation(operation, resources, &mut state, &mut saved)?;
            }
            check(saved.len(), STATES, "graphics states saved at once")?;
        }
    }

    fn operation(
        &mut self,
        operation: &Operation,
        resources: &[&'f Dictionary],
        state: &mut TextState<'f>,
        saved: &mut Vec<TextState<'f>>,
    ) -> Result<(), ReadError> {
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
            "Q" => *state = saved.pop().unwrap_or_else(|| state.clone()),
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
            "Tj" => self.show(given.first(), state),
            "'" => {
                self.next_line(0.0, -state.leading);
                self.show(given.first(), state);
            }
            "\"" => {
                (state.words, state.letters) = (number(0), number(1));
                self.next_line(0.0, -state.leading);
                self.show(given.get(2), state);
            }
            "TJ" => {
                let list = given.first().and_then(|it| it.as_array().ok());
                for item in list.into_iter().flatten() {
                    match item.as_float() {
                        Ok(back) => {
                            self.advance(-back / 1000.0 * state.size * state.stretch);
                        }
                        Err(_) => self.show(Some(item), state),
                    }
                }
            }
            "Do" => {
                let name = given.first().and_then(|it| it.as_name().ok());
                let form = name.and_then(|name| self.resource(resources, b"XObject", name));
                self.form(form, resources, state)?;
            }
            _ => {}
        }
        check(self.characters, CHARACTERS, "characters on it")
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
    ) -> Result<(), ReadError> {
        let Some(stream) = form.and_then(|form| form.as_stream().ok()) else {
            return Ok(());
        };
        let is_form = stream.dict.get(b"Subtype").and_then(Object::as_name);
        if is_form.ok() != Some(b"Form") {
            return Ok(());
        }
        let key = std::ptr::from_ref(stream);
        if self.open.len() >= FORM_DEPTH || self.open.contains(&key) {
            return Ok(());
        }
        self.forms += usize::from(!self.open.is_empty());
        check(self.forms, FORMS, "forms drawn inside of forms")?;
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
        let content = self.pages.inflated(stream, CONTENT)?;
        let outside = (self.text, self.line);
        self.open.push(key);
        self.content(&content, &resources, state)?;
        self.open.pop();
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
