//! Values that JSON readers differ about: long integers, duplicate keys, Unicode forms.

use crate::support::Project;

/// A project with one stage, which makes `outputs/made.json` from `$data`.
fn one(input: &str, jq: &str) -> Project {
    let stage = format!(
        "[inputs]\ndata = \"inputs/{input}\"\n\n[step]\njq = '{jq}'\n\n[outputs]\nmade = {{ path = \"outputs/made.json\", schema = false }}\n"
    );
    Project::new(&[
        ("milepost.toml", "name = \"one\"\n"),
        ("stages/1_make.toml", &stage),
    ])
}

/// Runs the stage on this input, and checks that it fails with this message and makes nothing.
#[track_caller]
fn refused(input: &str, text: &str, jq: &str, said: &str) {
    let project = one(input, jq);
    project.write(&format!("workspace/inputs/{input}"), text);
    let ran = project.run(&[]);
    ran.expect(1, &["make"]).says(said);
    assert!(!project.exists("workspace/outputs/made.json"));
}

const LONG: &str = "needs more than 64 bits: write it as a string";

#[test]
fn a_long_integer_is_refused_by_every_reader() {
    let one = "{\"id\": 12345678901234567890123}";
    let two = "{\"id\": 12345678901234567890124}";
    let list = format!("[{one},\n {two}]");
    let at = format!("inputs/a.json: line 1, column 9: the integer 12345678901234567890123 {LONG}");
    refused("a.json", &list, "$data", &at);
    refused("a.json", &list, "$data | map(.id) | unique", LONG);
    refused("a.ndjson", &format!("{one}\n{two}\n"), "$data", LONG);
    refused("a.ndjson", &format!("{one}\n{two}\n"), "[$data[].id]", LONG);
}

#[test]
fn a_long_integer_that_a_program_makes_is_refused() {
    let said = "needs more than 64 bits: make it a string with `tostring`";
    refused("a.json", "[9223372036854775807]", "$data[0] * 10", said);
    refused("a.txt", "12345678901234567890123", "$data | tonumber", said);
    let project = one("a.txt", "$data | tonumber | tostring");
    project.write("workspace/inputs/a.txt", "12345678901234567890123");
    project.run(&[]).expect(0, &["make"]);
    assert_eq!(
        project.json("workspace/outputs/made.json"),
        "12345678901234567890123"
    );
}

#[test]
fn integers_of_64_bits_keep_their_digits() {
    let text = "[18446744073709551615,-9223372036854775808,9007199254740993,1e20,0.1]";
    for jq in ["$data", "[$data[]]", "$data | map(.)"] {
        let project = one("a.json", jq);
        project.write("workspace/inputs/a.json", text);
        project.run(&[]).expect(0, &["make"]);
        let made = project.json("workspace/outputs/made.json").to_string();
        assert_eq!(
            made,
            "[18446744073709551615,-9223372036854775808,9007199254740993,1e+20,0.1]"
        );
    }
}

#[test]
fn a_key_that_stands_twice_is_refused_by_every_reader() {
    let twice = "{\"id\": 1, \"points\": 3, \"points\": 9}";
    let said = "duplicate key `points`";
    refused("a.json", twice, "$data", said);
    refused("a.json", twice, "$data.points", "points");
    refused("a.json", &format!("[{twice}]"), "[$data[].points]", said);
    refused("a.json", &format!("[[{twice}]]"), "$data[0][0].id", said);
    refused("a.ndjson", &format!("{twice}\n"), "$data", said);
}

#[test]
fn a_program_that_reads_a_text_refuses_a_key_that_stands_twice() {
    let twice = "{\"id\": 1, \"points\": 3, \"points\": 9}";
    let said = "duplicate key `points`";
    refused("a.txt", twice, "$data | fromjson", said);
    refused("a.txt", &format!("1 [{twice}]"), "[$data | fromjson]", said);
    for (text, made) in [
        ("[1]", "[[1]]"),
        ("1 {\"a\": 2}", "[1,{\"a\":2}]"),
        ("", "[]"),
    ] {
        let project = one("a.txt", "[$data | fromjson]");
        project.write("workspace/inputs/a.txt", text);
        project.run(&[]).expect(0, &["make"]);
        assert_eq!(
            project.json("workspace/outputs/made.json").to_string(),
            made
        );
    }
}

#[test]
fn a_schema_with_a_key_twice_is_refused() {
    let project = one("a.json", "$data");
    project.edit(
        "stages/1_make.toml",
        "schema = false",
        "schema = \"schemas/made.json\"",
    );
    project.write(
        "schemas/made.json",
        "{\"type\": \"object\", \"type\": \"array\"}",
    );
    project.write("workspace/inputs/a.json", "{}");
    let (code, text) = project.milepost(&["plan"]);
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("duplicate key `type`"), "{text}");
}

#[test]
fn a_parameter_with_a_long_integer_is_refused() {
    let project = one("a.json", "$data + $params.n");
    project.write("milepost.toml", "name = \"one\"\n\n[params]\nn = 1\n");
    project.write("workspace/inputs/a.json", "1");
    let (code, text) = project.milepost(&["run", "--set", "n=12345678901234567890123"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("12345678901234567890123"), "{text}");
}

#[test]
fn corrections_with_a_key_twice_are_refused() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"one\"\n"),
        (
            "stages/1_merge.toml",
            "[inputs]\ndata = \"inputs/a.json\"\nfixes = \"inputs/fixes.json\"\n\n[step]\nmerge = \".data[]\"\nkey = \".id\"\ncorrections = \"fixes\"\n\n[outputs]\nmerged = { path = \"outputs/made.json\", schema = false }\n",
        ),
        ("workspace/inputs/a.json", "[{\"id\": 1, \"points\": 3}]"),
        (
            "workspace/inputs/fixes.json",
            "[{\"id\": 1, \"points\": 4, \"points\": 9}]",
        ),
    ]);
    let (code, text) = project.milepost(&["run"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("duplicate key `"), "{text}");
}
