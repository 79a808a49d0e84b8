//! What a workspace keeps of `--set` and `--agent`: it is shown, it can be taken back, and it hides no changed default in silence.

use crate::support::Project;
use serde_json::{Value, json};

const PROJECT: &str = r#"
name = "words"

[params]
greeting = "Hello"
size = 20

[agents.speller]
jq = '{word: (.name | ascii_upcase)}'

[agents.quiet]
jq = '{word: (.name | ascii_downcase)}'
"#;

const ASK: &str = r#"
[inputs]
things = "inputs/things.json"

[[step]]
split = ".things"
question = "{name}"
size = "{{ params.size }}"
out = "batch"

[outputs]
batch = { path = "intermediate/batch_*.json", schema = false }
"#;

const SPELL: &str = r#"
[each.batch]
path = "intermediate/batch_*.json"

[step]
agent = "speller"
prompt = "prompts/spell.md"
questions = true
schema = "schemas/word.schema.json"
result = '{id: $element.id, word}'

[outputs]
words = { path = "outputs/{{ batch.stem }}.json", schema = false }
"#;

fn fixture() -> Project {
    let mut project = Project::new(&[
        ("milepost.toml", PROJECT),
        ("stages/1_split.toml", ASK),
        ("stages/2_spell.toml", SPELL),
        ("prompts/spell.md", "Spell {{ questions | tojson }}\n"),
        (
            "schemas/word.schema.json",
            r#"{"type": "object", "required": ["word"]}"#,
        ),
        (
            "workspace/inputs/things.json",
            r#"[{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bo"}]"#,
        ),
    ]);
    project.env("USER", "ann");
    project
}

fn data(project: &Project, arguments: &[&str]) -> Value {
    let output = project
        .command(&[arguments, &["--json"]].concat())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn words(project: &Project) -> Value {
    let all = project.json("workspace/outputs/batch_1.json");
    all.as_array()
        .unwrap()
        .iter()
        .map(|it| it["word"].clone())
        .collect()
}

/// The lines that begin with `warning:`, `note:` or `help:`.
fn notes(said: &str) -> Vec<&str> {
    let is_note = |line: &&str| {
        ["warning:", "note:", "help:"]
            .iter()
            .any(|label| line.starts_with(label))
    };
    said.lines().filter(is_note).collect()
}

/// The day of a time that the workspace stores.
fn day(project: &Project, pointer: &str) -> String {
    let identity = project.json("workspace/.milepost/workspace.json");
    let at = identity.pointer(pointer).unwrap().as_str().unwrap();
    at[..10].to_owned()
}

#[test]
fn a_stored_value_that_hides_a_changed_default_is_warned_about_once() {
    let project = fixture();
    assert_eq!(project.run(&["--set", "size=1"]).code, 0);
    for command in [&["run"][..], &["plan"], &["status"]] {
        let (code, said) = project.milepost(command);
        assert_eq!((code, notes(&said)), (0, vec![]), "{said}");
    }
    project.edit("milepost.toml", "size = 20", "size = 80");
    let day = day(&project, "/params_set/size/at");
    let warning = format!(
        "warning: size = 1 was set for this workspace on {day} by ann; milepost.toml now has 80"
    );
    let both = [warning.as_str(), "help: milepost params --unset size"];
    // The second run has nothing to do, and finds that by its notes.
    for command in [
        &["run"][..],
        &["run"],
        &["plan"],
        &["status"],
        &["run", "--until-paid"],
        &["params"],
    ] {
        let (code, said) = project.milepost(command);
        assert_eq!((code, notes(&said)), (0, both.to_vec()), "{command:?}");
    }
    let tree = || {
        let mut tree = project.tree();
        // A check renews its notes once times prove the content of new files.
        for cache in [".milepost/lock", ".milepost/glance", ".milepost"] {
            tree.remove(cache);
        }
        tree
    };
    let before = tree();
    assert_eq!(notes(&project.milepost(&["run"]).1), both);
    assert_eq!(tree(), before, "a run with nothing to do writes nothing");
    for command in [&["run"][..], &["plan"], &["status"]] {
        let stored = &data(&project, command)["stored"];
        let note = &stored[0];
        assert_eq!(stored.as_array().unwrap().len(), 1, "{command:?}");
        assert_eq!(note["kind"], "hides_default");
        assert_eq!(
            (&note["name"], &note["value"], &note["default"], &note["by"]),
            (&json!("size"), &json!(1), &json!(80), &json!("ann"))
        );
    }
    // Whoever sets it again has seen the new default.
    assert_eq!(project.run(&["--set", "size=1"]).code, 0);
    assert_eq!(notes(&project.milepost(&["run"]).1), [""; 0]);
}

#[test]
fn a_stored_value_is_taken_back() {
    let project = fixture();
    assert_eq!(project.run(&["--set", "size=1"]).code, 0);
    assert_eq!(project.list("outputs"), ["batch_1.json", "batch_2.json"]);
    let plan = project.plan(&["--unset", "size"]).unwrap();
    assert_eq!(plan["stages"][0]["will"].as_array().unwrap().len(), 1);
    let (_, said) = project.milepost(&["plan", "--unset", "size"]);
    assert!(
        said.ends_with("to do it: milepost run --unset size\n"),
        "{said}"
    );
    let ran = project.run(&["--unset", "size"]);
    assert_eq!(ran.code, 0);
    assert_eq!(project.list("outputs"), ["batch_1.json"]);
    // Without a run, the next run finds the value.
    assert_eq!(project.milepost(&["params", "--set", "size=1"]).0, 0);
    assert_eq!(project.list("outputs"), ["batch_1.json"]);
    assert_eq!(project.run(&[]).code, 0);
    assert_eq!(project.list("outputs"), ["batch_1.json", "batch_2.json"]);
    let (code, _) = project.milepost(&["params", "--unset", "size"]);
    let identity = project.json("workspace/.milepost/workspace.json");
    assert_eq!(code, 0);
    assert_eq!(
        (&identity["params"], &identity["params_set"]),
        (&Value::Null, &Value::Null)
    );
    let (code, said) = project.milepost(&["params", "--unset", "size"]);
    assert_eq!(code, 0);
    assert_eq!(
        notes(&said),
        ["note: size is not set for this workspace; milepost.toml has 20"]
    );
    let wrong = project.milepost(&["params", "--unset", "sise"]);
    let help = "error: `--unset sise`: there is no parameter `sise`: did you mean `size`?\n";
    assert_eq!(wrong, (2, help.to_owned()));
    let (code, said) = project.milepost(&["run", "--set", "size=2", "--unset", "size"]);
    assert_eq!(code, 2);
    assert!(said.contains("contradict each other"), "{said}");
}

#[test]
fn params_lists_values_defaults_and_sources() {
    let project = fixture();
    let before = project.tree();
    let listed = data(&project, &["params"]);
    assert_eq!(project.tree(), before, "listing writes nothing");
    let line = |name: &str| {
        let lines = listed["params"].as_array().unwrap().iter();
        lines.clone().find(|line| line["name"] == name).unwrap()
    };
    assert_eq!(
        line("size"),
        &json!({"name": "size", "value": 20, "default": 20, "source": "declared", "at": null, "by": null, "description": null})
    );
    assert_eq!(listed["other_agents"], json!(["quiet"]));
    project.milepost(&[
        "params",
        "--set",
        "size=5",
        "--set",
        "greeting=Hi",
        "--agent",
        "quiet",
    ]);
    let (day, of_agent) = (
        day(&project, "/params_set/size/at"),
        day(&project, "/agents/speller/at"),
    );
    let (code, said) = project.milepost(&["params"]);
    assert_eq!(code, 0);
    let lines: Vec<&str> = said.lines().collect();
    let words: Vec<String> = lines
        .iter()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        words,
        [
            "words in workspace",
            "",
            "parameter value default source",
            &format!("greeting Hi Hello set on {day} by ann"),
            &format!("size 5 20 set on {day} by ann"),
            "",
            "agent answered by source",
            &format!("speller quiet (jq in milepost.toml) set on {of_agent} by ann"),
        ]
    );
}

#[test]
fn a_value_without_a_declaration_is_shown_and_warned_about() {
    let project = fixture();
    assert_eq!(project.run(&["--set", "greeting=Hi"]).code, 0);
    project.edit("milepost.toml", "greeting = \"Hello\"\n", "");
    let said = project.milepost(&["run"]).1;
    let warning = "warning: greeting = Hi is set for this workspace, but milepost.toml declares no parameter `greeting`";
    let both = [warning, "help: milepost params --unset greeting"];
    assert_eq!(notes(&said), both);
    let lines = &data(&project, &["params"])["params"];
    let last = lines.as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["name"], &last["source"]),
        (&json!("greeting"), &json!("unused"))
    );
    assert_eq!(project.milepost(&["params", "--unset", "greeting"]).0, 0);
    assert_eq!(notes(&project.milepost(&["run"]).1), [""; 0]);
}

#[test]
fn another_agent_stays_until_it_is_reset() {
    let project = fixture();
    assert_eq!(project.run(&["--agent", "speller=quiet"]).code, 0);
    assert_eq!(words(&project), json!(["ann", "bo"]));
    // The same as after `--set`: a plain run has nothing to do.
    let plan = project.plan(&[]).unwrap();
    assert_eq!(plan["stages"][1]["will"], json!([]));
    let ran = project.run(&[]);
    assert_eq!((ran.code, ran.records.len()), (0, 0), "{}", ran.output);
    assert_eq!(words(&project), json!(["ann", "bo"]));
    let (_, status) = project.milepost(&["status"]);
    let day = day(&project, "/agents/speller/at");
    let line =
        format!("agent speller is replaced by quiet (jq in milepost.toml), set on {day} by ann\n");
    assert!(status.contains(&line), "{status}");
    assert!(status.ends_with("Everything is up to date.\n"), "{status}");
    // A flag wins over the workspace, and a plan writes nothing.
    let (_, said) = project.milepost(&["plan", "--agent", "speller=default"]);
    let end = "to do it: milepost run --agent speller=default\n";
    assert!(said.ends_with(end), "{said}");
    let before = project.tree();
    assert_eq!(project.milepost(&["run", "-n", "--agent", "default"]).0, 0);
    assert_eq!(project.tree(), before);
    assert_eq!(project.run(&["--agent", "speller=default"]).code, 0);
    assert_eq!(words(&project), json!(["ANN", "BO"].map(str::to_owned)));
    assert_eq!(
        project.json("workspace/.milepost/workspace.json")["agents"],
        Value::Null
    );
}

#[test]
fn a_chosen_agent_that_is_not_declared_is_an_error_with_its_remedy() {
    let project = fixture();
    assert_eq!(project.run(&["--agent", "speller=quiet"]).code, 0);
    let day = day(&project, "/agents/speller/at");
    project.edit("milepost.toml", "[agents.quiet]", "[agents.silent]");
    let error = format!(
        "`quiet` was chosen to answer for `speller` in this workspace on {day} by ann, but milepost.toml declares no agent \
         `quiet`\nhelp: declare [agents.quiet], or let `speller` answer itself with `milepost params --agent speller=default`"
    );
    let before = project.tree();
    for command in [&["run"][..], &["plan"], &["status"], &["why", "spell"]] {
        let (code, said) = project.milepost(command);
        assert_eq!(
            (code, said),
            (
                2,
                format!("error: {}\n", error.replace("\nhelp", "\n    help"))
            ),
            "{command:?}"
        );
    }
    assert_eq!(project.tree(), before);
    assert_eq!(data(&project, &["params"])["problem"], json!(error));
    assert_eq!(
        project
            .milepost(&["params", "--agent", "speller=default"])
            .0,
        0
    );
    assert_eq!(project.run(&[]).code, 0);
    assert_eq!(words(&project), json!(["ANN", "BO"]));
}

#[test]
fn no_agent_is_named_default() {
    let project = fixture();
    project.edit("milepost.toml", "[agents.quiet]", "[agents.default]");
    let (code, said) = project.milepost(&["plan"]);
    assert_eq!(code, 4);
    assert!(
        said.contains("an agent cannot be named `default`"),
        "{said}"
    );
}

#[test]
fn a_workspace_of_an_older_milepost_keeps_its_values() {
    let project = fixture();
    assert_eq!(project.run(&["--set", "size=1"]).code, 0);
    let mut identity = project.json("workspace/.milepost/workspace.json");
    identity.as_object_mut().unwrap().remove("params_set");
    project.write("workspace/.milepost/workspace.json", identity.to_string());
    project.edit("milepost.toml", "size = 20", "size = 80");
    // Nobody knows which default the value replaced.
    let ran = project.run(&[]);
    assert_eq!((ran.code, ran.records.len()), (0, 0), "{}", ran.output);
    assert_eq!(notes(&ran.output), [""; 0]);
    let (_, said) = project.milepost(&["params"]);
    let line = said.lines().find(|line| line.starts_with("size"));
    assert!(line.unwrap().ends_with("set for this workspace"), "{said}");
}

#[test]
fn params_says_that_a_project_declares_none() {
    let stage =
        "[step]\njq = '1'\n\n[outputs]\none = { path = \"outputs/one.json\", schema = false }\n";
    let project = Project::new(&[
        ("milepost.toml", "name = \"bare\"\n"),
        ("stages/1_one.toml", stage),
    ]);
    let (code, said) = project.milepost(&["params"]);
    assert_eq!(
        (code, said.as_str()),
        (
            0,
            "bare in workspace\n\nthis project declares no parameters\n"
        )
    );
}

#[test]
fn values_that_a_declaration_does_not_take_are_refused_while_everything_is_up_to_date() {
    let project = Project::letters();
    assert_eq!(project.run(&["--set", "greeting=Hi"]).code, 0);
    project.edit("milepost.toml", "\"Hello\"", "\"60s\"");
    let join = project.read("stages/2_join.toml");
    let limited = format!("{join}\n[policy]\ntimeout = \"{{{{ params.greeting }}}}\"\n");
    project.write("stages/2_join.toml", limited);
    let (code, said) = project.milepost(&["plan"]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.starts_with("error: `greeting=Hi`, which this workspace stores (`--unset greeting` restores the default): `Hi` is not a duration: "),
        "{said}"
    );
    assert_eq!(project.milepost(&["run", "--unset", "greeting"]).0, 0);
    project.edit("milepost.toml", "\"60s\"", "\"soon\"");
    let (code, said) = project.milepost(&["plan"]);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("`soon` is not a duration")
            && said.contains("with the default of `greeting`"),
        "{said}"
    );
}
