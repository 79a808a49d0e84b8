//! Reads selected records of the journal, without parsing the others.

use super::JournalError;
use super::read::segments;
use crate::store::layout::Layout;
use crate::store::read;
use memchr::memmem::Finder;
use milepost_core::model::event::Record;

/// Passes every record whose line contains one of the texts to the caller, in order. The chain of digests is not checked, and a
/// line that is no record is skipped: [`super::read_all`] reports both.
///
/// # Errors
/// Fails if a segment cannot be read.
pub fn read_with(
    layout: &Layout,
    texts: &[String],
    each: &mut dyn FnMut(Record),
) -> Result<(), JournalError> {
    let finders: Vec<Finder<'_>> = texts.iter().map(Finder::new).collect();
    for number in segments(layout)? {
        let path = layout.segment(number);
        let bytes = read::bytes(&path).map_err(|source| JournalError::Read { path, source })?;
        for line in bytes.split(|byte| *byte == b'\n') {
            let is_wanted = finders.iter().any(|finder| finder.find(line).is_some());
            if is_wanted && let Ok(record) = serde_json::from_slice(line) {
                each(record);
            }
        }
    }
    Ok(())
}
