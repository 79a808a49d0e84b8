//! Text that other programs wrote: byte order marks, line ends and encodings.

/// The mark that some programs write before UTF-8 text.
pub const MARK: char = '\u{feff}';

/// Bytes that are not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// They begin with the mark of UTF-16.
    #[error("it is UTF-16 text: save it as UTF-8")]
    Utf16,
    /// Invalid UTF-8 at this byte.
    #[error("it is not UTF-8 text (byte {0})")]
    At(usize),
}

/// Returns the text behind a byte order mark.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// Returns true if bytes begin with the mark of UTF-16.
pub fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff])
}

/// Returns the text of a file that a person wrote, without a byte order mark and with `\n` at the end of each line, so that editors and
/// checkouts of different systems make no difference.
///
/// # Errors
/// If it is not UTF-8.
pub fn written_text(bytes: Vec<u8>) -> Result<String, EncodingError> {
    if is_utf16(&bytes) {
        return Err(EncodingError::Utf16);
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| EncodingError::At(error.utf8_error().valid_up_to()))?;
    let is_plain = !text.starts_with(MARK) && !text.contains("\r\n");
    Ok(if is_plain {
        text
    } else {
        without_mark(&text).replace("\r\n", "\n")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_and_line_ends_make_no_difference() {
        let read = |text: &str| written_text(text.as_bytes().to_vec());
        assert_eq!(read("a\n\rb\r"), Ok("a\n\rb\r".to_owned()));
        assert_eq!(
            read("\u{feff}a\r\n\u{feff}b\r\n"),
            Ok("a\n\u{feff}b\n".to_owned())
        );
        assert_eq!(
            written_text(b"\xff\xfea\0".to_vec()),
            Err(EncodingError::Utf16)
        );
        assert_eq!(written_text(b"ab\xff".to_vec()), Err(EncodingError::At(2)));
    }
}
