//! Documents of strangers: what is read of PDFs as browsers, TeX and converters make them.

use super::formulas::filter;
use serde_json::{Value, json};

/// A document of one page of this text, as an engine reads it that sees no fonts.
fn read(page: &str) -> Value {
    let scope = json!({
        "request": { "pdf_path": "inputs/x.pdf" },
        "text": {
            "engine": "test", "total_pages": 1, "pages": [{ "number": 1, "text": page, "code": null }],
            "outline": [], "headings": null, "warnings": []
        }
    });
    filter("document", &[]).one(scope, &[]).unwrap()
}

/// What is said on a page, each with its kind.
fn said(page: &str) -> Vec<(String, String)> {
    let document = read(page);
    let passages = document["passages"].as_array().unwrap().iter();
    passages
        .map(|it| {
            let text = |key: &str| it[key].as_str().unwrap().to_owned();
            (text("kind"), text("text"))
        })
        .collect()
}

/// A browser that prints a page writes no bullets, and a converter may leave a list in its paragraph.
#[test]
fn items_of_lists_without_bullets_are_read() {
    let item = |text: &str| ("item".to_owned(), text.to_owned());
    let whole = (
        "sentence".to_owned(),
        "The service does three things:".to_owned(),
    );
    assert_eq!(
        said(
            "The service does three things:\n\nKeeps the stock of a kitchen\nWarns whoever cooks, as soon as a tin\nis empty\n\
             Unit Tests: 95% of all lines\n\nWe meant: - To be quick at all times - To lose nothing - Fun\n\nA list\nGoes on and on\nOver the"
        ),
        [
            whole,
            item("Keeps the stock of a kitchen"),
            item("Warns whoever cooks, as soon as a tin is empty"),
            item("Unit Tests: 95% of all lines"),
            item("To be quick at all times"),
            item("To lose nothing"),
            item("Goes on and on"),
        ]
    );
    // What the end of a page cuts off is no list, and neither is a drawing of letters.
    assert_eq!(
        said("The tests run often. We\nRun them on\nThe"),
        [("sentence".to_owned(), "The tests run often.".to_owned())]
    );
    assert_eq!(
        said("│ Unit tests of all parts   │ Many tests │\n└───┘"),
        []
    );
}

#[test]
fn contents_lists_and_comments_are_no_headings() {
    let page = "1 Introduction  4\n2 Design  5\n\n1 Introduction\n\nHow it goes:\n\n1. Ask the kitchen\n2. Answer it\n\n\
                # Load and prepare data\nframe = load_data(\"books.csv\")\nframe = clean_data(frame)\n\n1984  Orwell  A novel\n\n2.1 Parts";
    assert_eq!(
        read(page)["structure"]["sections"],
        json!([
            { "title": "Introduction", "page": 1, "level": 1 },
            { "title": "Parts", "page": 1, "level": 2 }
        ])
    );
}

/// Words of `criteria.toml` are English.
#[test]
fn a_document_in_other_letters_has_a_warning() {
    assert_eq!(
        read("Тесты идут каждый день. API.")["warnings"],
        json!([
            "many of its letters are not Latin: an evaluator without a model looks for the English words of criteria.toml, and finds little"
        ])
    );
    assert_eq!(read("Die Tests laufen täglich.")["warnings"], json!([]));
}
