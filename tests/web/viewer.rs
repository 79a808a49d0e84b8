//! The viewer of files: what it shows of each kind, what it refuses, and that nothing of a file runs.

use super::server::Ui;
use crate::support::Project;

fn project() -> Project {
    let project = Project::new(&[
        ("milepost.toml", "name = \"files\"\n"),
        (
            "stages/1_copy.toml",
            r#"
[inputs]
a = "inputs/a.json"
all = "inputs/*"

[step]
command = ["sh", "-c", 'cp "$1" "$2"', "copy", "{{ paths.a }}", "{{ paths.copy }}"]

[outputs]
copy = { path = "outputs/copy.json", schema = "schemas/copy.schema.json" }
"#,
        ),
        (
            "schemas/copy.schema.json",
            r#"{"properties": {"elements": {"type": "array", "items": {"properties": {"volume": {"type": "number"}}}}}}"#,
        ),
        ("workspace/.env", "SECRET=1"),
        ("workspace/notes.txt", "not of the pipeline"),
    ]);
    project.write(
        "workspace/inputs/a.json",
        r#"{"elements": [{"id": "<script>alert(1)</script>", "volume": 1.5}]}"#,
    );
    let rows: String = (1..=450).map(|n| format!("{n};<b>{n}</b>\n")).collect();
    project.write("workspace/inputs/table.csv", format!("number;text\n{rows}"));
    project.write(
        "workspace/inputs/page.md",
        "# Title\n\n<script>alert(2)</script>\n\n[x](javascript:alert(3))\n",
    );
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(4)</script></svg>";
    project.write("workspace/inputs/picture.svg", svg);
    project.write("workspace/inputs/page.html", "<script>alert(5)</script>");
    project.write("workspace/inputs/raw.bin", [0_u8, 255, 0, 1]);
    project.write(
        "workspace/inputs/long.txt",
        "\u{1b}[31m0123456789".repeat(100_000),
    );
    let elements: Vec<String> = (0..10_000)
        .map(|n| format!("{{\"id\": {n}, \"text\": \"{}\"}}", "x".repeat(100)))
        .collect();
    let big = format!(
        "{{\"units\": {{}}, \"elements\": [{}]}}",
        elements.join(",")
    );
    project.write("workspace/inputs/big.json", big);
    project.run(&[]).expect(0, &["copy"]);
    project
}

fn shown(ui: &Ui, path: &str) -> String {
    let page = ui.get(&format!("file?path={path}"));
    assert_eq!(page.status, 200, "{path}: {}", page.body);
    let has_script = page.body.matches("<script").count() > 1;
    assert!(!has_script && !page.body.contains("<b>"), "{}", page.body);
    page.body
}

#[track_caller]
fn contains(body: &str, texts: &[&str]) {
    for text in texts {
        assert!(body.contains(text), "no {text:?} in {body}");
    }
}

#[test]
fn every_kind_of_file_is_shown_and_none_of_it_runs() {
    let project = project();
    // A person makes the output invalid.
    project.write(
        "workspace/outputs/copy.json",
        r#"{"elements": [{"id": "a", "volume": "big"}]}"#,
    );
    let ui = Ui::start(&project);
    let json = shown(&ui, "outputs/copy.json");
    contains(
        &json,
        &[
            "modified since it was recorded",
            "<code>/elements/0/volume</code> &quot;big&quot; is a string, a number was expected",
            "<th scope=\"col\">volume</th>",
            "big <span class=\"violation\">",
            "<div class=\"leaf\"><span class=\"key\">id</span> <span class=\"text\">a</span></div>",
        ],
    );
    contains(&shown(&ui, "inputs/a.json"), &["&lt;script&gt;alert(1)"]);
    let csv = shown(&ui, "inputs/table.csv");
    contains(
        &csv,
        &[
            "Rows 1 to 200",
            "<td>&lt;b&gt;200&lt;/b&gt;</td>",
            "page=2\">Next",
        ],
    );
    let last = shown(&ui, "inputs/table.csv&page=3");
    contains(&last, &["Rows 401 to 450", "page=2\">Previous"]);
    assert!(!last.contains(">Next<"), "{last}");
    contains(
        &shown(&ui, "inputs/page.md"),
        &[
            "<h3>Title</h3>",
            "&lt;script&gt;alert(2)",
            "<a href=\"#\">x</a>",
        ],
    );
    contains(
        &shown(&ui, "inputs/picture.svg"),
        &["<img class=\"picture\" src=\""],
    );
    contains(
        &shown(&ui, "inputs/raw.bin"),
        &["This file is not text.", "4 bytes"],
    );
    contains(
        &shown(&ui, "inputs/long.txt"),
        &["\\u001b[31m0123456789", "451,424 more bytes are not shown."],
    );
    let big = shown(&ui, "inputs/big.json&page=3");
    contains(
        &big,
        &[
            "Rows 401 to 600",
            "<td class=\"number\">599</td>",
            "page=4\">Next",
        ],
    );
    project.remove("workspace/outputs/copy.json");
    contains(
        &shown(&ui, "outputs/copy.json"),
        &["The file does not exist."],
    );
}

#[test]
fn the_bytes_of_a_file_are_sent_so_that_nothing_in_them_runs() {
    let project = project();
    let ui = Ui::start(&project);
    let sandbox = "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; sandbox";
    for (path, kind, way) in [
        ("inputs/picture.svg", "image/svg+xml", "inline"),
        ("inputs/page.html", "application/octet-stream", "attachment"),
        ("inputs/a.json", "application/octet-stream", "attachment"),
    ] {
        let sent = ui.get(&format!("raw?path={path}"));
        assert_eq!(sent.status, 200, "{path}");
        assert_eq!(sent.header("content-type"), Some(kind), "{path}");
        assert_eq!(
            sent.header("content-security-policy"),
            Some(sandbox),
            "{path}"
        );
        assert_eq!(
            sent.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        let name = path.strip_prefix("inputs/").unwrap();
        let saved = format!("{way}; filename*=utf-8''{name}");
        assert_eq!(sent.header("content-disposition"), Some(saved.as_str()));
    }
}

#[test]
fn a_pdf_is_shown_in_a_frame_of_its_own_page_only() {
    let project = project();
    project.write("workspace/inputs/plan.pdf", "%PDF-1.4\n");
    let ui = Ui::start(&project);
    let page = ui.get("file?path=inputs/plan.pdf");
    let frame = "<iframe class=\"document\" title=\"The PDF inputs/plan.pdf\" src=\"";
    let raw = format!("{frame}{}/raw?path=inputs%2Fplan.pdf\"></iframe>", ui.root);
    assert!(page.body.contains(&raw), "{}", page.body);
    let policy = |reply: &super::server::Reply| {
        let policy = reply.header("content-security-policy").unwrap().to_owned();
        (policy, reply.header("x-frame-options").unwrap().to_owned())
    };
    let (with_frames, options) = policy(&page);
    assert!(with_frames.contains("frame-src 'self'"), "{with_frames}");
    assert!(with_frames.contains("frame-ancestors 'none'"));
    assert_eq!(options, "deny");
    let (without, _) = policy(&ui.get("file?path=inputs/a.json"));
    assert_eq!(with_frames.replace("frame-src 'self'; ", ""), without);
    let sent = ui.get("raw?path=inputs/plan.pdf");
    let expected = "default-src 'none'; frame-ancestors 'self'";
    assert_eq!(
        policy(&sent),
        (expected.to_owned(), "sameorigin".to_owned())
    );
    assert_eq!(sent.header("content-type"), Some("application/pdf"));
    assert_eq!(sent.header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn files_that_are_not_of_the_pipeline_are_refused() {
    let project = project();
    project.write("secret.txt", "secret");
    let link = |target: &str, path: &str| {
        std::os::unix::fs::symlink(target, project.at(path)).unwrap();
    };
    link("../../secret.txt", "workspace/inputs/out.txt");
    link("../.milepost/workspace.json", "workspace/inputs/own.txt");
    link("../inputs/a.json", "workspace/inputs/inside.json");
    link("../.env", "workspace/inputs/env.txt");
    let ui = Ui::start(&project);
    let quarantine = "workspace/.milepost/quarantine/x";
    std::fs::create_dir_all(project.at(quarantine)).unwrap();
    link(
        "../../workspace.json",
        "workspace/.milepost/quarantine/x/own.json",
    );
    for path in [
        "../secret.txt",
        "inputs/../../secret.txt",
        "inputs/out.txt",
        "inputs/own.txt",
        "inputs/env.txt",
        "/etc/passwd",
        "secret.txt",
        "project:secret.txt",
        "project:milepost.toml",
        "notes.txt",
        ".env",
        ".milepost/workspace.json",
        ".MILEPOST/workspace.json",
        ".milepost/mcp-token",
        ".milepost/quarantine/../workspace.json",
        ".milepost/quarantine/x/own.json",
        "project:workspace/.milepost/workspace.json",
        "manifests/copy",
        "stage_1_complete.json",
        "inputs/%00",
        "",
    ] {
        for page in ["file", "raw"] {
            let reply = ui.get(&format!("{page}?path={path}"));
            assert_eq!(reply.status, 400, "{page} {path}: {}", reply.body);
        }
    }
    assert_eq!(ui.get("file?path=inputs/inside.json").status, 200);
    assert_eq!(ui.post("file", &[("path", "inputs/a.json")]).status, 404);
}
