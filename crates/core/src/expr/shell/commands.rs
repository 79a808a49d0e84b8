//! The commands of a script, each as its words.

use super::pieces::{Piece, pieces};
use std::iter::Peekable;
use std::str::Chars;

/// Words before a command that are not programs themselves, or that start the program behind them.
const PREFIXES: [&str; 14] = [
    "!", "{", "command", "do", "elif", "else", "env", "exec", "if", "nohup", "then", "time",
    "until", "while",
];

/// Programs whose first argument that is not a flag is the script that they run.
const INTERPRETERS: [&str; 19] = [
    "Rscript", "awk", "bash", "bun", "dash", "deno", "gawk", "julia", "lua", "node", "perl", "php",
    "pwsh", "python", "python2", "python3", "ruby", "sh", "zsh",
];

/// Shells, whose flags may be joined.
const SHELLS: [&str; 4] = ["bash", "dash", "sh", "zsh"];

/// Flags that no script file follows: the script is an argument, or a module runs.
const INLINE: [&str; 8] = ["-c", "-e", "-E", "-m", "-r", "-p", "-s", "--eval"];

/// Flags of Python with an argument of their own.
const PYTHON_ARGUMENTS: [&str; 2] = ["-W", "-X"];

/// The placeholder of a value in the text of a script.
const VALUE: char = '\0';

/// Returns the commands of a script up to its first here-document, as far as they can be read without running it. A word that depends on
/// a value or a variable is empty.
pub(crate) fn commands(source: &str) -> Vec<Vec<String>> {
    let text: String = pieces(source)
        .iter()
        .flat_map(|piece| match piece {
            Piece::Text(text) => text.chars().collect::<Vec<_>>(),
            Piece::Value(_) => vec![VALUE],
        })
        .collect();
    let mut reader = CommandReader::default();
    reader.read(&mut text.chars().peekable());
    reader.end_command();
    while reader.leave() {}
    let mut commands = reader.done;
    for words in &mut commands {
        let is_prefix = |word: &String| {
            let name = word.strip_prefix("/usr/bin/").unwrap_or(word);
            PREFIXES.contains(&name) || is_assignment(word)
        };
        let prefixes = words.iter().take_while(|word| is_prefix(word)).count();
        words.drain(..prefixes);
    }
    commands.retain(|words| !words.is_empty());
    commands
}

/// Returns the position of the word that is run as a file: the program, if it is a path, or the script of an interpreter.
pub(crate) fn run_by(words: &[&str]) -> Option<usize> {
    let program = *words.first()?;
    if program.contains('/') && !program.starts_with('/') && !program.starts_with("project:") {
        return Some(0);
    }
    let name = program.rsplit('/').next().unwrap_or(program);
    if name == "env" {
        let others = words.iter().skip(1).take_while(|word| is_assignment(word));
        let before = 1 + others.count();
        return run_by(&words[before..]).map(|at| before + at);
    }
    if !INTERPRETERS.contains(&name) {
        return None;
    }
    let is_shell = SHELLS.contains(&name);
    let is_python = name.starts_with("python");
    let is_inline = |word: &str| match word.strip_prefix('-') {
        Some(flags) if is_shell => !flags.starts_with('-') && flags.contains(['c', 's']),
        _ => INLINE.contains(&word),
    };
    let mut at = 1;
    loop {
        let word = *words.get(at)?;
        if is_inline(word) {
            return None;
        }
        let is_flag = word.starts_with('-') || is_shell && word.starts_with('+');
        if !is_flag {
            return Some(at);
        }
        let has_argument = is_shell && !word.starts_with("--") && word.ends_with(['o', 'O'])
            || is_python && PYTHON_ARGUMENTS.contains(&word);
        at += 1 + usize::from(has_argument);
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

/// A command that is being read.
#[derive(Default)]
struct OpenCommand {
    words: Vec<String>,
    word: Option<String>,
    /// True if the word depends on a value, a variable or another command.
    is_unclear: bool,
    /// True if the next word is the file of a redirection.
    redirects: bool,
}

#[derive(Default)]
struct CommandReader {
    done: Vec<Vec<String>>,
    open: OpenCommand,
    /// The commands around the parentheses.
    outer: Vec<OpenCommand>,
}

impl CommandReader {
    fn read(&mut self, chars: &mut Peekable<Chars<'_>>) {
        while let Some(c) = chars.next() {
            match c {
                '\'' | '"' | '`' => self.quoted(c, chars),
                '\\' => match chars.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.push(escaped),
                },
                ' ' | '\t' => self.end_word(),
                '#' if self.open.word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
                '<' if chars.next_if_eq(&'<').is_some() => return,
                '<' | '>' => {
                    self.open.word.take_if(|word| word.parse::<u8>().is_ok());
                    self.end_word();
                    self.open.redirects = true;
                    while chars.next_if(|c| matches!(c, '>' | '&' | '|')).is_some() {}
                }
                '(' => {
                    if self.open.word.is_some() {
                        self.open.is_unclear = true;
                    }
                    self.outer.push(std::mem::take(&mut self.open));
                }
                ')' if self.leave() => {}
                ';' | '&' | '|' | '\n' | ')' => self.end_command(),
                c => self.push(c),
            }
        }
    }

    /// Reads a quoted text up to its end.
    fn quoted(&mut self, quote: char, chars: &mut Peekable<Chars<'_>>) {
        self.open.word.get_or_insert_default();
        self.open.is_unclear |= quote == '`';
        while let Some(c) = chars.next_if(|c| *c != quote) {
            match c {
                '$' | '`' if quote == '"' => self.open.is_unclear = true,
                '\\' if quote == '"' => _ = chars.next().map(|c| self.push(c)),
                c => self.open.word.get_or_insert_default().push(c),
            }
        }
        chars.next();
    }

    fn push(&mut self, c: char) {
        self.open.is_unclear |= matches!(c, VALUE | '$' | '*' | '?' | '~');
        self.open.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        let is_unclear = std::mem::take(&mut self.open.is_unclear);
        if let Some(word) = self.open.word.take() {
            let is_file = std::mem::take(&mut self.open.redirects);
            if !is_file {
                let is_read = !is_unclear || is_assignment(&word);
                self.open
                    .words
                    .push(if is_read { word } else { String::new() });
            }
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        let words = std::mem::take(&mut self.open).words;
        self.done.push(words);
    }

    /// Ends the command in parentheses and continues the one around them. Returns false outside of parentheses.
    fn leave(&mut self) -> bool {
        let Some(outer) = self.outer.pop() else {
            return false;
        };
        self.end_command();
        self.open = outer;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{commands, run_by};

    #[test]
    fn every_command_of_a_script_is_found() {
        for (script, expected) in [
            ("", vec![]),
            ("tr a-z A-Z < {{ a }} > {{ b }}", vec!["tr a-z A-Z"]),
            (
                "a | b && c || d; e & f\ng",
                vec!["a", "b", "c", "d", "e", "f", "g"],
            ),
            (
                "A=1 LC_ALL=C /opt/x/tool -n {{ v }}",
                vec!["/opt/x/tool -n "],
            ),
            ("if a; then b; else c; fi", vec!["a", "b", "c", "fi"]),
            (
                "for x in a b; do env Q=1 t $x 2>&1; done",
                vec!["for x in a b", "t ", "done"],
            ),
            ("x=$(date -u) y \"$(z)\"", vec!["date -u", "y "]),
            ("echo $(a b) c > d", vec!["a b", "echo  c"]),
            ("'my tool' \"x y\" # a | b\nc", vec!["my tool x y", "c"]),
            ("(a; b) > c | \"$d\" e", vec!["a", "b", " e"]),
            ("python3 - <<'E'\nimport x\nE", vec!["python3 -"]),
            ("case x in a) b ;; esac", vec!["case x in a", "b", "esac"]),
            ("{{ tool }} a \\\n b", vec![" a b"]),
            ("a )) ( ((", vec!["a"]),
            ("'unended", vec!["unended"]),
        ] {
            let found = commands(script);
            let found: Vec<String> = found.iter().map(|words| words.join(" ")).collect();
            assert_eq!(found, expected, "{script}");
        }
    }

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
            ("sh -ec x", None),
            ("sh -e x", Some(2)),
            ("bash -o pipefail -e x", Some(4)),
            ("bash -euo pipefail x", Some(3)),
            ("bash +e x", Some(2)),
            ("python3 -O x.py", Some(2)),
            ("python3 -X utf8 -W ignore x.py", Some(5)),
            ("node -e x", None),
            ("/usr/bin/env A=1 python3 x.py", Some(3)),
            ("cp a b", None),
            ("", None),
        ] {
            let words: Vec<&str> = words.split_whitespace().collect();
            assert_eq!(run_by(&words), at, "{words:?}");
        }
    }
}
