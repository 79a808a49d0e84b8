//! Which parts of its values a program reads, so that the reader of JSON can skip the others.
//!
//! Each expression has places: the parts of the input, of a variable or of a record that its outputs can come from. An expression
//! that only selects a part of an output needs that part; any other use needs the whole place.

use std::collections::BTreeMap;

use super::program::{Change, Expr, ExprKind, Literal, PathPart};

/// The needed part of a value. Numbers, texts and the like are always read whole, and lists without needed items as empty lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Demand {
    /// All of it.
    pub(crate) whole: bool,
    /// These fields of an object.
    fields: BTreeMap<String, Demand>,
    /// Each item of a list, and each field of an object.
    items: Option<Box<Demand>>,
}

/// The parts of its values that a program needs.
#[derive(Debug, Default)]
pub(crate) struct Demands {
    /// Of its input.
    pub(crate) input: Demand,
    /// Of each variable.
    pub(crate) vars: Vec<Demand>,
    /// Whether each variable is mentioned at all.
    pub(crate) used: Vec<bool>,
    /// Of each record that `inputs` reads.
    pub(crate) record: Demand,
}

/// All of a value.
pub(crate) static WHOLE: Demand = Demand {
    whole: true,
    fields: BTreeMap::new(),
    items: None,
};

/// Nothing of a value but its type.
pub(crate) static NOTHING: Demand = Demand {
    whole: false,
    fields: BTreeMap::new(),
    items: None,
};

impl Demand {
    /// Returns the demand of whole fields.
    pub(crate) fn of_fields(names: impl IntoIterator<Item = String>) -> Self {
        Self {
            fields: names
                .into_iter()
                .map(|name| (name, WHOLE.clone()))
                .collect(),
            ..Self::default()
        }
    }

    /// Returns what is needed of a field; `None` if the field is not needed.
    pub(crate) fn field(&self, name: &str) -> Option<&Demand> {
        if self.whole {
            return Some(&WHOLE);
        }
        self.fields.get(name).or(self.items.as_deref())
    }

    /// Returns what is needed of the items of a list; `None` if they are not needed. A list has no fields: the error of a program that
    /// reads some shows all of it.
    pub(crate) fn items(&self) -> Option<&Demand> {
        if self.whole || (self.items.is_none() && !self.fields.is_empty()) {
            return Some(&WHOLE);
        }
        self.items.as_deref()
    }

    /// Returns true if something is needed, but not all.
    pub(crate) fn is_part(&self) -> bool {
        !self.whole && *self != NOTHING
    }

    fn at(&mut self, path: &[Step]) -> &mut Demand {
        path.iter().fold(self, |at, step| match step {
            Step::Field(name) => at.fields.entry(name.clone()).or_default(),
            Step::Items => at.items.get_or_insert_default(),
        })
    }

    /// Applies the needs of each item to each field.
    fn settle(&mut self) {
        if self.whole {
            *self = WHOLE.clone();
        }
        if let Some(items) = &self.items {
            for field in self.fields.values_mut() {
                field.add(items);
            }
        }
        self.fields.values_mut().for_each(Demand::settle);
        if let Some(items) = &mut self.items {
            items.settle();
        }
    }

    fn add(&mut self, other: &Demand) {
        self.whole |= other.whole;
        for (name, demand) in &other.fields {
            self.fields.entry(name.clone()).or_default().add(demand);
        }
        if let Some(items) = &other.items {
            self.items.get_or_insert_default().add(items);
        }
    }
}

/// Returns what a program needs. The first `vars` of its slots are its variables.
pub(crate) fn demands(root: &Expr, literals: &[Literal], slots: usize, vars: usize) -> Demands {
    let places = |at| {
        if at < vars {
            vec![Place::of(Root::Var(at))]
        } else {
            Vec::new()
        }
    };
    let mut finder = Finder {
        literals,
        slots: (0..slots).map(places).collect(),
        names: vec![None; slots],
        found: Demands {
            vars: vec![Demand::default(); vars],
            used: vec![false; vars],
            ..Demands::default()
        },
    };
    finder.whole(root, &[Place::of(Root::Input)]);
    let mut found = finder.found;
    found.input.settle();
    found.record.settle();
    found.vars.iter_mut().for_each(Demand::settle);
    found
}

#[derive(Debug, Clone, PartialEq)]
struct Place {
    root: Root,
    path: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Root {
    Input,
    Var(usize),
    Record,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Items,
}

impl Place {
    fn of(root: Root) -> Self {
        let path = Vec::new();
        Self { root, path }
    }
}

/// More places of one expression are needed as a whole.
const MOST: usize = 50;

struct Finder<'a> {
    literals: &'a [Literal],
    /// The places of each variable.
    slots: Vec<Vec<Place>>,
    /// The literal that each variable is bound to, if any.
    names: Vec<Option<usize>>,
    found: Demands,
}

impl Finder<'_> {
    fn demand(&mut self, place: &Place) -> &mut Demand {
        let of = match place.root {
            Root::Input => &mut self.found.input,
            Root::Var(at) => &mut self.found.vars[at],
            Root::Record => &mut self.found.record,
        };
        of.at(&place.path)
    }

    /// Notes that the outputs are needed as a whole.
    fn whole(&mut self, expr: &Expr, input: &[Place]) {
        let places = self.places(expr, input);
        self.take(&places);
    }

    fn take(&mut self, places: &[Place]) {
        for place in places {
            self.demand(place).whole = true;
        }
    }

    /// Returns where the outputs lie. Of them nothing is needed yet but that they are there.
    #[expect(clippy::too_many_lines)]
    fn places(&mut self, expr: &Expr, input: &[Place]) -> Vec<Place> {
        match &expr.node {
            ExprKind::Input | ExprKind::Choose(_) => input.to_vec(),
            ExprKind::Var(slot) => {
                if let Some(used) = self.found.used.get_mut(*slot) {
                    *used = true;
                }
                self.slots[*slot].clone()
            }
            ExprKind::Literal(_) | ExprKind::Empty | ExprKind::List(None) => Vec::new(),
            ExprKind::Inputs => vec![Place::of(Root::Record)],
            ExprKind::Pipe(left, right) => {
                let places = self.places(left, input);
                self.places(right, &places)
            }
            ExprKind::Bind(of, slot, then) => {
                self.slots[*slot] = self.places(of, input);
                self.names[*slot] = self.literal(of);
                self.places(then, input)
            }
            ExprKind::Comma(left, right) | ExprKind::Alternative(left, right) => {
                let places = self.places(left, input);
                let more = self.places(right, input);
                self.union(places, more)
            }
            ExprKind::If(condition, then, otherwise) => {
                self.places(condition, input);
                let places = self.places(then, input);
                let more = self.places(otherwise, input);
                self.union(places, more)
            }
            ExprKind::Logic(left, _, right) => {
                self.places(left, input);
                self.places(right, input);
                Vec::new()
            }
            ExprKind::Try(of) | ExprKind::First(of) => self.places(of, input),
            ExprKind::Path(of, parts) => {
                let mut places = self.places(of, input);
                for (part, _) in parts {
                    places = self.inside(part, places, input);
                }
                places
            }
            ExprKind::Reduce(over, slot, start, update) => {
                self.slots[*slot] = self.places(over, input);
                self.names[*slot] = None;
                let state = self.places(start, input);
                // Later states are needed completely, so nothing more can be needed of them.
                self.take(&state);
                self.whole(update, &state);
                Vec::new()
            }
            ExprKind::Call(_, is_shallow) => {
                if !is_shallow {
                    self.take(input);
                }
                Vec::new()
            }
            ExprKind::Update(path, change) => {
                self.take(input);
                for (part, _) in path {
                    self.inside(part, Vec::new(), input);
                }
                match change {
                    // The input of `step` is part of `input`, which is needed completely.
                    Change::By(step) => self.whole(step, &[]),
                    Change::To(step) | Change::Math(_, step) => self.whole(step, input),
                }
                Vec::new()
            }
            ExprKind::SortBy(by) => {
                self.take(input);
                self.whole(by, &[]);
                Vec::new()
            }
            ExprKind::List(Some(of)) | ExprKind::Negative(of) => {
                self.whole(of, input);
                Vec::new()
            }
            ExprKind::Math(left, _, right) | ExprKind::Compare(left, _, right) => {
                self.whole(left, input);
                self.whole(right, input);
                Vec::new()
            }
            ExprKind::Object(entries) => {
                for (key, value) in entries {
                    self.whole(key, input);
                    self.whole(value, input);
                }
                Vec::new()
            }
            ExprKind::Text(parts) => {
                for part in parts {
                    self.whole(part, input);
                }
                Vec::new()
            }
            ExprKind::Test(regex, flags) => {
                self.take(input);
                self.whole(regex, input);
                if let Some(flags) = flags {
                    self.whole(flags, input);
                }
                Vec::new()
            }
            ExprKind::Parts(regex, flags) => {
                self.take(input);
                self.whole(regex, input);
                self.whole(flags, input);
                Vec::new()
            }
            ExprKind::Jaq(filter, _) if filter.name() == "length" => {
                self.inside(&PathPart::Each, input.to_vec(), input);
                Vec::new()
            }
            ExprKind::Jaq(_, arguments) => {
                self.take(input);
                for argument in arguments {
                    self.whole(argument, input);
                }
                Vec::new()
            }
        }
    }

    /// Returns where a part of a path leads. An index that is not a literal may be a range, which has items of its own.
    fn inside(&mut self, part: &PathPart, places: Vec<Place>, input: &[Place]) -> Vec<Place> {
        let step = match part {
            PathPart::Each => Some(Step::Items),
            PathPart::Index(index) => {
                self.whole(index, input);
                let literal = self.literal(index);
                literal.and_then(|at| match &self.literals[at] {
                    Literal::Text(name) => Some(Step::Field(name.clone())),
                    Literal::Int(_) => Some(Step::Items),
                    _ => None,
                })
            }
            PathPart::Range(from, to) => {
                for index in from.iter().chain(to) {
                    self.whole(index, input);
                }
                None
            }
        };
        let Some(step) = step else {
            self.take(&places);
            return Vec::new();
        };
        let inner = places.into_iter().map(|mut place| {
            place.path.push(step.clone());
            self.demand(&place);
            place
        });
        inner.collect()
    }

    fn literal(&self, expr: &Expr) -> Option<usize> {
        match &expr.node {
            ExprKind::Literal(at) => Some(*at),
            ExprKind::Var(slot) => self.names[*slot],
            _ => None,
        }
    }

    fn union(&mut self, mut places: Vec<Place>, more: Vec<Place>) -> Vec<Place> {
        for place in more {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        if places.len() > MOST {
            self.take(&places);
            places.clear();
        }
        places
    }
}
