//! Reads calls by their ids. The lines of other calls are skipped unread, because their answers may be large.

use super::calls::{CallRecord, read_files};
use super::checksummed::{SEAL, files};
use crate::store::read;
use milepost_core::model::batched::CallId;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Returns calls by their ids, with the responses that later runs received. Calls that are not recorded are left out.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn read_calls(
    folder: &Path,
    ids: &BTreeSet<CallId>,
) -> io::Result<BTreeMap<CallId, CallRecord>> {
    let runs: BTreeSet<&str> = ids.iter().map(|id| id.run.as_str()).collect();
    let all = files(folder)?;
    let is_named = |path: &&std::path::PathBuf| {
        let run = path.file_stem().and_then(|stem| stem.to_str());
        run.is_some_and(|run| runs.contains(run))
    };
    let read = |paths, with_late: bool| -> io::Result<BTreeMap<CallId, CallRecord>> {
        let load = |path: &Path| lines_about(path, ids, with_late);
        let (calls, _) = read_files(paths, &load, &|_| true, true)?;
        Ok(calls)
    };
    let calls = read(all.iter().filter(is_named).cloned().collect(), false)?;
    if calls.values().all(|call| call.response.is_some()) {
        return Ok(calls);
    }
    read(all, true)
}

/// Returns the lines of a file about calls, and with `with_late` those about calls of other runs.
fn lines_about(path: &Path, ids: &BTreeSet<CallId>, with_late: bool) -> io::Result<Vec<u8>> {
    let run = path.file_stem().unwrap_or_default().to_string_lossy();
    let numbers = ids.iter().filter(|id| id.run == run);
    let numbers: BTreeSet<u64> = numbers.map(|id| id.number).collect();
    let mut file = BufReader::with_capacity(1 << 18, read::open(path)?);
    let mut kept = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        if file.read_until(b'\n', &mut line)? == 0 {
            return Ok(kept);
        }
        let is_wanted = match number_of(&line) {
            Some(number) => numbers.contains(&number),
            None => with_late,
        };
        if is_wanted {
            kept.extend_from_slice(&line);
        }
    }
}

/// Returns the number with which a line about a call of its own run begins: 12 for `{"sent":[12,`.
fn number_of(line: &[u8]) -> Option<u64> {
    let text = line.get(SEAL + 1..)?;
    let place = memchr::memchr(b':', &text[..text.len().min(32)])?;
    let number = text[place + 1..]
        .strip_prefix(b"[")
        .unwrap_or(&text[place + 1..]);
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit());
    let digits = &number[..digits.count()];
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests change what was kept")]
mod tests {
    use super::*;
    use crate::store::agents::calls::tests::{response, sent};
    use crate::store::agents::calls::{CallLog, read as read_all};
    use crate::store::disk::Disk;
    use crate::store::layout::Layout;
    use jiff::Timestamp;

    #[test]
    fn only_the_lines_of_named_calls_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        let now = Timestamp::from_second(1).unwrap();
        let id = |run: &str, number| CallId {
            run: run.to_owned(),
            number,
        };
        let mut first = CallLog::new(&Disk::real(), &layout, "01A");
        for _ in 0..12 {
            first.sent(now, &sent(1), b"").unwrap();
        }
        first.received(now, 1, &response(1), b"").unwrap();
        first.received(now, 12, &response(12), b"").unwrap();
        let mut second = CallLog::new(&Disk::real(), &layout, "01B");
        second.sent(now, &sent(1), b"").unwrap();
        second.received(now, 1, &response(2), b"").unwrap();
        second
            .received_late(now, &id("01A", 2), &response(3), b"")
            .unwrap();
        let calls = layout.calls();
        let expected = |ids: &[CallId]| {
            let mut all = read_all(&calls).unwrap();
            all.retain(|call| ids.contains(&id(&call.run, call.number)));
            all
        };
        let found = |ids: &[CallId]| {
            let found = read_calls(&calls, &ids.iter().cloned().collect()).unwrap();
            found.into_values().collect::<Vec<_>>()
        };
        // The response to 2 is in the file of the other run, and 3 has none.
        for ids in [
            vec![id("01A", 12), id("01B", 1)],
            vec![id("01A", 2)],
            vec![id("01A", 1), id("01A", 3)],
        ] {
            assert_eq!(found(&ids).len(), ids.len());
            assert_eq!(found(&ids), expected(&ids));
        }
        assert_eq!(found(&[id("01A", 13), id("01C", 1)]), []);
        // A line of another call is not even checked.
        let path = calls.join("01A.jsonl");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[0] = b'x';
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(found(&[id("01A", 1)]), []);
        assert_eq!(found(&[id("01A", 12)]).len(), 1);
    }
}
