//! Checks the records of calls, their requests and answers, and the answers that are kept.

use super::audit::Audit;
use super::findings::Severity;
use crate::ops::change::calls_in_use::CallsInUse;
use crate::ops::project::error::OpsError;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::base::words::count;
use milepost_core::model::batched::CallId;
use milepost_core::model::state::State;
use milepost_store::store::answers::answers_of_calls;
use milepost_store::store::calls::CallRecord;
use milepost_store::store::files::digest_of;
use milepost_store::store::{calls, checksummed, layout};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The most ranges of numbers of calls in a finding.
const RANGES: usize = 5;

/// A call, as the journal lists it.
pub(super) struct JournaledCall {
    pub(super) call: CallId,
    /// The digests of request and answer.
    pub(super) digests: (Digest, Digest),
}

impl Audit<'_> {
    /// Compares every line of the records of calls, answers and provider batches with its checksum, each request and answer with its
    /// digest, the calls with those of the journal, and the answers with those that recorded outputs contain.
    pub(super) fn calls(
        &mut self,
        journaled: &[JournaledCall],
        state: Option<&State>,
    ) -> Result<(), OpsError> {
        let layout = &self.opened.workspace.layout;
        for folder in [
            layout.calls(),
            layout.batches(),
            layout.answers(),
            layout::answers(&self.opened.project),
        ] {
            let files = checksummed::files(&folder);
            for path in files.map_err(OpsError::unreadable(&folder.display()))? {
                let bytes = milepost_store::store::read::bytes(&path);
                let bytes = bytes.map_err(OpsError::unreadable(&path.display()))?;
                self.checked.files += 1;
                self.checked.bytes += bytes.len() as u64;
                let inside = self.inside(&path);
                let place = match inside {
                    Some(_) => String::new(),
                    None => format!("{}: ", path.display()),
                };
                for line in checksummed::lines(&bytes).filter_map(Result::err) {
                    let message = format!("{place}line {line} does not match its checksum");
                    self.add(Severity::Modified, None, None, inside.as_ref(), message);
                }
            }
        }
        let folder = layout.calls();
        let (records, unreadable) =
            calls::read_all(&folder, &|_| true).map_err(OpsError::unreadable(&folder.display()))?;
        // Damaged lines are found above.
        let newer = unreadable.iter().filter(|call| call.line == 0);
        let newer: BTreeSet<&Path> = newer.map(|call| call.path.as_path()).collect();
        for path in &newer {
            let inside = self.inside(path);
            let message = "a newer Milepost wrote records of calls: they are not checked";
            self.add(
                Severity::Note,
                None,
                None,
                inside.as_ref(),
                message.to_owned(),
            );
        }
        let used = state.map(|state| CallsInUse::of(layout, state)).transpose();
        let used = used.map_err(OpsError::unreadable(&folder.display()))?;
        let is_used = |id: &CallId| {
            used.as_ref()
                .is_some_and(|used| used.has(&id.run, id.number))
        };
        let mut gone = 0;
        for (id, call) in &records {
            let answer = call
                .response
                .as_ref()
                .map(|response| ("answer", response.raw));
            for (what, recorded) in [("request", call.sent.request)].into_iter().chain(answer) {
                let path = layout::call(&id.run, id.number, what);
                let found = digest_of(&layout.at(&path)).map_err(OpsError::unreadable(&path))?;
                let Some((digest, size)) = found else {
                    if is_used(id) {
                        let message = format!("the {what} of a call in use is missing");
                        let (stage, batch) = (Some(&*call.sent.stage), Some(&*call.sent.batch));
                        self.add(Severity::Missing, stage, batch, Some(&path), message);
                    } else {
                        gone += 1;
                    }
                    continue;
                };
                self.checked.files += 1;
                self.checked.bytes += size;
                if digest != recorded {
                    let message = super::files::differs(recorded, digest);
                    let (stage, batch) = (&call.sent.stage, &call.sent.batch);
                    self.add(
                        Severity::Modified,
                        Some(stage),
                        Some(batch),
                        Some(&path),
                        message,
                    );
                }
            }
        }
        if gone > 0 {
            let message = format!(
                "{} missing: `milepost gc` removes old ones that nothing uses",
                count(
                    gone,
                    "request or answer of calls is",
                    "requests and answers of calls are"
                )
            );
            self.note(None, None, message);
        }
        self.journaled(journaled, &records, &newer);
        if let Some(state) = state {
            self.kept(state)?;
        }
        Ok(())
    }

    /// Finds calls of the journal without their records, by file.
    fn journaled(
        &mut self,
        journaled: &[JournaledCall],
        records: &BTreeMap<CallId, CallRecord>,
        newer: &BTreeSet<&Path>,
    ) {
        let mut wrong: BTreeMap<(RelPath, Severity), Vec<u64>> = BTreeMap::new();
        for JournaledCall { call, digests } in journaled {
            let path = layout::call_record(&call.run);
            let record = records.get(call);
            let recorded = record.and_then(|record| {
                let response = record.response.as_ref()?;
                Some((record.sent.request, response.raw))
            });
            let is_newer = newer.contains(self.opened.workspace.layout.at(&path).as_path());
            let severity = match (recorded, record) {
                (Some(recorded), _) if recorded == *digests => continue,
                (None, _) if is_newer => continue,
                (Some(_), _) => Severity::Modified,
                (None, _) => Severity::Missing,
            };
            wrong.entry((path, severity)).or_default().push(call.number);
        }
        for ((path, severity), numbers) in wrong {
            let calls = count(numbers.len() as u64, "call", "calls");
            let some = some_numbers(&numbers);
            let message = match severity {
                Severity::Missing => {
                    format!("the journal lists {calls} whose records are missing: {some}")
                }
                _ => format!("the journal lists {calls} with other digests: {some}"),
            };
            self.add(severity, None, None, Some(&path), message);
        }
    }

    /// Finds answers that recorded outputs contain, and that the workspace no longer has.
    fn kept(&mut self, state: &State) -> Result<(), OpsError> {
        let folder = self.opened.workspace.layout.answers();
        let kept = answers_of_calls(&folder).map_err(OpsError::unreadable(&folder.display()))?;
        let path = RelPath::of_parts([layout::OWN, "answers"]);
        for (stage, known) in &state.stages {
            let mut needed: BTreeMap<(&str, u64), u64> = BTreeMap::new();
            let records = known
                .batches
                .values()
                .filter_map(|batch| batch.record.as_ref());
            for from in records.flat_map(|record| &record.answers) {
                let most = needed.entry((&from.run, from.call)).or_default();
                *most = from.answers.max(*most);
            }
            let lost = needed.iter().filter_map(|((run, call), needed)| {
                let found = kept.get(&((*run).to_owned(), *call)).copied();
                needed
                    .checked_sub(found.unwrap_or(0))
                    .filter(|lost| *lost > 0)
            });
            let (lost, calls) = lost.fold((0, 0), |(lost, calls), more| (lost + more, calls + 1));
            if lost > 0 {
                let message = format!(
                    "{} missing, of {}: restore the folder from a copy; without it, a rebuild asks again",
                    count(
                        lost,
                        "answer that its outputs contain is",
                        "answers that its outputs contain are"
                    ),
                    count(calls, "call", "calls")
                );
                self.add(Severity::Missing, Some(stage), None, Some(&path), message);
            }
        }
        Ok(())
    }
}

/// Returns the first numbers, with those that follow one another as ranges.
fn some_numbers(numbers: &[u64]) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let shown = ranges
        .iter()
        .take(RANGES)
        .map(|(first, last)| match last - first {
            0 => format!("{first}"),
            _ => format!("{first} to {last}"),
        });
    let shown = shown.collect::<Vec<_>>().join(", ");
    if ranges.len() > RANGES {
        format!("{shown} and more")
    } else {
        shown
    }
}
