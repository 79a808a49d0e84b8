//! The review page: items one at a time, and the batches of external agents, as a person answers them.

use super::server::{Reply, Ui};
use crate::situations::import_review::{ann, project as reviewed};
use crate::support::Project;
use milepost_core::base::digest::Digest;

const FIXES: &str = "workspace/inputs/fixes.csv";
const EMPTY: &str = "id,question,field,value,who,why\n";

/// The text of a page without its tags, with single blanks.
fn text(page: &str) -> String {
    let main = page.split("<main").nth(1).unwrap();
    let main = main.split("</main>").next().unwrap();
    let parts = main
        .split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    let words: Vec<&str> = parts.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

fn shows(reply: &Reply, what: &[&str]) {
    let text = text(&reply.body);
    for what in what {
        assert!(text.contains(what), "{what}: {text}");
    }
}

#[test]
fn items_are_decided_one_after_the_other() {
    let project = reviewed(EMPTY);
    let ui = Ui::start(&project);
    let ann = ann();
    let first = ui.get("review");
    shows(
        &first,
        &[
            "Item 1 of 3 that need a person",
            "Word Ann",
            &format!("Question {ann} Trace The decision applies to all records with it."),
            "Correct word now Ann 0 Keep this value 1 Anna die Erste",
        ],
    );
    let decision = [
        ("shared", ann.as_str()),
        ("place", "0"),
        ("field", "Correct size"),
        ("field", "Correct word"),
        ("choice:Correct size", ""),
        ("other:Correct size", ""),
        ("choice:Correct word", "value:anna"),
        ("who", "Ada Ö"),
        ("why", "heard"),
    ];
    let saved = ui.post("review", &decision);
    let next = format!("{}/review?place=0&saved=1&last_shared={ann}", ui.root);
    assert_eq!(
        (saved.status, saved.header("location")),
        (303, Some(next.as_str()))
    );
    let cookie = saved.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("milepost_reviewer=ada+%c3%96; path=/ui/")
            && cookie.contains("samesite=strict; httponly"),
        "{cookie}"
    );
    assert_eq!(
        project.read(FIXES),
        format!("{EMPTY},{ann},word,anna,Ada Ö,heard\n")
    );

    let path = format!("{}/review?place=0&saved=1&last_shared={ann}", ui.root);
    let cookie = [("Cookie", "a=b; milepost_reviewer=Ada+%C3%96")];
    let second = Reply::read(ui.send("GET", &path, &cookie, ""));
    shows(
        &second,
        &[
            "Saved 1 correction to inputs/fixes.csv.",
            "1 correction is not applied yet. Run now",
            "Item 1 of 1 that needs a person",
            "Word Bo",
        ],
    );
    assert!(
        second.body.contains(r#"name="who" value="Ada Ö""#)
            && second
                .body
                .contains(&format!("/review?shared={ann}\" data-key=\"previous\"")),
        "{}",
        second.body
    );
    let settled = ui.get(&format!("review?shared={ann}"));
    shows(
        &settled,
        &[
            "This item has a correction.",
            "anna Ada Ö: heard To change this decision, edit line 2 of inputs/fixes.csv .",
        ],
    );

    project.run(&[]).expect(0, &["join"]);
    let run = ui.get("review");
    shows(&run, &["Item 1 of 1 that needs a person"]);
    assert!(!run.body.contains("not applied yet"));
    let bo = Digest::of(r#"{"name":"Bo"}"#).short();
    let keep = [
        ("shared", bo.as_str()),
        ("field", "Correct word"),
        ("choice:Correct word", "keep"),
        ("who", "Ada"),
        ("why", "right"),
    ];
    assert_eq!(ui.post("review", &keep).status, 303);
    shows(
        &ui.get("review?saved=1"),
        &["Nothing needs review any more."],
    );
}

#[test]
fn what_is_wrong_stands_beside_its_field_and_nothing_is_saved() {
    let project = reviewed(EMPTY);
    let ui = Ui::start(&project);
    let ann = ann();
    let hostile = "<script>alert(1)</script>";
    let refused = ui.post(
        "review",
        &[
            ("shared", ann.as_str()),
            ("field", "Correct size"),
            ("field", "Correct word"),
            ("choice:Correct size", "keep"),
            ("other:Correct size", "2"),
            ("other:Correct word", hostile),
            ("who", hostile),
            ("why", hostile),
        ],
    );
    assert_eq!(refused.status, 422);
    shows(
        &refused,
        &["Correct size now 1 expected one value, found a choice and another value: remove one"],
    );
    let refused = ui.post(
        "review",
        &[
            ("shared", ann.as_str()),
            ("field", "Correct word"),
            ("other:Correct word", hostile),
            ("who", hostile),
            ("why", ""),
        ],
    );
    assert_eq!(refused.status, 422);
    shows(
        &refused,
        &[
            "Why: expected a reason",
            "Correct word now Ann expected a value of `word`, found `&lt;script&gt;alert(1)&lt;/script&gt;`",
        ],
    );
    assert!(!refused.body.contains(hostile));
    for (page, fields) in [
        ("review", &[("shared", "no such item"), ("why", "x")][..]),
        ("review", &[("why", "x")][..]),
    ] {
        let reply = ui.post(page, fields);
        assert_eq!(reply.status, 400, "{}", reply.body);
    }
    // A table that cannot be read any more: what was typed is on the page.
    std::fs::write(project.at(FIXES), b"id\xff").unwrap();
    let refused = ui.post(
        "review",
        &[
            ("shared", ann.as_str()),
            ("field", "Correct word"),
            ("choice:Correct word", "value:anna"),
            ("who", "Ada"),
            ("why", hostile),
        ],
    );
    assert_eq!(refused.status, 500);
    shows(
        &refused,
        &[
            "What you entered Nothing of it was saved. Correct word anna Your name Ada Reason &lt;script&gt;alert(1)&lt;/script&gt;",
        ],
    );
    project.write(FIXES, EMPTY);
    assert_eq!(ui.get("review?place=x").status, 400);
    assert_eq!(ui.get("review?sheet=x").status, 400);
    assert_eq!(project.read(FIXES), EMPTY);
}

#[test]
fn a_project_without_a_review_sheet_says_so() {
    let project = Project::letters();
    let ui = Ui::start(&project);
    shows(&ui.get("review"), &["This project has no sheet to review"]);
}
