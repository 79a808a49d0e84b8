//! Templates that each batch picks by its own path.

use crate::support::Project;

/// Each of two criteria has its own prompt, asked of an agent that says what it was asked, and its own page.
fn criteria() -> Project {
    Project::new(&[
        (
            "milepost.toml",
            "name = \"criteria\"\n\n[params]\nlanguage = \"en\"\nmood = \"kind\"\n\n[agents.echo]\ncli = [\"cat\"]\n",
        ),
        (
            "stages/1_ask.toml",
            r#"
[each.criterion]
from = "project:criteria.toml"
select = ".criteria[]"
key = ".name"

[step]
agent = "echo"
prompt = "prompts/{{ criterion.prompt }}"
answer = "text"

[outputs]
asked = "intermediate/{{ criterion.name }}.txt"
"#,
        ),
        (
            "stages/2_page.toml",
            r#"
[each.criterion]
from = "project:criteria.toml"
select = ".criteria[]"
key = ".name"

[inputs]
asked = "intermediate/{{ criterion.name }}.txt"

[step]
render = "templates/{{ params.language }}/{{ criterion.name }}.md"

[outputs]
page = "outputs/{{ criterion.name }}.md"
"#,
        ),
        (
            "criteria.toml",
            "criteria = [{ name = \"code\", prompt = \"code.md\" }, { name = \"tests\", prompt = \"tests.md\" }]\n",
        ),
        (
            "prompts/code.md",
            "Is the code good? {% include \"frame.md\" %}",
        ),
        ("prompts/tests.md", "Be {{ params.mood }} to the tests."),
        ("prompts/frame.md", "Look at {{ criterion.name }}."),
        (
            "prompts/other.md",
            "Of another stage: {{ nothing.of_this }}",
        ),
        ("templates/en/code.md", "Code: {{ asked }}"),
        ("templates/en/tests.md", "Tests: {{ asked }}"),
        ("templates/de/code.md", "Quelltext: {{ asked }}"),
    ])
}

#[test]
fn each_batch_has_the_template_that_its_path_gives() {
    let project = criteria();
    let all = ["ask/code", "ask/tests", "page/code", "page/tests"];
    project.run(&[]).expect(0, &all);
    let page = |name: &str| project.read(&format!("workspace/outputs/{name}.md"));
    assert_eq!(page("code"), "Code: Is the code good? Look at code.");
    assert_eq!(page("tests"), "Tests: Be kind to the tests.");
    project.run(&[]).expect(0, &[]);
}

#[test]
fn what_a_template_holds_concerns_the_batches_that_picked_it() {
    let project = criteria();
    project.run(&[]);
    project.edit("prompts/tests.md", "the tests", "all tests");
    project.run(&[]).expect(0, &["ask/tests", "page/tests"]);
    project.edit("prompts/frame.md", "Look at", "See");
    project.run(&[]).expect(0, &["ask/code", "page/code"]);
    project.edit("templates/en/code.md", "Code", "The code");
    project.run(&[]).expect(0, &["page/code"]);
    // A parameter that only one of them mentions, files that nobody picks, and one name for another of the same text.
    project.edit("milepost.toml", "kind", "fair");
    project.run(&[]).expect(0, &["ask/tests", "page/tests"]);
    project.edit("prompts/other.md", "another", "no");
    project.write("prompts/third.md", "Third");
    project.run(&[]).expect(0, &[]);
    project.edit("criteria.toml", "\"tests.md\"", "\"third.md\"");
    project.run(&[]).expect(0, &["ask/tests", "page/tests"]);
    assert_eq!(project.read("workspace/outputs/tests.md"), "Tests: Third");
}

#[test]
fn a_template_that_is_not_there_fails_its_batch() {
    let project = criteria();
    project.edit("criteria.toml", "\"tests.md\"", "\"test.md\"");
    project.edit(
        "stages/1_ask.toml",
        "[outputs]",
        "[policy]\non_failure = \"continue\"\n\n[outputs]",
    );
    project.run(&[]).expect(3, &["ask/code"]).says(
        "`prompt`: `prompts/{{ criterion.prompt }}` renders to `prompts/test.md`, which the project does not have; \
         available: `prompts/code.md`, `prompts/frame.md`, `prompts/tests.md`",
    );
    // Nor is one that is outside, or made for something else.
    project.edit("criteria.toml", "\"test.md\"", "\"../criteria.toml\"");
    project
        .run(&[])
        .expect(3, &[])
        .says("which the project does not have");
    project.edit("criteria.toml", "\"../criteria.toml\"", "\"other.md\"");
    project
        .run(&[])
        .expect(3, &[])
        .says("prompts/other.md:1:22: `nothing` is not a name of this stage");
    project.edit("criteria.toml", "\"other.md\"", "\"tests.md\"");
    project
        .run(&[])
        .expect(0, &["ask/tests", "page/code", "page/tests"]);
}
