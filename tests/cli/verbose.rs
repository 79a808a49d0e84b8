//! `run --verbose`: commands as a shell would show them, and their output as it arrives, with the batch before each line.

use crate::situations::gated::{gated, release, wait_for_batch};
use crate::support::{Project, expect};
use crate::watch::session::Session;

/// Two batches that print a key and control characters, and a stage with a list of files.
fn project() -> Project {
    let mut project = Project::new(&[
        (
            "milepost.toml",
            "name = \"say\"\n\n[env]\nAPI_TOKEN = \"\"\n",
        ),
        (
            "stages/1_say.toml",
            r#"
[each.word]
values = ["a", "b"]

[step]
command = """
printf 'red \\033[31m one\\ntwo\\rthree\\n'; echo "token $API_TOKEN" >&2
printf %s {{ word }} > {{ paths.out }}; printf end"""
env = ["API_TOKEN"]

[outputs]
out = { path = "outputs/{{ word }}.txt" }
"#,
        ),
        (
            "stages/2_list.toml",
            r#"
[inputs]
words = "outputs/*.txt"

[step]
command = ["sh", "-c", 'cat "$@" > "$0"', "{{ paths.all }}", "{{ paths.words }}"]

[outputs]
all = "outputs/all/words.txt"
"#,
        ),
    ]);
    project.env("API_TOKEN", "sesame-open-1234");
    project
}

#[test]
fn commands_and_their_output_are_shown() {
    let project = project();
    let mut output = project.output("run -v -q");
    assert_eq!(
        (output.code, &*output.out),
        (2, ""),
        "--quiet contradicts it"
    );
    output = project.output("run --verbose -j 1");
    let run = project.records()[0]["run_id"].as_str().unwrap().to_owned();
    output.err = output.err.replace(&run, "RUN");
    let say = |word: &str, number: u32| {
        format!(
            "say/{word} $ __milepost1='{word}'; __milepost2='…/workspace/.milepost/scratch/RUN/say/{word}~{number}/outputs/{word}.txt'; printf 'red \\033[31m one\\ntwo\\rthree\\n'; echo \"token $API_TOKEN\" >&2\n\
             say/{word} > printf %s \"$__milepost1\" > \"$__milepost2\"; printf end\n\
             say/{word} | red \\u001b[31m one\n\
             say/{word} | three\n\
             say/{word} | token [key]\n\
             say/{word} | end\n"
        )
    };
    let err = format!(
        "say starts: 2 batches\n{}{}say: up to date after …\n\
         list starts\n\
         list $ sh -c 'cat \"$@\" > \"$0\"' '…/workspace/.milepost/scratch/RUN/list/only~1/outputs/all/words.txt' …/workspace/outputs/a.txt …/workspace/outputs/b.txt\n\
         list: up to date after …\n",
        say("a", 1),
        say("b", 2),
    );
    let out = "say   up to date  2 batches ran  …\n\
               list  up to date  ran  …\n\n\
               complete in …\n\
               outputs  workspace/outputs/a.txt\n         workspace/outputs/b.txt\n         workspace/outputs/all/words.txt\n";
    expect(output, 0, out, &err);
    expect(
        project.output("-v status"),
        2,
        "",
        "error: `--verbose` is a flag of `run`, not of `status`\n\n\
         Usage: milepost [OPTIONS]\n       milepost [OPTIONS] COMMAND\n\n\
         For more information, try '--help'.\n",
    );
}

#[test]
fn output_is_shown_while_the_program_runs() {
    let project = gated();
    project.edit(
        "stages/1_meet.toml",
        "read word",
        "echo \"waiting $1\"; read word",
    );
    let session = Session::of_errors(project.spawn(&["run", "-v", "-j", "1"]));
    wait_for_batch(&project, 1);
    assert_eq!(
        session.until("meet/1 |").last().unwrap(),
        "meet/1 | waiting 1"
    );
    release(&project, 1);
    wait_for_batch(&project, 2);
    assert_eq!(
        session.until("meet/2 |").last().unwrap(),
        "meet/2 | waiting 2"
    );
    release(&project, 2);
    session.until("meet: up to date");
}

#[test]
fn a_plan_shows_the_commands_that_would_run() {
    let project = project();
    let output = project.output("plan -v");
    let say = |word: &str| {
        format!(
            "          say/{word} $ __milepost1='{word}'; __milepost2='…/workspace/outputs/{word}.txt'; printf 'red \\033[31m one\\ntwo\\rthree\\n'; echo \"token $API_TOKEN\" >&2\n          \
             say/{word} > printf %s \"$__milepost1\" > \"$__milepost2\"; printf end\n"
        )
    };
    let out = format!(
        "say in workspace\n\n  1 say   will run 2 batches\n          never run  a, b\n{}{}  2 list  will run\n          never run\n\n\
         3 batches will run; to do it: milepost run\n\n\
         note: no batch becomes out of date because one of these changes:\n  - {}\n",
        say("a"),
        say("b"),
        milepost_core::model::fingerprint::OUTSIDE.join("\n  - "),
    );
    expect(output, 0, &out, "");
    assert!(!project.exists("workspace/outputs"), "nothing is written");
    let plan: serde_json::Value =
        serde_json::from_str(&project.output("plan --verbose --json").out).unwrap();
    assert_eq!(plan["stages"][0]["first"][1]["batch"], "b");
    assert_eq!(plan["stages"][0]["first"][1]["program"][0], "sh");
}

#[test]
fn a_plan_shows_all_commands_if_asked_twice() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"many\"\n"),
        (
            "stages/1_many.toml",
            r#"[each.n]
count = 25

[step]
command = ["true", "{{ n }}"]

[outputs]
nothing = { path = "outputs/{{ n }}.txt", schema = false }
"#,
        ),
    ]);
    let shown = |arguments: &str| {
        let text = project.output(arguments).out;
        let commands = text.lines().filter(|line| line.contains(" $ true "));
        let more = text.lines().filter(|line| line.contains("… and"));
        let more: Vec<String> = more.map(|line| line.trim().to_owned()).collect();
        (commands.count(), more)
    };
    let more = vec!["… and 5 more (`-vv` shows all)".to_owned()];
    assert_eq!(shown("plan -v"), (20, more.clone()));
    assert_eq!(shown("run --dry-run -v"), (20, more));
    assert_eq!(shown("plan -vv"), (25, vec![]));
    assert_eq!(shown("plan"), (0, vec![]));
}
