//! Static analysis of a program: the names that it mentions, whether it takes its whole input, and its regular expressions.

use std::collections::{BTreeMap, BTreeSet};

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::ops::Math;
use jaq_core::path::{Part, Path};

use crate::expr::mentions::Mentions;

type T<'s> = Term<&'s str>;

/// The result of the analysis.
#[derive(Default)]
pub(super) struct Found<'s> {
    /// Every identifier that is mentioned as a field or a variable.
    pub(crate) names: BTreeSet<String>,
    /// The dotted names, anywhere in the program.
    pub(crate) mentions: Mentions,
    /// The dotted ones that are fields of the program's own input, or variables.
    pub(crate) roots: Mentions,
    /// True if more of the input is used than fields that are named.
    pub(crate) whole: bool,
    /// True if values may grow by more than a power of their size, or nest more deeply.
    pub(crate) grows: bool,
    /// Literal regular expressions: the filter that they are given to, the expression, its flags.
    pub(crate) regexes: Vec<(&'s str, String, String)>,
    locals: BTreeSet<&'s str>,
    /// The parts of its input that each definition uses.
    uses: BTreeMap<(&'s str, usize), Uses>,
}

/// The used part of an input: named fields, or more.
#[derive(Default)]
struct Uses {
    fields: Mentions,
    whole: bool,
}

/// Filters that do not use their input, or only through their arguments.
const BLIND: &[&str] = &[
    "empty", "error", "input", "inputs", "true", "false", "null", "range", "limit", "first",
    "last", "nth", "skip", "isempty", "any", "all", "add", "nan", "infinite",
];

/// Filters that repeat as often as a value says, or that read nested values from text.
const GROWING: &[&str] = &[
    "range",
    "repeat",
    "while",
    "until",
    "recurse",
    "combinations",
    "walk",
    "setpath",
    "fromjson",
];

/// Walks the program.
pub(super) fn walk<'s>(term: &T<'s>) -> Found<'s> {
    let mut found = Found::default();
    found.term(term, true);
    found
}

impl<'s> Found<'s> {
    /// `root`: whether `.` is the program's own input here.
    fn term(&mut self, term: &T<'s>, root: bool) {
        match term {
            Term::Id | Term::Recurse => self.whole |= root,
            Term::Num(_) | Term::Break(_) | Term::Arr(None) => {}
            Term::Var(name) => self.dotted(&[name[1..].to_owned()], true),
            Term::Str(_, parts) => self.parts(parts, root),
            Term::Arr(Some(inner)) | Term::Neg(inner) | Term::Label(_, inner) => {
                self.term(inner, root);
            }
            Term::TryCatch(inner, catch) => {
                self.term(inner, root);
                if let Some(catch) = catch {
                    self.term(catch, false);
                }
            }
            Term::Obj(entries) => {
                for (key, value) in entries {
                    self.entry(key, value.as_ref(), root);
                }
            }
            Term::BinOp(left, op, right) => self.operation(left, op, right, root),
            Term::Fold(_, over, pattern, args) => {
                self.grows = true;
                self.term(over, root);
                self.pattern(pattern);
                for (at, arg) in args.iter().enumerate() {
                    self.term(arg, root && at == 0);
                }
            }
            Term::IfThenElse(cases, otherwise) => {
                for (condition, then) in cases {
                    self.term(condition, root);
                    self.term(then, root);
                }
                match otherwise {
                    Some(otherwise) => self.term(otherwise, root),
                    None => self.whole |= root,
                }
            }
            Term::Def(defs, inner) => {
                for def in defs {
                    self.def(def);
                }
                self.term(inner, root);
            }
            Term::Call(name, args) => self.call(name, args, root),
            Term::Path(head, path) => self.path(term, head, path, root),
        }
    }

    fn operation(&mut self, left: &T<'s>, op: &BinaryOp<&'s str>, right: &T<'s>, root: bool) {
        // A number repeats a text.
        let repeats = matches!(
            op,
            BinaryOp::Math(Math::Mul) | BinaryOp::UpdateMath(Math::Mul)
        );
        self.grows |= repeats
            && ![left, right]
                .iter()
                .any(|term| matches!(term, Term::Num(_)));
        match op {
            BinaryOp::Pipe(None) => {
                if matches!(left, Term::Id) {
                    self.term(right, root);
                } else {
                    self.term(left, root);
                    self.term(right, false);
                }
            }
            BinaryOp::Pipe(Some(pattern)) => {
                if !(matches!(left, Term::Id) && matches!(pattern, Pattern::Obj(_))) {
                    self.term(left, root);
                }
                self.pattern(pattern);
                self.term(right, root);
            }
            BinaryOp::Assign | BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt => {
                self.whole |= root;
                self.term(left, root);
                self.term(right, root);
            }
            BinaryOp::Update => {
                self.whole |= root;
                self.term(left, root);
                self.term(right, false);
            }
            _ => {
                self.term(left, root);
                self.term(right, root);
            }
        }
    }

    fn def(&mut self, def: &Def<&'s str>) {
        self.locals.insert(def.name);
        for arg in &def.args {
            self.locals.insert(arg);
        }
        self.term(&def.body, false);
        // Once more as if it were called on the program's own input, for the calls that are.
        let (whole, regexes) = (std::mem::take(&mut self.whole), self.regexes.len());
        let roots = std::mem::take(&mut self.roots);
        self.term(&def.body, true);
        self.regexes.truncate(regexes);
        let whole = std::mem::replace(&mut self.whole, whole);
        let fields = std::mem::replace(&mut self.roots, roots);
        // Definitions of the same name and arity are not distinguished: all of them count.
        let uses = self.uses.entry((def.name, def.args.len())).or_default();
        uses.whole |= whole;
        uses.fields.extend(&fields);
    }

    fn call(&mut self, name: &'s str, args: &[T<'s>], root: bool) {
        let bare = name.trim_start_matches('$');
        self.grows |= GROWING.contains(&name);
        let blind = match name {
            "add" | "first" | "last" | "any" | "all" if args.is_empty() => false,
            "any" | "all" | "nth" if args.len() == 1 => false,
            _ => BLIND.contains(&name),
        };
        if root && !blind && !self.locals.contains(name) {
            self.whole = true;
        }
        if root && let Some(uses) = self.uses.get(&(name, args.len())) {
            self.whole |= uses.whole;
            self.roots.extend(&uses.fields);
        }
        for (at, arg) in args.iter().enumerate() {
            let inner = root && !(matches!(bare, "any" | "all") && at == 1);
            self.term(arg, inner);
        }
        if matches!(
            name,
            "has" | "getpath" | "setpath" | "delpaths" | "in" | "IN" | "pick"
        ) {
            for arg in args {
                self.literals(arg);
            }
        }
        let flags_at = match (name, args.len()) {
            ("test" | "match" | "capture" | "scan" | "splits", 1) | ("sub" | "gsub", 2) => None,
            ("test" | "match" | "capture" | "scan" | "splits" | "split", 2) => Some(1),
            ("sub" | "gsub", 3) => Some(2),
            _ => return,
        };
        if let Some(regex) = literal(&args[0]) {
            let flags = flags_at.map_or(Some(String::new()), |at| literal(&args[at]));
            self.regexes.push((name, regex, flags.unwrap_or_default()));
        }
    }

    fn entry(&mut self, key: &T<'s>, value: Option<&T<'s>>, root: bool) {
        match (key, value) {
            (Term::Var(_), None) => self.term(key, root),
            (_, None) => {
                if let Some(name) = literal(key) {
                    self.dotted(&[name], root);
                } else {
                    self.whole |= root;
                    self.term(key, root);
                }
            }
            (_, Some(value)) => {
                self.term(key, root);
                self.term(value, root);
            }
        }
    }

    fn pattern(&mut self, pattern: &Pattern<&'s str>) {
        match pattern {
            Pattern::Var(name) => {
                self.names.insert(name[1..].to_owned());
            }
            Pattern::Arr(items) => items.iter().for_each(|item| self.pattern(item)),
            Pattern::Obj(entries) => {
                for (key, value) in entries {
                    if let Some(name) = literal(key) {
                        self.dotted(&[name], true);
                    } else {
                        self.literals(key);
                        self.term(key, false);
                    }
                    self.pattern(value);
                }
            }
        }
    }

    fn path(&mut self, term: &T<'s>, head: &T<'s>, path: &Path<T<'s>>, root: bool) {
        if let Some((chain, rest)) = chain(term) {
            let of_input = !matches!(start(term), Term::Var(_));
            if chain.is_empty() {
                self.whole |= root && of_input;
            } else {
                self.dotted(&chain, root || !of_input);
            }
            for part in rest {
                match part {
                    // A field of something inside: no name of the scope.
                    Part::Index(index) if literal(index).is_some() => {
                        self.names.extend(literal(index));
                    }
                    other => self.part(other, root),
                }
            }
            return;
        }
        self.term(head, root);
        for (part, _) in &path.0 {
            self.part(part, root);
        }
    }

    fn part(&mut self, part: &Part<T<'s>>, root: bool) {
        let mut inner = |term: &T<'s>| {
            self.literals(term);
            self.term(term, root);
        };
        match part {
            Part::Index(index) => inner(index),
            Part::Range(from, to) => [from, to].into_iter().flatten().for_each(inner),
        }
    }

    fn parts(&mut self, parts: &[StrPart<&'s str, T<'s>>], root: bool) {
        for part in parts {
            if let StrPart::Term(inner) = part {
                self.term(inner, root);
            }
        }
    }

    /// Every literal string below the term counts as a name: it may be used as a key.
    fn literals(&mut self, term: &T<'s>) {
        if let Some(text) = literal(term) {
            self.dotted(&[text], true);
        }
        match term {
            Term::Arr(Some(inner)) => self.literals(inner),
            Term::BinOp(left, _, right) => {
                self.literals(left);
                self.literals(right);
            }
            Term::IfThenElse(cases, otherwise) => {
                for (_, then) in cases {
                    self.literals(then);
                }
                if let Some(otherwise) = otherwise {
                    self.literals(otherwise);
                }
            }
            _ => {}
        }
    }

    fn dotted(&mut self, chain: &[String], rooted: bool) {
        self.names.extend(chain.iter().cloned());
        let plain: Vec<&str> = chain
            .iter()
            .map(String::as_str)
            .take_while(|name| !name.contains('.'))
            .collect();
        if !plain.is_empty() {
            self.mentions.add(plain.join("."));
            if rooted {
                self.roots.add(plain.join("."));
            }
        }
    }
}

/// Returns the names of a path from its start as far as they are literal, and the parts after them. `None` if it starts with
/// something else than `.` or a variable.
#[allow(clippy::type_complexity)]
fn chain<'t, 's>(term: &'t T<'s>) -> Option<(Vec<String>, Vec<&'t Part<T<'s>>>)> {
    match term {
        Term::Id => Some((Vec::new(), Vec::new())),
        Term::Var(name) => Some((vec![name[1..].to_owned()], Vec::new())),
        Term::TryCatch(inner, None) => chain(inner),
        Term::Path(head, path) => {
            let (mut names, mut rest) = chain(head)?;
            for (part, _) in &path.0 {
                match part {
                    Part::Index(index) if rest.is_empty() => match literal(index) {
                        Some(name) => names.push(name),
                        None => rest.push(part),
                    },
                    other => rest.push(other),
                }
            }
            Some((names, rest))
        }
        _ => None,
    }
}

fn start<'t, 's>(term: &'t T<'s>) -> &'t T<'s> {
    match term {
        Term::TryCatch(inner, None) | Term::Path(inner, _) => start(inner),
        other => other,
    }
}

/// Returns the text of a literal string.
fn literal(term: &T<'_>) -> Option<String> {
    let Term::Str(None, parts) = term else {
        return None;
    };
    parts
        .iter()
        .map(|part| match part {
            StrPart::Str(text) => Some((*text).to_owned()),
            StrPart::Char(char) => Some(char.to_string()),
            StrPart::Term(_) => None,
        })
        .collect()
}

/// Returns the name of an unsupported feature of a regular expression.
pub(super) fn unsupported(regex: &str) -> Option<&'static str> {
    let mut in_class = false;
    let mut rest = regex;
    while let Some(char) = rest.chars().next() {
        if let Some(escaped) = rest.strip_prefix('\\') {
            let next = escaped.chars().next()?;
            if !in_class
                && (matches!(next, '1'..='9')
                    || escaped.starts_with("k<")
                    || escaped.starts_with("g{"))
            {
                return Some("a back-reference");
            }
            rest = &escaped[next.len_utf8()..];
            continue;
        }
        if in_class {
            in_class = char != ']';
        } else if char == '[' {
            in_class = true;
            // A bracket that comes first is a character of the class.
            let body = rest[1..].strip_prefix('^').unwrap_or(&rest[1..]);
            rest = body.strip_prefix(']').unwrap_or(body);
            continue;
        } else if rest.starts_with("(?=") || rest.starts_with("(?!") {
            return Some("a look-ahead");
        } else if rest.starts_with("(?<=") || rest.starts_with("(?<!") {
            return Some("a look-behind");
        }
        rest = &rest[char.len_utf8()..];
    }
    None
}
