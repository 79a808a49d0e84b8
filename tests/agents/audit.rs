//! What is known afterwards of what agents did: who was asked what, with which answers, for how much.

use super::pipeline::{Served, answered, calls, made, speller, things, words};
use crate::support::Project;
use serde_json::{Value, json};

/// `--json` of a reading command.
fn told(project: &Project, arguments: &[&str]) -> Value {
    let output = project
        .command(&[arguments, &["--json"]].concat())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A project of 10 things whose stage goes on after failures, and whose agent leaves out what stands in a file.
pub fn going_on(left_out: &str) -> (Project, Served) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let file = file.into_temp_path().keep().unwrap();
    let answering = format!("without:{}", file.display());
    let served = Served::new(&answering);
    let project = speller(served.port, &answering);
    std::fs::write(&file, left_out).unwrap();
    project.write("left_out", file.display().to_string());
    let ask = project.read("stages/2_ask.toml");
    project.write(
        "stages/2_ask.toml",
        format!("{ask}\n[policy]\non_failure = \"continue\"\n"),
    );
    let join = project.read("stages/3_join.toml");
    project.write(
        "stages/3_join.toml",
        format!("allow_partial = true\n{join}"),
    );
    (project, served)
}

fn answer_all(project: &Project) {
    std::fs::write(project.read("left_out"), "").unwrap();
}

/// What the journal says of a stage, without times: coarse kind, who acted, precise kind.
fn events(project: &Project, stage: &str) -> Vec<(String, String, String)> {
    let records = project.records();
    let of_stage = records
        .iter()
        .filter(|record| record["data"]["stage"] == stage);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    of_stage
        .map(|record| {
            (
                text(&record["event_type"]),
                text(&record["agent_name"]),
                text(&record["kind"]),
            )
        })
        .collect()
}

#[test]
fn a_batch_ends_without_the_elements_that_have_no_valid_answer_and_only_they_are_asked_again() {
    let (project, _served) = going_on("name 1\n");
    let agent = ["--agent", "speller=api"];
    let ran = project.run(&agent);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("ask/batch_1 failed: SCHEMA: 2 elements have no valid answer: 2, 3");
    // Five names, four a batch; of the first batch one has no answer, three times.
    assert_eq!(calls(&project), answered(&[4, 1, 1, 1]));
    let mut without = words(10);
    without.as_array_mut().unwrap().drain(2..4);
    assert_eq!(made(&project), without);
    let checkpoint = project.json("workspace/stage_2_complete.json");
    assert_eq!(
        (
            &checkpoint["status"],
            &checkpoint["failed"],
            &checkpoint["element_count"]
        ),
        (
            &json!("partial"),
            &json!({"batch_1": "SCHEMA: 2 elements have no valid answer: 2, 3"}),
            &json!(8)
        )
    );
    let progress = project.json("workspace/ask_progress.json");
    assert_eq!(
        (&progress["completed_batches"], &progress["failed_batches"]),
        (&json!([2]), &json!(["batch_1"]))
    );
    let records = project.records();
    let failed = records
        .iter()
        .find(|record| record["kind"] == "elements_failed")
        .unwrap();
    let outcome = json!({
        "kind": "schema", "code": "SCHEMA", "message": "q2 has no valid answer after 3 requests",
        "details": ["q2: no answer"], "passing": false,
    });
    assert_eq!(
        failed["data"]["failed"],
        json!([{"keys": ["2", "3"], "outcome": outcome}])
    );

    // Request, answer and violations are set aside, and `why` says where.
    let folder = failed["data"]["quarantine"].as_str().unwrap();
    let why = told(&project, &["why", "ask/batch_1", "--agent", "speller=api"]);
    assert_eq!(why["quarantine"], folder);
    assert_eq!(why["failed"], failed["data"]["failed"]);
    let kept = |file: &str| project.read(&format!("workspace/{folder}/{file}"));
    assert_eq!(
        kept("WHY.txt"),
        "SCHEMA: 2 elements have no valid answer: 2, 3\nq2: no answer\n\n\
         The answer to call 1 was not valid:\n- q2: no answer\n\n\
         The answer to call 2 was not valid:\n- q2: no answer\n\n\
         The answer to call 3 was not valid:\n- q2: no answer\n"
    );
    let run = failed["run_id"].as_str().unwrap();
    for file in ["000002.request", "000002.answer"] {
        let bytes = project.read(&format!("workspace/.milepost/calls/{run}/{file}"));
        assert_eq!(kept(file), bytes);
    }

    // The next run asks what failed, and nothing else.
    answer_all(&project);
    let ran = project.run(&agent);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(calls(&project)[4..], answered(&[1]));
    assert_eq!(made(&project), words(10));
    assert_eq!(
        project.json("workspace/stage_2_complete.json")["status"],
        "complete"
    );
    let why = told(&project, &["why", "ask/batch_1", "--agent", "speller=api"]);
    assert_eq!(
        (&why["decision"], &why["failed"], &why["quarantine"]),
        (&json!("reused"), &json!([]), &Value::Null)
    );
    assert_eq!(project.run(&agent).records, Vec::<Value>::new());
}

#[test]
fn a_stage_that_stops_at_failures_fails_its_batch_as_a_whole() {
    let (project, _served) = going_on("name 1\n");
    project.edit("stages/2_ask.toml", "\"continue\"", "\"stop\"");
    let ran = project.run(&["--agent", "speller=chat"]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says("1 of 4 questions has no valid answer after 3 requests");
    assert_eq!(project.list("intermediate/words"), Vec::<String>::new());
    let records = project.records();
    let failed = records
        .iter()
        .find(|record| record["kind"] == "batch_failed")
        .unwrap();
    let folder = failed["data"]["quarantine"].as_str().unwrap();
    assert_eq!(
        project.list(folder),
        [
            "000001.answer",
            "000001.request",
            "000002.answer",
            "000002.request",
            "000003.answer",
            "000003.request",
            "WHY.txt"
        ]
    );
    let why = project.milepost(&["why", "ask/batch_1", "--agent", "speller=chat"]);
    assert!(why.1.contains(folder), "{}", why.1);
    answer_all(&project);
    assert_eq!(project.run(&["--agent", "speller=chat"]).code, 0);
    assert_eq!(calls(&project)[3..], answered(&[1, 1]));
}

#[test]
fn elements_without_conservation_are_named_by_their_place() {
    let (project, _served) = going_on("name 1\n");
    let ask = project.read("stages/2_ask.toml");
    let (before, after) = ask.split_once("[conserve]").unwrap();
    let policy = after.split_once("[policy]").unwrap().1;
    project.write("stages/2_ask.toml", format!("{before}[policy]{policy}"));
    let ran = project.run(&["--agent", "speller=api"]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("2 elements have no valid answer: /elements/2, /elements/3");
    // Where something else than the elements is counted, nothing can be named as failed.
    project.write(
        "stages/2_ask.toml",
        format!("{before}[conserve]\nin = \".batch.data.questions[].id\"\nout = \".words[].id\"\n\n[policy]{policy}"),
    );
    let ran = project.run(&["--agent", "speller=api"]);
    ran.says("1 of 4 questions has no valid answer");
}

/// An agent that does everything wrong at random, in a stage that goes on: each run says which elements are missing, and none else is.
#[test]
fn what_came_in_is_at_any_time_what_came_out_and_what_is_named_as_failed() {
    for seed in 1..=3 {
        let badly = format!("badly:{seed}");
        let served = Served::new(&badly);
        let project = speller(served.port, &badly);
        for (stage, before, after) in [
            ("2_ask", "", "\n[policy]\non_failure = \"continue\"\n"),
            ("3_join", "allow_partial = true\n", ""),
        ] {
            let path = format!("stages/{stage}.toml");
            project.write(&path, format!("{before}{}{after}", project.read(&path)));
        }
        project.edit(
            "stages/2_ask.toml",
            "questions = true",
            "questions = true\nattempts = 1",
        );
        project.write("workspace/inputs/things.json", things(40).to_string());
        let mut last = None;
        for _ in 0..40 {
            let ran = project.run_unplanned(&["--agent", "speller=chat"]);
            project.check_checkpoints();
            let mut keys: Vec<String> = Vec::new();
            for record in ran.data("elements_failed") {
                let failed = record["failed"].as_array().unwrap().iter();
                let of_all = failed.flat_map(|failed| failed["keys"].as_array().unwrap());
                keys.extend(of_all.map(|key| key.as_str().unwrap().to_owned()));
            }
            for batch in ran.batches("batch_failed") {
                let file = batch.replace("ask/", "workspace/intermediate/batches/") + ".json";
                let elements = project.json(&file)["elements"].as_array().unwrap().clone();
                keys.extend(elements.iter().map(|element| element["id"].to_string()));
            }
            let present = made(&project).as_array().unwrap().clone();
            assert_eq!(
                present.len() + keys.len(),
                40,
                "seed {seed}: {}",
                ran.output
            );
            let mut right = words(40).as_array().unwrap().clone();
            right.retain(|word| !keys.contains(&word["id"].to_string()));
            assert_eq!(present, right, "seed {seed}");
            assert_eq!(
                ran.code,
                if keys.is_empty() { 0 } else { 3 },
                "{}",
                ran.output
            );
            last = Some(ran.code);
            if ran.code == 0 {
                break;
            }
        }
        assert_eq!(last, Some(0), "seed {seed}");
        // Each name was answered validly once.
        let answers = project.list(".milepost/answers");
        let lines = answers.iter().map(|name| {
            let text = project.read(&format!("workspace/.milepost/answers/{name}"));
            text.lines().count()
        });
        assert_eq!(lines.sum::<usize>(), 20, "seed {seed}");
    }
}

#[test]
fn why_log_and_status_tell_who_answered_for_how_much() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    let declared = project.read("milepost.toml");
    project.write(
        "milepost.toml",
        format!("{declared}\n[limits]\nusd = 1\ntokens = 100000\ncalls = 10\n"),
    );
    let agent = ["--agent", "speller=api"];
    assert_eq!(project.run(&agent).code, 0);
    let first = project.records()[0]["run_id"].clone();
    // Two new names in the last batch, whose other name is answered.
    project.write("workspace/inputs/things.json", things(14).to_string());
    assert_eq!(project.run(&agent).code, 0);
    assert_eq!(calls(&project), answered(&[4, 1, 2]));

    let why = told(&project, &["why", "ask/batch_2", "--agent", "speller=api"]);
    let asked = &why["asked"];
    let second = why["made"]["run"].clone();
    assert_eq!(
        (&asked["answers"], &asked["kept"], &asked["from"]),
        (
            &json!(3),
            &json!(1),
            &json!([
                {"run": first, "call": 2, "answers": 1},
                {"run": second, "call": 1, "answers": 2},
            ])
        )
    );
    let one = &asked["calls"][1];
    let request = format!(
        ".milepost/calls/{}/000001.request",
        second.as_str().unwrap()
    );
    assert_eq!(
        (
            &one["run"],
            &one["agent"],
            &one["model"],
            &one["served"],
            &one["questions"],
            &one["outcome"],
            &one["usage"]["cache_read"],
            &one["usage"]["output"],
            &one["request"],
        ),
        (
            &second,
            &json!("api"),
            &json!("claude-sonnet-4-5"),
            &json!("claude-sonnet-4-5-served"),
            &json!(2),
            &json!("answered"),
            &json!(5),
            &json!(20),
            &json!(request),
        )
    );
    assert!(one["cost"].as_u64() > Some(0) && one["seconds"].is_number());
    let path = "workspace/intermediate/words/batch_2.json";
    let file = told(&project, &["why", path, "--agent", "speller=api"]);
    assert_eq!(file["made"]["asked"], *asked);
    let said = project
        .milepost(&["why", "ask/batch_2", "--agent", "speller=api"])
        .1;
    for line in [
        "3 questions: 2 answered in the same run, 1 stored earlier",
        "api (claude-sonnet-4-5, served claude-sonnet-4-5-served)",
        &request,
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }

    let log = told(&project, &["log", "ask/batch_2", "--calls"]);
    let exchanges = log["calls"].as_array().unwrap();
    assert_eq!(exchanges.len(), 2);
    let prompt = exchanges[1]["prompt"].as_str().unwrap();
    assert!(
        prompt.starts_with("Write each name in capitals."),
        "{prompt}"
    );
    let text = exchanges[1]["text"].as_str().unwrap();
    assert!(text.contains("NAME 6"), "{text}");
    let said = project
        .milepost(&["log", "ask", "--calls", "--last", "1"])
        .1;
    assert!(
        said.starts_with("… 2 earlier calls\n") && said.contains("answered:\n    [{"),
        "{said}"
    );

    let status = told(&project, &["status", "--agent", "speller=api"]);
    let spent = &status["stages"][1]["spent"];
    assert_eq!(
        (&spent["calls"], &status["stages"][0]["spent"]),
        (&json!(3), &Value::Null)
    );
    let money = &status["money"];
    assert_eq!(
        (&money["spent"], &money["calls"]),
        (spent, &json!({"limit": 10, "left": 7}))
    );
    let cost = spent["cost"].as_u64().unwrap();
    assert_eq!(money["usd"]["left"], json!(1_000_000_000 - cost));
    let usage = &spent["usage"];
    let used: u64 = ["input", "cache_read", "output"]
        .iter()
        .map(|kind| usage[*kind].as_u64().unwrap())
        .sum();
    assert_eq!(
        money["tokens"],
        json!({"limit": 100_000, "left": 100_000 - used})
    );
    let said = project.milepost(&["status", "--agent", "speller=api"]).1;
    assert!(
        said.contains("agents: 3 calls for $0.0") && said.contains("7 of 10 calls"),
        "{said}"
    );
}

/// A draft by one agent, judged by another, twice.
const ROUNDS: &str = r#"
role = "PlanningReviewer"
summary = '{result_type: (if .critique.score > 0.8 then "approved_plan" else "needs_revision" end)}'
verdict = '.critique.score > 0.8'

[inputs]
topic = "inputs/topic.txt"

[refine]
until = '.critique.score > 0.8'
score = '.critique.score'

[[step]]
role = "PlanAuthor"
agent = "speller"
prompt = "prompts/tell.md"
out = "plan"
summary = '{warnings: [], words: 3}'

[[step]]
jq = '{score: [0.25, 0.875][$iteration - 1], said: .plan.said}'
out = "critique"

[outputs]
plan = { path = "outputs/plan.json", schema = false }
critique = { path = "outputs/critique.json", schema = false }
"#;

#[test]
fn the_journal_tells_which_agent_did_what_with_which_verdict() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    for stage in ["1_split", "2_ask", "3_join"] {
        project.remove(&format!("stages/{stage}.toml"));
    }
    project.write(
        "prompts/tell.md",
        "Tell of {{ topic }} in round {{ iteration }}\n",
    );
    project.write("workspace/inputs/topic.txt", "walls");
    project.write("stages/1_plan.toml", ROUNDS);
    project.write(
        "stages/2_export.toml",
        "role = \"Coordinator\"\n\n[inputs]\nplan = \"outputs/plan.json\"\n\n[step]\njq = '.plan.said'\n\n\
         [outputs]\nsaid = \"outputs/said.txt\"\n",
    );
    let ran = project.run(&["--agent", "speller=chat"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let event =
        |kind: &str, who: &str, what: &str| (kind.to_owned(), who.to_owned(), what.to_owned());
    let author = |kind, what| event(kind, "PlanAuthor", what);
    let reviewer = |kind, what| event(kind, "PlanningReviewer", what);
    assert_eq!(
        events(&project, "plan"),
        [
            reviewer("invoke", "stage_started"),
            reviewer("invoke", "attempt_started"),
            author("invoke", "step_started"),
            author("invoke", "called"),
            author("complete", "step_finished"),
            reviewer("handoff", "step_handoff"),
            reviewer("invoke", "step_started"),
            reviewer("complete", "step_finished"),
            reviewer("review", "round_judged"),
            reviewer("revision", "round_started"),
            author("handoff", "step_handoff"),
            author("invoke", "step_started"),
            author("invoke", "called"),
            author("complete", "step_finished"),
            reviewer("handoff", "step_handoff"),
            reviewer("invoke", "step_started"),
            reviewer("complete", "step_finished"),
            reviewer("review", "round_judged"),
            reviewer("review", "verdict"),
            reviewer("complete", "published"),
            reviewer("complete", "checkpoint_written"),
        ]
    );
    let records = project.records();
    let data = |kind: &str| -> Vec<Value> {
        let of_kind = records.iter().filter(|record| record["kind"] == kind);
        of_kind.map(|record| record["data"].clone()).collect()
    };
    let verdict = |word: &str| json!({"result_type": word});
    assert_eq!(
        data("round_judged"),
        [
            json!({
                "stage": "plan", "batch": "",
                "round": 1, "right": false, "score": 0.25, "summary": verdict("needs_revision"),
            }),
            json!({
                "stage": "plan", "batch": "",
                "round": 2, "right": true, "score": 0.875, "summary": verdict("approved_plan"),
            }),
        ]
    );
    assert_eq!(
        data("round_started"),
        [
            json!({"stage": "plan", "batch": "", "round": 2, "why": "iteration 1: not right, score 0.25"})
        ]
    );
    // What a role hands over in the loop, with the `summary` of its step.
    let handed = |from: &str, out: &str, round: u32, summaries: Value| {
        let summaries = json!({"stage": "plan", "batch": "", "from": from, "outs": [out], "round": round, "summaries": summaries});
        without_empty(summaries)
    };
    let plan = json!({"plan": {"words": 3, "warnings": []}});
    assert_eq!(
        data("step_handoff"),
        [
            handed("PlanAuthor", "plan", 1, plan.clone()),
            handed("PlanningReviewer", "critique", 2, json!({})),
            handed("PlanAuthor", "plan", 2, plan),
        ]
    );
    let words = records
        .iter()
        .find(|record| record["kind"] == "step_handoff")
        .unwrap();
    assert_eq!(
        words["summary"],
        "plan, iteration 1: PlanningReviewer reads plan from PlanAuthor; plan: no warnings, 3 words"
    );
    let finished: Vec<_> = records
        .iter()
        .filter(|record| record["kind"] == "step_finished")
        .map(|record| record["summary"].as_str().unwrap())
        .collect();
    assert_eq!(
        finished,
        [
            "plan, iteration 1: plan done: no warnings, 3 words",
            "plan, iteration 1: critique done",
            "plan, iteration 2: plan done: no warnings, 3 words",
            "plan, iteration 2: critique done",
        ]
    );
    assert_eq!(
        data("verdict"),
        [
            json!({"stage": "plan", "batch": "", "verdict": true, "summary": verdict("approved_plan")})
        ]
    );
    // Whoever goes on from there says so, and with what.
    let handoff = records
        .iter()
        .find(|record| record["kind"] == "handoff")
        .unwrap();
    assert_eq!(
        (
            &handoff["agent_name"],
            &handoff["artifact_refs"],
            &handoff["data"]["summaries"]
        ),
        (
            &json!("Coordinator"),
            &json!(["outputs/plan.json", "outputs/critique.json"]),
            &json!({"plan": verdict("approved_plan")})
        )
    );
    assert!(
        records
            .iter()
            .all(|record| record["session_id"].is_string())
    );
}

/// An object without the entries that are empty objects.
fn without_empty(mut value: Value) -> Value {
    let object = value.as_object_mut().unwrap();
    object.retain(|_, value| *value != json!({}));
    value
}
