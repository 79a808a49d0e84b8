//! The `include "name";` at the beginning of a program, and the files that it names.

use std::ops::Range;

use jaq_core::load::lex::Lexer;
use jaq_core::load::parse::Parser;

use super::fault::{JqError, ProgramText};

/// One `include "name";`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Include {
    /// The name without its quotes.
    pub(crate) name: String,
    /// The bytes of the name with its quotes.
    pub(crate) at: Range<usize>,
    /// The bytes from `include` to the semicolon.
    pub(crate) statement: Range<usize>,
}

/// Returns the includes of a program, in order. Only comments may precede an `include`.
pub(crate) fn includes(source: &str) -> Vec<Include> {
    let mut found = Vec::new();
    let mut end = 0;
    while let Some(include) = next(source, end) {
        end = include.statement.end;
        found.push(include);
    }
    found
}

fn next(source: &str, from: usize) -> Option<Include> {
    let start = skip_blank(source, from);
    let rest = source[start..].strip_prefix("include")?;
    let open = skip_blank(source, source.len() - rest.len());
    let rest = source[open..].strip_prefix('"')?;
    let name = rest.split(['"', '\\', '\n']).next()?;
    let close = open + 1 + name.len();
    source[close..].strip_prefix('"')?;
    let semicolon = skip_blank(source, close + 1);
    source[semicolon..].strip_prefix(';')?;
    Some(Include {
        name: name.to_owned(),
        at: open..close + 1,
        statement: start..semicolon + 1,
    })
}

/// Returns the place behind blanks and comments.
fn skip_blank(source: &str, from: usize) -> usize {
    let mut rest = source[from..].trim_start();
    while rest.starts_with('#') {
        rest = rest.find('\n').map_or("", |end| &rest[end..]).trim_start();
    }
    source.len() - rest.len()
}

/// Checks that an included file has definitions only.
///
/// # Errors
/// Syntax errors and everything else, with their place in the file.
pub(crate) fn check_definitions(name: &str, source: &str) -> Result<(), JqError> {
    let body = includes(source).last().map_or(0, |last| last.statement.end);
    let program = ProgramText {
        program: name,
        source,
        vars: &[],
    };
    let tokens = Lexer::new(&source[body..])
        .lex()
        .map_err(|errors| program.lex(&errors))?;
    let parsed = Parser::new(&tokens).parse(Parser::defs);
    parsed.map(drop).map_err(|errors| {
        let Some((expected, found)) = errors.first() else {
            return program.fault(source, "the file cannot be read", None);
        };
        let error = program.parse(expected, *found);
        let help = "an included file has definitions only: `def NAME: …;`";
        JqError {
            hint: error.hint.clone().or_else(|| Some(help.to_owned())),
            ..error
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_includes_at_the_beginning() {
        let source =
            "# a\n include \"lib\" ;include # b\n\"sub/x\";\n. + \"include\"; include \"z\";";
        let found = includes(source);
        let names: Vec<_> = found.iter().map(|include| &*include.name).collect();
        assert_eq!(names, ["lib", "sub/x"]);
        assert_eq!(&source[found[0].at.clone()], "\"lib\"");
        assert_eq!(
            &source[found[1].statement.clone()],
            "include # b\n\"sub/x\";"
        );
        for other in [
            "",
            "#",
            "include",
            "include \"a",
            "include \"a\\n\";",
            ". | include \"a\";",
            "includes",
        ] {
            assert_eq!(includes(other), [], "{other}");
        }
    }
}
