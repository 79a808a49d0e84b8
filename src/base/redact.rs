//! Keys taken out of texts that are shown or kept: by the forms that providers give them.

use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// What stands where a key stood.
pub const HIDDEN: &str = "[key]";

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

/// The text without what looks like a key. A key that is known is better taken out as what it is; this is for what people
/// wrote into prompts, environments and files.
pub fn redact(text: &str) -> Cow<'_, str> {
    match &*KEYS {
        Some(keys) => keys.replace_all(text, HIDDEN),
        None => Cow::Borrowed(text),
    }
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
}
