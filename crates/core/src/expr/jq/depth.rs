//! How deeply a jq program nests: parser, compiler and evaluation take a part of the stack for each level.

/// The most that the levels around a place may weigh.
const HEAVIEST: usize = 1000;

/// Weights, by the stack that they take: of a bracket, `if` or `def`; of an operator or a part of a path; of a part of an object or a text.
const OPENED: usize = 4;
const OPERATOR: usize = 2;
const PART: usize = 1;

/// What is open at a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Program,
    Bracket,
    Object,
    If,
    Def,
    Text,
}

/// A level, with the weights that add up to its depth.
struct Level {
    kind: Kind,
    /// Of the levels around it.
    base: usize,
    /// Of what holds all that follows: `|`, `as`, `elif`, `label`.
    rest: usize,
    /// Of the operators since the last comma. A comma weighs nothing: `balance` keeps lists flat.
    operators: usize,
    /// Of the path since the last operator.
    path: usize,
}

impl Level {
    fn new(kind: Kind, base: usize) -> Self {
        Self {
            kind,
            base,
            rest: 0,
            operators: 0,
            path: 0,
        }
    }

    fn depth(&self) -> usize {
        self.base + self.rest + self.operators + self.path
    }

    /// Ends an operand; `weight` is of what holds the following ones.
    fn separate(&mut self, weight: usize) {
        *self = Self {
            rest: self.rest + weight,
            ..Self::new(self.kind, self.base)
        };
    }
}

/// Returns the place where a program is nested too deeply.
pub(super) fn too_deep(source: &str) -> Option<usize> {
    let bytes = source.as_bytes();
    let mut open = vec![Level::new(Kind::Program, 0)];
    // What ends before a token, if that matters: the `;` of a definition, or `as`.
    let mut before = "";
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let begin = at;
        at += 1;
        let level = open.last_mut()?;
        let mut opened = None;
        if level.kind == Kind::Text {
            if byte == b'\\' {
                at += 1;
                if bytes.get(begin + 1) == Some(&b'(') {
                    level.rest += PART;
                    opened = Some(Kind::Bracket);
                }
            } else if byte == b'"' {
                open.pop();
            }
        } else if byte == b'#' {
            at = source[at..].find('\n').map_or(bytes.len(), |end| at + end);
        } else if !byte.is_ascii_whitespace() {
            let previous = std::mem::take(&mut before);
            match byte {
                b'"' => opened = Some(Kind::Text),
                b'{' => opened = Some(Kind::Object),
                b'(' => opened = Some(Kind::Bracket),
                b'[' => {
                    level.path += OPERATOR;
                    // The parts of a pattern nest as those of an object.
                    let is_pattern = previous == "as";
                    opened = Some(if is_pattern {
                        Kind::Object
                    } else {
                        Kind::Bracket
                    });
                }
                b'.' | b'?' => level.path += OPERATOR,
                b')' | b']' | b'}' => {
                    close(&mut open, |kind| {
                        matches!(kind, Kind::Bracket | Kind::Object)
                    });
                }
                b';' if level.kind == Kind::Def => {
                    open.pop();
                    before = ";";
                }
                b';' => *level = Level::new(level.kind, level.base),
                b',' => level.separate(if level.kind == Kind::Object { PART } else { 0 }),
                b'|' if bytes.get(at) != Some(&b'=') => level.separate(OPERATOR),
                b'|' | b'+' | b'-' | b'*' | b'/' | b'%' | b'=' | b'<' | b'>' => {
                    level.operators += OPERATOR;
                    level.path = 0;
                }
                byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                    at += bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                    let is_name =
                        begin > 0 && matches!(bytes[begin - 1], b'.' | b'$' | b'@' | b':');
                    match &source[begin..at] {
                        _ if is_name => {}
                        "if" => opened = Some(Kind::If),
                        "def" => {
                            // What follows a definition holds the next one only if it is more than definitions.
                            level.rest += if previous == ";" { 0 } else { OPERATOR };
                            opened = Some(Kind::Def);
                        }
                        "end" if level.kind == Kind::If => {
                            open.pop();
                        }
                        word @ ("elif" | "as" | "label") => {
                            level.separate(OPERATOR);
                            before = word;
                        }
                        "try" | "reduce" | "foreach" | "and" | "or" => level.operators += OPERATOR,
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        if let Some(kind) = opened {
            let base = open.last()?.depth() + OPENED;
            open.push(Level::new(kind, base));
        }
        if open.last()?.depth() > HEAVIEST {
            return Some(begin);
        }
    }
    None
}

/// Closes the innermost of a kind, and what is open inside it. A closing bracket without an opening one closes nothing.
fn close(open: &mut Vec<Level>, is_it: fn(Kind) -> bool) {
    if let Some(at) = open.iter().rposition(|level| is_it(level.kind)) {
        open.truncate(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_limited_and_length_is_not() {
        let nested = [
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("{a:", "1", "}"),
            (". | ", "1", ""),
            ("1 + ", "1", ""),
            ("-", "1", ""),
            ("if . then 1 else ", "1", " end"),
            ("def f: ", "1", "; 1"),
            ("1 as $x | ", "1", ""),
            ("\"\\(", "1", ")\""),
            ("try ", "1", ""),
            ("", ".", "[0]"),
            ("", ".a", ".a"),
            ("", ".a", "?"),
            ("1, def f: 1; ", "1", ""),
            ("1, 2 | ", "1", ""),
            ("1, 2 as $x | ", "1", ""),
            ("label $x | ", "1", ""),
            ("reduce ", "1", ""),
            ("reduce 1 as $x (0; ", "1", ")"),
            ("if . then 1, 2 ", "elif . then 1", " elif . then 3, 4"),
        ];
        for (before, inner, after) in nested {
            let program = |depth: usize| before.repeat(depth) + inner + &after.repeat(depth);
            assert_eq!(too_deep(&program(90)), None, "{before}");
            assert!(too_deep(&program(600)).is_some(), "{before}");
            assert!(too_deep(&program(100_000)).is_some(), "{before}");
        }
        // Parts of objects and texts nest when the program runs.
        for [before, part, after] in [
            ["{", "a: 1, ", "}"],
            [". as [", "$x, ", "$x] | 1"],
            ["\"", "\\(1) ", "\""],
        ] {
            let program = |count: usize| before.to_owned() + &part.repeat(count) + after;
            assert_eq!(too_deep(&program(900)), None, "{part}");
            assert!(too_deep(&program(1100)).is_some(), "{part}");
        }
        for flat in [
            "def f(a; b): a | b; ",
            "if . then 1 else 2 end; ",
            "[(1 | 2)], ",
            "\"a # (\\\"\", ",
            "# ((([[\n",
            "f(1; 2), ",
        ] {
            assert_eq!(too_deep(&flat.repeat(300)), None, "{flat}");
        }
        for item in [
            "1",
            "-1",
            "1 + .a.b",
            ".[0].a",
            "[.b, 2]",
            "{a: 1}",
            "\"\\(1)\"",
            "f(1; 2)",
        ] {
            assert_eq!(
                too_deep(&format!("{item}, ").repeat(10_000)),
                None,
                "{item}"
            );
        }
        assert_eq!(too_deep(&"def f: 1; ".repeat(10_000)), None);
        assert_eq!(too_deep(&")]}; \\".repeat(10_000)), None);
    }
}
