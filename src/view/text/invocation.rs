//! How the program was called, so that suggested commands work in the same place.

use crate::view::text::words::shell_word;
use std::path::{Path, PathBuf};

/// How the program was called.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The program with the flags for project and workspace, such as `milepost -C house`.
    pub milepost: String,
    /// The flags that a suggested run repeats, such as `--agent classifier=claude`.
    pub flags: Vec<String>,
    /// The parameters that `--set` gave values.
    pub set: Vec<String>,
    /// The working folder.
    pub folder: PathBuf,
}

impl Invocation {
    /// Returns a command line such as `milepost log classify/batch_3`, quoted for a shell.
    pub(crate) fn line(&self, words: &[&str]) -> String {
        let mut all = vec![self.milepost.clone()];
        all.extend(words.iter().map(|word| shell_word(word)));
        all.join(" ")
    }

    /// Returns the command line of a run, such as `milepost run --agent classifier=claude classify`.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let flags = self.flags.iter().map(String::as_str);
        let all: Vec<&str> = std::iter::once("run")
            .chain(flags)
            .chain(words.iter().copied())
            .collect();
        self.line(&all)
    }

    /// Returns a path relative to the working folder, if it is inside.
    pub(crate) fn near(&self, path: &str) -> String {
        match Path::new(path).strip_prefix(&self.folder) {
            Ok(rest) if !rest.as_os_str().is_empty() => rest.display().to_string(),
            Ok(_) => ".".to_owned(),
            Err(_) => path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_commands_can_be_typed() {
        let invocation = Invocation {
            milepost: "milepost -C house".to_owned(),
            flags: vec!["--agent".to_owned(), "a=b".to_owned()],
            set: Vec::new(),
            folder: PathBuf::from("/home/ada"),
        };
        assert_eq!(
            invocation.line(&["log", "grade/J Smith"]),
            "milepost -C house log 'grade/J Smith'"
        );
        assert_eq!(
            invocation.run(&["-k"]),
            "milepost -C house run --agent a=b -k"
        );
        assert_eq!(
            invocation.near("/home/ada/house/workspace"),
            "house/workspace"
        );
        assert_eq!(invocation.near("/home/ada"), ".");
        assert_eq!(invocation.near("/home/adam"), "/home/adam");
    }
}
