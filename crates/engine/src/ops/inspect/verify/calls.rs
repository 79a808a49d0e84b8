//! Checks the records of calls, their requests and answers, and the answers that are kept.

use super::audit::Audit;
use super::findings::Severity;
use crate::ops::project::error::OpsError;
use milepost_core::base::digest::Digest;
use milepost_core::model::batched::CallId;
use milepost_store::store::files::digest_of;
use milepost_store::store::{calls, checksummed, layout};
use std::collections::BTreeSet;
use std::path::Path;

/// A call, as the journal lists it.
pub(super) struct JournaledCall {
    pub(super) call: CallId,
    /// The digests of request and answer.
    pub(super) digests: (Digest, Digest),
}

impl Audit<'_> {
    /// Compares every line of the records of calls, answers and provider batches with its checksum, each request and answer with its
    /// digest, and the calls with those of the journal.
    pub(super) fn calls(&mut self, journaled: &[JournaledCall]) -> Result<(), OpsError> {
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
                    self.add(Severity::Altered, None, None, inside.as_ref(), message);
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
        let mut gone = 0;
        for (id, call) in &records {
            let answer = call.heard.as_ref().map(|heard| ("answer", heard.raw));
            for (what, recorded) in [("request", call.sent.request)].into_iter().chain(answer) {
                let path = layout::call(&id.run, id.number, what);
                let found = digest_of(&layout.at(&path)).map_err(OpsError::unreadable(&path))?;
                let Some((digest, size)) = found else {
                    gone += 1;
                    continue;
                };
                self.checked.files += 1;
                self.checked.bytes += size;
                if digest != recorded {
                    let message = super::files::differs(recorded, digest);
                    let (stage, batch) = (&call.sent.stage, &call.sent.batch);
                    self.add(
                        Severity::Altered,
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
                "{gone} requests and answers of calls are missing: `milepost gc` removes old ones"
            );
            self.note(None, None, message);
        }
        for JournaledCall { call, digests } in journaled {
            let record = records.get(call);
            let answer = record.and_then(|record| record.heard.as_ref());
            let recorded = record.zip(answer);
            let recorded = recorded.map(|(record, heard)| (record.sent.request, heard.raw));
            let CallId { run, number } = call;
            let path = layout::call_record(run);
            let is_newer = recorded.is_none() && newer.contains(layout.at(&path).as_path());
            if recorded != Some(*digests) && !is_newer {
                let message = format!("the journal lists call {number}, which has no such record");
                self.add(Severity::Altered, None, None, Some(&path), message);
            }
        }
        Ok(())
    }
}
