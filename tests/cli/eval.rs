//! `milepost eval`: one filter on files, without a workspace.

use crate::support::{Output, Project};
use serde_json::{Value, json};

fn project() -> Project {
    Project::new(&[
        (
            "milepost.toml",
            "name = \"filters\"\n\n[params]\nlow = { default = 2, min = 0, max = 9 }\n\n[env]\nWHO = \"ada\"\n",
        ),
        (
            "filters/score.jq",
            "include \"shared/words\";\n{low: $params.low, who: $env.WHO, points: [$criteria[] | .points | tonumber] | add, name: (.answers.name | shout)}\n",
        ),
        ("filters/shared/words.jq", "def shout: ascii_upcase;\n"),
        ("answers.json", r#"{"name": "berta"}"#),
        ("criteria.csv", "id,points\na,3\nb,4\n"),
    ])
}

fn eval(project: &Project, arguments: &[&str]) -> Output {
    project.output_of(project.command(&["eval"]).args(arguments))
}

fn value(output: &Output) -> Value {
    assert_eq!(output.code, 0, "{}", output.err);
    serde_json::from_str(&output.out).unwrap()
}

#[test]
fn a_filter_is_evaluated_on_files_and_changes_nothing() {
    let project = project();
    let before = project.tree();
    let given = [
        "filters/score.jq",
        "--input",
        "criteria=criteria.csv",
        "--input",
        "answers=answers.json",
        "--set",
        "low=5",
    ];
    let expected = json!({"low": 5, "who": "ada", "points": 7, "name": "BERTA"});
    assert_eq!(value(&eval(&project, &given)), expected);
    let output = eval(&project, &[&given[..], &["--json"]].concat());
    assert_eq!(
        value(&output),
        json!({"filter": "filters/score.jq", "values": [expected]})
    );
    assert_eq!(project.tree(), before);
}

#[test]
fn the_input_of_a_program_is_a_file_and_names_are_arguments() {
    let project = project();
    let output = eval(
        &project,
        &[
            ".name, $element.id, $word",
            "--input",
            "answers.json",
            "--arg",
            r#"element={"id": 7}"#,
            "--arg",
            "word=seven",
        ],
    );
    assert_eq!(
        (output.code, &*output.out),
        (0, "\"berta\"\n7\n\"seven\"\n")
    );
}

#[test]
fn a_mistake_is_shown_at_its_place() {
    let project = project();
    let output = eval(&project, &["filters/score.jq"]);
    assert_eq!(output.code, 4);
    let expected = "\
error: `$criteria` has no value
 --> filters/score.jq:2:44
  |
2 | {low: $params.low, who: $env.WHO, points: [$criteria[] | .points | tonumber] | add, name: (.answers.name | shout)}
  |                                            ^^^^^^^^^
  |
  = help: give it one: --input criteria=FILE or --arg criteria=VALUE

error: 1 error in the declarations; nothing was run
";
    assert_eq!(output.err, expected);

    project.write("filters/shared/words.jq", "def shout: ascii_upcas;\n");
    let output = eval(&project, &["filters/score.jq", "--arg", "criteria=[]"]);
    assert_eq!(output.code, 4);
    let place = " --> filters/shared/words.jq:1:12\n";
    assert!(output.err.contains(place), "{}", output.err);

    let output = eval(&project, &[".a ||"]);
    assert_eq!(output.code, 4);
    assert!(
        output.err.contains(" --> command line:1:5\n"),
        "{}",
        output.err
    );
}

#[test]
fn an_error_while_it_runs_and_wrong_options_are_shown() {
    let project = project();
    let said = |arguments: &[&str]| {
        let output = eval(&project, arguments);
        (output.code, output.err.trim_end().to_owned())
    };
    let long = "[limit(3; repeat(1))] | error(\"no \\(length)\")";
    assert_eq!(
        said(&[long]),
        (1, "error: command line: FILTER: no 3".to_owned())
    );
    let (code, err) = said(&["filters/none.jq"]);
    assert_eq!(code, 4);
    assert!(
        err.contains("there is no `filters/none.jq` in the project"),
        "{err}"
    );
    for (arguments, expected) in [
        (
            &[".", "--set", "low=10"][..],
            "error: --set low=10: expected a whole number from 0 to 9",
        ),
        (
            &[".", "--arg", "x"],
            "error: `--arg x`: write `--arg NAME=VALUE`",
        ),
        (
            &[".", "--arg", "x=1", "--arg", "x=2"],
            "error: `x` has two values",
        ),
        (
            &[".", "--input", "answers.json", "--input", "answers.json"],
            "error: `--input` has two files without a name: name one with `--input NAME=FILE`",
        ),
    ] {
        assert_eq!(said(arguments), (2, expected.to_owned()));
    }
}
