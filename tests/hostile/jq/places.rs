//! Every place where a program sees values of a file has the same limits.

use super::{fails, stage};
use crate::hostile::readers::{wait_for, workers_of};
use crate::support::Project;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

const HUGE: u64 = 1_000_000_000_000;

/// A project that runs a stage for each of three files with rows. The number in the rows of the second is huge.
fn project(rest: &str, output: &str) -> Project {
    let stage = stage(rest, output);
    let file = |n: u64| {
        let rows: Vec<_> = (0..3).map(|id| json!({"id": id, "n": n})).collect();
        json!({"n": n, "rows": rows}).to_string()
    };
    Project::new(&[
        (
            "milepost.toml",
            "name = \"places\"\n[agents.plain]\njq = '{n: .data.n}'\n[agents.grower]\njq = '{n: ([range(.data.n)] | length)}'\n",
        ),
        ("stages/1_filter.toml", &stage),
        ("prompts/ask.md", "How many?\n"),
        (
            "templates/rows.xlsx.toml",
            "[[sheet]]\nname = 'Rows'\nin = 'data'\nstream = '.rows'\ncolumns = [['Id', '.id'], ['Bars', '\"x\" * .n']]\n",
        ),
        (
            "templates/sheet.xlsx.toml",
            "[[sheet]]\nname = 'Rows'\nrows = '[range(.data.n)] | [[length]]'\n",
        ),
        ("workspace/inputs/ann.json", &file(3)),
        ("workspace/inputs/bo.json", &file(HUGE)),
        ("workspace/inputs/cy.json", &file(4)),
    ])
}

const DATA: &str = "[inputs]\ndata = \"{{ item.path }}\"\n";

#[test]
fn programs_for_records_and_answers_fail_their_batch_only() {
    let limits = &["MEMORY", "CRASH"];
    for (step, output) in [
        (
            "jq = '[inputs | \"x\" * .n | length] | add'\nstream = \".data.rows[]\"",
            ".json",
        ),
        (
            "jq = 'def f: if . > 0 then (. - 1 | f) + 1 else 0 end; [inputs | .n | f]'\nstream = \".data\"",
            ".json",
        ),
        ("merge = \".data.rows[]\"\nkey = '\"x\" * .n'", ".json"),
        (
            "split = \".data.rows[]\"\nsize = 2\nquestion = '{of: [range(.n)]}'",
            "/batch_*.json",
        ),
        (
            "agent = \"plain\"\nprompt = \"prompts/ask.md\"\nresult = '{bars: (\"x\" * .n)}'",
            ".json",
        ),
        ("agent = \"grower\"\nprompt = \"prompts/ask.md\"", ".json"),
        ("xlsx = \"templates/rows.xlsx.toml\"", ".xlsx"),
        ("xlsx = \"templates/sheet.xlsx.toml\"", ".xlsx"),
    ] {
        let project = project(&format!("{DATA}[step]\n{step}"), output);
        let ran = project.run_unplanned(&["-j", "2"]);
        let failed: Vec<_> = ran
            .data("batch_failed")
            .map(|data| (data["batch"].as_str(), data["outcome"]["code"].as_str()))
            .collect();
        let [(Some("bo"), Some(code))] = failed.as_slice() else {
            panic!("{step}: {failed:?}\n{}", ran.output);
        };
        assert!(limits.contains(code), "{step}: {code}: {}", ran.output);
        assert_eq!(ran.code, 3, "{step}: {}", ran.output);
        let output = output.replace('*', "1");
        for (name, is_made) in [("ann", true), ("bo", false), ("cy", true)] {
            let made = format!("workspace/intermediate/{name}{output}");
            assert_eq!(project.exists(&made), is_made, "{step}: {made}");
        }
    }
}

#[test]
fn a_program_that_selects_inputs_fails_its_batch_only() {
    let select = "[inputs]\ndata = { from = \"{{ item.path }}\", base = \"inputs\", select = '(\"x\" * .n | \"cy.json\")' }\n[step]\njq = '.data.n'";
    fails(&project(select, ".json"), &["MEMORY", "PARSE"]);
}

#[test]
fn a_program_that_selects_batches_ends_no_run_silently() {
    let deep = "def f: if . > 0 then (. - 1 | f) + 1 else 0 end";
    for (select, why) in [
        (".[] | \"x\" * .n", "takes more than 32 MiB of memory"),
        (&*format!("{deep}; .[].n | f"), "crashed"),
    ] {
        let stage = format!(
            "[each.row]\nfrom = \"inputs/rows.json\"\nselect = '{select}'\n[step]\njq = '.row'\n[outputs]\nout = {{ path = \"outputs/{{{{ row }}}}.json\", schema = false }}\n[limits]\nmemory = \"32 MiB\"\n"
        );
        let project = Project::new(&[
            ("milepost.toml", "name = \"x\"\n"),
            ("stages/1_each.toml", &stage),
            ("workspace/inputs/rows.json", r#"[{"n": 1000000000000}]"#),
        ]);
        for command in ["plan", "run"] {
            let (code, said) = project.milepost(&[command]);
            assert_eq!(code, 1, "{said}");
            assert!(said.contains("[each.row]") && said.contains(why), "{said}");
        }
    }
}

#[test]
fn the_memory_of_a_stage_holds_for_its_checks() {
    let step = "[step]\njq = '.data'\n";
    let grows = "[range(([.data.n, 3000000] | min))] | length > 0";
    for part in [
        format!("{step}[[check]]\ntest = '{grows}'\nerror = \"WRONG\""),
        format!("{step}[[require]]\ntest = '{grows}'\nerror = \"WRONG\""),
    ] {
        let ran = fails(&project(&format!("{DATA}{part}"), ".json"), &["MEMORY"]);
        ran.says("takes more than 32 MiB of memory");
    }
}

#[test]
fn an_interrupt_ends_a_check_that_never_ends() {
    let check = format!(
        "{DATA}[step]\njq = '.data'\n[[check]]\ntest = '[.data.n | until(. < 0; .)] | length > 0'\nerror = \"WRONG\""
    );
    let project = project(&check, ".json");
    let mut child = project.spawn(&["run"]);
    let workers = wait_for(|| Some(workers_of(child.id())).filter(|found| !found.is_empty()));
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_for(|| {
        let is_gone = workers.iter().all(|pid| !crate::support::is_alive(*pid));
        is_gone.then_some(())
    });
}

/// A program without recursion makes a power of what it is given.
#[test]
fn a_small_file_whose_combinations_are_many_fails_its_batch_only() {
    let step = format!(
        "{DATA}[step]\njq = '.data.list as $all | [$all[] as $a | $all[] as $b | $all[] | [$a, $b, .]] | length'"
    );
    let project = project(&step, ".json");
    for (name, count) in [("ann", 2), ("bo", 4000), ("cy", 3)] {
        let list: Vec<u32> = (0..count).collect();
        project.write(
            &format!("workspace/inputs/{name}.json"),
            json!({"list": list}).to_string(),
        );
    }
    fails(&project, &["MEMORY"]);
    assert_eq!(project.json("workspace/intermediate/cy.json"), json!(27));
}

/// jaq reads numbers as JSON, and lists within lists by recursion.
#[test]
fn a_text_of_brackets_is_no_number() {
    for step in [
        "jq = '.data.rows[0].n | tonumber'",
        "merge = \".data.rows[]\"\nkey = '.n | tonumber'",
        "jq = '[inputs | .n | tonumber] | first'\nstream = \".data.rows[]\"",
    ] {
        let project = project(&format!("{DATA}[step]\n{step}"), ".json");
        for (name, text) in [
            ("ann", "2".to_owned()),
            ("bo", "[".repeat(200_000)),
            ("cy", "3".to_owned()),
        ] {
            project.write(
                &format!("workspace/inputs/{name}.json"),
                json!({"rows": [{"n": text}]}).to_string(),
            );
        }
        let ran = fails(&project, &["PARSE", "INPUT"]);
        ran.says("the text is nested more than 128 deep");
    }
}

/// A text that occurs in a list many times is held once, and written many times.
#[test]
fn a_text_that_is_repeated_by_reference_fails_its_batch_only() {
    let step = format!(
        "{DATA}[step]\njq = '.data as $d | [$d.list[] | $d.text] | [$d.list[] as $i | .] | {{made: (tojson | length)}}'"
    );
    let project = project(&step, ".json");
    for (name, count) in [("ann", 2), ("bo", 2000), ("cy", 3)] {
        let list: Vec<u32> = (0..count).collect();
        project.write(
            &format!("workspace/inputs/{name}.json"),
            json!({"list": list, "text": "x".repeat(1000)}).to_string(),
        );
    }
    fails(&project, &["MEMORY"]);
}
