//! The graph of a pipeline as a drawing: a box for each stage, with its status, counts, cost, time and files.

mod layout;

use super::svg::{Drawing, escaped, shortened};
use crate::view::text::words::{count, grouped, seconds};
use layout::layout;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::stage_word::StageWord;
use milepost_engine::ops::inspect::graph::{Graph, GraphStage};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The width of a box.
const WIDTH: i32 = 264;

/// The space around the drawing.
const MARGIN: i32 = 12;

/// The height of a line of files.
const LINE: i32 = 15;

/// The most files that a box lists of each kind.
const FILES: usize = 3;

/// The columns of a line of files.
const COLUMNS: usize = 36;

/// Returns the graph as an element of a page with [`super::STYLE`]. `link` returns the address of a stage.
pub(crate) fn element(data: &Graph, link: &dyn Fn(&str) -> String) -> String {
    drawing(data, Some(link)).element()
}

/// Returns the graph as an SVG file.
pub(crate) fn file(data: &Graph) -> String {
    drawing(data, None).file()
}

fn drawing(data: &Graph, link: Option<&dyn Fn(&str) -> String>) -> Drawing {
    let files: Vec<Vec<String>> = data.stages.iter().map(|stage| files(data, stage)).collect();
    let heights: Vec<i32> = data
        .stages
        .iter()
        .zip(&files)
        .map(|(stage, files)| {
            let facts = facts(stage).len() as i32;
            let files = files.len() as i32;
            52 + facts * 16 + if files > 0 { 9 + files * LINE } else { 0 }
        })
        .collect();
    let place = |name: &str| data.stages.iter().position(|stage| stage.stage == name);
    let known = data
        .edges
        .iter()
        .filter_map(|edge| Some((place(&edge.from)?, place(&edge.to)?, edge)));
    let known: Vec<_> = known.collect();
    let edges: Vec<(usize, usize)> = known.iter().map(|(from, to, _)| (*from, *to)).collect();
    let places = layout(WIDTH, &heights, &edges);
    let mut content = format!("<g transform=\"translate({MARGIN} {MARGIN})\">\n");
    for ((_, _, edge), path) in known.iter().zip(&places.paths) {
        let title = format!("{} → {}: {}", edge.from, edge.to, edge.paths.join(", "));
        let title = escaped(&title);
        let _ = writeln!(
            content,
            "<path class=\"d-line\" d=\"{path}\"><title>{title}</title></path>"
        );
    }
    for (at, stage) in data.stages.iter().enumerate() {
        let (x, y) = places.corners[at];
        if edges.iter().any(|(_, to)| *to == at) {
            let x = x + WIDTH / 2;
            let _ = writeln!(
                content,
                "<path class=\"d-arrow\" d=\"M{} {}h8l-4 7z\"/>",
                x - 4,
                y - 7
            );
        }
        let card = card(stage, &files[at], heights[at]);
        let _ = match link {
            Some(link) => writeln!(
                content,
                "<a href=\"{}\" transform=\"translate({x} {y})\">\n{card}</a>",
                escaped(&link(&stage.stage))
            ),
            None => writeln!(content, "<g transform=\"translate({x} {y})\">\n{card}</g>"),
        };
    }
    content.push_str("</g>\n");
    Drawing {
        id: "graph".to_owned(),
        width: places.width + 2 * MARGIN,
        height: places.height + 2 * MARGIN,
        title: format!("Stages of {}", data.project),
        description: description(data),
        is_linked: link.is_some(),
        content,
    }
}

/// Counts the stages in each state.
fn description(data: &Graph) -> String {
    let mut words: BTreeMap<&str, u64> = BTreeMap::new();
    for stage in &data.stages {
        *words.entry(stage.state.text()).or_default() += 1;
    }
    let words = words
        .iter()
        .map(|(word, stages)| format!("{} {word}", grouped(*stages)));
    let words: Vec<String> = words.collect();
    format!(
        "{}: {}",
        count(data.stages.len() as u64, "stage", "stages"),
        words.join(", ")
    )
}

/// Returns the lines about batches, and about cost and time.
fn facts(stage: &GraphStage) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(all) = stage.batches {
        parts.push(format!(
            "{} of {}",
            grouped(stage.done),
            count(all, "batch", "batches")
        ));
    }
    if stage.running > 0 {
        parts.push(format!("{} running", grouped(stage.running)));
    }
    if stage.failed > 0 {
        parts.push(format!("{} failed", grouped(stage.failed)));
    }
    let mut spent = Vec::new();
    if let Some(of) = &stage.spent {
        spent.push(count(of.calls, "call", "calls"));
        if of.cost != NanoUsd::ZERO {
            spent.push(of.cost.to_string());
        }
        if of.unpriced > 0 {
            spent.push("unknown cost".to_owned());
        }
    }
    if let Some(of) = stage.seconds {
        spent.push(format!("{} of work", seconds(of)));
    }
    let lines = [parts.join(" · "), spent.join(" · ")].into_iter();
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    let line = lines.join(" · ");
    if line.chars().count() <= COLUMNS && !line.is_empty() {
        vec![line]
    } else {
        lines
    }
}

/// Returns the lines about inputs of the workspace and outputs.
fn files(data: &Graph, stage: &GraphStage) -> Vec<String> {
    let named = stage.named.iter().map(|named| &named.files);
    let mut lines = listed("←", &stage.inputs.iter().chain(named).collect::<Vec<_>>());
    let of = |path: &&String| {
        stage.ends.contains(*path) || data.edges.iter().any(|edge| edge.paths.contains(*path))
    };
    lines.extend(listed(
        "→",
        &stage.outputs.iter().filter(of).collect::<Vec<_>>(),
    ));
    lines
}

fn listed(arrow: &str, paths: &[&String]) -> Vec<String> {
    let shown = if paths.len() == FILES + 1 {
        FILES + 1
    } else {
        paths.len().min(FILES)
    };
    let mut lines: Vec<String> = paths[..shown]
        .iter()
        .map(|path| format!("{arrow} {path}"))
        .collect();
    if shown < paths.len() {
        lines.push(format!(
            "{arrow} and {} more",
            grouped((paths.len() - shown) as u64)
        ));
    }
    lines
}

/// Returns the box of a stage, with its left upper corner at the origin.
fn card(stage: &GraphStage, files: &[String], height: i32) -> String {
    let class = format!("d-{}", stage.state.text().replace(' ', "-"));
    let mut title = format!("{} {}: {}", stage.number, stage.stage, stage.state.text());
    if let Some(description) = &stage.description {
        title.push_str(&format!("\n{description}"));
    }
    let title: Vec<String> = title.lines().map(escaped).collect();
    let mut svg = format!("<title>{}</title>\n", title.join("\n"));
    let _ = writeln!(
        svg,
        "<rect class=\"d-card\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>"
    );
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"-1\" y=\"10\" width=\"4\" height=\"{}\" rx=\"2\"/>",
        height - 20
    );
    let _ = writeln!(
        svg,
        "<text class=\"d-name\" x=\"14\" y=\"23\"><tspan class=\"d-number\">{}</tspan> {}</text>",
        stage.number,
        escaped(&shortened(&stage.stage, 28))
    );
    let _ = writeln!(
        svg,
        "<path class=\"d-sign {class}\" transform=\"translate(14 33)\" d=\"{}\"/>",
        sign(stage.state)
    );
    let _ = writeln!(
        svg,
        "<text class=\"d-word {class}\" x=\"30\" y=\"42\">{}</text>",
        stage.state.text()
    );
    let mut y = 42;
    for line in facts(stage) {
        y += 16;
        let _ = writeln!(
            svg,
            "<text class=\"d-muted\" x=\"14\" y=\"{y}\">{}</text>",
            escaped(&line)
        );
    }
    y += 6;
    for line in files {
        y += LINE;
        let _ = writeln!(
            svg,
            "<text class=\"d-file d-muted\" x=\"14\" y=\"{y}\">{}</text>",
            escaped(&shortened(line, COLUMNS))
        );
    }
    svg
}

/// Returns the sign of a state, 10 by 10, so that no one needs to tell colours apart.
fn sign(state: StageWord) -> &'static str {
    match state {
        StageWord::UpToDate => "M1 5.5L4 8.5L9 2",
        // An arrow in a circle: it runs again.
        StageWord::OutOfDate => "M9 3A4.2 4.2 0 1 0 9.2 6M9.4 0.6V3.4H6.6",
        StageWord::Running => "M2.5 1.2L8.5 5L2.5 8.8Z",
        StageWord::Waiting => "M3 1.5V8.5M7 1.5V8.5",
        StageWord::Failed => "M1.5 1.5L8.5 8.5M8.5 1.5L1.5 8.5",
        StageWord::Partial => "M5 1V6M5 8.9V9",
        StageWord::Modified => "M1 9L1.8 6L7 0.8L9.2 3L4 8.2Z",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use milepost_engine::ops::inspect::graph::Edge;
    use milepost_engine::ops::inspect::status::StageProgress;

    fn stage(number: u32, name: &str, state: StageWord) -> GraphStage {
        GraphStage {
            number,
            stage: name.to_owned(),
            description: None,
            state,
            status: StageProgress::Complete,
            is_due: false,
            batches: None,
            done: 0,
            failed: 0,
            running: 0,
            spent: None,
            seconds: None,
            steps: Vec::new(),
            inputs: Vec::new(),
            named: Vec::new(),
            outputs: Vec::new(),
            ends: Vec::new(),
        }
    }

    #[test]
    fn a_box_shows_status_counts_time_and_files() {
        let data = Graph {
            project: "a<b".to_owned(),
            stages: vec![
                GraphStage {
                    batches: Some(1200),
                    done: 1190,
                    failed: 10,
                    seconds: Some(75.0),
                    inputs: vec!["inputs/<script>.json".to_owned()],
                    outputs: vec!["intermediate/*.json".to_owned()],
                    ..stage(1, "read", StageWord::Partial)
                },
                GraphStage {
                    description: Some("Counts \"all\"".to_owned()),
                    ..stage(2, "count", StageWord::OutOfDate)
                },
            ],
            edges: vec![Edge {
                from: "read".to_owned(),
                to: "count".to_owned(),
                paths: vec!["intermediate/*.json".to_owned()],
            }],
        };
        assert_eq!(
            element(&data, &|stage| format!("/stage?a=1&b={stage}")),
            r#"<svg xmlns="http://www.w3.org/2000/svg" class="drawing" width="288" height="245" viewBox="0 0 288 245" role="group" aria-labelledby="graph-title graph-desc">
<title id="graph-title">Stages of a&lt;b</title>
<desc id="graph-desc">2 stages: 1 out of date, 1 partial</desc>
<g transform="translate(12 12)">
<path class="d-line" d="M132 123V169"><title>read → count: intermediate/*.json</title></path>
<a href="/stage?a=1&amp;b=read" transform="translate(0 0)">
<title>1 read: partial</title>
<rect class="d-card" width="264" height="123" rx="8"/>
<rect class="d-partial" x="-1" y="10" width="4" height="103" rx="2"/>
<text class="d-name" x="14" y="23"><tspan class="d-number">1</tspan> read</text>
<path class="d-sign d-partial" transform="translate(14 33)" d="M5 1V6M5 8.9V9"/>
<text class="d-word d-partial" x="30" y="42">partial</text>
<text class="d-muted" x="14" y="58">1,190 of 1,200 batches · 10 failed</text>
<text class="d-muted" x="14" y="74">1 min 15 s of work</text>
<text class="d-file d-muted" x="14" y="95">← inputs/&lt;script&gt;.json</text>
<text class="d-file d-muted" x="14" y="110">→ intermediate/*.json</text>
</a>
<path class="d-arrow" d="M128 162h8l-4 7z"/>
<a href="/stage?a=1&amp;b=count" transform="translate(0 169)">
<title>2 count: out of date
Counts &quot;all&quot;</title>
<rect class="d-card" width="264" height="52" rx="8"/>
<rect class="d-out-of-date" x="-1" y="10" width="4" height="32" rx="2"/>
<text class="d-name" x="14" y="23"><tspan class="d-number">2</tspan> count</text>
<path class="d-sign d-out-of-date" transform="translate(14 33)" d="M9 3A4.2 4.2 0 1 0 9.2 6M9.4 0.6V3.4H6.6"/>
<text class="d-word d-out-of-date" x="30" y="42">out of date</text>
</a>
</g>
</svg>
"#
        );
    }
}
