//! Slips in a TOML text that a parser notices too late: a quote or bracket that is missing, a word without quotes.

use crate::expr::place::excerpt;
use std::ops::Range;
use toml::de::DeTable;

/// Characters of a value that a help shows.
const SHOWN: usize = 100;

/// The deepest value that is read; the parser refuses deeper ones.
const DEEPEST: usize = 100;

/// A slip: where it is, what to do, and the edit that mends it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slip {
    /// The bytes that are wrong, from where the value begins.
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    /// The label under the marked bytes; may be empty.
    pub(crate) label: &'static str,
    pub(crate) help: String,
    /// The bytes to replace, with the replacement; `None` if the end of the text is unknown.
    pub(crate) edit: Option<(Range<usize>, String)>,
}

/// Returns the first slip of a text that is not TOML, if it is one of those known here.
pub(crate) fn slip(text: &str) -> Option<Slip> {
    let mut line = 0;
    while line < text.len() {
        let mut scan = Scan {
            text,
            at: line,
            depth: 0,
        };
        match scan.line() {
            Err(ScanEnd::Slip(slip)) => return Some(*slip),
            // A scan cannot continue behind a mistake: resume at the next line.
            Err(ScanEnd::Unknown) => line = scan.end_of_line().max(line) + 1,
            Ok(()) => line = scan.end_of_line() + 1,
        }
    }
    None
}

/// Why a scan ends early.
enum ScanEnd {
    Slip(Box<Slip>),
    Unknown,
}

type Scanned = Result<(), ScanEnd>;

/// The context of a value, which determines what ends it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Line,
    List,
    Table,
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    /// Lists and tables around the value.
    depth: usize,
}

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn end_of_line(&self) -> usize {
        self.rest()
            .find('\n')
            .map_or(self.text.len(), |end| self.at + end)
    }

    /// Returns the rest of the line without spaces at its end.
    fn rest_of_line(&self) -> &'a str {
        self.text[self.at..self.end_of_line()].trim_end()
    }

    fn spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    /// Spaces, newlines and comments.
    fn gap(&mut self) {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            if !self.rest().starts_with('#') {
                return;
            }
            self.at = self.end_of_line();
        }
    }

    /// A line outside of every value: nothing, a header, or a key and its value.
    fn line(&mut self) -> Scanned {
        self.spaces();
        let rest = self.rest_of_line();
        if rest.is_empty() || rest.starts_with(['#', '[', '\r']) {
            return Ok(());
        }
        self.entry(Inside::Line)?;
        self.spaces();
        let rest = self.rest_of_line();
        let is_done = rest.is_empty() || rest.starts_with('#');
        if is_done {
            Ok(())
        } else {
            Err(ScanEnd::Unknown)
        }
    }

    /// A key, `=` and a value.
    fn entry(&mut self, inside: Inside) -> Scanned {
        let start = self.at;
        let is_key = |c: char| c.is_ascii_alphanumeric() || "_-. \t".contains(c);
        let rest = self.rest_of_line();
        let length = if rest.starts_with(['"', '\'']) {
            let quoted = end_of_string(rest).ok_or(ScanEnd::Unknown)?;
            quoted + rest[quoted..].find(|c| !is_key(c)).unwrap_or(0)
        } else {
            rest.find(|c| !is_key(c)).unwrap_or(rest.len())
        };
        let key = rest[..length].trim_end();
        self.at += length;
        match self.rest().chars().next() {
            Some('=') if !key.is_empty() => {
                self.at += 1;
                self.spaces();
                self.value(inside)
            }
            Some(':') if !key.is_empty() => {
                let value = self.text[self.at + 1..self.end_of_line()].trim();
                Err(ScanEnd::Slip(Box::new(Slip {
                    span: self.at..self.at + 1,
                    message: format!("`{key}` is followed by `:`"),
                    label: "expected `=`",
                    help: format!("write {}", excerpt(&format!("{key} = {value}"), SHOWN)),
                    edit: Some((start + key.len()..self.at + 1, " =".to_owned())),
                })))
            }
            _ => Err(ScanEnd::Unknown),
        }
    }

    fn value(&mut self, inside: Inside) -> Scanned {
        let rest = self.rest();
        if rest.starts_with("\"\"\"") || rest.starts_with("'''") {
            return self.long_string();
        }
        match rest.chars().next() {
            Some('"' | '\'') => self.string(inside),
            Some('[') => self.deeper(Self::list),
            Some('{') if !rest.starts_with("{{") => self.deeper(Self::table),
            Some(_) => self.word(inside),
            None => Err(ScanEnd::Unknown),
        }
    }

    fn deeper(&mut self, read: fn(&mut Self) -> Scanned) -> Scanned {
        if self.depth == DEEPEST {
            return Err(ScanEnd::Unknown);
        }
        self.depth += 1;
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn long_string(&mut self) -> Scanned {
        let (quotes, rest) = self.rest().split_at(3);
        let mut at = 0;
        while let Some(found) = rest[at..].find(['\\', '"', '\'']) {
            at += found;
            let rest = &rest[at..];
            if rest.starts_with(quotes) {
                let more = &rest[3..];
                let closing = more.len() - more.trim_start_matches(&quotes[..1]).len();
                self.at += 3 + at + 3 + closing;
                return Ok(());
            }
            let escaped = if rest.starts_with('\\') && quotes == "\"\"\"" {
                rest[1..].chars().next().map_or(0, char::len_utf8)
            } else {
                0
            };
            at += 1 + escaped;
        }
        let end = self.at + self.rest_of_line().len();
        Err(ScanEnd::Slip(Box::new(Slip {
            span: self.at..end,
            message: format!("this string has no closing `{quotes}`"),
            label: "",
            help: format!("write `{quotes}` where it ends"),
            edit: None,
        })))
    }

    fn string(&mut self, inside: Inside) -> Scanned {
        let rest = self.rest_of_line();
        let quote = &rest[..1];
        let start = self.at;
        let missing = |end: usize| {
            let text = &self.text[start..end];
            Err(ScanEnd::Slip(Box::new(Slip {
                span: start..end,
                message: format!("this string has no closing `{quote}`"),
                label: "",
                help: format!("write {}", excerpt(&format!("{text}{quote}"), SHOWN)),
                edit: Some((end..end, quote.to_owned())),
            })))
        };
        let Some(length) = end_of_string(rest) else {
            let ends: &[char] = match inside {
                Inside::Line => &[],
                Inside::List => &[',', ']', ' ', '\t'],
                Inside::Table => &[',', '}', ' ', '\t'],
            };
            let text = rest.trim_end_matches(ends);
            return missing(start + text.len().max(1));
        };
        // A string that ends at the quote in which the next one begins.
        let text = &rest[..length - 1];
        let after = rest[length..].trim_start();
        let is_ended = after.is_empty() || after.starts_with([',', ']', '}', '#']);
        if inside != Inside::Line && !is_ended && text.trim_end().ends_with(',') {
            return missing(start + text.trim_end().trim_end_matches(',').trim_end().len());
        }
        self.at += length;
        Ok(())
    }

    fn list(&mut self) -> Scanned {
        let start = self.at;
        self.at += 1;
        // Where the last item ends: that is where a bracket is missing.
        let mut end = self.at;
        loop {
            self.gap();
            if self.rest().is_empty() || self.begins_something_else(end) {
                return Err(ScanEnd::Slip(Box::new(Slip {
                    span: start..start + 1,
                    message: "this list has no closing `]`".to_owned(),
                    label: "",
                    help: format!(
                        "write `]` behind its last item, in line {}",
                        self.line_of(end)
                    ),
                    edit: Some((end..end, "]".to_owned())),
                })));
            }
            match self.rest().chars().next() {
                Some(']') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(',') => self.at += 1,
                _ => {
                    self.value(Inside::List)?;
                    end = self.at;
                    self.gap();
                    if !self.rest().starts_with([',', ']'])
                        && !self.begins_something_else(end)
                        && !self.rest().is_empty()
                    {
                        return Err(ScanEnd::Unknown);
                    }
                }
            }
        }
    }

    fn line_of(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// Returns true if a header or a key starts here, at the beginning of a line after `end`: a list cannot contain one.
    fn begins_something_else(&self, end: usize) -> bool {
        if !self.text[end..self.at].contains('\n') {
            return false;
        }
        let line = self.rest_of_line();
        let is_word = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
                && !["true", "false", "inf", "nan"].contains(&text)
        };
        let key = line.split('=').next().filter(|_| line.contains('='));
        let header = line.split('#').next().unwrap_or_default().trim_end();
        let header = header
            .strip_prefix('[')
            .and_then(|header| header.strip_suffix(']'));
        let header = header.map(|header| {
            header
                .strip_prefix('[')
                .and_then(|inner| inner.strip_suffix(']'))
                .unwrap_or(header)
        });
        key.is_some_and(|key| is_word(key.trim_end())) || header.is_some_and(is_word)
    }

    fn table(&mut self) -> Scanned {
        self.at += 1;
        loop {
            self.gap();
            match self.rest().chars().next() {
                Some('}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(',') => self.at += 1,
                Some(_) => {
                    self.entry(Inside::Table)?;
                    self.gap();
                    if !self.rest().starts_with([',', '}']) {
                        return Err(ScanEnd::Unknown);
                    }
                }
                None => return Err(ScanEnd::Unknown),
            }
        }
    }

    /// A value without quotes: a number, a date, true or false; else a string whose quotes are missing.
    fn word(&mut self, inside: Inside) -> Scanned {
        let rest = self.rest_of_line();
        let braces = rest
            .find("{{")
            .and_then(|open| Some(open + rest[open..].find("}}")? + 2))
            .unwrap_or(0);
        let ends: &[char] = match inside {
            Inside::Line => &['#'],
            Inside::List => &[',', ']', '#'],
            Inside::Table => &[',', '}', '#'],
        };
        let first = rest.find(ends).unwrap_or(rest.len());
        let length = if first < braces {
            rest[braces..]
                .find(ends)
                .map_or(rest.len(), |end| braces + end)
        } else {
            first
        };
        let word = rest[..length].trim_end();
        if word.is_empty() || DeTable::parse(&format!("x = {word}")).is_ok() {
            self.at += word.len();
            return if word.is_empty() {
                Err(ScanEnd::Unknown)
            } else {
                Ok(())
            };
        }
        let span = self.at..self.at + word.len();
        let slip = |message: &str, label, help, edit: String| {
            let edit = Some((span.clone(), edit));
            Err(ScanEnd::Slip(Box::new(Slip {
                span: span.clone(),
                message: message.to_owned(),
                label,
                help,
                edit,
            })))
        };
        let boolean = match word.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some("true"),
            "false" | "no" | "off" => Some("false"),
            _ => None,
        };
        if let Some(boolean) = boolean {
            let help = format!("write `{boolean}`, or \"{word}\" if a text is meant");
            return slip(
                "the booleans of TOML are `true` and `false`",
                "",
                help,
                boolean.to_owned(),
            );
        }
        if ["null", "none", "nil", "~"].contains(&word.to_ascii_lowercase().as_str()) {
            let help = "leave the key out".to_owned();
            return slip("TOML has no null", "", help, "false".to_owned());
        }
        let bare = word.trim_matches(['"', '\'']);
        let has_quote = word.len() > bare.len();
        // A quote inside would be another mistake, and no quotes would mend it.
        if bare.is_empty() || bare.contains('"') || (!has_quote && bare.contains(" = ")) {
            return Err(ScanEnd::Unknown);
        }
        let quoted = format!("\"{bare}\"");
        let (message, label) = if has_quote {
            ("this string has no opening quote", "")
        } else {
            ("this string has no quotes", "")
        };
        slip(
            message,
            label,
            format!("write {}", excerpt(&quoted, SHOWN)),
            quoted,
        )
    }
}

/// Returns the bytes of a string with both its quotes; none where the line ends before it.
fn end_of_string(line: &str) -> Option<usize> {
    let quote = line.chars().next()?;
    let mut escaped = false;
    for (at, c) in line.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(text: &str) -> Option<String> {
        let (range, new) = slip(text)?.edit?;
        Some(format!(
            "{}{new}{}",
            &text[..range.start],
            &text[range.end..]
        ))
    }

    #[test]
    fn a_slip_is_mended_where_it_is() {
        for (wrong, right) in [
            ("a = \"x\nb = 1\n", "a = \"x\"\nb = 1\n"),
            ("a = 'x\n", "a = 'x'\n"),
            ("a = x/{{ y }}.txt\"\n", "a = \"x/{{ y }}.txt\"\n"),
            ("a = x/{{ y }}.txt # z\n", "a = \"x/{{ y }}.txt\" # z\n"),
            ("a = {{ y | d(\"}\") }}\n", ""),
            ("a = [\"x, \"{{ y }}\"]\n", "a = [\"x\", \"{{ y }}\"]\n"),
            ("a = [\"x\", \"{{ y }}]\n", "a = [\"x\", \"{{ y }}\"]\n"),
            ("a = [{{ y }}, \"z\"]\n", "a = [\"{{ y }}\", \"z\"]\n"),
            (
                "a = [\"x\",\n  \"y\" # z\n\n[b]\nc = 1\n",
                "a = [\"x\",\n  \"y\"] # z\n\n[b]\nc = 1\n",
            ),
            ("a = [\"x\"", "a = [\"x\"]"),
            ("a = [[1], [true]\nb = 1\n", "a = [[1], [true]]\nb = 1\n"),
            ("a = { b = \"c, d = 1 }\n", "a = { b = \"c, d = 1\" }\n"),
            ("a: 1\n", "a = 1\n"),
            ("a = { b : \"c\" }\n", "a = { b = \"c\" }\n"),
            ("a = 10m\n", "a = \"10m\"\n"),
            ("a = True\n", "a = true\n"),
            (
                "a = \"ä \\\" x\r\nb = 1\r\n",
                "a = \"ä \\\" x\"\r\nb = 1\r\n",
            ),
        ] {
            assert_eq!(mended(wrong).unwrap_or_default(), right, "{wrong}");
        }
    }

    #[test]
    fn what_is_right_is_no_slip() {
        for text in [
            "",
            "a",
            "[a]\n[[b.c]]\n\"d e\".f = 'x # y' # z\n",
            "a = [1, [\"x\", 'y'], { b = 2, c = [] }, # z\n  2026-11-21, -1.5e3, inf]\n",
            "a = \"\"\"\nx \\\"\"\" \"y\" \"\"\"\"\nb = '''\n'x' ''' # y\n",
            "a = \"x\" \"y\"\n",
            "a = [\n  \"x=1\",\n  # b = 2\n  true,\n]\n",
        ] {
            assert_eq!(slip(text), None, "{text}");
        }
        for deep in ["[", "{ a = "] {
            assert_eq!(slip(&format!("x = {}", deep.repeat(100_000))), None);
        }
    }
}
