//! The letters of one-byte codes (ISO 32000-1, annex D; Adobe Glyph List).

use pdfboss_encoding::{glyph_to_text, mac_roman, standard, type1_builtin_encoding, win_ansi};

/// Returns the letters of an encoding that the format defines.
pub(crate) fn base_letters(name: &[u8]) -> Vec<Option<String>> {
    let letter = match name {
        b"WinAnsiEncoding" => win_ansi,
        b"MacRomanEncoding" => mac_roman,
        _ => standard,
    };
    let text = |code: u8| letter(code).map(String::from);
    (0..=255).map(text).collect()
}

/// Returns the letters of a name, such as `eacute`, `f_i.alt` or `uni00E9`; `None` if they are not known.
pub(crate) fn letter(name: &[u8]) -> Option<String> {
    glyph_to_text(std::str::from_utf8(name).ok()?)
}

/// Returns the encoding of a Type 1 program, from its header. `None` if it has none of its own.
pub(crate) fn program_letters(program: &[u8]) -> Option<Vec<Option<String>>> {
    let names = type1_builtin_encoding(program)?;
    let letters = names.iter().map(|name| letter(name.as_ref()?.as_bytes()));
    let letters: Vec<_> = letters.collect();
    letters.iter().any(Option::is_some).then_some(letters)
}
