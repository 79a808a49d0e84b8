//! The flags of a run: one table for the command line, suggested commands, arguments of MCP tools and forms of pages.

use crate::base::duration::parse_pause;
use crate::model::money::NanoUsd;
use crate::plan::options::{RunOptions, Values};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

/// A flag that sets a field of `T`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own"
)]
pub struct Flag<T: 'static> {
    /// The name of the field, also among the arguments of MCP tools and in forms.
    pub name: &'static str,
    /// The name on the command line, without dashes.
    pub long: &'static str,
    /// The letter on the command line.
    pub short: Option<char>,
    /// The name of its value; `None`: a switch.
    pub value: Option<&'static str>,
    /// True if it may be given several times.
    pub many: bool,
    /// The help text of the command line.
    pub help: &'static str,
    /// The help text of commands that write nothing, if they take it.
    pub assumed: &'static str,
    /// The text on the form of a page; `None`: pages do not offer it.
    pub page: Option<&'static str>,
    /// The flag that contradicts it.
    pub conflict: Option<&'static str>,
    /// True if it selects batches; false if it changes how they run.
    pub selects: bool,
    /// True if a run that continues this one takes it too.
    pub stays: bool,
    /// True if `watch` takes it, with the same meaning.
    pub watch: bool,
    /// Returns its values as text, an empty text for a switch; none: it is not given.
    pub values: fn(&T) -> Vec<String>,
    /// Adds a value.
    pub read: fn(&mut T, &str) -> Result<(), FlagError>,
}

/// A text that is not a value of a flag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FlagError(pub String);

/// Options that flags set.
pub trait Flags: Sized + 'static {
    /// All flags, in the order of the help.
    const FLAGS: &'static [Flag<Self>];

    /// Adds what `later` sets, which wins.
    fn merge(&mut self, later: &Self) {
        for flag in Self::FLAGS {
            for value in (flag.values)(later) {
                // It was read before.
                let _ = (flag.read)(self, &value);
            }
        }
    }

    /// Returns the words of these flags on a command line.
    fn words(&self) -> Vec<String> {
        let given = Self::FLAGS.iter().flat_map(|flag| flag.words(self));
        given.collect()
    }

    /// Returns the first flag given, as it is typed.
    fn first(&self) -> Option<String> {
        let mut given = Self::FLAGS.iter().filter(|flag| flag.is_given(self));
        given.next().map(|flag| format!("--{}", flag.long))
    }
}

impl<T> Flag<T> {
    /// Returns true if the flag is given.
    pub fn is_given(&self, options: &T) -> bool {
        !(self.values)(options).is_empty()
    }

    /// Returns the words of the flag on a command line.
    pub(crate) fn words(&self, options: &T) -> Vec<String> {
        let word = |value: String| {
            let value = self.value.map(|_| value);
            std::iter::once(format!("--{}", self.long)).chain(value)
        };
        (self.values)(options).into_iter().flat_map(word).collect()
    }
}

/// A field that a flag sets.
trait FlagValue {
    /// Returns its values as text.
    fn values(&self) -> Vec<String>;

    /// Adds a value.
    ///
    /// # Errors
    /// If the text is not a value of this type.
    fn read(&mut self, text: &str) -> Result<(), FlagError>;
}

impl FlagValue for bool {
    fn values(&self) -> Vec<String> {
        self.then(String::new).into_iter().collect()
    }

    fn read(&mut self, _: &str) -> Result<(), FlagError> {
        *self = true;
        Ok(())
    }
}

impl<T: FromStr<Err: Display> + Display> FlagValue for Option<T> {
    fn values(&self) -> Vec<String> {
        self.iter().map(T::to_string).collect()
    }

    fn read(&mut self, text: &str) -> Result<(), FlagError> {
        *self = Some(
            text.parse()
                .map_err(|error| FlagError(format!("{error}")))?,
        );
        Ok(())
    }
}

impl FlagValue for Vec<String> {
    fn values(&self) -> Vec<String> {
        self.clone()
    }

    fn read(&mut self, text: &str) -> Result<(), FlagError> {
        self.push(text.to_owned());
        Ok(())
    }
}

/// A flag that sets a field; the table adds the rest.
macro_rules! flag {
    ($field:ident) => {
        flag!(
            $field,
            |options| options.$field.values(),
            |options, text| options.$field.read(text)
        )
    };
    ($field:ident, $values:expr, $read:expr) => {
        Flag {
            name: stringify!($field),
            long: stringify!($field),
            short: None,
            value: None,
            many: false,
            help: "",
            assumed: "",
            page: None,
            conflict: None,
            selects: false,
            stays: false,
            watch: false,
            values: $values,
            read: $read,
        }
    };
}

impl Flags for RunOptions {
    const FLAGS: &'static [Flag<Self>] = &[
        Flag {
            short: Some('j'),
            value: Some("N"),
            help: "Run this many batches at a time in stages that declare no concurrency; `auto` is one for each processor [default: 1]",
            stays: true,
            watch: true,
            ..flag!(jobs)
        },
        Flag {
            value: Some("NAME"),
            help: "Run batches here (`local`), or as jobs of a scheduler of `[executor]`, such as `slurm`",
            stays: true,
            ..flag!(executor)
        },
        Flag {
            long: "keep-going",
            short: Some('k'),
            help: "Continue after a failed batch",
            page: Some("continue after a failed batch"),
            stays: true,
            watch: true,
            ..flag!(keep_going)
        },
        Flag {
            help: "Ignore stored answers and ask agents again",
            ..flag!(fresh)
        },
        Flag {
            long: "budget-usd",
            value: Some("DOLLARS"),
            help: "Spend at most this amount on agents in this run, such as 2.50",
            stays: true,
            values: |options| options.budget_usd.map(NanoUsd::plain).into_iter().collect(),
            ..flag!(budget_usd)
        },
        Flag {
            long: "until-paid",
            help: "Run everything that is free, and show what calls to paid agents would cost",
            page: Some("only what is free: make no paid call"),
            conflict: Some("budget_usd"),
            stays: true,
            ..flag!(until_paid)
        },
        Flag {
            value: Some("DURATION"),
            stays: true,
            help: "Wait at most this long for another run in the workspace to end, such as 90s or 2h",
            ..flag!(
                wait,
                |options| {
                    let seconds = |wait: Duration| format!("{}s", wait.as_secs_f64());
                    options.wait.map(seconds).into_iter().collect()
                },
                |options, text| {
                    options.wait =
                        Some(parse_pause(text).map_err(|error| FlagError(error.to_string()))?);
                    Ok(())
                }
            )
        },
        Flag {
            short: Some('B'),
            help: "Run selected batches even if they are up to date; the next run continues if this one is interrupted",
            page: Some("rebuild even what is up to date"),
            selects: true,
            ..flag!(force)
        },
        Flag {
            long: "no-force",
            help: "Cancel the rest of an earlier --force that was interrupted",
            conflict: Some("force"),
            selects: true,
            stays: true,
            ..flag!(no_force)
        },
        Flag {
            help: "Run only batches that failed",
            page: Some("only batches that failed last time"),
            selects: true,
            stays: true,
            ..flag!(failed)
        },
        Flag {
            value: Some("N"),
            help: "Run at most this many batches, over all stages",
            selects: true,
            stays: true,
            ..flag!(limit, |options| options.limit.values(), |options, text| {
                let wrong = |_| FlagError("expected a whole number, such as 10".to_owned());
                options.limit = Some(text.parse().map_err(wrong)?);
                Ok(())
            })
        },
        Flag {
            value: Some("STAGE"),
            help: "Stop after this stage",
            selects: true,
            stays: true,
            watch: true,
            ..flag!(until)
        },
    ];
}

impl RunOptions {
    /// Returns true if the run covers the whole pipeline and follows the up-to-date check alone.
    pub fn covers_everything(&self) -> bool {
        let known_failures = self.known_failures.as_ref();
        let selects = |flag: &Flag<Self>| flag.selects && flag.is_given(self);
        self.targets.is_empty()
            && !Self::FLAGS.iter().any(selects)
            && known_failures.is_none_or(BTreeMap::is_empty)
    }

    /// Returns two options that contradict each other.
    pub fn conflict(&self) -> Option<(&'static str, &'static str)> {
        let given = || Self::FLAGS.iter().filter(|flag| flag.is_given(self));
        given().find_map(|flag| {
            let other = flag.conflict?;
            given()
                .any(|flag| flag.name == other)
                .then_some((other, flag.name))
        })
    }
}

impl Flags for Values {
    const FLAGS: &'static [Flag<Self>] = &[
        Flag {
            value: Some("NAME=VALUE"),
            many: true,
            help: "Set a parameter in this workspace, until `--unset`",
            assumed: "Use this value of a parameter, in this command only",
            ..flag!(set)
        },
        Flag {
            value: Some("NAME"),
            many: true,
            help: "Restore the default of a parameter",
            assumed: "Use the default of a parameter, in this command only",
            ..flag!(unset)
        },
        Flag {
            long: "agent",
            value: Some("[NAME=]OTHER"),
            many: true,
            help: "Replace an agent, or all agents, in this workspace; `default` undoes it",
            assumed: "Use another agent in place of one, or of all, in this command only",
            ..flag!(agents)
        },
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names that arguments of MCP tools may have, as the reader lists them.
    fn names<T: serde::de::DeserializeOwned>() -> Vec<String> {
        let error = serde_json::from_str::<T>(r#"{"?": 1}"#).err().unwrap();
        let error = error.to_string();
        let list = error.split("expected one of ").nth(1).unwrap();
        let names = list.split('`').skip(1).step_by(2);
        names.map(str::to_owned).collect()
    }

    #[test]
    fn every_option_is_a_flag() {
        let mut flags: Vec<&str> = RunOptions::FLAGS.iter().map(|flag| flag.name).collect();
        flags.push("targets");
        flags.sort_unstable();
        let mut options = names::<RunOptions>();
        // A client of MCP does not wait.
        options.push("wait".to_owned());
        options.sort();
        assert_eq!(flags, options);
    }

    #[test]
    fn the_words_of_options_set_them_again() {
        for flag in RunOptions::FLAGS {
            let text = match flag.name {
                "budget_usd" => "0.000001",
                "executor" => "slurm",
                "wait" => "90s",
                _ => "7",
            };
            let mut options = RunOptions::default();
            (flag.read)(&mut options, text).unwrap();
            let typed = match flag.value {
                Some(_) => vec![format!("--{}", flag.long), text.to_owned()],
                None => vec![format!("--{}", flag.long)],
            };
            assert_eq!(options.words(), typed);
            let mut merged = RunOptions::default();
            merged.merge(&options);
            assert_eq!(merged.words(), typed);
            assert_eq!(options.first().as_ref(), typed.first());
        }
        let mut limit = RunOptions::default();
        let flag = RunOptions::FLAGS.iter().find(|flag| flag.name == "limit");
        let error = (flag.unwrap().read)(&mut limit, "many").unwrap_err();
        assert_eq!(error.to_string(), "expected a whole number, such as 10");
    }

    #[test]
    fn values_of_repeated_flags_are_joined() {
        let mut values = Values {
            set: vec!["a=1".to_owned()],
            ..Values::default()
        };
        values.merge(&Values {
            set: vec!["b=two words".to_owned()],
            agents: vec!["x=y".to_owned()],
            ..Values::default()
        });
        let words = ["--set", "a=1", "--set", "b=two words", "--agent", "x=y"];
        assert_eq!(values.words(), words);
    }

    #[test]
    fn an_option_that_selects_batches_needs_more_than_the_up_to_date_check() {
        assert!(RunOptions::default().covers_everything());
        let read = |text| serde_json::from_str::<RunOptions>(text).unwrap();
        for text in [
            r#"{"targets": ["a"]}"#,
            r#"{"until": "a"}"#,
            r#"{"limit": 1}"#,
            r#"{"failed": true}"#,
            r#"{"force": true}"#,
            r#"{"no_force": true}"#,
        ] {
            assert!(!read(text).covers_everything(), "{text}");
        }
        assert!(read(r#"{"fresh": true, "jobs": 2, "budget_usd": "1"}"#).covers_everything());
    }
}
