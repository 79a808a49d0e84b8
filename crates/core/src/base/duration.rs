//! Durations as people write them in declarations: `60s`, `10m`, `1h30m`, `250ms`.

use std::time::Duration;

/// A text that is not a duration.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{0}` is not a duration: write a number and a unit, such as \"60s\", \"10m\", \"1h30m\" or \"250ms\""
)]
pub struct DurationError(pub String);

/// Reads a duration: numbers with the units `ms`, `s`, `m`, `h` or `d`, one after another.
///
/// # Errors
/// If a unit is missing or unknown.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let wrong = || DurationError(text.to_owned());
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit_end = rest[digits..]
            .find(|c: char| !c.is_ascii_alphabetic())
            .map_or(rest.len(), |end| digits + end);
        let seconds = match &rest[digits..unit_end] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return Err(wrong()),
        };
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = rest[unit_end..].trim_start();
    }
    Ok(total)
}

/// A text that is not a time for a flag.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum PauseError {
    /// It is not a number with a unit.
    #[error(transparent)]
    Unit(#[from] DurationError),
    /// It is 0.
    #[error("expected a time greater than 0")]
    Zero,
}

/// Reads a time greater than 0, as the value of a flag: in seconds, or with its unit.
///
/// # Errors
/// If it is neither, or 0.
pub fn parse_pause(text: &str) -> Result<Duration, PauseError> {
    let pause = match text.parse() {
        Ok(seconds) => {
            Duration::try_from_secs_f64(seconds).map_err(|_| DurationError(text.to_owned()))?
        }
        Err(_) => parse_duration(text)?,
    };
    (!pause.is_zero()).then_some(pause).ok_or(PauseError::Zero)
}

/// Returns a duration as people write it: `0.3 s`, `42 s`, `3 min 20 s`, `10 min`, `2 h 5 min`.
pub fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 10 {
        format!("{:.1} s", duration.as_secs_f64())
    } else if seconds < 60 {
        format!("{seconds} s")
    } else if seconds < 3600 {
        parts((seconds / 60, "min"), (seconds % 60, "s"))
    } else {
        parts((seconds / 3600, "h"), (seconds % 3600 / 60, "min"))
    }
}

fn parts((large, large_unit): (u64, &str), (small, small_unit): (u64, &str)) -> String {
    match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, millis) in [
            ("60s", 60_000),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("1.5s", 1500),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in ["", "60", "s", "10 parsecs", "-1s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shows_what_people_write() {
        for (seconds, text) in [
            (3, "3.0 s"),
            (42, "42 s"),
            (200, "3 min 20 s"),
            (600, "10 min"),
            (7200, "2 h"),
            (7530, "2 h 5 min"),
        ] {
            assert_eq!(show_duration(Duration::from_secs(seconds)), text);
        }
    }
}
