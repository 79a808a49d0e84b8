//! Removes API keys from texts that are shown or kept: known keys, and texts in the form of one.

use regex::bytes::Regex;
use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

/// The replacement for a key.
pub(crate) const HIDDEN: &str = "[key]";

/// The least length of a known key: shorter values would match words.
const SHORTEST: usize = 8;

/// Forms of keys: Anthropic and OpenAI (`sk-`), Google, AWS, GitHub, GitLab, Slack, Hugging Face, and what follows `Bearer`.
const FORMS: &str = r"(?x)
    \b sk-[A-Za-z0-9_-]{16,}
  | \b AIza[A-Za-z0-9_-]{35}
  | \b AKIA[A-Z0-9]{16} \b
  | \b gh[pousr]_[A-Za-z0-9]{30,}
  | \b github_pat_[A-Za-z0-9_]{30,}
  | \b glpat-[A-Za-z0-9_-]{20,}
  | \b xox[abposr]-[A-Za-z0-9-]{10,}
  | \b hf_[A-Za-z0-9]{30,}
  | \b [Bb]earer \s+ [A-Za-z0-9._~+/-]{20,} =*
";

static KEYS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(FORMS).ok());

/// Removes API keys from texts: known keys, and texts in the form of one.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Option<Regex>,
}

impl Redactor {
    /// Creates a redactor for these keys, trimmed; values that are too short for a key are ignored.
    pub fn new(keys: impl IntoIterator<Item = String>) -> Self {
        let keys = keys.into_iter().map(|key| key.trim().to_owned());
        let mut keys: Vec<String> = keys.filter(|key| key.len() >= SHORTEST).collect();
        // The longest first, so that one that holds another is taken out whole.
        keys.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        let keys: Vec<String> = keys.iter().map(|key| regex::escape(key)).collect();
        Self {
            known: (!keys.is_empty())
                .then(|| Regex::new(&keys.join("|")).ok())
                .flatten(),
        }
    }

    /// Returns the text without keys.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Owned(hidden) => Cow::Owned(String::from_utf8_lossy(&hidden).into_owned()),
            Cow::Borrowed(_) => Cow::Borrowed(text),
        }
    }

    /// Returns the bytes without keys.
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let hide = |forms: &Option<Regex>, text: &[u8]| -> Option<Vec<u8>> {
            match forms.as_ref()?.replace_all(text, HIDDEN.as_bytes()) {
                Cow::Owned(hidden) => Some(hidden),
                Cow::Borrowed(_) => None,
            }
        };
        let known = hide(&self.known, bytes);
        let formed = hide(&KEYS, known.as_deref().unwrap_or(bytes));
        formed.or(known).map_or(Cow::Borrowed(bytes), Cow::Owned)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// Removes everything in the form of a key.
pub fn redact(text: &str) -> Cow<'_, str> {
    Redactor::default().text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_out_and_nothing_else() {
        let cases = [
            ("key=sk-ant-api03-AbCd_1234567890-xyz.", "key=[key]."),
            ("\"sk-proj-0123456789abcdefABCD\"", "\"[key]\""),
            (
                "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.e30.abc==",
                "Authorization: [key]",
            ),
            (
                "ghp_0123456789abcdefghijABCDEFGHIJ012345 AKIAIOSFODNN7EXAMPLE",
                "[key] [key]",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(redact(text), expected);
        }
        let plain = "risk-assessment-of-the-long-run, task-0123456789, sk-short, the bearer of this letter, IfcWall 2O2Fr$t4X7Zf8NOew3FLOH";
        assert!(matches!(redact(plain), Cow::Borrowed(text) if text == plain));
    }

    #[test]
    fn keys_that_are_known_are_taken_out_whole() {
        let keys = ["local-key", " local-key-0001\n", "short"].map(str::to_owned);
        let redactor = Redactor::new(keys);
        let told = "local-key-0001, local-key, short, sk-ant-0123456789abcdef";
        let hidden = "[key], [key], short, [key]";
        assert_eq!(redactor.text(told), hidden);
        assert_eq!(&*redactor.bytes(b"\xfflocal-key\xff"), b"\xff[key]\xff");
        let plain = b"\xffnothing".as_slice();
        assert!(matches!(redactor.bytes(plain), Cow::Borrowed(bytes) if bytes == plain));
        assert_eq!(format!("{redactor:?}"), "[key]");
    }
}
