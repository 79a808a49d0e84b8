//! A plan takes every flag of a run, and shows what the run with the same flags does.

use super::pipeline::{Served, calls, speller};
use crate::support::Project;
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::options::flags::Flags as _;
use serde_json::{Value, json};

/// Returns a value for a flag, besides switches.
fn value(flag: &str) -> &'static str {
    match flag {
        "jobs" => "2",
        "executor" => "local",
        "budget_usd" => "0.00001",
        "limit" => "1",
        "until" => "split",
        "wait" => "1s",
        other => panic!("a value for `{other}` is missing here"),
    }
}

#[test]
fn a_plan_shows_what_the_run_does_with_each_flag() {
    let served = Served::new("well");
    for flag in RunOptions::FLAGS {
        let long = format!("--{}", flag.long);
        let mut words = vec!["--agent", "speller=api", &long];
        words.extend(flag.value.map(|_| value(flag.name)));
        let project = speller(served.port, "well");
        // The stages are new, then the paid one is known, then all is up to date.
        project.run(&words);
        project.run(&words);
        assert_eq!(project.run(&["--agent", "speller=api"]).code, 0);
        project.run(&words);
    }
}

#[test]
fn a_plan_without_paid_calls_says_so() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    let free = ["--agent", "speller=api", "--until-paid"];
    let stage = |number: usize| project.plan(&free).unwrap()["stages"][number].clone();
    let paid = "agent `api` (anthropic claude-sonnet-4-5) costs money, which --until-paid excludes: run without it";
    assert_eq!(stage(1)["money"]["why"], paid);
    assert_eq!(stage(1)["money"]["batches"], 0);
    project.run(&free).expect(3, &["split"]);
    assert!(calls(&project).is_empty());
    let waits = stage(1);
    assert_eq!(waits["money"]["batches"], 2);
    assert_eq!(
        (&waits["will"], &waits["asks"], &waits["left"]),
        (&Value::Array(Vec::new()), &Value::Null, &2.into())
    );
    assert_eq!(waits["unpaid"][1]["batch"], "batch_2");
    assert_eq!(waits["unpaid_ask"]["calls"], 2);
    let (code, text) = project.milepost(&["plan", "--agent", "speller=api", "--until-paid", "-k"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains(&format!("2 batches wait for budget: {paid}")),
        "{text}"
    );
    assert!(
        text.contains("would ask api (anthropic claude-sonnet-4-5): 2 calls with 5 questions"),
        "{text}"
    );
    let next = "nothing can run without these calls\nnext     milepost run --agent speller=api --keep-going  make these calls, and pay for them\n";
    assert!(text.ends_with(next), "{text}");
}

#[test]
fn a_budget_that_covers_no_first_call_is_a_condition_too() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    project.run(&["--agent", "speller=api", "--until", "split"]);
    let words = ["--agent", "speller=api", "--budget-usd", "0.00001"];
    let stage = project.plan(&words).unwrap()["stages"][1].clone();
    let why = stage["money"]["why"].as_str().unwrap();
    assert!(
        why.ends_with("for this run are left: raise --budget-usd"),
        "{why}"
    );
    project.run(&words).expect(3, &[]).says(why);
}

#[test]
fn a_plan_knows_what_is_asked_before_a_script_that_changed() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    project.edit("stages/2_ask.toml", "[step]", "[[step]]\nout = \"words\"");
    let script = "[[step]]\ncommand = [\"python3\", \"project:scripts/count.py\", \"{{ paths.count }}\"]\nout = \"count\"\n\n[outputs]\ncount = { path = \"intermediate/{{ batch.stem }}.txt\" }";
    project.edit("stages/2_ask.toml", "[outputs]", script);
    project.write(
        "scripts/count.py",
        "import sys\nopen(sys.argv[1], 'w').write('1')\n",
    );
    let api = ["--agent", "speller=api"];
    project
        .run(&api)
        .expect(0, &["ask/batch_1", "ask/batch_2", "join", "split"]);
    project.edit("scripts/count.py", "'1'", "'2'");
    let stage = project.plan(&api).unwrap()["stages"][1].clone();
    let asks = &stage["asks"];
    assert_eq!(
        (
            &asks["calls"],
            &asks["kept"],
            &asks["unknown"],
            &asks["why"]
        ),
        (&0.into(), &5.into(), &0.into(), &Value::Null)
    );
    let ran = project.run(&["--agent", "speller=api", "--until-paid"]);
    ran.expect(0, &["ask/batch_1", "ask/batch_2"]);
    assert_eq!(calls(&project).len(), 2);
}

/// Notes in capitals, a letter about each that an agent writes, and all letters; `before` is a step before the agent's.
fn letters(port: u16, before: &str) -> Project {
    let agents = format!(
        "name = \"letters\"\n\n[agents.writer]\nexternal = true\n\n[agents.api]\nanthropic = \"claude-sonnet-4-5\"\nbase_url = \"http://127.0.0.1:{port}\"\napi_key_env = \"KEY\"\nmax_tokens = 1000\n"
    );
    let write = format!(
        "[each.note]\npath = \"inputs/*.txt\"\n\n[inputs]\nupper = \"intermediate/upper/{{{{ note.stem }}}}.txt\"\n{before}\n[[step]]\nagent = \"writer\"\nprompt = \"prompts/write.md\"\nout = \"letter\"\n\n[outputs]\nletter = {{ path = \"intermediate/letters/{{{{ note.stem }}}}.json\", schema = false }}\n"
    );
    let mut project = Project::new(&[
        ("milepost.toml", &agents),
        (
            "stages/1_upper.toml",
            "[each.note]\npath = \"inputs/*.txt\"\n\n[step]\ncommand = \"tr a-z A-Z < {{ note.path }} > {{ paths.upper }}\"\n\n[outputs]\nupper = \"intermediate/upper/{{ note.stem }}.txt\"\n",
        ),
        ("stages/2_write.toml", &write),
        (
            "stages/3_join.toml",
            "[inputs]\nall = \"intermediate/letters/*.json\"\n\n[step]\njq = \"$all | length\"\n\n[outputs]\ncount = { path = \"outputs/count.json\", schema = false }\n",
        ),
        ("prompts/write.md", "Answer {{ upper }}.\n"),
        ("workspace/inputs/a.txt", "one\n"),
        ("workspace/inputs/b.txt", "two\n"),
    ]);
    project.env("KEY", "right");
    project
}

/// The batches of a stage that may run; none will.
fn may(project: &Project, words: &[&str], stage: usize) -> Value {
    let plan = project.plan(words).unwrap();
    assert_eq!(plan["stages"][stage]["will"], json!([]));
    plan["stages"][stage]["may"].clone()
}

#[test]
fn a_plan_makes_a_condition_of_calls_that_are_not_known_yet() {
    let served = Served::new("well");
    let new = json!([{ "reason": "never_made" }]);
    let batches = |condition: &Value| {
        let batch = |key: &str| json!({ "batch": key, "conditions": [condition], "reasons": new });
        json!([batch("a"), batch("b")])
    };
    let answered = json!({ "condition": "answered", "agents": ["writer"] });
    let money = json!({ "condition": "budget_allows" });
    let completes = json!({ "condition": "stage_completes", "stage": "write" });
    for (words, condition, line) in [
        (&[][..], &answered, "if writer answered its questions"),
        (
            &["--agent", "writer=api", "--until-paid"],
            &money,
            "if the budget allows its calls",
        ),
        (
            &["--agent", "writer=api", "--budget-usd", "0.00001"],
            &money,
            "if the budget allows its calls",
        ),
    ] {
        let project = letters(served.port, "");
        assert_eq!(may(&project, words, 1), batches(condition));
        let joins = json!([{ "batch": "", "conditions": [completes], "reasons": new }]);
        assert_eq!(may(&project, words, 2), joins);
        let (_, text) = project.milepost(&[&["plan"], words].concat());
        let below = format!("never run  a, b\n           {line}\n");
        assert!(text.contains(&below), "{text}");
        assert!(text.contains("if write completes\n"), "{text}");
        project.run(words).expect(3, &["upper/a", "upper/b"]);
        // The questions are known now: the batches wait.
        assert_eq!(may(&project, words, 1), json!([]));
        project.run(words).expect(3, &[]);
        assert!(calls(&project).is_empty());
    }
}

#[test]
fn later_stages_of_one_whose_program_decides_its_calls_may_run() {
    let served = Served::new("well");
    let program =
        "[[step]]\ncommand = [\"cp\", \"{{ note.path }}\", \"{{ paths.copy }}\"]\nout = \"copy\"\n";
    for (words, listed, tried) in [
        (&[][..], "will", &["write/a", "write/b"][..]),
        // A run that may not pay stops at the first batch.
        (
            &["--agent", "writer=api", "--until-paid"],
            "may",
            &["write/a"],
        ),
    ] {
        let project = letters(served.port, program);
        project.edit(
            "stages/2_write.toml",
            "[outputs]\n",
            "[outputs]\ncopy = \"intermediate/copies/{{ note.stem }}.txt\"\n",
        );
        project.edit("prompts/write.md", "{{ upper }}", "{{ copy }}");
        project.run(&["--until", "upper"]);
        let plan = project.plan(words).unwrap();
        let batches = plan["stages"][1][listed].as_array().unwrap();
        assert_eq!(batches.len(), 2, "{plan:#}");
        assert_eq!(may(&project, words, 2).as_array().unwrap().len(), 1);
        project.run(words).expect(3, tried);
    }
}
