//! Searches bytes for texts.

use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;

/// Texts to search for. A single one, the most frequent case, is searched several times faster than many.
pub(crate) enum TextSearch {
    One(Box<Finder<'static>>),
    Many(AhoCorasick),
}

impl TextSearch {
    /// Returns a search for any of these texts; `None` if they are too many or too long.
    pub(crate) fn new<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Option<Self> {
        let texts: Vec<T> = texts.into_iter().collect();
        match &*texts {
            [one] => Some(Self::One(Box::new(Finder::new(one).into_owned()))),
            many => AhoCorasick::new(many).ok().map(Self::Many),
        }
    }

    /// Returns a place of a text: where one begins before any other ends.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::One(text) => text.find(bytes),
            Self::Many(texts) => texts.find(bytes).map(|found| found.start()),
        }
    }
}
