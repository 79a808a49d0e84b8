//! Declarations that nest thousands of levels deep: an error at their place, and no overflow of the stack.

use crate::support::Project;

/// What `plan` prints for a project with this file and this program.
fn planned(file: &str, jq: &str) -> (i32, String) {
    let stage = format!(
        "[step]\njq = '{jq}'\n[outputs]\nmade = {{ path = \"outputs/made.json\", schema = false }}\n"
    );
    let project = Project::new(&[("milepost.toml", file), ("stages/1_make.toml", &stage)]);
    project.milepost(&["plan"])
}

#[test]
fn toml_that_is_nested_too_deeply_is_an_error() {
    for (open, close) in [("[", "]"), ("{a=", "}"), ("[", "")] {
        let file = format!(
            "name = \"deep\"\nx = {}1{}\n",
            open.repeat(40_000),
            close.repeat(40_000)
        );
        let (code, said) = planned(&file, "1");
        assert_eq!(code, 4, "{said}");
        assert!(said.contains("this is not TOML: "), "{said}");
    }
}

#[test]
fn a_long_list_in_a_program_is_not_nested() {
    let items = vec!["1 + 1, \"a\", {a: (1, 2)}"; 5000].join(", ");
    let stage = format!(
        "[step]\njq = '[{items}] | length'\n[outputs]\nmade = {{ path = \"outputs/made.json\", schema = false }}\n"
    );
    let project = Project::new(&[
        ("milepost.toml", "name = \"long\"\n"),
        ("stages/1_make.toml", &stage),
    ]);
    let (code, said) = project.milepost(&["run"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(project.read("workspace/outputs/made.json").trim(), "20000");
}

#[test]
fn a_program_that_is_nested_too_deeply_is_an_error() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("1 | ", ""),
        ("-", ""),
        ("1 + ", ""),
        ("def f: ", "; 1"),
        ("1, def f: 1; ", ""),
        ("", "[]"),
        ("", "[0]"),
        ("", ".a"),
    ] {
        let jq = format!("{}.{}", open.repeat(40_000), close.repeat(40_000));
        let (code, said) = planned("name = \"deep\"\n", &jq);
        assert_eq!(code, 4, "{said}");
        assert!(
            said.contains("error: `jq`: the program is nested too deeply"),
            "{said}"
        );
        assert!(said.contains("stages/1_make.toml:2:"), "{said}");
    }
}

/// The end and the output of `plan` in a project of one stage with more files.
fn planned_stage(stage: &str, file: (&str, &str)) -> (i32, String) {
    let declared = "name = \"deep\"\n";
    let files = [
        ("milepost.toml", declared),
        ("stages/1_make.toml", stage),
        file,
    ];
    Project::new(&files).milepost(&["plan"])
}

#[test]
fn a_template_with_too_many_operators_is_an_error() {
    let stage = "[step]\nrender = \"templates/deep.txt\"\n[outputs]\nmade = \"outputs/made.txt\"\n";
    for (before, more, after) in [
        ("{{ 1", " + 1", " }}"),
        ("{{ 1", " ~ 1", " }}"),
        ("{{ 1", " and 1", " }}"),
        ("{{ 1", " | string", " }}"),
        ("{{ 1", " if 1 else 1", " }}"),
        ("{{ 1", " is defined", " }}"),
        ("{{ stage", ".name", " }}"),
        ("{{ stage", "[0]", " }}"),
        ("{{ stage", "()", " }}"),
        ("{{ ", "not ", "1 }}"),
        ("{{ ", "-", "1 }}"),
        ("{% filter upper", "|upper", " %}{% endfilter %}"),
        ("{% if 1 %}", "{% elif 1 %}", "{% endif %}"),
        ("{% if 1 %}", "{%-  elif 1 %}", "{% endif %}"),
    ] {
        let template = |count: usize| format!("{before}{}{after}", more.repeat(count));
        let (code, said) = planned_stage(stage, ("templates/deep.txt", &template(40_000)));
        assert_eq!(code, 4, "{more}: {said}");
        let expected = "error: a tag has more than 1000 operators, or the template more than 1000 `elif`\n --> templates/deep.txt:1:";
        assert!(said.starts_with(expected), "{more}: {said}");
    }
    let items = format!("{{{{ [{}] }}}}", "\"a\", ".repeat(40_000));
    let (code, said) = planned_stage(stage, ("templates/deep.txt", &items));
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_pattern_with_too_many_braces_is_an_error() {
    let stage = |braces: usize| {
        let pattern = "{a,".repeat(braces) + &"}".repeat(braces);
        format!(
            "[each.file]\npath = 'inputs/{pattern}'\n[step]\njq = '1'\n[outputs]\nmade = {{ path = \"outputs/{{{{ file.stem }}}}.json\", schema = false }}\n"
        )
    };
    let file = ("workspace/inputs/a", "");
    let (code, said) = planned_stage(&stage(100), file);
    assert_eq!(code, 0, "{said}");
    let (code, said) = planned_stage(&stage(40_000), file);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("is not a pattern: it has more than 100 `{`"),
        "{said}"
    );
    assert!(said.contains("--> stages/1_make.toml:2:8"), "{said}");
}

#[test]
fn a_schema_with_too_long_a_chain_of_references_is_an_error() {
    let stage = "[step]\njq = '1'\n[outputs]\nmade = { path = \"outputs/made.json\", schema = \"schemas/deep.json\" }\n";
    let schema = |links: usize| {
        let link =
            |number: usize| format!("\"{number}\": {{\"$ref\": \"#/$defs/{}\"}}", number + 1);
        let links: Vec<String> = (0..links).map(link).collect();
        let named = links.join(", ");
        format!(
            "{{\"$ref\": \"#/$defs/0\", \"$defs\": {{{named}, \"{}\": true}}}}",
            links.len()
        )
    };
    let planned = |links| planned_stage(stage, ("schemas/deep.json", &schema(links)));
    let (code, said) = planned(900);
    assert_eq!(code, 0, "{said}");
    let (code, said) = planned(40_000);
    assert_eq!(code, 4, "{said}");
    let expected = "leads through more than 1000 schemas for the same value";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("--> schemas/deep.json:1:"), "{said}");
}
