//! Clients that lie: what they drop, invent, double, rename or write elsewhere is refused with its code, and the rest is kept.

use super::client::{Site, run_as};
use milepost::view;
use milepost_engine::ops::external::{Leased, Submitted};
use serde_json::{Value, json};

/// Questions of a batch.
const SIZE: u64 = 15;

struct Case {
    name: &'static str,
    lie: fn(&mut Vec<Value>),
    /// Code, pointer and id of each violation.
    told: &'static [(&'static str, &'static str, Option<&'static str>)],
    /// Answers that stay open.
    open: u64,
}

const CASES: &[Case] = &[
    Case {
        name: "drops",
        lie: |answers| {
            answers.remove(2);
        },
        told: &[("missing", "", Some("q3"))],
        open: 1,
    },
    Case {
        name: "invents",
        lie: |answers| {
            let mut invented = answers[0].clone();
            invented["id"] = json!("q999");
            answers.push(invented);
        },
        told: &[("unknown_id", "/15", Some("q999"))],
        open: 0,
    },
    Case {
        name: "doubles",
        lie: |answers| {
            let double = answers[1].clone();
            answers.push(double);
        },
        told: &[("doubled", "/1", Some("q2"))],
        open: 1,
    },
    Case {
        name: "says two things",
        lie: |answers| {
            let mut other = answers[1].clone();
            other["confidence"] = json!(0.25);
            other["reasoning"] = json!("on second thoughts");
            answers.push(other);
        },
        told: &[("doubled", "/15", Some("q2"))],
        open: 1,
    },
    Case {
        name: "renames a question",
        lie: |answers| answers[0]["id"] = json!("question 1"),
        told: &[
            ("unknown_id", "/0", Some("question 1")),
            ("missing", "", Some("q1")),
        ],
        open: 1,
    },
    Case {
        name: "renames a field",
        lie: |answers| {
            let answer = answers[3].as_object_mut().unwrap();
            let id = answer.remove("id").unwrap();
            answer.insert("guid".to_owned(), id);
        },
        told: &[("no_id", "/3", None), ("missing", "", Some("q4"))],
        open: 1,
    },
    Case {
        name: "answers by another schema",
        lie: |answers| {
            answers[0]["element_type"] = json!("spaceship");
            answers[4]["confidence"] = json!("high");
        },
        told: &[
            ("schema", "/0/element_type", Some("q1")),
            ("schema", "/4/confidence", Some("q5")),
        ],
        open: 2,
    },
];

fn told(submitted: &Submitted) -> Vec<(&str, &str, Option<&str>)> {
    submitted
        .violations
        .iter()
        .map(|wrong| {
            (
                wrong.code.as_str(),
                wrong.pointer.as_str(),
                wrong.id.as_deref(),
            )
        })
        .collect()
}

fn write(leased: &Leased, answers: &[Value]) {
    std::fs::write(&leased.output_file, json!(answers).to_string()).unwrap();
}

#[test]
fn every_lie_is_refused_and_only_what_is_wrong_is_asked_again() {
    let site = Site::new();
    site.run(&[]);
    for case in CASES {
        let leased = site.lease("liar");
        assert_eq!(leased.questions, SIZE, "{}", case.name);
        let honest = site.answers(&leased);
        let mut answers = honest.clone();
        (case.lie)(&mut answers);
        write(&leased, &answers);
        let made = site.at(&format!(
            "workspace/intermediate/classified/{}_classified.json",
            leased.batch
        ));
        let submitted = site.submit(&leased.lease);
        assert_eq!(
            (submitted.accepted, told(&submitted)),
            (false, case.told.to_vec()),
            "{}",
            case.name
        );
        assert_eq!(submitted.open.len() as u64, case.open, "{}", case.name);
        assert_eq!(submitted.kept, SIZE - case.open, "{}", case.name);
        assert_eq!(submitted.expires, Some(leased.expires), "{}", case.name);
        assert!(!made.exists(), "{}", case.name);
        // What it said is set aside, as it said it.
        let folder = submitted.quarantine.clone().unwrap();
        let aside = site.at("workspace").join(&folder);
        let kept: Vec<String> = std::fs::read_dir(&aside)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().ends_with(".answer"))
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect();
        assert_eq!(kept, [json!(answers).to_string()], "{}", case.name);
        for wrong in &submitted.violations {
            let advice = view::external::violation(wrong);
            assert!(
                !advice.message.is_empty() && !advice.hint.is_empty(),
                "{wrong:?}"
            );
        }

        // Only what is wrong is said again.
        let rest: Vec<Value> = honest
            .into_iter()
            .filter(|answer| submitted.open.iter().any(|open| answer["id"] == *open))
            .collect();
        assert_eq!(rest.len() as u64, case.open);
        let corrected = site.hand_in(&leased.lease, Some(json!(rest)));
        assert!(corrected.accepted, "{}: {corrected:#?}", case.name);
        assert!(made.exists());
    }
    site.finish("honest");
    let report = site.run(&[]);
    assert!(milepost_engine::ops::exit_code::exit_code(&report) == 0);
    let rules = Site::new();
    run_as(&rules.with_rules(), &[]);
    for path in ["intermediate/classified_all.json", "outputs/report.xlsx"] {
        let path = format!("workspace/{path}");
        assert!(site.bytes(&path) == rules.bytes(&path), "{path}");
    }
}

#[test]
fn what_is_no_list_of_answers_or_lies_elsewhere_is_refused() {
    let site = Site::new();
    site.run(&[]);
    let leased = site.lease("liar");
    for (text, code) in [
        ("I classified all of them.", "not_json"),
        ("[{\"id\": \"q1\"", "not_json"),
        ("", "not_json"),
        ("7", "wrong_shape"),
        ("{\"done\": true}", "wrong_shape"),
    ] {
        std::fs::write(&leased.output_file, text).unwrap();
        let submitted = site.submit(&leased.lease);
        let codes: Vec<&str> = submitted
            .violations
            .iter()
            .map(|wrong| wrong.code.as_str())
            .collect();
        assert_eq!((submitted.accepted, codes), (false, vec![code]), "{text}");
        assert_eq!((submitted.kept, submitted.open.len()), (0, SIZE as usize));
    }
    // An answer that lies elsewhere is none, wherever it is; nor is a link to it one.
    std::fs::remove_file(&leased.output_file).unwrap();
    let elsewhere = site.at("workspace/intermediate/classified/batch_1_classified.json");
    std::fs::create_dir_all(elsewhere.parent().unwrap()).unwrap();
    let answers = json!(site.answers(&leased)).to_string();
    std::fs::write(&elsewhere, &answers).unwrap();
    let refused = |submitted: Submitted| {
        submitted
            .refused
            .map(|refused| (refused.code(), view::external::refusal(&refused).hint))
    };
    let wanted = Some((
        "answer_missing",
        "write the answer to exactly this file, or pass it in the call".to_owned(),
    ));
    assert_eq!(refused(site.submit(&leased.lease)), wanted);
    std::os::unix::fs::symlink(&elsewhere, &leased.output_file).unwrap();
    assert_eq!(refused(site.submit(&leased.lease)), wanted);
    std::fs::remove_file(&leased.output_file).unwrap();

    // Nobody made what lies at the path of the output: it is neither trusted nor overwritten.
    site.answer(&leased);
    let submitted = site.submit(&leased.lease);
    assert_eq!(
        submitted.refused.map(|refused| refused.code()),
        Some("altered")
    );
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), answers);
    std::fs::remove_file(&elsewhere).unwrap();
    let submitted = site.hand_in(&leased.lease, Some(json!([])));
    assert!(submitted.accepted, "{submitted:#?}");
}
