//! Names of types, and errors that are types.

use super::source::{Source, Token};
use std::collections::BTreeMap;

/// How often the product may declare a type of one name.
const TYPES: usize = 2;

/// How many public functions may have a `String` as their error.
const STRING_ERRORS: usize = 0;

pub fn check_types(sources: &[Source], found: &mut Vec<String>) {
    let mut types: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in sources {
        for pair in source.tokens.windows(2) {
            let is_type = matches!(pair[0].text.as_str(), "struct" | "enum" | "trait" | "type");
            // Associated types repeat the name that their trait gives them.
            let associated = pair[0].text == "type"
                && pair[1].line == pair[0].line
                && is_indented(source, &pair[0]);
            if is_type && !associated && pair[1].text.starts_with(char::is_uppercase) {
                types
                    .entry(&pair[1].text)
                    .or_default()
                    .push(format!("{}:{}", source.path, pair[1].line));
            }
        }
    }
    for (name, places) in types {
        if places.len() > TYPES {
            found.push(format!(
                "{}: `{name}` is the name of {} types, at most {TYPES}; rename all but two: {}",
                places[0],
                places.len(),
                places[1..].join(", ")
            ));
        }
    }
}

fn is_indented(source: &Source, token: &Token) -> bool {
    source.lines[token.line - 1].starts_with(' ')
}

/// Files with command lines that repeat no flag of a run: help texts, titles of schemas, and a flag that no run had.
const EXAMPLES: [&str; 4] = [
    "crates/engine/src/ops/schema/generate.rs",
    "crates/store/src/store/lock.rs",
    "src/cli/args.rs",
    "src/cli/run/job.rs",
];

/// Reports command lines of runs that are typed out: they lack the flags of the present run.
pub fn check_suggestions(sources: &[Source], found: &mut Vec<String>) {
    let others = sources.iter();
    for source in others.filter(|source| !EXAMPLES.contains(&source.path.as_str())) {
        let literals = source.tokens.iter().filter(|token| token.text == "\"\"");
        for token in literals {
            let mut lines = source.lines[token.line - 1..token.end].iter();
            if lines.any(|line| line.contains("milepost run")) {
                found.push(format!(
                    "{}:{}: a command line of a run is typed out; call a method of `Invocation`, which adds the flags",
                    source.path, token.line
                ));
            }
        }
    }
}

/// Reports public functions whose error is a `String`.
pub fn check_errors(sources: &[Source], found: &mut Vec<String>) {
    let strings: Vec<String> = sources.iter().flat_map(string_errors).collect();
    if strings.len() > STRING_ERRORS {
        found.extend(strings);
    }
}

fn string_errors(source: &Source) -> Vec<String> {
    let tokens = &source.tokens;
    let text = |at: usize| tokens[at].text.as_str();
    let mut found = Vec::new();
    for (at, line) in source.find(&["fn"]) {
        let before: Vec<&str> = (at.saturating_sub(2)..at).map(text).collect();
        if !matches!(before[..], [.., "pub"] | ["pub", "const" | "async"]) {
            continue;
        }
        let signature: Vec<&str> = (at..tokens.len())
            .map(text)
            .take_while(|text| !matches!(*text, "{" | ";"))
            .collect();
        let Some(returns) = signature.windows(2).rposition(|pair| pair == ["-", ">"]) else {
            continue;
        };
        let returned = &signature[returns..];
        if returned.contains(&"Result")
            && returned.windows(3).any(|end| end == [",", "String", ">"])
        {
            found.push(format!(
                "{}:{line}: `{}` returns a `String` as its error; return an error type",
                source.path,
                text(at + 1)
            ));
        }
    }
    found
}
