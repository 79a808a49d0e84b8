//! The list of what needs a person, and decisions on it: the same corrections as from a workbook.

use super::corrections::main_project;
use super::import_review::{ann, project};
use crate::support::Project;
use milepost_core::base::digest::Digest;
use milepost_engine::ops::change::review::{
    Corrected, FieldDecision, ItemName, ReviewDecision, ReviewList, ReviewOptions, correct,
    review_list,
};
use milepost_engine::ops::project::OpsError;
use serde_json::{Value, json};

const FIXES: &str = "workspace/inputs/fixes.csv";

fn all() -> ReviewOptions {
    ReviewOptions {
        limit: 100,
        ..ReviewOptions::default()
    }
}

fn open_items() -> ReviewOptions {
    ReviewOptions {
        open_only: true,
        ..all()
    }
}

fn list(project: &Project, options: &ReviewOptions) -> ReviewList {
    review_list(&project.request(), options).unwrap().unwrap()
}

fn decide(
    project: &Project,
    item: &ItemName,
    fields: &[(&str, FieldDecision)],
    why: &str,
) -> Result<Corrected, Vec<String>> {
    let fields = fields.iter().cloned();
    let decision = ReviewDecision {
        sheet: None,
        item: item.clone(),
        fields: fields
            .map(|(header, decision)| (header.to_owned(), decision))
            .collect(),
        who: Some("Cy".to_owned()),
        why: why.to_owned(),
    };
    match correct(&project.request(), &decision) {
        Ok(corrected) => Ok(corrected),
        Err(OpsError::NotImported(problems)) => Err(problems),
        Err(error) => Err(vec![error.to_string()]),
    }
}

fn value(text: &str) -> FieldDecision {
    FieldDecision::Value(text.to_owned())
}

#[test]
fn items_show_what_the_sheet_shows_with_values_and_alternatives() {
    let (ann, bo) = (ann(), Digest::of(r#"{"name":"Bo"}"#).short());
    let project = project(&format!(
        "id,question,field,value,who,why\n,{bo},word,bob,Bo,heard\n"
    ));
    let field = |word: &str, label: &str, correction: Value| {
        json!({
            "header": "Correct word", "field": "word", "now": {"value": word, "label": label}, "is_known": true, "correction": correction,
            "choices": [
                {"value": "bob", "label": "The other (bob)"}, {"value": "anna", "label": "Anna die Erste"}, {"value": "annie", "label": "The other (annie)"},
            ],
        })
    };
    let size = json!({"header": "Correct size", "field": "size", "now": {"value": "1", "label": "1"}, "is_known": true, "choices": [], "correction": null});
    let item = |place: u64, question: &str, (word, label): (&str, &str), correction: Value| {
        json!({
            "place": place, "name": {"shared_key": question}, "named_by": "Question", "columns": [{"header": "Word", "text": word}],
            "fields": [size, field(word, label, correction)],
        })
    };
    let correction = json!({"line": 2, "value": "bob", "who": "Bo", "why": "heard"});
    assert_eq!(
        serde_json::to_value(list(&project, &all())).unwrap(),
        json!({
            "sheets": ["Review"], "sheet": "Review", "stage": "join", "into": "inputs/fixes.csv", "has_run": true,
            "total": 3, "open": 2, "unapplied": 0,
            "items": [
                item(0, &ann, ("Ann", "Ann"), Value::Null), item(1, &bo, ("bob", "The other (bob)"), correction.clone()), item(2, &ann, ("Ann", "Ann"), Value::Null),
            ],
        })
    );
    let page = ReviewOptions {
        offset: 1,
        limit: 1,
        ..open_items()
    };
    let found = list(&project, &page);
    assert_eq!((found.total, found.open), (2, 2));
    assert_eq!(
        serde_json::to_value(found.items).unwrap(),
        json!([item(1, &ann, ("Ann", "Ann"), Value::Null)])
    );
    let one = ReviewOptions {
        item: Some(ItemName::SharedKey(bo.clone())),
        ..open_items()
    };
    assert_eq!(
        serde_json::to_value(list(&project, &one).items).unwrap(),
        json!([item(1, &bo, ("bob", "The other (bob)"), correction)])
    );
}

#[test]
fn decisions_become_corrections_that_the_next_run_applies() {
    let project = project("id,question,field,value,who,why\n");
    let question = ItemName::SharedKey(ann());
    let corrected = decide(
        &project,
        &question,
        &[
            ("Correct word", value("anna the FIRST")),
            ("Correct size", FieldDecision::Keep),
        ],
        " heard, twice ",
    );
    let ann = ann();
    let table = format!(
        "id,question,field,value,who,why\n,{ann},size,1,Cy,\"heard, twice\"\n,{ann},word,anna,Cy,\"heard, twice\"\n"
    );
    assert_eq!(project.read(FIXES), table);
    let correction = |cell: &str, field: &str, value: &str| json!({"cell": cell, "column": "question", "target": ann, "field": field, "value": value, "who": "Cy", "why": "heard, twice"});
    assert_eq!(
        serde_json::to_value(corrected.unwrap()).unwrap(),
        json!({
            "into": "inputs/fixes.csv", "known": [],
            "added": [correction("Correct size", "size", "1"), correction("Correct word", "word", "anna")],
        })
    );
    let records = project.records();
    let event = records
        .iter()
        .rfind(|record| record["kind"] == "corrections_imported")
        .unwrap();
    assert_eq!(
        event["data"],
        json!({
            "file": "review page", "into": "inputs/fixes.csv", "added": 2,
            "corrections": [
                format!("Correct size: size of question {ann} is `1` (Cy: heard, twice)"),
                format!("Correct word: word of question {ann} is `anna` (Cy: heard, twice)"),
            ],
            "from": Digest::of("id,question,field,value,who,why\n"), "to": Digest::of(&table),
        })
    );
    let found = list(&project, &open_items());
    assert_eq!((found.total, found.open, found.unapplied), (1, 1, Some(2)));

    project.run(&[]).expect(0, &["join"]);
    let found = list(&project, &all());
    assert_eq!((found.total, found.open, found.unapplied), (3, 1, Some(0)));
    let all = project.json("workspace/outputs/all.json");
    let of = |field: &str| -> Vec<Value> {
        let elements = all["elements"].as_array().unwrap().iter();
        elements.map(|element| element[field].clone()).collect()
    };
    assert_eq!(of("word"), ["anna", "Bo", "anna"]);
    assert_eq!(of("size"), [1, 1, 1]);
    // Corrections that a person adds by hand count as well; what changed the rows before is not known.
    project.write(FIXES, format!("{table}2,,size,3,Bo,seen\n"));
    assert_eq!(list(&project, &open_items()).unapplied, Some(1));
    project.write(FIXES, table.replace("twice", "once"));
    assert_eq!(list(&project, &open_items()).unapplied, None);
}

#[test]
fn a_refused_decision_changes_nothing_and_names_its_fields() {
    let ann = ann();
    let table = format!("id,question,field,value,who,why\n,{ann},word,annie,Bo,heard\n");
    let project = project(&table);
    let question = ItemName::SharedKey(ann.clone());
    let refused = |fields: &[(&str, FieldDecision)], why: &str| {
        decide(&project, &question, fields, why).unwrap_err()
    };
    assert_eq!(
        refused(
            &[
                ("Correct word", value("Anna the Fist")),
                ("Correct size", value("1,5")),
                ("Word", value("x"))
            ],
            " "
        ),
        [
            "Why: expected a reason",
            "Correct size: expected a number, found the text `1,5`: write it with a decimal point",
            "Correct word: expected a value of `word`, found `Anna the Fist`; did you mean `Anna the First`?",
            "Word: expected a field of this item",
        ]
    );
    assert_eq!(
        refused(&[], "x"),
        ["expected a value in Correct size or Correct word"]
    );
    assert_eq!(
        refused(
            &[
                ("Correct word", value("bob")),
                ("Correct size", value("many"))
            ],
            "x"
        ),
        [
            format!(
                "Correct word: `word` of `{ann}` is `bob`, but inputs/fixes.csv:2 sets `annie`: change or remove one of them"
            ),
            "Correct size: value: \"many\" does not match ^[0-9.]*$".to_owned(),
        ]
    );
    let nobody = ItemName::Key("<script>".to_owned());
    assert_eq!(
        decide(&project, &nobody, &[("Correct word", value("bob"))], "x").unwrap_err(),
        [
            "the sheet Review has no item `<script>`: it may have been settled by a run; reload the list"
        ]
    );
    assert_eq!(project.read(FIXES), table);
}

#[test]
fn a_label_of_several_values_is_not_kept_and_each_value_is_offered() {
    let project = project("id,question,field,value,who,why\n");
    project.edit(
        "templates/book.xlsx.toml",
        r#"["Correct word", "null"]"#,
        r#"["Correct word", "null", { choices = { sheet = "Words", column = "Label" } }]"#,
    );
    let book = project.read("templates/book.xlsx.toml");
    let words = "[[sheet]]\nname = \"Words\"\nrows = '\"The other\", \"Anna the First\", \"The other\"'\ncolumns = [[\"Label\", \".\"]]\n";
    project.write("templates/book.xlsx.toml", format!("{book}\n{words}"));
    let item = &list(&project, &all()).items[0];
    let field = item.fields.iter().find(|field| field.field == "word");
    assert_eq!(
        serde_json::to_value(&field.unwrap().choices).unwrap(),
        json!([
            {"value": "annie", "label": "The other (annie)"},
            {"value": "bob", "label": "The other (bob)"},
            {"value": "anna", "label": "Anna the First"},
        ])
    );
    let now = r#"labels = ".labels.word", now = "Word""#;
    project.edit(
        "templates/book.xlsx.toml",
        r#"labels = ".labels.word""#,
        now,
    );
    let shown = |label: &str| {
        let column = format!("[\"Word\", \"\\\"{label}\\\"\"]");
        let book = project.read("templates/book.xlsx.toml");
        let from = book.find("[\"Word\"").unwrap();
        let to = from + book[from..].find(']').unwrap() + 1;
        let book = format!("{}{column}{}", &book[..from], &book[to..]);
        project.write("templates/book.xlsx.toml", book);
    };
    let question = ItemName::SharedKey(ann());
    let keep = [("Correct word", FieldDecision::Keep)];
    for (label, problem) in [
        (
            "The other",
            "`The other` is the label of annie and bob: write one of them",
        ),
        ("Nobody", "expected a value of `word`, found `Nobody`"),
    ] {
        shown(label);
        let refused = decide(&project, &question, &keep, "seen").unwrap_err();
        assert_eq!(refused, [format!("Correct word: {problem}")]);
    }
    shown("Anna the First");
    let kept = decide(&project, &question, &keep, "seen").unwrap();
    assert_eq!(kept.added[0].value, "anna");
}

#[test]
fn there_is_no_list_before_the_stage_ran_and_none_without_a_sheet() {
    let project = project("id,question,field,value,who,why\n").without_results();
    let found = list(&project, &all());
    assert_eq!(
        (found.has_run, found.total, found.unapplied),
        (false, 0, Some(0))
    );
    project.write(
        "templates/book.xlsx.toml",
        "[[sheet]]\nname = \"A\"\nrows = \"1\"\n",
    );
    let found = review_list(&project.request(), &all()).unwrap();
    assert_eq!(found, None);
}

#[test]
fn items_of_the_sample_are_settled_by_a_run() {
    let project = main_project();
    let before = list(&project, &open_items());
    let question = before.items.iter().find(|item| {
        item.columns
            .iter()
            .any(|column| column.header == "Names" && column.text.contains("Attika"))
    });
    let question = question.unwrap();
    let fields: Vec<(&str, Option<&str>, usize)> = question
        .fields
        .iter()
        .map(|field| {
            let now = field.now.as_ref().map(|now| now.label.as_str());
            (field.header.as_str(), now, field.choices.len())
        })
        .collect();
    // A question has no volume to correct: its elements differ.
    assert_eq!(
        fields,
        [
            ("Correct element type", Some("Not classified"), 33),
            ("Correct material", None, 17)
        ]
    );
    decide(
        &project,
        &question.name,
        &[("Correct element type", value("External wall"))],
        "a parapet",
    )
    .unwrap();
    let nothing = [("Correct material", FieldDecision::Keep)];
    assert_eq!(
        decide(&project, &question.name, &nothing, "x").unwrap_err(),
        ["Correct material: `material_primary.category` has no value to keep: enter one"]
    );
    // A value that is right is kept: a person has looked at it.
    let kept = before
        .items
        .iter()
        .find(|item| item.name != question.name && matches!(item.name, ItemName::SharedKey(_)));
    let kept = kept.unwrap();
    decide(
        &project,
        &kept.name,
        &[("Correct element type", FieldDecision::Keep)],
        "seen on site",
    )
    .unwrap();
    project.run(&[]).expect(0, &["generate"]);
    let after = list(&project, &all());
    let names: Vec<&ItemName> = after.items.iter().map(|item| &item.name).collect();
    assert!(!names.contains(&&question.name) && !names.contains(&&kept.name));
    assert_eq!(after.total, before.total - 2);
    let report = project.json("workspace/intermediate/report.json");
    let rows = report["corrections"]["rows"].as_array().unwrap();
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| json!([row["field"], row["from"], row["to"], row["who"]]))
        .collect();
    assert_eq!(
        rows,
        [
            json!(["element_type", "other", "other", "Cy"]),
            json!(["element_type", "other", "external_wall", "Cy"])
        ]
    );
}
