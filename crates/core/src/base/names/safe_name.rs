//! A value as one component of a path: it can name a file, and never lead anywhere else.

use crate::base::digest::Digest;

/// The longest component of a declared path in bytes. File systems take 255; names of outputs add endings and numbers.
const LONGEST: usize = 120;

/// Hexadecimal digits of a mark: 96 bits.
const MARK: usize = 24;

/// Returns the value as one safe component of a path.
///
/// Separators, control characters and what file systems forbid become `_`, as does a leading dot. A value that had to be
/// changed or cut ends in `~` and 24 hexadecimal digits of its SHA-256, so that two values do not become one path.
pub(crate) fn component(value: &str) -> String {
    safe_name(value, LONGEST)
}

/// Returns the value as one safe component of a path, of at most this many bytes.
pub fn safe_name(value: &str, longest: usize) -> String {
    let mut safe: String = value
        .chars()
        .map(|char| match char {
            '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' => '_',
            char if char.is_control() => '_',
            char => char,
        })
        .collect();
    if safe.starts_with('.') {
        safe.replace_range(..1, "_");
    }
    if safe.is_empty() {
        safe.push('_');
    }
    // A value that looks like one that was changed is marked too, or it could be taken for that one.
    if safe == value && safe.len() <= longest && !is_marked(&safe) {
        return safe;
    }
    let mark = mark(value);
    let mut end = safe.len().min(longest.saturating_sub(mark.len()));
    while !safe.is_char_boundary(end) {
        end -= 1;
    }
    safe.truncate(end);
    safe + &mark
}

/// Returns the end of a name that distinguishes its value from all others.
pub fn mark(value: &str) -> String {
    format!("~{}", &Digest::of(value).hex()[..MARK])
}

fn is_marked(value: &str) -> bool {
    value.rsplit_once('~').is_some_and(|(_, mark)| {
        mark.len() == MARK && mark.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn leaves_good_names_alone() {
        for good in [
            "batch_1",
            "Übung 3",
            "a.b-c",
            "0MEgIeGdP7wQXCaXQ5A5xC",
            "$1~x",
            "a_b~c14cdd",
        ] {
            assert_eq!(component(good), good);
        }
    }

    #[test]
    fn makes_bad_names_safe_and_distinct() {
        assert_eq!(component(".."), "_.~5ec1f7e700f37c3d0b2981d0");
        assert_eq!(component("a/b"), "a_b~c14cddc033f64b9dea80ea67");
        assert_eq!(component(""), "_~e3b0c44298fc1c149afbf4c8");
        assert_ne!(component("a/b"), component("a:b"));
        assert_ne!(component(&component("a/b")), component("a/b"));
        assert_eq!(component(&"ä".repeat(200)).len(), 119);
    }

    proptest! {
        #[test]
        fn never_escapes(value in any::<String>(), odd in "[./\\\\~a:\u{0}]{0,6}") {
            for value in [value, odd] {
                let safe = component(&value);
                prop_assert!(!safe.is_empty() && safe.len() <= LONGEST);
                prop_assert!(!safe.starts_with('.'));
                prop_assert!(!safe.contains(['/', '\\', '\0', ':']));
                prop_assert_eq!(
                    std::path::Path::new("x").join(&safe).components().count(), 2
                );
            }
        }

        #[test]
        fn two_values_are_two_names(a in "[./:a]{0,4}", b in "[./:a]{0,4}") {
            prop_assert_eq!(a == b, component(&a) == component(&b));
        }
    }
}
