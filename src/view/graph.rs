//! `graph` as text, as a Mermaid flowchart (<https://mermaid.js.org/syntax/flowchart.html>), and in the DOT language of Graphviz
//! (<https://graphviz.org/doc/info/lang.html>).

use crate::view::text::words::batches;
use milepost_core::base::visible::visible;
use milepost_engine::ops::inspect::graph::Graph;
use std::collections::BTreeMap;

/// Returns each stage with the files that it reads and writes.
pub fn graph(data: &Graph) -> String {
    let mut text = format!("{}\n", visible(&data.project));
    for node in &data.stages {
        text.push_str(&format!(
            "\n{} {}  {}",
            node.number,
            node.stage,
            node.state.text()
        ));
        if let Some(count) = node.batches {
            text.push_str(&format!(", {}", batches(count)));
        }
        text.push('\n');
        if let Some(description) = &node.description {
            text.push_str(&format!("  {}\n", visible(description)));
        }
        text.push_str(&format!("  {}\n", node.steps.join(", ")));
        for input in &node.inputs {
            text.push_str(&format!("  ← {}\n", visible(input)));
        }
        for edge in data.edges.iter().filter(|edge| edge.to == node.stage) {
            for path in &edge.paths {
                text.push_str(&format!("  ← {}  ({})\n", visible(path), edge.from));
            }
        }
        for named in &node.named {
            text.push_str(&format!(
                "  ← {}  (named by {})\n",
                visible(&named.files),
                visible(&named.by)
            ));
        }
        for output in &node.outputs {
            text.push_str(&format!("  → {}\n", visible(output)));
        }
    }
    text
}

/// Returns the pipeline as a Mermaid flowchart, for READMEs and wikis.
pub fn mermaid(data: &Graph) -> String {
    let mut text = String::from("flowchart TD\n");
    let mut inputs: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &data.stages {
        let steps = node.steps.join(", ");
        text.push_str(&format!(
            "  s{}[\"{}\"]\n",
            node.number,
            quoted(&format!(
                "{} {}<br/>{steps}<br/>{}",
                node.number,
                node.stage,
                node.state.text()
            ))
        ));
    }
    for node in &data.stages {
        for input in &node.inputs {
            let next = inputs.len() + 1;
            let number = *inputs.entry(input).or_insert(next);
            if number == next {
                text.push_str(&format!("  i{number}[/\"{}\"/]\n", quoted(input)));
            }
            text.push_str(&format!("  i{number} --> s{}\n", node.number));
        }
        for named in &node.named {
            let next = inputs.len() + 1;
            let number = *inputs.entry(&named.files).or_insert(next);
            if number == next {
                let files = quoted(&named.files);
                text.push_str(&format!("  i{number}[/\"{files}\"/]\n"));
            }
            let by = quoted(&named.by);
            text.push_str(&format!(
                "  i{number} -->|\"named by {by}\"| s{}\n",
                node.number
            ));
        }
    }
    for edge in &data.edges {
        text.push_str(&format!(
            "  s{} -->|\"{}\"| s{}\n",
            number(data, &edge.from),
            quoted(&edge.paths.join("<br/>")),
            number(data, &edge.to)
        ));
    }
    let ends = data
        .stages
        .iter()
        .flat_map(|node| node.ends.iter().map(move |end| (node.number, end)));
    for (at, (stage, end)) in ends.enumerate() {
        text.push_str(&format!(
            "  s{stage} --> o{}[(\"{}\")]\n",
            at + 1,
            quoted(end)
        ));
    }
    text
}

/// Returns the pipeline in the DOT language, for `dot -Tsvg`.
pub fn dot(data: &Graph) -> String {
    let mut text = format!(
        "digraph {} {{\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n",
        in_dot(&data.project)
    );
    for node in &data.stages {
        let label = format!(
            "{} {}\n{}\n{}",
            node.number,
            node.stage,
            node.steps.join(", "),
            node.state.text()
        );
        text.push_str(&format!("  s{} [label={}];\n", node.number, in_dot(&label)));
    }
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    let mut of_file = |text: &mut String, path| {
        let next = files.len() + 1;
        let number = *files.entry(path).or_insert(next);
        if number == next {
            let path = in_dot(path);
            text.push_str(&format!(
                "  f{number} [label={path}, shape=note, style=\"\"];\n"
            ));
        }
        number
    };
    for node in &data.stages {
        for input in &node.inputs {
            let file = of_file(&mut text, input);
            text.push_str(&format!("  f{file} -> s{};\n", node.number));
        }
        for named in &node.named {
            let file = of_file(&mut text, &named.files);
            let by = in_dot(&format!("named by {}", named.by));
            text.push_str(&format!("  f{file} -> s{} [label={by}];\n", node.number));
        }
        for end in &node.ends {
            let file = of_file(&mut text, end);
            text.push_str(&format!("  s{} -> f{file};\n", node.number));
        }
    }
    for edge in &data.edges {
        text.push_str(&format!(
            "  s{} -> s{} [label={}];\n",
            number(data, &edge.from),
            number(data, &edge.to),
            in_dot(&edge.paths.join("\n"))
        ));
    }
    text.push_str("}\n");
    text
}

fn number(data: &Graph, stage: &str) -> u32 {
    let node = data.stages.iter().find(|node| node.stage == stage);
    node.map_or(0, |node| node.number)
}

/// Returns a quoted string of DOT, with its line breaks.
fn in_dot(text: &str) -> String {
    let lines = text
        .split('\n')
        .map(|line| visible(line).replace('\\', "\\\\").replace('"', "\\\""));
    format!("\"{}\"", lines.collect::<Vec<_>>().join("\\n"))
}

/// Escapes a text for a quoted label of Mermaid.
fn quoted(text: &str) -> String {
    visible(text).replace('"', "#quot;")
}
