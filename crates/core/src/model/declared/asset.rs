//! A file of the project that a declaration refers to.

use crate::base::digest::Digest;
use crate::base::path::RelPath;
use std::sync::{Arc, OnceLock};

/// A file of the project that a declaration refers to, with its text.
#[derive(Clone)]
pub struct Asset {
    /// Where it lies in the project.
    pub path: RelPath,
    pub text: Arc<str>,
    /// The digest of the content.
    pub digest: Digest,
    /// For a schema: the files that it refers to, directly or indirectly.
    pub refers: Arc<[Asset]>,
    meaning: Arc<OnceLock<Digest>>,
}

impl Asset {
    /// An asset of this text.
    pub(crate) fn new(path: RelPath, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self {
            path,
            digest: Digest::of(text.as_bytes()),
            text,
            refers: Arc::default(),
            meaning: Arc::default(),
        }
    }

    /// Returns the schema with the files that it refers to.
    #[must_use]
    pub(crate) fn referring_to(self, refers: Vec<Self>) -> Self {
        Self {
            refers: refers.into(),
            ..self
        }
    }

    /// Returns the digest of the data in a TOML file: comments and layout change nothing. Of a file that is not TOML, that of its bytes.
    pub(crate) fn meaning(&self) -> Digest {
        *self.meaning.get_or_init(|| {
            let data = toml::from_str::<serde_json::Value>(&self.text);
            data.map_or(self.digest, |data| Digest::of(data.to_string()))
        })
    }
}

impl std::fmt::Debug for Asset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.path, self.digest)
    }
}
