//! Sizes as people write them in declarations: `512 MiB`, `2 GiB`, `1 GB`.

/// A text that is not a size.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{0}` is not a size: write an integer of at least 1 and a unit, such as \"512 MiB\" or \"2 GiB\""
)]
pub(crate) struct SizeError(pub(crate) String);

/// The units, largest first.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1000),
    ("B", 1),
];

/// Reads a size, in bytes.
///
/// # Errors
/// If the number is 0, no integer or too large, or the unit is missing or unknown.
pub(crate) fn parse_size(text: &str) -> Result<u64, SizeError> {
    let wrong = || SizeError(text.to_owned());
    let text = text.trim();
    let (name, bytes) = UNITS
        .into_iter()
        .find(|(name, _)| text.ends_with(name))
        .ok_or_else(wrong)?;
    let number = text.strip_suffix(name).unwrap_or_default().trim_end();
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let size = number.checked_mul(bytes).filter(|size| *size > 0);
    size.ok_or_else(wrong)
}

/// Returns a size in the largest unit that divides it: `2 GiB`.
pub fn show_size(size: u64) -> String {
    let unit = UNITS
        .into_iter()
        .find(|(_, bytes)| size.is_multiple_of(*bytes));
    let (name, bytes) = unit.unwrap_or(("B", 1));
    format!("{} {name}", size / bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_shows_what_people_write() {
        for (text, size, shown) in [
            ("2 GiB", 2 << 30, "2 GiB"),
            ("512MiB", 512 << 20, "512 MiB"),
            (" 1 GB ", 1_000_000_000, "1 GB"),
            ("1000 B", 1000, "1 KB"),
        ] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
            assert_eq!(show_size(size), shown);
        }
        for text in [
            "",
            "2",
            "GiB",
            "0 GiB",
            "1.5 GiB",
            "-1 B",
            "2 gib",
            "99999999 TiB",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
