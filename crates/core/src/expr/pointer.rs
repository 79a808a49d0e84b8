//! JSON pointers (RFC 6901): their steps with `~` and `/` escaped.

/// Adds a step to a pointer.
pub fn push(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&escaped(name));
}

/// Returns a pointer with one more step.
pub fn below(pointer: &str, name: &str) -> String {
    let mut below = pointer.to_owned();
    push(&mut below, name);
    below
}

/// Returns the steps of a pointer; `None` if it does not begin with `/`. The empty pointer has none.
pub fn steps(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let steps = pointer.strip_prefix('/')?.split('/');
    let plain = steps.map(|step| step.replace("~1", "/").replace("~0", "~"));
    Some(plain.collect())
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_escaped_and_read_again() {
        let names = ["a/b", "~1", "", "ü", "12"];
        let pointer = names
            .iter()
            .fold(String::new(), |pointer, name| below(&pointer, name));
        assert_eq!(pointer, "/a~1b/~01//ü/12");
        assert_eq!(steps(&pointer).unwrap(), names);
        assert_eq!(steps(""), Some(vec![]));
        assert_eq!(steps("a"), None);
    }
}
