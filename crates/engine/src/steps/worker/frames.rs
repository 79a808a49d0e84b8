//! The answer of a worker: pieces of data, then the result or the failure. Each frame is a kind, a length and bytes.

use milepost_core::model::outcome::{Outcome, OutcomeKind};
use std::io::{self, Read, Write};

const DATA: u8 = b'd';
const DONE: u8 = b'r';
const FAILED: u8 = b'f';

/// The longest result, in bytes. Results are held in memory; long outputs are sent as data.
const LONGEST: usize = 256 << 20;

/// The length of kind and length.
const HEAD: usize = 5;

/// The end of an answer.
pub(super) enum Answer {
    /// The result, as JSON.
    Done(String),
    Failed(Outcome),
}

/// Why an answer broke off.
pub(super) enum Broken {
    /// The data could not be written.
    Sink(io::Error),
    /// The worker ended, or wrote something else.
    Worker,
}

/// Sends data in frames.
pub(super) struct DataWriter<'a>(pub(super) &'a mut dyn Write);

impl Write for DataWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(LONGEST)];
        send(self.0, DATA, piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Sends the end of an answer.
pub(super) fn end(output: &mut dyn Write, result: Result<String, Outcome>) -> io::Result<()> {
    let failed = match result {
        Ok(result) if result.len() <= LONGEST => return send(output, DONE, result.as_bytes()),
        Ok(result) => {
            let message = format!("the result is too long: {} bytes", result.len());
            Outcome::new(OutcomeKind::Memory, message)
        }
        Err(outcome) => outcome,
    };
    send(output, FAILED, &serde_json::to_vec(&failed)?)
}

fn send(output: &mut dyn Write, kind: u8, bytes: &[u8]) -> io::Result<()> {
    let mut head = [kind; HEAD];
    head[1..].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    output.write_all(&head)?;
    output.write_all(bytes)
}

/// Receives an answer, and copies its data to `sink`.
pub(super) fn receive(input: &mut dyn Read, sink: &mut dyn Write) -> Result<Answer, Broken> {
    let gone = |_| Broken::Worker;
    let mut buffer = Vec::new();
    loop {
        let mut head = [0; HEAD];
        input.read_exact(&mut head).map_err(gone)?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(Broken::Worker);
        }
        buffer.clear();
        let read = input.take(length as u64).read_to_end(&mut buffer);
        if read.map_err(gone)? < length {
            return Err(Broken::Worker);
        }
        match kind {
            DATA => sink.write_all(&buffer).map_err(Broken::Sink)?,
            DONE => {
                let text = String::from_utf8(buffer);
                return text.map(Answer::Done).map_err(|_| Broken::Worker);
            }
            FAILED => {
                let outcome = serde_json::from_slice(&buffer);
                return outcome.map(Answer::Failed).map_err(|_| Broken::Worker);
            }
            _ => return Err(Broken::Worker),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_arrives_whole_or_is_broken() {
        let mut sent = Vec::new();
        DataWriter(&mut sent).write_all(b"some data").unwrap();
        end(&mut sent, Ok("[1]".to_owned())).unwrap();
        let mut data = Vec::new();
        let answer = receive(&mut sent.as_slice(), &mut data);
        assert!(matches!(answer, Ok(Answer::Done(result)) if result == "[1]"));
        assert_eq!(data, b"some data");
        for length in 0..sent.len() {
            let answer = receive(&mut &sent[..length], &mut io::sink());
            assert!(matches!(answer, Err(Broken::Worker)), "{length}");
        }
        let outcome = Outcome::new(OutcomeKind::Input, "no");
        let mut sent = Vec::new();
        end(&mut sent, Err(outcome.clone())).unwrap();
        let answer = receive(&mut sent.as_slice(), &mut io::sink());
        assert!(matches!(answer, Ok(Answer::Failed(found)) if found == outcome));
        let odd = [b'x', 0, 0, 0, 0, b'd', 255, 255, 255, 255];
        for odd in [&odd[..], &odd[5..]] {
            assert!(receive(&mut &*odd, &mut io::sink()).is_err());
        }
    }
}
