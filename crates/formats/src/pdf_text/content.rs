//! The operators of a content stream, some thousand at a time: the parser alone would hold all of them at once, at fifty times the
//! size of the stream.

use super::limits::{OPERANDS, ReadError, check};
use super::tokens::{Token, Tokens};
use lopdf::Error;
use lopdf::content::{Content, Operation};

/// The most operators that are decoded at once.
const AT_ONCE: usize = 4096;

/// Reads the operators of a content stream.
pub(crate) struct Operations<'a> {
    bytes: &'a [u8],
    tokens: Tokens<'a>,
    is_over: bool,
}

impl<'a> Operations<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            tokens: Tokens::new(bytes, 0),
            is_over: false,
        }
    }

    /// Returns the next operators; none at the end, and from the first text on that is no operator.
    pub(crate) fn decode_some(&mut self) -> Result<Vec<Operation>, ReadError> {
        let begin = self.tokens.at;
        let (mut end, mut count, mut operands) = (begin, 0, 0);
        while !self.is_over && count < AT_ONCE && operands < OPERANDS {
            match self.skip_one()? {
                Some(more) => {
                    operands += more;
                    count += 1;
                    end = self.tokens.at;
                }
                None => self.is_over = true,
            }
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        let decoded = Content::decode(&self.bytes[begin..end])?.operations;
        self.is_over |= decoded.len() < count;
        Ok(decoded)
    }

    /// Goes past the next operator and counts its operands.
    fn skip_one(&mut self) -> Result<Option<usize>, ReadError> {
        let mut operands = 0;
        while let Some(token) = self.tokens.next() {
            match token {
                Token::Word(b"true" | b"false" | b"null") => {}
                Token::Word(word) if word.starts_with(b"BI") => {
                    self.skip_image()?;
                    return Ok(Some(operands));
                }
                Token::Word(_) => return Ok(Some(operands)),
                _ => {}
            }
            operands += 1;
            check(operands, OPERANDS, "operands of one operator")?;
        }
        Ok(None)
    }

    /// Goes past an inline image: its data ends with `EI` between blanks.
    fn skip_image(&mut self) -> Result<(), ReadError> {
        let broken = || ReadError::Damaged(Error::InvalidInlineImage("no end".to_owned()));
        loop {
            let token = self.tokens.next().ok_or_else(broken)?;
            if let Token::Word(word) = token
                && word.starts_with(b"ID")
            {
                self.tokens.at -= word.len() - 2;
                break;
            }
        }
        self.tokens.skip_blanks();
        let rest = &self.bytes[self.tokens.at..];
        let blank = |byte: u8| b" \r\n".contains(&byte);
        let mut four = rest.windows(4);
        let end = four.position(|four| blank(four[0]) && &four[1..3] == b"EI" && blank(four[3]));
        self.tokens.at += end.ok_or_else(broken)? + 4;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<Operation> {
        let mut operations = Operations::new(bytes);
        let mut all = Vec::new();
        loop {
            let some = operations.decode_some().unwrap();
            if some.is_empty() {
                return all;
            }
            all.extend(some);
        }
    }

    #[test]
    fn operators_are_those_that_the_parser_reads_at_once() {
        let page = b"q 1 0 0 1 72.5 -.5 cm BT /F#31 12 Tf (a(b)\\)c) Tj [(x)-20<0041>]TJ T* (d)' ET Q\n\
            BI /W 2 /H 2 /BPC 8 /CS /G ID abcd EI BI /W 1/F/Fl ID \x80\x81 EI \n<</A[1]>> /P BDC EMC d0 ";
        let page = page.repeat(3000);
        let expected = Content::decode(&page).unwrap().operations;
        let found = all(&page);
        assert!(expected.len() > 3 * AT_ONCE);
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }

    #[test]
    fn what_is_no_operator_ends_the_content() {
        let names = |bytes: &[u8]| {
            let all = all(bytes).into_iter();
            all.map(|operation| operation.operator).collect::<Vec<_>>()
        };
        assert_eq!(names(b"q BT } ET Q"), ["q", "BT"]);
        assert_eq!(names(b"q - BT ET"), ["q"]);
        assert_eq!(names(b"q (never closed Q"), ["q"]);
        assert!(names(b"").is_empty());
    }
}
