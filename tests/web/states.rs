//! Every screen shows the same word for the state of a stage: run, status, graph and pages.

use super::server::Ui;
use crate::support::Project;

/// A stage with its state.
type States<'a> = [(&'a str, &'a str); 2];

/// Checks the state of both stages on every screen. `run` is the summary of the last run, if there was one.
#[track_caller]
fn check(project: &Project, run: Option<&str>, states: States<'_>) {
    let status = project.output("status").out;
    let graph = project.output("graph").out;
    let mermaid = project.output("graph --format mermaid").out;
    let svg = project.output("graph --format svg").out;
    let ui = Ui::start(project);
    for (stage, word) in states {
        let first_words = |text: &str| -> Vec<String> {
            let rows = text.lines().filter_map(|line| {
                let line = line.trim_start_matches([' ', '1', '2']);
                let (name, rest) = line.split_once("  ")?;
                (name.trim() == stage).then_some(rest.trim_start())
            });
            let until = rows.map(|rest| rest.split("  ").next().unwrap());
            let until = until.map(|text| text.split(", ").next().unwrap().to_owned());
            until.collect()
        };
        if let Some(run) = run {
            assert_eq!(first_words(run), [word], "{run}");
        }
        assert_eq!(first_words(&status), [word], "{status}");
        assert_eq!(first_words(&graph), [word], "{graph}");
        let class = word.replace(' ', "-");
        let box_of_stage = format!(" {stage}<br/>");
        let line = mermaid.lines().find(|line| line.contains(&box_of_stage));
        assert!(
            line.unwrap().ends_with(&format!("<br/>{word}\"]")),
            "{mermaid}"
        );
        let title = format!(" {stage}: {word}");
        assert!(svg.contains(&title), "{title}: {svg}");
        let mark = format!("<span class=\"state {class}\">{word}</span>");
        ui.wait_for("", &format!(">{stage}</a></td>\n  <td>{mark}</td>"));
        ui.wait_for("stages", &format!("{stage}</a> {mark}</h2>"));
        ui.wait_for(
            &format!("stage?stage={stage}"),
            &format!("{stage} {mark}</h1>"),
        );
    }
}

#[test]
fn every_screen_shows_the_same_word_for_a_state() {
    let project = Project::letters();
    let both_out = [("copy", "out of date"), ("join", "out of date")];
    check(&project, None, both_out);
    let run = project.output("run --limit 1");
    check(&project, Some(&run.out), both_out);
    let run = project.output("run");
    check(
        &project,
        Some(&run.out),
        [("copy", "up to date"), ("join", "up to date")],
    );
    let status = project.output("status --json").out;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["stages"][0]["state"], "up_to_date");
    assert_eq!(status["stages"][0]["status"], "complete");

    project.edit("workspace/outputs/page.txt", "Ann", "Anna");
    let run = project.output("run");
    check(
        &project,
        Some(&run.out),
        [("copy", "up to date"), ("join", "modified")],
    );
}

#[test]
fn failures_have_one_word_on_every_screen() {
    let project = Project::letters();
    project.write("workspace/inputs/person_2.json", "{}");
    let run = project.output("run");
    check(
        &project,
        Some(&run.out),
        [("copy", "failed"), ("join", "out of date")],
    );
    let run = project.output("run --keep-going");
    check(
        &project,
        Some(&run.out),
        [("copy", "partial"), ("join", "out of date")],
    );
}

#[test]
fn a_stage_that_waits_has_one_word_on_every_screen() {
    let project = Project::letters();
    project.edit(
        "stages/1_copy.toml",
        "[step]",
        "[approve]\nby = \"reviewer\"\n\n[step]",
    );
    let run = project.output("run");
    assert!(run.out.contains("\nwaiting after …\n"), "{}", run.out);
    let status = project.output("status").out;
    let last = "idle; the last run finished";
    assert!(!status.contains(last), "nothing was recorded: {status}");
    check(
        &project,
        Some(&run.out),
        [("copy", "waiting"), ("join", "out of date")],
    );
}
