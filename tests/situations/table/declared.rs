//! A command, a prompt, a rule, a schema changed: what depends on it runs again or is validated again, and nothing else.

use super::super::house::House;
use super::super::letters::{PAGE, SCHEMA};
use super::super::packed::{ELEMENTS, packed};
use super::{as_made_anew, both};

const GREETED: [&str; 4] = [
    "greet/person_1",
    "greet/person_10",
    "greet/person_2",
    "join",
];
const CLEANED: [&str; 3] = ["clean/person_1", "clean/person_10", "clean/person_2"];
const CLASSIFIED: [&str; 3] = ["classify/batch_1", "classify/batch_2", "classify/batch_3"];

#[test]
fn command_changed() {
    both(|house| {
        house.edit(
            "stages/2_greet.toml",
            "{{ params.greeting }}",
            "{{ params.greeting }}est",
        );
        house.run(&[]).expect(0, &GREETED);
        let page = PAGE.replace("Dear", "Dearest");
        assert_eq!(house.read("workspace/outputs/page.md"), page);
        as_made_anew(house);
    });
}

#[test]
fn script_of_a_command_changed() {
    both(|house| {
        house.edit("tools/greet.sh", "%s, %s", "%s: %s");
        house.run(&[]).expect(0, &GREETED);
        as_made_anew(house);
    });
}

#[test]
fn prompt_changed_that_a_program_reads() {
    let house = House::new(&[
        ("milepost.toml", "name = \"ask\"\n"),
        ("prompts/ask.md", "How many?\n"),
        (
            "stages/1_ask.toml",
            r#"
[each.item]
path = "inputs/*.txt"
[step]
command = ["sh", "-c", 'cat "$0" "$1" > "$2"', "project:prompts/ask.md", "{{ item.path }}", "{{ paths.said }}"]
[outputs]
said = "intermediate/said/{{ item.stem }}.txt"
"#,
        ),
        (
            "stages/2_count.toml",
            "[each.item]\npath = \"inputs/*.txt\"\n[step]\ncommand = [\"sh\", \"-c\", 'wc -c < \"$0\" > \"$1\"', \"{{ item.path }}\", \"{{ paths.n }}\"]\n\
             [outputs]\nn = \"intermediate/counted/{{ item.stem }}.txt\"\n",
        ),
        ("workspace/inputs/a.txt", "a\n"),
        ("workspace/inputs/b.txt", "b\n"),
    ]);
    house
        .run(&[])
        .expect(0, &["ask/a", "ask/b", "count/a", "count/b"]);
    house.write_with_mtime_kept("prompts/ask.md", "How much?\n");
    house.run(&[]).expect(0, &["ask/a", "ask/b"]);
    let said = house.read("workspace/intermediate/said/b.txt");
    assert_eq!(said, "How much?\nb\n");
    as_made_anew(&house);
}

#[test]
fn prompt_changed_that_the_agent_does_not_read() {
    let house = packed(&ELEMENTS);
    assert_eq!(house.run(&[]).code, 0);
    house.edit("prompts/batch-processor.md", "\n", "\nThink twice.\n");
    house.run(&[]).expect(0, &[]);
    as_made_anew(&house);
}

#[test]
fn rule_changed() {
    let house = packed(&ELEMENTS);
    assert_eq!(house.run(&[]).code, 0);
    let rules = house.read("rules/elements.toml");
    let rule = "[[rule]]\nname = \"rail\"\nifc_type = [\"IfcRailing\"]\nanswer = { element_type = \"other\" }\nconfidence = 0.3\n\n";
    house.write(
        "rules/elements.toml",
        rules.replacen("[[rule]]", &format!("{rule}[[rule]]"), 1),
    );
    let [a, b, c] = CLASSIFIED;
    house.run(&[]).expect(0, &[a, b, c, "generate"]);
    as_made_anew(&house);
}

#[test]
fn rule_changed_that_answers_the_same() {
    let house = packed(&ELEMENTS);
    assert_eq!(house.run(&[]).code, 0);
    let rules = house.read("rules/elements.toml");
    let rule = "[[rule]]\nname = \"never\"\nifc_type = [\"IfcNever\"]\nanswer = { element_type = \"other\" }\nconfidence = 0.3\n";
    house.write("rules/elements.toml", format!("{rules}\n{rule}"));
    house.run(&[]).expect(0, &CLASSIFIED);
    as_made_anew(&house);
}

#[test]
fn rule_commented() {
    let house = packed(&ELEMENTS);
    assert_eq!(house.run(&[]).code, 0);
    let rules = house.read("rules/elements.toml");
    house.write("rules/elements.toml", format!("# More to say.\n{rules}"));
    house.run(&[]).expect(0, &[]);
    as_made_anew(&house);
}

#[test]
fn schema_changed_and_everything_holds() {
    both(|house| {
        house.write("schemas/clean.schema.json", SCHEMA.replace("40", "30"));
        let before = house.contents();
        let ran = house.run(&[]);
        ran.expect(0, &[]);
        assert_eq!(ran.judged(), CLEANED);
        let mut after = house.contents();
        // The checkpoint names the schema, and the manifest the facts.
        for own in [
            "stage_1_complete.json",
            "clean_progress.json",
            "manifests/clean/page_0001.sha256",
        ] {
            after.insert(own.to_owned(), before[own]);
        }
        assert_eq!(after, before);
        as_made_anew(house);
    });
}

#[test]
fn schema_changed_and_one_does_not_hold() {
    both(|house| {
        house.write(
            "workspace/inputs/person_2.json",
            r#"{"id": 2, "name": "Bob"}"#,
        );
        assert_eq!(house.run(&[]).code, 0);
        house.write("schemas/clean.schema.json", SCHEMA.replace("40", "2"));
        let ran = house.run(&["-k"]);
        ran.expect(1, &["clean/person_1", "clean/person_2"])
            .says("/name");
        assert_eq!(ran.judged(), ["clean/person_10"]);
        house.write("schemas/clean.schema.json", SCHEMA.replace("40", "3"));
        house
            .run_unplanned(&[])
            .expect(0, &["clean/person_1", "clean/person_2"]);
        as_made_anew(house);
    });
}
