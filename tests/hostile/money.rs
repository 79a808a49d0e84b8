//! Servers that report no usage, or a wrong one: no call is counted as cheaper than it may have been.

use crate::agents::pipeline::{Served, answered, calls, made, speller, words};
use crate::agents::server::{Play, Server};
use crate::support::{Project, RunResult};
use milepost_core::model::call::{CallResponse, Estimated, SentCall};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::usage::Usage;
use milepost_store::store::calls::{self as records};
use milepost_store::store::layout::Layout;
use serde_json::{Value, json};

/// Answers to the first questions of the only batch.
fn answers(count: usize) -> Value {
    let one = |n: usize| json!({ "id": format!("q{}", n + 1), "word": format!("NAME {n}") });
    (0..count).map(one).collect()
}

/// A reply of Anthropic that reports this usage.
fn message(usage: &Value) -> Play {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{ "type": "text", "text": answers(5).to_string() }], "stop_reason": "end_turn", "usage": usage
    });
    says(&message)
}

/// A reply of OpenAI that reports this usage.
fn completion(usage: &Value) -> Play {
    let completion = json!({
        "id": "c", "model": "gpt-5.1", "usage": usage,
        "choices": [{ "message": { "content": answers(5).to_string() }, "finish_reason": "stop" }]
    });
    says(&completion)
}

fn says(body: &Value) -> Play {
    Play::Says(200, &["content-type: application/json"], body.to_string())
}

/// A project that sends one request of five questions, and its server. The key is checked before the first call.
fn project(script: Vec<Play>) -> (Project, Server) {
    let key = says(&json!({ "data": [] }));
    let server = Server::new(std::iter::once(key).chain(script).collect());
    let port = server.url.rsplit(':').next().unwrap().parse().unwrap();
    let project = speller(port, "well");
    project.edit("milepost.toml", "size = 4", "size = 10");
    (project, server)
}

/// The recorded calls: what was sent and what was response.
fn recorded(project: &Project) -> Vec<(SentCall, CallResponse)> {
    let layout = Layout::new(project.at("workspace"));
    let all = records::read(&layout.calls()).unwrap();
    all.into_iter()
        .map(|call| (call.sent, call.response.unwrap()))
        .collect()
}

/// A run with one call that counts with its reservation: in its record, the checkpoint, the summary, the status and the log.
#[track_caller]
fn is_estimated(project: &Project, ran: &RunResult, why: Estimated) {
    assert_eq!((ran.code, made(project)), (0, words(10)), "{}", ran.output);
    let all = recorded(project);
    let (sent, response) = &all[0];
    assert_eq!(all.len(), 1);
    assert!(sent.reserved > Some(NanoUsd::ZERO));
    assert_eq!(
        (response.cost, response.estimated),
        (sent.reserved, Some(why))
    );
    let cost = sent.reserved.unwrap();
    let spent = &project.json("workspace/stage_2_complete.json")["spent"];
    assert_eq!(
        (&spent["cost"], &spent["estimated"]),
        (&json!(cost.0), &json!(1))
    );
    assert_eq!(spent["usage"]["output"], json!(sent.most_output));
    ran.says(&format!("1 call for {cost} (estimated)"));
    for (words, told) in [
        (&["status"][..], format!("1 call for {cost} (estimated)")),
        (&["log"], format!("{cost} (estimated)")),
        (&["log", "ask", "--calls"], format!("{cost} (estimated)")),
    ] {
        let (code, text) = project.milepost(words);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains(&told), "{words:?}: {told}: {text}");
    }
}

/// How often a run warned.
fn warnings(ran: &RunResult) -> Vec<&str> {
    let lines = ran.output.lines();
    lines
        .filter(|line| line.starts_with("warning: agent"))
        .collect()
}

#[test]
fn a_call_without_a_readable_usage_counts_with_its_reservation() {
    let usages = [
        json!(null),
        json!({}),
        json!([1, 2]),
        json!({ "input_tokens": -10, "output_tokens": -20 }),
        json!({ "input_tokens": 10, "output_tokens": -20 }),
        json!({ "input_tokens": 10.5, "output_tokens": 20 }),
        json!({ "input_tokens": 1e30, "output_tokens": 20 }),
        json!({ "input_tokens": "10", "output_tokens": "20" }),
        json!({ "input_tokens": 10, "output_tokens": 0 }),
        json!({ "input_tokens": 0, "output_tokens": 20 }),
        json!({ "input_tokens": u64::MAX, "cache_read_input_tokens": u64::MAX, "output_tokens": u64::MAX }),
    ];
    for usage in usages {
        let (project, _server) = project(vec![message(&usage)]);
        let ran = project.run_unplanned(&["--agent", "speller=api"]);
        is_estimated(&project, &ran, Estimated::NoUsage);
        let warned = warnings(&ran);
        assert_eq!(warned.len(), 1, "{usage}: {}", ran.output);
        assert!(
            warned[0].contains(
                "agent `api` reported no usage: such calls are charged their reservation ($"
            ),
            "{}",
            warned[0]
        );
    }
    for usage in [
        json!(null),
        json!({ "prompt_tokens": 10, "completion_tokens": -1 }),
        json!({ "prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": { "cached_tokens": 0.5 } }),
    ] {
        let (project, _server) = project(vec![completion(&usage)]);
        let ran = project.run_unplanned(&["--agent", "speller=chat"]);
        is_estimated(&project, &ran, Estimated::NoUsage);
    }
}

#[test]
fn an_absurd_usage_counts_with_its_reservation() {
    for (usage, agent) in [
        (
            json!({ "input_tokens": 10, "output_tokens": 10_000_000 }),
            "api",
        ),
        (
            json!({ "input_tokens": 9_007_199_254_740_991_u64, "output_tokens": 20 }),
            "api",
        ),
        (
            json!({ "prompt_tokens": 10, "completion_tokens": 9_000_000_000_u64 }),
            "chat",
        ),
        // Less than the answer must have.
        (json!({ "input_tokens": 10, "output_tokens": 1 }), "api"),
        (
            json!({ "prompt_tokens": 1, "completion_tokens": 1 }),
            "chat",
        ),
    ] {
        let reply = match agent {
            "api" => message(&usage),
            _ => completion(&usage),
        };
        let (project, _server) = project(vec![reply]);
        let ran = project.run_unplanned(&["--agent", &format!("speller={agent}")]);
        is_estimated(&project, &ran, Estimated::ImplausibleUsage);
        assert_eq!(recorded(&project)[0].1.usage, Usage::NONE);
        ran.says("reported implausible usage");
    }
}

#[test]
fn usage_above_the_reservation_is_charged_and_warned_about() {
    // 1,000 tokens of answer are allowed, and 5,000 reported.
    let usage = json!({ "input_tokens": 100, "output_tokens": 5000 });
    let (project, _server) = project(vec![message(&usage)]);
    let ran = project.run_unplanned(&["--agent", "speller=api"]);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    let (sent, response) = recorded(&project).remove(0);
    let cost = NanoUsd(100 * 3000 + 5000 * 15_000);
    assert_eq!((response.cost, response.estimated), (Some(cost), None));
    let reserved = sent.reserved.unwrap();
    let told = format!(
        "agent `api` used more than its request allows: a call cost {cost}, and at most {reserved} was reserved"
    );
    assert_eq!(warnings(&ran).len(), 1, "{}", ran.output);
    ran.says(&told);
}

#[test]
fn a_silent_server_does_not_spend_more_than_the_limit() {
    let served = Served::new("well");
    crate::agents::batch_mode::set(&served, "usage={}");
    let project = speller(served.port, "well");
    project.edit("milepost.toml", "size = 4", "size = 1");
    // Two calls can be paid.
    let declared = project.read("milepost.toml");
    project.write(
        "milepost.toml",
        format!("{declared}\n[limits]\nusd = 0.038\n"),
    );
    for _ in 0..2 {
        let ran = project.run_unplanned(&["--agent", "speller=api", "-j", "1"]);
        assert_eq!(
            (ran.code, calls(&project)),
            (3, answered(&[1, 1])),
            "{}",
            ran.output
        );
        ran.says("raise `usd` under [limits]");
    }
    let limits = |limit: &str| {
        project.write("milepost.toml", format!("{declared}\n[limits]\n{limit}\n"));
        let ran = project.run_unplanned(&["--agent", "speller=api", "-j", "1"]);
        (ran.code, calls(&project).len())
    };
    // Nor more tokens: each call may use a little less than 2,000.
    assert_eq!(limits("tokens = 6000"), (3, 3));
    assert_eq!(limits("tokens = 100000"), (0, 5));
}

#[test]
fn a_model_whose_price_is_zero_stays_free() {
    for usage in [
        json!(null),
        json!({ "prompt_tokens": -1 }),
        json!({ "prompt_tokens": 1, "completion_tokens": 9_000_000_000_u64 }),
    ] {
        let (project, _server) = project(vec![completion(&usage)]);
        project.write(
            "prices.toml",
            "date = \"2026-01-01\"\n[[model]]\nname = \"gpt-*\"\ninput = 0\noutput = 0\n",
        );
        let ran = project.run_unplanned(&["--agent", "speller=chat", "--budget-usd", "0.000001"]);
        assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
        let (_, response) = recorded(&project).remove(0);
        assert_eq!(response.cost, Some(NanoUsd::ZERO));
        assert_eq!(warnings(&ran), [] as [&str; 0]);
        assert!(!ran.output.contains("estimated"), "{}", ran.output);
    }
}

#[test]
fn a_stream_that_breaks_off_counts_with_its_reservation() {
    let start = json!({ "type": "message_start", "message": { "model": "m", "usage": { "input_tokens": 9, "output_tokens": 1 } } });
    let stream = format!("event: message_start\ndata: {start}\n\n");
    let (project, _server) = project(vec![Play::Streams(stream)]);
    project.edit(
        "milepost.toml",
        "max_tokens = 1000",
        "max_tokens = 10000\ntries = 1",
    );
    let ran = project.run_unplanned(&["--agent", "speller=api"]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    let (sent, response) = recorded(&project).remove(0);
    assert_eq!(
        (response.cost, response.estimated),
        (sent.reserved, Some(Estimated::NoUsage))
    );
}

#[test]
fn a_streamed_usage_is_judged_as_a_whole_one() {
    for usage in [
        json!({}),
        json!({ "output_tokens": -5 }),
        json!({ "output_tokens": 1e30 }),
    ] {
        let events = [
            json!({ "type": "message_start", "message": { "model": "m", "usage": { "input_tokens": 9 } } }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": answers(5).to_string() } }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": usage }),
            json!({ "type": "message_stop" }),
        ];
        let stream = events.map(|event| format!("data: {event}\n\n")).concat();
        let (project, _server) = project(vec![Play::Streams(stream)]);
        project.edit(
            "milepost.toml",
            "max_tokens = 1000",
            "max_tokens = 10000\ntries = 1",
        );
        let ran = project.run_unplanned(&["--agent", "speller=api"]);
        is_estimated(&project, &ran, Estimated::NoUsage);
    }
}

#[test]
fn a_provider_batch_without_usage_counts_with_its_reservations() {
    for agent in ["api", "chat"] {
        let served = Served::new("well");
        crate::agents::batch_mode::set(&served, "usage={}");
        let project = crate::agents::batch_mode::batched(speller(served.port, "well"));
        let ran = project.run_unplanned(&["--agent", &format!("speller={agent}")]);
        assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
        let all = recorded(&project);
        assert_eq!(all.len(), 2);
        for (sent, response) in all {
            assert!(sent.batched && sent.reserved > Some(NanoUsd::ZERO));
            assert_eq!(
                (response.cost, response.estimated),
                (sent.reserved, Some(Estimated::NoUsage)),
                "{agent}"
            );
        }
        assert_eq!(warnings(&ran).len(), 1, "{}", ran.output);
    }
}

#[test]
fn a_command_line_cannot_report_a_cost_that_is_none() {
    let result = |cost: Value| json!({ "type": "result", "is_error": false, "result": answers(5).to_string(), "total_cost_usd": cost });
    let half = Some(NanoUsd(500_000_000));
    for (cost, charged, why) in [
        (json!(null), half, Some(Estimated::NoUsage)),
        (json!(-3), half, Some(Estimated::NoUsage)),
        (json!(1e30), half, Some(Estimated::NoUsage)),
        (json!("0"), half, Some(Estimated::NoUsage)),
        (json!(1e6), half, Some(Estimated::ImplausibleUsage)),
        (json!(0.25), Some(NanoUsd(250_000_000)), None),
        (json!(0.75), Some(NanoUsd(750_000_000)), None),
        // Much more than the limit, which only the command line can know.
        (json!(150), Some(NanoUsd(150_000_000_000)), None),
    ] {
        let (project, _server) = project(vec![]);
        project.write("reply.json", result(cost.clone()).to_string());
        let agent = format!(
            "[agents.claude]\ncli = [\"sh\", \"-c\", \"cat > /dev/null; cat {}\"]\nenvelope = \"json\"\nmax_usd_per_call = 0.5\n",
            project.at("reply.json").display()
        );
        let declared = project.read("milepost.toml");
        project.write("milepost.toml", format!("{declared}\n{agent}"));
        let ran = project.run_unplanned(&["--agent", "speller=claude", "--budget-usd", "0.6"]);
        assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
        let (_, response) = recorded(&project).remove(0);
        assert_eq!(
            (response.cost, response.estimated),
            (charged, why),
            "{cost}"
        );
        let expected = usize::from(charged != Some(NanoUsd(250_000_000)));
        assert_eq!(warnings(&ran).len(), expected, "{cost}: {}", ran.output);
    }
}

#[test]
fn a_damaged_record_of_a_call_is_named_and_stops_what_it_may_have_paid() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    assert_eq!(project.run_unplanned(&["--agent", "speller=api"]).code, 0);
    let files = project.list(".milepost/calls");
    let name = files
        .iter()
        .find(|name| name.rsplit('.').next() == Some("jsonl"))
        .unwrap();
    let path = format!("workspace/.milepost/calls/{name}");
    let whole = project.bytes(&path);
    // The request of the first call, the answer of the second.
    for (at, line) in [(100, 1), (whole.len() - 100, 4)] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(project.at(&path), damaged).unwrap();
        let place = format!("{name}, line {line}: the record of a call is damaged");
        let (code, text) = project.milepost(&["status"]);
        assert_eq!(code, 0, "{text}");
        assert!(
            text.contains(&format!("{place}: its cost is missing\n")),
            "{text}"
        );
        let (code, text) = project.milepost(&["verify"]);
        assert_eq!(code, 5, "{text}");
        assert!(
            text.contains(&format!(
                "{name}: line {line} does not match its checksum\n"
            )),
            "{text}"
        );
        let limited = project.copy();
        let declared = limited.read("milepost.toml");
        limited.write("milepost.toml", format!("{declared}\n[limits]\nusd = 5\n"));
        limited.edit("prompts/spell.md", "Write", "Do write");
        let ran = limited.run_unplanned(&["--agent", "speller=api"]);
        assert_eq!(
            (ran.code, calls(&limited)),
            (1, answered(&[4, 1])),
            "{}",
            ran.output
        );
        ran.says(&format!(
            "{place}: what this workspace has spent is unknown, and it has a limit"
        ));
        ran.says("Restore the file from a copy; or remove the line, and the call no longer counts");
    }
    // A record that a crash tore counts with the reservation of its call.
    std::fs::write(project.at(&path), &whole[..whole.len() - 5]).unwrap();
    let (code, text) = project.milepost(&["status"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("2 calls for $") && text.contains("(1 estimated)"),
        "{text}"
    );
}
