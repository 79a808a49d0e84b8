//! The pages of stages and batches: content, filters, pages, hostile values, and what can be done there.

use super::runs::hidden;
use super::server::Ui;
use crate::support::Project;

/// A stage of 120 batches, of which one fails its schema, and a stage whose name and description are markup.
fn project() -> Project {
    let project = Project::new(&[
        ("milepost.toml", "name = \"<script>alert(1)</script>\"\n"),
        (
            "stages/1_copy.toml",
            r#"description = "Copy <b>each</b> person"

[each.person]
path = "inputs/*.json"

[step]
command = ["sh", "-c", 'printf "\033[31mred\033[0m <script>\n" >&2; cp "$1" "$2"', "copy", "{{ person.path }}", "{{ paths.copy }}"]

[outputs]
copy = { path = "intermediate/{{ person.stem }}.json", schema = "schemas/person.schema.json" }
"#,
        ),
        (
            "schemas/person.schema.json",
            r#"{"type": "object", "properties": {"age": {"type": "integer"}}}"#,
        ),
    ]);
    for number in 1..120 {
        let age = if number == 7 {
            "\"old\"".to_owned()
        } else {
            number.to_string()
        };
        let path = format!("workspace/inputs/person_{number}.json");
        project.write(&path, format!("{{\"age\": {age}}}"));
    }
    project.write("workspace/inputs/<img src=x>.json", r#"{"age": 1}"#);
    project
}

/// The names of the batches in a table, in order.
fn batches(body: &str) -> Vec<&str> {
    let rows = body.split("<th scope=\"row\"><a href=\"").skip(1);
    rows.map(|row| {
        let (_, text) = row.split_once('>').unwrap();
        text.split_once('<').unwrap().0
    })
    .collect()
}

#[test]
fn a_stage_shows_its_batches_in_pages_by_filter_and_order() {
    let project = project();
    assert_eq!(project.run(&["--keep-going"]).code, 1);
    let ui = Ui::start(&project);
    let list = ui.get("stages");
    assert!(
        list.body.contains("119 of 120 batches built, 1 failed"),
        "{}",
        list.body
    );

    let first = ui.get("stage?stage=copy").body;
    assert!(first.contains("120 batches, page 1 of 2"), "{first}");
    assert!(
        first.contains("Copy &lt;b&gt;each&lt;/b&gt; person"),
        "{first}"
    );
    assert!(
        !first.contains("<script>alert") && !first.contains("<img"),
        "{first}"
    );
    let names = batches(&first);
    assert_eq!(names.len(), 100);
    assert_eq!(names[..3], ["&lt;img src=x&gt;", "person_1", "person_2"]);
    assert_eq!(batches(&ui.get("stage?stage=copy&page=2").body).len(), 20);

    let failed = ui.get("stage?stage=copy&status=failed").body;
    assert_eq!(batches(&failed), ["person_7"]);
    assert!(
        failed.contains("a whole number was expected at /age"),
        "{failed}"
    );
    let found = ui
        .get("stage?stage=copy&text=ERSON_11&order=name&descending=1")
        .body;
    let expected: Vec<String> = (110..120)
        .rev()
        .chain([11])
        .map(|n| format!("person_{n}"))
        .collect();
    assert_eq!(batches(&found), expected);
    // A number is a name of a stage, and its page has one address.
    assert_eq!(ui.get("stage?stage=1").status, 303);
    for (page, status) in [
        ("stage", 400),
        ("stage?stage=nothing", 400),
        ("stage?stage=copy&status=x", 400),
        ("stage?stage=copy&page=-1", 400),
        ("batch?stage=copy&batch=nothing", 400),
        ("accept", 405),
    ] {
        assert_eq!(ui.get(page).status, status, "{page}");
    }
    let why = ui.wait_for("stage?stage=copy", "1 batch will run");
    assert!(why.contains("copy/person_7: will run"), "{why}");
    assert!(
        ui.get("why?of=copy/person_7")
            .body
            .contains("failed last time")
    );
}

#[test]
fn a_batch_shows_reasons_files_violations_and_its_log() {
    let project = project();
    project.run(&["--keep-going"]);
    let ui = Ui::start(&project);
    let failed = ui.get("batch?stage=copy&batch=person_7").body;
    for text in [
        "will run\n  failed last time: SCHEMA",
        "<code>/age</code> &quot;old&quot; is a string, a whole number was expected",
        "plan?target=copy%2Fperson_7&amp;failed=1",
        "\\u001b[31mred\\u001b[0m &lt;script&gt;",
        "/intermediate/person_7.json",
    ] {
        assert!(failed.contains(text), "no {text:?} in {failed}");
    }
    assert!(
        !failed.contains('\u{1b}') && !failed.contains("name=\"why\""),
        "{failed}"
    );
    let built = ui.get("batch?stage=copy&batch=person_1").body;
    for text in [
        "up to date: inputs and outputs match the record",
        "<span class=\"state matches\">matches</span>",
        "No earlier version is kept.",
    ] {
        assert!(built.contains(text), "no {text:?} in {built}");
    }
}

#[test]
fn a_modified_output_is_accepted_with_reason_and_name() {
    let project = project();
    project.run(&["--keep-going"]);
    project.write("workspace/intermediate/person_2.json", r#"{"age": 3}"#);
    let ui = Ui::start(&project);
    let page = "batch?stage=copy&batch=person_2";
    let shown = ui.get(page).body;
    assert!(
        shown.contains("name=\"why\" value=\"\" required"),
        "{shown}"
    );
    assert!(
        shown.contains("<span class=\"state modified\">modified</span>"),
        "{shown}"
    );
    let digest = hidden(&shown, "shown");
    let of = |why, who| {
        [
            ("stage", "copy"),
            ("batch", "person_2"),
            ("shown", digest),
            ("why", why),
            ("who", who),
        ]
    };
    let without = ui.post("accept", &of("  ", "Ann"));
    assert_eq!(without.status, 400, "{}", without.body);
    assert!(without.body.contains("give a reason"), "{}", without.body);
    // Between the page and the button, the file is modified again: nothing is accepted.
    project.write("workspace/intermediate/person_2.json", r#"{"age": 4}"#);
    let changed = ui.post("accept", &of("checked", "Ann"));
    let location = format!("{}/{page}&changed=1&why=checked", ui.root);
    assert_eq!(
        (changed.status, changed.header("location")),
        (303, Some(location.as_str()))
    );
    let again = ui.get(&format!("{page}&changed=1&why=checked")).body;
    assert!(
        again.contains("Nothing was accepted: ")
            && again.contains("name=\"why\" value=\"checked\""),
        "{again}"
    );
    assert_eq!(
        ui.post("accept", &of("checked", "Ann")[..2]).status,
        400,
        "nothing was shown"
    );
    project.write("workspace/intermediate/person_2.json", r#"{"age": 3}"#);
    let accepted = ui.post("accept", &of("checked <b>", "Ann"));
    let location = format!("{}/{page}", ui.root);
    assert_eq!(
        (accepted.status, accepted.header("location")),
        (303, Some(location.as_str()))
    );
    let shown = ui.get(page).body;
    assert!(shown.contains("modified by hand, accepted"), "{shown}");
    assert!(
        shown.contains("accepted by Ann") && shown.contains("checked &lt;b&gt;"),
        "{shown}"
    );
    let records = project.records();
    let record = records
        .iter()
        .find(|record| record["kind"] == "accepted")
        .unwrap();
    assert_eq!(record["data"]["batch"], "person_2");

    // A rebuild sets a modified file aside: what differs is shown.
    project.write("workspace/intermediate/person_5.json", r#"{"age": 55}"#);
    let ran = project.run_unplanned(&["--force", "copy/person_5"]);
    // The failed batch is left.
    assert_eq!(ran.code, 3, "{}", ran.output);
    let shown = ui.get("batch?stage=copy&batch=person_5").body;
    let difference = "<code>/age</code></th><td>55</td><td>5</td>";
    assert!(shown.contains(difference), "{shown}");
}

#[test]
fn a_stage_that_waits_for_a_person_is_approved() {
    let project = Project::letters();
    project.edit(
        "stages/2_join.toml",
        "[step]",
        "[approve]\nby = \"reviewer\"\n\n[step]",
    );
    assert_eq!(project.run(&[]).code, 3);
    let ui = Ui::start(&project);
    let shown = ui.wait_for("stage?stage=join", ">Approve<");
    assert!(
        shown.contains("waiting for approval by reviewer: 1 batch"),
        "{shown}"
    );
    // The plan of the stage is beside the form.
    assert!(
        shown.contains("needs approval by reviewer: 1 batch"),
        "{shown}"
    );
    let approve = |digest: &str| {
        let stage = [("stage", "join"), ("shown", digest)];
        let person = [("why", "read them"), ("who", "Ann")];
        let approved = ui.post("approve", &[stage, person].concat());
        let location = approved.header("location").map(str::to_owned);
        (approved.status, location)
    };
    let join = |more: &str| Some(format!("{}/stage?stage=join{more}", ui.root));
    assert_eq!(approve("").0, 400, "nothing was shown");
    // Between the page and the button, an input changes: nothing is approved.
    project.write("workspace/inputs/person_1.json", r#"{"name": "Di"}"#);
    assert_eq!(project.run(&[]).code, 3);
    assert_eq!(
        approve(hidden(&shown, "shown")),
        (303, join("&changed=1&why=read+them"))
    );
    let changed = ui.wait_for("stage?stage=join&changed=1&why=read+them", ">Approve<");
    assert!(changed.contains("name=\"why\" value=\"read them\""));
    assert!(changed.contains("Nothing was approved: "), "{changed}");
    // The page for review has the same form.
    let review = ui.get("approvals").body;
    let digest = hidden(&review, "shown");
    assert_eq!(digest, hidden(&changed, "shown"));
    assert!(review.contains(">Approve<"), "{review}");
    assert_eq!(approve(digest), (303, join("")));
    assert!(!ui.get("approvals").body.contains(">Approve<"));
    let approved = ui.get("stage?stage=join").body;
    assert!(
        approved.contains("<dt>Approved</dt><dd>1 batch by Ann as reviewer on ")
            && approved.contains(": read them</dd>")
            && !approved.contains(">Approve<"),
        "{approved}"
    );
    project.run(&[]).expect(0, &["join"]);
    let records = project.records();
    let approvals = records.iter().filter(|record| record["kind"] == "approved");
    assert_eq!(approvals.count(), 1);
}

#[test]
fn batches_that_no_run_has_started_are_listed_with_their_reasons() {
    let project = project();
    let ui = Ui::start(&project);
    let due = |body: &str| {
        let rows = body.split("<a class=\"due\" href=\"").skip(1);
        let names = rows.map(|row| row.split_once('>').unwrap().1.split('<').next().unwrap());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let shown = ui.wait_for("stage?stage=copy", "Batches that are not up to date");
    assert!(shown.contains("No run has started a batch."), "{shown}");
    assert!(
        shown.contains("120 batches; the first 100 are listed"),
        "{shown}"
    );
    assert_eq!(due(&shown).len(), 100);
    let some = ui.get("stage?stage=copy&text=ERSON_11").body;
    assert!(some.contains("120 batches, 11 with this name"), "{some}");
    let expected: Vec<String> = [11]
        .into_iter()
        .chain(110..120)
        .map(|n| format!("person_{n}"))
        .collect();
    assert_eq!(due(&some), expected);
    assert!(some.contains("<td><pre>will run\n  "), "{some}");
}

#[test]
fn a_batch_shows_what_the_last_run_changed_in_each_output() {
    let project = project();
    project.run(&["--keep-going"]);
    let ui = Ui::start(&project);
    let page = "batch?stage=copy&batch=person_1";
    let change = |word: &str, before: &str, after: usize| {
        (
            format!(">{word}</span>"),
            format!("<td class=\"number\">{before}</td>"),
            format!("<td class=\"number\">{after}</td>"),
        )
    };
    let has = |(word, before, after): (String, String, String)| {
        let body = ui.get(page).body;
        let start = body.find("id=\"difference\"").unwrap();
        let section = body[start..].split("</section>").next().unwrap();
        assert!(
            section.contains(&word) && section.contains(&before) && section.contains(&after),
            "{section}"
        );
        assert!(section.contains("A rerun replaces the bytes"), "{section}");
    };
    has(change("new", "", 10));
    project.run_unplanned(&["--force", "copy/person_1"]);
    has(change("same bytes", "10", 10));
    project.write("workspace/inputs/person_1.json", r#"{"age": 1000}"#);
    project.run(&["copy/person_1"]);
    has(change("changed", "10", 13));
}
