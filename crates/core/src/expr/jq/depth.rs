//! How deeply a jq program nests: parser, compiler and evaluation take a part of the stack for each level.

/// The most that the levels around a place may weigh.
const HEAVIEST: usize = 1000;

/// Weights by stack use: a bracket, `if` or `def`; an operator; a comma.
const OPENED: usize = 4;
const OPERATOR: usize = 2;
const COMMA: usize = 1;

/// An open bracket or keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Program,
    Bracket,
    If,
    Def,
    Text,
}

/// Returns the place where a program is nested too deeply.
pub(super) fn too_deep(source: &str) -> Option<usize> {
    let bytes = source.as_bytes();
    let mut open = vec![(Kind::Program, 0)];
    let mut all = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (kind, own) = *open.last()?;
        let begin = at;
        at += 1;
        let (opened, more) = match byte {
            b'\\' if kind == Kind::Text => {
                at += 1;
                (
                    (bytes.get(begin + 1) == Some(&b'(')).then_some(Kind::Bracket),
                    0,
                )
            }
            b'"' if kind == Kind::Text => {
                close(&mut open, &mut all, |kind| kind == Kind::Text);
                continue;
            }
            _ if kind == Kind::Text => continue,
            b'"' => (Some(Kind::Text), 0),
            b'#' => {
                at = source[at..].find('\n').map_or(bytes.len(), |end| at + end);
                continue;
            }
            b'(' | b'[' | b'{' => (Some(Kind::Bracket), 0),
            b')' | b']' | b'}' => {
                close(&mut open, &mut all, |kind| kind == Kind::Bracket);
                continue;
            }
            b';' if kind == Kind::Def => {
                close(&mut open, &mut all, |kind| kind == Kind::Def);
                continue;
            }
            b';' => {
                all -= own;
                if let Some(last) = open.last_mut() {
                    last.1 = 0;
                }
                continue;
            }
            b',' => (None, COMMA),
            b'|' | b'+' | b'-' | b'*' | b'/' | b'%' | b'=' | b'<' | b'>' | b'?' => (None, OPERATOR),
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                at += bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                let is_name = begin > 0 && matches!(bytes[begin - 1], b'.' | b'$' | b'@' | b':');
                match &source[begin..at] {
                    _ if is_name => continue,
                    "if" => (Some(Kind::If), 0),
                    "def" => (Some(Kind::Def), 0),
                    "end" if kind == Kind::If => {
                        close(&mut open, &mut all, |kind| kind == Kind::If);
                        continue;
                    }
                    "elif" | "as" | "try" | "reduce" | "foreach" | "label" | "and" | "or" => {
                        (None, OPERATOR)
                    }
                    _ => continue,
                }
            }
            _ => continue,
        };
        let weight = if opened.is_some() { OPENED } else { more };
        match opened {
            Some(kind) => open.push((kind, weight)),
            None => open.last_mut()?.1 += weight,
        }
        all += weight;
        if all > HEAVIEST {
            return Some(begin);
        }
    }
    None
}

/// Closes the innermost of a kind, and what is open inside it. A closing bracket without an opening one closes nothing.
fn close(open: &mut Vec<(Kind, usize)>, all: &mut usize, is_it: fn(Kind) -> bool) {
    let Some(at) = open.iter().rposition(|(kind, _)| is_it(*kind)) else {
        return;
    };
    for (_, weight) in open.drain(at..) {
        *all -= weight;
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
        ];
        for (before, inner, after) in nested {
            let program = |depth: usize| before.repeat(depth) + inner + &after.repeat(depth);
            assert_eq!(too_deep(&program(90)), None, "{before}");
            assert!(too_deep(&program(600)).is_some(), "{before}");
            assert!(too_deep(&program(100_000)).is_some(), "{before}");
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
        assert_eq!(too_deep(&"def f: 1; ".repeat(10_000)), None);
        assert_eq!(too_deep(&")]}; \\".repeat(10_000)), None);
    }
}
