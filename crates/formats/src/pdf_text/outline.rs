//! The bookmarks of a PDF (ISO 32000-1, 12.3). Each entry and each node of the tree of names is visited once: their links may form rings.

use super::limits::{ReadError, TEXT, check};
use super::text::Heading;
use hayro_syntax::object::dict::keys::{
    A, D, DEST, DESTS, FIRST, KIDS, NAMES, NEXT, OUTLINES, S, TITLE,
};
use hayro_syntax::object::{Array, Dict, MaybeRef, Name, Object, ObjectIdentifier, String as Text};
use hayro_syntax::page::Page;
use hayro_syntax::xref::XRef;
use std::collections::{HashMap, HashSet};

/// The entries of a walk.
#[derive(Default)]
struct Visited {
    seen: HashSet<(usize, usize)>,
    /// Whether a link led to one of them again.
    is_ring: bool,
}

impl Visited {
    /// Returns the dictionary, unless it was returned before.
    fn once<'a>(&mut self, found: Option<Dict<'a>>) -> Option<Dict<'a>> {
        let place = found.as_ref()?.data();
        let is_new = self.seen.insert((place.as_ptr() as usize, place.len()));
        self.is_ring |= !is_new;
        found.filter(|_| is_new)
    }
}

/// Reads the bookmarks that lead to `pages`, and whether their links form a ring. One that leads nowhere is left out.
pub(crate) fn read<'a>(
    catalog: &Dict<'a>,
    pages: &[Page<'a>],
    xref: &'a XRef,
) -> Result<(Vec<Heading>, bool), ReadError> {
    let numbers = (1..).zip(pages);
    let numbers = numbers.filter_map(|(number, page)| Some((page.raw().obj_id()?, number)));
    let numbers: HashMap<ObjectIdentifier, u32> = numbers.collect();
    let mut visited = Visited::default();
    let mut headings = Vec::new();
    let Some(outlines) = catalog.get::<Dict<'_>>(OUTLINES) else {
        return Ok((headings, false));
    };
    let names = named_destinations(catalog, xref, &mut visited);
    let mut letters = 0;
    let linked = |entry: &Dict<'a>, key: &[u8]| resolved(entry.get_raw::<Dict<'a>>(key)?, xref);
    let mut next = vec![(linked(&outlines, FIRST), 1_usize)];
    while let Some((entry, level)) = next.pop() {
        let Some(entry) = visited.once(entry) else {
            continue;
        };
        next.push((linked(&entry, NEXT), level));
        next.push((linked(&entry, FIRST), level + 1));
        let page = target(&entry, &names).and_then(|page| numbers.get(&page));
        let title = entry.get::<Text<'_>>(TITLE);
        let title = title.and_then(|title| decoded(title.as_bytes()));
        let (Some(page), Some(title)) = (page, title) else {
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

/// Returns the dictionary behind a link. `Dict::get` would remember all dictionaries on the way, and compare each with them.
fn resolved<'a>(link: MaybeRef<Dict<'a>>, xref: &'a XRef) -> Option<Dict<'a>> {
    match link {
        MaybeRef::Ref(id) => xref.get(id.into()),
        MaybeRef::NotRef(found) => Some(found),
    }
}

/// Returns the page that an entry leads to, by its destination or its action.
fn target(
    entry: &Dict<'_>,
    names: &HashMap<Vec<u8>, ObjectIdentifier>,
) -> Option<ObjectIdentifier> {
    let destination = match entry.get::<Dict<'_>>(A) {
        Some(action) => {
            let command = action.get::<Name<'_>>(S)?;
            let leads = matches!(&*command, b"GoTo" | b"GoToR");
            leads.then(|| action.get::<Object<'_>>(D)).flatten()
        }
        None => entry.get::<Object<'_>>(DEST),
    };
    match destination? {
        Object::String(name) => names.get(name.as_bytes()).copied(),
        Object::Array(explicit) => page_of(&explicit),
        _ => None,
    }
}

/// Returns the page of an explicit destination.
fn page_of(destination: &Array<'_>) -> Option<ObjectIdentifier> {
    Some(destination.raw_iter().next()?.as_obj_ref()?.into())
}

/// Returns the pages of the named destinations.
fn named_destinations<'a>(
    catalog: &Dict<'a>,
    xref: &'a XRef,
    visited: &mut Visited,
) -> HashMap<Vec<u8>, ObjectIdentifier> {
    let mut found = HashMap::new();
    let tree = || catalog.get::<Dict<'_>>(NAMES)?.get::<Dict<'_>>(DESTS);
    let root = catalog.get::<Dict<'_>>(DESTS).or_else(tree);
    let mut next: Vec<Dict<'a>> = root.into_iter().collect();
    while let Some(node) = next.pop() {
        let names = node.get::<Array<'_>>(NAMES);
        let mut items = names.iter().flat_map(Array::iter::<Object<'_>>);
        while let (Some(name), Some(value)) = (items.next(), items.next()) {
            let explicit = match value {
                Object::Dict(value) => value.get::<Array<'_>>(D),
                value => value.into_array(),
            };
            let page = explicit.as_ref().and_then(page_of);
            if let (Some(name), Some(page)) = (name.into_string(), page) {
                found.insert(name.as_bytes().to_vec(), page);
            }
        }
        let kids = node.get::<Array<'_>>(KIDS);
        let kids = kids.iter().flat_map(Array::raw_iter);
        let kids: Vec<Dict<'a>> = kids
            .filter_map(|kid| match kid {
                MaybeRef::Ref(id) => xref.get(id.into()),
                MaybeRef::NotRef(kid) => kid.into_dict(),
            })
            .collect();
        let kids = kids.into_iter().rev();
        next.extend(kids.filter_map(|kid| visited.once(Some(kid))));
    }
    found
}

/// A text in UTF-16 with its mark, or in bytes.
fn decoded(title: &[u8]) -> Option<String> {
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
