//! Where each record that matters is: twelve bytes per record, however long it is.

use super::geometry::Positions;
use super::open::{OpenedModel, line};
use super::schema::{Classes, IfcClass, Role};
use super::step::{self, EntityScanner};
use super::stop::{Interrupt, Stop};
use std::collections::HashSet;

/// One record: its name, its place and its class.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordEntry {
    pub(super) id: u32,
    /// The offset of its `#`, in two parts: 48 bits.
    low: u32,
    high: u16,
    pub(super) class: u16,
}

impl RecordEntry {
    fn new(id: u32, offset: usize, class: u16) -> Self {
        Self {
            id,
            low: offset as u32,
            high: (offset as u64 >> 32) as u16,
            class,
        }
    }

    pub(super) fn offset(self) -> usize {
        (u64::from(self.high) << 32 | u64::from(self.low)) as usize
    }
}

/// Records by name: sorted, with the first of every `1 << shift` names, so that a search stays in a few lines of cache.
pub(super) struct Index {
    entries: Vec<RecordEntry>,
    first: Vec<u32>,
    shift: u32,
}

impl Index {
    /// Sorts `entries`; of several records with one name, the first in the file stays. Tells how many were left out.
    fn build(mut entries: Vec<RecordEntry>) -> (Self, usize) {
        entries.shrink_to_fit();
        sort(&mut entries);
        let before = entries.len();
        entries.dedup_by_key(|entry| entry.id);
        let doubled = before - entries.len();
        let largest = entries.last().map_or(0, |entry| entry.id);
        // About as many buckets as a sixteenth of the records.
        let mut shift = 4;
        while u64::from(largest) >> shift > (entries.len() as u64 / 16).max(16) {
            shift += 1;
        }
        let mut first = vec![0_u32; (largest >> shift) as usize + 2];
        for entry in &entries {
            first[(entry.id >> shift) as usize + 1] += 1;
        }
        let mut sum = 0;
        for slot in &mut first {
            sum += *slot;
            *slot = sum;
        }
        (
            Self {
                entries,
                first,
                shift,
            },
            doubled,
        )
    }

    pub(super) fn get(&self, id: u32) -> Option<RecordEntry> {
        let bucket = (id >> self.shift) as usize;
        let (start, end) = (*self.first.get(bucket)?, *self.first.get(bucket + 1)?);
        let entries = &self.entries[start as usize..end as usize];
        entries
            .binary_search_by_key(&id, |entry| entry.id)
            .ok()
            .map(|at| entries[at])
    }

    /// Returns all records, by name.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = RecordEntry> {
        self.entries.iter().copied()
    }
}

/// Most files write their records by name already, so this costs one comparison for each.
fn sort(entries: &mut [RecordEntry]) {
    let key = |entry: &RecordEntry| (entry.id, entry.offset());
    if !entries.is_sorted_by_key(key) {
        entries.sort_unstable_by_key(key);
    }
}

/// A scanned model.
pub(super) struct Model<'a> {
    pub(super) bytes: &'a [u8],
    classes: Classes<'a>,
    pub(super) index: Index,
    /// In file order.
    pub(super) elements: Vec<RecordEntry>,
    /// Features and virtual elements, in file order.
    pub(super) openings: Vec<RecordEntry>,
    /// By name.
    pub(super) projects: Vec<RecordEntry>,
    /// Records that do not have the attributes of their class: the position of a value in them is unknown.
    pub(super) misfits: HashSet<u32>,
    /// The longest record, beyond which none is read even if its parentheses never close.
    longest: usize,
}

/// Findings of a scan that are not part of the model.
pub(super) struct Scanned<'a> {
    pub(super) model: Model<'a>,
    /// Relations by name; they are read once and never looked up.
    pub(super) relations: Vec<RecordEntry>,
    /// Where the records begin that could not be read.
    pub(super) malformed: Vec<usize>,
    /// Where the last whole record ends.
    pub(super) end: usize,
    /// Records whose names are too large.
    pub(super) oversized: usize,
    /// Records whose names another record has.
    pub(super) doubled: usize,
    pub(super) undecoded: NamedRecords,
    /// Those of [`Model::misfits`].
    pub(super) misfits: NamedRecords,
}

/// The most records that one warning names.
const NAMED: usize = 3;

/// Records that one warning is about: their number, and the first.
#[derive(Default)]
pub(super) struct NamedRecords {
    pub(super) count: usize,
    pub(super) first: Vec<RecordEntry>,
}

impl NamedRecords {
    pub(super) fn add(&mut self, entry: RecordEntry) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(entry);
        }
    }
}

impl<'a> Model<'a> {
    /// Reads through all records of `opened` and keeps those that matter; `positions` receives all.
    pub(super) fn scan(
        opened: &'a OpenedModel,
        mut classes: Classes<'a>,
        mut positions: Option<&mut Positions>,
        interrupt: &Interrupt,
    ) -> Result<Scanned<'a>, Stop> {
        let (bytes, start): (&[u8], usize) = (&opened.bytes, opened.data);
        // Text of another encoding may have lost bytes anywhere, other text only where it has an escape.
        let is_converted = opened.encoding.is_some();
        let (mut undecoded, mut unfit) = (NamedRecords::default(), NamedRecords::default());
        let mut misfits = HashSet::new();
        let mut scanner = EntityScanner::new_at(bytes, start);
        let (mut entries, mut relations) = (Vec::new(), Vec::new());
        let (mut elements, mut openings, mut projects) = (Vec::new(), Vec::new(), Vec::new());
        let (mut longest, mut last) = (0, start);
        while let Some((id, keyword, begin, end)) = scanner.next_entity() {
            last = end;
            interrupt.step()?;
            if let Some(positions) = &mut positions {
                positions.push(id, begin, end);
            }
            let (class, role) = classes.count(keyword);
            if role == Role::Unneeded || (role == Role::Shape && positions.is_none()) {
                continue;
            }
            let (entry, record) = (RecordEntry::new(id, begin, class), &bytes[begin..end]);
            if role.has_figures() && !classes.get(class).fits(record) {
                misfits.insert(id);
                unfit.add(entry);
            }
            if role == Role::Shape {
                continue;
            }
            longest = longest.max(end - begin);
            match role {
                Role::Relation(_) => {
                    relations.push(entry);
                    continue;
                }
                Role::Element => elements.push(entry),
                Role::Opening => openings.push(entry),
                Role::Project => projects.push(entry),
                _ => {}
            }
            if (is_converted || record.contains(&b'\\')) && step::has_undecoded_text(record) {
                undecoded.add(entry);
            }
            entries.push(entry);
        }
        sort(&mut relations);
        sort(&mut projects);
        let (index, doubled) = Index::build(entries);
        let model = Self {
            bytes,
            classes,
            index,
            elements,
            openings,
            projects,
            misfits,
            longest,
        };
        let malformed = scanner.malformed_record_starts().to_vec();
        Ok(Scanned {
            model,
            relations,
            malformed,
            end: last,
            oversized: scanner.skipped_oversized_ids(),
            doubled,
            undecoded,
            misfits: unfit,
        })
    }

    pub(super) fn class(&self, entry: RecordEntry) -> &IfcClass {
        self.classes.get(entry.class)
    }

    pub(super) fn classes(&self) -> impl Iterator<Item = &IfcClass> {
        self.classes.iter()
    }

    /// Returns the text that begins with the record.
    pub(super) fn text(&self, entry: RecordEntry) -> &'a [u8] {
        let begin = entry.offset();
        &self.bytes[begin..self.bytes.len().min(begin + self.longest)]
    }

    /// The role and the text of the record that is called `id`, if it matters.
    pub(super) fn find(&self, id: u32) -> Option<(Role, &'a [u8])> {
        let entry = self.index.get(id)?;
        Some((self.class(entry).role, self.text(entry)))
    }

    /// Returns the number that a value of the record `id` states.
    pub(super) fn number(&self, id: u32, value: &[u8]) -> Option<f64> {
        let is_fit = !self.misfits.contains(&id);
        is_fit.then(|| step::number(value)).flatten()
    }

    /// Names a record for a message: `#41 (IfcWall, line 12)`.
    pub(super) fn named(&self, entry: RecordEntry) -> String {
        let line = line(self.bytes, entry.offset());
        format!("#{} ({}, line {line})", entry.id, self.class(entry).name)
    }

    pub(super) fn role(&self, id: u32) -> Option<Role> {
        self.index.get(id).map(|entry| self.class(entry).role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_48_bits_survive() {
        let entry = RecordEntry::new(7, 0x1234_5678_9abc, 3);
        assert_eq!(
            (entry.id, entry.offset(), entry.class),
            (7, 0x1234_5678_9abc, 3)
        );
        assert_eq!(size_of::<RecordEntry>(), 12);
    }

    #[test]
    fn records_are_found_whatever_their_names_and_order() {
        for ids in [
            vec![3, 1, 2],
            vec![u32::MAX, 5],
            (1..5000).map(|n| n * 977).collect(),
            vec![0],
            vec![],
        ] {
            let entries = ids
                .iter()
                .enumerate()
                .map(|(at, &id)| RecordEntry::new(id, at, 0))
                .collect();
            let (index, doubled) = Index::build(entries);
            for (at, &id) in ids.iter().enumerate() {
                assert_eq!(index.get(id).map(RecordEntry::offset), Some(at), "{id}");
            }
            assert_eq!(doubled, 0);
            assert!(index.get(4).is_none());
            assert!(index.get(u32::MAX - 1).is_none());
        }
    }

    #[test]
    fn of_two_records_with_one_name_the_first_stays() {
        let (index, doubled) =
            Index::build(vec![RecordEntry::new(1, 50, 0), RecordEntry::new(1, 90, 0)]);
        assert_eq!(
            (index.get(1).map(RecordEntry::offset), doubled),
            (Some(50), 1)
        );
    }
}
