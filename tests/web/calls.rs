//! The pages of calls: the table with its sums and filters, and one call with its prompt and its answer.

use super::server::Ui;
use crate::agents::pipeline::{Served, speller, things};

#[test]
fn calls_are_listed_with_sums_and_shown_whole() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    project.run(&["--agent", "speller=chat"]);
    let records = project.records();
    let run = records[0]["run_id"].as_str().unwrap();
    let ui = Ui::start(&project);
    let all = ui.get("calls").body;
    for text in [
        "2 calls",
        "<th scope=\"row\"><a href=\"",
        "agent=chat",
        &format!("call?run={run}&amp;number=2"),
        "<option value=\"ask\">ask</option>",
        "answered",
    ] {
        assert!(all.contains(text), "no {text:?} in {all}");
    }
    let newest = all.find("number=2").unwrap();
    assert!(
        newest < all.find("number=1\"").unwrap(),
        "the newest is first"
    );
    let one = ui.get("calls?batch=batch_2&stage=ask").body;
    assert!(one.contains("Selected: 1 call"), "{one}");
    for none in [
        "agent=nobody",
        "day=1999-01-01",
        "outcome=auth",
        "stage=split",
    ] {
        let page = ui.get(&format!("calls?{none}"));
        assert_eq!(page.status, 200);
        assert!(
            page.body.contains("No call matches."),
            "{none}: {}",
            page.body
        );
    }

    let call = ui.get(&format!("call?run={run}&number=1")).body;
    for text in [
        "Write each name in capitals.",
        "<dt>Requested model</dt><dd>gpt-5.1</dd>",
        "NAME 0",
        "batch_1",
        &format!(".milepost/calls/{run}/000001.request"),
    ] {
        assert!(call.contains(text), "no {text:?} in {call}");
    }
    assert!(!call.contains("Bearer"), "{call}");
    for wrong in [
        "call",
        "call?run=x&number=1",
        "call?run=../x&number=1",
        "call?run=x&number=y",
    ] {
        assert_eq!(ui.get(wrong).status, 400, "{wrong}");
    }
    let batch = ui.get("batch?stage=ask&batch=batch_1").body;
    assert!(
        batch.contains(&format!("call?run={run}&amp;number=1")),
        "{batch}"
    );
}

#[test]
fn the_page_shows_what_is_left_of_each_limit() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    let declared = project.read("milepost.toml");
    let limits = "[limits]\nusd = 1\ntokens = 100000\ncalls = 10\n";
    project.write("milepost.toml", format!("{declared}\n{limits}"));
    let ui = Ui::start(&project);
    let none = ui.get("calls").body;
    let whole = "no agent was called yet; left: $1.0000 of $1.0000, 100,000 of 100,000 tokens, 10 of 10 calls";
    assert!(none.contains(whole), "{none}");
    project.run(&["--agent", "speller=chat"]);
    let status = project.command(&["status", "--json"]).output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    let left = &told["money"]["tokens"]["left"];
    let shown = ui.get("calls").body;
    assert!(shown.contains("8 of 10 calls"), "{shown}");
    let left = left.as_u64().unwrap();
    let tokens = format!("{},{:03} of 100,000 tokens", left / 1000, left % 1000);
    assert!(shown.contains(&tokens), "no {tokens:?} in {shown}");
}

#[test]
fn without_calls_and_limits_the_page_says_so() {
    let project = crate::support::Project::letters();
    let ui = Ui::start(&project);
    let page = ui.get("calls");
    assert_eq!(page.status, 200);
    assert!(
        page.body
            .contains("No agent was called, and no limit is declared."),
        "{}",
        page.body
    );
}

#[test]
fn invalid_answers_are_marked_and_can_be_selected() {
    let served = Served::new("badly:1");
    let project = speller(served.port, "badly:1");
    project.write("workspace/inputs/things.json", things(40).to_string());
    project.run_unplanned(&["-k", "--agent", "speller=chat"]);
    let records = project.records();
    let is_refused = |record: &&serde_json::Value| record["kind"] == "answers_refused";
    let refused: Vec<&serde_json::Value> = records.iter().filter(is_refused).collect();
    assert!(!refused.is_empty());
    let ui = Ui::start(&project);
    let all = ui.get("calls").body;
    let number = refused.len();
    let link = format!("calls?outcome=invalid\">{number} with an invalid answer</a>");
    assert!(all.contains(&link), "no {link:?} in {all}");
    let marked = all.matches("<tr class=\"invalid\">").count();
    assert_eq!(marked, number);
    let selected = ui.get("calls?outcome=invalid").body;
    assert!(
        selected.contains(&format!("Selected: {number} call")),
        "{selected}"
    );
    assert_eq!(selected.matches("<tr class=\"invalid\">").count(), number);
    let first = &refused[0]["data"];
    let run = refused[0]["run_id"].as_str().unwrap();
    let call = ui
        .get(&format!("call?run={run}&number={}", first["number"]))
        .body;
    for text in [
        "<span class=\"state failed\">invalid</span>",
        "Violations in the answer",
    ] {
        assert!(call.contains(text), "no {text:?} in {call}");
    }
    let batch = first["batch"].as_str().unwrap();
    let of_batch = ui.get(&format!("batch?stage=ask&batch={batch}")).body;
    assert!(of_batch.contains("<tr class=\"invalid\">"), "{of_batch}");
}
