//! Files of the project that a command names by a relative path, which does not exist where the command runs.

use crate::base::path::RelPath;
use crate::decl::problem::{Problem, SourceFile};
use crate::decl::tables::located_text::LocatedText;
use crate::decl::tables::tree::TomlNode;
use crate::decl::values::reader::ValueReader;
use crate::expr::shell::script_of;
use std::ops::Range;

/// Programs whose first argument that is no flag is the script that they run.
const INTERPRETERS: [&str; 19] = [
    "Rscript", "awk", "bash", "bun", "dash", "deno", "gawk", "julia", "lua", "node", "perl", "php",
    "pwsh", "python", "python2", "python3", "ruby", "sh", "zsh",
];

/// Flags that no script file follows: the script is an argument, or a module runs.
const INLINE: [&str; 8] = ["-c", "-e", "-E", "-m", "-r", "-p", "-s", "--eval"];

impl ValueReader<'_> {
    /// Reports the files of the project that the words of a command name by a relative path. One that the command would
    /// run is a mistake, since it cannot be there; any other may be a word that is no path: a warning.
    pub(crate) fn relative_files(&mut self, file: &SourceFile, items: &[TomlNode], shell: bool) {
        if shell {
            if let [item] = items {
                self.relative_in_script(file, item);
            }
            return;
        }
        let texts: Vec<&str> = items.iter().filter_map(TomlNode::text).collect();
        let script = script_of(texts.iter().copied());
        let run = run_by(&texts);
        for (at, (item, text)) in items.iter().zip(&texts).enumerate() {
            let Some(path) = self
                .file_of_the_project(text)
                .filter(|_| Some(at) != script)
            else {
                continue;
            };
            let problem =
                wrong(file, item.span.clone(), &path).help(format!("write \"project:{path}\""));
            if run == Some(at) {
                self.report.add(problem);
            } else if at > 0 && text.contains(['/', '.']) {
                self.report.warn(problem);
            }
        }
    }

    /// The same of a command that is one string: of its first words only, as what follows may go somewhere else first.
    fn relative_in_script(&mut self, file: &SourceFile, item: &TomlNode) {
        let Some(text) = item.text() else { return };
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some(at) = run_by(&words) else { return };
        let Some(path) = self.file_of_the_project(words[at]) else {
            return;
        };
        let start = words[at].as_ptr() as usize - text.as_ptr() as usize;
        let spot = LocatedText {
            file,
            key: "command",
            text,
            span: item.span.clone(),
        };
        let span = spot.problem_at(&(start..start + words[at].len()), "").span;
        let before: String = words[..at]
            .iter()
            .map(|word| format!("\"{word}\", "))
            .collect();
        let help = format!("write a list: command = [{before}\"project:{path}\", …]");
        self.report
            .add(wrong(file, span.unwrap_or(item.span.clone()), &path).help(help));
    }

    /// Returns the file of the project that a relative path names.
    fn file_of_the_project(&self, text: &str) -> Option<RelPath> {
        let path = RelPath::parse(text.strip_prefix("./").unwrap_or(text)).ok()?;
        let is_file = self.exists(&path) && self.files.list(path.as_str()).is_empty();
        is_file.then_some(path)
    }
}

/// Returns the position of the word that is run as a file: the program, if it is a path, or the script of an interpreter.
fn run_by(words: &[&str]) -> Option<usize> {
    let program = *words.first()?;
    if program.contains('/') && !program.starts_with('/') && !program.starts_with("project:") {
        return Some(0);
    }
    let name = program.rsplit('/').next().unwrap_or(program);
    if !INTERPRETERS.contains(&name) {
        return None;
    }
    let (at, word) = words
        .iter()
        .enumerate()
        .skip(1)
        .find(|(_, word)| !word.starts_with('-') || INLINE.contains(word))?;
    (!INLINE.contains(word)).then_some(at)
}

fn wrong(file: &SourceFile, span: Range<usize>, path: &RelPath) -> Problem {
    let message = format!(
        "`{path}` is a file of the project, and the command runs in a scratch folder without it"
    );
    file.problem(span, message).label("a relative path")
}

#[cfg(test)]
mod tests {
    use super::run_by;

    #[test]
    fn the_word_that_is_run_is_known() {
        for (words, at) in [
            ("tools/x.py a", Some(0)),
            ("./x.py", Some(0)),
            ("/bin/x a", None),
            ("x.py a", None),
            ("python3 x.py a", Some(1)),
            ("/usr/bin/python3 -u -B x.py", Some(3)),
            ("python3 -m x", None),
            ("sh -c x", None),
            ("cp a b", None),
            ("", None),
        ] {
            let words: Vec<&str> = words.split_whitespace().collect();
            assert_eq!(run_by(&words), at, "{words:?}");
        }
    }
}
