//! Turns the text of a program into steps, with definitions in the place of their calls.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::OnceLock;

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::path::{self, Opt, Path};

use super::{Change, Direct, Literal, Node, Part, Step, native};
use crate::expr::jq::{Jq, library};

/// Steps that a program may have: definitions that call themselves have more.
const MOST: usize = 20_000;
const DEEPEST: usize = 60;

/// The program, if it can be run directly.
pub(crate) fn build(term: &Term<&str>, vars: &[&str]) -> Option<Direct> {
    let mut building = Building {
        literals: Vec::new(),
        slots: 0,
        steps: 0,
        depth: 0,
    };
    let mut names = Names::default();
    for var in vars {
        names = names.with(Name::Var(format!("${var}"), building.slot()));
    }
    let root = building.step(term, &names)?;
    Some(Direct {
        root,
        literals: building.literals,
        slots: building.slots,
    })
}

struct Building {
    literals: Vec<Literal>,
    slots: usize,
    steps: usize,
    depth: usize,
}

/// The names that can be seen at a place, the nearest first.
#[derive(Clone, Default)]
struct Names<'t>(Option<Rc<(Name<'t>, Names<'t>)>>);

enum Name<'t> {
    Var(String, usize),
    /// A definition; it sees the names before it and itself.
    Def(&'t Def<&'t str>),
    /// What a definition was given, and the names that it sees.
    Given(String, &'t Term<&'t str>, Names<'t>),
}

impl<'t> Names<'t> {
    fn with(&self, name: Name<'t>) -> Self {
        Self(Some(Rc::new((name, self.clone()))))
    }

    fn var(&self, wanted: &str) -> Option<usize> {
        let mut at = self;
        while let Some(known) = &at.0 {
            match &known.0 {
                Name::Var(name, slot) if name == wanted => return Some(*slot),
                _ => at = &known.1,
            }
        }
        None
    }

    /// The nearest of this name and number of arguments, with the names from it on.
    fn filter(&self, wanted: &str, arguments: usize) -> Option<&Names<'t>> {
        let mut at = self;
        while let Some(known) = &at.0 {
            let is_it = match &known.0 {
                Name::Var(..) => false,
                Name::Def(def) => def.name == wanted && def.args.len() == arguments,
                Name::Given(name, ..) => name == wanted && arguments == 0,
            };
            if is_it {
                return Some(at);
            }
            at = &known.1;
        }
        None
    }
}

fn step(node: Node) -> Step {
    let one = match &node {
        // Of an update, path and what it is changed to are single, or it is not made.
        Node::Input
        | Node::Var(_)
        | Node::Literal(_)
        | Node::List(_)
        | Node::Call(_)
        | Node::Update(..)
        | Node::SortBy(_) => true,
        Node::Object(entries) => entries.iter().all(|(key, value)| key.one && value.one),
        Node::Text(parts) => parts.iter().all(|part| part.one),
        Node::Pipe(left, right)
        | Node::Bind(left, _, right)
        | Node::Alternative(left, right)
        | Node::Math(left, _, right)
        | Node::Compare(left, _, right)
        | Node::Logic(left, _, right)
        | Node::Parts(left, right) => left.one && right.one,
        Node::If(condition, then, otherwise) => condition.one && then.one && otherwise.one,
        Node::Negative(of) => of.one,
        Node::Test(regex, flags) => regex.one && flags.as_ref().is_none_or(|flags| flags.one),
        Node::Path(of, parts) => {
            of.one
                && parts
                    .iter()
                    .all(|(part, optional)| is_one(part) && !optional)
        }
        // What it goes on to is single, or it is not made.
        Node::Reduce(_, _, start, _) => start.one,
        Node::Jaq(filter, arguments) => {
            SINGLE.contains(&filter.name()) && arguments.iter().all(|argument| argument.one)
        }
        Node::Empty
        | Node::Inputs
        | Node::Comma(..)
        | Node::Try(_)
        | Node::First(_)
        | Node::Choose(_) => false,
    };
    Step { node, one }
}

fn is_one(part: &Part) -> bool {
    let single = |step: &Option<Step>| step.as_ref().is_none_or(|step| step.one);
    match part {
        Part::Index(index) => index.one,
        Part::Each => false,
        Part::Range(from, to) => single(from) && single(to),
    }
}

/// Filters of jaq that give one value or an error.
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

    fn literal(&mut self, literal: Literal) -> Step {
        let known = self.literals.iter().position(|known| *known == literal);
        let at = known.unwrap_or_else(|| {
            self.literals.push(literal);
            self.literals.len() - 1
        });
        step(Node::Literal(at))
    }

    fn boxed<'t>(&mut self, term: &'t Term<&'t str>, names: &Names<'t>) -> Option<Box<Step>> {
        self.step(term, names).map(Box::new)
    }

    fn step<'t>(&mut self, term: &'t Term<&'t str>, names: &Names<'t>) -> Option<Step> {
        self.steps += 1;
        if self.steps > MOST {
            return None;
        }
        let node = match term {
            Term::Id => Node::Input,
            Term::Num(text) => {
                let literal = text
                    .parse()
                    .map_or_else(|_| Literal::Number((*text).to_owned()), Literal::Int);
                return Some(self.literal(literal));
            }
            Term::Str(None, parts) => return self.text(parts, names),
            Term::Arr(None) => Node::List(None),
            Term::Arr(Some(items)) => Node::List(Some(self.boxed(items, names)?)),
            Term::Obj(entries) => {
                let entries: Option<Vec<_>> = entries
                    .iter()
                    .map(|(key, value)| self.entry(key, value.as_ref(), names))
                    .collect();
                Node::Object(entries?)
            }
            Term::Neg(of) => Node::Negative(self.boxed(of, names)?),
            Term::BinOp(left, op, right) => return self.operation(left, op, right, names),
            Term::Fold("reduce", over, Pattern::Var(name), arguments) => {
                let [start, update] = arguments.as_slice() else {
                    return None;
                };
                let over = self.boxed(over, names)?;
                let start = self.boxed(start, names)?;
                let slot = self.slot();
                let inner = names.with(Name::Var((*name).to_owned(), slot));
                // One that gives several states, or none, goes on from each of them: jaq does that without a deep stack.
                let update = self.boxed(update, &inner).filter(|update| update.one)?;
                Node::Reduce(over, slot, start, update)
            }
            Term::TryCatch(of, None) => Node::Try(self.boxed(of, names)?),
            Term::IfThenElse(cases, otherwise) => {
                let mut rest = match otherwise {
                    Some(otherwise) => self.step(otherwise, names)?,
                    None => step(Node::Input),
                };
                for (condition, then) in cases.iter().rev() {
                    let condition = self.boxed(condition, names)?;
                    let then = self.boxed(then, names)?;
                    rest = step(Node::If(condition, then, Box::new(rest)));
                }
                return Some(rest);
            }
            Term::Def(defs, inner) => {
                let mut names = names.clone();
                for def in defs {
                    names = names.with(Name::Def(def));
                }
                return self.step(inner, &names);
            }
            Term::Call(name, arguments) => return self.call(name, arguments, names),
            Term::Var(name) => Node::Var(names.var(name)?),
            Term::Path(of, path) => {
                let of = self.boxed(of, names)?;
                Node::Path(of, self.path(path, names)?)
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
        names: &Names<'t>,
    ) -> Option<Step> {
        if matches!(
            op,
            BinaryOp::Update | BinaryOp::Assign | BinaryOp::UpdateMath(_)
        ) {
            return match (left, self.change(op, right, names)?) {
                (Term::Path(of, path), change) if matches!(**of, Term::Id) => {
                    let path = self.path(path, names)?;
                    let index = |part: &(Part, bool)| matches!(part, (Part::Index(_), false));
                    let all = !path.is_empty() && path.iter().all(index);
                    all.then(|| step(Node::Update(path, change)))
                }
                _ => None,
            };
        }
        let left = self.boxed(left, names)?;
        let node = match op {
            BinaryOp::Pipe(Some(Pattern::Var(name))) => {
                let slot = self.slot();
                let inner = names.with(Name::Var((*name).to_owned(), slot));
                Node::Bind(left, slot, self.boxed(right, &inner)?)
            }
            BinaryOp::Pipe(None) => Node::Pipe(left, self.boxed(right, names)?),
            BinaryOp::Comma => Node::Comma(left, self.boxed(right, names)?),
            BinaryOp::Alt => Node::Alternative(left, self.boxed(right, names)?),
            BinaryOp::Or => Node::Logic(left, true, self.boxed(right, names)?),
            BinaryOp::And => Node::Logic(left, false, self.boxed(right, names)?),
            BinaryOp::Math(op) => Node::Math(left, *op, self.boxed(right, names)?),
            BinaryOp::Cmp(op) => Node::Compare(left, *op, self.boxed(right, names)?),
            BinaryOp::Pipe(Some(_))
            | BinaryOp::Assign
            | BinaryOp::Update
            | BinaryOp::UpdateMath(_)
            | BinaryOp::UpdateAlt => return None,
        };
        Some(step(node))
    }

    /// What an operator that changes something changes it to; none if it changes nothing, or cannot be told.
    fn change<'t>(
        &mut self,
        op: &BinaryOp<&'t str>,
        right: &'t Term<&'t str>,
        names: &Names<'t>,
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
        names: &Names<'t>,
    ) -> Option<Step> {
        let mut steps: Vec<Step> = Vec::new();
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
        Some(step(Node::Text(steps)))
    }

    fn entry<'t>(
        &mut self,
        key: &'t Term<&'t str>,
        value: Option<&'t Term<&'t str>>,
        names: &Names<'t>,
    ) -> Option<(Step, Step)> {
        match (key, value) {
            (Term::Var(name), None) => {
                let key = self.literal(Literal::Text(name[1..].to_owned()));
                Some((key, step(Node::Var(names.var(name)?))))
            }
            (key, Some(value)) => Some((self.step(key, names)?, self.step(value, names)?)),
            (key, None) => {
                let value = Part::Index(self.step(key, names)?);
                if !matches!(&value, Part::Index(index) if index.one) {
                    return None;
                }
                let value = Node::Path(Box::new(step(Node::Input)), vec![(value, false)]);
                Some((self.step(key, names)?, step(value)))
            }
        }
    }

    fn path<'t>(
        &mut self,
        path: &'t Path<Term<&'t str>>,
        names: &Names<'t>,
    ) -> Option<Vec<(Part, bool)>> {
        let mut index = |term: &'t Term<&'t str>| self.step(term, names).filter(|step| step.one);
        path.0
            .iter()
            .map(|(part, optional)| {
                let part = match part {
                    path::Part::Index(term) => Part::Index(index(term)?),
                    path::Part::Range(None, None) => Part::Each,
                    path::Part::Range(from, to) => {
                        let from = from.as_ref().map(|term| index(term).ok_or(()));
                        let to = to.as_ref().map(|term| index(term).ok_or(()));
                        Part::Range(from.transpose().ok()?, to.transpose().ok()?)
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
        names: &Names<'t>,
    ) -> Option<Step> {
        if let Some(found) = names.filter(name, arguments.len())
            && let Some(known) = &found.0
        {
            return match &known.0 {
                Name::Def(def) => self.inlined(def, arguments, names, found),
                Name::Given(_, term, names) => self.deeper(|own| own.step(term, names)),
                Name::Var(..) => None,
            };
        }
        if let Some(node) = self.own(name, arguments, names) {
            return Some(step(node));
        }
        let library = prelude();
        let def = library
            .iter()
            .rposition(|def| def.name == name && def.args.len() == arguments.len());
        if let Some(at) = def {
            return self.inlined(&library[at], arguments, names, &Names::default());
        }
        if !plain(name, arguments.len()) {
            return None;
        }
        let vars: Vec<String> = (0..arguments.len()).map(|at| format!("a{at}")).collect();
        let source = match vars.len() {
            0 => name.to_owned(),
            _ => {
                let given: Vec<String> = vars.iter().map(|var| format!("${var}")).collect();
                format!("{name}({})", given.join("; "))
            }
        };
        let vars: Vec<&str> = vars.iter().map(String::as_str).collect();
        let filter = Jq::of_jaq(name, &source, &vars)?;
        let arguments: Option<Vec<Step>> = arguments
            .iter()
            .map(|term| self.step(term, names))
            .collect();
        Some(step(Node::Jaq(Box::new(filter), arguments?)))
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

    /// The body of a definition, where `$x` of its arguments are variables and the others stand for what was given.
    fn inlined<'t>(
        &mut self,
        def: &'t Def<&'t str>,
        arguments: &'t [Term<&'t str>],
        names: &Names<'t>,
        seen: &Names<'t>,
    ) -> Option<Step> {
        self.deeper(|own| {
            let mut inner = seen.clone();
            let mut values = Vec::new();
            for (name, argument) in def.args.iter().zip(arguments) {
                if name.starts_with('$') {
                    let value = own.step(argument, names)?;
                    let slot = own.slot();
                    inner = inner.with(Name::Var((*name).to_owned(), slot));
                    values.push((value, slot));
                } else {
                    let given = Name::Given((*name).to_owned(), argument, names.clone());
                    inner = inner.with(given);
                }
            }
            let body = own.step(&def.body, &inner)?;
            let bind =
                |body, (value, slot)| step(Node::Bind(Box::new(value), slot, Box::new(body)));
            Some(values.into_iter().rev().fold(body, bind))
        })
    }

    /// A filter that is written here.
    fn own<'t>(
        &mut self,
        name: &str,
        arguments: &'t [Term<&'t str>],
        names: &Names<'t>,
    ) -> Option<Node> {
        Some(match (name, arguments) {
            ("empty", []) => Node::Empty,
            ("inputs", []) => Node::Inputs,
            ("sort_by", [by]) => Node::SortBy(self.boxed(by, names)?),
            ("first", [of]) => Node::First(self.boxed(of, names)?),
            ("test", [regex]) => Node::Test(self.boxed(regex, names)?, None),
            ("test", [regex, flags]) => {
                let regex = self.boxed(regex, names)?;
                Node::Test(regex, Some(self.boxed(flags, names)?))
            }
            ("split_matches", [regex, flags]) => {
                let regex = self.boxed(regex, names)?;
                Node::Parts(regex, self.boxed(flags, names)?)
            }
            (name, []) => match (native::choice_of(name), native::value_of(name)) {
                (Some(is), _) => Node::Choose(is),
                (None, Some(filter)) => Node::Call(filter),
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

/// Whether this is a filter in Rust that takes values only and depends on nothing but them and its input.
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
