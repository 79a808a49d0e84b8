//! Reads the Rust files of the product as tokens, without comments and without items under `#[cfg(test)]`.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::Path;

/// A token: an identifier, a punctuation character, a bracket, or `""` for any literal.
pub struct Token {
    pub text: String,
    /// The first and the last line.
    pub line: usize,
    pub end: usize,
}

/// A file of the product.
pub struct Source {
    /// The path from the root of the repository, as `crates/core/src/base/digest.rs`.
    pub path: String,
    /// The package: the folder that holds `src`, as `crates/core`; empty for the root package.
    pub package: String,
    /// The module's path in its package, as `["base", "digest"]`.
    pub module: Vec<String>,
    pub lines: Vec<String>,
    /// The tokens of what is shipped; none if the whole file is a test.
    pub tokens: Vec<Token>,
}

impl Source {
    pub fn parse(path: &str, text: &str) -> Self {
        let (package, file) = path.split_once("src/").unwrap();
        let file = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let module = if matches!(file, "lib" | "main") {
            Vec::new()
        } else {
            file.split('/').map(str::to_owned).collect()
        };
        let mut tokens = Vec::new();
        if !module.iter().any(|part| part == "tests") {
            let stream: TokenStream = text.parse().unwrap_or_else(|e| panic!("{path}: {e}"));
            flatten(stream, &mut tokens);
        }
        Self {
            path: path.to_owned(),
            package: package.trim_end_matches('/').to_owned(),
            module,
            lines: text.lines().map(str::to_owned).collect(),
            tokens,
        }
    }

    /// Returns the number of lines of code: lines with a part of a token that are not blank.
    pub fn lines_of_code(&self) -> usize {
        let lines: BTreeSet<usize> = self
            .tokens
            .iter()
            .flat_map(|token| token.line..=token.end)
            .collect();
        let is_blank = |line: usize| self.lines[line - 1].trim().is_empty();
        lines.into_iter().filter(|line| !is_blank(*line)).count()
    }

    /// Returns where the tokens stand in the file one after the other, with the line of the first.
    pub fn find<'a>(&'a self, words: &'a [&str]) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.tokens
            .windows(words.len())
            .enumerate()
            .filter(move |(_, window)| window.iter().zip(words).all(|(t, word)| t.text == *word))
            .map(|(at, window)| (at, window[0].line))
    }

    /// Returns the paths that begin with `root::`, each with its line: the names after the root. Groups are opened, re-exports
    /// (`pub use`) are left out.
    pub fn paths(&self, root: &str) -> Vec<(usize, Vec<String>)> {
        let mut found = Vec::new();
        for (at, _) in self.find(&[root, ":", ":"]) {
            let inner =
                at >= 2 && self.tokens[at - 1].text == ":" && self.tokens[at - 2].text == ":";
            // `pub(in crate::x)` imports nothing.
            let visibility =
                at >= 2 && self.tokens[at - 1].text == "in" && self.tokens[at - 2].text == "(";
            if !inner && !visibility && !self.is_reexport(at) {
                self.path_from(at + 3, &mut Vec::new(), &mut found);
            }
        }
        found
    }

    fn is_reexport(&self, at: usize) -> bool {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| &self.tokens[at].text);
        before(1) == "use" && matches!(before(2), "pub" | ")")
    }

    /// Reads a path or group that starts at a token; returns the index after it.
    fn path_from(
        &self,
        mut at: usize,
        names: &mut Vec<String>,
        found: &mut Vec<(usize, Vec<String>)>,
    ) -> usize {
        let depth = names.len();
        let line = self.tokens.get(at).map_or(0, |token| token.line);
        loop {
            let text = self.tokens.get(at).map_or("", |token| token.text.as_str());
            if text == "{" {
                at += 1;
                while self.tokens[at].text != "}" {
                    at = self.path_from(at, names, found);
                    if self.tokens[at].text == "," {
                        at += 1;
                    }
                }
                names.truncate(depth);
                return at + 1;
            }
            if !text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                break;
            }
            names.push(text.to_owned());
            at += 1;
            let next = |offset: usize| {
                self.tokens
                    .get(at + offset)
                    .map(|token| token.text.as_str())
            };
            if next(0) != Some(":") || next(1) != Some(":") {
                break;
            }
            at += 2;
        }
        found.push((line, names.clone()));
        names.truncate(depth);
        // Whatever stands between a path in a group and the next one: `as name`, `*`.
        loop {
            match self.tokens.get(at).map(|token| token.text.as_str()) {
                Some("as") => at += 2,
                Some("*") => at += 1,
                _ => break,
            }
        }
        at
    }
}

/// Reads every file of the product below the root of the repository.
pub fn read(root: &Path) -> Vec<Source> {
    let mut paths: Vec<_> = ["src", "crates"]
        .iter()
        .flat_map(|folder| walkdir::WalkDir::new(root.join(folder)))
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            path.strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .replace('\\', "/")
        })
        .filter(|path| path.starts_with("src/") || path.contains("/src/"))
        .collect();
    paths.sort();
    assert!(
        paths.len() > 100,
        "the product has more files than {paths:?}"
    );
    let parse = |path: &String| {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        Source::parse(path, &text)
    };
    let mut sources: Vec<Source> = paths.iter().map(parse).collect();
    empty_tests(&mut sources);
    sources
}

/// Empties files that only a `#[cfg(test)] mod name;` declares.
fn empty_tests(sources: &mut [Source]) {
    let tests: Vec<(String, Vec<String>)> = sources
        .iter()
        .flat_map(|source| {
            let lines = source.lines.windows(4);
            lines.filter_map(|lines| {
                let is_test = lines[0].trim() == "#[cfg(test)]";
                let declaration = lines[1..]
                    .iter()
                    .find(|line| !line.trim().starts_with("#["))?;
                let name = declaration
                    .trim()
                    .rsplit("mod ")
                    .next()?
                    .strip_suffix(';')?;
                let mut module = source.module.clone();
                module.push(name.to_owned());
                (is_test && declaration.contains("mod ")).then(|| (source.package.clone(), module))
            })
        })
        .collect();
    for source in sources {
        if tests.iter().any(|(package, module)| {
            *package == source.package && source.module.starts_with(module)
        }) {
            source.tokens.clear();
        }
    }
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        if is_cfg_test(&tree, trees.peek()) {
            // The item ends with its braces, or with a semicolon.
            for tree in trees.by_ref() {
                match tree {
                    TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                    TokenTree::Punct(punct) if punct.as_char() == ';' => break,
                    _ => {}
                }
            }
            continue;
        }
        if is_comment(&tree, trees.peek()) {
            trees.next();
            if tree.to_string() == "!" {
                tokens.pop();
            }
            continue;
        }
        let (line, end) = (tree.span().start().line, tree.span().end().line);
        let mut push = |text: String, line, end| tokens.push(Token { text, line, end });
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(open.to_owned(), line, line);
                flatten(group.stream(), tokens);
                tokens.push(Token {
                    text: close.to_owned(),
                    line: end,
                    end,
                });
            }
            TokenTree::Ident(ident) => push(ident.to_string(), line, line),
            TokenTree::Punct(punct) => push(punct.as_char().to_string(), line, line),
            TokenTree::Literal(_) => push("\"\"".to_owned(), line, end),
        }
    }
}

/// A doc comment is an attribute to the compiler: `#[doc = "…"]` or `#![doc = "…"]`.
fn is_comment(tree: &TokenTree, next: Option<&TokenTree>) -> bool {
    let is_doc = matches!(next, Some(TokenTree::Group(group)) if group.stream().to_string().starts_with("doc ="));
    is_doc && matches!(tree, TokenTree::Punct(punct) if matches!(punct.as_char(), '#' | '!'))
}

fn is_cfg_test(tree: &TokenTree, next: Option<&TokenTree>) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == '#')
        && matches!(next, Some(TokenTree::Group(group)) if group.stream().to_string().replace(' ', "") == "cfg(test)")
}
