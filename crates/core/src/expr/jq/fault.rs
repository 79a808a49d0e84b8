//! Errors of jq programs: message, place and help.

use jaq_core::compile::Undefined;
use jaq_core::load::{lex, parse};

use super::library;
use crate::expr::place::{Place, excerpt, listed, nearest};

/// Characters of a value that a message shows.
const SHOWN: usize = 120;

/// The error of a program that cannot be compiled, or that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JqError {
    /// The program: its file or its key.
    pub(crate) program: String,
    /// The place in the program; `None` for errors at run time.
    pub(crate) place: Option<Place>,
    pub message: String,
    pub(crate) hint: Option<String>,
    /// The limit that ended it.
    pub limit: Option<Limit>,
}

/// A limit that ends programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Memory.
    Memory,
    /// Time, or the run was stopped.
    Time,
    /// The stack, or another reason why its process ended.
    Crash,
    /// Steps in this process.
    Steps,
}

impl std::error::Error for JqError {}

impl std::fmt::Display for JqError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.program)?;
        if let Some(place) = &self.place {
            write!(f, ", {place}")?;
        }
        if !self.program.is_empty() {
            f.write_str(": ")?;
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl JqError {
    /// Returns an error at run time. Long values are cut.
    pub fn running(program: &str, message: &str) -> Self {
        Self {
            program: program.to_owned(),
            place: None,
            message: excerpt(message, SHOWN * 2),
            hint: None,
            limit: None,
        }
    }

    /// Returns the error of a program that a limit ended. `message` names the program.
    pub fn limited(limit: Limit, message: &str) -> Self {
        Self {
            program: String::new(),
            place: None,
            message: message.to_owned(),
            hint: None,
            limit: Some(limit),
        }
    }

    /// Returns the error with the limit that ended the program.
    pub(super) fn of(self, limit: Limit) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }
}

/// The text of a program that is being compiled.
pub(super) struct ProgramText<'a> {
    pub(crate) program: &'a str,
    pub(crate) source: &'a str,
    pub(crate) vars: &'a [&'a str],
}

impl ProgramText<'_> {
    pub(crate) fn fault(
        &self,
        at: &str,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> JqError {
        JqError {
            program: self.program.to_owned(),
            place: Place::of_slice(self.source, at),
            message: message.into(),
            hint,
            limit: None,
        }
    }

    pub(crate) fn lex(&self, errors: &[lex::Error<&str>]) -> JqError {
        let Some((expected, rest)) = errors.first() else {
            return self.fault(self.source, "the program cannot be read", None);
        };
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let at = &rest[..first];
        let open = match expected {
            lex::Expect::Delim(open) => self.unclosed(open, rest),
            _ => None,
        };
        let (place, message) = match (expected, open) {
            (lex::Expect::Token, _) if first > 0 => (at, format!("`{at}` is not jq")),
            (lex::Expect::Escape, _) if first > 0 => {
                (at, format!("`\\{at}` is not an escape of a jq string"))
            }
            (lex::Expect::Delim("\""), Some(open)) => {
                (line_of(open), "this string has no closing `\"`".to_owned())
            }
            (lex::Expect::Delim(_), Some(open)) if rest.is_empty() => {
                (&open[..1], format!("this `{}` is never closed", &open[..1]))
            }
            (lex::Expect::Delim(open), _) if first > 0 => {
                (at, format!("expected `{}`, found `{at}`", closing(open)))
            }
            (other, _) if rest.is_empty() => {
                let wanted = other.as_str();
                (
                    *rest,
                    format!("the program ends too early: expected a {wanted}"),
                )
            }
            (other, _) => {
                let found = excerpt(line_of(rest), 20);
                (
                    at,
                    format!("expected a {}, found `{found}`", other.as_str()),
                )
            }
        };
        let hint = self.braces().or_else(|| {
            let text = match (expected, at) {
                (lex::Expect::Escape, _) => {
                    "in a jq string a backslash is written twice: \"\\\\d\"; write programs in TOML single quotes, where TOML keeps backslashes"
                }
                (_, "\\") => {
                    "write a quote as plain \" in a program; `\\\"` is needed only in a TOML string in double quotes, so write the program in single quotes without backslashes"
                }
                (_, "'") => "strings of jq are in double quotes",
                (_, "&") => "in jq, write `and`",
                (lex::Expect::Delim(open @ "\""), _) | (lex::Expect::Delim(open), "") => {
                    return Some(format!("close it with `{}`", closing(open)));
                }
                _ => return None,
            };
            Some(text.to_owned())
        });
        self.fault(place, message, hint)
    }

    pub(crate) fn parse(
        &self,
        expected: &parse::Expect<&str>,
        found: Option<&lex::Token<&str>>,
    ) -> JqError {
        // Where nothing is found, something is missing behind the last word.
        let end = self.source.trim_end().len();
        let at = found.map_or(&self.source[end..end], lex::Token::as_str);
        let wanted = match expected {
            parse::Expect::Just("") | parse::Expect::Nothing => "the end of the program".to_owned(),
            parse::Expect::Just(word) => format!("`{word}`"),
            parse::Expect::Term => "a value or filter".to_owned(),
            other => format!("{} {}", article(other.as_str()), other.as_str()),
        };
        let message = if found.is_some() {
            format!(
                "unexpected `{}`: expected {wanted}",
                excerpt(line_of(at), 20)
            )
        } else if self.source.trim().is_empty() {
            "the program is empty".to_owned()
        } else {
            format!("the program ends too early: expected {wanted}")
        };
        let hint = self.braces().or_else(|| match at {
            "||" => Some("in jq, write `or`".to_owned()),
            "!" => Some("in jq, write `… | not`".to_owned()),
            "if" if matches!(expected, parse::Expect::Just("end")) => {
                Some("in jq, write `elif`".to_owned())
            }
            "" if matches!(expected, parse::Expect::Just("end")) => {
                Some("each `if` has its own `end`; an `elif` has none".to_owned())
            }
            _ if self.before(at).ends_with('?') && found.is_some() => {
                Some("in jq, write `if … then … else … end`".to_owned())
            }
            _ => {
                let before = self.before(at).split_whitespace().next_back();
                let first = self.source.split_whitespace().next();
                let mut words = [before, first].into_iter().flatten();
                words.find_map(library::refusal).map(str::to_owned)
            }
        });
        self.fault(at, message, hint)
    }

    pub(crate) fn undefined(&self, name: &str, what: &Undefined) -> JqError {
        let vars = || self.vars.iter().copied();
        if let Some(why) = library::refusal(name) {
            return self.fault(
                name,
                format!("`{name}` is not available"),
                Some(why.to_owned()),
            );
        }
        match what {
            Undefined::Var => {
                let bare = name.trim_start_matches('$');
                let has = if self.vars.is_empty() {
                    "it has none".to_owned()
                } else {
                    format!(
                        "it has: {}",
                        vars()
                            .map(|var| format!("${var}"))
                            .collect::<Vec<_>>()
                            .join(", ")
                    )
                };
                let hint = nearest(bare, vars()).map(|near| format!("did you mean `${near}`?"));
                self.fault(
                    name,
                    format!("`{name}` is not a name of this stage; {has}"),
                    hint,
                )
            }
            Undefined::Label => self.fault(
                name,
                format!("there is no `label {name}` around this `break`"),
                None,
            ),
            Undefined::Filter(arity) => {
                let message = match (name, arity) {
                    ("reduce" | "foreach", _) => {
                        format!("`{name}` expects (start; step), found {arity} parts")
                    }
                    (_, 0) => format!("there is no filter `{name}`"),
                    (_, 1) => format!("there is no filter `{name}` with 1 argument"),
                    _ => format!("there is no filter `{name}` with {arity} arguments"),
                };
                let known = library::filters();
                let hint = if *arity == 0 && self.vars.contains(&name) {
                    Some(format!("write `${name}` or `.{name}`"))
                } else if let Some(counts) = known.get(name) {
                    let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
                    Some(format!(
                        "it takes {} arguments, with `;` between them",
                        counts.join(" or ")
                    ))
                } else if let Some(near) = nearest(name, known.keys().map(String::as_str)) {
                    Some(format!("did you mean `{near}`?"))
                } else {
                    nearest(name, vars()).map(|near| format!("did you mean `${near}`?"))
                };
                self.fault(name, message, hint)
            }
            _ => self.fault(
                name,
                format!("there is no module `{name}`"),
                library::refusal("import").map(str::to_owned),
            ),
        }
    }

    /// Returns the text of the program before a part of it, without spaces at its end.
    fn before(&self, part: &str) -> &str {
        let place = Place::of_slice(self.source, part);
        place.map_or("", |place| self.source[..place.range.start].trim_end())
    }

    /// Returns the program from the innermost delimiter on that is open where `rest` begins, if that is `delimiter`.
    fn unclosed(&self, delimiter: &str, rest: &str) -> Option<&str> {
        let end = Place::of_slice(self.source, rest)?.range.start;
        let mut open: Vec<usize> = Vec::new();
        let is_in_string = |open: &[usize]| {
            open.last()
                .is_some_and(|at| self.source[*at..].starts_with('"'))
        };
        let mut chars = self.source[..end].char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if is_in_string(&open) => {
                    if let Some((at, '(')) = chars.next() {
                        open.push(at);
                    }
                }
                '"' if is_in_string(&open) => drop(open.pop()),
                _ if is_in_string(&open) => {}
                '"' | '(' | '[' | '{' => open.push(at),
                ')' | ']' | '}' => drop(open.pop()),
                '#' => while chars.next_if(|(_, c)| *c != '\n').is_some() {},
                _ => {}
            }
        }
        open.pop()
            .map(|at| &self.source[at..])
            .filter(|open| open.starts_with(delimiter))
    }

    /// Returns the hint for a template inside a program.
    fn braces(&self) -> Option<String> {
        let at = self.source.find("{{").or_else(|| self.source.find("{%"))?;
        let inner = self.source[at + 2..]
            .split(['}', '%'])
            .next()
            .unwrap_or_default()
            .trim();
        let example = match inner.split('.').next() {
            Some(name) if self.vars.contains(&name) => inner,
            _ => "params.x",
        };
        Some(format!("jq does not use {{{{ }}}}; write ${example}"))
    }

    /// Returns the fault of a literal regular expression.
    pub(crate) fn regex(&self, at: &str, regex: &str, why: &str, hint: Option<&str>) -> JqError {
        self.fault(
            at,
            format!("the regular expression `{}` {why}", excerpt(regex, SHOWN)),
            hint.map(str::to_owned),
        )
    }
}

fn line_of(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns the closing delimiter.
fn closing(open: &str) -> &'static str {
    match open {
        "(" => ")",
        "[" => "]",
        "{" => "}",
        _ => "\"",
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}

/// Names for a message: used where a program is given too few values.
pub(super) fn names(vars: &[String]) -> String {
    listed(vars.iter().map(String::as_str))
}
