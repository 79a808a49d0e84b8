//! The text of a page, in drawing order.

use super::fonts::{Font, FontReader};
use super::limits::{
    CHARACTERS, CONTENT, CONTENTS, FORM_DEPTH, FORMS, OPERATORS, ReadError, STATES, check,
};
use super::pieces::{Pen, SAME, TextPiece, TextState, times};
use super::streams::inflated;
use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction;
use hayro_syntax::object::dict::keys::{
    CONTENTS as PAGE_CONTENTS, FORM, MATRIX, RESOURCES, SUBTYPE,
};
use hayro_syntax::object::{Array, Dict, MaybeRef, Name, Number, Object, ObjectIdentifier, Stream};
use hayro_syntax::page::{Page, Resources};
use std::rc::Rc;

/// Reads pages.
pub(crate) struct PageReader {
    fonts: FontReader,
    /// How many operators were read.
    operators: usize,
    /// How many bytes of content were inflated.
    contents: usize,
}

impl PageReader {
    pub(crate) fn new() -> Self {
        Self {
            fonts: FontReader::default(),
            operators: 0,
            contents: 0,
        }
    }

    /// Returns the pieces of text that a page shows, in drawing order.
    pub(crate) fn read(&mut self, page: &Page<'_>) -> Result<Vec<TextPiece>, ReadError> {
        let content = self.page_content(page)?;
        let mut reading = ContentReader {
            pages: self,
            pen: Pen::new(),
            forms: 0,
            open: Vec::new(),
        };
        let resources = [page.resources().clone()];
        reading.content(&content, &resources, TextState::new())?;
        Ok(reading.pen.pieces)
    }

    fn page_content(&mut self, page: &Page<'_>) -> Result<Vec<u8>, ReadError> {
        let dictionary = page.raw();
        if !dictionary.contains_key(PAGE_CONTENTS) {
            return Ok(Vec::new());
        }
        if let Some(stream) = dictionary.get::<Stream<'_>>(PAGE_CONTENTS) {
            return self.inflated(&stream, CONTENT);
        }
        let missing = || ReadError::Broken("its content is missing".to_owned());
        let parts = dictionary.get::<Array<'_>>(PAGE_CONTENTS);
        let mut content = Vec::new();
        for part in parts.ok_or_else(missing)?.raw_iter() {
            let stream = match part {
                MaybeRef::Ref(id) => page.xref().get::<Stream<'_>>(id.into()),
                MaybeRef::NotRef(object) => object.into_stream(),
            };
            let stream = stream.ok_or_else(missing)?;
            content.extend(self.inflated(&stream, CONTENT.saturating_sub(content.len()))?);
            content.push(b'\n');
        }
        Ok(content)
    }

    fn inflated(&mut self, stream: &Stream<'_>, most: usize) -> Result<Vec<u8>, ReadError> {
        let content = inflated(stream, most)?;
        // An empty stream takes time too.
        self.contents += content.len() + 1;
        check(self.contents, CONTENTS, "bytes of content")?;
        Ok(content)
    }
}

struct ContentReader<'p> {
    pages: &'p mut PageReader,
    pen: Pen,
    /// How many forms are drawn inside of forms.
    forms: usize,
    /// The forms that are being drawn, each inside of the one before.
    open: Vec<ObjectIdentifier>,
}

type DrawState = TextState<Rc<Font>>;

impl ContentReader<'_> {
    fn content(
        &mut self,
        bytes: &[u8],
        resources: &[Resources<'_>],
        mut state: DrawState,
    ) -> Result<(), ReadError> {
        let mut instructions = TypedIter::new(bytes);
        let mut saved: Vec<DrawState> = Vec::new();
        while let Some(instruction) = instructions.next() {
            self.pages.operators += 1;
            check(self.pages.operators, OPERATORS, "operators")?;
            match instruction {
                TypedInstruction::SaveState(_) => {
                    saved.push(state.clone());
                    check(saved.len(), STATES, "graphics states saved at once")?;
                }
                TypedInstruction::RestoreState(_) => state = saved.pop().unwrap_or(state),
                TypedInstruction::XObject(it) => self.form(it.0, resources, &state)?,
                TypedInstruction::TextFont(it) => {
                    let font = resources.iter().find_map(|of| of.get_font(it.0));
                    state.font = font.map(|font| self.pages.fonts.font(&font)).transpose()?;
                    state.size = it.1.as_f32();
                }
                other => self.text(&other, &mut state),
            }
            check(self.pen.characters, CHARACTERS, "characters on it")?;
        }
        Ok(())
    }

    fn text(&mut self, instruction: &TypedInstruction<'_, '_>, state: &mut DrawState) {
        use TypedInstruction as T;
        let number = Number::as_f32;
        match instruction {
            T::Transform(it) => {
                let matrix = [&it.0, &it.1, &it.2, &it.3, &it.4, &it.5].map(number);
                state.page = times(&matrix, &state.page);
            }
            T::BeginText(_) => self.pen.set(SAME),
            T::CharacterSpacing(it) => state.letters = it.0.as_f32(),
            T::WordSpacing(it) => state.words = it.0.as_f32(),
            T::HorizontalScaling(it) => state.stretch = it.0.as_f32() / 100.0,
            T::TextLeading(it) => state.leading = it.0.as_f32(),
            T::TextRise(it) => state.rise = it.0.as_f32(),
            T::NextLine(it) => self.pen.next_line(it.0.as_f32(), it.1.as_f32()),
            T::NextLineAndSetLeading(it) => {
                state.leading = -it.1.as_f32();
                self.pen.next_line(it.0.as_f32(), it.1.as_f32());
            }
            T::SetTextMatrix(it) => {
                let matrix = [&it.0, &it.1, &it.2, &it.3, &it.4, &it.5].map(number);
                self.pen.set(matrix);
            }
            T::NextLineUsingLeading(_) => self.pen.next_line(0.0, -state.leading),
            T::ShowText(it) => self.show(it.0, state),
            T::NextLineAndShowText(it) => {
                self.pen.next_line(0.0, -state.leading);
                self.show(it.0, state);
            }
            T::ShowTextWithParameters(it) => {
                (state.words, state.letters) = (it.0.as_f32(), it.1.as_f32());
                self.pen.next_line(0.0, -state.leading);
                self.show(it.2, state);
            }
            T::ShowTexts(it) => {
                for item in it.0.iter::<Object<'_>>() {
                    match item {
                        Object::Number(back) => self.pen.adjust(back.as_f32(), state),
                        Object::String(text) => self.show(text.as_bytes(), state),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn form(
        &mut self,
        name: &Name<'_>,
        outer: &[Resources<'_>],
        state: &DrawState,
    ) -> Result<(), ReadError> {
        let Some(stream) = outer.iter().find_map(|of| of.get_x_object(name)) else {
            return Ok(());
        };
        let form = stream.dict();
        if form.get::<Name<'_>>(SUBTYPE).as_deref() != Some(FORM) {
            return Ok(());
        }
        let id = stream.obj_id();
        if self.open.len() >= FORM_DEPTH || self.open.contains(&id) {
            return Ok(());
        }
        self.forms += usize::from(!self.open.is_empty());
        check(self.forms, FORMS, "forms drawn inside of forms")?;
        let mut state = state.clone();
        if let Some(matrix) = form.get::<[f64; 6]>(MATRIX) {
            state.page = times(&matrix.map(|it| it as f32), &state.page);
        }
        let own = form.get::<Dict<'_>>(RESOURCES).map(Resources::new);
        let resources: Vec<Resources<'_>> = own.into_iter().chain(outer.iter().cloned()).collect();
        let content = self.pages.inflated(&stream, CONTENT)?;
        let outside = (self.pen.text, self.pen.line);
        self.open.push(id);
        self.content(&content, &resources, state)?;
        self.open.pop();
        (self.pen.text, self.pen.line) = outside;
        Ok(())
    }

    fn show(&mut self, bytes: &[u8], state: &DrawState) {
        // Letters in a font that is lost are counted as unknown ones.
        let font = state.font.as_ref().unwrap_or(&self.pages.fonts.lost);
        font.each(bytes, |text, width, is_blank| {
            self.pen.show(text, width, is_blank, &font.metrics, state);
        });
    }
}
