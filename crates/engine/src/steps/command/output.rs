//! The output of a command: read from its pipe without blocking the command, and limited to head and tail.

use std::collections::VecDeque;
use std::io::{self, PipeReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::processes::kernel_id;
use super::stop::Deadline;

/// The event within the given time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OutputEvent {
    Quiet,
    /// Output, which was written to the log.
    Output,
    /// The output is at its end and the leader has ended.
    LeaderEnded,
}

enum Message {
    Output(Vec<u8>),
    Closed,
    LeaderEnded,
}

/// Copies the output of one command to its log.
///
/// A thread reads the pipe, because a daemon may keep it open for any time. The thread then ends with the daemon, or at its
/// next output.
pub(super) struct OutputReader<'a> {
    messages: Receiver<Message>,
    closed: bool,
    log: Capped<'a>,
    live: &'a dyn Fn(&[u8]),
}

impl<'a> OutputReader<'a> {
    /// Reads `pipe`, and then waits for the end of the process `leader` without reaping it.
    pub(super) fn read(
        pipe: PipeReader,
        leader: u32,
        log: &'a mut dyn Write,
        cap: u64,
        live: &'a dyn Fn(&[u8]),
    ) -> io::Result<OutputReader<'a>> {
        let (sender, messages) = sync_channel(16);
        std::thread::Builder::new()
            .name("command output".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || forward(pipe, leader, &sender))?;
        Ok(OutputReader {
            messages,
            closed: false,
            log: Capped::new(log, cap),
            live,
        })
    }

    /// Waits for one event, up to `time`.
    pub(super) fn pump(&mut self, time: Duration) -> OutputEvent {
        match self.messages.recv_timeout(time) {
            Ok(Message::Output(bytes)) => {
                self.log.write(&bytes);
                (self.live)(&bytes);
                OutputEvent::Output
            }
            Ok(Message::Closed) => {
                self.closed = true;
                OutputEvent::Output
            }
            Ok(Message::LeaderEnded) => OutputEvent::LeaderEnded,
            Err(RecvTimeoutError::Timeout) => OutputEvent::Quiet,
            Err(RecvTimeoutError::Disconnected) => {
                if !self.closed {
                    self.closed = true;
                    return OutputEvent::Output;
                }
                // The caller waits for something else.
                std::thread::sleep(time);
                OutputEvent::Quiet
            }
        }
    }

    /// Copies output for this time.
    pub(super) fn pump_for(&mut self, time: Duration) {
        let end = Deadline::after(time);
        while !end.is_over() {
            self.pump(end.left());
        }
    }

    /// Copies the rest, up to the end of the output or until it was silent for `silence` (at most ten times as long in total).
    pub(super) fn drain(&mut self, silence: Duration) {
        let end = Deadline::after(silence * 10);
        while !self.closed && !end.is_over() {
            if self.pump(silence) == OutputEvent::Quiet {
                return;
            }
        }
    }

    /// Ends the log.
    pub(super) fn finish(self) -> io::Result<()> {
        self.log.finish()
    }
}

fn forward(mut pipe: PipeReader, leader: u32, sender: &SyncSender<Message>) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                if sender
                    .send(Message::Output(buffer[..length].to_vec()))
                    .is_err()
                {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    if sender.send(Message::Closed).is_err() {
        return;
    }
    if let Some(pid) = kernel_id(leader) {
        // Any result will do: an error means that the process has ended and was reaped.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
    }
    let _ = sender.send(Message::LeaderEnded);
}

/// A log of limited size: the head is written at once, the tail is kept until the end.
struct Capped<'a> {
    log: &'a mut dyn Write,
    head_left: u64,
    tail_size: u64,
    tail: VecDeque<u8>,
    left_out: u64,
    ends_line: bool,
    error: Option<io::Error>,
}

impl<'a> Capped<'a> {
    fn new(log: &'a mut dyn Write, cap: u64) -> Capped<'a> {
        let head_left = cap.div_ceil(2);
        Capped {
            log,
            head_left,
            tail_size: cap - head_left,
            tail: VecDeque::new(),
            left_out: 0,
            ends_line: true,
            error: None,
        }
    }

    /// Writes bytes. An error of the log is kept until the end, so that the command does not hang.
    fn write(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(
            bytes
                .len()
                .min(usize::try_from(self.head_left).unwrap_or(usize::MAX)),
        );
        self.head_left -= head.len() as u64;
        self.put(head);
        let size = usize::try_from(self.tail_size).unwrap_or(usize::MAX);
        let kept = &rest[rest.len().saturating_sub(size)..];
        let pushed_out = (self.tail.len() + kept.len()).saturating_sub(size);
        self.tail.drain(..pushed_out);
        self.tail.extend(kept);
        self.left_out += (pushed_out + rest.len() - kept.len()) as u64;
    }

    fn put(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.ends_line = *last == b'\n';
            if self.error.is_none() {
                self.error = self.log.write_all(bytes).err();
            }
        }
    }

    fn finish(mut self) -> io::Result<()> {
        if self.left_out > 0 {
            let line_end = if self.ends_line { "" } else { "\n" };
            self.put(
                format!(
                    "{line_end}[milepost: {} bytes left out here]\n",
                    self.left_out
                )
                .as_bytes(),
            );
        }
        let tail = std::mem::take(&mut self.tail);
        let (first, second) = tail.as_slices();
        self.put(first);
        self.put(second);
        match self.error {
            Some(error) => Err(error),
            None => self.log.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Capped;

    fn capped(cap: u64, pieces: &[&[u8]]) -> Vec<u8> {
        let mut log = Vec::new();
        let mut capped = Capped::new(&mut log, cap);
        for piece in pieces {
            capped.write(piece);
        }
        capped.finish().unwrap();
        log
    }

    #[test]
    fn all_of_it_up_to_the_cap() {
        assert_eq!(capped(10, &[b"01234", b"56789"]), b"0123456789");
        assert_eq!(capped(10, &[b"0123456789"]), b"0123456789");
        assert_eq!(capped(10, &[]), b"");
    }

    #[test]
    fn head_and_tail_beyond_it() {
        let expected = b"01234\n[milepost: 3 bytes left out here]\n89abc";
        assert_eq!(capped(10, &[b"0123456789abc"]), expected);
        assert_eq!(capped(10, &[b"012", b"345", b"6789", b"abc"]), expected);
        assert_eq!(
            capped(3, &[b"a\nbcde"]),
            b"a\n[milepost: 3 bytes left out here]\ne"
        );
        assert_eq!(
            capped(0, &[b"a\xff"]),
            b"[milepost: 2 bytes left out here]\n"
        );
    }
}
