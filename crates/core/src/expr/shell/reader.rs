//! Reads a script as a shell does, as far as needed to classify the places of values.

use std::ops::Range;

/// A value is in a place where it cannot become a quoted word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misplaced {
    /// The place in the template; empty if it was found while rendering.
    pub range: Range<usize>,
    pub message: String,
}

impl Misplaced {
    pub(crate) fn new(place: &str) -> Self {
        Self {
            range: 0..0,
            message: format!("`{{{{ }}}}` is {place}, where a value cannot become a quoted word"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValuePlace {
    /// It is a word by itself.
    Word,
    /// It is a part of a word, or the file of a redirection.
    Within,
    /// Quotes of its own surround it.
    Quotes(char),
}

/// The state of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Single,
    Double,
    Backticks,
    /// `$( )`.
    Command,
    /// `( )`.
    Group,
    /// `${ }`.
    Braces,
    /// `$(( ))`, with the number of its open parentheses.
    Arithmetic(u32),
    Comment,
}

impl Inside {
    fn described(self) -> &'static str {
        match self {
            Self::Single | Self::Double => "inside a quoted text",
            Self::Backticks => "inside backticks (write `$( )`)",
            Self::Braces => "inside `${ }`",
            Self::Arithmetic(_) => "inside an arithmetic expression",
            Self::Comment => "inside a comment",
            Self::Command | Self::Group => "inside parentheses",
        }
    }
}

/// A reader of a script that follows the shell's rules, as far as needed to classify the places of values.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent observation about the text so far"
)]
#[derive(Default)]
pub(super) struct ScriptReader {
    stack: Vec<Inside>,
    /// The character before, which tells whether a word continues.
    before: Option<char>,
    /// True if the character before is escaped, or a value: it begins no comment and closes nothing.
    is_plain: bool,
    /// The word that is being read: `case` has parentheses that close nothing.
    word: String,
    saw_case: bool,
    /// A redirection whose file has not come.
    redirects: bool,
    /// A quote that was opened just before the value.
    opened: bool,
    /// Here-documents whose lines have not begun: the last line of each, and whether tabs go before it.
    documents: Vec<(String, bool)>,
    /// Whether the lines of here-documents are read, and the line so far.
    lines: Option<String>,
    /// Whether a text that ended here needs the next one to be understood.
    pending: String,
    is_unsure: bool,
}

impl ScriptReader {
    /// Reads a value that `next` follows.
    pub(super) fn value(&mut self, next: &str) -> Result<ValuePlace, Misplaced> {
        let pending = std::mem::take(&mut self.pending);
        let refuse = |place: &str| Err(Misplaced::new(place));
        if self.is_unsure {
            return refuse("behind a part that shells read differently");
        }
        if self.lines.is_some() {
            return refuse("inside a here-document");
        }
        match pending.as_str() {
            "" => {}
            "\\" => return refuse("behind a backslash"),
            "$" | "$(" => return refuse("behind a `$`"),
            _ => return refuse("where the name of a here-document ends"),
        }
        let top = self.stack.last().copied();
        let place = match top {
            None | Some(Inside::Command | Inside::Group) => {
                let begins = self.before.is_none_or(ends_word) && !self.is_plain;
                let ends = next.chars().next().is_none_or(ends_word);
                if begins && ends && !self.redirects {
                    ValuePlace::Word
                } else {
                    ValuePlace::Within
                }
            }
            Some(Inside::Single) if self.opened && next.starts_with('\'') => {
                ValuePlace::Quotes('\'')
            }
            Some(Inside::Double) if self.opened && next.starts_with('"') => ValuePlace::Quotes('"'),
            Some(inside) => return refuse(inside.described()),
        };
        self.before = Some('v');
        self.is_plain = true;
        self.redirects = false;
        self.opened = false;
        self.word.clear();
        Ok(place)
    }

    pub(super) fn text(&mut self, text: &str) {
        let mut chars: Vec<char> = std::mem::take(&mut self.pending).chars().collect();
        chars.extend(text.chars());
        let mut at = 0;
        while at < chars.len() {
            match self.step(&chars[at..]) {
                Some(read) => at += read,
                None => {
                    self.pending = chars[at..].iter().collect();
                    return;
                }
            }
        }
    }

    /// Reads from the beginning of `rest` and returns the number of characters read; `None` if it needs more text to decide.
    fn step(&mut self, rest: &[char]) -> Option<usize> {
        let c = rest[0];
        if self.lines.is_some() {
            self.line(c);
            return Some(1);
        }
        self.opened = false;
        match self.stack.last().copied() {
            Some(Inside::Single) => {
                if c == '\'' {
                    self.stack.pop();
                }
                self.moved(c, true)
            }
            Some(Inside::Comment) => {
                if c == '\n' {
                    self.stack.pop();
                    return self.step(rest);
                }
                self.moved(c, true)
            }
            Some(Inside::Backticks) => match c {
                '\\' => self.escaped(rest),
                '`' => {
                    self.stack.pop();
                    self.moved(c, true)
                }
                _ => self.moved(c, true),
            },
            Some(Inside::Double) => match c {
                '\\' => self.escaped(rest),
                '"' => {
                    self.stack.pop();
                    self.moved(c, true)
                }
                '`' => self.push(Inside::Backticks, 1),
                '$' => self.dollar(rest),
                _ => self.moved(c, true),
            },
            Some(Inside::Braces) => match c {
                '\\' => self.escaped(rest),
                '}' => {
                    self.stack.pop();
                    self.moved(c, true)
                }
                '"' => self.push(Inside::Double, 1),
                '\'' => {
                    self.is_unsure |= self.stack.contains(&Inside::Double);
                    self.push(Inside::Single, 1)
                }
                '`' => self.push(Inside::Backticks, 1),
                '$' => self.dollar(rest),
                _ => self.moved(c, true),
            },
            Some(Inside::Arithmetic(open)) => {
                let top = self.stack.len() - 1;
                match c {
                    '(' => self.stack[top] = Inside::Arithmetic(open + 1),
                    ')' if open <= 1 => {
                        self.stack.pop();
                    }
                    ')' => self.stack[top] = Inside::Arithmetic(open - 1),
                    '\'' | '"' | '`' | '\\' => self.is_unsure = true,
                    '$' => return self.dollar(rest),
                    _ => {}
                }
                self.moved(c, true)
            }
            None | Some(Inside::Command | Inside::Group) => self.code(rest),
        }
    }

    /// Text outside quotes.
    fn code(&mut self, rest: &[char]) -> Option<usize> {
        let c = rest[0];
        match c {
            '\\' => return self.escaped(rest),
            '\'' => {
                let read = self.push(Inside::Single, 1);
                self.opened = true;
                return read;
            }
            '"' => {
                let read = self.push(Inside::Double, 1);
                self.opened = true;
                return read;
            }
            '`' => return self.push(Inside::Backticks, 1),
            '$' => return self.dollar(rest),
            '#' if !self.is_plain && self.before.is_none_or(ends_word) => {
                return self.push(Inside::Comment, 1);
            }
            '(' => {
                return match rest.get(1) {
                    None => {
                        // A value or the end of the script follows, so this cannot be `((`.
                        self.push(Inside::Group, 1)
                    }
                    Some('(') => self.push(Inside::Arithmetic(2), 2),
                    Some(_) => self.push(Inside::Group, 1),
                };
            }
            ')' => {
                if matches!(self.stack.last(), Some(Inside::Command | Inside::Group)) {
                    self.is_unsure |= self.saw_case;
                    self.stack.pop();
                }
                // Text behind `$( )` continues the word; text behind a group does not. Treating both as a continued word only
                // refuses more.
                return self.moved(c, true);
            }
            '<' => return self.document(rest),
            '>' => {
                self.word.clear();
                self.redirects = true;
                self.before = Some(c);
                self.is_plain = false;
                return Some(1);
            }
            '\n' if !self.documents.is_empty() => self.lines = Some(String::new()),
            _ => {}
        }
        if ends_word(c) {
            self.saw_case |= self.word == "case";
            self.word.clear();
            if !matches!(c, ' ' | '\t') {
                self.redirects = false;
            }
        } else {
            self.redirects = false;
            self.word.push(c);
        }
        self.before = Some(c);
        self.is_plain = false;
        Some(1)
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "`step` and its parts answer alike"
    )]
    fn moved(&mut self, c: char, is_plain: bool) -> Option<usize> {
        self.before = Some(c);
        self.is_plain = is_plain;
        self.redirects = false;
        self.word.clear();
        Some(1)
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "`step` and its parts answer alike"
    )]
    fn push(&mut self, inside: Inside, read: usize) -> Option<usize> {
        self.stack.push(inside);
        // A command or a group begins as a script does.
        let begins = matches!(inside, Inside::Command | Inside::Group);
        self.before = (!begins).then_some('q');
        self.is_plain = !begins;
        self.redirects = false;
        self.word.clear();
        Some(read)
    }

    fn escaped(&mut self, rest: &[char]) -> Option<usize> {
        rest.get(1)?;
        self.moved('\\', true);
        Some(2)
    }

    /// Reads `$` and the expansion that it begins.
    fn dollar(&mut self, rest: &[char]) -> Option<usize> {
        match (rest.get(1)?, rest.get(2)) {
            ('(', None) => None,
            ('(', Some('(')) => self.push(Inside::Arithmetic(2), 3),
            ('(', Some(_)) => self.push(Inside::Command, 2),
            ('{', _) => self.push(Inside::Braces, 2),
            ('[', _) => {
                self.is_unsure = true;
                self.moved('$', true)
            }
            // Inside of double quotes this begins nothing.
            ('\'', _) if self.stack.last() != Some(&Inside::Double) => {
                self.is_unsure = true;
                self.moved('$', true)
            }
            _ => self.moved('$', true),
        }
    }

    /// `<`, `<<NAME`, `<<<`.
    fn document(&mut self, rest: &[char]) -> Option<usize> {
        self.word.clear();
        self.before = Some('<');
        self.is_plain = false;
        self.redirects = true;
        if rest.get(1) != Some(&'<') {
            return Some(1);
        }
        if rest.get(2) == Some(&'<') {
            return Some(3);
        }
        let has_tabs = rest.get(2) == Some(&'-');
        let start = 2 + usize::from(has_tabs);
        let blanks = rest[start.min(rest.len())..]
            .iter()
            .take_while(|c| matches!(c, ' ' | '\t'));
        let start = start + blanks.count();
        let length = rest[start.min(rest.len())..]
            .iter()
            .take_while(|c| !ends_word(**c))
            .count();
        // The name is complete only when the next text shows a character that ends it.
        if start + length >= rest.len() {
            return None;
        }
        let name = rest[start..start + length]
            .iter()
            .filter(|c| !matches!(c, '\'' | '"' | '\\'));
        let name: String = name.collect();
        self.is_unsure |= name.contains(['$', '`']) || name.is_empty();
        self.documents.push((name, has_tabs));
        self.moved('d', true);
        Some(start + length)
    }

    /// A character of a here-document.
    fn line(&mut self, c: char) {
        let Some(line) = &mut self.lines else { return };
        if c != '\n' {
            line.push(c);
            return;
        }
        let Some((name, has_tabs)) = self.documents.first() else {
            return;
        };
        let is_over = if *has_tabs {
            line.trim_start_matches('\t') == name
        } else {
            line == name
        };
        line.clear();
        if is_over {
            self.documents.remove(0);
            if self.documents.is_empty() {
                self.lines = None;
            }
        }
        self.before = Some('\n');
        self.is_plain = false;
    }
}

/// Returns true if a character ends a word or separates words.
fn ends_word(c: char) -> bool {
    c.is_ascii_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '<' | '>')
}
