//! Assigns batches to pages, so that one change rewrites one page.

use super::page::PieceId;
use super::text::PAGE_LINES;
use std::ops::Range;

/// A page to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlannedPage {
    pub(crate) number: u64,
    /// The number of the page that it is the continuation of.
    pub(crate) was: Option<u64>,
    /// The range of pieces on this page.
    pub(crate) pieces: Range<usize>,
}

/// Lays out pieces of these sizes, in lines, on pages. Existing pages keep their bounds, given by their first pieces. An empty page
/// is dropped. A page that is too long is split: the last one by filling, another one in equal parts. Pages after it get higher
/// numbers unless there is a gap. There is always at least one page.
pub(super) fn plan(
    sizes: &[usize],
    existing: &[(u64, Option<&PieceId>)],
    is_before: impl Fn(usize, &PieceId) -> bool,
) -> Vec<PlannedPage> {
    let mut groups: Vec<(Option<u64>, Range<usize>)> = Vec::new();
    let mut from = 0;
    for (at, (number, _)) in existing.iter().enumerate() {
        let next = existing[at + 1..].iter().find_map(|(_, first)| *first);
        let mut upto = from;
        while upto < sizes.len() && next.is_none_or(|first| is_before(upto, first)) {
            upto += 1;
        }
        if upto > from {
            groups.push((Some(*number), from..upto));
        }
        from = upto;
    }
    if from < sizes.len() || groups.is_empty() {
        let number = existing.first().map(|(number, _)| *number);
        groups.push((number, from..sizes.len()));
    }

    let last = groups.len() - 1;
    let mut pages: Vec<PlannedPage> = Vec::new();
    for (at, (number, group)) in groups.into_iter().enumerate() {
        let lines: usize = sizes[group.clone()].iter().sum();
        let most = if at == last {
            PAGE_LINES
        } else {
            lines.div_ceil(lines.div_ceil(PAGE_LINES).max(1))
        };
        let mut was = number;
        for pieces in cut(sizes, group, most) {
            let after = pages.last().map_or(1, |page| page.number + 1);
            pages.push(PlannedPage {
                number: was.map_or(after, |number| number.max(after)),
                was: was.take(),
                pieces,
            });
        }
    }
    pages
}

/// Cuts a group into runs of at most `most` lines; a piece is never cut. An empty group is one empty run.
pub(super) fn cut(sizes: &[usize], group: Range<usize>, most: usize) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let (mut from, mut lines) = (group.start, 0);
    for piece in group.clone() {
        if piece > from && lines + sizes[piece] > most {
            runs.push(from..piece);
            (from, lines) = (piece, 0);
        }
        lines += sizes[piece];
    }
    runs.push(from..group.end);
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of one line; piece `n` has the key `n`.
    fn planned(keys: &[u64], existing: &[(u64, u64)]) -> Vec<(u64, Option<u64>, Range<u64>)> {
        let found: Vec<PieceId> = existing
            .iter()
            .map(|(_, first)| PieceId {
                key: first.to_string(),
                part: 0,
            })
            .collect();
        let bounds: Vec<_> = existing
            .iter()
            .zip(&found)
            .map(|((number, _), found)| (*number, Some(found)))
            .collect();
        let before =
            |piece: usize, first: &PieceId| keys[piece] < first.key.parse::<u64>().unwrap();
        plan(&vec![1; keys.len()], &bounds, before)
            .into_iter()
            .map(|page| {
                let range = page.pieces;
                let keys = match (keys.get(range.start), range.is_empty()) {
                    (Some(first), false) => *first..keys[range.end - 1] + 1,
                    _ => 0..0,
                };
                (page.number, page.was, keys)
            })
            .collect()
    }

    fn keys(range: Range<u64>) -> Vec<u64> {
        range.collect()
    }

    #[test]
    fn fills_new_pages() {
        assert_eq!(planned(&[], &[]), [(1, None, 0..0)]);
        assert_eq!(
            planned(&keys(0..2500), &[]),
            [
                (1, None, 0..1000),
                (2, None, 1000..2000),
                (3, None, 2000..2500)
            ]
        );
    }

    #[test]
    fn keeps_bounds() {
        assert_eq!(
            planned(&keys(0..2600), &[(1, 0), (2, 900), (3, 1800)]),
            [
                (1, Some(1), 0..900),
                (2, Some(2), 900..1800),
                (3, Some(3), 1800..2600)
            ]
        );
        let gone: Vec<u64> = (5..900).chain(1900..2000).collect();
        assert_eq!(
            planned(&gone, &[(1, 0), (2, 900), (3, 1800)]),
            [(1, Some(1), 5..900), (3, Some(3), 1900..2000)]
        );
        assert_eq!(planned(&[], &[(4, 0), (5, 9)]), [(4, Some(4), 0..0)]);
    }

    #[test]
    fn splits_a_page_and_moves_those_after_only_as_far_as_needed() {
        let existing = [(1, 0), (2, 1000), (3, 3000), (5, 4000)];
        assert_eq!(
            planned(&keys(0..4100), &existing),
            [
                (1, Some(1), 0..1000),
                (2, Some(2), 1000..2000),
                (3, None, 2000..3000),
                (4, Some(3), 3000..4000),
                (5, Some(5), 4000..4100)
            ]
        );
    }
}
