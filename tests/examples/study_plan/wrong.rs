//! What is wrong with a request, a file, an answer or a draft, each with the error that it gives.

use super::{EVIDENCE, FINAL, REQUEST, asking, check_plan, example, minutes, rounds, strings};
use crate::support::Project;
use serde_json::json;
use std::path::Path;

const NO_PDF: &str = "%PDF-1.7\nnothing follows\n";

fn append(project: &Project, path: &str, text: &str) {
    let before = project.read(path);
    project.write(path, format!("{before}{text}"));
}

#[test]
fn a_request_that_cannot_be_is_refused_by_name() {
    let cases = [
        ("not_a_date", "NOT_A_DATE: the calendar has no 2027-02-30"),
        (
            "duplicate_course",
            "DUPLICATE_COURSE: the request has more than one course of the id or the name MATH-201",
        ),
        (
            "course_without_files",
            "COURSE_WITHOUT_FILES: nothing tells the topics of BIO-110",
        ),
        (
            "missing_input",
            "MISSING_INPUT: not in inputs/: cell-biology-atlas.pdf",
        ),
        (
            "midterm_in_the_past",
            "MIDTERM_IN_THE_PAST: no day is left before the midterm of MATH-201 on 2027-03-18",
        ),
        (
            "contract_violated",
            "CONTRACT_VIOLATED: `inputs/contract_violated.json` does not match schemas/request.schema.json",
        ),
    ];
    let project = example();
    for (name, error) in cases {
        let request = format!("request=bad/{name}.json");
        let ran = project.run_unplanned(&["--set", &request]);
        ran.expect(1, &["intake"]).says(error);
        assert_eq!(project.list("outputs"), Vec::<String>::new());
    }
    // The names of courses must differ as well: rows carry no ids.
    let project = asking(|request| request["courses"][0]["course_name"] = json!("Cell Biology"));
    project.run(&[]).expect(1, &["intake"]).says(
        "DUPLICATE_COURSE: the request has more than one course of the id or the name Cell Biology",
    );
}

#[test]
fn without_a_first_day_it_is_today() {
    let project = asking(|request| {
        request.as_object_mut().unwrap().remove("start_date");
    });
    project.run(&["--set", "today=2027-03-10"]);
    assert_eq!(check_plan(&project)["start_date"], "2027-03-10");
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_planned() {
    let project = example();
    let syllabus = "workspace/inputs/microeconomics-syllabus.pdf";
    let bytes = std::fs::read(project.at(syllabus)).unwrap();
    project.write(
        syllabus,
        std::fs::read(project.at("bad/unreadable.pdf")).unwrap(),
    );
    let mut request = project.json(REQUEST);
    request["shared_file_ids"] = json!([]);
    project.write(REQUEST, request.to_string());
    let ran = project.run(&[]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("read/microeconomics-syllabus.pdf failed: UNREADABLE_PDF");
    let warnings = [
        "file microeconomics-syllabus.pdf could not be read",
        "course ECON-120 has no usable evidence: its midterm on 2027-03-25 is not planned for",
    ];
    let evidence = project.json(EVIDENCE);
    assert_eq!(
        (
            &evidence["ingestion_status"],
            strings(&evidence["warnings"])
        ),
        (&json!("partial"), warnings.to_vec())
    );
    let plan = check_plan(&project);
    assert_eq!(
        (
            &plan["verdict"],
            &plan["last_midterm_date"],
            strings(&plan["warnings"])
        ),
        (
            &json!("incomplete: not all of the material could be read"),
            &json!("2027-03-22"),
            warnings.to_vec()
        )
    );
    assert!(
        project
            .read("workspace/outputs/study_plan.md")
            .contains(warnings[1])
    );

    // With the file it goes on, and reads no other again.
    project.write(syllabus, bytes);
    project.run(&[]).expect(
        0,
        &[
            "approve",
            "collect",
            "dispatch",
            "export",
            "ingest/microeconomics-syllabus-p1-2",
            "intake",
            "plan",
            "read/microeconomics-syllabus.pdf",
            "window",
        ],
    );
    let plan = check_plan(&project);
    assert_eq!(
        (
            &plan["ingestion_status"],
            &plan["last_midterm_date"],
            &plan["warnings"]
        ),
        (&json!("complete"), &json!("2027-03-25"), &json!([]))
    );
}

#[test]
fn a_window_whose_answer_is_wrong_is_left_out() {
    let project = example();
    append(
        &project,
        "filters/ingestion.jq",
        "| if $chunk.chunk_id == \"cell-biology-syllabus-p1-2\" then .topics[0].course_id = \"CHEM-1\" else . end\n",
    );
    let ran = project.run(&[]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("UNKNOWN_COURSE: a topic of cell-biology-syllabus-p1-2 is of a course that this file does not belong to");
    let evidence = project.json(EVIDENCE);
    assert_eq!(
        (
            &evidence["ingestion_status"],
            strings(&evidence["warnings"])
        ),
        (
            &json!("partial"),
            vec!["window cell-biology-syllabus-p1-2 has no answer"]
        )
    );
}

#[test]
fn without_any_evidence_nothing_is_planned() {
    let project = example();
    let files = project.list("inputs");
    let pdfs = files
        .iter()
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "pdf"));
    for name in pdfs {
        project.write(&format!("workspace/inputs/{name}"), NO_PDF);
    }
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says("INGESTION_FAILED: no course has usable evidence: file linear-algebra-syllabus.pdf could not be read; ");
    assert_eq!(project.json(EVIDENCE)["ingestion_status"], "failed");
    let errors: Vec<_> = ran
        .records
        .iter()
        .filter(|record| {
            record["event_type"] == "error" && record["agent_name"] == "CoordinatorAgent"
        })
        .collect();
    assert!(!errors.is_empty());
    assert_eq!(project.list("outputs"), Vec::<String>::new());
}

#[test]
fn more_work_than_days_is_a_plan_of_what_matters_most() {
    let project = example();
    let ran = project.run(&["--set", "minutes_per_day=60"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let (_, verdict, reasons) = rounds(&ran).pop().unwrap();
    assert_eq!(verdict, "capacity_limited_plan");
    assert_eq!(
        reasons,
        [
            "capacity: 1320 minutes of work up to 2027-03-18, where 1020 fit",
            "capacity: 2115 minutes of work up to 2027-03-22, where 1260 fit",
            "capacity: 3300 minutes of work up to 2027-03-25, where 1440 fit",
        ]
    );
    let plan = check_plan(&project);
    assert_eq!(
        plan["validation_report"],
        json!({"coverage_ok": false, "date_range_ok": true, "load_balance_ok": true})
    );
    let planned: i64 = plan["courses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|course| course["planned_minutes"].as_i64().unwrap())
        .sum();
    assert_eq!(planned, 1395);
    // Of the topics of high priority, one lacks its last session, because the rests of days are too short for it.
    let uncovered = plan["uncovered"].as_array().unwrap();
    let (high, other): (Vec<_>, Vec<_>) = uncovered
        .iter()
        .partition(|topic| topic["priority"] == "high");
    let high: Vec<_> = high
        .iter()
        .map(|topic| (&topic["topic"], &topic["planned_minutes"], minutes(topic)))
        .collect();
    assert_eq!(high, [(&json!("Energy and respiration"), &json!(180), 210)]);
    assert_eq!((other.len(), uncovered.len()), (14, 15));
    assert_eq!(
        plan["verdict"],
        "not everything fits: 15 of 20 topics are left out or cut short"
    );
}

#[test]
fn a_wrong_draft_is_sent_back_with_reasons() {
    let project = example();
    assert_eq!(project.run_unplanned(&["--until", "dispatch"]).code, 0);
    let planner = project.read("filters/planner.jq");
    let estimation = project.read("filters/estimation.jq");
    let cases: [(&str, &str, &[&str]); 12] = [
        (
            "planner",
            ".rows |= .[:-1]",
            &[
                "dates: 2027-03-25 has no row",
                "dates: the midterm of ECON-120 on 2027-03-25 is not in the plan",
            ],
        ),
        (
            "planner",
            ".rows |= reverse",
            &["dates: the rows are not in the order of dates"],
        ),
        (
            "planner",
            ".rows += [.rows[-1] | .date = \"2027-04-01\"]",
            &["dates: 2027-04-01 is not between 2027-03-01 and 2027-03-25"],
        ),
        (
            "planner",
            ".rows |= map(if .date == \"2027-03-17\" and .course == \"Linear Algebra\" then .date = \"2027-03-18\" else . end)",
            &[
                "dates: the rows are not in the order of dates",
                "dates: Revision on 2027-03-18 is too late for the midterm of MATH-201",
                "revision: MATH-201 has no 70 minutes of revision on 2027-03-17",
            ],
        ),
        (
            "planner",
            ".rows |= map(if .date == \"2027-03-17\" and .course == \"Linear Algebra\" then .topic = \"Determinants\" else . end)",
            &[
                "revision: MATH-201 has no 70 minutes of revision on 2027-03-17",
                "revision: Determinants on 2027-03-17, a revision day of MATH-201",
            ],
        ),
        (
            "planner",
            ".rows |= [.[] | if .date == \"2027-03-01\" and .course == \"Linear Algebra\" then (.estimated_minutes = 65, .estimated_minutes = 15) else . end]",
            &[
                "session: Systems of linear equations has 15 minutes on 2027-03-01, a session has 25 to 90",
            ],
        ),
        (
            "planner",
            ".rows |= map(select(.topic != \"Determinants\"))",
            &[
                "dates: 2027-03-13 has no row",
                "coverage: MATH-201: Determinants: 0 of 195 minutes are planned",
            ],
        ),
        (
            "planner",
            ".rows |= map(if .topic == \"Determinants\" then .topic = \"Tensors\" else . end)",
            &[
                "coverage: MATH-201: Determinants: 0 of 195 minutes are planned",
                "coverage: Linear Algebra: Tensors is not a topic of the estimates",
            ],
        ),
        (
            "planner",
            ".rows |= map(if .date == \"2027-03-01\" then .estimated_minutes += 60 else . end)",
            &[
                "session: Systems of linear equations has 140 minutes on 2027-03-01, a session has 25 to 90",
                "session: Scarcity and opportunity cost has 135 minutes on 2027-03-01, a session has 25 to 90",
                "load: 275 minutes on 2027-03-01, 240 are the limit",
            ],
        ),
        (
            "estimation",
            ".topic_estimates |= .[1:]",
            &["estimate: MATH-201: Systems of linear equations: no estimate was given"],
        ),
        (
            "estimation",
            ".topic_estimates += [.topic_estimates[0] | .topic = \"Tensors\"]",
            &["estimate: MATH-201: Tensors: nobody asked for this topic"],
        ),
        (
            "estimation",
            ".topic_estimates += .topic_estimates[:1]",
            &["estimate: MATH-201: Systems of linear equations: it is estimated 2 times"],
        ),
    ];
    for (agent, change, wanted) in cases {
        project.write("filters/planner.jq", &planner);
        project.write("filters/estimation.jq", &estimation);
        append(
            &project,
            &format!("filters/{agent}.jq"),
            &format!("| {change}\n"),
        );
        let ran = project.run_unplanned(&["--set", "max_revisions=1"]);
        assert_eq!(ran.code, 1, "{change}: {}", ran.output);
        ran.says(
            "plan failed: REVISION_LIMIT: no draft was accepted in 1 iteration; the last one: ",
        );
        ran.says(wanted[0]);
        let told = rounds(&ran);
        assert_eq!((told.len(), told[0].1), (1, "needs_revision"), "{change}");
        // Besides the reasons for which the first draft is always sent back.
        let usual = [
            "estimate: BIO-110: Microscopy: ",
            "estimate: ECON-120: Reading ",
            "balance: ",
        ];
        let reasons: Vec<_> = told[0]
            .2
            .iter()
            .filter(|reason| !usual.iter().any(|usual| reason.starts_with(usual)))
            .copied()
            .collect();
        assert_eq!(reasons, wanted, "{change}");
        assert!(!project.exists(FINAL));
    }
    project.write("filters/planner.jq", &planner);
    project.write("filters/estimation.jq", &estimation);
    append(
        &project,
        "filters/estimation.jq",
        "| .topic_estimates[0].confidence = 7\n",
    );
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 1);
    ran.says("CONTRACT_VIOLATED: agent `estimation` gave no valid answer");
}
