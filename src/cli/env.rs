//! The environment and terminal of the process, read once and only here.

use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;

/// The arguments, environment and terminal of the process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// The name of the program, and its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// All variables whose names and values are UTF-8.
    pub(crate) variables: BTreeMap<String, String>,
    /// The names of variables whose values are not UTF-8.
    pub(crate) not_utf8: BTreeSet<String>,
    /// The path of the program; `None` if the system does not say.
    pub(crate) program: Option<String>,
    /// The working folder.
    pub(crate) folder: PathBuf,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
}

impl Environment {
    /// Reads the environment.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn read() -> Self {
        let (mut variables, mut not_utf8) = (BTreeMap::new(), BTreeSet::new());
        for (name, value) in std::env::vars_os() {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => _ = variables.insert(name, value),
                (Ok(name), Err(_)) => _ = not_utf8.insert(name),
                (Err(_), _) => {}
            }
        }
        Self {
            arguments: std::env::args_os().collect(),
            variables,
            not_utf8,
            program: std::env::current_exe()
                .ok()
                .and_then(|path| path.into_os_string().into_string().ok()),
            folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Returns a variable, unless it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Returns the time of `SOURCE_DATE_EPOCH`.
    ///
    /// # Errors
    /// If the variable is not a number of seconds.
    pub(crate) fn epoch(&self) -> Result<Option<Timestamp>, String> {
        let Some(text) = self.get("SOURCE_DATE_EPOCH") else {
            return Ok(None);
        };
        let seconds = text.parse().ok();
        let moment = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
        match moment {
            Some(moment) => Ok(Some(moment)),
            None => Err(format!(
                "`SOURCE_DATE_EPOCH={text}`: expected seconds since 1970, such as 1795219200"
            )),
        }
    }

    /// Returns true if a stream is coloured with `--color auto`.
    pub(crate) fn wants_colour(&self, is_terminal: bool) -> bool {
        if self.get("NO_COLOR").is_some() {
            return false;
        }
        if self.get("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
            return true;
        }
        is_terminal && self.get("TERM").is_none_or(|term| term != "dumb")
    }

    /// Returns true if this session can probably open a browser window: a person started the program, not over SSH, with a display.
    pub(crate) fn has_browser(&self) -> bool {
        let has_display = cfg!(target_os = "macos")
            || self.get("DISPLAY").is_some()
            || self.get("WAYLAND_DISPLAY").is_some();
        self.stderr_is_terminal && has_display && self.get("SSH_CONNECTION").is_none()
    }

    /// Returns true if bars may be drawn on standard error. Logs of continuous integration would keep every frame.
    pub(crate) fn may_draw(&self) -> bool {
        self.stderr_is_terminal
            && self.get("CI").is_none()
            && self.get("TERM").is_none_or(|term| term != "dumb")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Environment {
        let pairs = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Environment {
            variables: pairs.collect(),
            stderr_is_terminal: true,
            ..Environment::default()
        }
    }

    #[test]
    fn a_source_date_epoch_is_in_seconds() {
        let epoch = with(&[("SOURCE_DATE_EPOCH", "1795219199")]).epoch();
        assert_eq!(epoch.unwrap().unwrap().to_string(), "2026-11-20T23:59:59Z");
        assert_eq!(with(&[("SOURCE_DATE_EPOCH", "")]).epoch(), Ok(None));
        assert_eq!(
            with(&[("SOURCE_DATE_EPOCH", "yesterday")]).epoch(),
            Err(
                "`SOURCE_DATE_EPOCH=yesterday`: expected seconds since 1970, such as 1795219200"
                    .to_owned()
            )
        );
    }

    #[test]
    fn colours_and_bars_follow_the_terminal_unless_told_otherwise() {
        assert!(with(&[]).wants_colour(true));
        assert!(!with(&[]).wants_colour(false));
        assert!(!with(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]).wants_colour(true));
        assert!(with(&[("CLICOLOR_FORCE", "1")]).wants_colour(false));
        assert!(with(&[]).may_draw());
        assert!(!with(&[("CI", "true")]).may_draw());
        assert!(!with(&[("TERM", "dumb")]).may_draw());
    }
}
