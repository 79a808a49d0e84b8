//! Programs that are run without iterators: most of those that run for every record, at a fraction of jaq's cost.
//!
//! A program is taken if it calls nothing that calls itself and nothing that keeps a state; definitions are put in the place of
//! their calls, and every variable has a place of its own. What a filter of jaq or an operator does is left to jaq, and so
//! are all other programs: the two give the same values and errors.

mod build;
mod paths;

use std::cell::RefCell;

use jaq_core::ops::{Cmp, Math};
use jaq_core::{Error, ValT};
use jaq_json::{Map, Val};

pub(crate) use build::build;
use paths::{follow, indices, update, walk};

use super::{Jq, native, regex};

/// A program in this form.
#[derive(Debug)]
pub(crate) struct Direct {
    root: Step,
    literals: Vec<Literal>,
    slots: usize,
}

/// A value that stands in a program. jaq's own values belong to one thread, a program to many.
#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Int(isize),
    Number(String),
    Text(String),
}

/// One step of a program. `usize` is the place of a variable or of a literal.
#[derive(Debug)]
enum Node {
    Input,
    Var(usize),
    Literal(usize),
    Empty,
    List(Option<Box<Step>>),
    Object(Vec<(Step, Step)>),
    Text(Vec<Step>),
    Pipe(Box<Step>, Box<Step>),
    Bind(Box<Step>, usize, Box<Step>),
    Comma(Box<Step>, Box<Step>),
    Alternative(Box<Step>, Box<Step>),
    Math(Box<Step>, Math, Box<Step>),
    Compare(Box<Step>, Cmp, Box<Step>),
    /// The flag is what ends it: true of `or`.
    Logic(Box<Step>, bool, Box<Step>),
    If(Box<Step>, Box<Step>, Box<Step>),
    Negative(Box<Step>),
    Try(Box<Step>),
    Path(Box<Step>, Vec<(Part, bool)>),
    Reduce(Box<Step>, usize, Box<Step>, Box<Step>),
    First(Box<Step>),
    Choose(fn(&Val) -> bool),
    Call(fn(&Val) -> Result<Val, Error<Val>>),
    Test(Box<Step>, Option<Box<Step>>),
    Parts(Box<Step>, Box<Step>),
    /// Changes what lies at a path.
    Update(Vec<(Part, bool)>, Change),
    SortBy(Box<Step>),
    /// The records that are read meanwhile.
    Inputs,
    /// A filter of jaq with its arguments.
    Jaq(Box<Jq>, Vec<Step>),
}

/// What becomes of the value at a path.
#[derive(Debug)]
enum Change {
    /// `|=`: the first value that the step gives of it.
    By(Box<Step>),
    /// `=`: what the step gives of the whole.
    To(Box<Step>),
    /// `+=` and its like.
    Math(Math, Box<Step>),
}

/// A node, and whether it always gives exactly one value or an error.
#[derive(Debug)]
struct Step {
    node: Node,
    one: bool,
}

/// A part of a path; the flag beside it is that of `?`.
#[derive(Debug)]
enum Part {
    Index(Step),
    Each,
    Range(Option<Step>, Option<Step>),
}

/// Why a run stops.
enum Stop {
    Error(Error<Val>),
    /// `first` has its value, or what takes the values has had enough.
    Enough,
}

impl From<Error<Val>> for Stop {
    fn from(error: Error<Val>) -> Self {
        Self::Error(error)
    }
}

type Given = Result<(), Stop>;
type Give<'g> = dyn FnMut(Val) -> Given + 'g;
type One = Result<Val, Stop>;

/// What a thread needs to run a program: its literals and the places of its variables.
pub(crate) struct Space {
    literals: Vec<Val>,
    slots: Vec<RefCell<Val>>,
}

/// A space in a run.
#[derive(Clone, Copy)]
struct Running<'r> {
    literals: &'r [Val],
    slots: &'r [RefCell<Val>],
    next: &'r dyn Fn() -> Option<Result<Val, String>>,
}

impl Direct {
    /// A space for it.
    pub(crate) fn space(&self) -> Space {
        Space {
            literals: self.literals.iter().map(Literal::value).collect(),
            slots: (0..self.slots).map(|_| RefCell::default()).collect(),
        }
    }

    /// Gives each value of the program to `give`, until that says that it has had enough.
    ///
    /// # Errors
    /// What the program raises.
    pub(crate) fn run(
        &self,
        space: &Space,
        vars: &[Val],
        input: Val,
        inputs: &mut dyn Iterator<Item = Result<Val, String>>,
        give: &mut dyn FnMut(Val) -> bool,
    ) -> Result<(), Error<Val>> {
        for (slot, val) in space.slots.iter().zip(vars) {
            *slot.borrow_mut() = val.clone();
        }
        let inputs = RefCell::new(inputs);
        let next = || inputs.borrow_mut().next();
        let space = Running {
            literals: &space.literals,
            slots: &space.slots,
            next: &next,
        };
        let mut give = |val| {
            if give(val) { Ok(()) } else { Err(Stop::Enough) }
        };
        let given = if self.root.one {
            self.root.of(space, input).and_then(&mut give)
        } else {
            self.root.each(space, &input, &mut give)
        };
        match given {
            Ok(()) | Err(Stop::Enough) => Ok(()),
            Err(Stop::Error(error)) => Err(error),
        }
    }
}

impl Literal {
    fn value(&self) -> Val {
        match self {
            Self::Int(number) => Val::from(*number),
            Self::Number(text) => Val::from_num(text).unwrap_or_default(),
            Self::Text(text) => Val::utf8_str(text.clone()),
        }
    }
}

impl Step {
    /// Gives each of its values.
    fn each(&self, space: Running<'_>, input: &Val, give: &mut Give<'_>) -> Given {
        if self.one {
            return give(self.one(space, input)?);
        }
        match &self.node {
            Node::Empty => Ok(()),
            Node::Pipe(left, right) => {
                left.each(space, input, &mut |val| right.each(space, &val, give))
            }
            Node::Bind(of, slot, then) => of.each(space, input, &mut |val| {
                *space.slots[*slot].borrow_mut() = val;
                then.each(space, input, give)
            }),
            Node::Comma(left, right) => {
                left.each(space, input, give)?;
                right.each(space, input, give)
            }
            Node::Alternative(left, right) => {
                let mut any = false;
                left.each(space, input, &mut |val| {
                    if !val.as_bool() {
                        return Ok(());
                    }
                    any = true;
                    give(val)
                })?;
                if any {
                    return Ok(());
                }
                right.each(space, input, give)
            }
            Node::Math(left, op, right) => left.each(space, input, &mut |l| {
                right.each(space, input, &mut |r| give(op.run(l.clone(), r)?))
            }),
            Node::Compare(left, op, right) => left.each(space, input, &mut |l| {
                right.each(space, input, &mut |r| give(Val::Bool(op.run(&l, &r))))
            }),
            Node::Logic(left, stop, right) => left.each(space, input, &mut |l| {
                if l.as_bool() == *stop {
                    return give(Val::Bool(*stop));
                }
                right.each(space, input, &mut |r| give(Val::Bool(r.as_bool())))
            }),
            Node::If(condition, then, otherwise) => condition.each(space, input, &mut |is_so| {
                let branch = if is_so.as_bool() { then } else { otherwise };
                branch.each(space, input, give)
            }),
            Node::Negative(of) => of.each(space, input, &mut |val| give((-val)?)),
            Node::Object(entries) => object(entries, space, input, Map::default(), give),
            Node::Try(of) => tried(of, space, input, give),
            Node::Path(of, parts) => of.each(space, input, &mut |val| {
                let indices = indices(parts, space, input)?;
                walk(&indices, val, give)
            }),
            Node::Reduce(over, slot, start, update) => start.each(space, input, &mut |state| {
                let mut state = state;
                over.each(space, input, &mut |item| {
                    *space.slots[*slot].borrow_mut() = item;
                    state = update.of(space, std::mem::take(&mut state))?;
                    Ok(())
                })?;
                give(state)
            }),
            Node::Inputs => loop {
                match (space.next)() {
                    Some(Ok(record)) => give(record)?,
                    Some(Err(message)) => return Err(Error::str(message).into()),
                    None => return Ok(()),
                }
            },
            Node::First(of) => {
                let mut first = None;
                let read = of.each(space, input, &mut |val| {
                    first = Some(val);
                    Err(Stop::Enough)
                });
                match (first, read) {
                    (Some(val), _) => give(val),
                    (None, read) => read,
                }
            }
            Node::Choose(is) => {
                if is(input) {
                    give(input.clone())
                } else {
                    Ok(())
                }
            }
            Node::Test(regex, flags) => regex.each(space, input, &mut |regex| match flags {
                Some(flags) => flags.each(space, input, &mut |flags| {
                    give(regex::test(input, &regex, &flags)?)
                }),
                None => give(regex::test(input, &regex, &Val::utf8_str(""))?),
            }),
            Node::Parts(regex, flags) => regex.each(space, input, &mut |regex| {
                flags.each(space, input, &mut |flags| {
                    give(regex::split(input, &regex, &flags, true, true)?)
                })
            }),
            Node::Jaq(filter, arguments) => {
                let mut given = Vec::new();
                called(filter, arguments, space, input, &mut given, give)
            }
            Node::Text(parts) => text(parts, space, input, Vec::new(), give),
            _ => give(self.one(space, input)?),
        }
    }

    /// As [`Step::one`], of an input that nobody else has: what it changes is changed in place.
    fn of(&self, space: Running<'_>, input: Val) -> One {
        match &self.node {
            Node::Input => Ok(input),
            Node::Pipe(left, right) => right.of(space, left.of(space, input)?),
            Node::Bind(of, slot, then) => {
                let val = of.one(space, &input)?;
                *space.slots[*slot].borrow_mut() = val;
                then.of(space, input)
            }
            Node::If(condition, then, otherwise) => {
                let is_so = condition.one(space, &input)?.as_bool();
                if is_so { then } else { otherwise }.of(space, input)
            }
            Node::Update(path, change) => {
                let path = indices(path, space, &input)?;
                match change {
                    Change::By(step) => {
                        update(&path, input, &mut |val| Ok(Some(step.of(space, val)?)))
                    }
                    Change::To(step) => {
                        let to = step.one(space, &input)?;
                        update(&path, input, &mut |_| Ok(Some(to.clone())))
                    }
                    Change::Math(op, step) => {
                        let by = step.one(space, &input)?;
                        update(&path, input, &mut |val| Ok(Some(op.run(val, by.clone())?)))
                    }
                }
            }
            _ => self.one(space, &input),
        }
    }

    /// Its value, of one that gives exactly one.
    fn one(&self, space: Running<'_>, input: &Val) -> One {
        Ok(match &self.node {
            Node::Input => input.clone(),
            Node::Var(slot) => space.slots[*slot].borrow().clone(),
            Node::Literal(at) => space.literals[*at].clone(),
            Node::List(None) => std::iter::empty::<Val>().collect(),
            Node::List(Some(items)) => {
                let mut list = Vec::new();
                items.each(space, input, &mut |item| {
                    list.push(item);
                    Ok(())
                })?;
                list.into_iter().collect()
            }
            Node::Object(entries) => {
                let mut map = Map::with_capacity_and_hasher(entries.len(), <_>::default());
                for (key, value) in entries {
                    let key = key.one(space, input)?;
                    let value = value.one(space, input)?;
                    map.insert(key, value);
                }
                Val::obj(map)
            }
            Node::Text(parts) => {
                let mut whole = Vec::new();
                for part in parts {
                    let part = part.one(space, input)?.into_string();
                    if let Val::TStr(bytes) = part {
                        whole.extend_from_slice(&bytes);
                    }
                }
                Val::utf8_str(whole)
            }
            Node::Pipe(left, right) => right.one(space, &left.one(space, input)?)?,
            Node::Bind(of, slot, then) => {
                let val = of.one(space, input)?;
                *space.slots[*slot].borrow_mut() = val;
                then.one(space, input)?
            }
            Node::Alternative(left, right) => {
                let val = left.one(space, input)?;
                if val.as_bool() {
                    val
                } else {
                    right.one(space, input)?
                }
            }
            Node::Math(left, op, right) => {
                let left = left.one(space, input)?;
                op.run(left, right.one(space, input)?)?
            }
            Node::Compare(left, op, right) => {
                let left = left.one(space, input)?;
                Val::Bool(op.run(&left, &right.one(space, input)?))
            }
            Node::Logic(left, stop, right) => {
                let ended = left.one(space, input)?.as_bool() == *stop;
                Val::Bool(if ended {
                    *stop
                } else {
                    right.one(space, input)?.as_bool()
                })
            }
            Node::If(condition, then, otherwise) => {
                let is_so = condition.one(space, input)?.as_bool();
                if is_so { then } else { otherwise }.one(space, input)?
            }
            Node::Negative(of) => (-of.one(space, input)?)?,
            Node::Path(of, parts) => return follow(of, parts, space, input),
            Node::Call(filter) => filter(input)?,
            Node::Test(regex, flags) => {
                let regex = regex.one(space, input)?;
                match flags {
                    Some(flags) => regex::test(input, &regex, &flags.one(space, input)?)?,
                    None => regex::test(input, &regex, &Val::utf8_str(""))?,
                }
            }
            Node::Parts(regex, flags) => {
                let regex = regex.one(space, input)?;
                regex::split(input, &regex, &flags.one(space, input)?, true, true)?
            }
            Node::Update(..) => return self.of(space, input.clone()),
            Node::SortBy(by) => sorted(by, space, input)?,
            Node::Reduce(over, slot, start, update) => {
                let mut state = start.one(space, input)?;
                over.each(space, input, &mut |item| {
                    *space.slots[*slot].borrow_mut() = item;
                    state = update.of(space, std::mem::take(&mut state))?;
                    Ok(())
                })?;
                state
            }
            Node::Jaq(filter, arguments) => {
                let mut only = Val::Null;
                called(
                    filter,
                    arguments,
                    space,
                    input,
                    &mut Vec::new(),
                    &mut |val| {
                        only = val;
                        Ok(())
                    },
                )?;
                only
            }
            // None of the others is known to give one value.
            Node::Empty
            | Node::Inputs
            | Node::Comma(..)
            | Node::Try(_)
            | Node::First(_)
            | Node::Choose(_) => Val::Null,
        })
    }
}

/// The items of a list in the order of all that the step gives of each.
fn sorted(by: &Step, space: Running<'_>, input: &Val) -> One {
    let Val::Arr(items) = input else {
        return Err(Error::typ(input.clone(), "array").into());
    };
    let mut keyed = Vec::with_capacity(items.len());
    for item in items.iter() {
        let mut key = Vec::new();
        by.each(space, item, &mut |val| {
            key.push(val);
            Ok(())
        })?;
        keyed.push((key, item));
    }
    keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(keyed.into_iter().map(|(_, item)| item.clone()).collect())
}

/// Gives objects of the entries from here on, added to those before.
fn object(
    entries: &[(Step, Step)],
    space: Running<'_>,
    input: &Val,
    before: Map,
    give: &mut Give<'_>,
) -> Given {
    let Some(((key, value), rest)) = entries.split_first() else {
        return give(Val::obj(before));
    };
    key.each(space, input, &mut |key| {
        value.each(space, input, &mut |value| {
            let mut map = before.clone();
            map.insert(key.clone(), value);
            object(rest, space, input, map, give)
        })
    })
}

/// Gives texts of the parts from here on, put behind those before.
fn text(
    parts: &[Step],
    space: Running<'_>,
    input: &Val,
    before: Vec<u8>,
    give: &mut Give<'_>,
) -> Given {
    let Some((part, rest)) = parts.split_first() else {
        return give(Val::utf8_str(before));
    };
    part.each(space, input, &mut |part| {
        let mut whole = before.clone();
        if let Val::TStr(bytes) = part.into_string() {
            whole.extend_from_slice(&bytes);
        }
        text(rest, space, input, whole, give)
    })
}

/// What is raised by the step itself ends it; what is raised by whoever takes its values goes on.
fn tried(of: &Step, space: Running<'_>, input: &Val, give: &mut Give<'_>) -> Given {
    let mut theirs = Ok(());
    let own = of.each(space, input, &mut |val| {
        theirs = give(val);
        match theirs {
            Ok(()) => Ok(()),
            Err(_) => Err(Stop::Enough),
        }
    });
    theirs?;
    match own {
        Err(Stop::Error(_)) => Ok(()),
        other => other,
    }
}

/// Gives what a filter of jaq gives, for each combination of its arguments.
fn called(
    filter: &Jq,
    arguments: &[Step],
    space: Running<'_>,
    input: &Val,
    given: &mut Vec<Val>,
    give: &mut Give<'_>,
) -> Given {
    if let Some((argument, rest)) = arguments.split_first() {
        return argument.each(space, input, &mut |val| {
            given.push(val);
            let called = called(filter, rest, space, input, given, give);
            given.pop();
            called
        });
    }
    let mut inputs = std::iter::empty();
    filter.jaq(given.clone(), input.clone(), &mut inputs, &mut |output| {
        give(output.map_err(Stop::Error)?)
    })
}

#[cfg(test)]
#[path = "direct/tests.rs"]
mod tests;
