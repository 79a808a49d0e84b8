//! `examples/study-plan`: three courses from their syllabi to a plan of days.

#[cfg(debug_assertions)]
mod killed;
mod made_by;
mod overloaded;
mod strangers;
mod wrong;

use crate::support::{Project, RunResult};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const REQUEST: &str = "workspace/inputs/courses.json";
const EVIDENCE: &str = "workspace/intermediate/handoffs/2_ingestion_to_coordinator.json";
const ESTIMATES: &str = "workspace/intermediate/handoffs/4_estimation_to_coordinator.json";
const PLAN: &str = "workspace/intermediate/handoffs/6_planner_to_coordinator.json";
const FINAL: &str = "workspace/outputs/study_plan.json";

fn example() -> Project {
    Project::copy_of("examples/study-plan")
}

/// The example with another request.
fn asking(change: impl FnOnce(&mut Value)) -> Project {
    let project = example();
    let mut request = project.json(REQUEST);
    change(&mut request);
    project.write(REQUEST, request.to_string());
    project
}

fn strings(value: &Value) -> Vec<&str> {
    let all = value.as_array().unwrap().iter();
    all.map(|one| one.as_str().unwrap()).collect()
}

fn minutes(value: &Value) -> i64 {
    value["estimated_minutes"].as_i64().unwrap()
}

/// The summaries of the rounds that a run judged.
fn rounds(ran: &RunResult) -> Vec<(i64, &str, Vec<&str>)> {
    ran.data("round_judged")
        .map(|data| {
            let summary = &data["summary"];
            (
                data["round"].as_i64().unwrap(),
                summary["result_type"].as_str().unwrap(),
                strings(&summary["reasons"]),
            )
        })
        .collect()
}

/// What the plan promises, whatever it is made from: every date from the first to the last midterm in order, each midterm on its
/// day, no work for a course from then on, no day above its limit, and the minutes that it says.
#[track_caller]
fn check_plan(project: &Project) -> Value {
    let plan = project.json(FINAL);
    let rows = plan["plan_rows"].as_array().unwrap();
    let date = |value: &Value| -> jiff::civil::Date { value.as_str().unwrap().parse().unwrap() };
    let dates: Vec<_> = rows.iter().map(|row| date(&row["date"])).collect();
    assert!(dates.is_sorted(), "{dates:?}");
    let (first, last) = (date(&plan["start_date"]), date(&plan["last_midterm_date"]));
    let every: Vec<_> = first
        .series(jiff::Span::new().days(1))
        .take_while(|date| *date <= last)
        .collect();
    let named: BTreeSet<_> = dates.iter().copied().collect();
    assert_eq!(named.into_iter().collect::<Vec<_>>(), every);

    let mut loads = BTreeMap::new();
    let mut planned = BTreeMap::new();
    for row in rows {
        *loads.entry(date(&row["date"])).or_insert(0) += minutes(row);
        *planned.entry(row["course"].as_str().unwrap()).or_insert(0) += minutes(row);
    }
    let limit = plan["minutes_per_day"].as_i64().unwrap();
    assert!(loads.values().all(|load| *load <= limit), "{loads:?}");
    for course in plan["courses"].as_array().unwrap() {
        let name = course["course_name"].as_str().unwrap();
        let midterm = date(&course["midterm_date"]);
        let of_course = || rows.iter().filter(|row| row["course"] == name);
        assert_eq!(
            of_course()
                .filter(|row| row["topic"] == "Midterm")
                .map(|row| date(&row["date"]))
                .collect::<Vec<_>>(),
            [midterm]
        );
        assert!(
            of_course().all(|row| minutes(row) == 0 || date(&row["date"]) < midterm),
            "{name}"
        );
        let all = ["planned_minutes", "revision_minutes"].map(|key| course[key].as_i64().unwrap());
        assert_eq!(all.iter().sum::<i64>(), planned[name], "{name}");
    }
    // Sessions of 25 to 90 minutes, without exception here: no topic of the example takes less in all.
    for row in rows.iter().filter(|row| minutes(row) > 0) {
        assert!((25..=90).contains(&minutes(row)), "{row}");
    }
    plan
}

/// What a plan says of how it was made.
fn how_it_was_made(page: &str) -> &str {
    let (_, told) = page.split_once("## How this plan was made\n\n").unwrap();
    told
}

/// Who did what, of the records.
fn acts(ran: &RunResult) -> BTreeSet<(&str, &str)> {
    let told =
        |record: &Value, key: &str| record[key].as_str().is_some_and(|text| !text.is_empty());
    for record in &ran.records {
        for key in [
            "timestamp",
            "session_id",
            "agent_name",
            "event_type",
            "summary",
        ] {
            assert!(told(record, key), "{key}: {record}");
        }
    }
    let pairs = ran.records.iter().map(|record| {
        let agent = record["agent_name"].as_str().unwrap();
        (agent, record["event_type"].as_str().unwrap())
    });
    pairs
        .filter(|(agent, _)| agent.ends_with("Agent"))
        .collect()
}

#[test]
fn three_courses_are_planned() {
    let mut project = example();
    project.env("SOURCE_DATE_EPOCH", "1772355600");
    let ran = project.run(&[]);
    ran.expect(
        0,
        &[
            "approve",
            "collect",
            "dispatch",
            "export",
            "ingest/cell-biology-syllabus-p1-2",
            "ingest/linear-algebra-exercises-p1-20",
            "ingest/linear-algebra-exercises-p21-24",
            "ingest/linear-algebra-syllabus-p1-2",
            "ingest/microeconomics-syllabus-p1-2",
            "ingest/midterm-notice-p1-1",
            "intake",
            "plan",
            "read/cell-biology-syllabus.pdf",
            "read/linear-algebra-exercises.pdf",
            "read/linear-algebra-syllabus.pdf",
            "read/microeconomics-syllabus.pdf",
            "read/midterm-notice.pdf",
            "window",
        ],
    );

    // What the midterms examine, and nothing that comes after them.
    let estimates = project.json(ESTIMATES);
    let told: Vec<_> = estimates["topic_estimates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|topic| {
            (
                topic["course_id"].as_str().unwrap(),
                topic["topic"].as_str().unwrap(),
                minutes(topic),
                topic["difficulty"].as_str().unwrap(),
                topic["priority"].as_str().unwrap(),
                topic["confidence"].as_f64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (
                "MATH-201",
                "Systems of linear equations",
                225,
                "medium",
                "medium",
                0.9
            ),
            (
                "MATH-201",
                "Vectors and matrices",
                225,
                "medium",
                "medium",
                0.9
            ),
            ("MATH-201", "Inverse matrices", 195, "medium", "medium", 0.9),
            (
                "MATH-201",
                "Vector spaces and bases",
                240,
                "hard",
                "high",
                0.9
            ),
            ("MATH-201", "Determinants", 195, "medium", "medium", 0.9),
            (
                "MATH-201",
                "Eigenvalues and eigenvectors",
                240,
                "medium",
                "high",
                0.9
            ),
            (
                "BIO-110",
                "Molecules of the cell",
                165,
                "medium",
                "medium",
                0.9
            ),
            (
                "BIO-110",
                "Membranes and transport",
                165,
                "medium",
                "high",
                0.9
            ),
            (
                "BIO-110",
                "Organelles and the cytoskeleton",
                165,
                "medium",
                "medium",
                0.9
            ),
            (
                "BIO-110",
                "Energy and respiration",
                210,
                "medium",
                "high",
                0.9
            ),
            ("BIO-110", "Microscopy", 90, "medium", "low", 0.4),
            (
                "ECON-120",
                "Scarcity and opportunity cost",
                105,
                "medium",
                "low",
                0.9
            ),
            ("ECON-120", "Supply and demand", 165, "medium", "high", 0.9),
            ("ECON-120", "Elasticity", 120, "medium", "medium", 0.9),
            (
                "ECON-120",
                "Taxes and price controls",
                120,
                "medium",
                "medium",
                0.9
            ),
            ("ECON-120", "Consumer choice", 150, "medium", "medium", 0.9),
            (
                "ECON-120",
                "Production and costs",
                165,
                "medium",
                "medium",
                0.9
            ),
            (
                "ECON-120",
                "Perfect competition",
                150,
                "medium",
                "medium",
                0.9
            ),
            ("ECON-120", "Monopoly", 135, "medium", "medium", 0.9),
            (
                "ECON-120",
                "Reading a newspaper article",
                75,
                "medium",
                "medium",
                0.4
            ),
        ]
    );
    assert_eq!(
        strings(&estimates["uncertainty_flags"]),
        [
            "BIO-110: Microscopy: neither pages to read nor exercises are known",
            "ECON-120: Reading a newspaper article: neither pages to read nor exercises are known",
        ]
    );

    // The first draft is sent back for two estimates, the second is accepted.
    assert_eq!(
        rounds(&ran),
        [
            (
                1,
                "needs_revision",
                vec![
                    "estimate: BIO-110: Microscopy: 30 minutes at a confidence of 0.4, where topics of this course take 165",
                    "estimate: ECON-120: Reading a newspaper article: 30 minutes at a confidence of 0.4, where topics of this course take 135",
                ]
            ),
            (2, "approved_plan", vec![]),
        ]
    );
    let history = project.json("workspace/intermediate/revision_history.json");
    assert_eq!(
        history[1],
        json!({
            "iteration": 2, "result_type": "approved_plan", "reasons": [], "minutes_planned": 3640, "minutes_estimated": 3300,
            "cost_usd": {"estimation": 0.0, "planner": 0.0},
            "validation_report": {"coverage_ok": true, "date_range_ok": true, "load_balance_ok": true},
        })
    );
    assert_eq!(
        project.list("intermediate/drafts"),
        ["draft_1.json", "draft_2.json"]
    );
    assert_eq!(
        project.json("workspace/intermediate/drafts/draft_2.json"),
        project.json(PLAN)
    );

    let plan = check_plan(&project);
    assert_eq!(plan["uncovered"], json!([]));
    assert_eq!(plan["plan_rows"], project.json(PLAN)["plan_rows"]);
    let reviewed: BTreeSet<_> = plan["plan_rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["status"] == "review")
        .map(|row| row["topic"].as_str().unwrap())
        .collect();
    assert_eq!(
        reviewed,
        BTreeSet::from(["Microscopy", "Reading a newspaper article"])
    );

    // The tables have the same rows.
    let rows = plan["plan_rows"].as_array().unwrap().len();
    let table = project.read("workspace/outputs/study_plan.csv");
    assert_eq!(table.lines().count(), rows + 1);
    assert!(table.starts_with("\"date\",\"course\",\"topic\",\"task_description\",\"estimated_minutes\",\"priority\",\"source_files\",\"status\"\n"), "{table}");
    let page = project.read("workspace/outputs/study_plan.md");
    assert_eq!(
        page.lines().filter(|line| line.starts_with("- **")).count(),
        rows
    );
    assert!(
        page.starts_with("# Study plan, 1 March to 25 March 2027\n\n**Everything fits.** 60 h 40 min of work in all, at most 4 h a day.\n"),
        "{page}"
    );
    let week = "## Week of 1 March: 18 h 55 min\n\n### Monday, 1 March: 2 h 40 min\n\n- **1 h 20 min** Linear Algebra: Study Systems of linear equations, part 1 of 3\n";
    assert!(page.contains(week), "{page}");
    let hard = "- **1 h 20 min** Linear Algebra: Study Vector spaces and bases, part 1 of 3 (high priority, hard)\n";
    assert!(page.contains(hard), "{page}");
    assert_eq!(
        how_it_was_made(&page),
        "On 2026-03-01: topics by filters/ingestion.jq (no model), estimates by filters/estimation.jq (no model), plan by filters/planner.jq (no model). Review: `approved_plan`, after 1 revision. Cost: 0.0000 US dollars. Fallbacks: none.\n"
    );
    assert!(project.exists("workspace/outputs/study_plan.pdf"));

    project.run(&[]).expect(0, &[]);
}

#[test]
fn every_agent_is_seen_at_work() {
    let project = example();
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        acts(&ran),
        BTreeSet::from([
            ("CoordinatorAgent", "invoke"),
            ("CoordinatorAgent", "handoff"),
            ("CoordinatorAgent", "complete"),
            ("IngestionAgent", "invoke"),
            ("IngestionAgent", "handoff"),
            ("IngestionAgent", "complete"),
            ("EstimationAgent", "invoke"),
            ("EstimationAgent", "handoff"),
            ("EstimationAgent", "complete"),
            ("PlanningReviewerAgent", "invoke"),
            ("PlanningReviewerAgent", "handoff"),
            ("PlanningReviewerAgent", "review"),
            ("PlanningReviewerAgent", "revision"),
            ("PlanningReviewerAgent", "complete"),
        ])
    );
    // One session, in every record and every payload.
    let sessions: BTreeSet<_> = ran
        .records
        .iter()
        .map(|record| record["session_id"].as_str().unwrap())
        .collect();
    let handoffs = project.list("intermediate/handoffs");
    assert_eq!(handoffs.len(), 6);
    let told: Vec<Value> = handoffs
        .iter()
        .map(|name| {
            project.json(&format!("workspace/intermediate/handoffs/{name}"))["session_id"].clone()
        })
        .collect();
    assert_eq!(told, vec![json!(sessions.first().unwrap()); 6]);
    assert_eq!(sessions.len(), 1);
    // What a hand-off says of itself: counts, ids, warnings.
    let summaries = |stage: &str| {
        ran.data("handoff")
            .find(|data| data["stage"] == stage)
            .unwrap()["summaries"]
            .clone()
    };
    assert_eq!(
        summaries("dispatch"),
        json!({
            "intake": {"courses": ["MATH-201", "BIO-110", "ECON-120"], "files": 5, "shared": ["midterm-notice.pdf"]},
            "collect": {"status": "complete", "topics": 20, "warnings": []},
        })
    );
    let words: Vec<_> = ran
        .records
        .iter()
        .filter(|record| record["event_type"] == "handoff")
        .map(|record| record["summary"].as_str().unwrap())
        .filter(|summary| summary.starts_with("dispatch "))
        .collect();
    assert_eq!(
        words,
        [
            "dispatch reads 3 files from intake, collect; collect: status complete, 20 topics, no warnings; intake: 3 courses (MATH-201; BIO-110; ECON-120), 5 files, 1 shared (midterm-notice.pdf)"
        ]
    );
    // Inside the loop, each role takes over from the one before: contracts 4.3 to 4.5, and 4.6 when a draft is rejected.
    let words: Vec<_> = ran
        .records
        .iter()
        .filter(|record| record["kind"] == "step_handoff")
        .map(|record| record["summary"].as_str().unwrap())
        .collect();
    let flags = "BIO-110: Microscopy: neither pages to read nor exercises are known; ECON-120: Reading a newspaper article: neither pages to read nor exercises are known";
    let reasons = "estimate: BIO-110: Microscopy: 30 minutes at a confidence of 0.4, where topics of this course take 165; estimate: ECON-120: Reading a newspaper article: 30 minutes at a confidence of 0.4, where topics of this course take 135";
    let [to_estimation, from_estimation, to_planner] = [
        "EstimationAgent reads requested from CoordinatorAgent; requested: 20 topics",
        "CoordinatorAgent reads estimated, estimates from EstimationAgent; estimates: 20 topics, 2 uncertainty flags",
        "PlanningReviewerAgent reads to_planner from CoordinatorAgent; to_planner: 3 courses (MATH-201; BIO-110; ECON-120), 20 topics",
    ];
    assert_eq!(
        words,
        [
            format!("plan, iteration 1: {to_estimation}, no changes"),
            format!("plan, iteration 1: {from_estimation} ({flags})"),
            format!("plan, iteration 1: {to_planner}, no requested changes"),
            format!(
                "plan, iteration 2: CoordinatorAgent reads rows, plan, draft, history from PlanningReviewerAgent; plan: result type needs_revision, 2 reasons ({reasons}), 58 rows"
            ),
            format!("plan, iteration 2: {to_estimation}, 2 changes ({reasons})"),
            format!("plan, iteration 2: {from_estimation} ({flags})"),
            format!("plan, iteration 2: {to_planner}, 2 requested changes ({reasons})"),
        ]
    );
    // The coordinator approves before anything is exported.
    let at = |kind: &str, stage: &str| {
        let found = ran
            .records
            .iter()
            .position(|record| record["kind"] == kind && record["data"]["stage"] == stage);
        found.unwrap()
    };
    assert!(at("checkpoint_written", "approve") < at("stage_started", "export"));
}

#[test]
fn pages_are_read_in_windows() {
    let project = example();
    let windows = ["--until", "collect", "--set", "max_pages_per_chunk=5"];
    assert_eq!(project.run(&windows).code, 0);
    let chunks = project.json("workspace/intermediate/chunks.json");
    let cut: Vec<_> = chunks["chunks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|chunk| chunk["file_id"] == "linear-algebra-exercises.pdf")
        .map(|chunk| {
            (
                chunk["chunk_id"].as_str().unwrap(),
                strings(&chunk["headings_before"]).last().copied(),
                chunk["pages"].as_array().unwrap().len(),
            )
        })
        .collect();
    assert_eq!(
        cut,
        [
            ("linear-algebra-exercises-p1-5", None, 5),
            (
                "linear-algebra-exercises-p6-10",
                Some("Chapter 2: Vectors and matrices"),
                5
            ),
            (
                "linear-algebra-exercises-p11-15",
                Some("Chapter 3: Inverse matrices"),
                5
            ),
            (
                "linear-algebra-exercises-p16-20",
                Some("Chapter 4: Vector spaces and bases"),
                5
            ),
            (
                "linear-algebra-exercises-p21-24",
                Some("Chapter 5: Determinants"),
                4
            ),
        ]
    );
    // A topic that is cut in two is one topic, with both windows as its evidence.
    let evidence = project.json(EVIDENCE);
    let topics = evidence["course_topic_evidence"].as_array().unwrap();
    assert_eq!(topics.len(), 20);
    assert_eq!(topics[1]["topic"], "Vectors and matrices");
    assert_eq!(
        strings(&topics[1]["source_chunks"]),
        [
            "linear-algebra-syllabus-p1-2",
            "linear-algebra-exercises-p1-5",
            "linear-algebra-exercises-p6-10"
        ]
    );
    assert_eq!(
        project.json("workspace/ingestion_progress.json")["completed_batches"],
        json!([1, 2, 3, 4, 5, 6, 7, 8, 9])
    );
}
