//! What clients are told of the server and its tools, and what becomes of calls that cannot be.

use super::client::{Client, well};
use crate::support::Project;
use milepost_core::plan::options::flags::Flags as _;
use milepost_core::plan::options::{RunOptions, Values};
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn the_tools_are_those_that_are_written_down() {
    let project = Project::letters();
    let mut client = Client::of(&project);
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(client.leave(), well());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/mcp/tools.json");
    let text = format!("{tools:#}\n");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "the tools differ from src/mcp/tools.json; BLESS=1 writes them there"
    );
}

#[test]
fn every_schema_is_one_and_names_every_argument() {
    let project = Project::letters();
    let mut client = Client::of(&project);
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    for tool in tools.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        for schema in ["inputSchema", "outputSchema"] {
            let schema = &tool[schema];
            assert_eq!(schema["type"], "object", "{name}");
            let text = schema.to_string();
            let none = |_: &str| None;
            milepost_store::check::schema::Schema::compile(name, &text, &none).unwrap();
        }
        let arguments = tool["inputSchema"]["properties"].as_object().unwrap();
        for (argument, schema) in arguments {
            assert!(schema["description"].is_string(), "{name}: {argument}");
        }
    }
}

/// The schema of a tool's results.
fn schema_of(client: &mut Client, tool: &str) -> milepost_store::check::schema::Schema {
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let mut tools = tools.as_array().unwrap().iter();
    let found = tools.find(|row| row["name"] == tool).unwrap();
    let text = found["outputSchema"].to_string();
    milepost_store::check::schema::Schema::compile(tool, &text, &|_: &str| None).unwrap()
}

#[test]
fn results_and_faults_match_the_schema_of_their_tool() {
    let project = Project::letters();
    let mut client = Client::of(&project);
    let calls = [
        ("status", json!({})),
        ("plan", json!({})),
        ("why", json!({"what": "copy"})),
        ("run", json!({"targets": ["join"]})),
        ("run", json!({"limit": 1})),
        ("run", json!({})),
        ("status", json!({})),
        ("plan", json!({"force": true})),
        ("why", json!({"what": "copy/person_2"})),
        ("why", json!({"what": "outputs/page.txt"})),
        ("why", json!({"what": "nothing"})),
        ("log", json!({})),
        ("log", json!({"target": "copy/person_1"})),
        ("verify", json!({"deep": true})),
        ("check_stage_completion", json!({"stage_num": 1})),
        ("check_stage_completion", json!({"stage_num": 7})),
        (
            "wait_for_subagent",
            json!({"output_file": "intermediate/person_1.json"}),
        ),
        (
            "wait_for_subagent",
            json!({"output_file": "x.json", "timeout": 0}),
        ),
        (
            "aggregate_batch_results",
            json!({"batch_dir": "x", "output_file": "y"}),
        ),
        ("next_batch", json!({})),
        ("submit_batch", json!({"lease": "x"})),
        ("release_batch", json!({"lease": "x"})),
        ("run", json!({"colour": "red"})),
    ];
    for (tool, arguments) in calls {
        let schema = schema_of(&mut client, tool);
        let result = client.result(tool, arguments.clone());
        let data = &result["structuredContent"];
        let found = schema.violations(data, "", 3);
        assert!(found.is_empty(), "{tool} {arguments}: {found:?}\n{data:#}");
    }
    assert_eq!(client.leave(), well());
}

#[test]
fn the_reference_lists_every_flag_of_a_run() {
    // A client does not wait for another run.
    let flags = RunOptions::FLAGS.iter().filter(|flag| flag.name != "wait");
    let names = flags.map(|flag| flag.name);
    let names = names.chain(Values::FLAGS.iter().map(|flag| flag.name));
    let names: String = names.map(|name| format!(", `{name}`")).collect();
    let page = std::fs::read_to_string("docs/reference/mcp.md").unwrap();
    let row = format!("| `run` | `targets`{names}; all optional |");
    assert!(page.contains(&row), "docs/reference/mcp.md lacks:\n{row}");
}

#[test]
fn calls_that_cannot_be_are_refused_with_a_code_and_a_hint() {
    let project = Project::letters();
    let mut client = Client::of(&project);
    for (tool, arguments, error) in [
        (
            "check_stage_completion",
            json!({}),
            "the arguments of `check_stage_completion` are invalid: missing field `stage_num`",
        ),
        (
            "check_stage_completion",
            json!({"stage_num": "one"}),
            "the arguments of `check_stage_completion` are invalid: invalid type: string \"one\", expected u32",
        ),
        (
            "status",
            json!({"all": true}),
            "the arguments of `status` are invalid: unknown field `all`, there are no fields",
        ),
        (
            "run",
            json!({"stages": ["copy"]}),
            "the arguments of `run` are invalid: unknown field `stages`, expected one of `targets`, `until`, `limit`, `failed`, `force`, `no_force`, `keep_going`, `fresh`, `until_paid`, `budget_usd`, `jobs`, `executor`, `set`, `unset`, `agents`",
        ),
    ] {
        assert_eq!(
            client.fault(tool, arguments),
            json!({
                "error": error,
                "code": "arguments",
                "hint": "send arguments that match the `inputSchema` of the tool",
            })
        );
    }
    assert_eq!(
        client.fault("check_stage_completion", json!({"stage_num": 3})),
        json!({
            "error": "there is no stage 3; available: 1 copy, 2 join",
            "code": "usage",
            "hint": "change the arguments as described in the message",
        })
    );
    let unknown = client.ask("tools/call", json!({"name": "erase", "arguments": {}}));
    assert_eq!(
        unknown["error"],
        json!({"code": -32602, "message": "there is no tool `erase`"})
    );
    let unknown = client.ask("prompts/list", json!({}));
    assert_eq!(unknown["result"], json!({"prompts": []}));
    assert_eq!(client.leave(), well());
}

#[test]
fn wrong_declarations_are_told_with_their_places_and_may_be_corrected_meanwhile() {
    let project = Project::letters();
    project.edit("stages/2_join.toml", "jq =", "jp =");
    let mut client = Client::of(&project);
    let fault = client.fault("plan", json!({}));
    assert_eq!(fault["code"], "declaration");
    assert_eq!(fault["problems"][0]["file"], "stages/2_join.toml");
    project.edit("stages/2_join.toml", "jp =", "jq =");
    assert_eq!(client.call("plan", json!({}))["stages"][1]["stage"], "join");
    assert_eq!(client.leave(), well());
}

#[test]
fn lines_that_are_no_messages_do_not_end_the_server() {
    let project = Project::letters();
    let mut client = Client::of(&project);
    client.line("this is no JSON");
    client.line("{\"jsonrpc\": \"2.0\"}");
    client.line("[]");
    let status = client.call("status", json!({}));
    assert_eq!(status["project"], "letters");
    assert_eq!(client.leave(), well());
}

#[test]
fn a_client_of_the_version_without_sessions_is_answered() {
    let project = Project::letters();
    let mut client = Client::silent(&mut project.command(&["mcp"]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "script", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.ask("server/discover", json!({"_meta": meta}));
    assert_eq!(
        found["result"]["capabilities"],
        json!({"tools": {}}),
        "{found:#}"
    );
    let call = json!({"name": "status", "arguments": {}, "_meta": meta});
    let answer = client.ask("tools/call", call);
    let data: &Value = &answer["result"]["structuredContent"];
    assert_eq!(data["project"], "letters", "{answer:#}");
    assert_eq!(client.leave(), well());
}

#[test]
fn a_server_without_a_project_says_so_in_each_call() {
    let project = Project::new(&[("notes.txt", "nothing")]);
    let mut client = Client::of(&project);
    let fault = client.fault("status", json!({}));
    assert_eq!(fault["code"], "no_project");
    assert_eq!(
        fault["hint"],
        "start the server in a project's folder, or name one with `-C DIR`"
    );
    assert_eq!(client.leave(), well());
}
