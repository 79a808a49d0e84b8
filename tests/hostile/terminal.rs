//! No control character of an input, an answer or a client reaches a terminal, a log or a table.

use crate::agents::server::{Play, Server};
use crate::mcp::client::Client;
use crate::support::Project;
use crate::support::required::{self, require};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Clears the screen, sets the title, reorders text, and forges a line.
const ATTACK: &str = "a\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}31m\u{202e}\u{2066}\u{2028}\u{200f}\u{61c}\u{7f}\u{8}\r\nFORGED";

/// The same as a view shows it.
const SHOWN: &str =
    r"a\u001b[2J\u001b]0;t\u0007\u009b31m\u202e\u2066\u2028\u200f\u061c\u007f\u0008\r\nFORGED";

/// The attack as a string of JSON, which is one of TOML too.
fn quoted() -> String {
    ATTACK
        .chars()
        .map(|c| match c {
            '\u{20}'..='\u{7e}' => c.to_string(),
            c => format!("\\u{:04x}", u32::from(c)),
        })
        .collect()
}

/// Fails if a text holds a control character, or a line that the attack forged.
#[track_caller]
fn is_clean(what: &str, text: &str) {
    let is_raw = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || "\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}".contains(c)
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    assert!(!text.contains(is_raw), "{what}: {text:?}");
    let is_forged = |line: &str| line.starts_with("FORGED");
    assert!(!text.lines().any(is_forged), "{what}: {text}");
}

/// Runs a command with and without colours, and as JSON. Returns what it prints without colours.
#[track_caller]
fn shown(project: &Project, arguments: &[&str]) -> String {
    let (_, plain) = project.milepost(arguments);
    is_clean(&arguments.join(" "), &plain);
    let (_, coloured) = project.milepost(&[arguments, &["--color", "always"]].concat());
    // What is left of the styles must be clean.
    let mut text = String::new();
    for (at, part) in coloured.split("\u{1b}[").enumerate() {
        let (style, rest) = part.split_once('m').unwrap_or(("", part));
        let is_style = at > 0
            && style
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b';');
        text.push_str(if is_style { rest } else { part });
    }
    is_clean(&arguments.join(" "), &text);
    let (_, json) = project.milepost(&[arguments, &["--json"]].concat());
    is_clean(&arguments.join(" "), &json);
    plain
}

/// Every command that looks at a workspace.
#[track_caller]
fn looks_clean(project: &Project) -> String {
    let mut all = String::new();
    for arguments in [
        &["plan"][..],
        &["status"],
        &["why", "one"],
        &["log"],
        &["log", "one"],
        &["log", "--errors"],
        &["log", "--calls"],
        &["verify"],
        &["verify", "--deep"],
        &["graph"],
        &["graph", "--mermaid"],
        &["params"],
        &["diff"],
        &["clean"],
        &["gc"],
    ] {
        all.push_str(&shown(project, arguments));
    }
    all
}

#[test]
fn keys_of_a_file_do_not_reach_the_terminal_in_schema_messages() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"keys\"\n"),
        (
            "stages/1_one.toml",
            "[inputs]\na = \"inputs/a.json\"\n[step]\njq = \".a\"\n[outputs]\nb = { path = \"outputs/b.json\", schema = \"schemas/b.json\" }\n",
        ),
        (
            "schemas/b.json",
            r#"{"additionalProperties": false, "patternProperties": {"^x": {"type": "number"}}}"#,
        ),
    ]);
    for text in [
        format!("{{\"{}\": 1}}", quoted()),
        format!("{{\"x{}\": \"{}\"}}", quoted(), quoted()),
    ] {
        project.write("workspace/inputs/a.json", text);
        let ran = shown(&project, &["run"]);
        let details: Vec<&str> = ran
            .lines()
            .filter(|line| line.starts_with("    /"))
            .collect();
        assert!(details.iter().all(|line| line.contains(SHOWN)), "{ran}");
        assert_eq!(details.len(), 1, "{ran}");
        looks_clean(&project);
    }
}

#[test]
fn values_do_not_reach_the_terminal_in_checks_and_preconditions() {
    for table in ["check", "require"] {
        let stage = format!(
            "[inputs]\na = \"inputs/a.json\"\n[step]\njq = \".a\"\n[[{table}]]\ntest = \".a == 1\"\nerror = \"WRONG\"\nmessage = \"found {{{{ a }}}}\"\n\
             [outputs]\nb = {{ path = \"outputs/b.json\", schema = false }}\n"
        );
        let project = Project::new(&[
            ("milepost.toml", "name = \"checks\"\n"),
            ("stages/1_one.toml", &stage),
        ]);
        project.write("workspace/inputs/a.json", format!("\"{}\"", quoted()));
        let ran = shown(&project, &["run"]);
        assert!(
            ran.contains(&format!(
                "WRONG: found {}",
                SHOWN.replace(r"\nF", "\n    F")
            )),
            "{table}: {ran}"
        );
        looks_clean(&project);
    }
}

#[test]
fn batch_keys_and_parameters_do_not_reach_the_terminal() {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"keys\"\n[params]\ngreeting = \"hello\"\n",
        ),
        (
            "stages/1_one.toml",
            "description = \"Fail for each\"\n[each.row]\nfrom = \"inputs/rows.json\"\nselect = \".[]\"\n\
             [step]\ncommand = [\"sh\", \"-c\", 'printf \"%s\\n\" \"$1\"; exit 3', \"sh\", \"{{ row }} {{ params.greeting }}\"]\n\
             [outputs]\nb = { path = \"outputs/{{ row }}.txt\" }\n[policy]\non_failure = \"continue\"\n",
        ),
    ]);
    project.write(
        "workspace/inputs/rows.json",
        format!("[\"{}\", \"b\"]", quoted()),
    );
    let greeting = format!("greeting={ATTACK}");
    shown(&project, &["plan", "--set", &greeting]);
    let ran = shown(&project, &["run", "--set", &greeting]);
    assert!(ran.contains(SHOWN), "{ran}");
    let seen = looks_clean(&project);
    assert!(seen.contains(SHOWN), "{seen}");
    // The suggested command names the batch for a shell.
    assert!(ran.contains("milepost log $'one/"), "{ran}");
    shown(&project, &["why", &format!("one/{ATTACK}")]);
    shown(&project, &["why", ATTACK]);
    shown(&project, &["run", &format!("x{ATTACK}")]);
    shown(&project, &[&ATTACK.replace('\n', "")]);
    // A renamed parameter leaves a stored value behind.
    project.edit("milepost.toml", "greeting", "welcome");
    project.edit("stages/1_one.toml", "greeting", "welcome");
    shown(&project, &["plan"]);
    shown(&project, &["params"]);
}

#[test]
fn a_provider_and_its_model_do_not_reach_the_terminal() {
    let error = format!(
        "{{\"error\": {{\"message\": \"{}\", \"type\": \"x\"}}}}",
        quoted()
    );
    let answer = format!(
        "{{\"id\":\"{0}\",\"model\":\"{0}\",\"choices\":[{{\"message\":{{\"content\":\"\\\"{1}\\\"\"}},\"finish_reason\":\"{0}\"}}],\
         \"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":1}}}}",
        quoted(),
        quoted().replace('\\', "\\\\")
    );
    let server = Server::new(vec![
        Play::Says(400, &[], error),
        Play::Says(400, &[], format!("<{ATTACK}>")),
        Play::Says(200, &[], format!("<{ATTACK}>")),
        Play::Says(200, &["content-type: application/json"], answer.clone()),
        Play::Says(200, &["content-type: application/json"], answer),
    ]);
    let project = Project::new(&[
        (
            "milepost.toml",
            &format!(
                "name = \"models\"\n[agents.m]\nopenai = \"x\"\nbase_url = \"{}\"\ntries = 1\nmax_tokens = 100\n",
                server.url
            ),
        ),
        ("prompts/p.md", "Say it."),
        (
            "stages/1_one.toml",
            "[step]\nagent = \"m\"\nprompt = \"prompts/p.md\"\nattempts = 1\n[outputs]\nb = { path = \"outputs/b.json\", schema = \"schemas/b.json\" }\n",
        ),
        ("schemas/b.json", "{\"type\": \"string\", \"maxLength\": 3}"),
    ]);
    for _ in 0..3 {
        shown(&project, &["run"]);
        looks_clean(&project);
    }
    assert!(!server.seen().is_empty());
}

#[test]
fn a_service_and_its_headers_do_not_reach_the_terminal() {
    let server = Server::new(vec![
        Play::Says(500, &["location: /\u{9b}31m"], format!("<{ATTACK}>")),
        Play::Says(302, &["location: /\u{9b}31m\u{202e}"], String::new()),
        Play::Says(
            200,
            &["content-type: application/json"],
            format!("{{\"{}\": 1}}", quoted()),
        ),
    ]);
    let project = Project::new(&[
        ("milepost.toml", "name = \"services\"\n"),
        (
            "stages/1_one.toml",
            &format!(
                "[step]\nhttp = \"{}/x\"\nattempts = 1\nschema = \"schemas/b.json\"\n[outputs]\nb = {{ path = \"outputs/b.json\", schema = false }}\n",
                server.url
            ),
        ),
        ("schemas/b.json", "{\"additionalProperties\": false}"),
    ]);
    for _ in 0..3 {
        let (_, ran) = project.milepost(&["run"]);
        is_clean("run", &ran);
        looks_clean(&project);
    }
}

#[test]
fn a_program_does_not_reach_the_terminal() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"programs\"\n"),
        (
            "stages/1_one.toml",
            "[inputs]\na = \"inputs/a.txt\"\n[step]\ncommand = [\"sh\", \"-c\", 'cat \"$1\"; cat \"$1\" >&2; exit 1', \"sh\", \"{{ paths.a }}\"]\n\
             [outputs]\nb = { path = \"outputs/b.txt\" }\n",
        ),
    ]);
    project.write("workspace/inputs/a.txt", ATTACK.replace("\r\n", "\r"));
    shown(&project, &["run"]);
    let seen = looks_clean(&project);
    assert!(seen.contains(r"\u001b[2J"), "{seen}");
    let (_, _) = project.milepost(&["run", "--log-file", "debug.log"]);
    let log = project.read("debug.log");
    assert!(!log.is_empty());
    is_clean("--log-file", &log);
}

/// Three more attacks: names of files, a runner's command line, and invisible styles in a coloured terminal.
#[test]
fn names_of_files_and_command_lines_do_not_reach_the_terminal() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"names\"\n"),
        (
            "stages/1_one.toml",
            "[each.file]\npath = \"inputs/*.txt\"\n[step]\ncopy = \"file\"\n[outputs]\nb = { path = \"outputs/{{ file.stem }}.txt\" }\n",
        ),
    ]);
    project.write("workspace/inputs/\u{202e}txt.\u{200f}a.txt", "1");
    shown(&project, &["plan"]);
    shown(&project, &["run"]);
    looks_clean(&project);
    project.write("workspace/outputs/\u{202e}txt.\u{200f}a.txt", "by hand");
    shown(&project, &["status"]);
    shown(&project, &["verify"]);
    shown(&project, &["run"]);
    shown(&project, &["accept", "one", "--why", ATTACK]);
    looks_clean(&project);
    // A person named like an attack.
    shown(
        &project,
        &["run", "--force", "--set", &format!("today={ATTACK}")],
    );
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no such names or files")]
fn a_result_that_cannot_be_written_is_an_error() {
    let project = Project::letters();
    for arguments in [
        &["status", "--json"][..],
        &["status"],
        &["plan"],
        &["graph"],
        &["params"],
        &["schema", "stage"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
        &["help", "run"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let full = full.unwrap();
        let output = project
            .command(arguments)
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(
            said.contains("error: cannot write to standard output: No space left on device"),
            "{arguments:?}: {said}"
        );
    }
    // A reader that has enough closes its end, and nothing is wrong.
    let mut piped = project
        .command(&["schema", "stage"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(piped.stdout.take());
    let output = piped.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

/// Real shells read the quoted form back.
#[test]
fn a_suggested_command_names_the_batch_in_a_shell() {
    let quoted = milepost_core::plan::options::invocation::shell_word(ATTACK);
    is_clean("shell_word", &quoted);
    let script = format!("LC_ALL=C.UTF-8; printf %s {quoted}");
    require!(required::program("bash", &["--version"]));
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), ATTACK);
}

#[test]
fn the_name_of_a_client_does_not_reach_the_terminal() {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"clients\"\n[agents.writer]\nexternal = true\n",
        ),
        ("prompts/p.md", "Say it."),
        (
            "stages/1_one.toml",
            "[step]\nagent = \"writer\"\nprompt = \"prompts/p.md\"\n[outputs]\nb = { path = \"outputs/b.json\", schema = \"schemas/b.json\" }\n",
        ),
        ("schemas/b.json", "{\"type\": \"string\"}"),
    ]);
    let mut client = Client::silent(&mut project.command(&["mcp"]));
    let me = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": ATTACK, "version": ATTACK},
    });
    client.ask("initialize", me);
    client.notify("notifications/initialized", json!({}));
    let clean = |result: &Value| {
        let text = result["content"][0]["text"].as_str().unwrap();
        is_clean("a tool", text);
    };
    let leased = client.result("next_batch", json!({"stage": "one"}));
    clean(&leased);
    looks_clean(&project);
    for (tool, arguments) in [
        ("next_batch", json!({"stage": "one", "client": ATTACK})),
        ("next_batch", json!({"stage": ATTACK})),
        ("why", json!({"what": ATTACK})),
        ("run", json!({"targets": [ATTACK]})),
        ("submit_batch", json!({"lease": ATTACK, "answer": ATTACK})),
        ("status", json!({})),
    ] {
        clean(&client.result(tool, arguments));
    }
    let lease = leased["structuredContent"]["lease"].clone();
    clean(&client.result(
        "submit_batch",
        json!({"lease": lease, "answer": format!("[\"{}\"]", quoted())}),
    ));
    clean(&client.result(
        "submit_batch",
        json!({"lease": lease, "answer": format!("\"{}\"", quoted())}),
    ));
    drop(client);
    looks_clean(&project);
}

#[test]
fn names_in_an_archive_do_not_reach_the_terminal() {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for name in [format!("{ATTACK}.ifc"), format!("b{ATTACK}.ifc")] {
        writer
            .start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        writer.write_all(b"ISO-10303-21;").unwrap();
    }
    let project = Project::new(&[
        ("milepost.toml", "name = \"archives\"\n"),
        (
            "stages/1_one.toml",
            "[inputs]\nmodel = \"inputs/model.ifczip\"\n[step]\nifc = \"model\"\n[outputs]\nb = { path = \"outputs/b.json\", schema = false }\n",
        ),
    ]);
    project.write(
        "workspace/inputs/model.ifczip",
        writer.finish().unwrap().into_inner(),
    );
    let ran = shown(&project, &["run"]);
    assert!(ran.contains(r"\u001b[2J"), "{ran}");
    looks_clean(&project);
}

/// The stem of a file with the longest name that a file system takes.
#[test]
fn a_batch_with_a_long_name_has_its_log() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"long\"\n"),
        (
            "stages/1_one.toml",
            "[each.file]\npath = \"inputs/*.txt\"\n[step]\ncommand = [\"sh\", \"-c\", \"echo printed by $1; exit 1\", \"sh\", \"{{ file.stem }}\"]\n\
             [outputs]\nb = \"outputs/{{ file.stem }}.txt\"\n",
        ),
    ]);
    let stem = "n".repeat(251);
    project.write(&format!("workspace/inputs/{stem}.txt"), "1");
    let (code, said) = project.milepost(&["run"]);
    assert_eq!(code, 1, "{said}");
    let (_, log) = project.milepost(&["log", &format!("one/{stem}")]);
    assert!(log.contains(&format!("printed by {stem}")), "{log}");
    let logs = project.list(".milepost/logs");
    assert_eq!(logs.len(), 1, "{logs:?}");
}
