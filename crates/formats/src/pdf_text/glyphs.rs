//! The text of a page of a PDF, piece by piece, in the order in which it is drawn (ISO 32000-1, 9.3 and 9.4).

use super::content::Operations;
use super::fonts::Font;
use super::limits::{
    CHARACTERS, CONTENT, CONTENTS, FORM_DEPTH, FORMS, OPERATORS, PARENTS, ReadError, STATES, check,
    inflated,
};
use super::pieces::{Pen, SAME, TextPiece, TextState, times};
use lopdf::content::Operation;
use lopdf::{Dictionary, Document, Error, Object, ObjectId, Stream};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

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
            pen: Pen::new(),
            forms: 0,
            open: Vec::new(),
        };
        reading.content(&content, &resources, TextState::new())?;
        Ok(reading.pen.pieces)
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
    pen: Pen,
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
        mut state: TextState<&'f Font<'f>>,
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
        state: &mut TextState<&'f Font<'f>>,
        saved: &mut Vec<TextState<&'f Font<'f>>>,
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
            "BT" => self.pen.set(SAME),
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
            "Td" => self.pen.next_line(number(0), number(1)),
            "TD" => {
                state.leading = -number(1);
                self.pen.next_line(number(0), number(1));
            }
            "Tm" => self.pen.set(matrix()),
            "T*" => self.pen.next_line(0.0, -state.leading),
            "Tj" => self.show(given.first(), state),
            "'" => {
                self.pen.next_line(0.0, -state.leading);
                self.show(given.first(), state);
            }
            "\"" => {
                (state.words, state.letters) = (number(0), number(1));
                self.pen.next_line(0.0, -state.leading);
                self.show(given.get(2), state);
            }
            "TJ" => {
                let list = given.first().and_then(|it| it.as_array().ok());
                for item in list.into_iter().flatten() {
                    match item.as_float() {
                        Ok(back) => self.pen.adjust(back, state),
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
        check(self.pen.characters, CHARACTERS, "characters on it")
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
        state: &TextState<&'f Font<'f>>,
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
        let outside = (self.pen.text, self.pen.line);
        self.open.push(key);
        self.content(&content, &resources, state)?;
        self.open.pop();
        (self.pen.text, self.pen.line) = outside;
        Ok(())
    }

    fn show(&mut self, string: Option<&Object>, state: &TextState<&'f Font<'f>>) {
        let (Some(font), Some(Ok(bytes))) = (state.font, string.map(Object::as_str)) else {
            return;
        };
        let metrics = &font.metrics;
        font.each(bytes, |text, width, is_blank| {
            self.pen.show(text, width, is_blank, metrics, state);
        });
    }
}
