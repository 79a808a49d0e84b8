//! Templates that each batch picks by its own path.

use super::house::House;

/// Each of two criteria has its own prompt, asked of an agent that says what it was asked, and its own page.
fn criteria() -> House {
    House::new(&[
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
    let house = criteria();
    let all = ["ask/code", "ask/tests", "page/code", "page/tests"];
    house.run(&[]).expect(0, &all);
    let page = |name: &str| house.read(&format!("workspace/outputs/{name}.md"));
    assert_eq!(page("code"), "Code: Is the code good? Look at code.");
    assert_eq!(page("tests"), "Tests: Be kind to the tests.");
    house.run(&[]).expect(0, &[]);
}

#[test]
fn what_a_template_holds_concerns_the_batches_that_picked_it() {
    let house = criteria();
    house.run(&[]);
    house.edit("prompts/tests.md", "the tests", "all tests");
    house.run(&[]).expect(0, &["ask/tests", "page/tests"]);
    house.edit("prompts/frame.md", "Look at", "See");
    house.run(&[]).expect(0, &["ask/code", "page/code"]);
    house.edit("templates/en/code.md", "Code", "The code");
    house.run(&[]).expect(0, &["page/code"]);
    // A parameter that only one of them mentions, files that nobody picks, and one name for another of the same text.
    house.edit("milepost.toml", "kind", "fair");
    house.run(&[]).expect(0, &["ask/tests", "page/tests"]);
    house.edit("prompts/other.md", "another", "no");
    house.write("prompts/third.md", "Third");
    house.run(&[]).expect(0, &[]);
    house.edit("criteria.toml", "\"tests.md\"", "\"third.md\"");
    house.run(&[]).expect(0, &["ask/tests", "page/tests"]);
    assert_eq!(house.read("workspace/outputs/tests.md"), "Tests: Third");
}

#[test]
fn a_template_that_is_not_there_fails_its_batch() {
    let house = criteria();
    house.edit("criteria.toml", "\"tests.md\"", "\"test.md\"");
    house.edit(
        "stages/1_ask.toml",
        "[outputs]",
        "[policy]\non_failure = \"continue\"\n\n[outputs]",
    );
    house.run(&[]).expect(3, &["ask/code"]).says(
        "`prompt`: `prompts/{{ criterion.prompt }}` gives `prompts/test.md`, which the project has not: \
         there is `prompts/code.md`, `prompts/frame.md`, `prompts/tests.md`",
    );
    // Nor is one that is outside, or made for something else.
    house.edit("criteria.toml", "\"test.md\"", "\"../criteria.toml\"");
    house
        .run(&[])
        .expect(3, &[])
        .says("which the project has not");
    house.edit("criteria.toml", "\"../criteria.toml\"", "\"other.md\"");
    house
        .run(&[])
        .expect(3, &[])
        .says("prompts/other.md:1:22: `nothing` is not a name of this stage");
    house.edit("criteria.toml", "\"other.md\"", "\"tests.md\"");
    house
        .run(&[])
        .expect(0, &["ask/tests", "page/code", "page/tests"]);
}
