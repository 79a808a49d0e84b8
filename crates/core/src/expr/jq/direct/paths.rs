//! Paths such as `.a[$x][]`: what lies there, and changing it.

use std::cell::RefCell;

use jaq_core::path::Opt;
use jaq_core::{Error, Exn, ValT};
use jaq_json::Val;

use super::program::{Expr, ExprKind, Frame, Give, Given, Halt, One, PathPart};

/// Returns the end of a path of single indices.
pub(crate) fn follow(of: &Expr, parts: &[(PathPart, bool)], space: Frame<'_>, input: &Val) -> One {
    let owned;
    let mut at = if let ExprKind::Input = of.node {
        input
    } else {
        owned = of.one(space, input)?;
        &owned
    };
    for (done, (part, _)) in parts.iter().enumerate() {
        let PathPart::Index(index) = part else {
            return last(&parts[done..], space, input, at);
        };
        let literal;
        let index = if let ExprKind::Literal(place) = index.node {
            &space.literals[place]
        } else {
            literal = index.one(space, input)?;
            &literal
        };
        match at {
            Val::Null => {}
            Val::Obj(object) => match object.get(index) {
                Some(inner) => at = inner,
                None => at = &Val::Null,
            },
            other => return last(&parts[done..], space, input, other),
        }
    }
    Ok(at.clone())
}

/// Returns the end of the rest of a path.
fn last(parts: &[(PathPart, bool)], space: Frame<'_>, input: &Val, at: &Val) -> One {
    let indices = indices(parts, space, input)?;
    let mut end = Val::Null;
    walk(&indices, at.clone(), &mut |val| {
        end = val;
        Ok(())
    })?;
    Ok(end)
}

/// Replaces the value at a path; the change is called once.
pub(crate) fn update(
    parts: &[(At, bool)],
    val: Val,
    change: &mut dyn FnMut(Val) -> Result<Option<Val>, Halt>,
) -> One {
    let Some(((part, optional), rest)) = parts.split_first() else {
        return Ok(change(val)?.unwrap_or_default());
    };
    let At::Index(index) = part else {
        return Ok(val);
    };
    let opt = if *optional {
        Opt::Optional
    } else {
        Opt::Essential
    };
    let stopped = RefCell::new(None);
    let change = RefCell::new(change);
    let changed = val.map_index(index, opt, |inner| {
        let made = update(rest, inner, &mut **change.borrow_mut());
        std::iter::once(made.map_err(|stop| match stop {
            Halt::Error(error) => Exn::from(error),
            other => {
                *stopped.borrow_mut() = Some(other);
                Exn::from(Error::str(""))
            }
        }))
    });
    changed.map_err(|exception| match stopped.take() {
        Some(stop) => stop,
        None => Halt::Error(
            exception
                .get_err()
                .unwrap_or_else(|_| Error::str("it ended without a value")),
        ),
    })
}

/// Returns the values of the indices of a path.
pub(crate) fn indices(
    parts: &[(PathPart, bool)],
    space: Frame<'_>,
    input: &Val,
) -> Result<Vec<(At, bool)>, Halt> {
    let of = |step: &Option<Expr>| match step {
        Some(step) => step.one(space, input).map(Some),
        None => Ok(None),
    };
    parts
        .iter()
        .map(|(part, optional)| {
            let at = match part {
                PathPart::Index(index) => At::Index(index.one(space, input)?),
                PathPart::Each => At::Each,
                PathPart::Range(from, to) => At::Range(of(from)?, of(to)?),
            };
            Ok((at, *optional))
        })
        .collect()
}

/// A part of a path whose indices are known.
pub(crate) enum At {
    Index(Val),
    Each,
    Range(Option<Val>, Option<Val>),
}

/// Gives what lies at a path.
pub(crate) fn walk(parts: &[(At, bool)], val: Val, give: &mut Give<'_>) -> Given {
    let Some(((part, optional), rest)) = parts.split_first() else {
        return give(val);
    };
    let found = match part {
        At::Index(index) => val.index(index),
        At::Range(from, to) => val.range(from.as_ref()..to.as_ref()),
        At::Each => {
            return match val {
                Val::Arr(items) => items
                    .iter()
                    .try_for_each(|item| walk(rest, item.clone(), give)),
                Val::Obj(object) => object
                    .values()
                    .try_for_each(|item| walk(rest, item.clone(), give)),
                _ if *optional => Ok(()),
                other => other.values().try_for_each(|item| walk(rest, item?, give)),
            };
        }
    };
    match found {
        Ok(inner) => walk(rest, inner, give),
        Err(_) if *optional => Ok(()),
        Err(error) => Err(error.into()),
    }
}
