//! How the program was called, so that suggested commands work in the same place and with the same flags.

use crate::base::visible::visible;
use crate::plan::options::flags::{Flag, Flags as _};
use crate::plan::options::{RunOptions, Values};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// How the program was called.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The program with the flags for project and workspace, such as `milepost -C house`.
    pub milepost: String,
    /// The options of the run or the plan.
    pub options: RunOptions,
    /// The values that replace declared ones.
    pub values: Values,
    /// True if the workspace keeps the values, so that the next command need not repeat them.
    pub stored: bool,
    /// The working folder.
    pub folder: PathBuf,
}

impl Default for Invocation {
    fn default() -> Self {
        Self {
            milepost: "milepost".to_owned(),
            options: RunOptions::default(),
            values: Values::default(),
            stored: false,
            folder: PathBuf::new(),
        }
    }
}

impl Invocation {
    /// Returns a command line such as `milepost log classify/batch_3`, quoted for a shell. It has the values that the workspace does
    /// not keep, if the command takes them.
    pub fn line(&self, words: &[&str]) -> String {
        let values = match words {
            ["plan" | "status" | "why" | "trace" | "verify", ..] => self.unstored(),
            ["mcp" | "ui", ..] => Values {
                agents: self.unstored().agents,
                ..Values::default()
            },
            _ => Values::default(),
        };
        let mut all: Vec<String> = words.iter().map(ToString::to_string).collect();
        all.extend(values.words());
        self.typed(&all)
    }

    /// Returns the command line of the run that was planned: every flag and target.
    pub fn same_run(&self) -> String {
        self.run_with(&|_| true, &self.options.targets)
    }

    /// Returns the command line of a run that continues this one, with its stages and batches. `--force` and `--fresh` hold until then.
    pub fn next_run(&self) -> String {
        self.run_with(&|flag| flag.stays, &self.options.targets)
    }

    /// Returns the command line of a run that selects by these words, with the other options of this one.
    pub fn run(&self, words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        self.run_with(&|flag| flag.stays && !flag.selects, &words)
    }

    fn run_with(&self, wanted: &dyn Fn(&Flag<RunOptions>) -> bool, words: &[String]) -> String {
        let flags = RunOptions::FLAGS.iter().filter(|flag| wanted(flag));
        let flags = flags.flat_map(|flag| flag.words(&self.options));
        let all: Vec<String> = std::iter::once("run".to_owned())
            .chain(self.unstored().words())
            .chain(flags)
            .chain(words.iter().cloned())
            .collect();
        self.typed(&all)
    }

    fn typed(&self, words: &[String]) -> String {
        let words = words.iter().map(|word| shell_word(word));
        let all = std::iter::once(self.milepost.clone()).chain(words);
        all.collect::<Vec<_>>().join(" ")
    }

    fn unstored(&self) -> Values {
        if self.stored {
            Values::default()
        } else {
            self.values.clone()
        }
    }

    /// Returns a path relative to the working folder, if it is inside.
    pub fn near(&self, path: &str) -> String {
        match Path::new(path).strip_prefix(&self.folder) {
            Ok(rest) if !rest.as_os_str().is_empty() => rest.display().to_string(),
            Ok(_) => ".".to_owned(),
            Err(_) => path.to_owned(),
        }
    }
}

/// Quotes a word for a shell, if necessary.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else if matches!(visible(text), Cow::Owned(_)) {
        let quoted = text.replace('\\', r"\\").replace('\'', r"\'");
        format!("$'{}'", visible(&quoted))
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::money::NanoUsd;

    fn called() -> Invocation {
        Invocation {
            milepost: "milepost -C house".to_owned(),
            options: RunOptions {
                targets: vec!["grade/J Smith".to_owned()],
                jobs: std::num::NonZeroU16::new(4),
                budget_usd: Some(NanoUsd(2_500_000_000)),
                until: Some("report".to_owned()),
                fresh: true,
                limit: Some(3),
                ..RunOptions::default()
            },
            values: Values {
                set: vec!["name=Ada L".to_owned()],
                agents: vec!["a=b".to_owned()],
                ..Values::default()
            },
            stored: false,
            folder: PathBuf::from("/home/ada"),
        }
    }

    #[test]
    fn suggested_commands_can_be_typed() {
        let called = called();
        assert_eq!(
            called.line(&["log", "grade/J Smith"]),
            "milepost -C house log 'grade/J Smith'"
        );
        let values = "--set 'name=Ada L' --agent a=b";
        assert_eq!(
            called.line(&["why", "grade"]),
            format!("milepost -C house why grade {values}")
        );
        assert_eq!(called.line(&["mcp"]), "milepost -C house mcp --agent a=b");
        assert_eq!(called.near("/home/ada/house/workspace"), "house/workspace");
        assert_eq!(called.near("/home/ada"), ".");
        assert_eq!(called.near("/home/adam"), "/home/adam");
    }

    #[test]
    fn suggested_runs_take_the_flags_that_matter_to_them() {
        let called = called();
        assert_eq!(
            called.same_run(),
            "milepost -C house run --set 'name=Ada L' --agent a=b --jobs 4 --fresh --budget-usd 2.5 --limit 3 --until report 'grade/J Smith'"
        );
        let called = Invocation {
            stored: true,
            ..called
        };
        assert_eq!(
            called.next_run(),
            "milepost -C house run --jobs 4 --budget-usd 2.5 --limit 3 --until report 'grade/J Smith'"
        );
        assert_eq!(
            called.run(&["--force", "grade"]),
            "milepost -C house run --jobs 4 --budget-usd 2.5 --force grade"
        );
        assert_eq!(
            called.line(&["why", "grade"]),
            "milepost -C house why grade"
        );
    }

    #[test]
    fn what_a_shell_would_read_otherwise_is_quoted() {
        assert_eq!(shell_word("classify/batch_3"), "classify/batch_3");
        assert_eq!(shell_word("grade/Jo O'Neil"), r"'grade/Jo O'\''Neil'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(
            shell_word("a\u{1b}[1m\n\\'\u{202e}"),
            r"$'a\u001b[1m\n\\\'\u202e'"
        );
    }
}
