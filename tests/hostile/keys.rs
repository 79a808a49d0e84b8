//! Keys do not appear in what a service or a model returns, however they are written, and go to no host that an input names.

use crate::agents::server::{Play, Server};
use crate::support::Project;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

const KEY: &str = "tok/0123+456789=abcdef";

const JSON: &[&str] = &["content-type: application/json"];

/// A project with a stage of this text, with the address of a service and a key in its environment.
fn fixture(url: &str, stage: &str) -> Project {
    let mut project = Project::new(&[
        (
            "milepost.toml",
            "name = \"keys\"\n[env]\nSERVICE = \"\"\nACCESS = \"\"\n",
        ),
        ("stages/1_call.toml", stage),
    ]);
    project.env("SERVICE", url);
    project.env("ACCESS", KEY);
    project
}

/// The key in each of its representations, with text around it that stays.
fn representations() -> Vec<String> {
    let each = |form: &dyn Fn(u8) -> String| KEY.bytes().map(form).collect::<String>();
    let mut all = vec![
        KEY.to_owned(),
        each(&|byte| format!("%{byte:02X}")),
        KEY.replace('/', "%2f")
            .replace('+', "%2B")
            .replace('=', "%3D"),
        each(&|byte| format!("{byte:02x}")),
        each(&|byte| format!("&#{byte};")),
        each(&|byte| format!("\\u{byte:04x}")),
    ];
    for user in ["", "u:", "me:", "you:"] {
        let text = format!("{user}{KEY}");
        all.extend([STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)]);
    }
    all
}

/// Every file of the workspace that holds the key in one of its representations.
fn leaks(project: &Project) -> Vec<String> {
    let mut forms = representations();
    forms.push(KEY.replace('/', "\\/"));
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(project.at("workspace")) {
        let entry = entry.unwrap();
        if !entry.file_type().is_file() {
            continue;
        }
        let text = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
        // Of base64 the characters between the first and the last hold only bits of the key.
        for form in &forms {
            let inner = &form[form.len() / 3..form.len() - 3];
            if text.contains(inner) {
                found.push(format!("{}: {inner}", entry.path().display()));
            }
        }
    }
    found
}

#[test]
fn a_service_that_repeats_a_key_in_any_representation_is_not_believed() {
    let list: Vec<Value> = representations()
        .into_iter()
        .map(|form| json!([1, form, {form.as_str(): 2}]))
        .collect();
    let text = json!(list).to_string();
    let escaped = format!(
        "[\"{}\", \"{}\", \"{}\"]",
        KEY.replace('/', "\\/"),
        KEY.chars()
            .map(|c| format!("\\u{:04X}", u32::from(c)))
            .collect::<String>(),
        KEY.replace('+', "\\u002b"),
    );
    let server = Server::new(vec![
        Play::Says(200, JSON, text.clone()),
        Play::Says(200, JSON, escaped.clone()),
        Play::Says(403, &[], text),
        Play::Says(403, &[], escaped),
    ]);
    let project = fixture(
        &server.url,
        "[step]\nhttp = \"{{ env.SERVICE }}/x\"\nattempts = 1\nheaders = { authorization = \"Bearer {{ env.ACCESS }}\" }\n\
         [outputs]\nmade = { path = \"outputs/made.json\", schema = false }\n",
    );
    for _ in 0..4 {
        let (_, said) = project.milepost(&["run", "--force"]);
        assert_eq!(leaks(&project), Vec::<String>::new());
        assert!(!said.contains(&KEY[4..]), "{said}");
        let made = project.json("workspace/outputs/made.json").to_string();
        assert!(made.contains("[key]"), "{made}");
    }
    assert_eq!(server.seen().len(), 4);
    assert_eq!(
        server.seen()[0].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
}

/// A model repeats the key escaped, in base64, as the name of the model, and in pieces of a stream.
#[test]
fn a_model_that_repeats_its_key_is_not_believed() {
    let escaped: String = KEY
        .chars()
        .map(|c| format!("\\u{:04x}", u32::from(c)))
        .collect();
    let answer = |content: &str| {
        format!(
            "{{\"id\":\"{escaped}\",\"model\":\"{escaped}\",\"choices\":[{{\"message\":{{\"content\":\"\\\"{content}\\\"\"}},\"finish_reason\":\"stop\"}}],\
             \"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":1}}}}"
        )
    };
    let contents = [
        escaped.clone(),
        KEY.replace('/', "\\/"),
        STANDARD.encode(format!("me:{KEY}")),
        format!("{}\\\\u002b{}", &KEY[..8], &KEY[9..]),
    ];
    let mut script = vec![Play::Says(200, JSON, "{\"data\": []}".to_owned())];
    for content in &contents {
        script.push(Play::Says(200, JSON, answer(content)));
        script.push(Play::Says(200, JSON, "{\"data\": []}".to_owned()));
    }
    let server = Server::new(script);
    let mut project = Project::new(&[
        (
            "milepost.toml",
            &format!(
                "name = \"models\"\n[agents.m]\nopenai = \"x\"\nbase_url = \"{}\"\napi_key_env = \"ACCESS\"\ntries = 1\nmax_tokens = 100\n",
                server.url
            ),
        ),
        ("prompts/p.md", "Say it."),
        (
            "stages/1_one.toml",
            "[step]\nagent = \"m\"\nprompt = \"prompts/p.md\"\nattempts = 1\n[outputs]\nb = { path = \"outputs/b.json\", schema = \"schemas/b.json\" }\n",
        ),
        ("schemas/b.json", "{\"type\": \"string\"}"),
    ]);
    project.env("ACCESS", KEY);
    for content in &contents {
        let (code, said) = project.milepost(&["run", "--force", "--fresh"]);
        assert_eq!(code, 0, "{content}: {said}");
        assert_eq!(leaks(&project), Vec::<String>::new(), "{content}");
        let made = project.read("workspace/outputs/b.json");
        assert!(made.contains("[key]"), "{content}: {made}");
        let (_, log) = project.milepost(&["log", "--calls"]);
        assert!(!log.contains(&KEY[4..]), "{log}");
    }
}

/// The stage of a URL that an input names.
fn at_input(more: &str) -> String {
    format!(
        "[inputs]\nplace = \"inputs/place.json\"\n[step]\nhttp = \"{{{{ place.url | safe }}}}/x\"\nattempts = 1\n{more}\n\
         [outputs]\nmade = {{ path = \"outputs/made.json\", schema = false }}\n"
    )
}

const HEADER: &str = "headers = { authorization = \"Bearer {{ env.ACCESS }}\" }";

#[test]
fn a_url_from_an_input_gets_no_key_without_hosts() {
    for (url, more, is_refused) in [
        ("{{ place.url | safe }}/x", HEADER, true),
        ("https://{{ place.url }}/x", HEADER, true),
        ("https://api.example.com{{ place.url }}", HEADER, true),
        ("https://api.example.com:{{ place.url }}/", HEADER, true),
        ("{{ env.SERVICE }}{{ place.url }}", HEADER, true),
        (
            "{{ place.url | safe }}",
            "headers = { x-id = \"{{ env.ACCESS }}\" }",
            true,
        ),
        ("{{ place.url | safe }}?key={{ env.ACCESS }}", "", true),
        (
            "{{ place.url | safe }}",
            "body = \"{key: $env.ACCESS}\"",
            true,
        ),
        (
            "{{ place.url | safe }}",
            "headers = { authorization = \"Bearer {{ params.base }}\" }",
            true,
        ),
        (
            "{{ place.url | safe }}",
            "headers = { x-api-key = \"1\" }",
            true,
        ),
        ("{{ place.url | safe }}", "", false),
        (
            "{{ place.url | safe }}",
            "headers = { x-id = \"1\" }",
            false,
        ),
        ("https://api.example.com/{{ place.url }}", HEADER, false),
        ("{{ env.SERVICE }}/{{ place.url }}", HEADER, false),
        ("{{ params.base }}?{{ place.url }}", HEADER, false),
        (
            "{{ place.url | safe }}/x",
            "headers = { authorization = \"{{ env.ACCESS }}\" }\nhosts = [\"api.example.com\"]",
            false,
        ),
    ] {
        let stage = at_input(more).replace("{{ place.url | safe }}/x", url);
        let project = fixture("http://127.0.0.1:1", &stage);
        let declared = project.read("milepost.toml");
        project.write(
            "milepost.toml",
            format!("{declared}[params]\nbase = \"http://127.0.0.1:1\"\n"),
        );
        project.write(
            "workspace/inputs/place.json",
            "{\"url\": \"http://127.0.0.1:1\"}",
        );
        let (code, said) = project.milepost(&["plan"]);
        assert_eq!(code == 4, is_refused, "{url} {more}: {code} {said}");
        if is_refused {
            for part in [
                "keys would go to any host that an input names",
                "`place.url` can change the host",
                "such as hosts = [\"api.example.com\"]",
            ] {
                assert!(said.contains(part), "{said}");
            }
        }
    }
}

#[test]
fn a_host_that_is_not_listed_gets_nothing() {
    let listed = Server::new(vec![
        Play::Says(200, JSON, "1".to_owned()),
        Play::Says(302, &["location: http://localhost:1/"], String::new()),
    ]);
    let other = Server::new(vec![Play::Says(200, JSON, "2".to_owned())]);
    let project = fixture(
        "",
        &at_input(&format!("{HEADER}\nhosts = [\"{}\"]", listed.url)),
    );
    let run = |url: &str| {
        project.write(
            "workspace/inputs/place.json",
            json!({"url": url}).to_string(),
        );
        project.milepost(&["run"])
    };
    assert_eq!(run(&listed.url).0, 0);
    let port = listed.url.rsplit(':').next().unwrap();
    let other_port = other.url.rsplit(':').next().unwrap();
    for url in [
        other.url.clone(),
        // Names of the same machine, user names, other schemes and odd slashes.
        format!("http://localhost:{port}"),
        format!("{}@127.0.0.1:{other_port}", listed.url),
        format!("http://127.0.0.1:{other_port}\\@127.0.0.1:{port}"),
        format!("https://127.0.0.1:{port}"),
        format!("http:/\\/127.0.0.1:{other_port}"),
        format!("http://127.0.0.1:{other_port}#@127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}.evil.example"),
    ] {
        let (code, said) = run(&url);
        assert_eq!(code, 1, "{url}: {said}");
        assert!(
            said.contains("`hosts` does not list this host, so nothing was sent"),
            "{url}: {said}"
        );
    }
    assert_eq!(other.seen().len(), 0);
    // A redirect is not followed.
    let (code, said) = run(&format!("{}/moved", listed.url));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("redirects are not followed"), "{said}");
    assert_eq!(listed.seen().len(), 2);
}

/// A server that cuts the key into the events of a stream, and breaks off.
#[test]
fn a_key_in_pieces_of_a_stream_that_breaks_off_is_found() {
    let piece = |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let events = [
        json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        piece("It is "),
        piece(&KEY[..7]),
        piece(&KEY[7..15]),
        piece(&KEY[15..]),
    ];
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let broken = events.iter().chain([&error]);
    let stream = |events: &mut dyn Iterator<Item = &Value>| -> String {
        events.map(|data| format!("data: {data}\n\n")).collect()
    };
    for stream in [stream(&mut events.iter()), stream(&mut broken.into_iter())] {
        let models = Play::Says(200, JSON, "{\"data\": []}".to_owned());
        let server = Server::new(vec![models, Play::Streams(stream)]);
        let mut project = Project::new(&[
            (
                "milepost.toml",
                &format!(
                    "name = \"pieces\"\n[agents.m]\nanthropic = \"claude-haiku-4-5\"\nbase_url = \"{}\"\napi_key_env = \"ACCESS\"\ntries = 1\nmax_tokens = 10000\n",
                    server.url
                ),
            ),
            ("prompts/p.md", "Say it."),
            (
                "stages/1_one.toml",
                "[step]\nagent = \"m\"\nprompt = \"prompts/p.md\"\nattempts = 1\nanswer = \"text\"\n[outputs]\nb = \"outputs/b.txt\"\n",
            ),
        ]);
        project.env("ACCESS", KEY);
        let (code, said) = project.milepost(&["run"]);
        assert_eq!(code, 1, "{said}");
        let answers = project.list(".milepost/calls");
        let answer = answers
            .iter()
            .find(|name| name.rsplit('.').next() == Some("answer"));
        let answer = project.read(&format!("workspace/.milepost/calls/{}", answer.unwrap()));
        assert_eq!(answer, "It is [key]");
    }
}

/// A server that cuts the key into the events of a stream, and one that repeats it in the headers of a failure.
#[test]
fn a_key_in_pieces_or_in_a_header_is_found() {
    let event = |data: Value| {
        format!(
            "event: {}\ndata: {data}\n\n",
            data["type"].as_str().unwrap()
        )
    };
    let piece = |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let stream: String = [
        json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        piece("It is "),
        piece(&KEY[..7]),
        piece(&KEY[7..15]),
        piece(&KEY[15..]),
        piece("."),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 1, "output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
    .into_iter()
    .map(event)
    .collect();
    let models = || Play::Says(200, JSON, "{\"data\": []}".to_owned());
    let server = Server::new(vec![
        models(),
        Play::Streams(stream),
        models(),
        Play::Says(
            500,
            &[
                "request-id: tok/0123+456789=abcdef",
                "location: /dG9rLzAxMjMrNDU2Nzg5PWFiY2RlZg",
            ],
            "{}".to_owned(),
        ),
    ]);
    let mut project = Project::new(&[
        (
            "milepost.toml",
            &format!(
                "name = \"pieces\"\n[agents.m]\nanthropic = \"claude-haiku-4-5\"\nbase_url = \"{}\"\napi_key_env = \"ACCESS\"\ntries = 1\nmax_tokens = 100\n",
                server.url
            ),
        ),
        ("prompts/p.md", "Say it."),
        (
            "stages/1_one.toml",
            "[step]\nagent = \"m\"\nprompt = \"prompts/p.md\"\nattempts = 1\nanswer = \"text\"\n[outputs]\nb = \"outputs/b.txt\"\n",
        ),
    ]);
    project.env("ACCESS", KEY);
    let (code, said) = project.milepost(&["run"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(project.read("workspace/outputs/b.txt"), "It is [key].");
    assert_eq!(leaks(&project), Vec::<String>::new());
    let pieces = walkdir::WalkDir::new(project.at("workspace"))
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .filter(|entry| {
            let bytes = std::fs::read(entry.path()).unwrap();
            String::from_utf8_lossy(&bytes).contains(&KEY[7..15])
        });
    assert_eq!(pieces.count(), 0);
    let (code, said) = project.milepost(&["run", "--force", "--fresh"]);
    assert_eq!(code, 1, "{said}");
    assert!(
        !said.contains(&KEY[4..]) && !said.contains("dG9rLzAx"),
        "{said}"
    );
    assert_eq!(leaks(&project), Vec::<String>::new());
}
