//! `examples/claude-code`: what its README says makes a project whose batches are leased.

use super::client::{Site, run_as};
use milepost_engine::ops::change::init::init;
use milepost_engine::ops::external::{LeaseOptions, next_batch};
use milepost_engine::ops::run::StopFlag;
use milepost_store::store::disk::Disk;
use serde_json::{Value, json};

const README: &str = include_str!("../../examples/claude-code/README.md");

#[test]
fn the_set_up_of_the_readme_leases_batches() {
    let site = Site::bare();
    init(&Disk::real(), &site.at(""), ".", "ifc").unwrap();
    for file in [".mcp.json", "orchestrator.md", "batch-processor.md"] {
        let path = format!("claude-code/{file}");
        assert!(README.contains(&format!("cp {path} ")), "{path}");
        assert!(site.at(&path).is_file(), "{path}");
    }
    let readme = site.read("README.md");
    assert!(readme.contains("the folder `claude-code`") && readme.contains("milepost run"));
    assert!(README.contains("sed -i.bak 's|^rules = .*|external = true|' milepost.toml"));
    let project = site.read("milepost.toml");
    let line = |line: &str| {
        let line = if line.starts_with("rules = ") {
            "external = true"
        } else {
            line
        };
        format!("{line}\n")
    };
    site.write(
        "milepost.toml",
        project.lines().map(line).collect::<String>(),
    );
    let request = site.with_rules();
    run_as(&request, &["parse"]);
    run_as(&request, &["batch"]);
    let wanted = LeaseOptions {
        stage: Some("classify".to_owned()),
        client: "batch-processor".to_owned(),
        ..LeaseOptions::default()
    };
    let leased = next_batch(&request, &wanted, &StopFlag::new())
        .unwrap()
        .leased
        .unwrap();
    assert_eq!(
        (leased.questions, leased.agent.as_str()),
        (50, "classifier")
    );
    let prompt = std::fs::read_to_string(&leased.prompt_file).unwrap();
    assert!(prompt.starts_with("You classify building elements"));
}

#[test]
fn its_files_are_what_the_client_reads() {
    let config = include_str!("../../examples/claude-code/.mcp.json");
    let config: Value = serde_json::from_str(config).unwrap();
    assert_eq!(
        config,
        json!({ "mcpServers": { "milepost": { "command": "milepost", "args": ["mcp"] } } })
    );
    let agent = include_str!("../../examples/claude-code/batch-processor.md");
    let head = agent
        .strip_prefix("---\n")
        .unwrap()
        .split_once("\n---\n")
        .unwrap()
        .0;
    let keys: Vec<&str> = head
        .lines()
        .filter_map(|line| Some(line.split_once(": ")?.0))
        .collect();
    assert_eq!(keys, ["name", "description", "tools"]);
    // Every code that an answer is told stands in what the subagent reads.
    for code in [
        "missing",
        "unknown_id",
        "no_id",
        "doubled",
        "schema",
        "not_json",
        "wrong_shape",
    ] {
        assert!(agent.contains(&format!("`{code}`")), "{code}");
    }
    let orchestrator = include_str!("../../examples/claude-code/orchestrator.md");
    for reason in [
        "complete", "ready", "leased", "blocked", "failed", "altered",
    ] {
        assert!(orchestrator.contains(&format!("`{reason}`")), "{reason}");
    }
}
