//! Dates: a file bears that of the run that wrote it; what depends on the day declares it.

use crate::support::Project;
use serde_json::json;

/// 22 November 2026, 09:30:15, and noon of the day after, as `SOURCE_DATE_EPOCH`.
const MOMENTS: [&str; 2] = ["1795339815", "1795435200"];

/// A report that says when it was written, as JSON, text, PDF and in its name.
fn reports() -> Project {
    let mut project = Project::new(&[
        ("milepost.toml", "name = \"reports\"\n"),
        (
            "stages/1_report.toml",
            r#"
[inputs]
text = "inputs/text.md"

[[step]]
jq = '{text: $text, run: $run, created: $workspace.created}'
out = "moment"

[[step]]
render = "templates/report.md"
out = "report"

[[step]]
pdf = "report"
out = "document"

[outputs]
moment = { path = "outputs/moment.json", schema = false }
report = "outputs/{{ run.date }}-report.md"
document = "outputs/report.pdf"
"#,
        ),
        (
            "templates/report.md",
            "# Report\n\nWritten on {{ run.date }} at {{ run.time }} ({{ run.timestamp }}).\n",
        ),
        ("workspace/inputs/text.md", "First.\n"),
    ]);
    project.env("SOURCE_DATE_EPOCH", MOMENTS[0]);
    project
}

/// A stage that takes the scope whole.
const WHOLE: &str =
    "[step]\njq = 'keys'\n\n[outputs]\nwhole = { path = \"outputs/whole.json\", schema = false }\n";

#[test]
fn a_file_bears_the_date_of_the_run_that_wrote_it() {
    let mut project = reports();
    project.run(&[]).expect(0, &["report"]);
    assert_eq!(
        project.read("workspace/outputs/2026-11-22-report.md"),
        "# Report\n\nWritten on 2026-11-22 at 09:30:15 (2026-11-22T09:30:15Z).\n"
    );
    let moment = json!({
        "text": "First.\n",
        "run": {"date": "2026-11-22", "time": "09:30:15", "timestamp": "2026-11-22T09:30:15Z"},
        "created": "2026-11-22T09:30:15Z",
    });
    assert_eq!(project.json("workspace/outputs/moment.json"), moment);
    let before = project.output_digests();

    // The next day is no reason to write anything anew.
    project.env("SOURCE_DATE_EPOCH", MOMENTS[1]);
    assert_eq!(project.run(&[]).expect(0, &[]).records.len(), 0);
    assert_eq!(project.output_digests(), before);

    // Another text is one, and then everything bears the day on which it was written.
    project.write("workspace/inputs/text.md", "Second.\n");
    project.run(&[]).expect(0, &["report"]);
    let moment = json!({
        "text": "Second.\n",
        "run": {"date": "2026-11-23", "time": "12:00:00", "timestamp": "2026-11-23T12:00:00Z"},
        "created": "2026-11-22T09:30:15Z",
    });
    assert_eq!(project.json("workspace/outputs/moment.json"), moment);
    // The report of the day before stays, because its path names the run.
    assert_eq!(
        project.list("outputs"),
        [
            "2026-11-22-report.md",
            "2026-11-23-report.md",
            "moment.json",
            "report.pdf"
        ]
    );
    assert_ne!(
        project.output_digests()["outputs/report.pdf"],
        before["outputs/report.pdf"]
    );
}

#[test]
fn results_named_by_the_run_are_a_history() {
    let mut project = Project::new(&[
        ("milepost.toml", "name = \"history\"\n"),
        (
            "stages/1_test.toml",
            "[inputs]\ntext = \"inputs/text.json\"\n[[step]]\njq = '.text | if . == \"bad\" then error(\"bad\") else . end'\nout = \"result\"\n[outputs]\nresult = { path = \"results/{{ run.date }}.json\", schema = false }\n",
        ),
        (
            "stages/2_trend.toml",
            "[inputs]\nall = \"results/*.json\"\n[step]\njq = '.all'\n[outputs]\ntrend = { path = \"trend.json\", schema = false }\n",
        ),
        ("workspace/inputs/text.json", "1"),
    ]);
    project.env("SOURCE_DATE_EPOCH", MOMENTS[0]);
    project.run(&[]).expect(0, &["test", "trend"]);
    project.env("SOURCE_DATE_EPOCH", MOMENTS[1]);
    project.run(&[]).expect(0, &[]);
    project.write("workspace/inputs/text.json", "2");
    project.run(&[]).expect(0, &["test", "trend"]);
    assert_eq!(project.json("workspace/trend.json"), json!([2]));
    // A rerun on the same day replaces the file, and one that fails takes none away.
    project.run(&["--force", "test"]).expect(0, &["test"]);
    project.write("workspace/inputs/text.json", "\"bad\"");
    project.run(&[]).expect(1, &["test"]);
    assert_eq!(
        project.list("results"),
        ["2026-11-22.json", "2026-11-23.json"]
    );
    assert_eq!(project.quarantine(), Vec::<String>::new());
    let (_, status) = project.milepost(&["status"]);
    assert!(!status.contains("untracked"), "{status}");
    assert_eq!(project.milepost(&["verify"]).0, 0);
}

#[test]
fn a_later_stage_reads_the_results_of_earlier_runs() {
    let mut project = Project::new(&[
        ("milepost.toml", "name = \"history\"\n"),
        (
            "stages/1_test.toml",
            "[inputs]\ntext = \"inputs/text.json\"\n[step]\njq = '.text'\n[outputs]\nresult = { path = \"results/{{ run.date }}.json\", schema = false }\n",
        ),
        (
            "stages/2_trend.toml",
            "[inputs]\nall = { path = \"results/*.json\", earlier = true }\n[step]\njq = '[$paths.all, .all]'\n[outputs]\ntrend = { path = \"trend.json\", schema = false }\n",
        ),
        ("workspace/inputs/text.json", "1"),
    ]);
    let trend = |project: &Project| project.json("workspace/trend.json");
    project.env("SOURCE_DATE_EPOCH", MOMENTS[0]);
    project.run(&[]).expect(0, &["test", "trend"]);
    assert_eq!(trend(&project), json!([["results/2026-11-22.json"], [1]]));
    project.env("SOURCE_DATE_EPOCH", MOMENTS[1]);
    project.run(&[]).expect(0, &[]);
    project.write("workspace/inputs/text.json", "2");
    project.run(&[]).expect(0, &["test", "trend"]);
    let both = json!([
        ["results/2026-11-22.json", "results/2026-11-23.json"],
        [1, 2]
    ]);
    assert_eq!(trend(&project), both);
    project.run(&[]).expect(0, &[]);
    // A rerun on the same day adds no entry. An earlier result may be removed, as a file in `inputs/` may.
    project.write("workspace/inputs/text.json", "3");
    project.run(&[]).expect(0, &["test", "trend"]);
    assert_eq!(trend(&project)[1], json!([1, 3]));
    project.remove("workspace/results/2026-11-22.json");
    project.run(&[]).expect(0, &["trend"]);
    assert_eq!(trend(&project), json!([["results/2026-11-23.json"], [3]]));

    project.edit("stages/2_trend.toml", "results/*.json", "results/a.json");
    let (code, said) = project.milepost(&["plan"]);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("`earlier` needs a pattern over files of the workspace"),
        "{said}"
    );
}

#[test]
fn what_takes_the_scope_whole_does_not_see_the_moment() {
    let project = reports();
    project.write("stages/2_whole.toml", WHOLE);
    project.run(&[]).expect(0, &["report", "whole"]);
    let names = json!([
        "agents",
        "digests",
        "env",
        "milepost",
        "params",
        "paths",
        "workspace"
    ]);
    assert_eq!(project.json("workspace/outputs/whole.json"), names);
}

#[test]
fn what_is_read_cannot_depend_on_the_moment() {
    let project = reports();
    project.edit(
        "stages/1_report.toml",
        "inputs/text.md",
        "inputs/{{ run.date }}.md",
    );
    project.write(
        "stages/2_whole.toml",
        "[step]\nagent = \"writer\"\nprompt = \"templates/report.md\"\n[outputs]\nwhole = { path = \"outputs/whole.json\", schema = false }\n",
    );
    project.edit(
        "milepost.toml",
        "\"reports\"",
        "\"reports\"\n[agents.writer]\njq = '1'",
    );
    let (code, said) = project.milepost(&["plan"]);
    assert_eq!(code, 4, "{said}");
    let message = "error: `run` is not available here: it differs in each run\n";
    assert_eq!(said.matches(message).count(), 4, "{said}");
    let help = "help: if the day affects results, declare `today = { type = \"date\", default = \"today\" }` in `[params]` and write `params.today`\n";
    assert!(said.contains(help), "{said}");
}

#[test]
fn a_stage_with_a_name_run_of_its_own_sees_that() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"runs\"\n"),
        (
            "stages/1_run.toml",
            "[each.run]\ncount = 2\n\n[step]\njq = '$run'\n\n[outputs]\none = { path = \"outputs/{{ run }}.json\", schema = false }\n",
        ),
    ]);
    project.run(&[]).expect(0, &["run/1", "run/2"]);
    assert_eq!(project.read("workspace/outputs/2.json"), "2\n");
}

#[test]
fn the_day_of_the_workspace_is_deprecated() {
    let project = reports();
    project.edit("templates/report.md", "run.date", "workspace.today");
    project.write(
        "stages/2_whole.toml",
        WHOLE.replace("keys", "$workspace.today"),
    );
    let (code, said) = project.milepost(&["plan"]);
    assert_eq!(code, 0, "{said}");
    for place in ["stages/2_whole.toml:2:8", "templates/report.md:3:15"] {
        let warning = format!(
            "warning: {place}: `workspace.today` is deprecated (to print a date, write `run.date`; "
        );
        assert!(said.contains(&warning), "{said}");
    }
    // `--quiet` prints warnings and errors.
    let (code, said) = project.milepost(&["run", "--quiet"]);
    assert_eq!(
        (code, said.as_str()),
        (
            0,
            "warning: 2 warnings about the declarations: `milepost plan` shows them\n"
        )
    );
    assert_eq!(
        project.read("workspace/outputs/whole.json"),
        "\"2026-11-22\"\n"
    );
}
