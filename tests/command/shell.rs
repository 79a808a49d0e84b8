//! Values in scripts for a shell, as the shell of this machine reads them.

use milepost_core::expr::shell::{Misplaced, check, script, script_of};
use milepost_core::expr::template::Template;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::process::Command;

fn wrong(source: &str) -> String {
    let wrong = check(source).expect_err(source);
    format!("{} | {}", &source[wrong.range], wrong.message)
}

fn scripted(source: &str, scope: &Value) -> Result<String, Misplaced> {
    let parts = Template::compile("t", source)
        .unwrap()
        .render_parts(scope)
        .unwrap();
    script(&parts, &mut |_| Ok("/files/list".to_owned()))
}

/// What the words of `printf '[%s]'` are, by this machine's shell.
fn printed(source: &str, scope: &Value) -> String {
    let script = scripted(source, scope).unwrap();
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn values_are_words() {
    let scope = json!({"x": "a b", "list": ["1 2", "", "-n"], "none": null, "n": 2, "empty": "", "o": {"k": "'"}});
    for (source, words) in [
        ("printf '[%s]' {{ x }}", "[a b]"),
        ("printf '[%s]' {{ list }} end", "[1 2][][-n][end]"),
        ("printf '[%s]' {{ none }} end", "[end]"),
        (
            "printf '[%s]' '{{ none }}' \"{{ none }}\" --x={{ none }}",
            "[][][--x=]",
        ),
        (
            "printf '[%s]' {{ empty }} {{ n }} {{ o }}",
            r#"[][2][{"k":"'"}]"#,
        ),
        (
            "printf '[%s]' pre{{ x }}post '{{ x }}' \"{{ x }}\" 'it'{{ x }}\"s\"",
            "[prea bpost][a b][a b][ita bs]",
        ),
        ("y={{ x }}; printf '[%s]' \"<$y>\"", "[<a b>]"),
        (
            "printf '[%s]' \"$(printf %s {{ x }} | tr a \"A\")\" $(echo {{ n }})",
            "[A b][2]",
        ),
        ("# it's\nprintf '[%s]' {{ x }} # don't", "[a b]"),
        (
            "cat <<'END' && printf '[%s]' {{ x }}\nit's\nEND\nprintf '[%s]' {{ n }}",
            "it's\n[a b][2]",
        ),
        (
            "cat <<-END | sed s/x/{{ n }}/\n\tx\n\tEND\nprintf '[%s]' {{ n }}",
            "2\n[2]",
        ),
        (
            "if [ {{ n }} -eq 2 ]; then (printf '[%s]' {{ x }}); fi",
            "[a b]",
        ),
        (
            "{% for y in list %}printf '[%s]' {{ y }};{% endfor %}",
            "[1 2][][-n]",
        ),
        (
            "{% set y %}<{{ x }}>{% endset %}printf '[%s]' {{ y }}",
            "[<a b>]",
        ),
        ("printf '[%s]' {{ \"}}'\" }} {{ x -}} ;", "[}}'][a b]"),
        ("printf '[%s]' {{ list | as_file }}", "[/files/list]"),
        (
            "printf '[%s]' \\' \\\" \\\\ {{ x }} \"\\\"'\" {{ n }}",
            "['][\"][\\][a b][\"'][2]",
        ),
        ("printf '[%s]' $((1 + 2)) ${y:-d} {{ n }}", "[3][d][2]"),
    ] {
        check(source).expect(source);
        assert_eq!(printed(source, &scope), words, "{source}");
    }
}

#[test]
fn what_cannot_be_a_word_is_refused_at_its_place() {
    for (source, place) in [
        ("echo 'a {{ x }}'", "inside a quoted text"),
        ("echo \"a {{ x }}\"", "inside a quoted text"),
        ("echo \"{{ x }} a\"", "inside a quoted text"),
        ("sh -c 'cp {{ x }}'", "inside a quoted text"),
        ("echo `cat {{ x }}`", "inside backticks (write `$( )`)"),
        ("echo \"`cat {{ x }}`\"", "inside backticks (write `$( )`)"),
        ("echo ${y:-{{ x }}}", "inside `${ }`"),
        ("echo $((1 + {{ x }}))", "inside an arithmetic expression"),
        ("((i = {{ x }}))", "inside an arithmetic expression"),
        ("echo # don't {{ x }}", "inside a comment"),
        ("cat <<END\n{{ x }}\nEND", "inside a here-document"),
        (
            "cat << 'END' > y\n it's {{ x }}\nEND",
            "inside a here-document",
        ),
        ("cat <<{{ x }}", "where the name of a here-document ends"),
        ("echo \\{{ x }}", "behind a backslash"),
        ("echo \\ {{- x }}", "behind a backslash"),
        ("echo $", ""),
        ("echo ${{ x }}", "behind a `$`"),
        (
            "echo $'\\'' {{ x }}",
            "behind a part that shells read differently",
        ),
        (
            "echo \"$(case a in a) echo '\"'{{ x }};; esac)\"",
            "behind a part that shells read differently",
        ),
        ("echo \"$(echo \"a {{ x }}\")\"", "inside a quoted text"),
        ("echo \"\\\" {{ x }}\"", "inside a quoted text"),
        ("echo {# ' #} 'a' \"{{ '\"' }} \"", "inside a quoted text"),
    ] {
        if place.is_empty() {
            check(source).expect(source);
            continue;
        }
        let said = wrong(source);
        assert!(said.starts_with("{{"), "{source}: {said}");
        let expected = format!("`{{{{ }}}}` is {place}, where a value cannot become a quoted word");
        assert!(said.ends_with(&expected), "{source}: {said}");
    }
}

#[test]
fn a_list_is_several_words_and_never_a_part_of_one() {
    let scope = json!({"list": ["a", "b"]});
    for source in [
        "echo x{{ list }}",
        "y={{ list }}",
        "cat > {{ list }}",
        "cat >{{ list }}",
        "echo '{{ list }}'",
        "{{ list }}{{ list }}",
    ] {
        let said = scripted(source, &scope).unwrap_err().message;
        assert!(
            said.contains("is a list where one word is expected"),
            "{source}: {said}"
        );
    }
    for source in [
        "echo {{ list }};",
        "({{ list }})",
        "cat {{ list }}|cat",
        "echo\n{{ list }}\n",
        "cat > x {{ list }}",
    ] {
        scripted(source, &scope).expect(source);
    }
}

#[test]
fn a_branch_is_read_as_it_was_rendered() {
    // What stands before a value depends on another value: only what was rendered tells.
    let source = "{% if q %}echo 'a {% else %}echo {% endif %}{{ x }}{% if q %}'{% endif %}";
    assert!(scripted(source, &json!({"q": true, "x": "$(id)"})).is_err());
    assert_eq!(
        printed(
            "{% if q %}'{% endif %}printf '[%s]' {{ x }}",
            &json!({"q": false, "x": "$(id)"})
        ),
        "[$(id)]"
    );
}

#[test]
fn a_list_may_give_a_shell_its_script() {
    for (arguments, at) in [
        (&["sh", "-c", "x", "y"][..], Some(2)),
        (&["/bin/bash", "-euo", "pipefail", "-c", "x"], Some(4)),
        (&["bash", "-ec", "x"], Some(2)),
        (&["sh", "x", "-c"], None),
        (&["python3", "-c", "x"], None),
        (&["sh"], None),
        (&[], None),
    ] {
        assert_eq!(script_of(arguments.iter().copied()), at, "{arguments:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_value_is_anything_but_a_word(values in proptest::collection::vec("[^\0]{0,12}|[-'\"$`\\\\();&|<>*?~#!\n\t {}\\[\\]a=]{0,10}", 0..4)) {
        let scope = json!({"list": values, "x": values.first().cloned().unwrap_or_default()});
        let source = "y={{ x }}; printf '[%s]' a{{ x }}b {{ list }} \"$(printf %s. {{ x }})\" \"$y\" '{{ x }}'";
        let x = scope["x"].as_str().unwrap();
        let list: String = values.iter().map(|value| format!("[{value}]")).collect();
        prop_assert_eq!(printed(source, &scope), format!("[a{x}b]{list}[{x}.][{x}][{x}]"));
    }
}
