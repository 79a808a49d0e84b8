//! Operators that build values: the engine limits neither `~` nor `+` nor `*`, so filters check their operands and results.
//!
//! `a ~ b * c` becomes `(a)|CONCATENATED ~ (b * c)|CONCATENATED`, and `a + b` becomes `(a + b)|BUILT`.

use super::limits::{BUILT, CONCATENATED};
use super::tags::{ident, string, tags};
use std::ops::Range;

/// A template whose operators are checked.
#[derive(Debug, Clone)]
pub(super) struct CheckedTemplate {
    pub(super) text: String,
    /// Each insertion: its place in the source, and its text.
    inserted: Vec<(usize, String)>,
}

impl CheckedTemplate {
    /// Checks the operators in the tags of a template.
    pub(super) fn template(source: &str) -> Self {
        let mut inserted = Vec::new();
        for tag in tags(source) {
            let at = tag.body.as_ptr() as usize - source.as_ptr() as usize;
            let body = tag.body.strip_suffix(['-', '+']).unwrap_or(tag.body);
            let begin = usize::from(body.starts_with(['-', '+']));
            Expression::read(body, begin, at, tag.is_statement, &mut inserted);
        }
        Self::with(source, inserted)
    }

    /// Checks the operators of an expression.
    pub(super) fn expression(source: &str) -> Self {
        let mut inserted = Vec::new();
        Expression::read(source, 0, 0, false, &mut inserted);
        Self::with(source, inserted)
    }

    /// The template as it is.
    pub(super) fn unchecked(source: &str) -> Self {
        Self::with(source, Vec::new())
    }

    fn with(source: &str, mut inserted: Vec<(usize, String)>) -> Self {
        inserted.sort_by_key(|(at, text)| (*at, text == "("));
        let mut text = String::with_capacity(source.len());
        let mut begin = 0;
        for (at, more) in &inserted {
            text.push_str(&source[begin..*at]);
            text.push_str(more);
            begin = *at;
        }
        text.push_str(&source[begin..]);
        Self { text, inserted }
    }

    /// Returns the place in the source of a place in the checked text.
    pub(super) fn in_source(&self, range: Range<usize>) -> Range<usize> {
        self.at(range.start)..self.at(range.end)
    }

    fn at(&self, place: usize) -> usize {
        let mut before = 0;
        for (at, text) in &self.inserted {
            if at + before >= place {
                break;
            }
            before += text.len().min(place - at - before);
        }
        place - before
    }
}

/// An expression, or one inside brackets.
#[derive(Default)]
struct Expression {
    /// Where the sum and its last operand begin.
    sum: Option<usize>,
    operand: Option<usize>,
    /// Where the last token ends.
    end: usize,
    /// True if the last token ends a value, so that an operator follows.
    has_value: bool,
    /// True if the sum has a `+`.
    adds: bool,
    /// The filter of the operand, if it has a `*` or follows a `~`.
    filter: Option<&'static str>,
}

impl Expression {
    /// Finds the operators of a text that begins at `base` of the source.
    fn read(
        text: &str,
        begin: usize,
        base: usize,
        is_statement: bool,
        into: &mut Vec<(usize, String)>,
    ) {
        let mut open = vec![Self::default()];
        let mut at = begin;
        // The word of a statement is not a value.
        let mut is_first = is_statement;
        let (mut is_field, mut is_test) = (false, false);
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let Some(inner) = open.last_mut() else {
                return;
            };
            let (mut field, mut test) = (false, false);
            let length = match c {
                c if c.is_whitespace() => {
                    at += c.len_utf8();
                    continue;
                }
                '"' | '\'' => inner.value(at, string(rest)),
                '0'..='9' => inner.value(at, number(rest)),
                '(' | '[' | '{' => {
                    inner.value(at, 1);
                    open.push(Self::default());
                    1
                }
                ')' | ']' | '}' => {
                    inner.ends(base, into);
                    if open.len() > 1 {
                        open.pop();
                    }
                    open.last_mut().map_or(1, |outer| outer.value(at, 1))
                }
                '~' => {
                    inner.operand_ends(true, base, into);
                    inner.filter = Some(CONCATENATED);
                    inner.begins_operand();
                    1
                }
                '+' | '-' if inner.has_value => {
                    inner.operand_ends(false, base, into);
                    inner.adds |= c == '+';
                    inner.begins_operand();
                    1
                }
                '+' | '-' => {
                    inner.value(at, 1);
                    inner.has_value = false;
                    1
                }
                '*' if !inner.has_value => {
                    // Arguments of a call: `f(*list, **names)`.
                    *inner = Self::default();
                    1
                }
                '*' | '/' | '%' => {
                    let length = if rest.starts_with("**") || rest.starts_with("//") {
                        2
                    } else {
                        1
                    };
                    if c == '*' && length == 1 {
                        inner.filter.get_or_insert(BUILT);
                    }
                    inner.has_value = false;
                    length
                }
                ',' | ':' | '=' | '!' | '<' | '>' => {
                    inner.ends(base, into);
                    *inner = Self::default();
                    1
                }
                '|' | '.' => {
                    field = true;
                    inner.end = at + 1;
                    1
                }
                _ => match ident(rest) {
                    Some(word) => {
                        let is_word = !(is_field || is_test && word == "not");
                        match word {
                            _ if is_first => *inner = Self::default(),
                            "if" | "elif" | "else" | "and" | "or" | "in" | "not" if is_word => {
                                inner.ends(base, into);
                                *inner = Self::default();
                            }
                            "is" if is_word => test = true,
                            _ => {
                                inner.value(at, word.len());
                            }
                        }
                        word.len()
                    }
                    None => inner.value(at, c.len_utf8()),
                },
            };
            is_first = false;
            (is_field, is_test) = (field, test);
            at += length;
        }
        for inner in &mut open {
            inner.ends(base, into);
        }
    }

    /// Reads a token of a value, and returns its length.
    fn value(&mut self, at: usize, length: usize) -> usize {
        self.sum.get_or_insert(at);
        self.operand.get_or_insert(at);
        self.end = at + length;
        self.has_value = true;
        length
    }

    fn begins_operand(&mut self) {
        self.operand = None;
        self.has_value = false;
    }

    fn operand_ends(
        &mut self,
        is_before_tilde: bool,
        base: usize,
        into: &mut Vec<(usize, String)>,
    ) {
        let own = self.filter.take();
        let filter = if is_before_tilde {
            Some(CONCATENATED)
        } else {
            own
        };
        if let (Some(begin), Some(filter)) = (self.operand, filter) {
            insert(base + begin..base + self.end, filter, into);
        }
    }

    fn ends(&mut self, base: usize, into: &mut Vec<(usize, String)>) {
        self.operand_ends(false, base, into);
        if let Some(begin) = self.sum.filter(|_| self.adds) {
            insert(base + begin..base + self.end, BUILT, into);
        }
        self.adds = false;
    }
}

fn insert(of: Range<usize>, filter: &str, into: &mut Vec<(usize, String)>) {
    into.push((of.start, "(".to_owned()));
    into.push((of.end, format!(")|{filter}")));
}

/// Returns the length of a number, which may have an exponent.
fn number(text: &str) -> usize {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let has_exponent = text[..end].ends_with(['e', 'E']) && !text.starts_with("0x");
    if has_exponent && text[end..].starts_with(['+', '-']) {
        return end + 1 + number(&text[end + 1..]);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_and_results_are_checked() {
        for (source, expected) in [
            ("a ~ b", "{{ a ~ b }}"),
            ("{{ a ~ b }}", "{{ (a)C ~ (b)C }}"),
            (
                "{{- a.b[0] ~ 'x ~ y' ~ f(c ~ d) -}}",
                "{{- (a.b[0])C ~ ('x ~ y')C ~ (f((c)C ~ (d)C))C -}}",
            ),
            ("{{ a * b ~ -c | upper }}", "{{ (a * b)C ~ (-c | upper)C }}"),
            ("{{ a ~ --b + - c }}", "{{ ((a)C ~ (--b)C + - c)B }}"),
            ("{{ a + b - c * 2 }}", "{{ (a + b - (c * 2)B)B }}"),
            ("{{ a - b / 2 ** -3 }}", "{{ a - b / 2 ** -3 }}"),
            ("{{ 1e-5 + 0x1e - 2 }}", "{{ (1e-5 + 0x1e - 2)B }}"),
            (
                "{{ [a ~ b, {'k': c + d}] }}",
                "{{ [(a)C ~ (b)C, {'k': (c + d)B}] }}",
            ),
            (
                "{{ a ~ b if c ~ d == e else f ~ g }}",
                "{{ (a)C ~ (b)C if (c)C ~ (d)C == e else (f)C ~ (g)C }}",
            ),
            (
                "{{ a ~ b is not defined and c is in d ~ e }}",
                "{{ (a)C ~ (b is not defined)C and c is in (d)C ~ (e)C }}",
            ),
            (
                "{{ not a ~ b }}{{ a.in ~ b }}",
                "{{ not (a)C ~ (b)C }}{{ (a.in)C ~ (b)C }}",
            ),
            (
                "{{ f(*a, **b) + f(x=a ~ b) }}",
                "{{ (f(*a, **b) + f(x=(a)C ~ (b)C))B }}",
            ),
            (
                "{% set x = x ~ x %}{% if a ~ b %}",
                "{% set x = (x)C ~ (x)C %}{% if (a)C ~ (b)C %}",
            ),
            (
                "{% for x in a + b if x %}{% elif a + b -%}",
                "{% for x in (a + b)B if x %}{% elif (a + b)B -%}",
            ),
            (
                "{% raw %}{{ a ~ b }}{% endraw %}{# {{ a ~ b }} #}",
                "{% raw %}{{ a ~ b }}{% endraw %}{# {{ a ~ b }} #}",
            ),
            ("{{ a[1:] ~ b", "{{ (a[1:])C ~ (b)C"),
        ] {
            let checked = CheckedTemplate::template(source);
            let short = checked.text.replace(&format!("|{CONCATENATED}"), "C");
            let short = short.replace(&format!("|{BUILT}"), "B");
            let expected = if source.contains('{') {
                expected
            } else {
                source
            };
            assert_eq!(short, expected);
            for (at, _) in source.char_indices().filter(|(_, c)| c.is_alphanumeric()) {
                let moved = (0..checked.text.len()).find(|&to| {
                    checked.text.is_char_boundary(to)
                        && checked.at(to) == at
                        && checked.text[to..].starts_with(&source[at..=at])
                });
                assert!(moved.is_some(), "{source}, {at}");
            }
        }
    }
}
