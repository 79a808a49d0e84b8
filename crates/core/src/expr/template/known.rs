//! Filters and tests that a template names and the engine does not have: found before anything is rendered.

use minijinja::{Environment, ErrorKind};

use super::fault::TemplateError;
use super::tags::{ident, string, tags};
use crate::expr::place::nearest;

/// Every filter, for suggestions.
const FILTERS: [&str; 52] = [
    "abs",
    "as_file",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "chain",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "fixed",
    "float",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "stem",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
    "urlencode",
    "zip",
];

/// Every test that is a word, for suggestions.
const TESTS: [&str; 35] = [
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "safe",
    "sameas",
    "sequence",
    "startingwith",
    "string",
    "test",
    "true",
    "undefined",
];

/// Names of other template languages and of Python, and what a template of Milepost writes instead.
const ELSEWHERE: [(&str, &str); 16] = [
    ("basename", "stem"),
    ("downcase", "lower"),
    ("uppercase", "upper"),
    ("upcase", "upper"),
    ("lowercase", "lower"),
    ("to_json", "tojson"),
    ("json", "tojson"),
    ("dump", "tojson"),
    ("jsonify", "tojson"),
    ("len", "length"),
    ("size", "length"),
    ("strip", "trim"),
    ("url_encode", "urlencode"),
    ("str", "string"),
    ("sorted", "sort"),
    ("uniq", "unique"),
];

/// The meaning of a name in a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Filter,
    Test,
}

/// Returns the first filter or test of `source` that the engine does not have.
pub(super) fn unknown(
    env: &Environment<'_>,
    template: &str,
    source: &str,
) -> Option<TemplateError> {
    let names = named(source);
    if names.is_empty() {
        return None;
    }
    let mut state = env.empty_state();
    let (sort, name) = names.into_iter().find(|(sort, name)| {
        let wrong = match sort {
            Sort::Filter => state.apply_filter(name, &[]).err(),
            Sort::Test => state.perform_test(name, &[]).err(),
        };
        let kinds = [ErrorKind::UnknownFilter, ErrorKind::UnknownTest];
        wrong.is_some_and(|error| kinds.contains(&error.kind()))
    })?;
    let (word, known) = match sort {
        Sort::Filter => ("filter", FILTERS.as_slice()),
        Sort::Test => ("test", TESTS.as_slice()),
    };
    let meant = ELSEWHERE
        .iter()
        .find(|(other, _)| *other == name && sort == Sort::Filter)
        .map(|(_, ours)| *ours)
        .or_else(|| nearest(name, known.iter().copied()));
    let hint = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("the {word}s are {}", known.join(", ")),
    };
    let message = format!("there is no {word} `{name}`");
    Some(TemplateError::at(
        template,
        source,
        name,
        message,
        Some(&hint),
    ))
}

/// Returns the filters and tests that a template names, in order; each name is a slice of the source.
fn named(source: &str) -> Vec<(Sort, &str)> {
    let mut found = Vec::new();
    for tag in tags(source) {
        let word = tag.body.trim_start_matches(['-', '+']).trim();
        if let Some(name) = word.strip_prefix("filter ")
            && tag.is_statement
        {
            found.extend(ident(name.trim_start()).map(|name| (Sort::Filter, name)));
        }
        named_in(tag.body, &mut found);
    }
    found
}

/// The filters and tests of one tag.
fn named_in<'a>(body: &'a str, found: &mut Vec<(Sort, &'a str)>) {
    let mut at = 0;
    let mut is_field = false;
    while let Some(c) = body[at..].chars().next() {
        let rest = &body[at..];
        let width = match c {
            '"' | '\'' => string(rest),
            '|' => {
                found.extend(ident(rest[1..].trim_start()).map(|name| (Sort::Filter, name)));
                1
            }
            _ => match ident(rest) {
                Some("is") if !is_field => {
                    let after = rest[2..].trim_start();
                    let after = match ident(after) {
                        Some("not") => after[3..].trim_start(),
                        _ => after,
                    };
                    found.extend(ident(after).map(|name| (Sort::Test, name)));
                    2
                }
                Some(word) => word.len(),
                None => c.len_utf8(),
            },
        };
        is_field = c == '.';
        at += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::template::engine;

    #[test]
    fn every_suggested_name_exists() {
        let env = engine::texts();
        for name in FILTERS.iter().chain(ELSEWHERE.iter().map(|(_, ours)| ours)) {
            let found = unknown(&env, "t", &format!("{{{{ x | {name} }}}}"));
            assert_eq!(found, None, "{name}");
        }
        for name in TESTS {
            let found = unknown(
                &env,
                "t",
                &format!("{{% if x is not {name} %}}{{% endif %}}"),
            );
            assert_eq!(found, None, "{name}");
        }
        for (other, _) in ELSEWHERE {
            assert!(
                unknown(&env, "t", &format!("{{{{ x | {other} }}}}")).is_some(),
                "{other}"
            );
        }
    }

    #[test]
    fn names_are_found_in_tags_only() {
        for (source, wanted) in [
            ("a | b {{ x }} is c", ""),
            ("{{ x|a | b(1, \"| c\") }}", "a b"),
            ("{% if x.is is defined and y is not d(2) %}", "defined d"),
            ("{# {{ x | a }} #}{{ '}} | b' | c }}", "c"),
            ("{% raw %}{{ x | a }}{% endraw %}{{ x | b }}", "b"),
            ("{%- filter upper -%} a {% endfilter %}", "upper"),
            ("{{ x | a", "a"),
            ("{ä {{ ä | ö }} {", "ö"),
            ("{", ""),
        ] {
            let found: Vec<&str> = named(source).into_iter().map(|(_, name)| name).collect();
            assert_eq!(found.join(" "), wanted, "{source}");
        }
    }
}
