//! Balances commas, so that a list of any length takes little stack: the parser nests each of them in the next.

use std::mem::take;

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::path::{Part, Path};

/// Returns a program whose outputs are the same, with `a, b, c, d` as `(a, b), (c, d)`.
pub(super) fn balanced<'s>(mut program: Term<&'s str>) -> Term<&'s str> {
    let mut open: Vec<&mut Term<&'s str>> = vec![&mut program];
    while let Some(term) = open.pop() {
        if !matches!(term, Term::BinOp(_, BinaryOp::Comma, _)) {
            add_parts(term, &mut open);
            continue;
        }
        let mut items = Vec::new();
        let mut rest = take(term);
        while let Term::BinOp(left, BinaryOp::Comma, right) = rest {
            items.push(*right);
            rest = *left;
        }
        items.push(rest);
        items.reverse();
        let mut spine = vec![(term, items)];
        while let Some((term, mut items)) = spine.pop() {
            let right = items.split_off(items.len() / 2);
            if items.is_empty() {
                *term = right.into_iter().next().unwrap_or_default();
                add_parts(term, &mut open);
                continue;
            }
            *term = Term::BinOp(Box::default(), BinaryOp::Comma, Box::default());
            if let Term::BinOp(before, _, after) = term {
                spine.extend([(&mut **before, items), (&mut **after, right)]);
            }
        }
    }
    program
}

/// Adds the terms that a term has as its parts.
fn add_parts<'t, 's>(term: &'t mut Term<&'s str>, into: &mut Vec<&'t mut Term<&'s str>>) {
    match term {
        Term::Str(_, parts) => into.extend(parts.iter_mut().filter_map(|part| match part {
            StrPart::Term(term) => Some(term),
            _ => None,
        })),
        Term::Arr(Some(of)) | Term::Neg(of) | Term::Label(_, of) => into.push(of),
        Term::Obj(entries) => {
            for (key, value) in entries {
                into.push(key);
                into.extend(value);
            }
        }
        Term::BinOp(left, op, right) => {
            into.extend([&mut **left, &mut **right]);
            if let BinaryOp::Pipe(Some(pattern)) = op {
                add_keys(pattern, into);
            }
        }
        Term::Fold(_, over, pattern, arguments) => {
            into.push(over);
            into.extend(arguments);
            add_keys(pattern, into);
        }
        Term::TryCatch(of, catch) => {
            into.push(of);
            into.extend(catch.as_deref_mut());
        }
        Term::IfThenElse(cases, otherwise) => {
            for (condition, then) in cases {
                into.extend([condition, then]);
            }
            into.extend(otherwise.as_deref_mut());
        }
        Term::Def(defs, of) => {
            into.extend(defs.iter_mut().map(|def| &mut def.body));
            into.push(of);
        }
        Term::Call(_, arguments) => into.extend(arguments),
        Term::Path(of, Path(parts)) => {
            into.push(of);
            for (part, _) in parts {
                match part {
                    Part::Index(index) => into.push(index),
                    Part::Range(from, to) => into.extend(from.iter_mut().chain(to)),
                }
            }
        }
        _ => {}
    }
}

fn add_keys<'t, 's>(pattern: &'t mut Pattern<&'s str>, into: &mut Vec<&'t mut Term<&'s str>>) {
    match pattern {
        Pattern::Var(_) => {}
        Pattern::Arr(parts) => parts.iter_mut().for_each(|part| add_keys(part, into)),
        Pattern::Obj(parts) => {
            for (key, part) in parts {
                into.push(key);
                add_keys(part, into);
            }
        }
    }
}
