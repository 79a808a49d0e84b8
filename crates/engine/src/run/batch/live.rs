//! Splits the output of programs into whole lines: for the log of an attempt, and for observers that show it as it arrives.

use milepost_core::base::redact::Redactor;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The longest line that is held back until it ends. A longer line is passed on up to its last space.
const LINE: usize = 1 << 16;

/// The most bytes that wait to be shown. Beyond them, output is left out.
const WAITING: usize = 1 << 20;

/// Output of a program, held back until lines are whole, so that no key is cut in two.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    held: Vec<u8>,
}

impl LineBuffer {
    /// Adds output, and returns the lines that are whole now; they may be empty.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let after = |place: usize| place + 1;
        let end = self.held.iter().rposition(|&byte| byte == b'\n').map(after);
        let end = match end {
            None if self.held.len() > LINE => {
                let space = self.held.iter().rposition(u8::is_ascii_whitespace);
                space.map_or(self.held.len(), after)
            }
            end => end.unwrap_or(0),
        };
        self.held.drain(..end).collect()
    }

    /// Returns the rest.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

/// Limits how much output of all batches waits to be shown, because a program may print faster than a terminal shows it.
#[derive(Debug, Default)]
pub(crate) struct WaitingOutput(AtomicUsize);

impl WaitingOutput {
    /// Adds output; returns false if too much waits.
    pub(crate) fn add(&self, bytes: usize) -> bool {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        let fits = before < WAITING;
        if !fits {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }

    /// Removes output that was shown.
    pub(crate) fn shown(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The output of one batch on its way to the observer.
#[derive(Debug)]
pub(crate) struct LiveOutput<'a> {
    redactor: &'a Redactor,
    waiting: &'a WaitingOutput,
    lines: LineBuffer,
    left_out: usize,
}

impl<'a> LiveOutput<'a> {
    pub(crate) fn new(redactor: &'a Redactor, waiting: &'a WaitingOutput) -> Self {
        Self {
            redactor,
            waiting,
            lines: LineBuffer::default(),
            left_out: 0,
        }
    }

    /// Adds output, and returns what can be shown now, without keys.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<String> {
        let lines = self.lines.push(bytes);
        self.pass(lines)
    }

    /// Returns what is left after the end of a program.
    pub(crate) fn rest(&mut self) -> Option<String> {
        let lines = self.lines.rest();
        self.pass(lines)
    }

    fn pass(&mut self, lines: Vec<u8>) -> Option<String> {
        if lines.is_empty() {
            return None;
        }
        let mut text = match self.left_out {
            0 => String::new(),
            bytes => format!("[milepost: {bytes} bytes left out here]\n"),
        };
        text.push_str(&String::from_utf8_lossy(&self.redactor.bytes(&lines)));
        if !self.waiting.add(text.len()) {
            self.left_out += lines.len();
            return None;
        }
        self.left_out = 0;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_and_without_keys() {
        let redactor = Redactor::new(["opensesame".to_owned()]);
        let waiting = WaitingOutput::default();
        let mut output = LiveOutput::new(&redactor, &waiting);
        assert_eq!(output.push(b"a\nkey open"), Some("a\n".to_owned()));
        assert_eq!(output.push(b"sesame"), None);
        assert_eq!(
            output.push(b" b\nc\nd"),
            Some("key [key] b\nc\n".to_owned())
        );
        assert_eq!(output.rest(), Some("d".to_owned()));
        assert_eq!(output.rest(), None);
        let long = vec![b'x'; LINE + 1];
        assert_eq!(output.push(&long).as_deref().map(str::len), Some(LINE + 1));
    }

    #[test]
    fn what_cannot_be_shown_in_time_is_left_out_and_counted() {
        let redactor = Redactor::default();
        let waiting = WaitingOutput::default();
        let mut output = LiveOutput::new(&redactor, &waiting);
        let mut lines = vec![b'x'; WAITING];
        lines.push(b'\n');
        let shown = output.push(&lines).unwrap();
        assert_eq!(output.push(b"lost\n"), None);
        assert_eq!(output.push(b"lost too\n"), None);
        waiting.shown(shown.len());
        assert_eq!(
            output.push(b"b\n"),
            Some("[milepost: 14 bytes left out here]\nb\n".to_owned())
        );
    }
}
