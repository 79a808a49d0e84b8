//! Turns the text of a program into steps, with definitions in the place of their calls.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::OnceLock;

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::path::{self, Opt, Path};

use super::demand::{Demands, demands};
use super::program::{Change, Direct, Expr, ExprKind, Literal, PathPart};
use crate::expr::jq::fault::ProgramText;
use crate::expr::jq::jaq::JaqFilter;
use crate::expr::jq::{library, native};

/// Steps that a program may have: definitions that call themselves have more.
const MOST: usize = 20_000;
const DEEPEST: usize = 100;

/// Returns the program with the parts of its values that it needs; `None` if it cannot be run directly.
pub(crate) fn build(term: &Term<&str>, vars: &[&str]) -> Option<(Direct, Demands)> {
    let mut building = Building::default();
    let mut names = Bindings::default();
    for var in vars {
        names = names.with(Binding::Var(format!("${var}"), building.slot()));
    }
    let root = building.step(term, &names)?;
    let Building {
        literals, slots, ..
    } = building;
    let demands = demands(&root, &literals, slots, vars.len());
    let direct = Direct {
        root,
        literals,
        slots,
    };
    Some((direct, demands))
}

#[derive(Default)]
struct Building {
    literals: Vec<Literal>,
    slots: usize,
    steps: usize,
    depth: usize,
}

/// The names that can be seen at a place, the nearest first.
#[derive(Clone, Default)]
struct Bindings<'t>(Option<Rc<(Binding<'t>, Bindings<'t>)>>);

enum Binding<'t> {
    Var(String, usize),
    /// A definition; it sees the names before it and itself.
    Def(&'t Def<&'t str>),
    /// The arguments of a definition, and the names that it sees.
    Given(String, &'t Term<&'t str>, Bindings<'t>),
}

impl<'t> Bindings<'t> {
    fn with(&self, name: Binding<'t>) -> Self {
        Self(Some(Rc::new((name, self.clone()))))
    }

    fn var(&self, wanted: &str) -> Option<usize> {
        let mut at = self;
        while let Some(known) = &at.0 {
            match &known.0 {
                Binding::Var(name, slot) if name == wanted => return Some(*slot),
                _ => at = &known.1,
            }
        }
        None
    }

    /// Returns the nearest of this name and number of arguments, with the names from it on.
    fn filter(&self, wanted: &str, arguments: usize) -> Option<&Bindings<'t>> {
        let mut at = self;
        while let Some(known) = &at.0 {
            let is_it = match &known.0 {
                Binding::Var(..) => false,
                Binding::Def(def) => def.name == wanted && def.args.len() == arguments,
                Binding::Given(name, ..) => name == wanted && arguments == 0,
            };
            if is_it {
                return Some(at);
            }
            at = &known.1;
        }
        None
    }
}

fn step(node: ExprKind) -> Expr {
    let one = match &node {
        // An update is only built if its path and its new value have one output each.
        ExprKind::Input
        | ExprKind::Var(_)
        | ExprKind::Literal(_)
        | ExprKind::List(_)
        | ExprKind::Call(..)
        | ExprKind::Update(..)
        | ExprKind::SortBy(_) => true,
        ExprKind::Object(entries) => entries.iter().all(|(key, value)| key.one && value.one),
        ExprKind::Text(parts) => parts.iter().all(|part| part.one),
        ExprKind::Alternative(left, right) => left.at_most_one && right.one,
        ExprKind::Pipe(left, right)
        | ExprKind::Bind(left, _, right)
        | ExprKind::Math(left, _, right)
        | ExprKind::Compare(left, _, right)
        | ExprKind::Logic(left, _, right)
        | ExprKind::Parts(left, right) => left.one && right.one,
        ExprKind::If(condition, then, otherwise) => condition.one && then.one && otherwise.one,
        ExprKind::Negative(of) => of.one,
        ExprKind::Test(regex, flags) => regex.one && flags.as_ref().is_none_or(|flags| flags.one),
        ExprKind::Path(of, parts) => {
            of.one
                && parts
                    .iter()
                    .all(|(part, optional)| is_one(part) && !optional)
        }
        // A `reduce` is only built if its update has one output.
        ExprKind::Reduce(_, _, start, _) => start.one,
        ExprKind::Jaq(filter, arguments) => {
            SINGLE.contains(&filter.name()) && arguments.iter().all(|argument| argument.one)
        }
        ExprKind::Empty
        | ExprKind::Inputs
        | ExprKind::Comma(..)
        | ExprKind::Try(_)
        | ExprKind::First(_)
        | ExprKind::Choose(_) => false,
    };
    let at_most_one = one || is_at_most_one(&node);
    Expr {
        node,
        one,
        at_most_one,
    }
}

fn is_at_most_one(node: &ExprKind) -> bool {
    match node {
        ExprKind::Empty | ExprKind::Choose(_) | ExprKind::First(_) => true,
        ExprKind::Pipe(left, right)
        | ExprKind::Bind(left, _, right)
        | ExprKind::Alternative(left, right)
        | ExprKind::Math(left, _, right)
        | ExprKind::Compare(left, _, right)
        | ExprKind::Logic(left, _, right) => left.at_most_one && right.at_most_one,
        ExprKind::If(condition, then, otherwise) => {
            condition.at_most_one && then.at_most_one && otherwise.at_most_one
        }
        ExprKind::Negative(of) | ExprKind::Try(of) => of.at_most_one,
        ExprKind::Path(of, parts) => of.at_most_one && parts.iter().all(|(part, _)| is_one(part)),
        ExprKind::Object(entries) => entries
            .iter()
            .all(|(key, value)| key.at_most_one && value.at_most_one),
        _ => false,
    }
}

fn is_one(part: &PathPart) -> bool {
    let single = |step: &Option<Expr>| step.as_ref().is_none_or(|step| step.one);
    match part {
        PathPart::Index(index) => index.one,
        PathPart::Each => false,
        PathPart::Range(from, to) => single(from) && single(to),
    }
}

/// Filters of jaq with exactly one output or an error.
const SINGLE: &[&str] = &[
    "tojson",
    "round",
    "floor",
    "ceil",
    "length",
    "startswith",
    "endswith",
    "ltrimstr",
    "rtrimstr",
    "ascii_downcase",
    "ascii_upcase",
    "sort",
];

impl Building {
    fn slot(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    fn literal(&mut self, literal: Literal) -> Expr {
        let known = self.literals.iter().position(|known| *known == literal);
        let at = known.unwrap_or_else(|| {
            self.literals.push(literal);
            self.literals.len() - 1
        });
        step(ExprKind::Literal(at))
    }

    fn boxed<'t>(&mut self, term: &'t Term<&'t str>, names: &Bindings<'t>) -> Option<Box<Expr>> {
        self.step(term, names).map(Box::new)
    }

    fn step<'t>(&mut self, term: &'t Term<&'t str>, names: &Bindings<'t>) -> Option<Expr> {
        self.steps += 1;
        if self.steps > MOST {
            return None;
        }
        let node = match term {
            Term::Id => ExprKind::Input,
            Term::Num(text) => {
                let literal = text
                    .parse()
                    .map_or_else(|_| Literal::Number((*text).to_owned()), Literal::Int);
                return Some(self.literal(literal));
            }
            Term::Str(None, parts) => return self.text(parts, names),
            Term::Arr(None) => ExprKind::List(None),
            Term::Arr(Some(items)) => ExprKind::List(Some(self.boxed(items, names)?)),
            Term::Obj(entries) => {
                let entries: Option<Vec<_>> = entries
                    .iter()
                    .map(|(key, value)| self.entry(key, value.as_ref(), names))
                    .collect();
                ExprKind::Object(entries?)
            }
            Term::Neg(of) => ExprKind::Negative(self.boxed(of, names)?),
            Term::BinOp(left, op, right) => return self.operation(left, op, right, names),
            Term::Fold("reduce", over, Pattern::Var(name), arguments) => {
                let [start, update] = arguments.as_slice() else {
                    return None;
                };
                let over = self.boxed(over, names)?;
                let start = self.boxed(start, names)?;
                let slot = self.slot();
                let inner = names.with(Binding::Var((*name).to_owned(), slot));
                // jaq continues from each of several states without a deep stack, so such updates run there.
                let update = self.boxed(update, &inner).filter(|update| update.one)?;
                ExprKind::Reduce(over, slot, start, update)
            }
            Term::TryCatch(of, None) => ExprKind::Try(self.boxed(of, names)?),
            Term::IfThenElse(cases, otherwise) => {
                let mut rest = match otherwise {
                    Some(otherwise) => self.step(otherwise, names)?,
                    None => step(ExprKind::Input),
                };
                for (condition, then) in cases.iter().rev() {
                    let condition = self.boxed(condition, names)?;
                    let then = self.boxed(then, names)?;
                    rest = step(ExprKind::If(condition, then, Box::new(rest)));
                }
                return Some(rest);
            }
            Term::Def(defs, inner) => {
                let mut names = names.clone();
                for def in defs {
                    names = names.with(Binding::Def(def));
                }
                return self.step(inner, &names);
            }
            Term::Call(name, arguments) => return self.call(name, arguments, names),
            Term::Var(name) => ExprKind::Var(names.var(name)?),
            Term::Path(of, path) => {
                let of = self.boxed(of, names)?;
                ExprKind::Path(of, self.path(path, names)?)
            }
            Term::Recurse
            | Term::Str(..)
            | Term::Label(..)
            | Term::Break(_)
            | Term::Fold(..)
            | Term::TryCatch(..) => return None,
        };
        Some(step(node))
    }

    fn operation<'t>(
        &mut self,
        left: &'t Term<&'t str>,
        op: &BinaryOp<&'t str>,
        right: &'t Term<&'t str>,
        names: &Bindings<'t>,
    ) -> Option<Expr> {
        if matches!(
            op,
            BinaryOp::Update | BinaryOp::Assign | BinaryOp::UpdateMath(_)
        ) {
            return match (left, self.change(op, right, names)?) {
                (Term::Path(of, path), change) if matches!(**of, Term::Id) => {
                    let path = self.path(path, names)?;
                    let index =
                        |part: &(PathPart, bool)| matches!(part, (PathPart::Index(_), false));
                    let all = !path.is_empty() && path.iter().all(index);
                    all.then(|| step(ExprKind::Update(path, change)))
                }
                _ => None,
            };
        }
        let left = self.boxed(left, names)?;
        let node = match op {
            BinaryOp::Pipe(Some(Pattern::Var(name))) => {
                let slot = self.slot();
                let inner = names.with(Binding::Var((*name).to_owned(), slot));
                ExprKind::Bind(left, slot, self.boxed(right, &inner)?)
            }
            BinaryOp::Pipe(None) => ExprKind::Pipe(left, self.boxed(right, names)?),
            BinaryOp::Comma => ExprKind::Comma(left, self.boxed(right, names)?),
            BinaryOp::Alt => ExprKind::Alternative(left, self.boxed(right, names)?),
            BinaryOp::Or => ExprKind::Logic(left, true, self.boxed(right, names)?),
            BinaryOp::And => ExprKind::Logic(left, false, self.boxed(right, names)?),
            BinaryOp::Math(op) => ExprKind::Math(left, *op, self.boxed(right, names)?),
            BinaryOp::Cmp(op) => ExprKind::Compare(left, *op, self.boxed(right, names)?),
            BinaryOp::Pipe(Some(_))
            | BinaryOp::Assign
            | BinaryOp::Update
            | BinaryOp::UpdateMath(_)
            | BinaryOp::UpdateAlt => return None,
        };
        Some(step(node))
    }

    /// Returns the new value of an assignment; `None` if there is none, or it is unknown.
    fn change<'t>(
        &mut self,
        op: &BinaryOp<&'t str>,
        right: &'t Term<&'t str>,
        names: &Bindings<'t>,
    ) -> Option<Change> {
        let step = self.boxed(right, names).filter(|step| step.one)?;
        match op {
            BinaryOp::Update => Some(Change::By(step)),
            BinaryOp::Assign => Some(Change::To(step)),
            BinaryOp::UpdateMath(op) => Some(Change::Math(*op, step)),
            _ => None,
        }
    }

    fn text<'t>(
        &mut self,
        parts: &'t [StrPart<&'t str, Term<&'t str>>],
        names: &Bindings<'t>,
    ) -> Option<Expr> {
        let mut steps: Vec<Expr> = Vec::new();
        let mut plain = String::new();
        for part in parts {
            match part {
                StrPart::Str(text) => plain.push_str(text),
                StrPart::Char(char) => plain.push(*char),
                StrPart::Term(term) => {
                    if !plain.is_empty() {
                        let text = std::mem::take(&mut plain);
                        steps.push(self.literal(Literal::Text(text)));
                    }
                    steps.push(self.step(term, names)?);
                }
            }
        }
        if steps.is_empty() {
            return Some(self.literal(Literal::Text(plain)));
        }
        if !plain.is_empty() {
            steps.push(self.literal(Literal::Text(plain)));
        }
        Some(step(ExprKind::Text(steps)))
    }

    fn entry<'t>(
        &mut self,
        key: &'t Term<&'t str>,
        value: Option<&'t Term<&'t str>>,
        names: &Bindings<'t>,
    ) -> Option<(Expr, Expr)> {
        match (key, value) {
            (Term::Var(name), None) => {
                let key = self.literal(Literal::Text(name[1..].to_owned()));
                Some((key, step(ExprKind::Var(names.var(name)?))))
            }
            (key, Some(value)) => Some((self.step(key, names)?, self.step(value, names)?)),
            (key, None) => {
                let value = PathPart::Index(self.step(key, names)?);
                if !matches!(&value, PathPart::Index(index) if index.one) {
                    return None;
                }
                let value = ExprKind::Path(Box::new(step(ExprKind::Input)), vec![(value, false)]);
                Some((self.step(key, names)?, step(value)))
            }
        }
    }

    fn path<'t>(
        &mut self,
        path: &'t Path<Term<&'t str>>,
        names: &Bindings<'t>,
    ) -> Option<Vec<(PathPart, bool)>> {
        let mut index = |term: &'t Term<&'t str>| self.step(term, names).filter(|step| step.one);
        path.0
            .iter()
            .map(|(part, optional)| {
                let part = match part {
                    path::Part::Index(term) => PathPart::Index(index(term)?),
                    path::Part::Range(None, None) => PathPart::Each,
                    path::Part::Range(from, to) => {
                        let from = from.as_ref().map(|term| index(term).ok_or(()));
                        let to = to.as_ref().map(|term| index(term).ok_or(()));
                        PathPart::Range(from.transpose().ok()?, to.transpose().ok()?)
                    }
                };
                Some((part, matches!(optional, Opt::Optional)))
            })
            .collect()
    }

    fn call<'t>(
        &mut self,
        name: &'t str,
        arguments: &'t [Term<&'t str>],
        names: &Bindings<'t>,
    ) -> Option<Expr> {
        if let Some(found) = names.filter(name, arguments.len())
            && let Some(known) = &found.0
        {
            return match &known.0 {
                Binding::Def(def) => self.inlined(def, arguments, names, found),
                Binding::Given(_, term, names) => self.deeper(|own| own.step(term, names)),
                Binding::Var(..) => None,
            };
        }
        let literal = match (name, arguments) {
            ("null", []) => Some(Literal::Null),
            ("true", []) => Some(Literal::Bool(true)),
            ("false", []) => Some(Literal::Bool(false)),
            _ => None,
        };
        if let Some(literal) = literal {
            return Some(self.literal(literal));
        }
        if let Some(node) = self.own(name, arguments, names) {
            return Some(step(node));
        }
        let library = prelude();
        let def = library
            .iter()
            .rposition(|def| def.name == name && def.args.len() == arguments.len());
        if let Some(at) = def {
            return self.inlined(&library[at], arguments, names, &Bindings::default());
        }
        if !plain(name, arguments.len()) {
            return None;
        }
        let vars: Vec<String> = (0..arguments.len()).map(|at| format!("$a{at}")).collect();
        let call = Term::Call(name, vars.iter().map(|var| Term::Var(&**var)).collect());
        let vars: Vec<&str> = vars.iter().map(|var| &var[1..]).collect();
        let text = ProgramText {
            program: name,
            source: name,
            vars: &vars,
        };
        let filter = JaqFilter::compile(&text, call).ok()?;
        let arguments: Option<Vec<Expr>> = arguments
            .iter()
            .map(|term| self.step(term, names))
            .collect();
        Some(step(ExprKind::Jaq(Box::new(filter), arguments?)))
    }

    fn deeper<T>(&mut self, build: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= DEEPEST {
            return None;
        }
        self.depth += 1;
        let built = build(self);
        self.depth -= 1;
        built
    }

    /// Returns the body of a definition. Arguments named `$x` become variables; the others are replaced by their expressions.
    fn inlined<'t>(
        &mut self,
        def: &'t Def<&'t str>,
        arguments: &'t [Term<&'t str>],
        names: &Bindings<'t>,
        seen: &Bindings<'t>,
    ) -> Option<Expr> {
        self.deeper(|own| {
            let mut inner = seen.clone();
            let mut values = Vec::new();
            for (name, argument) in def.args.iter().zip(arguments) {
                if name.starts_with('$') {
                    let value = own.step(argument, names)?;
                    let slot = own.slot();
                    inner = inner.with(Binding::Var((*name).to_owned(), slot));
                    values.push((value, slot));
                } else {
                    let given = Binding::Given((*name).to_owned(), argument, names.clone());
                    inner = inner.with(given);
                }
            }
            let body = own.step(&def.body, &inner)?;
            let bind =
                |body, (value, slot)| step(ExprKind::Bind(Box::new(value), slot, Box::new(body)));
            Some(values.into_iter().rev().fold(body, bind))
        })
    }

    /// A filter that is written here.
    fn own<'t>(
        &mut self,
        name: &str,
        arguments: &'t [Term<&'t str>],
        names: &Bindings<'t>,
    ) -> Option<ExprKind> {
        Some(match (name, arguments) {
            ("empty", []) => ExprKind::Empty,
            ("inputs", []) => ExprKind::Inputs,
            ("sort_by", [by]) => ExprKind::SortBy(self.boxed(by, names)?),
            ("first", [of]) => ExprKind::First(self.boxed(of, names)?),
            ("test", [regex]) => ExprKind::Test(self.boxed(regex, names)?, None),
            ("test", [regex, flags]) => {
                let regex = self.boxed(regex, names)?;
                ExprKind::Test(regex, Some(self.boxed(flags, names)?))
            }
            ("split_matches", [regex, flags]) => {
                let regex = self.boxed(regex, names)?;
                ExprKind::Parts(regex, self.boxed(flags, names)?)
            }
            (name, []) => match (native::choice_of(name), native::value_of(name)) {
                (Some(is), _) => ExprKind::Choose(is),
                (None, Some(filter)) => ExprKind::Call(filter, native::is_shallow(name)),
                (None, None) => return None,
            },
            _ => return None,
        })
    }
}

/// jaq's own definitions and ours.
fn prelude() -> &'static [Def<&'static str>] {
    static PRELUDE: OnceLock<Vec<Def<&'static str>>> = OnceLock::new();
    PRELUDE.get_or_init(library::defs)
}

/// Returns true if this is a filter in Rust that takes values only and depends on nothing but them and its input.
fn plain(name: &str, arguments: usize) -> bool {
    static PLAIN: OnceLock<BTreeSet<(String, usize)>> = OnceLock::new();
    let plain = PLAIN.get_or_init(|| {
        library::funs()
            .filter(|(_, arguments, _)| {
                let is_value = |bind: &jaq_core::Bind| matches!(bind, jaq_core::Bind::Var(()));
                arguments.iter().all(is_value)
            })
            .map(|(name, arguments, _)| (name.to_owned(), arguments.len()))
            .collect()
    });
    !matches!(name, "input" | "inputs") && plain.contains(&(name.to_owned(), arguments))
}
