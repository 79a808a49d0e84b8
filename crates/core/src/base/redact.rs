//! Removes API keys from texts that are shown or kept: known keys in every representation, and texts in the form of one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use regex::bytes::Regex;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// The replacement for a key.
pub const HIDDEN: &str = "[key]";

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

/// Returns true if a variable of this name holds a key.
pub fn names_key(variable: &str) -> bool {
    let endings = ["API_KEY", "TOKEN", "SECRET", "PASSWORD"];
    endings.iter().any(|ending| variable.ends_with(ending))
}

/// Removes API keys from texts.
///
/// A known key is found as it is, with any of its bytes escaped (JSON, URL, HTML, `\x`), in base64 at any position of a longer
/// text, such as `user:key`, and in hexadecimal.
#[derive(Clone, Default)]
pub struct Redactor {
    needles: Arc<[Needle]>,
}

/// One representation of a key. Any of its bytes may be escaped.
struct Needle {
    bytes: Vec<u8>,
    /// True if the character before it holds bits of the key.
    before: bool,
    /// True if the character after it holds bits of the key.
    after: bool,
}

impl Redactor {
    /// Creates a redactor for these keys, trimmed; values that are too short for a key are ignored.
    pub fn new(keys: impl IntoIterator<Item = String>) -> Self {
        // A key that starts with a backslash is found from its next byte on: then no match starts inside a run of backslashes.
        let trimmed = |key: &str| key.trim().trim_start_matches('\\').to_owned();
        let keys = keys.into_iter().map(|key| trimmed(&key));
        let keys = keys.filter(|key| key.len() >= SHORTEST);
        let mut needles: Vec<Needle> = keys.flat_map(|key| needles(&key)).collect();
        // The longest first, so that one that holds another is taken out whole.
        needles.sort_by_key(|needle| std::cmp::Reverse(needle.bytes.len()));
        Self {
            needles: needles.into(),
        }
    }

    /// Returns the text without keys.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        as_text(text, self.bytes(text.as_bytes()))
    }

    /// Returns the bytes without keys.
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let known = self.known_bytes(bytes);
        let formed = match KEYS
            .as_ref()
            .map(|keys| keys.replace_all(&known, HIDDEN.as_bytes()))
        {
            Some(Cow::Owned(hidden)) => Some(hidden),
            _ => None,
        };
        formed.map_or(known, Cow::Owned)
    }

    /// Returns the text without known keys.
    pub fn known_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        as_text(text, self.known_bytes(text.as_bytes()))
    }

    /// Returns the bytes without known keys.
    pub fn known_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.needles.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut starts = [false; 256];
        for byte in [b'\\', b'%', b'&'] {
            starts[usize::from(byte)] = true;
        }
        for needle in &*self.needles {
            let first = needle.bytes[0];
            starts[usize::from(first)] = true;
            starts[usize::from(url_safe(first))] = true;
        }
        let mut hidden = Vec::new();
        let (mut at, mut copied) = (0, 0);
        while at < bytes.len() {
            let found = starts[usize::from(bytes[at])].then(|| {
                self.needles
                    .iter()
                    .find_map(|needle| Some((needle, needle.at_start(&bytes[at..])?)))
            });
            let Some((needle, length)) = found.flatten() else {
                // No key starts later in a run of backslashes if none starts at its first.
                let slashes = slashes_at_start(&bytes[at..]);
                at += slashes.max(1);
                continue;
            };
            let mut start = at;
            if needle.before && start > copied && is_base64(bytes[start - 1]) {
                start -= 1;
            }
            at += length;
            if needle.after && bytes.get(at).is_some_and(|&byte| is_base64(byte)) {
                at += 1;
            }
            hidden.extend_from_slice(&bytes[copied..start]);
            hidden.extend_from_slice(HIDDEN.as_bytes());
            copied = at;
        }
        if copied == 0 {
            return Cow::Borrowed(bytes);
        }
        hidden.extend_from_slice(&bytes[copied..]);
        Cow::Owned(hidden)
    }

    /// Removes known keys from the keys and strings of a value.
    pub fn known_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(hidden) = self.known_text(text) {
                    *text = hidden;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.known_value(item)),
            Value::Object(entries) => {
                for (mut key, mut value) in std::mem::take(entries) {
                    if let Cow::Owned(hidden) = self.known_text(&key) {
                        key = hidden;
                    }
                    self.known_value(&mut value);
                    entries.insert(key, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn as_text<'a>(text: &'a str, bytes: Cow<'a, [u8]>) -> Cow<'a, str> {
    match bytes {
        Cow::Owned(hidden) => Cow::Owned(String::from_utf8_lossy(&hidden).into_owned()),
        Cow::Borrowed(_) => Cow::Borrowed(text),
    }
}

/// Returns a key as it is, in hexadecimal, and in base64: three times, because its first byte can be at each position of a group of
/// three.
fn needles(key: &str) -> Vec<Needle> {
    let whole = |bytes: Vec<u8>| Needle {
        bytes,
        before: false,
        after: false,
    };
    let hex = |upper: bool| -> String {
        let digits = key.bytes().map(|byte| {
            if upper {
                format!("{byte:02X}")
            } else {
                format!("{byte:02x}")
            }
        });
        digits.collect()
    };
    let mut needles = vec![
        whole(key.into()),
        whole(hex(false).into()),
        whole(hex(true).into()),
    ];
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(key.as_bytes());
        let encoded = STANDARD_NO_PAD.encode(&bytes);
        // Only whole characters of the key: the first and the last one may hold bits of other bytes.
        let inner = &encoded.as_bytes()[(before * 8).div_ceil(6)..bytes.len() * 8 / 6];
        needles.push(Needle {
            bytes: inner.to_vec(),
            before: before > 0,
            after: bytes.len() % 3 > 0,
        });
    }
    needles
}

impl Needle {
    /// Returns the length of the representation that the text starts with.
    fn at_start(&self, text: &[u8]) -> Option<usize> {
        let mut at = 0;
        for &byte in &self.bytes {
            at += escaped(&text[at..], byte)?;
        }
        Some(at)
    }
}

/// Returns the length of a byte at the start of a text: as it is, after backslashes, or as `\u0041`, `\x41`, `%41`, `&#65;` or
/// `&#x41;`. The escapes may be escaped themselves, as in `\\u0041` and `%2541`.
fn escaped(text: &[u8], byte: u8) -> Option<usize> {
    let is = |found: u8| found == byte || found == url_safe(byte);
    let number = |text: &[u8], radix: u32| {
        let text = std::str::from_utf8(text).ok()?;
        let found = u8::from_str_radix(text, radix).ok()?;
        is(found).then_some(())
    };
    let of_escape = || match *text.first()? {
        b'\\' if byte != b'\\' => {
            let slashes = slashes_at_start(text);
            let length = match &text[slashes..] {
                [b'u', b'0', b'0', high, low, ..] if number(&[*high, *low], 16).is_some() => 5,
                [b'x', high, low, ..] if number(&[*high, *low], 16).is_some() => 3,
                [found, ..] if is(*found) => 1,
                _ => return None,
            };
            Some(slashes + length)
        }
        b'%' => {
            let mut at = 1;
            while text[at..].starts_with(b"25") {
                at += 2;
            }
            match text.get(at..at + 2).and_then(|digits| number(digits, 16)) {
                Some(()) => Some(at + 2),
                None => (at > 1 && is(b'%')).then_some(at),
            }
        }
        b'&' => {
            let end = text.iter().take(9).position(|&byte| byte == b';')?;
            let named = |name: u8| is(name).then_some(());
            match &text[1..end] {
                [b'#', b'x' | b'X', digits @ ..] => number(digits, 16),
                [b'#', digits @ ..] => number(digits, 10),
                b"amp" => named(b'&'),
                b"lt" => named(b'<'),
                b"gt" => named(b'>'),
                b"quot" => named(b'"'),
                _ => None,
            }
            .map(|()| end + 1)
        }
        _ => None,
    };
    of_escape().or_else(|| is(*text.first()?).then_some(1))
}

fn slashes_at_start(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| byte == b'\\').count()
}

/// Returns the URL-safe variant of a base64 character.
fn url_safe(byte: u8) -> u8 {
    match byte {
        b'+' => b'-',
        b'/' => b'_',
        byte => byte,
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
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
    fn a_known_key_is_found_in_every_representation() {
        let key = "local/key+0001=\"&%x";
        let redactor = Redactor::new([key.to_owned()]);
        let base64 = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let json = |text: &str| serde_json::Value::from(text).to_string();
        let each = |form: &dyn Fn(u8) -> String| key.bytes().map(form).collect::<String>();
        let mut cases = vec![
            key.to_owned(),
            key.replace('/', "\\/"),
            json(key),
            json(&json(key)),
            each(&|byte| format!("\\u{byte:04x}")),
            each(&|byte| format!("\\\\u{byte:04X}")),
            each(&|byte| format!("\\x{byte:02x}")),
            each(&|byte| format!("%{byte:02x}")),
            each(&|byte| format!("%2525{byte:02X}")),
            each(&|byte| format!("&#{byte};")),
            each(&|byte| format!("&#x{byte:X};")),
            key.replace('%', "%25")
                .replace('/', "%2F")
                .replace('&', "%26"),
            key.replace('&', "&amp;").replace('"', "&quot;"),
            each(&|byte| format!("{byte:02x}")),
            each(&|byte| format!("{byte:02X}")),
        ];
        for user in ["", "u", "us", "use", "user:", "a:b:"] {
            let encoded = base64(&format!("{user}{key} and more"));
            let inside = encoded[..(user.len() + key.len()) * 8 / 6].to_owned();
            cases.extend([
                encoded.replace('+', "-").replace('/', "_"),
                encoded.replace('/', "\\/"),
                encoded.replace('+', "%2B").replace('/', "%2f"),
                encoded,
            ]);
            assert!(inside.len() > 20);
        }
        for case in cases {
            let text = format!("before {case} after");
            let hidden = redactor.known_text(&text).into_owned();
            assert!(hidden.contains(HIDDEN), "{case}");
            assert!(
                hidden.len() < text.len() - key.len() + HIDDEN.len() + 1,
                "{case}: {hidden}"
            );
            assert!(hidden.starts_with("before "), "{case}: {hidden}");
            assert!(hidden.ends_with(" after"), "{case}: {hidden}");
        }
        let plain = "local/key+0002, %6c%6f%63, \\u006c, bG9jYWw, &#108;&amp;";
        assert!(matches!(redactor.known_text(plain), Cow::Borrowed(text) if text == plain));
        let mut value = serde_json::json!({key: [1, {"a": format!("x{key}y")}]});
        redactor.known_value(&mut value);
        assert_eq!(value, serde_json::json!({"[key]": [1, {"a": "x[key]y"}]}));
    }

    #[test]
    fn backslashes_are_counted_once() {
        let redactor = Redactor::new(["\\local-key".to_owned()]);
        let slashes = "\\".repeat(4 << 20);
        let text = format!("{slashes}n{slashes}local-key{slashes}");
        let hidden = format!("{slashes}n[key]{slashes}");
        assert!(redactor.known_text(&text) == hidden);
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
