//! What a plan says of the calls of a stage, held against what a provider hears in the run after it.

use super::server::{Play, Server};
use crate::support::Project;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A stage that asks a model, and what its plan depends on.
#[derive(Debug, Clone)]
struct Generated {
    /// Whether each agent step answers questions, or a whole prompt.
    steps: Vec<bool>,
    /// Numbers of questions, one for each batch.
    batches: Vec<usize>,
    /// Whether the batches ask the same.
    alike: bool,
    /// `max_iterations`, and the iteration from which `until` holds.
    refine: Option<(u32, u32)>,
    attempts: u32,
    tries: Option<u32>,
}

/// An answer of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Valid,
    NoJson,
    Incomplete,
    Busy,
    Broken,
    TooLong,
    Cut,
}

impl Reply {
    fn play(self) -> Play {
        let error = |kind: &str| {
            json!({ "type": "error", "error": { "type": kind, "message": "no" } }).to_string()
        };
        let status = match self {
            Self::Busy => return Play::Says(429, &[], error("rate_limit_error")),
            Self::Broken => return Play::Says(500, &[], error("api_error")),
            Self::TooLong => return Play::Says(413, &[], error("request_too_large")),
            _ => 200,
        };
        let answers = |count: usize| -> Vec<Value> {
            let ids = 1..=count;
            ids.map(|id| json!({ "id": format!("q{id}"), "word": "yes" }))
                .collect()
        };
        let text = match self {
            Self::NoJson => "I would rather not.".to_owned(),
            Self::Incomplete => json!({ "answers": answers(1) }).to_string(),
            _ => json!({ "ok": true, "answers": answers(3) }).to_string(),
        };
        let stop = match self {
            Self::Cut => "max_tokens",
            _ => "end_turn",
        };
        let message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{ "type": "text", "text": text }], "stop_reason": stop,
            "usage": { "input_tokens": 10, "output_tokens": 20 }
        });
        Play::Says(
            status,
            &["content-type: application/json"],
            message.to_string(),
        )
    }
}

impl Generated {
    /// The project, whose model is at this server.
    fn fixture(&self, server: &Server) -> Project {
        let tries = self.tries.map(|tries| format!("tries = {tries}\n"));
        let mut project = Project::new(&[
            (
                "milepost.toml",
                &format!(
                    "name = \"loops\"\n[agents.model]\nanthropic = \"claude-sonnet-4-5\"\nbase_url = \"{}\"\napi_key_env = \"KEY\"\nmax_tokens = 100\n{}",
                    server.url,
                    tries.unwrap_or_default()
                ),
            ),
            ("prompts/whole.md", "Is it right?\n"),
            (
                "prompts/questions.md",
                "Iteration {{ iteration }}\n\n{{ questions | tojson }}\n",
            ),
            (
                "schemas/whole.schema.json",
                r#"{"type": "object", "required": ["ok"]}"#,
            ),
            (
                "schemas/word.schema.json",
                r#"{"type": "object", "required": ["word"]}"#,
            ),
        ]);
        project.env("KEY", "right");
        project.env("MILEPOST_PACE", "1");
        let mut stage = "[each.batch]\npath = \"inputs/batch_*.json\"\n".to_owned();
        if let Some((most, until)) = self.refine {
            stage +=
                &format!("\n[refine]\nuntil = '$iteration >= {until}'\nmax_iterations = {most}\n");
        }
        for (index, &questions) in self.steps.iter().enumerate() {
            let asks = if questions {
                "prompt = \"prompts/questions.md\"\nquestions = true\nschema = \"schemas/word.schema.json\"\nresult = '{word}'"
            } else {
                "prompt = \"prompts/whole.md\"\nschema = \"schemas/whole.schema.json\""
            };
            stage += &format!(
                "\n[[step]]\nagent = \"model\"\n{asks}\nattempts = {}\nout = \"made{index}\"\n",
                self.attempts
            );
        }
        stage += "\n[outputs]\n";
        for index in 0..self.steps.len() {
            stage += &format!(
                "made{index} = {{ path = \"outputs/{index}_{{{{ batch.stem }}}}.json\", schema = false }}\n"
            );
        }
        // Without a loop there is no `iteration`.
        if self.refine.is_none() {
            project.write("prompts/questions.md", "{{ questions | tojson }}\n");
        }
        project.write("stages/1_ask.toml", stage);
        for (batch, &count) in self.batches.iter().enumerate() {
            let of = if self.alike { 0 } else { batch };
            let question = |n: usize| json!({ "id": format!("q{}", n + 1), "question": format!("{of} {n}"), "elements": [n] });
            let questions: Vec<Value> = (0..count).map(question).collect();
            let elements: Vec<Value> = (0..count).map(|n| json!({ "id": n })).collect();
            project.write(
                &format!("workspace/inputs/batch_{batch}.json"),
                json!({ "questions": questions, "elements": elements }).to_string(),
            );
        }
        project
    }

    /// Plans and runs the project: what the plan says of calls, how many the provider heard, and the exit code.
    fn calls(&self, replies: &[Reply], more: &[&str]) -> (Value, u64, i32) {
        // The key is checked before the first call.
        let taken = Play::Says(200, &[], r#"{"data":[]}"#.to_owned());
        let script = replies.iter().cycle().take(1500).map(|reply| reply.play());
        let server = Server::new(std::iter::once(taken).chain(script).collect());
        let project = self.fixture(&server);
        let plan = project.plan(&[]).unwrap();
        let asks = plan["stages"][0]["asks"].clone();
        let ran = project.run_unplanned(more);
        let seen = server.seen();
        let posts = seen.iter().filter(|seen| seen.line == "POST /v1/messages");
        (asks, posts.count() as u64, ran.code)
    }
}

fn projects() -> impl Strategy<Value = Generated> {
    let refine = proptest::option::weighted(0.7, (1..=4_u32, 1..=5_u32));
    (
        proptest::collection::vec(any::<bool>(), 1..=2),
        proptest::collection::vec(1..=3_usize, 1..=2),
        any::<bool>(),
        refine,
        1..=3_u32,
        proptest::option::weighted(0.8, 1..=3_u32),
    )
        .prop_map(
            |(steps, batches, alike, refine, attempts, tries)| Generated {
                steps,
                batches,
                alike,
                refine,
                attempts,
                tries,
            },
        )
}

fn replies() -> impl Strategy<Value = Vec<Reply>> {
    let one = prop_oneof![
        8 => Just(Reply::Valid),
        2 => Just(Reply::NoJson),
        2 => Just(Reply::Incomplete),
        1 => Just(Reply::Busy),
        1 => Just(Reply::Broken),
        1 => Just(Reply::TooLong),
        1 => Just(Reply::Cut),
    ];
    proptest::collection::vec(one, 1..=12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_makes_no_more_calls_than_its_plan_names_at_most(
        generated in projects(),
        replies in replies(),
        at_once in prop_oneof![Just("1"), Just("4")],
        keeps_going in any::<bool>(),
    ) {
        let mut more = vec!["-j", at_once];
        if keeps_going {
            more.push("--keep-going");
        }
        let (asks, heard, code) = generated.calls(&replies, &more);
        let (calls, most) = (asks["calls"].as_u64().unwrap(), asks["most_calls"].as_u64());
        prop_assert!(most.is_some_and(|most| heard <= most), "{heard} calls: {asks:#}");
        prop_assert!(calls <= most.unwrap(), "{asks:#}");
        // Batches at once may answer each other's questions.
        if code == 0 && at_once == "1" {
            prop_assert!(calls <= heard, "{heard} calls: {asks:#}");
            // If every answer is valid, the first iteration makes the calls that are announced.
            let is_one = generated.refine.is_none_or(|(most, until)| most.min(until) == 1);
            if is_one && replies.iter().all(|reply| *reply == Reply::Valid) {
                prop_assert_eq!(calls, heard, "{:#}", asks);
            }
        }
    }
}

/// Nothing smaller than what is named is a bound: every iteration, attempt, try and split can come to pass.
#[test]
fn a_run_can_make_as_many_calls_as_its_plan_names_at_most() {
    use Reply::{Broken, Busy, NoJson, TooLong, Valid};
    let whole = Generated {
        steps: vec![false],
        batches: vec![1],
        alike: false,
        refine: Some((3, 5)),
        attempts: 2,
        tries: Some(2),
    };
    let (asks, heard, _) = whole.calls(&[Broken, NoJson, Busy, Valid], &[]);
    assert_eq!((&asks["most_calls"], heard), (&json!(12), 12), "{asks:#}");

    // Two questions: too long together, then each alone.
    let questions = Generated {
        steps: vec![true],
        batches: vec![2],
        refine: None,
        ..whole.clone()
    };
    let replies = [Broken, TooLong, Busy, NoJson, Broken, NoJson];
    let (asks, heard, code) = questions.calls(&replies, &[]);
    assert_eq!(
        (&asks["most_calls"], heard, code),
        (&json!(12), 12, 1),
        "{asks:#}"
    );

    // The second batch asks the same, and asks it itself after the first has failed.
    let alike = Generated {
        batches: vec![1, 1],
        alike: true,
        tries: Some(1),
        ..questions
    };
    let (asks, heard, code) = alike.calls(&[NoJson], &["-j", "1", "--keep-going"]);
    assert_eq!(
        (&asks["calls"], &asks["most_calls"], heard, code),
        (&json!(1), &json!(4), 4, 1),
        "{asks:#}"
    );
}

/// What the first stage makes is not known before it ran, nor is how much the second one asks about it.
#[test]
fn calls_that_depend_on_an_earlier_stage_have_no_bound() {
    let generated = Generated {
        steps: vec![true],
        batches: vec![2],
        alike: false,
        refine: Some((3, 5)),
        attempts: 2,
        tries: Some(2),
    };
    let server = Server::new(Vec::new());
    let project = generated.fixture(&server);
    project.write(
        "stages/0_copy.toml",
        "[inputs]\nall = \"inputs/batch_0.json\"\n[step]\ncopy = \"all\"\n[outputs]\nbatch = { path = \"intermediate/batch_0.json\", schema = false }\n",
    );
    project.edit(
        "stages/1_ask.toml",
        "inputs/batch_*",
        "intermediate/batch_*",
    );
    project.run_unplanned(&["copy"]);
    let asked = |project: &Project| {
        let plan = project.plan(&[]).unwrap();
        let asks = &plan["stages"][1]["asks"];
        let text = project.milepost(&["plan"]).1;
        (asks["most_calls"].clone(), text)
    };
    let (most, text) = asked(&project);
    assert_eq!(most, json!(36), "{text}");
    let range = "1 call with 2 questions in the first iteration, at most 36 in 3 iterations with every retry";
    assert!(text.contains(range), "{text}");

    project.edit("stages/0_copy.toml", "[step]", "[step]\nattempts = 2");
    project.write(
        "workspace/inputs/batch_0.json",
        r#"{"questions": [], "elements": []}"#,
    );
    let (most, text) = asked(&project);
    assert_eq!(most, Value::Null, "{text}");
    assert!(text.contains("no bound for 3 iterations"), "{text}");
    assert!(!text.contains("at most"), "{text}");
}
