//! The bookmarks of a PDF (ISO 32000-1, 12.3). Each entry and each node of the tree of names is visited once: their links may form
//! rings.

use super::limits::{ReadError, TEXT, check};
use super::text::Heading;
use lopdf::{Dictionary, Document, Object, ObjectId};
use std::collections::{HashMap, HashSet};

/// The objects of a walk.
#[derive(Default)]
struct Visited {
    seen: HashSet<ObjectId>,
    /// Whether a link led to one of them again.
    is_ring: bool,
}

/// Reads the bookmarks that lead to `pages`, and whether their links form a ring. One that leads nowhere is left out.
pub(crate) fn read(
    doc: &Document,
    pages: &HashMap<ObjectId, u32>,
) -> Result<(Vec<Heading>, bool), ReadError> {
    let mut headings = Vec::new();
    let mut visited = Visited::default();
    let Some(outlines) = dictionary_of(doc, doc.catalog().ok(), b"Outlines") else {
        return Ok((headings, false));
    };
    let names = named_destinations(doc, &mut visited);
    let mut letters = 0;
    let mut next = vec![(outlines.get(b"First").ok(), 1_usize)];
    while let Some((link, level)) = next.pop() {
        let Some(entry) = once(doc, link, &mut visited) else {
            continue;
        };
        next.push((entry.get(b"Next").ok(), level));
        next.push((entry.get(b"First").ok(), level + 1));
        let Some(page) = target(doc, entry, &names).and_then(|page| pages.get(&page)) else {
            continue;
        };
        let title = entry.get_deref(b"Title", doc).and_then(Object::as_str);
        let Some(title) = title.ok().and_then(decoded) else {
            continue;
        };
        letters += title.len();
        check(letters, TEXT, "bytes of bookmarks")?;
        headings.push(Heading {
            title: title.trim_matches('\0').trim().to_owned(),
            page: *page,
            level: u8::try_from(level).unwrap_or(u8::MAX),
        });
    }
    Ok((headings, visited.is_ring))
}

/// The dictionary that `link` leads to, unless it was there before.
fn once<'a>(
    doc: &'a Document,
    link: Option<&'a Object>,
    visited: &mut Visited,
) -> Option<&'a Dictionary> {
    let (id, object) = doc.dereference(link?).ok()?;
    let is_new = id.is_none_or(|id| visited.seen.insert(id));
    visited.is_ring |= !is_new;
    is_new.then(|| object.as_dict().ok()).flatten()
}

fn dictionary_of<'a>(
    doc: &'a Document,
    of: Option<&'a Dictionary>,
    key: &[u8],
) -> Option<&'a Dictionary> {
    of?.get_deref(key, doc).ok()?.as_dict().ok()
}

/// The page that an entry leads to, by its destination or its action.
fn target(
    doc: &Document,
    entry: &Dictionary,
    names: &HashMap<&[u8], ObjectId>,
) -> Option<ObjectId> {
    let destination = match dictionary_of(doc, Some(entry), b"A") {
        Some(action) => {
            let command = action.get_deref(b"S", doc).and_then(Object::as_name).ok()?;
            matches!(command, b"GoTo" | b"GoToR").then(|| action.get_deref(b"D", doc).ok())?
        }
        None => entry.get_deref(b"Dest", doc).ok(),
    };
    match destination? {
        Object::String(name, _) => names.get(name.as_slice()).copied(),
        destination => page_of(destination),
    }
}

/// The page of an explicit destination.
fn page_of(destination: &Object) -> Option<ObjectId> {
    destination.as_array().ok()?.first()?.as_reference().ok()
}

/// The pages of the named destinations.
fn named_destinations<'a>(doc: &'a Document, visited: &mut Visited) -> HashMap<&'a [u8], ObjectId> {
    let mut found = HashMap::new();
    let catalog = doc.catalog().ok();
    let names = || dictionary_of(doc, catalog, b"Names");
    let Some(root) =
        dictionary_of(doc, catalog, b"Dests").or_else(|| dictionary_of(doc, names(), b"Dests"))
    else {
        return found;
    };
    let mut next = vec![root];
    while let Some(node) = next.pop() {
        let items = |key: &[u8]| {
            let list = node.get_deref(key, doc).and_then(Object::as_array);
            list.map(Vec::as_slice).unwrap_or_default()
        };
        for pair in items(b"Names").chunks_exact(2) {
            let value = doc.dereference(&pair[1]).map(|(_, value)| value).ok();
            let explicit = value.and_then(|value| match value {
                Object::Dictionary(value) => value.get_deref(b"D", doc).ok(),
                value => Some(value),
            });
            if let (Ok(name), Some(page)) = (pair[0].as_str(), explicit.and_then(page_of)) {
                found.insert(name, page);
            }
        }
        let kids = items(b"Kids").iter().rev();
        next.extend(kids.filter_map(|kid| once(doc, Some(kid), visited)));
    }
    found
}

/// A text in UTF-16 with its mark, or in bytes.
pub(crate) fn decoded(title: &[u8]) -> Option<String> {
    let units = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, odd) = rest.as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().copied().map(unit).collect();
        odd.is_empty().then(|| String::from_utf16_lossy(&units))
    };
    match title {
        [0xFE, 0xFF, rest @ ..] => units(rest, u16::from_be_bytes),
        [0xFF, 0xFE, rest @ ..] => units(rest, u16::from_le_bytes),
        bytes => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}
