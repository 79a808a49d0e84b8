//! Agents that are asked once for a batch, without questions.

use super::pipeline::{Served, answered, calls, speller};
use crate::support::Project;
use serde_json::json;

const TELL: &str = r#"
[each.run]
values = [1, 2, 3]

[inputs]
topic = "inputs/topic.txt"

[step]
agent = "speller"
prompt = "prompts/tell.md"
result = '{said, run: $run}'

[outputs]
told = { path = "intermediate/told/run_{{ run }}.json", schema = false }
"#;

/// Three runs of one prompt, whose answer is JSON, text or YAML.
pub fn tells(port: u16, more: &str) -> Project {
    let project = speller(port, "well");
    for stage in [
        "stages/1_split.toml",
        "stages/2_ask.toml",
        "stages/3_join.toml",
    ] {
        project.remove(stage);
    }
    project.write("prompts/tell.md", "Tell of {{ topic }}\n");
    project.write("workspace/inputs/topic.txt", "walls");
    project.write(
        "stages/1_tell.toml",
        TELL.replace("result = '{said, run: $run}'", more),
    );
    project
}

#[test]
fn runs_of_one_prompt_are_calls_of_their_own_and_none_is_sent_twice() {
    let served = Served::new("well");
    let project = tells(served.port, "result = '{said, run: $run}'");
    let ran = project.run(&["--agent", "speller=api"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(calls(&project), answered(&[1, 1, 1]));
    let told = project.json("workspace/intermediate/told/run_2.json");
    assert_eq!(told, json!({"said": "Tell of walls", "run": 2}));

    // Another result of the same answers: nothing is sent; nor when all is made again.
    project.edit("stages/1_tell.toml", "{said, run: $run}", "{said}");
    assert_eq!(project.run(&["--agent", "speller=api"]).code, 0);
    assert_eq!(project.run(&["--agent", "speller=api", "-B"]).code, 0);
    assert_eq!(calls(&project).len(), 3);
    assert_eq!(
        project.json("workspace/intermediate/told/run_2.json"),
        json!({"said": "Tell of walls"})
    );
    assert_eq!(
        project
            .run(&["--agent", "speller=api", "-B", "--fresh"])
            .code,
        0
    );
    assert_eq!(calls(&project).len(), 6);
    project.write("workspace/inputs/topic.txt", "doors");
    assert_eq!(project.run(&["--agent", "speller=api"]).code, 0);
    assert_eq!(calls(&project).len(), 9);
}

#[test]
fn a_dry_run_of_a_list_shows_calls_and_cost_of_each_workspace_and_of_all() {
    let served = Served::new("well");
    let project = tells(served.port, "result = '{said, run: $run}'");
    project.write("list.json", r#"[{"workspace": "a"}, {"workspace": "b"}]"#);
    for name in ["a", "b"] {
        project.write(&format!("workspaces/{name}/inputs/topic.txt"), "walls");
    }
    let list = ["run", "--workspaces", "list.json", "--agent", "speller=api"];
    let dry = |more: &str| {
        let output = project.output_of(project.command(&list).arg(more));
        (output.code, output.out)
    };
    let each = "3 calls to make, at most 54 with every retry, $0.05";
    let all = "2 workspaces, 6 calls to make, at most 108 with every retry, $0.09\n";
    assert_eq!(
        dry("-n"),
        (
            0,
            format!("a  planned  …  {each}\nb  planned  …  {each}\n\n{all}")
        )
    );
    let waits = format!("a  waiting  …  {each}\nb  waiting  …  {each}\n\n{all}");
    assert_eq!(dry("--until-paid"), (0, waits));
    assert_eq!(calls(&project), answered(&[]));

    // What an earlier stage decides is not known before it ran.
    project.edit(
        "stages/1_tell.toml",
        "values = [1, 2, 3]",
        "from = \"runs.json\"\nselect = \".[]\"",
    );
    project.write("stages/0_runs.toml", "[inputs]\ntopic = \"inputs/topic.txt\"\n[step]\njq = '[1, 2]'\n[outputs]\nruns = { path = \"runs.json\", schema = false }\n");
    let (code, text) = dry("-n");
    let all = "2 workspaces, number of calls not known yet\n";
    assert_eq!((code, text.ends_with(all)), (0, true), "{text}");
}

#[test]
fn a_plan_of_a_loop_names_the_calls_of_the_first_iteration_and_those_at_most() {
    let served = Served::new("well");
    let project = tells(served.port, "result = '{said, run: $run}'");
    project.write("prompts/tell.md", "Tell of {{ topic }}, {{ iteration }}\n");
    project.write(
        "stages/1_tell.toml",
        project.read("stages/1_tell.toml")
            + "\n[refine]\nuntil = '$iteration >= 2'\nmax_iterations = 4\n",
    );
    let agent = ["--agent", "speller=api"];
    let plan = project.plan(&agent).unwrap();
    let asks = &plan["stages"][0]["asks"];
    // Three batches, four iterations, three attempts; a request is sent up to six times while the provider is too busy.
    assert_eq!(
        (&asks["calls"], &asks["most_calls"], &asks["iterations"]),
        (&json!(3), &json!(3 * 4 * 3 * 6), &json!(4)),
        "{asks:#}"
    );
    let (_, text) = project.milepost(&["plan", "--agent", "speller=api"]);
    let range = "3 calls in the first iteration, at most 216 in 4 iterations with every retry";
    assert!(text.contains(range), "{text}");
    // The cost is a range, from one iteration to the last.
    let cost = |key: &str| asks[key].as_f64().unwrap();
    assert!(cost("cost") > 0.0, "{asks:#}");
    assert!(
        (cost("most_cost") / cost("cost") - 4.0).abs() < 1e-6,
        "{asks:#}"
    );
    assert!(
        text.contains(" for 1 to 4 iterations; assuming 1,000 tokens per answer"),
        "{text}"
    );
    assert_eq!(text.matches("at most").count(), 1, "{text}");
    let ran = project.run(&agent);
    assert_eq!((ran.code, calls(&project).len()), (0, 6), "{}", ran.output);
}

#[test]
fn answers_that_an_interrupted_run_was_to_ask_anew_are_asked_anew_once() {
    let served = Served::new("well");
    let project = tells(served.port, "result = '{said, run: $run}'");
    let run = |more: &[&str], code: i32, calls_so_far: usize| {
        let ran = project.run(&[&["--agent", "speller=api"], more].concat());
        assert_eq!(
            (ran.code, calls(&project).len()),
            (code, calls_so_far),
            "{more:?}: {}",
            ran.output
        );
    };
    run(&[], 0, 3);
    run(&["-B", "--fresh", "--limit", "1"], 3, 4);
    run(&["--limit", "1"], 3, 5);
    run(&[], 0, 6);
    run(&[], 0, 6);
    // Without --fresh, what is left is rebuilt from the answers that are kept.
    run(&["-B", "--limit", "1"], 3, 6);
    run(&[], 0, 6);
    // Batches that no run has made yet ask anew as well.
    project.remove("workspace/.milepost/workspace.json");
    std::fs::remove_dir_all(project.at("workspace/.milepost/journal")).unwrap();
    std::fs::remove_dir_all(project.at("workspace/manifests")).unwrap();
    std::fs::remove_dir_all(project.at("workspace/intermediate")).unwrap();
    std::fs::remove_file(project.at("workspace/stage_1_complete.json")).unwrap();
    // The answers are still kept; the journal counts calls from here on.
    run(&["-B", "--fresh", "--limit", "1"], 3, 1);
    run(&[], 0, 3);
    run(&["-B"], 0, 3);
}

#[test]
fn an_answer_is_text_or_yaml_where_the_step_says_so() {
    let served = Served::new("well");
    let project = tells(served.port, "answer = \"text\"");
    project.edit(
        "stages/1_tell.toml",
        "run_{{ run }}.json",
        "run_{{ run }}.txt",
    );
    let ran = project.run(&["--agent", "speller=chat"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.read("workspace/intermediate/told/run_1.txt"),
        r#"{"said": "Tell of walls", "length": 13}"#
    );

    let project = tells(
        served.port,
        "answer = \"tap-yaml\"\ndefaults = { passed = false }",
    );
    project.write("prompts/tell.md", "Judge {{ topic }}\n");
    let ran = project.run(&["--agent", "speller=chat"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.json("workspace/intermediate/told/run_1.json"),
        json!({"score": 90, "actual": "walls", "passed": false})
    );
    ran.says("the answer lacks `passed`: its default is used");
}

#[test]
fn a_result_sees_what_its_requests_used() {
    let served = Served::new("well");
    let project = tells(served.port, "result = '{said, usage: $usage}'");
    let used = |project: &Project| {
        let told = project.json("workspace/intermediate/told/run_1.json");
        told["usage"].clone()
    };
    assert_eq!(project.run(&["--agent", "speller=api"]).code, 0);
    let first = used(&project);
    // `model.py` answers with 20 tokens; 15 dollars are a million of them, and input costs too.
    assert_eq!(first["output_tokens"], 20);
    assert!(first["input_tokens"].as_u64().unwrap() > 0, "{first}");
    assert!(first["cost_usd"].as_f64().unwrap() > 0.0003, "{first}");
    // What an answer cost is kept with it.
    assert_eq!(project.run(&["--agent", "speller=api", "-B"]).code, 0);
    assert_eq!((used(&project), calls(&project).len()), (first, 3));
    // What a program used, nobody knows; a filter uses nothing.
    assert_eq!(project.run(&["--agent", "speller=tool"]).code, 0);
    let nobody = json!({"input_tokens": null, "output_tokens": null, "cost_usd": null});
    assert_eq!(used(&project), nobody);
    project.edit("milepost.toml", "(.name | ascii_upcase)", "1, said: 2");
    assert_eq!(project.run(&["--agent", "default"]).code, 0);
    let nothing = json!({"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0});
    assert_eq!(used(&project), nothing);
}

#[test]
fn a_placeholder_sees_what_failed_calls_cost() {
    let served = Served::new("well");
    let project = tells(
        served.port,
        "schema = \"schemas/never.schema.json\"\nattempts = 2",
    );
    project.write("schemas/never.schema.json", r#"{"required": ["never"]}"#);
    let declared = project.read("stages/1_tell.toml");
    project.write(
        "stages/1_tell.toml",
        format!("{declared}\n[policy]\nplaceholder = '.'\n"),
    );
    let told = |project: &Project, run: u32| {
        project.json(&format!("workspace/intermediate/told/run_{run}.json"))
    };
    let ran = project.run(&["--agent", "speller=api"]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    let first = told(&project, 1);
    assert_eq!(
        (&first["outcome"], &first["usage"]["output_tokens"]),
        (&json!("schema"), &json!(40))
    );
    // As much as the record of the calls says.
    let (code, status) = project.milepost(&["status", "--agent", "speller=api", "--json"]);
    assert_eq!(code, 0, "{status}");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let cost = (1..=3).map(|run| told(&project, run)["usage"]["cost_usd"].as_f64().unwrap());
    let all = (cost.sum::<f64>() * 1e9).round() as u64;
    assert_eq!(status["stages"][0]["spent"]["cost"].as_u64(), Some(all));

    // What a program used, nobody knows; a filter uses nothing.
    assert_eq!(project.run(&["--agent", "speller=tool"]).code, 3);
    let nobody = json!({"input_tokens": null, "output_tokens": null, "cost_usd": null});
    assert_eq!(told(&project, 1)["usage"], nobody);
    project.edit("milepost.toml", "(.name | ascii_upcase)", "1, said: 2");
    assert_eq!(project.run(&["--agent", "default"]).code, 3);
    let nothing = json!({"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0});
    assert_eq!(told(&project, 1)["usage"], nothing);
}
