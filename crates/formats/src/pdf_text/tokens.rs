//! The tokens of PDF syntax (ISO 32000-1, 7.2 and 7.3), to look at a text before the parser does.

/// A token.
#[derive(Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// `<<` or `[`.
    Open,
    /// `>>` or `]`.
    Close,
    /// A name, decoded.
    Name(Vec<u8>),
    /// Digits, signs and points.
    Number(&'a [u8]),
    /// A string in parentheses.
    Text,
    /// A hexadecimal string, as written.
    Hex(&'a [u8]),
    /// An operator or keyword.
    Word(&'a [u8]),
}

impl Token<'_> {
    /// The number that the token is, if it is an integer.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Token::Number(digits) => std::str::from_utf8(digits).ok()?.parse().ok(),
            _ => None,
        }
    }
}

/// Reads tokens from left to right. No token nests: the reader needs no stack.
#[derive(Clone)]
pub(crate) struct Tokens<'a> {
    bytes: &'a [u8],
    /// Where the next token is looked for.
    pub(crate) at: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    fn run(&mut self, is_part: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|byte| !is_part(*byte));
        let run = &rest[..end.unwrap_or(rest.len())];
        self.at += run.len();
        run
    }

    /// Skips white space, without comments.
    pub(crate) fn skip_blanks(&mut self) {
        self.run(|byte| b" \t\r\n".contains(&byte));
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    /// Returns the next token; `None` at the end and at what is no token.
    fn next(&mut self) -> Option<Token<'a>> {
        self.run(|byte| b" \t\r\n\0\x0C".contains(&byte));
        while self.bytes.get(self.at) == Some(&b'%') {
            self.run(|byte| !b"\r\n".contains(&byte));
            self.run(|byte| b" \t\r\n\0\x0C".contains(&byte));
        }
        let (first, second) = (*self.bytes.get(self.at)?, self.bytes.get(self.at + 1));
        match first {
            b'[' | b']' => {
                self.at += 1;
                Some(if first == b'[' {
                    Token::Open
                } else {
                    Token::Close
                })
            }
            b'<' | b'>' if second == Some(&first) => {
                self.at += 2;
                Some(if first == b'<' {
                    Token::Open
                } else {
                    Token::Close
                })
            }
            b'<' => {
                self.at += 1;
                let digits = self.run(|byte| byte != b'>');
                self.at += 1;
                Some(Token::Hex(digits))
            }
            b'(' => self.text(),
            b'/' => {
                self.at += 1;
                let written = self.run(|byte| !b" \t\r\n\0\x0C()<>[]{}/%".contains(&byte));
                Some(Token::Name(name(written)))
            }
            b'0'..=b'9' | b'+' | b'-' | b'.' => Some(Token::Number(
                self.run(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte)),
            )),
            _ if is_letter(first) => Some(Token::Word(self.run(is_letter))),
            _ => None,
        }
    }
}

impl<'a> Tokens<'a> {
    fn text(&mut self) -> Option<Token<'a>> {
        let mut depth = 0_usize;
        loop {
            match *self.bytes.get(self.at)? {
                b'\\' => self.at += 1,
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(Token::Text);
            }
        }
    }
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || b"*'\"".contains(&byte)
}

/// A name with its `#xx` decoded.
fn name(written: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(written.len());
    let mut rest = written;
    while let [first, after @ ..] = rest {
        let digit = |at: usize| {
            after
                .get(at)
                .and_then(|byte| char::from(*byte).to_digit(16))
        };
        match digit(0).zip(digit(1)).filter(|_| *first == b'#') {
            Some((high, low)) => {
                name.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            None => {
                name.push(*first);
                rest = after;
            }
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_a_dictionary_and_of_a_content() {
        let text = b"<</L#65ngth 5 0 R%c\n/W[1 -2.5]/T(a\\)(b))>>q<0a>Tj";
        let all: Vec<_> = Tokens::new(text, 0).collect();
        let name = |name: &str| Token::Name(name.as_bytes().to_vec());
        let expected = [
            Token::Open,
            name("Length"),
            Token::Number(b"5"),
            Token::Number(b"0"),
            Token::Word(b"R"),
            name("W"),
            Token::Open,
            Token::Number(b"1"),
            Token::Number(b"-2.5"),
            Token::Close,
            name("T"),
            Token::Text,
            Token::Close,
            Token::Word(b"q"),
            Token::Hex(b"0a"),
            Token::Word(b"Tj"),
        ];
        assert_eq!(all, expected);
        assert_eq!(Tokens::new(b"(never closed", 0).next(), None);
    }
}
