//! The one door to `ifc-lite-core`: record spans, attribute values, strings, the header. ISO 10303-21 is its business.

use std::borrow::Cow;

use ifc_lite_core::parser::header::{self, Then};
use ifc_lite_core::parser::{StepRecord, parse_ref};
use ifc_lite_core::project_units::symbols::si_unit_name;
use ifc_lite_core::step_encoding::{decode_step_literal, step_string_literal_end};
use ifc_lite_core::{StepListItems, StepNumber, parse_step_real, read_step_number, si_prefix};

pub(super) use ifc_lite_core::{EntityScanner, IfcType, SchemaVersion};

/// Returns the first `N` attributes of the record that starts `text`, as written; those that it does not have are empty.
pub(super) fn attributes<const N: usize>(text: &[u8]) -> [&[u8]; N] {
    let mut values = [&text[..0]; N];
    if let Some(record) = StepRecord::parse(text) {
        for (slot, value) in values.iter_mut().zip(record.attrs()) {
            *slot = value;
        }
    }
    values
}

/// Attribute `at` of the record that starts `text`, as written; empty if there is none.
pub(super) fn attribute(text: &[u8], at: usize) -> &[u8] {
    StepRecord::parse(text)
        .and_then(|record| record.attr(at))
        .unwrap_or(&text[..0])
}

/// How many attributes the record that starts `text` has.
pub(super) fn count(text: &[u8]) -> usize {
    StepRecord::parse(text).map_or(0, |record| record.attrs().count())
}

/// Returns true if an attribute, as written, says that it has no value.
pub(super) fn is_unset(value: &[u8]) -> bool {
    matches!(value, b"$" | b"*")
}

/// Returns true if an attribute, as written, is a text or has no value.
pub(super) fn is_text(value: &[u8]) -> bool {
    value.is_empty() || is_unset(value) || string(value).is_some()
}

/// A string, decoded. `$`, `*` and everything else is none.
pub(super) fn string(value: &[u8]) -> Option<Cow<'_, str>> {
    // A borrowed text contains no escapes.
    Some(match decode_step_literal(value)? {
        Cow::Owned(text) if text.contains(WIDE) => Cow::Owned(with_broken_escapes(&text)),
        Cow::Owned(text) if text.contains(|c| ('\u{80}'..='\u{9f}').contains(&c)) => {
            Cow::Owned(in_shift_jis(&text).unwrap_or(text))
        }
        text => text,
    })
}

/// Returns true if a string of a record contains U+FFFD or control codes, because its bytes or escapes could not be decoded.
pub(super) fn has_undecoded_text(record: &[u8]) -> bool {
    let mut rest = record;
    while let Some(open) = rest.iter().position(|byte| *byte == b'\'')
        && let Some(end) = step_string_literal_end(rest, open)
    {
        let is_undecoded =
            |c| c == char::REPLACEMENT_CHARACTER || ('\u{80}'..='\u{9f}').contains(&c);
        if string(&rest[open..end]).is_some_and(|text| text.contains(is_undecoded)) {
            return true;
        }
        rest = &rest[end..];
    }
    false
}

/// Reads escapes `\X\83\X\52` of bytes that are Shift JIS: as the Latin letters that they should be, some are control codes.
fn in_shift_jis(text: &str) -> Option<String> {
    let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    let bytes = bytes
        .ok()
        .filter(|bytes| bytes.iter().any(|byte| *byte >= 0x80))?;
    let decoded =
        encoding_rs::SHIFT_JIS.decode_without_bom_handling_and_without_replacement(&bytes)?;
    Some(decoded.into_owned())
}

const WIDE: &str = "\\X2\\";

/// Reads escapes `\X2\00E4\X0\` that are cut: without their end, or with a number that lacks digits, which becomes U+FFFD.
fn with_broken_escapes(text: &str) -> String {
    let mut parts = text.split(WIDE);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        let (digits, rest) = part.split_at(digits);
        let units = digits.as_bytes().chunks(4).map(|four| {
            let four = std::str::from_utf8(four)
                .ok()
                .filter(|four| four.len() == 4);
            let unit = four.and_then(|four| u16::from_str_radix(four, 16).ok());
            unit.unwrap_or(char::REPLACEMENT_CHARACTER as u16)
        });
        let letters = char::decode_utf16(units);
        out.extend(letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)));
        let end = ["\\X0\\", "\\X0"]
            .iter()
            .find_map(|end| rest.strip_prefix(end));
        out.push_str(end.unwrap_or(rest));
    }
    out
}

/// An enumeration without its dots.
pub(super) fn enumeration(value: &[u8]) -> Option<&str> {
    let name = value.strip_prefix(b".")?.strip_suffix(b".")?;
    std::str::from_utf8(name)
        .ok()
        .filter(|name| !name.is_empty())
}

/// A number, alone or inside a measure: `1.5` and `IFCVOLUMEMEASURE(1.5)`.
pub(super) fn number(value: &[u8]) -> Option<f64> {
    parse_step_real(value).or_else(|| parse_step_real(typed(value)?.1))
}

/// An integer or a real, as the file writes it.
pub(super) enum Number {
    Integer(i64),
    Real(f64),
}

/// A number as written.
pub(super) fn literal(value: &[u8]) -> Option<Number> {
    match read_step_number(value) {
        Some((StepNumber::Integer(n), used)) if used == value.len() => Some(Number::Integer(n)),
        _ => parse_step_real(value).map(Number::Real),
    }
}

/// A value with its type: `IFCLABEL('x')` is `IFCLABEL` and `'x'`; none for `IFCREAL(3,75)`, which has two.
pub(super) fn typed(value: &[u8]) -> Option<(&[u8], &[u8])> {
    value.first().filter(|first| first.is_ascii_alphabetic())?;
    let open = value.iter().position(|&byte| byte == b'(')?;
    let mut items = StepListItems::of_list(&value[open..])?;
    let inner = items.next()?;
    let typed = (value[..open].trim_ascii(), inner);
    items.next().is_none().then_some(typed)
}

/// Returns the items of a list; none for everything else.
pub(super) fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    StepListItems::of_list(value).into_iter().flatten()
}

/// A single reference.
pub(super) fn reference(value: &[u8]) -> Option<u32> {
    parse_ref(value)
}

/// All references of a value: of `#1`, of `(#1,#2)`, and of an inline set `IFCPROPERTYSETDEFINITIONSET((#1,#2))`.
pub(super) fn references(value: &[u8]) -> impl Iterator<Item = u32> {
    let members = listed(value).into_iter().flat_map(items);
    reference(value)
        .into_iter()
        .chain(members.filter_map(parse_ref))
}

/// Returns true if a value has something else than references, which [`references`] leaves out.
pub(super) fn has_others(value: &[u8]) -> bool {
    match listed(value) {
        Some(list) => items(list).any(|item| parse_ref(item).is_none()),
        None => !value.is_empty() && !is_unset(value) && reference(value).is_none(),
    }
}

/// Returns the list of a value that is one or an inline set.
fn listed(value: &[u8]) -> Option<&[u8]> {
    match value.first() {
        Some(b'(') => Some(value),
        Some(first) if first.is_ascii_alphabetic() => typed(value).map(|(_, inner)| inner),
        _ => None,
    }
}

/// All references of the record that starts `text`.
pub(super) fn all_references(text: &[u8]) -> impl Iterator<Item = u32> {
    let values = StepRecord::parse(text).into_iter();
    values
        .flat_map(|record| record.attrs())
        .flat_map(references)
}

/// The factor of an SI unit of this prefix and name; none if the standard does not have them.
pub(super) fn si_factor(prefix: &[u8], name: &[u8]) -> Option<f64> {
    let unit = si_unit_name(enumeration(name)?)?;
    let factor = if is_unset(prefix) {
        1.0
    } else {
        si_prefix(&enumeration(prefix)?.to_ascii_uppercase())?.factor
    };
    Some(unit.base_scale * factor.powi(unit.prefix_power))
}

/// Returns every schema that the header declares, wherever `FILE_SCHEMA` is in it.
pub(super) fn declared_schemas(bytes: &[u8]) -> Vec<String> {
    header::declared_schemas(bytes)
}

/// Where the records begin: past `DATA;` or `DATA(…);`, which the header may mention in strings and comments.
pub(super) fn data_start(bytes: &[u8]) -> Option<usize> {
    let hit = header::find_keyword_then(bytes, b"DATA", Then::ParenOrSemicolon)?;
    if bytes.get(hit.then) == Some(&b'(') {
        header::close_paren(bytes, hit.then)
    } else {
        Some(hit.then + 1)
    }
}

/// Returns true if the section that `bytes` begin in is closed by `ENDSEC;` outside strings and comments.
pub(super) fn section_ends(bytes: &[u8]) -> bool {
    header::find_keyword_then(bytes, b"ENDSEC", Then::Semicolon).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_alone_in_lists_and_in_inline_sets() {
        let all = |value: &str| references(value.as_bytes()).collect::<Vec<_>>();
        assert_eq!(all("#7"), [7]);
        assert_eq!(all("(#1, #2,/* #3 */#4)"), [1, 2, 4]);
        assert_eq!(all("IFCPROPERTYSETDEFINITIONSET((#8,#9))"), [8, 9]);
        assert!(all("$").is_empty());
        assert!(all("'#5'").is_empty());
        assert!(all("").is_empty());
    }

    #[test]
    fn a_list_with_something_else_than_references_is_found() {
        for value in [
            "",
            "$",
            "*",
            "#7",
            "()",
            "( )",
            "(#1, #2/* 'x' */)",
            "IFCX((#8,#9))",
        ] {
            assert!(!has_others(value.as_bytes()), "{value}");
        }
        for value in [
            "'x'",
            ".A.",
            "7",
            "(#1,'x')",
            "(#1,$)",
            "(#1,(#2))",
            "IFCX((#8,9))",
            "(#1,#)",
        ] {
            assert!(has_others(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn numbers_are_read_plain_and_as_measures() {
        assert_eq!(number(b"IFCVOLUMEMEASURE(1.5E-1)"), Some(0.15));
        assert_eq!(number(b"3"), Some(3.0));
        assert_eq!(number(b"IFCLABEL('3')"), None);
        assert_eq!(number(b"1.E400"), None);
        assert_eq!(number(b"1.#QNAN"), None);
        assert_eq!(number(b"IFCREAL(3,75)"), None);
        assert!(matches!(literal(b"5"), Some(Number::Integer(5))));
        assert!(matches!(literal(b"5."), Some(Number::Real(_))));
    }

    #[test]
    fn escapes_that_are_cut_are_read_as_far_as_they_go() {
        for (written, read) in [
            (r"'W\X2\00E4\X0\nde'", "Wände"),
            (r"'W\X2\00E4\X0nde'", "Wände"),
            (r"'Wand \X2\59168'", "Wand 外\u{FFFD}"),
            (r"'\X2\5916\X2\58C1\X0\'", "外壁"),
            (r"'\X2\D83D'", "\u{FFFD}"),
            (r"'\X2\'", ""),
        ] {
            assert_eq!(string(written.as_bytes()).unwrap(), read, "{written}");
        }
    }

    #[test]
    fn bytes_of_shift_jis_in_escapes_are_read_as_such() {
        for (written, read) in [
            (
                r"'\X\83R\X\83\X\93\X\83N\X\83\X\8A\X\81[\X\83g-\X\8D\\\X\91\X\A22'",
                "コンクリート-構造2",
            ),
            (r"'1\X\8AK'", "1階"),
            (r"'W\X\E4nde'", "Wände"),
        ] {
            assert_eq!(string(written.as_bytes()).unwrap(), read, "{written}");
        }
    }

    #[test]
    fn missing_attributes_are_empty() {
        assert_eq!(
            attributes::<3>(b"#1=IFCX('a',(1,2));#2=IFCY(3);"),
            [&b"'a'"[..], b"(1,2)", b""]
        );
        assert_eq!(attribute(b"#1 = IFCX ($ , .A.) ;", 1), b".A.");
    }
}
