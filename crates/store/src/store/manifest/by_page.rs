//! Reads single pages of a manifest, by what earlier runs noted of all of them.

use super::page::{ManifestReader, ParsedPage};
use super::{ManifestError, bytes, path, read_stages, threads};
use crate::store::layout::{self, Layout};
use crate::store::search::TextSearch;
use memchr::memmem::{self, Finder};
use milepost_core::base::digest::Digest;
use milepost_core::base::in_order::in_order;
use milepost_core::model::state::{ManifestPage, StageState};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns the places of unread pages that name one of these files. May include pages that do not.
///
/// # Errors
/// Fails if a page cannot be read.
pub fn naming(
    layout: &Layout,
    stage: &str,
    pages: &[ManifestPage],
    names: &BTreeSet<&str>,
) -> Result<Vec<usize>, ManifestError> {
    let folder = layout.at(&layout::manifest(stage));
    // A line contains the path of an output as it is, and that of an input in JSON.
    let quoted = names.iter().map(|name| {
        let text = Value::from(*name).to_string();
        text.trim_matches('"').to_owned()
    });
    let plain = names.iter().map(|name| (*name).to_owned());
    let texts: BTreeSet<String> = plain.chain(quoted).collect();
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    // Too many names: every page may have one.
    let names = TextSearch::new(&texts);
    let unread: Vec<usize> = (0..pages.len())
        .filter(|place| !pages[*place].is_read)
        .collect();
    let look = |place: &usize| -> Result<Option<usize>, ManifestError> {
        let bytes = bytes(&path(&folder, pages[*place].number))?;
        let is_named = names
            .as_ref()
            .is_none_or(|names| names.find(&bytes).is_some());
        Ok(is_named.then_some(*place))
    };
    let mut found = Vec::new();
    in_order(
        threads(unread.len()),
        &|| Box::new(look),
        |give| unread.iter().try_for_each(give),
        &mut |looked: Result<Option<usize>, ManifestError>| -> Result<(), ManifestError> {
            found.extend(looked?);
            Ok(())
        },
    )?;
    Ok(found)
}

/// Reads the pages of all stages that contain one of these texts; `None` if one of them has outputs of a batch that begins on
/// another.
///
/// # Errors
/// The errors of [`super::read_all`].
pub fn read_with(
    layout: &Layout,
    texts: &BTreeSet<String>,
) -> Result<Option<BTreeMap<String, StageState>>, ManifestError> {
    let texts: Vec<Finder<'_>> = texts.iter().map(Finder::new).collect();
    let is_split = AtomicBool::new(false);
    let stages = read_stages(layout, &|page| {
        let is_wanted = texts.iter().any(|text| text.find(page).is_some());
        if is_wanted && memmem::find(page, b"\n# more ").is_some() {
            is_split.store(true, Ordering::Relaxed);
        }
        is_wanted
    })?;
    Ok((!is_split.into_inner()).then_some(stages))
}

/// Reads these pages.
///
/// # Errors
/// Fails if a page cannot be read, and with [`ManifestError::Moving`] if it has another digest.
pub fn read_pages<'a>(
    layout: &Layout,
    stage: &str,
    pages: impl IntoIterator<Item = &'a ManifestPage>,
) -> Result<StageState, ManifestError> {
    let folder = layout.at(&layout::manifest(stage));
    let pages: Vec<&ManifestPage> = pages.into_iter().collect();
    let parse = |page: &&ManifestPage| {
        let path = path(&folder, page.number);
        let bytes = bytes(&path)?;
        if Digest::of(&bytes) != page.digest {
            return Err(ManifestError::Moving {
                path: folder.clone(),
            });
        }
        ParsedPage::parse(path, &bytes)
    };
    let mut reading = ManifestReader::default();
    in_order(
        threads(pages.len()),
        &|| Box::new(parse),
        |give| pages.iter().try_for_each(give),
        &mut |parsed: Result<ParsedPage, ManifestError>| reading.take(parsed?),
    )?;
    Ok(reading
        .finish()?
        .map_or_else(StageState::default, |(_, state)| state))
}
