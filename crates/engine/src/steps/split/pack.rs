//! Packs questions into batches, and keeps questions in their batches.
//!
//! A question that was in a batch stays there. New questions go into the one batch with the most room, then into new batches. A
//! group of new questions starts in one leading batch, which contains at least one element of each; elements beyond the limit
//! follow in batches without other questions. So N new questions first span at most ⌈N / size⌉ + 1 batches.

use std::collections::BTreeMap;

/// Limits of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchLimits {
    pub(crate) questions: u64,
    pub(crate) elements: u64,
}

/// Elements of one question in one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) batch: u64,
    pub(crate) elements: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Load {
    questions: u64,
    elements: u64,
}

struct Packing {
    limits: BatchLimits,
    loads: BTreeMap<u64, Load>,
    next: u64,
}

/// Returns for each question the slots that its elements fill in order. `counts` are the numbers of elements by question;
/// `before` are the slots of questions that were packed earlier.
pub(crate) fn pack(counts: &[u64], before: &[Vec<Slot>], limits: BatchLimits) -> Vec<Vec<Slot>> {
    let last = before
        .iter()
        .flatten()
        .map(|slot| slot.batch)
        .max()
        .unwrap_or(0);
    let mut packing = Packing {
        limits,
        loads: BTreeMap::new(),
        next: last + 1,
    };
    let mut slots: Vec<Vec<Slot>> = vec![Vec::new(); counts.len()];
    // Existing slots come first, then growth, so that growth displaces nothing.
    for (question, old) in before.iter().enumerate() {
        let mut left = counts[question];
        for slot in old {
            let elements = slot.elements.min(left);
            if elements > 0 {
                packing.put(&mut slots[question], slot.batch, elements);
                left -= elements;
            }
        }
    }
    for (question, old) in before.iter().enumerate() {
        if !old.is_empty() {
            let placed: u64 = slots[question].iter().map(|slot| slot.elements).sum();
            packing.grow(&mut slots[question], counts[question] - placed);
        }
    }
    let fresh: Vec<usize> = (0..counts.len())
        .filter(|&question| before[question].is_empty() && counts[question] > 0)
        .collect();
    packing.add(&fresh, counts, &mut slots);
    slots
}

impl Packing {
    fn put(&mut self, slots: &mut Vec<Slot>, batch: u64, elements: u64) {
        let load = self.loads.entry(batch).or_default();
        load.elements += elements;
        match slots.iter_mut().find(|slot| slot.batch == batch) {
            Some(slot) => slot.elements += elements,
            None => {
                load.questions += 1;
                slots.push(Slot { batch, elements });
            }
        }
    }

    fn room(&self, batch: u64) -> Load {
        let load = self.loads.get(&batch).copied().unwrap_or_default();
        Load {
            questions: self.limits.questions.saturating_sub(load.questions),
            elements: self.limits.elements.saturating_sub(load.elements),
        }
    }

    fn new_batch(&mut self) -> u64 {
        let batch = self.next;
        self.next += 1;
        self.loads.insert(batch, Load::default());
        batch
    }

    /// Adds elements of a question that has slots: first to its own batches, then to batches with room, then to new ones.
    fn grow(&mut self, slots: &mut Vec<Slot>, mut left: u64) {
        for batch in slots.iter().map(|slot| slot.batch).collect::<Vec<_>>() {
            let elements = left.min(self.room(batch).elements);
            if elements > 0 {
                self.put(slots, batch, elements);
                left -= elements;
            }
        }
        while left > 0 {
            let batch = self.roomiest().unwrap_or_else(|| self.new_batch());
            let elements = left.min(self.room(batch).elements.max(1));
            self.put(slots, batch, elements);
            left -= elements;
        }
    }

    /// Returns the batch with room for most questions; of equal ones the lowest.
    fn roomiest(&self) -> Option<u64> {
        let open = self.loads.keys().filter(|&&batch| {
            let room = self.room(batch);
            room.questions > 0 && room.elements > 0
        });
        open.copied().max_by_key(|&batch| {
            let room = self.room(batch);
            (room.questions.min(room.elements), std::cmp::Reverse(batch))
        })
    }

    fn add(&mut self, fresh: &[usize], counts: &[u64], slots: &mut [Vec<Slot>]) {
        let mut rest = fresh;
        let mut leading = self.roomiest();
        while !rest.is_empty() {
            let batch = leading.take().unwrap_or_else(|| self.new_batch());
            let room = self.room(batch);
            let take = (room.questions.min(room.elements).max(1) as usize).min(rest.len());
            let (group, later) = rest.split_at(take);
            rest = later;
            for &question in group {
                self.put(&mut slots[question], batch, 1);
            }
            let mut batch = batch;
            for &question in group {
                let mut left = counts[question] - 1;
                while left > 0 {
                    let free = self.room(batch).elements;
                    if free == 0 {
                        batch = self.new_batch();
                        continue;
                    }
                    let elements = left.min(free);
                    self.put(&mut slots[question], batch, elements);
                    left -= elements;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: BatchLimits = BatchLimits {
        questions: 3,
        elements: 10,
    };

    fn fresh(counts: &[u64]) -> Vec<Vec<Slot>> {
        pack(counts, &vec![Vec::new(); counts.len()], LIMITS)
    }

    #[test]
    fn fills_batches_in_order() {
        let slots = fresh(&[1, 2, 1, 4]);
        let batches: Vec<u64> = slots.iter().map(|slots| slots[0].batch).collect();
        assert_eq!(batches, [1, 1, 1, 2]);
    }

    #[test]
    fn what_overflows_follows_in_batches_that_ask_nothing_new() {
        let slots = fresh(&[25, 1, 1, 1]);
        assert_eq!(
            slots[0],
            [
                Slot {
                    batch: 1,
                    elements: 8
                },
                Slot {
                    batch: 2,
                    elements: 10
                },
                Slot {
                    batch: 3,
                    elements: 7
                }
            ]
        );
        assert_eq!(
            (slots[1][0].batch, slots[2][0].batch, slots[3][0].batch),
            (1, 1, 4)
        );
    }

    #[test]
    fn a_new_question_goes_where_there_is_room_and_nothing_else_moves() {
        let first = fresh(&[1, 1, 1, 1]);
        let mut before = first.clone();
        before.push(Vec::new());
        let second = pack(&[1, 1, 1, 1, 1], &before, LIMITS);
        assert_eq!(second[..4], first[..]);
        assert_eq!(
            second[4],
            [Slot {
                batch: 2,
                elements: 1
            }]
        );
    }

    proptest! {
        #[test]
        fn every_element_has_its_place_within_limits(
            first in prop::collection::vec(0_u64..40, 0..30),
            second in prop::collection::vec(0_u64..40, 0..30),
            questions in 1_u64..6,
            elements in 1_u64..25,
        ) {
            let limits = BatchLimits { questions, elements };
            let before = pack(&first, &vec![Vec::new(); first.len()], limits);
            let mut history = before;
            history.resize(second.len().max(first.len()), Vec::new());
            let mut counts = second.clone();
            counts.resize(history.len(), 0);
            let slots = pack(&counts, &history, limits);
            let mut loads: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
            for (question, slots) in slots.iter().enumerate() {
                prop_assert_eq!(slots.iter().map(|slot| slot.elements).sum::<u64>(), counts[question]);
                for slot in slots {
                    let load = loads.entry(slot.batch).or_default();
                    load.0 += 1;
                    load.1 += slot.elements;
                }
            }
            for (batch, (asked, held)) in loads {
                prop_assert!(asked <= questions && held <= elements, "batch {} has {} questions, {} elements", batch, asked, held);
            }
            let asked_first: std::collections::BTreeSet<u64> = slots.iter().enumerate()
                .filter(|(question, _)| history[*question].is_empty())
                .filter_map(|(_, slots)| slots.first().map(|slot| slot.batch)).collect();
            let fresh = (0..counts.len()).filter(|&q| history[q].is_empty() && counts[q] > 0).count() as u64;
            let per_batch = questions.min(elements);
            prop_assert!(asked_first.len() as u64 <= fresh.div_ceil(per_batch) + 1);
        }
    }
}
