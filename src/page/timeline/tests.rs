//! Texts of a lane: who acts, how iterations ended, and the steps that are wide enough for a text.

use super::*;
use milepost_engine::ops::inspect::history::BarResult;

fn bar(kind: BarKind, (from, to): (i64, i64), result: BarResult, name: &str) -> TimelineBar {
    TimelineBar {
        kind,
        row: 0,
        from,
        to,
        count: 1,
        failed: 0,
        result,
        name: name.to_owned(),
        attempts: 1,
    }
}

fn texts(svg: &str) -> Vec<&str> {
    let parts = svg.split("<text ").skip(1);
    let texts = parts.map(|part| part.split_once('>').unwrap().1);
    texts.map(|text| text.split('<').next().unwrap()).collect()
}

#[test]
fn a_lane_names_its_agents_iterations_and_steps() {
    let (iteration, step) = (
        BarKind::Part(PartKind::Iteration),
        BarKind::Part(PartKind::Step),
    );
    let agents = ["author", "critic", "plan", "c", "d", "e", "f", "g"];
    let lane = TimelineLane {
        run: "01".to_owned(),
        stage: "plan".to_owned(),
        agents: agents.map(str::to_owned).to_vec(),
        batches: 1,
        rows: 1,
        bars: vec![
            bar(BarKind::Batch, (0, 1000), BarResult::Built, ""),
            bar(iteration, (0, 500), BarResult::Repeated, "1"),
            bar(iteration, (500, 1000), BarResult::Built, "2"),
            bar(step, (0, 480), BarResult::Built, "author: draft"),
            bar(step, (480, 500), BarResult::Built, "critic: review"),
        ],
        marks: Vec::new(),
    };
    let data = Timeline {
        from: 0,
        to: 1000,
        width: 1000,
        runs: Vec::new(),
        lanes: vec![lane],
        left_out: 0,
    };
    let svg = element(&data, "drawing", None);
    let shown = texts(&svg);
    let lane = shown.iter().position(|text| *text == "plan").unwrap();
    assert_eq!(
        shown[lane..],
        [
            "plan",
            "author",
            "critic",
            "c",
            "d",
            "e",
            "and 2 more",
            "1: not satisfied",
            "2: satisfied",
            "author: draft",
            "complete",
            "iteration, satisfied",
            "iteration, not satisfied",
            "step",
        ]
    );
}
