//! Reads a depfile: a makefile in which a program lists the files that it read. It is read as Ninja does.

use std::iter::Peekable;
use std::str::Chars;

/// Returns the files that the rules of a depfile name, in order.
pub(in crate::steps) fn prerequisites(text: &str) -> Vec<String> {
    let mut chars = text.chars().peekable();
    let mut found = Vec::new();
    // Up to the colon of a rule its targets are named.
    let mut is_behind_colon = false;
    while let Some(c) = chars.peek().copied() {
        match c {
            '\n' => {
                is_behind_colon = false;
                chars.next();
            }
            ' ' | '\t' | '\r' => _ = chars.next(),
            _ => {
                let name = word(&mut chars);
                if !is_behind_colon {
                    is_behind_colon = name.ends_with(':');
                } else if !name.is_empty() {
                    found.push(name);
                }
            }
        }
    }
    found
}

/// Reads a name up to a blank that no backslash escapes.
fn word(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut name = String::new();
    while let Some(c) = chars.next_if(|c| !matches!(c, ' ' | '\t' | '\r' | '\n')) {
        match c {
            '$' if chars.next_if_eq(&'$').is_some() => name.push('$'),
            '\\' => {
                let mut backslashes = 1;
                while chars.next_if_eq(&'\\').is_some() {
                    backslashes += 1;
                }
                match chars.peek() {
                    Some(' ') if backslashes % 2 == 1 => {
                        name.extend(std::iter::repeat_n('\\', backslashes / 2));
                        name.extend(chars.next());
                    }
                    Some('#' | ':') => {
                        name.extend(std::iter::repeat_n('\\', backslashes - 1));
                        name.extend(chars.next());
                    }
                    // A continued line.
                    Some('\n' | '\r') => {
                        name.extend(std::iter::repeat_n('\\', backslashes - 1));
                        chars.next_if_eq(&'\r');
                        chars.next_if_eq(&'\n');
                        return name;
                    }
                    _ => name.extend(std::iter::repeat_n('\\', backslashes)),
                }
            }
            c => name.push(c),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::prerequisites;

    #[test]
    fn every_file_behind_a_colon_is_named() {
        for (text, expected) in [
            ("", vec![]),
            ("a.o: a.c", vec!["a.c"]),
            ("a.o : a.c b.h\n", vec!["a.c", "b.h"]),
            ("a.o b.o: \\\n  a.c \\\n  b.h\n\nb.h:\n", vec!["a.c", "b.h"]),
            (
                "a.o: a.c\\\n b.h\r\nc: d \\\r\n e\r\n",
                vec!["a.c", "b.h", "d", "e"],
            ),
            (
                "x: a\\ b.c c\\#d $$e f\\\\g C:\\h",
                vec!["a b.c", "c#d", "$e", "f\\\\g", "C:\\h"],
            ),
            ("/s/1/a\\:b.o: q", vec!["q"]),
            ("no rule", vec![]),
            ("x: y\\", vec!["y\\"]),
        ] {
            assert_eq!(prerequisites(text), expected, "{text:?}");
        }
    }
}
