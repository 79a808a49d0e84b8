//! Balances commas, so that a list of any length takes little stack: the parser nests each of them in the next.

use std::iter::from_fn;
use std::mem::take;

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::path::{Part, Path};

/// Turns `a, b, c, d` into `(a, b), (c, d)`, which has the same outputs, everywhere in a term.
pub(super) fn balance(term: &mut Term<&str>) {
    match term {
        Term::BinOp(_, BinaryOp::Comma, _) => {
            let (mut items, mut rest) = (Vec::new(), take(term));
            while let Term::BinOp(left, BinaryOp::Comma, right) = rest {
                items.push(*right);
                rest = *left;
            }
            items.push(rest);
            items.reverse();
            items.iter_mut().for_each(balance);
            while items.len() > 1 {
                let mut open = items.into_iter();
                let mut pair = || {
                    let left = open.next()?;
                    Some(match open.next() {
                        Some(right) => Term::BinOp(left.into(), BinaryOp::Comma, right.into()),
                        None => left,
                    })
                };
                items = from_fn(&mut pair).collect();
            }
            *term = items.pop().unwrap_or_default();
        }
        Term::BinOp(left, op, right) => {
            balance(left);
            balance(right);
            if let BinaryOp::Pipe(Some(pattern)) = op {
                balance_keys(pattern);
            }
        }
        Term::Str(_, parts) => parts.iter_mut().for_each(|part| {
            if let StrPart::Term(term) = part {
                balance(term);
            }
        }),
        Term::Arr(Some(of)) | Term::Neg(of) | Term::Label(_, of) => balance(of),
        Term::Obj(entries) => entries.iter_mut().for_each(|(key, value)| {
            balance(key);
            value.iter_mut().for_each(balance);
        }),
        Term::Fold(_, over, pattern, arguments) => {
            balance(over);
            balance_keys(pattern);
            arguments.iter_mut().for_each(balance);
        }
        Term::TryCatch(of, catch) => {
            balance(of);
            if let Some(catch) = catch {
                balance(catch);
            }
        }
        Term::IfThenElse(cases, otherwise) => {
            let both = cases.iter_mut().flat_map(|(test, then)| [test, then]);
            both.chain(otherwise.as_deref_mut()).for_each(balance);
        }
        Term::Def(defs, of) => {
            for def in defs {
                balance(&mut def.body);
            }
            balance(of);
        }
        Term::Call(_, arguments) => arguments.iter_mut().for_each(balance),
        Term::Path(of, Path(parts)) => {
            balance(of);
            for (part, _) in parts {
                match part {
                    Part::Index(index) => balance(index),
                    Part::Range(from, to) => from.iter_mut().chain(to).for_each(balance),
                }
            }
        }
        _ => {}
    }
}

fn balance_keys(pattern: &mut Pattern<&str>) {
    match pattern {
        Pattern::Var(_) => {}
        Pattern::Arr(parts) => parts.iter_mut().for_each(balance_keys),
        Pattern::Obj(parts) => parts.iter_mut().for_each(|(key, part)| {
            balance(key);
            balance_keys(part);
        }),
    }
}
