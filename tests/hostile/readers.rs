//! Hostile documents and models end in a named outcome, and hinder no other batch.

use crate::hostile::files::hostile_file;
use crate::mcp::client::{Client, well};
use crate::mutated::structures;
use crate::support::{Project, RunResult, is_alive};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use milepost_formats::pdf::{PdfInfo, markdown_to_pdf};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest that a run over three small files may take in a debug build beside other tests.
const PATIENCE: Duration = Duration::from_mins(2);

fn pdf(text: &str) -> Vec<u8> {
    markdown_to_pdf(text, &PdfInfo::default()).unwrap()
}

/// A project that reads every file of `inputs` by this kind of step, and continues after a failure.
fn reading(kind: &str, more: &str) -> Project {
    let files = if kind == "ifc" { "ifc*" } else { "pdf" };
    let stage = format!(
        r#"
[each.item]
path = "inputs/*.{files}"

[inputs]
file = "{{{{ item.path }}}}"

[step]
{kind} = "file"
{engines}

[outputs]
made = {{ path = "intermediate/{{{{ item.stem }}}}.json", schema = false }}

[policy]
on_failure = "continue"
{more}
"#,
        engines = if kind == "ifc" {
            ""
        } else {
            "engines = [\"builtin\"]"
        },
    );
    Project::new(&[
        ("milepost.toml", "name = \"reading\"\n"),
        ("stages/1_read.toml", &stage),
    ])
}

/// Two files that can be read, and one with these bytes.
fn with_two_good(kind: &str, more: &str, bytes: &[u8]) -> Project {
    let project = reading(kind, more);
    for name in ["ann", "cy"] {
        let (ending, good) = match kind {
            "ifc" => ("ifc", include_bytes!("../crash/six_elements.ifc").to_vec()),
            _ => ("pdf", pdf(&format!("# Report of {name}\n\nAll is well.\n"))),
        };
        project.write(&format!("workspace/inputs/{name}.{ending}"), good);
    }
    let ending = if kind == "ifc" { "ifc" } else { "pdf" };
    project.write(&format!("workspace/inputs/bo.{ending}"), bytes);
    project
}

/// The outcome of the failed batch, if one failed.
fn failure(ran: &RunResult) -> Option<String> {
    let mut failed = ran.data("batch_failed");
    let found = failed.next().map(|data| {
        assert_eq!(data["batch"], "bo", "{data:#}");
        data["outcome"]["code"].as_str().unwrap().to_owned()
    });
    assert!(failed.next().is_none());
    found
}

/// Runs; the two good files must be read whatever the third one does.
#[track_caller]
fn run(project: &Project) -> Option<String> {
    let started = Instant::now();
    let ran = project.run_unplanned(&["-j", "2"]);
    assert!(started.elapsed() < PATIENCE, "{}", ran.output);
    let failed = failure(&ran);
    assert_eq!(
        ran.code,
        if failed.is_some() { 3 } else { 0 },
        "{}",
        ran.output
    );
    for name in ["ann", "cy"] {
        assert!(
            project.exists(&format!("workspace/intermediate/{name}.json")),
            "{name}: {}",
            ran.output
        );
    }
    assert_eq!(
        project.exists("workspace/intermediate/bo.json"),
        failed.is_none()
    );
    if let Some(code) = &failed {
        ran.says("read/bo").says(code);
    }
    failed
}

#[test]
fn one_hostile_file_of_three_fails_alone() {
    for (kind, name) in [
        ("pdf_text", "firstself.pdf"),
        ("pdf_text", "nextself.pdf"),
        ("pdf_text", "namescycle.pdf"),
        ("pdf_text", "kidcount.pdf"),
        ("pdf_text", "deepq60.pdf"),
        ("ifc", "mat30.ifc"),
        ("ifc", "rel60000.ifc"),
    ] {
        let bytes = hostile_file(name);
        let limits = "[limits]\nmemory = \"256 MiB\"\ntimeout = \"20s\"";
        let project = with_two_good(kind, limits, &bytes);
        let known = ["ENGINES", "INPUT", "MEMORY", "TIMEOUT", "CRASH"];
        let check = |failed: Option<String>| {
            if let Some(code) = failed {
                assert!(known.contains(&code.as_str()), "{name}: {code}");
            }
        };
        check(run(&project));
    }
}

/// An object stream of 40 KB that inflates to 40 MB, which the parser holds at once.
#[test]
fn an_object_stream_that_inflates_without_end_meets_the_limit_of_memory() {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..40 {
        zlib.write_all(&zeros).unwrap();
    }
    let content = zlib.finish().unwrap();
    let length = content.len();
    let entries = "/Type/ObjStm/N 1/First 4/Filter/FlateDecode";
    let head = format!("%PDF-1.7\n7 0 obj\n<<{entries}/Length {length}>>\nstream\n");
    let objects = structures::pdf(&structures::page("", ""));
    let tail = String::from_utf8(objects).unwrap();
    let tail = format!("\nendstream\nendobj\n{}", tail.replace("xref\n", "no\n"));
    let bytes = [head.as_bytes(), &content, tail.as_bytes()].concat();
    let project = with_two_good("pdf_text", "[limits]\nmemory = \"16 MiB\"", &bytes);
    assert_eq!(run(&project).as_deref(), Some("MEMORY"));
}

/// A width of the last code of a font takes no more memory than one of the first.
#[test]
fn a_font_takes_memory_for_the_widths_that_it_lists() {
    let numbers = 100..1_000;
    let fonts: String = numbers
        .clone()
        .map(|at| format!("/G{at} {at} 0 R"))
        .collect();
    let mut content: String = numbers.clone().map(|at| format!("/G{at} 9 Tf ")).collect();
    content.push_str("/F1 12 Tf 72 700 Td (All is well in this document.) Tj");
    let mut objects = structures::page("", "");
    objects[2].1 = format!(
        "<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R{fonts}>>>>>>"
    );
    objects[3].1 = structures::stream("", &format!("BT {content} ET"));
    let inner = "<</Type/Font/Subtype/CIDFontType2/W[65535[500]]>>";
    objects.push((6, inner.to_owned()));
    let font = "<</Type/Font/BaseFont/A/Subtype/Type0/DescendantFonts[6 0 R]>>";
    objects.extend(numbers.map(|at| (at, font.to_owned())));
    let limits = "[limits]\nmemory = \"100 MiB\"";
    let project = with_two_good("pdf_text", limits, &structures::pdf(&objects));
    assert_eq!(run(&project), None);
}

/// An attack of our own: a text of a megabyte in the header of a model.
#[test]
fn a_long_name_in_a_model_becomes_no_long_message() {
    let sample = include_str!("../crash/six_elements.ifc");
    let long = sample.replacen("'IFC4'", &format!("'{}'", "X".repeat(1 << 20)), 1);
    assert!(long.len() > 1 << 20);
    let project = with_two_good("ifc", "", long.as_bytes());
    assert_eq!(run(&project).as_deref(), Some("INPUT"));
    let journal = project.read("workspace/.milepost/journal/000001.jsonl");
    assert!(journal.len() < 100_000, "{}", journal.len());
    let (_, said) = project.milepost(&["why", "read/bo"]);
    assert!(said.len() < 20_000 && said.contains("X […] X"), "{said}");
}

/// A model with so many walls.
fn walls(count: usize) -> String {
    let mut records = String::new();
    for number in 0..count {
        records.push_str(&format!(
            "#{}=IFCWALL('{number:022}',$,'Wall {number}',$,$,$,$,$,$);\n",
            number + 10
        ));
    }
    let sample = include_str!("../crash/six_elements.ifc");
    let (head, _) = sample.split_once("DATA;\n").unwrap();
    format!(
        "{head}DATA;\n#1=IFCPROJECT('{:022}',$,'P',$,$,$,$,$,$);\n{records}ENDSEC;\nEND-ISO-10303-21;\n",
        9_999_999
    )
}

#[test]
fn memory_time_and_kind_of_end_are_named() {
    let large = walls(60_000);
    let project = with_two_good("ifc", "[limits]\nmemory = \"1 MiB\"", large.as_bytes());
    assert_eq!(run(&project).as_deref(), Some("MEMORY"));
    let (_, said) = project.milepost(&["why", "read/bo"]);
    let message = "`ifc` of `inputs/bo.ifc` takes more than 1 MiB of memory: check what it reads, or raise `memory` under [limits] of the stage";
    assert!(said.contains(message), "{said}");
    // The limit is no part of what the batch is made from.
    project.edit("stages/1_read.toml", "1 MiB", "1 GiB");
    let ran = project.run_unplanned(&[]);
    ran.expect(0, &["read/bo"]);

    let project = with_two_good("ifc", "[errors]\ntimeout = \"TOO_SLOW\"", large.as_bytes());
    project.edit(
        "stages/1_read.toml",
        "ifc = \"file\"",
        "ifc = \"file\"\ntimeout = \"1ms\"",
    );
    let ran = project.run_unplanned(&[]);
    let codes: Vec<_> = ran
        .data("batch_failed")
        .filter(|data| data["batch"] == "bo")
        .map(|data| data["outcome"]["code"].clone())
        .collect();
    assert_eq!(codes, ["TOO_SLOW"], "{}", ran.output);

    let project = reading("ifc", "[limits]\nmemory = \"2 GB\"");
    project.edit("stages/1_read.toml", "2 GB", "2");
    let (code, said) = project.milepost(&["plan"]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("`2` is not a size: write an integer of at least 1 and a unit, such as \"512 MiB\" or \"2 GiB\""), "{said}");
}

/// The workers that a process started.
pub(super) fn workers_of(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
    let lists = tasks.into_iter().flatten().flatten().map(|task| {
        let list = std::fs::read_to_string(task.path().join("children"));
        list.unwrap_or_default()
    });
    let children: String = lists.collect();
    children
        .split_ascii_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

/// Returns true while a process maps this file.
fn reads(process: u32, file: &str) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps"));
    maps.unwrap_or_default().contains(file)
}

/// Returns the first value that is there, within the patience of a test.
pub(super) fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_worker_has_limits_and_no_environment() {
    let mut project = with_two_good("ifc", "", walls(150_000).as_bytes());
    project.env("A_KEY", "of-the-program");
    let mut child = project.spawn(&["run"]);
    let worker = wait_for(|| {
        let mut workers = workers_of(child.id()).into_iter();
        workers.find(|pid| reads(*pid, "inputs/bo.ifc"))
    });
    let of = |name: &str| std::fs::read_to_string(format!("/proc/{worker}/{name}")).unwrap();
    let (limits, environment, command) = (of("limits"), of("environ"), of("cmdline"));
    let folder = std::fs::read_link(format!("/proc/{worker}/cwd")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let soft = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name));
        let value = line.unwrap().split_ascii_whitespace().next();
        value.and_then(|value| value.parse::<u64>().ok())
    };
    assert_eq!(soft("Max open files"), Some(64));
    assert_eq!(soft("Max core file size"), Some(0));
    let data = soft("Max data size").unwrap();
    assert!((4 << 30..5 << 30).contains(&data), "{data}");
    assert_eq!(
        (environment.as_str(), command.as_str()),
        ("", "milepost\0worker\0")
    );
    assert_eq!(folder, Path::new("/"));
}

#[test]
fn a_worker_that_is_killed_fails_its_batch_only() {
    let project = with_two_good("ifc", "", walls(150_000).as_bytes());
    let mut child = project.spawn(&["run"]);
    let victim = wait_for(|| {
        let mut workers = workers_of(child.id()).into_iter();
        workers.find(|pid| reads(*pid, "inputs/bo.ifc"))
    });
    let pid = rustix::process::Pid::from_raw(victim as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let code = child.wait().unwrap().code();
    let records = project.records();
    let failed: Vec<_> = records
        .iter()
        .filter(|record| record["kind"] == "batch_failed")
        .map(|record| {
            let data = &record["data"];
            (
                data["batch"].clone(),
                data["outcome"]["code"].clone(),
                data["outcome"]["message"].clone(),
            )
        })
        .collect();
    let message = "`ifc` of `inputs/bo.ifc` crashed: its process was ended by SIGKILL, perhaps because the machine has no memory left";
    assert_eq!(failed, [(json!("bo"), json!("CRASH"), json!(message))]);
    assert_eq!(code, Some(3));
    assert!(project.exists("workspace/intermediate/ann.json"));
    assert!(project.exists("workspace/intermediate/cy.json"));
    assert!(!is_alive(victim));
}

#[test]
fn a_model_that_is_cut_while_it_is_read_ends_with_a_clear_error() {
    let project = with_two_good("ifc", "", walls(150_000).as_bytes());
    let mut child = project.spawn(&["run"]);
    wait_for(|| {
        let mut workers = workers_of(child.id()).into_iter();
        workers.find(|pid| reads(*pid, "inputs/bo.ifc"))
    });
    let model = std::fs::File::options()
        .write(true)
        .open(project.at("workspace/inputs/bo.ifc"))
        .unwrap();
    model.set_len(5000).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let records = project.records();
    let failed: Vec<_> = records
        .iter()
        .filter(|record| record["kind"] == "batch_failed")
        .map(|record| &record["data"]["outcome"]["message"])
        .collect();
    let message = "`ifc` of `inputs/bo.ifc`: the file was truncated while it was being read: run again after the program that writes it has finished";
    assert_eq!(failed, [message]);
    assert!(project.exists("workspace/intermediate/ann.json"));
}

#[test]
fn no_worker_outlives_the_program() {
    let project = with_two_good("ifc", "", walls(150_000).as_bytes());
    for signal in [rustix::process::Signal::KILL, rustix::process::Signal::INT] {
        let mut child = project.spawn(&["run", "--force"]);
        let workers = wait_for(|| Some(workers_of(child.id())).filter(|found| !found.is_empty()));
        let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        child.wait().unwrap();
        wait_for(|| workers.iter().all(|pid| !is_alive(*pid)).then_some(()));
    }
}

#[test]
fn a_hostile_workspace_hinders_no_other_and_a_tool_call_ends_no_server() {
    let bytes = hostile_file("firstself.pdf");
    let project = with_two_good("pdf_text", "", &bytes);
    for name in ["ann", "bo", "cy"] {
        let from = project.at(&format!("workspace/inputs/{name}.pdf"));
        project.write(
            &format!("workspaces/{name}/inputs/{name}.pdf"),
            std::fs::read(from).unwrap(),
        );
    }
    project.write(
        "all.json",
        r#"[{"workspace": "ann"}, {"workspace": "bo"}, {"workspace": "cy"}]"#,
    );
    let (code, said) = project.milepost(&["run", "--workspaces", "all.json"]);
    assert!([0, 3].contains(&code), "{said}");
    for name in ["ann", "cy"] {
        let made = format!("workspaces/{name}/intermediate/{name}.json");
        assert!(project.exists(&made), "{said}");
    }

    let mut client = Client::of(&project);
    let call = json!({"name": "run", "arguments": {}});
    let ran = client.ask("tools/call", call);
    assert!(ran["result"].is_object(), "{ran:#}");
    let status = client.ask("tools/call", json!({"name": "status", "arguments": {}}));
    assert!(status["result"].is_object(), "{status:#}");
    assert_eq!(client.leave(), well());
}
