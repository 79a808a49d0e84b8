//! Flags of the table in `core` as arguments of clap.

use clap::builder::TypedValueParser as _;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use milepost_core::plan::options::Values;
use milepost_core::plan::options::flags::{Flag, FlagError, Flags};
use std::marker::PhantomData;
use std::num::NonZeroU16;

pub(crate) trait FlagGroup: Clone + Default + Send + Sync + 'static {
    /// Returns true if the group has the flag.
    fn has<T>(flag: &Flag<T>) -> bool;

    /// Returns the help of a flag.
    fn help<T>(flag: &Flag<T>) -> &'static str {
        flag.help
    }
}

/// Flags that change how batches run.
#[derive(Debug, Clone, Default)]
pub(crate) struct How;

/// Flags that select batches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selects;

/// Flags that `watch` takes too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watched;

/// Values of commands that write nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Assumed;

impl FlagGroup for Assumed {
    fn has<T>(_: &Flag<T>) -> bool {
        true
    }

    fn help<T>(flag: &Flag<T>) -> &'static str {
        flag.assumed
    }
}

impl FlagGroup for How {
    fn has<T>(flag: &Flag<T>) -> bool {
        !flag.selects
    }
}

impl FlagGroup for Selects {
    fn has<T>(flag: &Flag<T>) -> bool {
        flag.selects
    }
}

impl FlagGroup for Watched {
    fn has<T>(flag: &Flag<T>) -> bool {
        flag.watch
    }
}

/// The flags of a group of the table, with what was given.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableFlags<T, P> {
    pub(crate) given: T,
    part: PhantomData<P>,
}

impl<T: Flags + Clone, P: FlagGroup> TableFlags<T, P> {
    /// Merges flags given before the command with flags given after it, which win.
    #[must_use]
    pub(crate) fn joined(mut self, later: &Self) -> Self {
        self.given.merge(&later.given);
        self
    }

    fn flags() -> impl Iterator<Item = &'static Flag<T>> {
        T::FLAGS.iter().filter(|flag| P::has(flag))
    }
}

impl<T: Flags + Clone + Default + Send + Sync, P: FlagGroup> Args for TableFlags<T, P> {
    fn augment_args(command: Command) -> Command {
        Self::flags().fold(command, |command, flag| {
            command.arg(arg(flag).help(P::help(flag)))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: Flags + Clone + Default, P: FlagGroup> FromArgMatches for TableFlags<T, P> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut found = Self {
            given: T::default(),
            part: PhantomData,
        };
        found.update_from_arg_matches(matches)?;
        Ok(found)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let wrong = |error: FlagError| clap::Error::raw(ErrorKind::ValueValidation, error);
        for flag in Self::flags() {
            if flag.value.is_none() {
                if matches.get_flag(flag.name) {
                    (flag.read)(&mut self.given, "").map_err(wrong)?;
                }
                continue;
            }
            for text in matches.get_many::<String>(flag.name).into_iter().flatten() {
                (flag.read)(&mut self.given, text).map_err(wrong)?;
            }
        }
        Ok(())
    }
}

/// Returns the argument of a value with the help of commands that write nothing.
pub(crate) fn assumed(arg: Arg) -> Arg {
    let flag = Values::FLAGS.iter().find(|flag| arg.get_id() == flag.name);
    let help = flag.map(|flag| flag.assumed);
    arg.help(help)
}

/// Returns the argument of a flag.
fn arg<T: Flags + Default>(flag: &'static Flag<T>) -> Arg {
    let arg = Arg::new(flag.name).long(flag.long);
    let arg = match flag.short {
        Some(short) => arg.short(short),
        None => arg,
    };
    let arg = match flag.conflict {
        Some(other) => arg.conflicts_with(other),
        None => arg,
    };
    let Some(value) = flag.value else {
        return arg.action(ArgAction::SetTrue);
    };
    let checked = move |text: String| {
        let text = if flag.name == "jobs" {
            jobs(&text)?
        } else {
            text
        };
        (flag.read)(&mut T::default(), &text).map(|()| text)
    };
    let parser = clap::builder::StringValueParser::new().try_map(checked);
    let action = if flag.many {
        ArgAction::Append
    } else {
        ArgAction::Set
    };
    arg.value_name(value).value_parser(parser).action(action)
}

/// Returns the number that `--jobs` means.
fn jobs(text: &str) -> Result<String, FlagError> {
    if text == "auto" {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        return Ok(processors.min(u16::MAX.into()).to_string());
    }
    match text.parse() {
        Ok(jobs) => Ok(NonZeroU16::to_string(&jobs)),
        Err(_) => Err(FlagError(
            "expected `auto`, or a number from 1 to 65535".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_a_number_or_one_for_each_processor() {
        assert_eq!(jobs("4").as_deref(), Ok("4"));
        let processors = std::thread::available_parallelism().unwrap().get();
        assert_eq!(jobs("auto"), Ok(processors.to_string()));
        for text in ["0", "-1", "all", "65536", ""] {
            assert!(jobs(text).is_err(), "{text}");
        }
    }
}
