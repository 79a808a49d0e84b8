//! What calls reserve is the most that they can cost: a server that counts honestly never exceeds a budget, and all of it is used.

use super::pipeline::{answered, calls, made, speller};
use super::server::{Play, Seen, Server};
use super::single::tells;
use crate::mutated::structures::{page, pdf};
use crate::support::Project;
use milepost_core::model::call::Spent;
use milepost_core::model::money::NanoUsd;
use milepost_store::store::calls::{self as records, CallRecord};
use milepost_store::store::layout::Layout;
use serde_json::{Value, json};

const API: [&str; 2] = ["--agent", "speller=api"];

/// The tokens that an answer uses, which are all that a request allows.
const OUTPUT: u64 = 100;

/// A model that counts so many tokens for every byte that it reads.
fn model(tokens_per_byte: f64) -> Server {
    counting(move |text| text.len() as f64 * tokens_per_byte)
}

/// A model that counts the tokens of a text this way.
fn counting(tokens: impl Fn(&str) -> f64 + Send + Sync + 'static) -> Server {
    Server::answering(move |seen| {
        let json = &["content-type: application/json"];
        if seen.line.starts_with("GET") {
            return Play::Says(200, json, r#"{"data":[]}"#.to_owned());
        }
        let text = text_of(seen);
        let (_, questions) = text.rsplit_once("Questions: ").unwrap();
        let questions: Vec<Value> =
            serde_json::from_str(questions.lines().next().unwrap()).unwrap();
        let answers: Value = questions
            .iter()
            .map(|asked| json!({"id": asked["id"], "word": asked["question"]["name"]}))
            .collect();
        let input = tokens(&text).ceil() as u64;
        let message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{ "type": "text", "text": answers.to_string() }], "stop_reason": "end_turn",
            "usage": { "input_tokens": input, "output_tokens": OUTPUT }
        });
        Play::Says(200, json, message.to_string())
    })
}

/// The text that a model reads, with the schema in front.
fn text_of(seen: &Seen) -> String {
    let body = seen.json();
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        parts => {
            let parts = parts.as_array().into_iter().flatten();
            parts.filter_map(|part| part["text"].as_str()).collect()
        }
    };
    let schema = &body["output_config"];
    let messages = body["messages"].as_array().unwrap().iter();
    let messages: String = messages.map(|message| text(&message["content"])).collect();
    format!("{schema}{}{messages}", text(&body["system"]))
}

/// A project with so many batches of one question about a long id.
fn project(server: &Server, batches: usize) -> Project {
    let port = server.url.rsplit(':').next().unwrap().parse().unwrap();
    let project = speller(port, "well");
    project.edit("milepost.toml", "size = 4", "size = 1");
    project.edit(
        "milepost.toml",
        "max_tokens = 1000",
        &format!("max_tokens = {OUTPUT}"),
    );
    let thing = |n: usize| json!({"id": n, "name": format!("{n:04} {}", "0O2Kd$".repeat(300))});
    let things: Value = (0..batches).map(thing).collect();
    project.write("workspace/inputs/things.json", things.to_string());
    project
}

fn limit(project: &Project, limit: &str) {
    let declared = project.read("milepost.toml");
    project.write("milepost.toml", format!("{declared}\n[limits]\n{limit}\n"));
}

fn recorded(project: &Project) -> Vec<CallRecord> {
    let layout = Layout::new(project.at("workspace"));
    records::read(&layout.calls()).unwrap()
}

fn spent(project: &Project) -> Spent {
    let mut sum = Spent::default();
    for call in recorded(project) {
        sum += Spent::of(&call.sent, call.response.as_ref());
    }
    sum
}

/// Prose, ids, and text of which every byte is a token: 16 calls at once cost no more than the limit, and what is left of it does not
/// suffice for a call.
#[test]
fn calls_at_once_spend_the_budget_and_no_more() {
    for tokens_per_byte in [0.25, 0.7, 1.0] {
        let server = model(tokens_per_byte);
        let project = project(&server, 40);
        limit(&project, "usd = 0.1");
        let ran = project.run_unplanned(&[&API[..], &["-j", "16"]].concat());
        assert_eq!(ran.code, 3, "{}", ran.output);
        let (spent, limit) = (spent(&project).cost, NanoUsd(100_000_000));
        assert!(spent <= limit, "{tokens_per_byte}: {spent}");
        let all = recorded(&project);
        let least = all.iter().map(|call| call.sent.reserved.unwrap()).min();
        assert!(
            limit.less(spent) < least.unwrap(),
            "{tokens_per_byte}: {spent}"
        );
        // Nothing was in flight when the run ended.
        ran.says("are left: raise `usd` under [limits]");
        let dearest = all
            .iter()
            .max_by_key(|call| call.response.as_ref().unwrap().cost);
        let dearest = dearest.unwrap();
        assert!(dearest.response.as_ref().unwrap().cost <= dearest.sent.reserved);
    }
}

/// A budget for one call at a time is enough for many, because each waits for what the others cost.
#[test]
fn a_call_waits_for_those_in_flight() {
    for limit_of in ["usd = 0.014", "tokens = 5000"] {
        let server = model(0.05);
        let project = project(&server, 6);
        limit(&project, limit_of);
        let ran = project.run_unplanned(&[&API[..], &["-j", "6"]].concat());
        assert_eq!(
            (ran.code, calls(&project)),
            (0, answered(&[1; 6])),
            "{}",
            ran.output
        );
        assert_eq!(made(&project).as_array().unwrap().len(), 6);
    }
}

/// The first call reserves a token for every byte; later ones what was measured, with a margin, also if it is more.
#[test]
fn what_is_measured_is_what_the_next_call_reserves() {
    for (tokens_per_byte, least, most) in [(0.25, 0.25, 0.5), (1.0, 0.9, 1.0), (4.0, 4.0, 6.0)] {
        let server = model(tokens_per_byte);
        let project = project(&server, 3);
        let ran = project.run_unplanned(&API);
        assert_eq!(ran.code, 0, "{}", ran.output);
        let all = recorded(&project);
        let first = all[0].sent.most_input;
        assert!(first > 2000, "{first}");
        for next in &all[1..] {
            let ratio = next.sent.most_input as f64 / first as f64;
            assert!(
                (least..=most).contains(&ratio),
                "{tokens_per_byte}: {ratio}"
            );
            let used = next.response.as_ref().unwrap().usage.total_input();
            assert!(used <= next.sent.most_input, "{used}");
        }
    }
}

/// Neither a short request nor one in English says how many tokens a long one in another script has.
#[test]
fn a_call_in_another_script_reserves_a_token_for_every_byte() {
    let server = counting(|text| {
        let wide = text.bytes().filter(|byte| !byte.is_ascii()).count();
        (text.len() - wide) as f64 / 4.0 + wide as f64
    });
    let project = project(&server, 0);
    let names = [
        "a".to_owned(),
        "b".to_owned(),
        "\u{13a0}".repeat(5000),
        "c".repeat(5000),
    ];
    let things: Value = (0..4).map(|n| json!({"id": n, "name": names[n]})).collect();
    project.write("workspace/inputs/things.json", things.to_string());
    let ran = project.run_unplanned(&API);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let all = recorded(&project);
    assert_eq!(all.len(), 4);
    for call in all {
        let used = call.response.as_ref().unwrap().usage.total_input();
        let reserved = call.sent.most_input;
        assert!(used <= reserved, "{used}, {reserved}");
    }
}

/// A killed call is charged the most that it may have cost, in money and in tokens.
#[test]
fn a_killed_call_counts_with_its_bound() {
    let server = Server::answering(|seen| {
        if seen.line.starts_with("GET") {
            Play::Says(200, &[], r#"{"data":[]}"#.to_owned())
        } else {
            Play::Stalls
        }
    });
    let project = project(&server, 1);
    let mut run = project.spawn(&[&["run"][..], &API].concat());
    while !server
        .seen()
        .iter()
        .any(|seen| seen.line.starts_with("POST"))
    {
        std::thread::yield_now();
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let all = recorded(&project);
    let sent = &all[0].sent;
    let text = server.seen().last().map(text_of).unwrap();
    assert!(sent.most_input >= text.len() as u64);
    let spent = spent(&project);
    assert_eq!(spent.cost, sent.reserved.unwrap());
    assert_eq!(spent.usage.total(), sent.most_input + OUTPUT);
    // Claude's price for what it writes to its cache, and for its answer.
    assert_eq!(
        spent.cost,
        NanoUsd(sent.most_input * 3750 + OUTPUT * 15_000)
    );
}

/// With a limit, a PDF counts by its pages, unless it shows text that is not read; without one, no PDF is read.
#[test]
fn pages_of_a_pdf_are_counted_for_limits() {
    let note = "/Annots[<</Type/Annot/Subtype/FreeText/Contents(A note)>>]";
    let of = |annotations: &str, limits: &str| {
        let server = Server::answering(|_| Play::Says(500, &[], String::new()));
        let port = server.url.rsplit(':').next().unwrap().parse().unwrap();
        let project = tells(port, "attach = [\"scan\"]\nattempts = 1");
        project.edit("stages/1_tell.toml", "[1, 2, 3]", "[1]");
        let inputs = "[inputs]\nscan = \"inputs/scan.pdf\"";
        project.edit("stages/1_tell.toml", "[inputs]", inputs);
        let scan = pdf(&page("", annotations));
        project.write("workspace/inputs/scan.pdf", &scan);
        limit(&project, limits);
        let ran = project.run_unplanned(&[&API[..], &["-j", "1"]].concat());
        let all = recorded(&project);
        assert!(!all.is_empty(), "{}", ran.output);
        let sent = &all[0].sent;
        (sent.likely_input, sent.most_input, scan.len() as u64)
    };
    let text = "Hello world, this is a sentence of a page.".len() as u64;
    let (likely, most, _) = of("", "usd = 5");
    let (prompt, added) = (likely - 1_600 - text.div_ceil(3), most - 5_000 - text);
    assert!(
        prompt < 20 && (500..600).contains(&added),
        "{likely} {most}"
    );
    let choices = "/Annots[<</Type/Annot/Subtype/Widget/V[(One)(Two)]>>]";
    for (annotations, limits) in [(note, "usd = 5"), (choices, "usd = 5"), ("", "")] {
        let (likely, most, bytes) = of(annotations, limits);
        let expected = (prompt + bytes.div_ceil(3), added + 1_000_000);
        assert_eq!((likely, most), expected, "{annotations} {limits}");
    }
}

/// A plan says what a run will do: nothing, if no call fits the budget, and why.
#[test]
fn a_plan_waits_for_the_budget_as_its_run_does() {
    let server = model(1.0);
    for (limits, agent, why) in [
        (
            "usd = 1",
            "speller=chat",
            "the price of a call of agent `chat` (openai own-model) is unknown, but there is a budget: set `max_usd_per_call` under [agents.chat], or the price of `own-model` in prices.toml",
        ),
        (
            "usd = 1",
            "speller=tool",
            "is unknown, but there is a budget: set `max_usd_per_call` under [agents.tool]",
        ),
        ("usd = 0.001", "speller=api", "raise `usd` under [limits]"),
        (
            "tokens = 10",
            "speller=api",
            "raise `tokens` under [limits]",
        ),
    ] {
        let project = project(&server, 3);
        project.edit("milepost.toml", "\"gpt-5.1\"", "\"own-model\"");
        limit(&project, limits);
        let with = ["--agent", agent];
        project.run_unplanned(&["split"]);
        let plan = project.plan(&with).unwrap();
        let ask = &plan["stages"][1];
        assert_eq!(
            (&ask["will"], &ask["left"], &ask["money"]["batches"]),
            (&json!([]), &json!(3), &json!(3)),
            "{ask:#}"
        );
        let (_, text) = project.milepost(&[&["plan"][..], &with].concat());
        assert!(text.contains("3 batches wait for budget"), "{text}");
        assert!(text.contains(why), "{text}");
        assert!(
            text.ends_with("\nnothing can run within the budget\n"),
            "{text}"
        );
        let ran = project.run(&with);
        assert_eq!((ran.code, calls(&project)), (3, vec![]), "{}", ran.output);
        // The run gives the same reason.
        let held = ask["money"]["why"].as_str().unwrap();
        ran.says(held);
        // The same run would wait again.
        assert!(!ran.output.contains("\nnext "), "{}", ran.output);
        let (_, text) = project.milepost(&["status", "--json"]);
        let status: Value = serde_json::from_str(&text).unwrap();
        let stage = &status["stages"][1];
        assert_eq!(
            (&stage["state"], &stage["due"]["money"]),
            (&json!("waiting"), &ask["money"]),
            "{stage:#}"
        );
        let (_, text) = project.milepost(&["status"]);
        assert!(
            text.contains("  ask: 3 batches wait for budget: "),
            "{text}"
        );
    }
}

/// A budget that covers the first call decides on the others when their cost is known: they may run, and so may what follows.
#[test]
fn batches_that_a_budget_may_not_reach_may_run() {
    for (tokens_per_byte, code, made) in [(0.25, 0, 3), (1.0, 3, 1)] {
        let server = model(tokens_per_byte);
        for limits in ["usd = 0.014", "tokens = 5000"] {
            let project = project(&server, 3);
            limit(&project, limits);
            project.run(&["split"]);
            let plan = project.plan(&API).unwrap();
            let listed = |stage: usize, list: &str| {
                let list = plan["stages"][stage][list].as_array().unwrap();
                let conditions = list.iter().map(|batch| batch["conditions"].clone());
                conditions.collect::<Vec<Value>>()
            };
            let allows = json!([{ "condition": "budget_allows" }]);
            let completes = json!([{ "condition": "stage_completes", "stage": "ask" }]);
            assert_eq!(listed(1, "will").len(), 1, "{plan:#}");
            assert_eq!(listed(1, "may"), [allows.clone(), allows], "{plan:#}");
            assert_eq!(listed(2, "will").len(), 0, "{plan:#}");
            assert_eq!(listed(2, "may"), [completes], "{plan:#}");
            let (_, text) = project.milepost(&[&["plan"][..], &API].concat());
            let last = "\n1 batch will run, 3 may; to do it: milepost run --agent speller=api\n";
            assert!(text.ends_with(last), "{text}");
            let ran = project.run(&API);
            assert_eq!(
                (ran.code, calls(&project).len()),
                (code, made),
                "{}",
                ran.output
            );
        }
    }
}

/// Slow calls one at a time are noticed, once, unless somebody chose how many run at once.
#[test]
fn a_run_says_that_more_batches_can_run_at_once() {
    let server = model(0.25);
    // In a fast test every call is slow.
    let run = |more: &[&str], agent: &str| {
        let mut project = project(&server, 5);
        project.env("MILEPOST_PACE", "1");
        let declared = project.read("milepost.toml");
        let declared = declared.replace("[agents.api]\n", &format!("[agents.api]\n{agent}"));
        project.write("milepost.toml", declared);
        let ran = project.run_unplanned(&[&API[..], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.output);
        let lines = ran.output.lines();
        lines
            .filter(|line| line.contains("to run 8 at once: "))
            .map(str::to_owned)
            .collect::<Vec<String>>()
    };
    let said = run(&[], "");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("note: calls of ask take "), "{said:?}");
    assert!(
        said[0].ends_with(
            " on average, and 3 batches wait one at a time; to run 8 at once: milepost run --jobs 8"
        ),
        "{said:?}"
    );
    for more in [&["-j", "1"][..], &["-j", "2"]] {
        assert_eq!(run(more, ""), [""; 0], "{more:?}");
    }
    assert_eq!(run(&[], "concurrency = 1\n"), [""; 0]);
}
