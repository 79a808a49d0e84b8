//! The help of commands, and their man pages.

use super::args::Cli;
use crate::view::text::words::some_of;
use clap::CommandFactory as _;
use clap::builder::Resettable;
use clap_mangen::Man;
use milepost_core::expr::place::nearest;
use milepost_engine::ops::project::OpsError;

/// Returns the help of a command, named by its words, or of the program.
///
/// # Errors
/// If there is no such command.
pub(crate) fn help(words: &[String]) -> Result<String, OpsError> {
    let mut cli = Cli::command();
    cli.build();
    let mut command = &mut cli;
    for (at, word) in words.iter().enumerate() {
        let names = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let names: Vec<String> = names.map(|command| command.get_name().to_owned()).collect();
        let Some(found) = command.find_subcommand_mut(word) else {
            return Err(OpsError::Usage(unknown(&words[..at], word, &names)));
        };
        command = found;
    }
    Ok(command.render_help().to_string())
}

fn unknown(parents: &[String], word: &str, names: &[String]) -> String {
    let known = names.iter().map(String::as_str);
    let meant = match (nearest(word, known.clone()), parents) {
        (Some(near), _) => format!(": did you mean `{near}`?"),
        (None, []) => String::new(),
        (None, _) if names.is_empty() => {
            format!(": `{}` has no commands", parents.join(" "))
        }
        (None, _) => format!("; available: {}", some_of(known, usize::MAX - 1)),
    };
    let all: Vec<&str> = parents.iter().map(String::as_str).chain([word]).collect();
    format!("there is no command `{}`{meant}", all.join(" "))
}

/// Returns the man pages of the program and of its commands, each with the name of its file.
///
/// # Errors
/// If a page cannot be rendered.
pub(crate) fn man_pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut cli = Cli::command();
    cli.build();
    let mut pages = Vec::new();
    add_pages(&cli, &mut pages)?;
    pages.sort();
    Ok(pages)
}

fn add_pages(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    for child in command
        .get_subcommands()
        .filter(|child| !child.is_hide_set())
    {
        add_pages(child, pages)?;
    }
    let source = concat!("milepost ", env!("CARGO_PKG_VERSION"));
    // A man page would join the lines of the examples.
    let man = Man::new(command.clone().after_help(Resettable::Reset));
    let man = man.source(source).manual("Milepost");
    let mut page = Vec::new();
    man.render(&mut page)?;
    if let Some(text) = command.get_after_help() {
        page.extend(examples(&text.to_string()).into_bytes());
    }
    pages.push((man.get_filename(), page));
    Ok(())
}

/// Returns the examples of a command as a section of a man page, line by line.
fn examples(text: &str) -> String {
    let lines = text.strip_prefix("Examples:\n").unwrap_or(text).lines();
    let escaped = |line: &str| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        if line.starts_with(['.', '\'']) {
            format!("\\&{line}\n")
        } else {
            format!("{line}\n")
        }
    };
    let lines: String = lines.map(escaped).collect();
    format!(".SH EXAMPLES\n.nf\n{lines}.fi\n")
}
