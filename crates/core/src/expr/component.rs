//! A value as one component of a path: it can name a file, and never lead anywhere else.

use crate::base::digest::Digest;

/// The longest component in bytes. File systems take 255; names of outputs add endings and numbers.
const LONGEST: usize = 120;

/// Returns the value as one safe component of a path.
///
/// Separators, control characters and what file systems forbid become `_`, as does a leading dot. A value that had to be
/// changed or cut ends in `~` and 6 hexadecimal digits of its SHA-256, so that two values do not become one path.
pub(crate) fn component(value: &str) -> String {
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
    if safe == value && safe.len() <= LONGEST && !is_marked(&safe) {
        return safe;
    }
    let mark = format!("~{}", &Digest::of(value).hex()[..6]);
    let mut end = safe.len().min(LONGEST - mark.len());
    while !safe.is_char_boundary(end) {
        end -= 1;
    }
    safe.truncate(end);
    safe + &mark
}

fn is_marked(value: &str) -> bool {
    value.rsplit_once('~').is_some_and(|(_, mark)| {
        mark.len() == 6 && mark.bytes().all(|byte| byte.is_ascii_hexdigit())
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
        ] {
            assert_eq!(component(good), good);
        }
    }

    #[test]
    fn makes_bad_names_safe_and_distinct() {
        assert_eq!(component(".."), "_.~5ec1f7");
        assert_eq!(component("a/b"), "a_b~c14cdd");
        assert_eq!(component(""), "_~e3b0c4");
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
