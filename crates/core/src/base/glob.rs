//! Patterns over paths: `intermediate/batches/batch_*.json`.

use super::path::{PathError, RelPath};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;

/// The most alternatives in braces of a pattern. They can be nested, and each level takes a part of the stack.
const BRACES: usize = 100;

/// How names begin that wildcards do not match: hidden files, and lock files of editors and of Office.
const HIDDEN: [&str; 2] = [".", "~$"];

/// A pattern over paths. `*` stands for any characters of one part, `**` as a whole part for any number of parts.
#[derive(Clone)]
pub struct Glob {
    text: String,
    matcher: globset::GlobMatcher,
}

/// Why a pattern is wrong.
#[derive(Debug, thiserror::Error)]
pub enum GlobError {
    /// The path without the wildcards is wrong.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The wildcards are wrong.
    #[error("`{0}` is not a pattern: {1}")]
    Pattern(String, String),
}

impl Glob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// If it leaves its folder, its brackets do not match, or it has too many braces.
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        let path = RelPath::parse(text)?;
        // A brace in brackets is a letter.
        if text.matches('{').count() > BRACES + text.matches("[{").count() {
            let message = format!("it has more than {BRACES} `{{`");
            return Err(GlobError::Pattern(text.to_owned(), message));
        }
        let glob = globset::GlobBuilder::new(path.as_str())
            .literal_separator(true)
            .backslash_escape(false)
            .build()
            .map_err(|error| GlobError::Pattern(text.to_owned(), error.kind().to_string()))?;
        Ok(Self {
            text: path.as_str().to_owned(),
            matcher: glob.compile_matcher(),
        })
    }

    /// Parses the path of an output, in which `*` is the only wildcard.
    ///
    /// # Errors
    /// The errors of [`Glob::parse`].
    pub fn of_output(path: &RelPath) -> Result<Self, GlobError> {
        let pieces: Vec<Cow<'_, str>> = path.as_str().split('*').map(escaped).collect();
        Self::parse(&pieces.join("*"))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if the path matches. Hidden names match only if the pattern writes how they begin.
    pub fn matches(&self, path: &RelPath) -> bool {
        self.matches_hidden(path) && self.writes_hidden(path.as_str())
    }

    /// Returns true if the path matches. Wildcards also match hidden names: a step has only its own files in its folder.
    pub fn matches_hidden(&self, path: &RelPath) -> bool {
        self.matcher.is_match(path.as_str())
    }

    /// Returns true if parts of the pattern write how each hidden name in a path begins.
    fn writes_hidden(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        if !names.iter().any(|name| is_hidden(name)) {
            return true;
        }
        let parts: Vec<&str> = self.text.split('/').collect();
        let stands_for = |part: &&str, name: &&str| {
            (!is_hidden(name) || writes_hidden(part, name)) && parts_meet(part, name)
        };
        meet(
            &parts,
            &names,
            |part| *part == "**",
            |name| !is_hidden(name),
            stands_for,
        )
    }

    /// Returns true if matches may lie in a folder with this name: no hidden one, if no part of the pattern begins as its name does.
    pub fn may_enter(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        !is_hidden(&name) || self.text.split('/').any(|part| writes_hidden(part, &name))
    }

    /// Returns the folder that contains every match; `None` for the whole workspace.
    pub fn folder(&self) -> Option<RelPath> {
        let first = self.text.find(is_wild)?;
        let (folder, _) = self.text[..first].rsplit_once('/')?;
        RelPath::parse(folder).ok()
    }

    /// Returns true if matches may lie in folders below [`Glob::folder`].
    pub fn is_deep(&self) -> bool {
        let after = self.folder().map_or(0, |folder| folder.as_str().len() + 1);
        self.text[after..].contains('/')
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

/// Returns true if a text is a pattern and not a plain path.
pub fn is_pattern(text: &str) -> bool {
    text.contains(is_wild)
}

fn is_hidden(name: &str) -> bool {
    HIDDEN.iter().any(|begin| name.starts_with(begin))
}

/// Returns true if a part of a pattern begins as a hidden name does. Braces hold alternatives.
fn writes_hidden(part: &str, name: &str) -> bool {
    let begin = HIDDEN.iter().find(|begin| name.starts_with(**begin));
    let mut forms = match part.strip_prefix('{') {
        Some(forms) => forms.split(',').collect(),
        None => vec![part],
    }
    .into_iter();
    begin.is_some_and(|begin| forms.any(|form| form.starts_with(begin)))
}

fn is_wild(c: char) -> bool {
    matches!(c, '*' | '?' | '[' | '{')
}

/// Returns the pattern that matches only this text. A comma would end an alternative between braces.
pub fn escaped(text: &str) -> Cow<'_, str> {
    let is_special = |c: char| is_wild(c) || matches!(c, ']' | '}' | ',');
    if !text.contains(is_special) {
        return text.into();
    }
    let mut pattern = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_special(c) {
            pattern.extend(['[', c, ']']);
        } else {
            pattern.push(c);
        }
    }
    pattern.into()
}

/// Returns true if the path of an output stands for any number of files.
pub fn is_starred(path: &RelPath) -> bool {
    path.as_str().contains('*')
}

/// Returns true if some path may match both patterns. Other wildcards count as `*`, so the result can be true for patterns that
/// share no path, but never false for patterns that do.
pub fn may_meet(a: &str, b: &str) -> bool {
    let (a, b) = (parts(a), parts(b));
    meet(&a, &b, |part| *part == "**", |_| true, parts_meet)
}

/// Returns the parts of a pattern. One with a `/` between braces counts as `**`.
fn parts(pattern: &str) -> Vec<&str> {
    let (mut found, mut begin, mut depth, mut is_deep) = (Vec::new(), 0, 0_usize, false);
    for (at, c) in pattern.char_indices().chain([(pattern.len(), '/')]) {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '/' if depth > 0 && at < pattern.len() => is_deep = true,
            '/' => {
                found.push(if is_deep { "**" } else { &pattern[begin..at] });
                (begin, is_deep) = (at + 1, false);
            }
            _ => {}
        }
    }
    found
}

fn parts_meet(a: &&str, b: &&str) -> bool {
    meet(
        &starred(a),
        &starred(b),
        |c| *c == '*',
        |_| true,
        |a, b| a == b,
    )
}

/// Returns true if two rows of pieces can match the same row. A wild piece matches any number of pieces, one of `a` only those that
/// `covered` allows. Each pair of rests is compared once: trying every combination would take twice as long for each wild piece.
fn meet<T>(
    a: &[T],
    b: &[T],
    is_wild: impl Fn(&T) -> bool,
    covered: impl Fn(&T) -> bool,
    same: impl Fn(&T, &T) -> bool,
) -> bool {
    // Whether the rest of `a` meets each rest of `b`, from the ends on.
    let mut after = vec![false; b.len() + 1];
    for i in (0..=a.len()).rev() {
        let mut meets = vec![false; b.len() + 1];
        for j in (0..=b.len()).rev() {
            let (x, y) = (a.get(i), b.get(j));
            let without_x = x.is_some() && after[j];
            let without_y = y.is_some() && meets[j + 1];
            meets[j] = match (x, y) {
                (None, None) => true,
                (Some(x), _) if is_wild(x) => without_x || without_y && y.is_some_and(&covered),
                (_, Some(y)) if is_wild(y) => without_x || without_y,
                (Some(x), Some(y)) => after[j + 1] && same(x, y),
                _ => false,
            };
        }
        after = meets;
    }
    after[0]
}

/// Returns a part with brackets, braces and `?` replaced by `*`. A single character in brackets is itself.
fn starred(part: &str) -> Vec<char> {
    let all: Vec<char> = part.chars().collect();
    let mut chars = Vec::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&c) = all.get(at) {
        at += 1;
        match c {
            '[' => {
                // The first character belongs to the class even if it is a bracket.
                let first = at + usize::from(matches!(all.get(at), Some('!' | '^')));
                let rest = all.get(first + 1..).unwrap_or_default();
                let length = rest.iter().position(|c| *c == ']');
                let piece = match (length, all.get(at)) {
                    (Some(0), Some(&only)) if first == at => only,
                    _ => '*',
                };
                if depth == 0 {
                    chars.push(piece);
                }
                at = length.map_or(all.len(), |length| first + length + 2);
            }
            '{' => {
                depth += 1;
                chars.push('*');
            }
            '}' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            '?' => chars.push('*'),
            c => chars.push(c),
        }
    }
    chars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_wild_pieces_do_not_take_for_ever() {
        let wild = format!("out/{}.xlsx", "?".repeat(80));
        assert!(may_meet(&wild, "out/*.xlsx"));
        assert!(!may_meet(&wild, &format!("out/{}.json", "*a".repeat(80))));
        let deep = "**/a/".repeat(40);
        assert!(!may_meet(&format!("{deep}b"), &format!("{deep}c")));
    }

    #[test]
    fn a_star_stays_in_its_part() {
        let glob = Glob::parse("intermediate/batches/batch_*.json").unwrap();
        let matches = |path: &str| glob.matches(&RelPath::parse(path).unwrap());
        assert!(matches("intermediate/batches/batch_1.json"));
        assert!(!matches("intermediate/batches/x/batch_1.json"));
        assert!(!matches("intermediate/batches/batch_1.json.tmp"));
        assert_eq!(glob.folder().unwrap().as_str(), "intermediate/batches");
        assert!(!glob.is_deep());
        assert!(Glob::parse("inputs/*/x.json").unwrap().is_deep());
        assert!(Glob::parse("../*.json").is_err());
    }

    #[test]
    fn a_hidden_name_matches_only_where_its_begin_is_written() {
        for (pattern, path, is_match) in [
            ("in/*", "in/.a", false),
            ("in/*.json", "in/._a.json", false),
            ("in/*.json", "in/.#a.json", false),
            ("in/*.ods#", "in/.~lock.a.ods#", false),
            ("in/*.xlsx", "in/~$a.xlsx", false),
            ("in/?a", "in/.a", false),
            ("in/[.]a", "in/.a", false),
            ("in/[!x]a", "in/.a", false),
            ("in/{*,b}", "in/.a", false),
            ("in/{.a,b}", "in/.a", true),
            ("in/.*", "in/.a", true),
            ("in/.*", "in/a", false),
            ("in/~$*", "in/~$a.xlsx", true),
            ("in/*", "in/a~", true),
            ("in/*", "in/a.b", true),
            ("in/**", "in/.git/a", false),
            ("in/**/a", "in/.git/a", false),
            ("**/a", ".git/a", false),
            ("in/**/.git/*", "in/b/.git/a", true),
            ("in/**/.git/*", "in/.b/.git/a", false),
            (".config/**/*.json", ".config/b/a.json", true),
            (".config/*/a", ".config/.b/a", false),
            ("in/.a", "in/.a", true),
        ] {
            let glob = Glob::parse(pattern).unwrap();
            let path = RelPath::parse(path).unwrap();
            assert_eq!(glob.matches(&path), is_match, "{pattern} {path}");
        }
        let output = Glob::of_output(&RelPath::parse("out/*").unwrap()).unwrap();
        assert!(output.matches_hidden(&RelPath::parse("out/.htaccess").unwrap()));
    }

    #[test]
    fn an_escaped_text_matches_only_itself() {
        for text in [
            "a[1].txt", "[ab]", "a*", "a?", "{a,b}", "a]", "}", "[!a]", "a,b",
        ] {
            let around = format!("in/{}_*.json", escaped(text));
            let glob = Glob::parse(&around).unwrap();
            let matches = |path: String| glob.matches(&RelPath::parse(&path).unwrap());
            assert!(matches(format!("in/{text}_1.json")), "{text}");
            assert!(!matches("in/a_1.json".to_owned()), "{text}");
            let output = RelPath::parse(&format!("out/{}_*.json", text.replace('*', "_"))).unwrap();
            let glob = Glob::of_output(&output).unwrap();
            let file = RelPath::parse(&output.as_str().replace('*', "1")).unwrap();
            assert!(glob.matches(&file), "{text}");
        }
        assert_eq!(escaped("plain_1.txt"), "plain_1.txt");
    }

    #[test]
    fn tells_whether_patterns_can_meet() {
        for (a, b, meet) in [
            ("a/batch_*.json", "a/batch_*.json", true),
            ("a/batch_*.json", "a/*_classified.json", true),
            ("a/batch_*.json", "b/batch_*.json", false),
            ("a/*.json", "a/x.csv", false),
            ("a/x.json", "a/x.json", true),
            ("a/x.json", "a/y.json", false),
            ("**/x.json", "a/b/x.json", true),
            ("a/[xy].json", "a/x.json", true),
            ("a/[[]x[]].json", "a/x.json", false),
            ("a/[[]x[]].json", "a/*].json", true),
            ("a/[!x].json", "a/y.json", true),
            ("a/[]x].json", "a/].json", true),
            ("a/[x.json", "a/y.json", true),
            ("{a/x,a/y}.json", "a/x.json", true),
            ("{a/x,a/y}.json", "a/x.csv", true),
            ("b/{a/x,a/y}.json", "a/b/x.json", false),
            ("{a,b}/x.json", "b/x.json", true),
        ] {
            assert_eq!(may_meet(a, b), meet, "{a} {b}");
            assert_eq!(may_meet(b, a), meet, "{b} {a}");
        }
    }
}
