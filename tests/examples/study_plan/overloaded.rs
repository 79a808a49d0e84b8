//! Requests with more work than the days hold, planned and reviewed by the filters alone.

use crate::crash::sweep::setting;
use milepost_core::expr::jq::Jq;
use serde_json::{Value, json};
use std::path::Path;

/// A filter of the example with its library.
struct Filter {
    jq: Jq,
    names: Vec<&'static str>,
}

impl Filter {
    fn new(name: &str, names: &[&'static str]) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/study-plan/filters");
        let read = |name: &str| std::fs::read_to_string(folder.join(format!("{name}.jq"))).unwrap();
        let source = read(name).replace("include \"lib\";", &read("lib"));
        Self {
            jq: Jq::compile(name, &source, names).unwrap(),
            names: names.to_vec(),
        }
    }

    /// The result for a scope: its values are the input and the variables.
    fn of(&self, scope: &Value) -> Value {
        let values: Vec<Value> = self.names.iter().map(|name| scope[name].clone()).collect();
        self.jq.one(scope.clone(), &values).unwrap()
    }
}

/// A number below `below` (SplitMix64).
fn random(seed: &mut u64, below: usize) -> usize {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) % below.max(1) as u64) as usize
}

fn date(at: usize) -> String {
    let first: jiff::civil::Date = "2027-03-01".parse().unwrap();
    (first + jiff::Span::new().days(at as i64)).to_string()
}

/// Up to five courses with one to four times as much work as their days hold.
fn request(seed: u64) -> Value {
    let seed = &mut seed.clone();
    let days = [3, 6, 10, 14][random(seed, 4)];
    let limit = [50, 55, 60, 75, 90, 120, 180][random(seed, 7)];
    let count = 1 + random(seed, 5);
    let all = days * limit * (2 + random(seed, 7)) / 2;
    let (mut courses, mut evidence, mut estimates) = (Vec::new(), Vec::new(), Vec::new());
    for course in 0..count {
        let id = format!("C{course}");
        courses.push(json!({
            "course_id": id, "course_name": format!("Course {course}"), "midterm_date": date(1 + random(seed, days))
        }));
        let mut left = (all / count).min(2400);
        while left > 0 {
            let minutes = [15, 20, 25, 30, 45, 60, 75, 90, 120, 150, 195, 240][random(seed, 12)];
            let topic = format!("T{}", estimates.len());
            let priority = ["high", "medium", "low"][random(seed, 3)];
            evidence.push(json!({
                "course_id": id, "topic": topic, "evidence_summary": "", "source_files": []
            }));
            estimates.push(json!({
                "course_id": id, "topic": topic, "estimated_minutes": minutes, "confidence": 0.9,
                "priority": priority
            }));
            left = left.saturating_sub(minutes);
        }
    }
    json!({
        "workspace": {"session_id": "S"},
        "params": {"minutes_per_day": limit, "revision_days": random(seed, 4)},
        "to_ingestion": {"courses": courses},
        "to_estimation": {"course_topic_evidence": evidence, "constraints": {"start_date": date(0)}},
        "estimates": {"topic_estimates": estimates},
    })
}

#[test]
fn more_work_than_time_is_always_a_plan() {
    let to_planner = Filter::new(
        "to_planner",
        &[
            "workspace",
            "params",
            "estimates",
            "to_ingestion",
            "to_estimation",
            "requested",
        ],
    );
    let planner = Filter::new("planner", &["to_planner"]);
    let review = Filter::new("review", &["workspace", "to_estimation"]);
    for seed in 0..setting("MILEPOST_TEST_SEEDS", 40) as u64 {
        let mut scope = request(seed);
        let mut changes = json!([]);
        let mut verdicts = Vec::new();
        for _ in 0..4 {
            scope["requested"] = json!({ "changes": changes });
            scope["to_planner"] = to_planner.of(&scope);
            scope["rows"] = planner.of(&scope);
            let plan = review.of(&scope);
            verdicts.push(plan["result_type"].as_str().unwrap().to_owned());
            changes = plan["revision_reasons"].clone();
            if plan["result_type"] != "needs_revision" {
                break;
            }
        }
        let last = verdicts.last().unwrap();
        assert_ne!(
            last, "needs_revision",
            "seed {seed}: {verdicts:?}: {changes}"
        );
    }
}
