//! Programs as trees that are run without iterators.

use std::cell::{Cell, RefCell};

use jaq_core::Error;
use jaq_core::ops::{Cmp, Math};
use jaq_json::Val;

use crate::expr::jq::jaq::JaqFilter;

/// A program as a tree.
#[derive(Debug)]
pub(crate) struct Direct {
    pub(crate) root: Expr,
    pub(crate) literals: Vec<Literal>,
    pub(crate) slots: usize,
}

/// A literal of a program. Values of jaq belong to one thread, a program to many.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(isize),
    Number(String),
    Text(String),
}

/// One step of a program. `usize` is the place of a variable or of a literal.
#[derive(Debug)]
pub(crate) enum ExprKind {
    Input,
    Var(usize),
    Literal(usize),
    Empty,
    List(Option<Box<Expr>>),
    Object(Vec<(Expr, Expr)>),
    Text(Vec<Expr>),
    Pipe(Box<Expr>, Box<Expr>),
    Bind(Box<Expr>, usize, Box<Expr>),
    Comma(Box<Expr>, Box<Expr>),
    Alternative(Box<Expr>, Box<Expr>),
    Math(Box<Expr>, Math, Box<Expr>),
    Compare(Box<Expr>, Cmp, Box<Expr>),
    /// The flag is the value that ends the evaluation: true for `or`.
    Logic(Box<Expr>, bool, Box<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    Negative(Box<Expr>),
    Try(Box<Expr>),
    Path(Box<Expr>, Vec<(PathPart, bool)>),
    Reduce(Box<Expr>, usize, Box<Expr>, Box<Expr>),
    First(Box<Expr>),
    Choose(fn(&Val) -> bool),
    /// The flag is true if the filter only checks the type and truth of its input.
    Call(fn(&Val) -> Result<Val, Error<Val>>, bool),
    Test(Box<Expr>, Option<Box<Expr>>),
    Parts(Box<Expr>, Box<Expr>),
    /// Changes what lies at a path.
    Update(Vec<(PathPart, bool)>, Change),
    SortBy(Box<Expr>),
    /// The records that are read meanwhile.
    Inputs,
    /// A filter of jaq with its arguments.
    Jaq(Box<JaqFilter>, Vec<Expr>),
}

/// The change of the value at a path.
#[derive(Debug)]
pub(crate) enum Change {
    /// `|=`: the first output of the step for the value at the path.
    By(Box<Expr>),
    /// `=`: the output of the step for the whole input.
    To(Box<Expr>),
    /// `+=` and its like.
    Math(Math, Box<Expr>),
}

/// An expression, and how many outputs it has unless it raises an error.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) node: ExprKind,
    /// Always exactly one.
    pub(crate) one: bool,
    /// Never more than one.
    pub(crate) at_most_one: bool,
}

/// A part of a path; the flag beside it is that of `?`.
#[derive(Debug)]
pub(crate) enum PathPart {
    Index(Expr),
    Each,
    Range(Option<Expr>, Option<Expr>),
}

/// Why a run stops.
pub(crate) enum Halt {
    Error(Error<Val>),
    /// `first` has its value, or what takes the values has had enough.
    Enough,
    /// The run has no units left.
    Spent,
}

impl From<Error<Val>> for Halt {
    fn from(error: Error<Val>) -> Self {
        Self::Error(error)
    }
}

pub(crate) type Given = Result<(), Halt>;
pub(crate) type Give<'g> = dyn FnMut(Val) -> Given + 'g;
pub(crate) type One = Result<Val, Halt>;

/// The literals and variables of a program, for one thread.
pub(crate) struct Space {
    pub(crate) literals: Vec<Val>,
    pub(crate) slots: Vec<RefCell<Val>>,
}

/// A space in a run.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'r> {
    pub(crate) literals: &'r [Val],
    pub(crate) slots: &'r [RefCell<Val>],
    pub(crate) next: &'r dyn Fn() -> Option<Result<Val, String>>,
    /// The units that the run has left: one for each step, and one for about 64 bytes that it makes.
    pub(crate) left: &'r Cell<u64>,
}

impl Frame<'_> {
    /// Charges units.
    ///
    /// # Errors
    /// If fewer are left.
    pub(crate) fn spend(&self, units: usize) -> Given {
        let left = self.left.get().checked_sub(units as u64);
        self.left.set(left.ok_or(Halt::Spent)?);
        Ok(())
    }

    /// Charges a new value, and returns it. Its parts were charged when they were made.
    ///
    /// # Errors
    /// If fewer are left.
    pub(crate) fn made(&self, val: Val) -> One {
        self.spend(match &val {
            Val::Arr(items) => items.len(),
            Val::Obj(object) => object.len(),
            other => length(other) / 64,
        })?;
        Ok(val)
    }

    /// Charges a value by its text: a list that it contains twice is charged twice.
    ///
    /// # Errors
    /// If fewer are left.
    pub(crate) fn weigh(&self, val: &Val) -> Given {
        if self.left.get() > u64::MAX / 2 {
            // Without a limit, memory is the limit.
            return Ok(());
        }
        match val {
            Val::Arr(items) => {
                self.spend(items.len())?;
                items.iter().try_for_each(|item| self.weigh(item))
            }
            Val::Obj(object) => {
                self.spend(object.len())?;
                object.iter().try_for_each(|(key, item)| {
                    self.weigh(key)?;
                    self.weigh(item)
                })
            }
            other => self.scan(other),
        }
    }

    /// Charges the reading of a text.
    ///
    /// # Errors
    /// If fewer are left.
    pub(crate) fn scan(&self, val: &Val) -> Given {
        self.spend(length(val) / 64)
    }

    /// Charges this many units for each byte of a text.
    ///
    /// # Errors
    /// If fewer are left.
    pub(crate) fn repeat(&self, val: &Val, units: usize) -> Given {
        self.spend(length(val).saturating_mul(units))
    }
}

/// Returns the bytes of a text; 0 of other values.
fn length(val: &Val) -> usize {
    match val {
        Val::TStr(bytes) | Val::BStr(bytes) => bytes.len(),
        _ => 0,
    }
}
