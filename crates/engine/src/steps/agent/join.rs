//! Joins each element of a batch with the answer to its question: the record.

use crate::steps::records::{CHUNK, RecordProgram};
use milepost_core::base::source::Sink;
use milepost_core::base::texts::Texts;
use milepost_core::expr::jq::{EvaluationInput, JqError};
use std::io;

/// Joins elements with the answers to their questions.
pub(super) struct Join<'a> {
    /// The answer to each question as JSON.
    pub(super) answers: Vec<Option<String>>,
    /// The id of each question as JSON.
    pub(super) ids: Vec<String>,
    /// The variables of the program that each element sets: itself, and the id of its question.
    pub(super) set: &'a [&'a str],
    /// Without a program, the record is the answer.
    pub(super) program: Option<RecordProgram<'a>>,
}

/// Elements on the way to a thread, and for each the index of its question.
#[derive(Default)]
pub(super) struct Elements {
    pub(super) texts: Texts,
    questions: Vec<usize>,
}

impl Elements {
    pub(super) fn add(&mut self, text: &str, question: usize) {
        self.texts.add(text);
        self.questions.push(question);
    }
}

impl Join<'_> {
    pub(super) fn at_once(&self) -> Result<usize, JqError> {
        self.program
            .as_ref()
            .map_or(Ok(CHUNK), RecordProgram::at_once)
    }

    /// Returns the work of one thread: the indices of the questions, and the records.
    #[expect(clippy::type_complexity)]
    pub(super) fn work(
        &self,
    ) -> Box<dyn FnMut(Elements) -> (Vec<usize>, Result<Texts, String>) + '_> {
        let mut limited = self.program.as_ref().map(RecordProgram::limited);
        Box::new(move |elements| {
            let both = elements.texts.iter().zip(&elements.questions);
            let inputs = both.map(|(element, &question)| {
                let answer = self.answers.get(question).and_then(Option::as_deref);
                EvaluationInput {
                    value: answer.unwrap_or("null").into(),
                    variables: vec![element.into(), self.ids[question].as_str().into()],
                }
            });
            let inputs: Vec<EvaluationInput<'_>> = inputs.collect();
            let texts = match &mut limited {
                Some(Ok(limited)) => limited
                    .text_of_each(self.set, &inputs)
                    .map_err(|error| error.to_string()),
                Some(Err(error)) => Err(error.to_string()),
                None => Ok(inputs.iter().map(|input| &*input.value).collect()),
            };
            drop(inputs);
            (elements.questions, texts)
        })
    }
}

/// An array of records that is written, one a line.
pub(super) struct RecordList {
    sink: Box<dyn Sink>,
    line: Vec<u8>,
    is_first: bool,
}

impl RecordList {
    pub(super) fn new(sink: Box<dyn Sink>) -> Self {
        Self {
            sink,
            line: Vec::new(),
            is_first: true,
        }
    }

    pub(super) fn add(&mut self, record: &str) -> io::Result<()> {
        let start: &[u8] = if self.is_first { b"[\n" } else { b",\n" };
        self.is_first = false;
        self.line.clear();
        self.line.extend_from_slice(start);
        self.line.extend_from_slice(record.as_bytes());
        self.sink.write_all(&self.line)
    }

    /// Ends the array. Returns the file.
    pub(super) fn end(mut self) -> io::Result<Box<dyn Sink>> {
        self.sink
            .write_all(if self.is_first { b"[\n]\n" } else { b"\n]\n" })?;
        Ok(self.sink)
    }
}
