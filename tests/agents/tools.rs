//! Command lines of agents: what is started, and what their recorded outputs mean (`wire/`, made with a mock of the models).

use milepost_agents::cli::{CommandExit, CommandOutput, Envelope, Invocation, Preset, Tool};
use milepost_agents::fault::{CallFault, FaultKind};
use milepost_agents::request::{AgentRequest, Attachment, Reply, StopReason};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::usage::Usage;
use proptest::test_runner::Config as ProptestConfig;
use serde_json::{Value, json};

const PRESETS: [Preset; 5] = [
    Preset::Claude,
    Preset::OpenCode,
    Preset::Cursor,
    Preset::Codex,
    Preset::Gemini,
];

fn wire(name: &str) -> Vec<u8> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/wire");
    std::fs::read(folder.join(name)).unwrap()
}

fn read(preset: Preset, code: i32, stdout: &[u8], stderr: &[u8]) -> Result<Reply, CallFault> {
    let output = CommandOutput {
        ended: CommandExit::Code(code),
        stdout,
        stderr,
    };
    Tool::preset(preset).read(output)
}

fn reply(text: &str, raw: &[u8]) -> Reply {
    Reply {
        text: text.to_owned(),
        structured: None,
        stop: StopReason::End,
        usage: Usage::default(),
        reported_cost: None,
        served_model: None,
        request_id: None,
        raw: raw.to_vec(),
    }
}

#[test]
fn claude_code_answers() {
    let raw = wire("claude-2.1.197.ok.json");
    let expected = Reply {
        reported_cost: Some(NanoUsd::ZERO),
        served_model: Some("claude-opus-4-8[1m]".to_owned()),
        request_id: Some("61b3fd86-65ab-4418-9697-5dcd6e1c34b6".to_owned()),
        ..reply("Hi there!", &raw)
    };
    assert_eq!(read(Preset::Claude, 0, &raw, b""), Ok(expected));
    // The last line of a stream, with tokens and money.
    let raw = wire("claude-2.1.197.stream.ndjson");
    let expected = Reply {
        usage: Usage {
            input: 1_200,
            output: 34,
            ..Usage::default()
        },
        reported_cost: Some(NanoUsd(4_110_000)),
        served_model: Some("claude-sonnet-4-5".to_owned()),
        request_id: Some("f321f07a-c1db-448e-8454-86257b53ba1b".to_owned()),
        ..reply(r#"{"score":0.9,"why":"ok"}"#, &raw)
    };
    assert_eq!(read(Preset::Claude, 0, &raw, b""), Ok(expected));
    // Another order of keys, and an answer that a tool of its own gave.
    for name in [
        "claude-2.1.197.json-schema.json",
        "claude-2.1.330.json-schema.json",
    ] {
        let reply = read(Preset::Claude, 0, &wire(name), b"").unwrap();
        let value = Some(json!({"score": 0.9, "why": "ok"}));
        assert_eq!(
            (reply.structured, reply.stop),
            (value, StopReason::End),
            "{name}"
        );
    }
    let reply = read(
        Preset::Claude,
        0,
        &wire("claude-2.1.330.stream.ndjson"),
        b"",
    )
    .unwrap();
    assert_eq!(reply.text, "Hi there!");
}

#[test]
fn claude_code_fails() {
    // Both say "success".
    let codes = [
        ("claude-2.1.197.401.json", None),
        ("claude-2.1.330.401.json", Some("authentication_error")),
    ];
    for (name, code) in codes {
        let raw = wire(name);
        let session: Value = serde_json::from_slice(&raw).unwrap();
        let expected = CallFault {
            code: code.map(str::to_owned),
            request_id: session["session_id"].as_str().map(str::to_owned),
            reported_cost: Some(NanoUsd::ZERO),
            raw: raw.clone(),
            ..CallFault::new(
                FaultKind::Auth,
                "exit code 1: Failed to authenticate. API Error: 401 bad key",
            )
        };
        assert_eq!(read(Preset::Claude, 1, &raw, b""), Err(expected.clone()));
        // The flag alone is enough.
        assert_eq!(
            read(Preset::Claude, 0, &raw, b"").map_err(|fault| fault.kind),
            Err(FaultKind::Auth)
        );
    }
    // So is the exit code; what it cost is kept.
    let raw = wire("claude-2.1.197.stream.ndjson");
    let fault = read(Preset::Claude, 1, &raw, b"out of memory").unwrap_err();
    let expected = CallFault {
        usage: Usage {
            input: 1_200,
            output: 34,
            ..Usage::default()
        },
        reported_cost: Some(NanoUsd(4_110_000)),
        raw,
        ..CallFault::new(FaultKind::ToolFailed, "exit code 1: out of memory")
    };
    assert_eq!(fault, expected);
    // Too many turns: there is no `result`, and the flag is not set.
    let turns = br#"{"type":"result","subtype":"error_max_turns","is_error":false,"num_turns":2,"session_id":"s",
        "total_cost_usd":0.25,"usage":{"input_tokens":7,"output_tokens":3},"errors":["Reached maximum number of turns (1)"]}"#;
    for code in [0, 1] {
        let fault = read(Preset::Claude, code, turns, b"").unwrap_err();
        let expected = CallFault {
            code: Some("error_max_turns".to_owned()),
            request_id: Some("s".to_owned()),
            usage: Usage {
                input: 7,
                output: 3,
                ..Usage::default()
            },
            reported_cost: Some(NanoUsd(250_000_000)),
            raw: turns.to_vec(),
            ..CallFault::new(
                FaultKind::ToolFailed,
                format!("exit code {code}: Reached maximum number of turns (1)"),
            )
        };
        assert_eq!(fault, expected);
    }
}

#[test]
fn codex() {
    for (name, text) in [
        ("codex-0.169.0.ok.ndjson", "Hi there!"),
        ("codex-0.169.0.tool.ndjson", "done"),
    ] {
        let raw = wire(name);
        let thread: Value =
            serde_json::from_slice(raw.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
        // The item of type `error` in both is a warning.
        let expected = Reply {
            request_id: thread["thread_id"].as_str().map(str::to_owned),
            ..reply(text, &raw)
        };
        assert_eq!(read(Preset::Codex, 0, &raw, b""), Ok(expected));
    }
    let counted = br#"{"type":"item.completed","item":{"type":"agent_message","text":"a"}}
{"type":"turn.completed","usage":{"input_tokens":1000,"cached_input_tokens":600,"cache_write_input_tokens":0,"output_tokens":50,"reasoning_output_tokens":40}}"#;
    let usage = Usage {
        input: 400,
        cache_read: 600,
        cache_write: 0,
        output: 50,
        reasoning: 40,
    };
    assert_eq!(read(Preset::Codex, 0, counted, b"").unwrap().usage, usage);
    let failed = br#"{"type":"thread.started","thread_id":"t"}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"turn.failed","error":{"message":"{\"error\":{\"message\":\"You exceeded your quota\",\"type\":\"insufficient_quota\"}}"}}"#;
    let expected = CallFault {
        code: Some("insufficient_quota".to_owned()),
        request_id: Some("t".to_owned()),
        raw: failed.to_vec(),
        ..CallFault::new(FaultKind::Money, "exit code 1: You exceeded your quota")
    };
    assert_eq!(read(Preset::Codex, 1, failed, b""), Err(expected));
    let begun = br#"{"type":"thread.started","thread_id":"t"}"#;
    assert_eq!(
        read(Preset::Codex, 0, begun, b"").unwrap_err().kind,
        FaultKind::Cut
    );
}

#[test]
fn opencode_sums_its_steps() {
    let raw = wire("opencode-1.18.33.ok.ndjson");
    let expected = Reply {
        usage: Usage {
            input: 2_574,
            output: 3,
            ..Usage::default()
        },
        reported_cost: Some(NanoUsd(2_604_000)),
        request_id: Some("ses_e002ef7bdffe6PDCuff7zA2A2q".to_owned()),
        ..reply("Hi there!", &raw)
    };
    assert_eq!(read(Preset::OpenCode, 0, &raw, b""), Ok(expected));
    let raw = wire("opencode-1.18.33.tool.ndjson");
    let expected = Reply {
        usage: Usage {
            input: 2_575 + 2_576,
            output: 12 + 1,
            ..Usage::default()
        },
        reported_cost: Some(NanoUsd(2_695_000 + 2_586_000)),
        request_id: Some("ses_e001b1865ffe6pC6y4gkGFvOxW".to_owned()),
        ..reply("done", &raw)
    };
    assert_eq!(read(Preset::OpenCode, 0, &raw, b""), Ok(expected));
    let error = br#"{"type":"error","timestamp":1,"sessionID":"s","error":{"name":"APIError","data":{"message":"Overloaded","statusCode":529,"isRetryable":true}}}"#;
    let expected = CallFault {
        code: Some("APIError".to_owned()),
        request_id: Some("s".to_owned()),
        raw: error.to_vec(),
        ..CallFault::new(FaultKind::Overloaded, "exit code 1: Overloaded")
    };
    assert_eq!(read(Preset::OpenCode, 1, error, b""), Err(expected));
}

#[test]
fn gemini() {
    let raw = wire("gemini-0.61.0.ok.json");
    let expected = Reply {
        served_model: Some("gemini-2.5-flash".to_owned()),
        request_id: Some("a20d8a91-c670-407e-b9ea-cf356e7628ab".to_owned()),
        ..reply("Hi there!", &raw)
    };
    assert_eq!(read(Preset::Gemini, 0, &raw, b""), Ok(expected));
    // The error is JSON on standard error; the exit code is the status, cut to a byte.
    let complaint = wire("gemini-0.61.0.401.stderr.txt");
    let expected = CallFault {
        code: Some("authentication_error".to_owned()),
        raw: complaint.clone(),
        ..CallFault::new(FaultKind::Auth, "exit code 145: bad key")
    };
    assert_eq!(read(Preset::Gemini, 145, b"", &complaint), Err(expected));
    let stream = br#"{"type":"init","session_id":"s","model":"gemini-3-pro"}
{"type":"message","role":"user","content":"hi"}
{"type":"message","role":"assistant","content":"Hi ","delta":true}
{"type":"message","role":"assistant","content":"there!","delta":true}
{"type":"result","status":"success","stats":{"models":{"gemini-3-pro":{"tokens":{"prompt":100,"candidates":5,"cached":60,"thoughts":7,"tool":0}}}}}"#;
    let answered = read(Preset::Gemini, 0, stream, b"").unwrap();
    let usage = Usage {
        input: 40,
        cache_read: 60,
        cache_write: 0,
        output: 12,
        reasoning: 7,
    };
    assert_eq!(
        (answered.text.as_str(), answered.usage),
        ("Hi there!", usage)
    );
}

#[test]
fn cursor() {
    let raw = br#"{"type":"result","subtype":"success","is_error":false,"duration_ms":5,"result":"Hi","session_id":"s","request_id":"r"}"#;
    let expected = Reply {
        request_id: Some("r".to_owned()),
        ..reply("Hi", raw)
    };
    assert_eq!(read(Preset::Cursor, 0, raw, b""), Ok(expected));
    let fault = read(
        Preset::Cursor,
        1,
        b"",
        b"Error: Not logged in. Run agent login\n",
    )
    .unwrap_err();
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (
            FaultKind::Auth,
            "exit code 1: Error: Not logged in. Run agent login"
        )
    );
}

#[test]
fn any_command_line() {
    let ended = |envelope, ended, stdout: &[u8]| {
        let output = CommandOutput {
            ended,
            stdout,
            stderr: b"",
        };
        Tool::generic(vec!["x".to_owned()], envelope).read(output)
    };
    let good = CommandExit::Code(0);
    assert_eq!(
        ended(Envelope::Text, good, b"# Hi\n"),
        Ok(reply("# Hi\n", b"# Hi\n"))
    );
    let result = br#"{"result":"{\"a\":1}"}"#;
    assert_eq!(
        ended(Envelope::Json, good, result),
        Ok(reply("{\"a\":1}", result))
    );
    // No envelope that is known: the value is the answer.
    let bare = br#"{"elements":[]}"#;
    let expected = Reply {
        structured: Some(json!({"elements": []})),
        ..reply("{\"elements\":[]}", bare)
    };
    assert_eq!(ended(Envelope::Json, good, bare), Ok(expected));
    // Envelopes of known tools are known whoever starts them.
    let claude = wire("claude-2.1.197.401.json");
    assert_eq!(
        ended(Envelope::Json, good, &claude).unwrap_err().kind,
        FaultKind::Auth
    );
    let kinds = [
        ended(Envelope::Text, CommandExit::Code(3), b"half"),
        ended(Envelope::Text, CommandExit::Signal(9), b""),
        ended(Envelope::Json, good, b"no JSON"),
        ended(
            Envelope::Json,
            good,
            br#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#,
        ),
        ended(Envelope::Text, good, b"\xff"),
        ended(Envelope::Text, CommandExit::Cancelled, b""),
    ]
    .map(|read| read.unwrap_err().kind);
    let expected = [
        FaultKind::ToolFailed,
        FaultKind::ToolFailed,
        FaultKind::Unreadable,
        FaultKind::RateLimited,
        FaultKind::Unreadable,
        FaultKind::Cancelled,
    ];
    assert_eq!(kinds, expected);
    // What was printed before it took too long is kept, and what it had used by then.
    let step = wire("opencode-1.18.33.ok.ndjson");
    let fault = ended(Envelope::Ndjson, CommandExit::TimedOut, &step).unwrap_err();
    let expected = CallFault {
        usage: Usage {
            input: 2_574,
            output: 3,
            ..Usage::default()
        },
        reported_cost: Some(NanoUsd(2_604_000)),
        raw: step,
        ..CallFault::new(
            FaultKind::Timeout,
            "it exceeded its time limit and was stopped",
        )
    };
    assert_eq!(fault, expected);
}

fn request() -> AgentRequest {
    let file = Attachment {
        pages: None,
        name: "in/plan.png".to_owned(),
        media_type: "image/png".to_owned(),
        bytes: vec![1],
    };
    AgentRequest {
        system: Some("S".to_owned()),
        prompt: "P".to_owned(),
        attachments: vec![file],
        schema: Some(
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}),
        ),
        ..AgentRequest::default()
    }
}

#[test]
fn what_is_started() {
    let prompt = "S\n\nP\n\nFiles in the working folder:\n- ./plan.png (image/png)\n";
    let schema = r#"{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}"#;
    let told = format!(
        "{prompt}\n\nAnswer with JSON only: no Markdown fence, no words before or after it. It must be valid against this JSON \
         Schema:\n{schema}"
    );
    let strict = r#"{"type":"object","required":["a"],"properties":{"a":{"type":"string"}},"additionalProperties":false}"#;
    let started = |tool: &Tool| {
        tool.invocation(&request(), Some(NanoUsd(1_500_000_000)))
            .unwrap()
    };
    let plan = ("plan.png".to_owned(), vec![1]);
    let texts = |parts: &[&str]| {
        parts
            .iter()
            .map(|&part| part.to_owned())
            .collect::<Vec<_>>()
    };
    let pairs = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect::<Vec<_>>()
    };
    let claude = Invocation {
        argv: texts(&[
            "claude",
            "-p",
            "--output-format",
            "json",
            "--no-session-persistence",
            "--json-schema",
            schema,
            "--max-budget-usd",
            "1.500000000",
        ]),
        stdin: prompt.into(),
        env: pairs(&[
            ("CLAUDE_CODE_MAX_RETRIES", "0"),
            ("DISABLE_AUTOUPDATER", "1"),
        ]),
        files: vec![plan.clone()],
    };
    assert_eq!(started(&Tool::preset(Preset::Claude)), claude);
    let opencode = Invocation {
        argv: texts(&["opencode", "run", "--format", "json"]),
        stdin: told.clone().into(),
        env: pairs(&[("OPENCODE_DISABLE_AUTOUPDATE", "1")]),
        files: vec![plan.clone()],
    };
    assert_eq!(started(&Tool::preset(Preset::OpenCode)), opencode);
    let cursor = Invocation {
        argv: texts(&["cursor-agent", "-p", "--output-format", "json", "--", &told]),
        stdin: Vec::new(),
        env: Vec::new(),
        files: vec![plan.clone()],
    };
    assert_eq!(started(&Tool::preset(Preset::Cursor)), cursor);
    let codex = Invocation {
        argv: texts(&[
            "codex",
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--output-schema",
            "answer.schema.json",
            "-",
        ]),
        stdin: prompt.into(),
        env: Vec::new(),
        files: vec![
            plan.clone(),
            ("answer.schema.json".to_owned(), strict.into()),
        ],
    };
    assert_eq!(started(&Tool::preset(Preset::Codex)), codex);
    let gemini = Invocation {
        argv: texts(&["gemini", "--output-format", "json"]),
        stdin: told.clone().into(),
        env: Vec::new(),
        files: vec![plan.clone()],
    };
    assert_eq!(started(&Tool::preset(Preset::Gemini)), gemini);
    // Any other: standard input, or where the prompt stands.
    let other = Tool::generic(texts(&["ask", "--say={{ prompt }}"]), Envelope::Text);
    let other = started(&other);
    assert_eq!(
        (other.argv, other.stdin),
        (texts(&["ask", &format!("--say={told}")]), Vec::new())
    );
    let other = started(&Tool::generic(texts(&["ask"]), Envelope::Text));
    assert_eq!(
        (other.argv, other.stdin),
        (texts(&["ask"]), told.into_bytes())
    );
    // An argument that begins with `-` is no option.
    let odd = AgentRequest {
        prompt: "--yolo".to_owned(),
        ..AgentRequest::default()
    };
    let argv = |tool: Tool| tool.invocation(&odd, None).unwrap().argv;
    let within = |part: &str| argv(Tool::generic(texts(&["ask", part]), Envelope::Text));
    assert_eq!(within("{{ prompt }}"), ["ask", "\n--yolo"]);
    assert_eq!(within("--say={{ prompt }}"), ["ask", "--say=--yolo"]);
    assert_eq!(
        argv(Tool::preset(Preset::Cursor))[4..],
        ["--".to_owned(), "--yolo".to_owned()]
    );
    let long = AgentRequest {
        prompt: "x".repeat(200_000),
        ..AgentRequest::default()
    };
    let fault = Tool::preset(Preset::Cursor)
        .invocation(&long, None)
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::TooLong);
    assert!(Tool::preset(Preset::Codex).invocation(&long, None).is_ok());
}

#[test]
fn presets_have_names() {
    assert_eq!(Preset::named("opencode"), Some(Preset::OpenCode));
    assert_eq!(Preset::named("agent"), None);
    assert_eq!(
        ["text", "json", "ndjson"].map(Envelope::named),
        [
            Some(Envelope::Text),
            Some(Envelope::Json),
            Some(Envelope::Ndjson)
        ]
    );
}

#[test]
fn every_command_line_that_declarations_know_is_a_preset() {
    let presets = milepost_core::model::agent::KNOWN_TOOLS.map(Preset::named);
    let expected = [
        Preset::Claude,
        Preset::Claude,
        Preset::OpenCode,
        Preset::Cursor,
        Preset::Codex,
        Preset::Gemini,
    ];
    assert_eq!(presets, expected.map(Some));
}

proptest::proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever part of whatever tool's output there is: it is read to a reply or a fault, and a failed exit is never a reply.
    #[test]
    fn no_output_breaks_it(which in 0..11_usize, share in 0.0..=1.0_f64, code in 0..2_i32, preset in 0..5_usize) {
        let names = [
            "claude-2.1.197.401.json",
            "claude-2.1.197.json-schema.json",
            "claude-2.1.197.stream.ndjson",
            "claude-2.1.330.json-schema.json",
            "claude-2.1.330.stream.ndjson",
            "codex-0.169.0.ok.ndjson",
            "codex-0.169.0.tool.ndjson",
            "gemini-0.61.0.ok.json",
            "gemini-0.61.0.401.stderr.txt",
            "opencode-1.18.33.ok.ndjson",
            "opencode-1.18.33.tool.ndjson",
        ];
        let raw = wire(names[which]);
        let part = &raw[..(share * raw.len() as f64) as usize];
        let read = read(PRESETS[preset], code, part, &raw);
        proptest::prop_assert!(code == 0 || read.is_err());
        if let Ok(reply) = read {
            // An answer is one that the whole output has.
            proptest::prop_assert!(["Hi there!", "done", r#"{"score":0.9,"why":"ok"}"#].contains(&reply.text.as_str()), "{}", reply.text);
        }
    }
}
