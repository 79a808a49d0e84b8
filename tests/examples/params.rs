//! Wrong values of parameters are refused before anything runs: each number has bounds, each choice lists its words.

use milepost_engine::ops::project::declarations;
use std::path::Path;

/// Values that each system refuses, and what it expected.
const WRONG: [(&str, &str, &str, &str); 12] = [
    ("", "geometry", "some", "expected `all`, `missing` or `off`"),
    (
        "",
        "batch_size",
        "0",
        "expected a whole number from 1 to 1000",
    ),
    ("", "review_below", "50", "expected a number from 0 to 1"),
    ("", "language", "fr", "expected `en` or `de`"),
    (
        "examples/diagrams",
        "threshold",
        "85",
        "expected a number from 0 to 1",
    ),
    (
        "examples/grading",
        "formats",
        "pdf,docx",
        "expected a list of `markdown`, `pdf`, `json` or `csv`",
    ),
    (
        "examples/prompt-tests",
        "threshold",
        "150",
        "expected a number from 0 to 100",
    ),
    (
        "examples/prompt-tests",
        "runs",
        "0",
        "expected a whole number from 1 to 1000",
    ),
    (
        "examples/prompt-tests",
        "concurrency",
        "100",
        "expected a whole number from 1 to 64",
    ),
    (
        "examples/study-plan",
        "max_pages_per_chunk",
        "0",
        "expected a whole number from 1 to 200",
    ),
    (
        "examples/study-plan",
        "max_revisions",
        "0",
        "expected a whole number from 1 to 20",
    ),
    (
        "examples/study-plan",
        "today",
        "tomorrow",
        "expected a date such as 2026-11-23, or `today`",
    ),
];

#[test]
fn each_system_refuses_wrong_values() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (folder, name, text, expected) in WRONG {
        let (pipeline, _) = declarations(&root.join(folder)).unwrap();
        let param = pipeline.param(name).unwrap();
        let refused = param.parse(text).unwrap_err().to_string();
        assert_eq!(refused, expected, "{folder} {name}");
    }
    for folder in [
        "",
        "examples/diagrams",
        "examples/grading",
        "examples/prompt-tests",
        "examples/study-plan",
    ] {
        let (pipeline, _) = declarations(&root.join(folder)).unwrap();
        // A choice that a system adds or renames stays one.
        for param in pipeline
            .params
            .iter()
            .filter(|param| param.name == "renderer")
        {
            assert!(param.parse("svg").is_err(), "{folder} renderer takes svg");
        }
        let numbers = pipeline
            .params
            .iter()
            .filter(|param| param.default.is_number());
        for param in numbers {
            for text in ["-1000000000", "1000000000"] {
                assert!(
                    param.parse(text).is_err(),
                    "{folder} {} takes {text}",
                    param.name
                );
            }
        }
    }
}
