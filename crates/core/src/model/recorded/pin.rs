//! Outputs that a person modified by hand and accepted with `milepost accept`: which, by whom, when and why.

use super::made::Made;
use crate::base::digest::Digest;
use crate::base::path::RelPath;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A person's decision that the outputs of a batch stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Pin {
    /// The person who accepted them last.
    pub who: String,
    /// The reason that they gave.
    pub why: String,
    /// When, in UTC; `None` in records of versions that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub at: Option<Timestamp>,
    /// The outputs that are not what Milepost wrote. Records without `at` name none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ModifiedFile>,
}

/// An output that a person modified and accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct ModifiedFile {
    /// The file, in the workspace.
    pub path: RelPath,
    /// The digest of what Milepost wrote. A second modification of the same file keeps the first `from`.
    pub from: Digest,
    /// The digest of what was accepted.
    pub to: Digest,
    /// The person who accepted these bytes.
    pub(crate) by: String,
    /// The reason that they gave.
    pub(crate) why: String,
    /// The time, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub(crate) at: Timestamp,
}

/// An accepted modification, as checkpoints, reports, `status` and `verify` list it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Override {
    /// The stage whose output it is.
    pub stage: String,
    /// The batch; empty for the only one of the stage.
    pub batch: String,
    /// The file, in the workspace; `None` if an earlier version accepted one of several and did not record which.
    pub path: Option<String>,
    /// The person who accepted it.
    pub by: String,
    /// When, in UTC; `None` if an earlier version accepted it.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub at: Option<Timestamp>,
    /// The reason that they gave.
    pub why: String,
    /// The digest of what Milepost wrote; `None` if an earlier version accepted it.
    pub from: Option<Digest>,
    /// The digest of what was accepted.
    pub to: Option<Digest>,
}

impl Pin {
    /// Returns the pin of a batch whose outputs, recorded as `before`, are accepted as `outputs`.
    pub fn new(
        (who, why, at): (&str, &str, Timestamp),
        earlier: Option<&Self>,
        before: &[Made],
        outputs: &[Made],
    ) -> Self {
        let modified = |made: &Made| {
            let earlier = earlier.and_then(|pin| pin.files.iter().find(|it| it.path == made.path));
            let recorded = before.iter().find(|old| old.path == made.path)?.digest;
            if recorded == made.digest {
                return earlier.cloned();
            }
            let from = earlier.map_or(recorded, |earlier| earlier.from);
            // An output with the content that Milepost wrote is not modified.
            (from != made.digest).then(|| ModifiedFile {
                path: made.path.clone(),
                from,
                to: made.digest,
                by: who.to_owned(),
                why: why.to_owned(),
                at,
            })
        };
        let files: Vec<ModifiedFile> = outputs.iter().filter_map(modified).collect();
        let is_unknown = files.is_empty() && earlier.is_some_and(Self::is_unknown);
        Self {
            who: who.to_owned(),
            why: why.to_owned(),
            at: (!is_unknown).then_some(at),
            files,
        }
    }

    /// Returns true if an earlier version recorded it, which did not say which files were modified.
    fn is_unknown(&self) -> bool {
        self.at.is_none() && self.files.is_empty()
    }

    /// Returns true if no output is a person's (any more): all of them are what Milepost wrote.
    pub(crate) fn is_void(&self) -> bool {
        self.at.is_some() && self.files.is_empty()
    }

    /// Returns true if the recorded bytes of a file may be a person's.
    pub fn covers(&self, path: &RelPath) -> bool {
        self.is_unknown() || self.files.iter().any(|file| file.path == *path)
    }

    /// Returns the accepted modifications of a batch with these outputs.
    pub(crate) fn overrides(&self, stage: &str, batch: &str, outputs: &[Made]) -> Vec<Override> {
        let of =
            |path: Option<&RelPath>, file: Option<&ModifiedFile>, to: Option<Digest>| Override {
                stage: stage.to_owned(),
                batch: batch.to_owned(),
                path: path.map(ToString::to_string),
                by: file.map_or(&self.who, |file| &file.by).clone(),
                at: file.map(|file| file.at),
                why: file.map_or(&self.why, |file| &file.why).clone(),
                from: file.map(|file| file.from),
                to,
            };
        if !self.is_unknown() {
            let files = self.files.iter();
            return files
                .map(|file| of(Some(&file.path), Some(file), Some(file.to)))
                .collect();
        }
        vec![match outputs {
            [only] => of(Some(&only.path), None, Some(only.digest)),
            _ => of(None, None, None),
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(content: &str) -> Made {
        Made {
            name: "out".to_owned(),
            path: RelPath::parse("out.txt").unwrap(),
            digest: Digest::of(content),
            size: 1,
        }
    }

    #[test]
    fn a_pin_of_an_earlier_version_covers_every_output_until_it_is_known_which() {
        let old: Pin = serde_json::from_str(r#"{"who": "Ada", "why": "so"}"#).unwrap();
        assert_eq!(
            serde_json::to_string(&old).unwrap(),
            r#"{"who":"Ada","why":"so"}"#
        );
        let path = made("b").path;
        assert!(old.covers(&path) && !old.is_void());
        let one = &old.overrides("sort", "x", &[made("b")])[0];
        let expected = (Some("out.txt"), None, Some(Digest::of("b")), None);
        assert_eq!((one.path.as_deref(), one.from, one.to, one.at), expected);
        let both = old.overrides("sort", "x", &[made("b"), made("b")]);
        assert_eq!(both.len(), 1);
        assert_eq!((&both[0].path, both[0].to), (&None, None));

        let by = ("Bo", "again", Timestamp::UNIX_EPOCH);
        let same = Pin::new(by, Some(&old), &[made("b")], &[made("b")]);
        assert!(same.covers(&path) && same.at.is_none());
        let other = Pin::new(by, Some(&old), &[made("b")], &[made("c")]);
        assert_eq!(
            (other.files[0].from, other.files[0].to),
            (Digest::of("b"), Digest::of("c"))
        );
    }

    #[test]
    fn what_is_restored_is_no_modification() {
        let by = ("Ada", "so", Timestamp::UNIX_EPOCH);
        let first = Pin::new(by, None, &[made("a")], &[made("b")]);
        assert!(first.covers(&made("b").path));
        let back = Pin::new(by, Some(&first), &[made("b")], &[made("a")]);
        assert!(back.is_void() && !back.covers(&made("a").path));
    }
}
