//! Programs that run without iterators, at a fraction of jaq's cost: most of those that run for every record.
//!
//! A program qualifies if it has no recursion and no state. Definitions replace their calls, and every variable has one slot.
//! Filters and operators of jaq still do the work. All other programs run in jaq, with the same values and errors.

mod build;
pub(crate) mod demand;
mod paths;
pub(crate) mod program;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use jaq_core::ops::Math;
use jaq_core::{Error, ValT};
use jaq_json::{Map, Val};

pub(crate) use build::build;
use paths::{follow, indices, update, walk};

use super::jaq::JaqFilter;
use super::regex;
use program::{Change, Direct, Expr, ExprKind, Frame, Give, Given, Halt, Literal, One, Space};

impl Direct {
    pub(crate) fn space(&self) -> Space {
        Space {
            literals: self.literals.iter().map(Literal::value).collect(),
            slots: (0..self.slots).map(|_| RefCell::default()).collect(),
        }
    }

    /// Gives each value of the program to `give`, until that says that it has had enough. `units` is how much it may do.
    ///
    /// # Errors
    /// The error of the program, and [`Halt::Spent`].
    #[expect(clippy::too_many_arguments)]
    pub(crate) fn run(
        &self,
        space: &Space,
        vars: &[Val],
        input: Val,
        inputs: &mut dyn Iterator<Item = Result<Val, String>>,
        units: u64,
        give: &mut dyn FnMut(Val) -> bool,
    ) -> Given {
        for (slot, val) in space.slots.iter().zip(vars) {
            *slot.borrow_mut() = val.clone();
        }
        let inputs = RefCell::new(inputs);
        let next = || inputs.borrow_mut().next();
        let space = Frame {
            literals: &space.literals,
            slots: &space.slots,
            next: &next,
            left: &Cell::new(units),
        };
        let mut give = |val| {
            space.weigh(&val)?;
            if give(val) { Ok(()) } else { Err(Halt::Enough) }
        };
        let given = if self.root.one {
            self.root.of(space, input).and_then(&mut give)
        } else {
            self.root.each(space, &input, &mut give)
        };
        match given {
            Err(Halt::Enough) => Ok(()),
            other => other,
        }
    }
}

impl Literal {
    fn value(&self) -> Val {
        match self {
            Self::Null => Val::Null,
            Self::Bool(flag) => Val::Bool(*flag),
            Self::Int(number) => Val::from(*number),
            Self::Number(text) => Val::from_num(text).unwrap_or_default(),
            Self::Text(text) => Val::utf8_str(text.clone()),
        }
    }
}

impl Expr {
    /// Gives each of its values.
    #[expect(clippy::too_many_lines)]
    fn each(&self, space: Frame<'_>, input: &Val, give: &mut Give<'_>) -> Given {
        space.spend(1)?;
        if self.one {
            return give(self.one(space, input)?);
        }
        match &self.node {
            ExprKind::Empty => Ok(()),
            ExprKind::Pipe(left, right) => {
                left.each(space, input, &mut |val| right.each(space, &val, give))
            }
            ExprKind::Bind(of, slot, then) => of.each(space, input, &mut |val| {
                *space.slots[*slot].borrow_mut() = val;
                then.each(space, input, give)
            }),
            ExprKind::Comma(left, right) => {
                left.each(space, input, give)?;
                right.each(space, input, give)
            }
            ExprKind::Alternative(left, right) => {
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
            ExprKind::Math(left, op, right) => left.each(space, input, &mut |l| {
                right.each(space, input, &mut |r| give(math(*op, l.clone(), r, space)?))
            }),
            ExprKind::Compare(left, op, right) => left.each(space, input, &mut |l| {
                right.each(space, input, &mut |r| give(Val::Bool(op.run(&l, &r))))
            }),
            ExprKind::Logic(left, stop, right) => left.each(space, input, &mut |l| {
                if l.as_bool() == *stop {
                    return give(Val::Bool(*stop));
                }
                right.each(space, input, &mut |r| give(Val::Bool(r.as_bool())))
            }),
            ExprKind::If(condition, then, otherwise) => {
                condition.each(space, input, &mut |is_so| {
                    let branch = if is_so.as_bool() { then } else { otherwise };
                    branch.each(space, input, give)
                })
            }
            ExprKind::Negative(of) => of.each(space, input, &mut |val| give((-val)?)),
            ExprKind::Object(entries) => object(entries, space, input, Map::default(), give),
            ExprKind::Try(of) => tried(of, space, input, give),
            ExprKind::Path(of, parts) => of.each(space, input, &mut |val| {
                let indices = indices(parts, space, input)?;
                walk(&indices, val, give)
            }),
            ExprKind::Reduce(over, slot, start, update) => start.each(space, input, &mut |state| {
                let mut state = state;
                over.each(space, input, &mut |item| {
                    *space.slots[*slot].borrow_mut() = item;
                    state = update.of(space, std::mem::take(&mut state))?;
                    Ok(())
                })?;
                give(state)
            }),
            ExprKind::Inputs => loop {
                match (space.next)() {
                    Some(Ok(record)) => give(record)?,
                    Some(Err(message)) => return Err(Error::str(message).into()),
                    None => return Ok(()),
                }
            },
            ExprKind::First(of) => {
                let mut first = None;
                let read = of.each(space, input, &mut |val| {
                    first = Some(val);
                    Err(Halt::Enough)
                });
                match (first, read) {
                    (Some(val), _) => give(val),
                    (None, read) => read,
                }
            }
            ExprKind::Choose(is) => {
                if is(input) {
                    give(input.clone())
                } else {
                    Ok(())
                }
            }
            ExprKind::Test(regex, flags) => regex.each(space, input, &mut |regex| match flags {
                Some(flags) => flags.each(space, input, &mut |flags| {
                    space.scan(input)?;
                    give(regex::test(input, &regex, &flags)?)
                }),
                None => {
                    space.scan(input)?;
                    give(regex::test(input, &regex, &Val::utf8_str(""))?)
                }
            }),
            ExprKind::Parts(regex, flags) => regex.each(space, input, &mut |regex| {
                flags.each(space, input, &mut |flags| {
                    space.repeat(input, 4)?;
                    give(regex::split(input, &regex, &flags, true, true)?)
                })
            }),
            ExprKind::Jaq(filter, arguments) => {
                let mut given = Vec::new();
                called(filter, arguments, space, input, &mut given, give)
            }
            ExprKind::Text(parts) => text(parts, space, input, Vec::new(), give),
            _ => give(self.one(space, input)?),
        }
    }

    /// Like [`Expr::one`], but may mutate `input`: the caller holds the only reference.
    fn of(&self, space: Frame<'_>, input: Val) -> One {
        match &self.node {
            ExprKind::Input => Ok(input),
            ExprKind::Pipe(left, right) => right.of(space, left.of(space, input)?),
            ExprKind::Bind(of, slot, then) => {
                let val = of.one(space, &input)?;
                *space.slots[*slot].borrow_mut() = val;
                then.of(space, input)
            }
            ExprKind::If(condition, then, otherwise) => {
                let is_so = condition.one(space, &input)?.as_bool();
                if is_so { then } else { otherwise }.of(space, input)
            }
            ExprKind::Math(left, op, right) if matches!(left.node, ExprKind::Input) => {
                let right = right.one(space, &input)?;
                math(*op, input, right, space)
            }
            ExprKind::Update(path, change) => {
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
                        update(&path, input, &mut |val| {
                            Ok(Some(math(*op, val, by.clone(), space)?))
                        })
                    }
                }
            }
            _ => self.one(space, &input),
        }
    }

    /// Returns the output of an expression that has at most one.
    fn at_most_one(&self, space: Frame<'_>, input: &Val) -> Result<Option<Val>, Halt> {
        if self.one {
            return self.one(space, input).map(Some);
        }
        let mut only = None;
        self.each(space, input, &mut |val| {
            only = Some(val);
            Ok(())
        })?;
        Ok(only)
    }

    /// Returns the output of an expression that has exactly one (`self.one`).
    #[expect(clippy::too_many_lines)]
    fn one(&self, space: Frame<'_>, input: &Val) -> One {
        space.spend(1)?;
        Ok(match &self.node {
            ExprKind::Input => input.clone(),
            ExprKind::Var(slot) => space.slots[*slot].borrow().clone(),
            ExprKind::Literal(at) => space.literals[*at].clone(),
            ExprKind::List(None) => std::iter::empty::<Val>().collect(),
            ExprKind::List(Some(items)) => {
                let mut list = Vec::new();
                items.each(space, input, &mut |item| {
                    list.push(item);
                    space.spend(1)
                })?;
                list.into_iter().collect()
            }
            ExprKind::Object(entries) => {
                let mut map = Map::with_capacity_and_hasher(entries.len(), <_>::default());
                for (key, value) in entries {
                    let key = key.one(space, input)?;
                    let value = value.one(space, input)?;
                    map.insert(key, value);
                }
                Val::obj(map)
            }
            ExprKind::Text(parts) => {
                let mut whole = Vec::new();
                for part in parts {
                    let part = part.one(space, input)?;
                    space.weigh(&part)?;
                    if let Val::TStr(bytes) = part.into_string() {
                        whole.extend_from_slice(&bytes);
                    }
                }
                Val::utf8_str(whole)
            }
            ExprKind::Pipe(left, right) => right.one(space, &left.one(space, input)?)?,
            ExprKind::Bind(of, slot, then) => {
                let val = of.one(space, input)?;
                *space.slots[*slot].borrow_mut() = val;
                then.one(space, input)?
            }
            ExprKind::Alternative(left, right) => match left.at_most_one(space, input)? {
                Some(val) if val.as_bool() => val,
                _ => right.one(space, input)?,
            },
            ExprKind::Math(left, op, right) => {
                let left = left.one(space, input)?;
                math(*op, left, right.one(space, input)?, space)?
            }
            ExprKind::Compare(left, op, right) => {
                let left = left.one(space, input)?;
                Val::Bool(op.run(&left, &right.one(space, input)?))
            }
            ExprKind::Logic(left, stop, right) => {
                let ended = left.one(space, input)?.as_bool() == *stop;
                Val::Bool(if ended {
                    *stop
                } else {
                    right.one(space, input)?.as_bool()
                })
            }
            ExprKind::If(condition, then, otherwise) => {
                let is_so = condition.one(space, input)?.as_bool();
                if is_so { then } else { otherwise }.one(space, input)?
            }
            ExprKind::Negative(of) => (-of.one(space, input)?)?,
            ExprKind::Path(of, parts) => return follow(of, parts, space, input),
            ExprKind::Call(filter, _) => space.made(filter(input)?)?,
            ExprKind::Test(regex, flags) => {
                let regex = regex.one(space, input)?;
                space.scan(input)?;
                match flags {
                    Some(flags) => regex::test(input, &regex, &flags.one(space, input)?)?,
                    None => regex::test(input, &regex, &Val::utf8_str(""))?,
                }
            }
            ExprKind::Parts(regex, flags) => {
                let regex = regex.one(space, input)?;
                space.repeat(input, 4)?;
                regex::split(input, &regex, &flags.one(space, input)?, true, true)?
            }
            ExprKind::Update(..) => return self.of(space, input.clone()),
            ExprKind::SortBy(by) => sorted(by, space, input)?,
            ExprKind::Reduce(over, slot, start, update) => {
                let mut state = start.one(space, input)?;
                over.each(space, input, &mut |item| {
                    *space.slots[*slot].borrow_mut() = item;
                    state = update.of(space, std::mem::take(&mut state))?;
                    Ok(())
                })?;
                state
            }
            ExprKind::Jaq(filter, arguments) => {
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
            // The other kinds may have any number of outputs.
            ExprKind::Empty
            | ExprKind::Inputs
            | ExprKind::Comma(..)
            | ExprKind::Try(_)
            | ExprKind::First(_)
            | ExprKind::Choose(_) => Val::Null,
        })
    }
}

/// Returns the result of an operator.
fn math(op: Math, left: Val, right: Val, space: Frame<'_>) -> One {
    // A number repeats a text.
    if let (Math::Mul, Val::Num(count), text) | (Math::Mul, text, Val::Num(count)) =
        (op, &left, &right)
    {
        let count = Val::Num(count.clone());
        let times = jaq_std::ValT::as_isize(&count).map_or(usize::MAX, isize::unsigned_abs);
        space.repeat(text, times)?;
    }
    let extends = op == Math::Add && is_own(&left);
    if extends {
        space.made(right.clone())?;
        return Ok(op.run(left, right)?);
    }
    space.made(op.run(left, right)?)
}

/// Returns true if this is the only reference to a list or object, which can then be changed in place.
fn is_own(val: &Val) -> bool {
    match val {
        Val::Arr(items) => Rc::strong_count(items) == 1,
        Val::Obj(object) => Rc::strong_count(object) == 1,
        _ => false,
    }
}

/// Returns the items of a list, sorted by all outputs of the step for each.
fn sorted(by: &Expr, space: Frame<'_>, input: &Val) -> One {
    let Val::Arr(items) = input else {
        return Err(Error::typ(input.clone(), "array").into());
    };
    // jaq does not evaluate the key of an only item.
    if items.len() < 2 {
        return Ok(input.clone());
    }
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
    entries: &[(Expr, Expr)],
    space: Frame<'_>,
    input: &Val,
    before: Map,
    give: &mut Give<'_>,
) -> Given {
    let mut before = before;
    let mut entries = entries.iter();
    let several = loop {
        let Some((key, value)) = entries.next() else {
            return give(Val::obj(before));
        };
        if !(key.at_most_one && value.at_most_one) {
            break (key, value);
        }
        let Some(key) = key.at_most_one(space, input)? else {
            return Ok(());
        };
        let Some(value) = value.at_most_one(space, input)? else {
            return Ok(());
        };
        before.insert(key, value);
    };
    let ((key, value), rest) = (several, entries.as_slice());
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
    parts: &[Expr],
    space: Frame<'_>,
    input: &Val,
    before: Vec<u8>,
    give: &mut Give<'_>,
) -> Given {
    let Some((part, rest)) = parts.split_first() else {
        return give(Val::utf8_str(before));
    };
    part.each(space, input, &mut |part| {
        space.weigh(&part)?;
        space.spend(before.len() / 64)?;
        let mut whole = before.clone();
        if let Val::TStr(bytes) = part.into_string() {
            whole.extend_from_slice(&bytes);
        }
        text(rest, space, input, whole, give)
    })
}

/// Catches errors of the step; propagates errors of its consumer.
fn tried(of: &Expr, space: Frame<'_>, input: &Val, give: &mut Give<'_>) -> Given {
    let mut theirs = Ok(());
    let own = of.each(space, input, &mut |val| {
        theirs = give(val);
        match theirs {
            Ok(()) => Ok(()),
            Err(_) => Err(Halt::Enough),
        }
    });
    theirs?;
    match own {
        Err(Halt::Error(_)) => Ok(()),
        other => other,
    }
}

/// Calls a filter of jaq for each combination of its arguments, and passes on its outputs.
fn called(
    filter: &JaqFilter,
    arguments: &[Expr],
    space: Frame<'_>,
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
    // These make more than they are given.
    match filter.name() {
        "tojson" | "tobytes" => space.weigh(input)?,
        "matches" | "split_" => space.repeat(input, 4)?,
        _ => space.scan(input)?,
    }
    let mut inputs = std::iter::empty();
    filter.run(given.clone(), input.clone(), &mut inputs, &mut |output| {
        give(space.made(output.map_err(Halt::Error)?)?)
    })
}

#[cfg(test)]
#[path = "direct/tests.rs"]
mod tests;
#[cfg(test)]
pub(crate) use tests::PROGRAMS;
