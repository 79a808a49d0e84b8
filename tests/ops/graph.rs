//! `graph`: the pipeline as text and as Mermaid.

use crate::support::Project;
use milepost::view;
use milepost_engine::ops::inspect::graph::graph;

#[test]
fn shows_what_flows_and_how_far_it_is() {
    let project = Project::names();
    project.run_in_process();
    project.edit("workspace/inputs/list_2.json", "Cy", "Cyd");
    let found = graph(&project.request()).unwrap();
    assert_eq!(
        view::graph::graph(&found),
        "names

1 sort  out of date, 3 batches
  Sort each list
  jq
  ← inputs/list_*.json
  → intermediate/*.json

2 count  out of date
  Count all
  jq
  ← intermediate/*.json  (sort)
  → outputs/total.json
"
    );
    assert_eq!(
        view::graph::mermaid(&found),
        r#"flowchart TD
  s1["1 sort<br/>jq<br/>out of date"]
  s2["2 count<br/>jq<br/>out of date"]
  i1[/"inputs/list_*.json"/]
  i1 --> s1
  s1 -->|"intermediate/*.json"| s2
  s2 --> o1[("outputs/total.json")]
"#
    );
    assert_eq!(
        view::graph::dot(&found),
        r#"digraph "names" {
  node [shape=box, style=rounded, fontname="sans-serif"];
  edge [fontname="sans-serif", fontsize=10];
  s1 [label="1 sort\njq\nout of date"];
  s2 [label="2 count\njq\nout of date"];
  f1 [label="inputs/list_*.json", shape=note, style=""];
  f1 -> s1;
  f2 [label="outputs/total.json", shape=note, style=""];
  s2 -> f2;
  s1 -> s2 [label="intermediate/*.json"];
}
"#
    );
}

#[test]
fn files_that_a_file_names_are_shown() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"named\"\n"),
        (
            "stages/1_read.toml",
            "[inputs.texts]\nfrom = \"inputs/list.json\"\nselect = \".[]\"\nbase = \"inputs/texts\"\n[inputs.rules]\nfrom = \"inputs/list.json\"\nselect = \".[]\"\nbase = \"project:\"\n[step]\njq = '.texts'\n[outputs]\nmade = { path = \"outputs/made.json\", schema = false }\n",
        ),
    ]);
    let found = graph(&project.request()).unwrap();
    assert_eq!(
        view::graph::graph(&found),
        "named

1 read  out of date
  jq
  ← inputs/list.json
  ← inputs/texts/**  (named by inputs/list.json)
  ← project:**  (named by inputs/list.json)
  → outputs/made.json
"
    );
    assert_eq!(
        view::graph::mermaid(&found),
        r#"flowchart TD
  s1["1 read<br/>jq<br/>out of date"]
  i1[/"inputs/list.json"/]
  i1 --> s1
  i2[/"inputs/texts/**"/]
  i2 -->|"named by inputs/list.json"| s1
  i3[/"project:**"/]
  i3 -->|"named by inputs/list.json"| s1
  s1 --> o1[("outputs/made.json")]
"#
    );
}

#[test]
fn an_input_that_a_value_names_is_shown_as_it_is_declared() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"named\"\n"),
        (
            "stages/1_work.toml",
            "[each.f]\npath = \"inputs/*.json\"\n\n[inputs]\nd = \"{{ f.path }}\"\n\n[step]\njq = '$d'\n\n[outputs]\no = { path = \"outputs/{{ f.stem }}.json\", schema = false }\n",
        ),
        (
            "stages/2_next.toml",
            "[each.r]\nvalues = [\"inputs/a.json\"]\n\n[inputs]\nd = \"{{ r }}\"\n\n[step]\njq = '$d'\n\n[outputs]\no = { path = \"next/{{ r }}.json\", schema = false }\n",
        ),
    ]);
    let found = graph(&project.request()).unwrap();
    assert_eq!(
        view::graph::graph(&found),
        "named

1 work  out of date
  jq
  ← inputs/*.json
  → outputs/*.json

2 next  out of date, 1 batch
  jq
  ← {{ r }}
  → next/*.json
"
    );
}
