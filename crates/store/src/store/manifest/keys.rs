//! The keys of a stage's batches, without the records.

use super::{ManifestError, bytes, list, path, text};
use crate::store::layout::{self, Layout};
use serde::Deserialize;

/// Calls `each` with the keys of the batches in a stage's manifest, until it returns false. A key may come twice. Lines without a
/// key are skipped; [`super::read`] refuses them.
///
/// # Errors
/// If a page cannot be read.
pub fn keys(
    layout: &Layout,
    stage: &str,
    each: &mut dyn FnMut(&str) -> bool,
) -> Result<(), ManifestError> {
    each_line(layout, stage, &mut |line| {
        key(line).is_none_or(|key| each(&key))
    })
}

/// Passes the path of each recorded output of a stage to `each`, in no order.
///
/// # Errors
/// The errors of [`keys`].
pub fn outputs(
    layout: &Layout,
    stage: &str,
    each: &mut dyn FnMut(&str),
) -> Result<(), ManifestError> {
    each_line(layout, stage, &mut |line| {
        if let Some((digest, path)) = line.split_once("  ")
            && digest.len() == 64
        {
            each(path);
        }
        true
    })
}

/// Passes the lines of a stage's manifest to `each` until it returns false.
fn each_line(
    layout: &Layout,
    stage: &str,
    each: &mut dyn FnMut(&str) -> bool,
) -> Result<(), ManifestError> {
    let folder = layout.at(&layout::manifest(stage));
    for page in list(&folder)? {
        let path = path(&folder, page.number);
        for (_, line) in text::lines(&path, &bytes(&path)?)? {
            if !each(line) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Returns the key of a line about a batch. Every such line begins with it.
pub(super) fn key(line: &str) -> Option<String> {
    let (word, data) = line.strip_prefix("# ")?.split_once(' ')?;
    let is_batch = ["batch", "failed", "remains", "waiting"].contains(&word);
    let text = data.strip_prefix("{\"key\":").filter(|_| is_batch)?;
    String::deserialize(&mut serde_json::Deserializer::from_str(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_about_a_batch_has_its_key() {
        for (line, found) in [
            (r#"# batch {"key":"a\"b","shared":"1"}"#, Some("a\"b")),
            (r#"# failed {"key":"c","outcome":{}}"#, Some("c")),
            (r#"# waiting {"key":""}"#, Some("")),
            (r#"# facts {"key":"c"}"#, None),
            (r#"# batch {"key":"cut"#, None),
            ("0123  outputs/a", None),
        ] {
            assert_eq!(key(line).as_deref(), found, "{line}");
        }
    }
}
