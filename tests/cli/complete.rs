//! Completion of command lines, as the scripts of the shells call it; and man pages.

use crate::support::{Project, expect};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The words that complete the last one, one a line, as a shell receives them.
fn completed(project: &Project, shell: &str, words: &[&str]) -> String {
    let mut command = project.command(&[&["--", "milepost"], words].concat());
    command.env("MILEPOST_COMPLETE", shell);
    command.env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let output = project.output_of(&mut command);
    assert_eq!((output.code, &*output.err), (0, ""), "{words:?}");
    output.out.trim_end().to_owned()
}

fn project() -> Project {
    let project = Project::letters();
    project.edit(
        "milepost.toml",
        "[params]\n",
        "[agents.fast]\nexternal = true\n\n[agents.slow]\nexternal = true\n\n[params]\ngrade = 1\n",
    );
    project
}

#[test]
fn names_of_the_project_are_completed() {
    let project = project();
    assert_eq!(project.milepost(&["-q"]), (0, String::new()));
    let before = project.tree();
    let elsewhere = project.path().to_str().unwrap();
    for (words, found) in [
        (&["run", "c"][..], "copy\ncopy/"),
        (&["run", "join"], "join"),
        (
            &["plan", "copy/1", "copy/person_1"],
            "copy/person_1\ncopy/person_10",
        ),
        (&["log", "copy/person_2"], "copy/person_2"),
        (&["run", "nothing/"], ""),
        (&["run", "--until", "j"], "join"),
        (&["trace", "i"], "intermediate/"),
        (
            &["trace", "intermediate/person_1"],
            "intermediate/person_1.json\nintermediate/person_10.json",
        ),
        (&["trace", "outputs/"], "outputs/page.txt"),
        (&["--set", "gr"], "grade=\ngreeting="),
        (&["params", "--unset", "gre"], "greeting"),
        (&["run", "--agent", "fa"], "fast\nfast="),
        (&["run", "--agent", "fast=s"], "fast=slow"),
        (&["init", "gra"], "grading"),
        (&["schema", "rec"], "record"),
        (&["help", "impo"], "import-review"),
        (&["ver"], "verify"),
        (&["-C", elsewhere, "run", "jo"], "join"),
        (&["--workspace=other", "run", "copy/"], ""),
        (&["run", "--kee"], "--keep-going"),
    ] {
        assert_eq!(completed(&project, "bash", words), found, "{words:?}");
    }
    assert_eq!(
        completed(&project, "fish", &["run", "c"]),
        "copy\tCopy each person\ncopy/\tone batch"
    );
    assert_eq!(project.tree(), before, "completion writes nothing");
}

#[test]
fn wrong_projects_and_hostile_names_are_no_error() {
    let empty = Project::new(&[]);
    assert_eq!(completed(&empty, "bash", &["run", "x"]), "");
    let project = project();
    project.edit("stages/2_join.toml", "[step]", "[stap]");
    assert_eq!(completed(&project, "zsh", &["run", "j"]), "join");
    project.write(
        "workspace/manifests/copy/page_0001.sha256",
        "# milepost manifest 1 stage copy number 1\n\
         # waiting {\"key\":\"a\\u001b[31m\"}\n\
         # waiting {\"key\":\"b c\"}\n\
         # waiting {\"key\":\"$(reboot)\"}\n\
         # waiting {\"key\":\"plain\"}\n\
         # waiting {\"key\":\n",
    );
    assert_eq!(completed(&project, "bash", &["run", "copy/"]), "copy/plain");
    assert_eq!(
        completed(&project, "fish", &["run", "copy/"]),
        "copy/b c\ncopy/$(reboot)\ncopy/plain"
    );
}

#[test]
fn a_batch_of_a_hundred_thousand_is_completed_fast() {
    let project = project();
    for page in 1..=100 {
        let mut text = "# milepost manifest 1 stage copy number 1\n".to_owned();
        for batch in (page - 1) * 1000 + 1..=page * 1000 {
            writeln!(text, "# waiting {{\"key\":\"batch_{batch}\"}}").unwrap();
        }
        project.write(
            &format!("workspace/manifests/copy/page_{page:04}.sha256"),
            text,
        );
    }
    let begun = Instant::now();
    let found = completed(&project, "bash", &["run", "copy/batch_99999"]);
    let took = begun.elapsed();
    assert_eq!(found, "copy/batch_99999");
    assert!(took < Duration::from_secs(5), "{took:?}");
    let found = completed(&project, "bash", &["run", "copy/"]);
    assert_eq!(found.lines().count(), 100);
}

#[test]
fn the_script_of_a_shell_calls_the_program_that_printed_it() {
    let project = Project::new(&[]);
    let fish = project.output("completions fish").out;
    let program = project
        .command(&[])
        .get_program()
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        fish,
        format!(
            "complete --keep-order --exclusive --command milepost --arguments \"(MILEPOST_COMPLETE=fish {program} -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))\"\n"
        )
    );
    let bash = project.output("completions bash").out;
    project.write("script.sh", &bash);
    let checked = std::process::Command::new("bash")
        .args(["-n", "script.sh"])
        .current_dir(project.path())
        .status();
    assert!(checked.unwrap().success());
    assert!(
        bash.contains(&format!(
            "MILEPOST_COMPLETE=\"bash\" \\\n        \"{program}\" -- "
        )),
        "{bash}"
    );
}

#[test]
fn man_pages_are_written_for_every_command() {
    let project = Project::new(&[]);
    let help = project.output("--help").out;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let names = commands
        .lines()
        .filter(|line| !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap());
    let mut files: Vec<String> = names.map(|name| format!("milepost-{name}.1")).collect();
    files.push("milepost.1".to_owned());
    files.sort();
    let found = project.output("man pages/man1");
    let out = format!(
        "wrote {} man pages to …/pages/man1\nhelp: read one with `man …/pages/man1/milepost.1`\n",
        files.len()
    );
    expect(found, 0, &out, "");
    let mut written: Vec<String> = std::fs::read_dir(project.at("pages/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    written.sort();
    assert_eq!(written, files);
    let page = project.read("pages/man1/milepost-status.1");
    assert!(
        page.contains("\n.SH NAME\nmilepost\\-status \\- Show the state of each stage"),
        "{page}"
    );
    let page = project.read("pages/man1/milepost-log.1");
    assert!(
        page.ends_with(
            ".SH EXAMPLES\n.nf\n  milepost log                       show the latest events\n  milepost log classify/batch_3      show one batch, with the output of its programs\n  milepost log ask/batch_3 \\-\\-calls   show the requests to an agent, and its responses\n  milepost log \\-\\-errors \\-\\-last 0     show every error on record\n  milepost log \\-f classify           print the records of a stage as runs write them\n.fi\n"
        ),
        "{page}"
    );
}
