//! How and where the program was called, so that what is proposed can be typed there.

use super::words::shell_word;
use std::path::{Path, PathBuf};

/// How and where the program was called.
#[derive(Debug, Clone)]
pub struct Call {
    /// The program with the flags that name project and workspace: `milepost -C house`.
    pub milepost: String,
    /// The flags that a run must have again to be the same: `--agent classifier=claude`.
    pub flags: Vec<String>,
    /// The working folder.
    pub folder: PathBuf,
}

impl Call {
    /// A command line: `milepost log classify/batch_3`. Each word is quoted where a shell needs it.
    pub(crate) fn line(&self, words: &[&str]) -> String {
        let mut all = vec![self.milepost.clone()];
        all.extend(words.iter().map(|word| shell_word(word)));
        all.join(" ")
    }

    /// A run: `milepost run --agent classifier=claude classify`.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let flags = self.flags.iter().map(String::as_str);
        let all: Vec<&str> = std::iter::once("run")
            .chain(flags)
            .chain(words.iter().copied())
            .collect();
        self.line(&all)
    }

    /// A path as short as it can be written in the working folder.
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
    fn what_is_proposed_can_be_typed() {
        let call = Call {
            milepost: "milepost -C house".to_owned(),
            flags: vec!["--agent".to_owned(), "a=b".to_owned()],
            folder: PathBuf::from("/home/a/work"),
        };
        assert_eq!(
            call.line(&["log", "grade/J Smith"]),
            "milepost -C house log 'grade/J Smith'"
        );
        assert_eq!(call.run(&["-k"]), "milepost -C house run --agent a=b -k");
        assert_eq!(call.near("/home/a/work/house/workspace"), "house/workspace");
        assert_eq!(call.near("/home/a/work"), ".");
        assert_eq!(call.near("/home/a/workspace"), "/home/a/workspace");
    }
}
