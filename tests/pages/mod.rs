//! The pages of the docs hold: every command of the tutorial and the how-to pages is run, and its output compared.
//!
//! `BLESS=1 cargo test --test all pages` writes the real output into the pages.

mod generated;
mod links;
mod model;
mod page;
mod session;
mod steady;

use crate::remote::Cluster;
use crate::support::required::require;
use page::{Block, Shown, blocks};
use session::Session;
use std::path::Path;
use steady::steady;

/// Whether the pages take the output as it is now.
fn is_blessed() -> bool {
    std::env::var_os("BLESS").is_some()
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write(path: &str, text: &str) {
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(path), text).unwrap();
}

/// Does what a page says in an empty home folder, and compares all output that it shows.
#[track_caller]
fn follow(path: &str) {
    follow_in(path, |_| {});
}

/// As `follow`, in a home folder that was prepared.
#[track_caller]
fn follow_in(path: &str, prepare: impl FnOnce(&mut Session)) {
    let mut session = require!(Session::new());
    prepare(&mut session);
    let text = read(path);
    let mut wrong = Vec::new();
    // From the last to the first, so that the line numbers of earlier ones stay true.
    let mut changes = Vec::new();
    let all = blocks(&text);
    assert!(!all.is_empty(), "{path} has no block");
    for block in all {
        match block {
            Block::File {
                path: file,
                text,
                language,
            } => {
                session.write(&file, &text);
                for command in commands_of_file(&language, &text) {
                    let ran = session.run(&command);
                    if ran.code != 0 {
                        wrong.push(format!("{file}: `{command}` fails:\n{}", ran.text));
                    }
                }
            }
            Block::Console(commands) => {
                check(
                    path,
                    &text,
                    &mut session,
                    &commands,
                    &mut wrong,
                    &mut changes,
                );
            }
            Block::Unknown { line } => wrong.push(format!(
                "{path}:{line}: the block is neither a file nor `console`, so nothing runs it"
            )),
        }
    }
    if is_blessed() && !changes.is_empty() {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (place, output) in changes.into_iter().rev() {
            lines.splice(place, output);
        }
        write(path, &(lines.join("\n") + "\n"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

type Change = (std::ops::Range<usize>, Vec<String>);

/// Runs the commands of one block.
fn check(
    path: &str,
    text: &str,
    session: &mut Session,
    commands: &[Shown],
    wrong: &mut Vec<String>,
    changes: &mut Vec<Change>,
) {
    let lines: Vec<&str> = text.lines().collect();
    for (number, shown) in commands.iter().enumerate() {
        let ran = session.run(&shown.command);
        let wanted = lines[shown.lines.clone()].join("\n");
        let line = shown.lines.start;
        let is_told = commands
            .get(number + 1)
            .is_some_and(|it| it.command.contains("$?"));
        if ran.code != 0 && !is_told {
            wrong.push(format!(
                "{path}:{line}: `{}` ends with {}; show that by `echo $?`\n{}",
                shown.command, ran.code, ran.text
            ));
        }
        if steady(ran.text.trim_end()) == steady(wanted.trim_end()) {
            continue;
        }
        if is_blessed() {
            let output = ran
                .text
                .trim_end()
                .lines()
                .map(|line| line.trim_end().to_owned());
            changes.push((shown.lines.clone(), output.collect()));
        } else {
            wrong.push(format!(
                "{path}:{line}: `{}` prints something else (BLESS=1 takes it)\n--- on the page\n{wanted}\n--- printed\n{}",
                shown.command, ran.text
            ));
        }
    }
}

/// Returns the commands inside a file that another program would run: the lines of a crontab, the `run:` lines of a workflow.
fn commands_of_file(language: &str, text: &str) -> Vec<String> {
    let lines = text.lines();
    match language {
        "crontab" => lines
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.splitn(6, ' ').nth(5).unwrap().to_owned())
            .collect(),
        "yaml" => lines
            .filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("run: "))
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_tutorial_holds() {
    follow("docs/tutorial.md");
}

#[test]
fn the_page_on_python_scripts_holds() {
    follow("docs/how-to/python-scripts.md");
}

#[test]
fn the_page_on_csv_holds() {
    follow("docs/how-to/csv.md");
}

#[test]
fn the_page_on_models_holds() {
    let url = model::serve();
    follow_in("docs/how-to/ask-a-model.md", |session| {
        session.variable("ANTHROPIC_API_KEY", "sk-ant-example");
        session.replace(
            "anthropic = \"claude-sonnet-4-5\"\n",
            &format!("anthropic = \"claude-sonnet-4-5\"\nbase_url = \"{url}\"\n"),
        );
    });
}

#[test]
fn the_page_on_corrections_holds() {
    // The person who edits the workbook.
    let edit = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pages/edit_review.py");
    let filled = r#"{"row": {"Names": "Attika"}, "cells": {"Correct element type": "External wall", "Why": "a parapet counts as a wall here"}}"#;
    follow_in("docs/how-to/corrections-and-review.md", |session| {
        session.program(
            "libreoffice",
            &format!("exec python3 '{edit}' \"$@\" '{filled}'\n"),
        );
    });
}

#[test]
fn the_page_on_approvals_holds() {
    follow("docs/how-to/approve-a-stage.md");
}

#[test]
fn the_page_on_revisions_holds() {
    follow("docs/how-to/compare-revisions.md");
}

#[test]
fn the_page_on_cron_and_ci_holds() {
    follow("docs/how-to/cron-and-ci.md");
}

#[test]
fn the_page_on_many_workspaces_holds() {
    follow("docs/how-to/many-workspaces.md");
}

#[test]
fn the_page_on_coding_agents_holds() {
    follow_in("docs/how-to/coding-agent.md", |session| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pages/claude.py");
        session.program("claude", &format!("exec python3 '{script}' \"$@\"\n"));
    });
}

#[test]
fn the_page_on_audits_holds() {
    follow("docs/how-to/audit.md");
}

#[test]
fn the_page_on_traces_holds() {
    // The report shows the day of the run, so its digest changes with it.
    follow_in("docs/how-to/trace-a-value.md", |session| {
        session.variable("SOURCE_DATE_EPOCH", "1795478400");
    });
}

#[test]
fn the_page_on_reports_holds() {
    follow("docs/how-to/report.md");
}

#[test]
fn the_page_on_browsers_holds() {
    follow("docs/how-to/watch-in-a-browser.md");
}

#[test]
fn the_page_on_clusters_holds() {
    let cluster = require!(Cluster::start(1));
    follow_in("docs/how-to/cluster.md", |session| {
        session.variable("SLURM_CONF", &cluster.conf());
        let version = "[ \"$1\" = --version ] && { echo slurm-wlm 22.05.8; exit; }";
        session.program(
            "sbatch",
            &format!("{version}\nexec /usr/bin/sbatch \"$@\"\n"),
        );
    });
}

#[test]
fn every_how_to_page_is_followed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/how-to");
    let source = read("tests/pages/mod.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            source.contains(&format!("\"docs/how-to/{name}\"")),
            "no test follows docs/how-to/{name}"
        );
    }
}
