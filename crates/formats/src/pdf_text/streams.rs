//! The content of a stream, if it is complete and has a bounded size.

use super::limits::{INFLATED, RATIO, ROW, ReadError, check};
use flate2::{Decompress, FlushDecompress, Status};
use hayro_syntax::Filter;
use hayro_syntax::object::dict::keys::{BITS_PER_COMPONENT, COLORS, COLUMNS, DECODE_PARMS};
use hayro_syntax::object::{Array, Dict, Number, Object, Stream};
use std::borrow::Cow;

/// Returns the content of a stream, without its filters, if it has at most `most` bytes and is complete.
pub(crate) fn inflated(stream: &Stream<'_>, most: usize) -> Result<Vec<u8>, ReadError> {
    let filters = stream.filters();
    let raw = stream.raw_data();
    check_rows(stream.dict())?;
    let most = most.min(raw.len().saturating_mul(RATIO).max(INFLATED));
    if let Some(deflated) = deflated(&filters, &raw) {
        check_deflated(&deflated, most)?;
    }
    let inflate = |filter: &&Filter| {
        use Filter::{FlateDecode, LzwDecode, RunLengthDecode};
        matches!(filter, FlateDecode | LzwDecode | RunLengthDecode)
    };
    let count = filters.iter().filter(inflate).count();
    check(count, 1, "filters of a stream that compress")?;
    let content = stream.decoded_data();
    let content = content.map_err(|_| ReadError::Broken("it cannot be decoded".to_owned()))?;
    check(content.len(), most, "bytes in a stream")?;
    Ok(content.into_owned())
}

/// An error if a predictor asks for rows of more than [`ROW`] bytes: the parser allocates a row before it reads one.
fn check_rows(stream: &Dict<'_>) -> Result<(), ReadError> {
    let one = stream.get::<Dict<'_>>(DECODE_PARMS);
    let all = stream.get::<Array<'_>>(DECODE_PARMS);
    let all = all.iter().flat_map(Array::iter::<Object<'_>>);
    for parameters in one.into_iter().chain(all.filter_map(Object::into_dict)) {
        let number = |key: &[u8]| parameters.get::<Number>(key).map_or(1, |it| it.as_i64());
        let samples = number(COLUMNS).saturating_mul(number(COLORS));
        let bits = samples.saturating_mul(number(BITS_PER_COMPONENT).max(8));
        let bytes = usize::try_from(bits / 8).unwrap_or(usize::MAX);
        check(bytes, ROW, "bytes in a row of samples")?;
    }
    Ok(())
}

/// Returns the data before the first `FlateDecode`, with hex and base-85 removed; `None` for other filters and for no data.
fn deflated<'a>(filters: &[Filter], raw: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let plain = match filters {
        [Filter::FlateDecode, ..] => Cow::Borrowed(raw),
        [Filter::AsciiHexDecode, Filter::FlateDecode, ..] => Cow::Owned(unhexed(raw)),
        [Filter::Ascii85Decode, Filter::FlateDecode, ..] => Cow::Owned(plain_of_85(raw)),
        _ => return None,
    };
    Some(plain).filter(|plain| !plain.is_empty())
}

/// Decodes ASCII base-85 (ISO 32000-1, 7.4.3); the rest of the parser decides whether it is well formed.
fn plain_of_85(raw: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(raw.len() / 5 * 4);
    let mut group = Vec::with_capacity(5);
    for byte in raw.iter().take_while(|byte| **byte != b'~') {
        match byte {
            b'z' if group.is_empty() => plain.extend([0; 4]),
            b'!'..=b'u' => group.push(u64::from(byte - b'!')),
            _ => {}
        }
        if group.len() == 5 {
            plain.extend(bytes_of_85(&group));
            group.clear();
        }
    }
    if group.len() > 1 {
        let count = group.len() - 1;
        group.resize(5, 84);
        plain.extend(&bytes_of_85(&group)[..count]);
    }
    plain
}

fn bytes_of_85(group: &[u64]) -> [u8; 4] {
    let number = group.iter().fold(0, |number, digit| number * 85 + digit);
    (number as u32).to_be_bytes()
}

fn unhexed(raw: &[u8]) -> Vec<u8> {
    let digits = raw.iter().take_while(|byte| **byte != b'>');
    let digits = digits.filter_map(|byte| char::from(*byte).to_digit(16));
    let digits: Vec<u8> = digits.map(|digit| digit as u8).collect();
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0))
        .collect()
}

/// Checks that a compressed content is complete and has at most `most` bytes: the parser inflates as much as there is. A wrong
/// checksum does no harm.
fn check_deflated(raw: &[u8], most: usize) -> Result<(), ReadError> {
    let has_header = matches!(raw, [method, flags, ..]
        if method & 0x0F == 8 && (u16::from(*method) << 8 | u16::from(*flags)) % 31 == 0);
    let mut rest = if has_header { &raw[2..] } else { raw };
    let mut inflater = Decompress::new(false);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (read, written) = (inflater.total_in(), inflater.total_out());
        let status = inflater.decompress(rest, &mut buffer, FlushDecompress::None);
        rest = &rest[(inflater.total_in() - read) as usize..];
        check(inflater.total_out() as usize, most, "bytes in a stream")?;
        match status {
            Ok(Status::StreamEnd) => return Ok(()),
            Ok(_) if (read, written) != (inflater.total_in(), inflater.total_out()) => {}
            Ok(_) | Err(_) => {
                return Err(ReadError::Broken("its content is cut off".to_owned()));
            }
        }
    }
}
