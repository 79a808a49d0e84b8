//! A person answers while something else is in progress: the build of another batch, a run, the end of the server.

use super::server::{Reply, Ui};
use crate::support::{Project, pipe};
use milepost_store::store::disk::Disk;
use milepost_store::store::layout::Layout;
use milepost_store::store::leases::Leases;

/// A stage that asks a person, and then waits for a writer of the pipe `gate`.
fn project() -> Project {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"words\"\n\n[agents.person]\nexternal = true\n",
        ),
        ("prompts/ask.md", "Name a word.\n"),
        (
            "schemas/word.schema.json",
            r#"{"type": "object", "required": ["word"], "properties": {"word": {"type": "string"}}}"#,
        ),
    ]);
    pipe(&project.at("gate"));
    let stage = r#"[[step]]
agent = "person"
prompt = "prompts/ask.md"
out = "word"

[[step]]
command = ["sh", "-c", 'touch "$0/started"; cat "$0/gate" > "$1"', "FOLDER", "{{ paths.built }}"]
out = "built"

[outputs]
word = { path = "outputs/word.json", schema = "schemas/word.schema.json" }
built = { path = "outputs/built.txt", schema = false }
"#;
    let folder = project.path().display().to_string();
    project.write("stages/1_ask.toml", stage.replace("FOLDER", &folder));
    project.run(&[]).expect(3, &[]);
    project
}

const TAKE: [(&str, &str); 2] = [("stage", "ask"), ("who", "Ada")];

/// Takes the batch, and returns the fields of its answer.
fn taken(ui: &Ui) -> [(&'static str, String); 2] {
    ui.wait_for("answer", "Take the next batch");
    let taken = ui.post("answer/take", &TAKE);
    let lease = taken.header("location").unwrap().split("lease=").nth(1);
    let lease = lease.unwrap().to_uppercase();
    [("lease", lease), ("answer::word", "bridge".to_owned())]
}

/// Sends an answer, and leaves the stream open.
fn send(ui: &Ui, answer: &[(&str, String); 2]) -> std::net::TcpStream {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(answer);
    let path = format!("{}/answer/submit", ui.root);
    ui.send("POST", &path, &[], &body.finish())
}

#[test]
fn a_server_ends_while_an_answer_is_being_built() {
    let project = project();
    let ui = Ui::start(&project);
    let answer = taken(&ui);
    let _reply = send(&ui, &answer);
    while !project.exists("started") {
        std::thread::yield_now();
    }
    let begun = std::time::Instant::now();
    assert_eq!(ui.end(), Some(0));
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    let records = project.records();
    assert_eq!(records.last().unwrap()["data"]["status"], "interrupted");
    // The answer is kept: the next run asks nobody.
    std::thread::scope(|scope| {
        scope.spawn(|| std::fs::write(project.at("gate"), "done\n").unwrap());
        project.run_unplanned(&[]).expect(0, &["ask"]);
    });
    assert_eq!(
        project.json("workspace/outputs/word.json")["word"],
        "bridge"
    );
}

#[test]
fn while_the_batch_of_another_client_is_built_pages_say_so_and_the_server_ends() {
    let project = project();
    let ui = Ui::start(&project);
    let answer = taken(&ui);
    let workspace = Layout::new(project.at("workspace"));
    let building = Leases::try_lock(&Disk::real(), &workspace).unwrap();
    assert!(building.is_some());
    let lease = [("lease", answer[0].1.as_str())];
    for (page, fields) in [("answer/take", &TAKE[..]), ("answer/leave", &lease)] {
        let busy = ui.post(page, fields);
        assert_eq!(busy.status, 409, "{page}: {}", busy.body);
        let notice = "the batch of another client is being built in this workspace: try again when it is built";
        assert!(busy.body.contains(notice), "{page}: {}", busy.body);
        assert!(busy.body.contains("ask"), "{page}: {}", busy.body);
    }
    // An answer waits for its turn, until the server ends.
    let _waits = send(&ui, &answer);
    ui.get("answer");
    let begun = std::time::Instant::now();
    assert_eq!(ui.end(), Some(0));
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    drop(building);
}

#[test]
fn while_a_run_is_in_progress_an_answer_stays_in_its_form() {
    let project = project();
    let ui = Ui::start(&project);
    let answer = taken(&ui);
    project.write(
        "stages/2_wait.toml",
        format!(
            "[step]\ncommand = [\"sh\", \"-c\", 'touch \"$0/started\"; cat \"$0/gate\" > \"$1\"', \"{}\", \"{{{{ paths.out }}}}\"]\n\n[outputs]\nout = {{ path = \"outputs/out.txt\", schema = false }}\n",
            project.path().display()
        ),
    );
    let mut run = project.command(&["run", "--keep-going"]).spawn().unwrap();
    while !project.exists("started") {
        std::thread::yield_now();
    }
    let refused = Reply::read(send(&ui, &answer));
    // A lease that is over leaves what was entered, too.
    let over = [("lease", "0".to_owned()), answer[1].clone()];
    let lost = Reply::read(send(&ui, &over));
    std::fs::write(project.at("gate"), "done\n").unwrap();
    run.wait().unwrap();
    assert_eq!(refused.status, 409, "{}", refused.body);
    for part in [
        "name=\"answer::word\" value=\"bridge\"",
        "another run is at work in this workspace",
    ] {
        assert!(refused.body.contains(part), "{part}: {}", refused.body);
    }
    assert_eq!(lost.status, 400, "{}", lost.body);
    for part in ["What you entered", "<pre>bridge</pre>"] {
        assert!(lost.body.contains(part), "{part}: {}", lost.body);
    }
}
