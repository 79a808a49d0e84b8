//! The published schemas of declarations are what the reader's table of keys gives, and say of keys what the reader says.

use super::cases::project;
use super::docs::documented;
use milepost_core::decl::{project_schema, stage_schema};
use serde_json::Value;
use std::path::PathBuf;

fn check(name: &str, schema: &Value) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("schemas/milepost")
        .join(name);
    let text = format!("{}\n", serde_json::to_string_pretty(schema).unwrap());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "schemas/milepost/{name} is not what the code gives: run BLESS=1 cargo test decl"
    );
}

#[test]
fn the_committed_schemas_are_what_the_code_gives() {
    check("project.schema.json", &project_schema());
    check("stage.schema.json", &stage_schema());
}

fn validator(file: &str) -> jsonschema::Validator {
    let schema = if file == "milepost.toml" {
        project_schema()
    } else {
        stage_schema()
    };
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn right_declarations_are_valid() {
    for files in [project(), documented()] {
        for (name, bytes) in &files.0 {
            if name != "milepost.toml" && !name.starts_with("stages/") {
                continue;
            }
            let value: Value = toml::from_str(std::str::from_utf8(bytes).unwrap()).unwrap();
            let errors: Vec<_> = validator(name)
                .iter_errors(&value)
                .map(|error| error.to_string())
                .collect();
            assert_eq!(errors, Vec::<String>::new(), "{name}");
        }
    }
}

#[test]
fn wrong_keys_and_types_are_not_valid() {
    for wrong in [
        "stpe = 1",
        "[step]\nagent = \"a\"",
        "[step]\nprompt = \"a\"\ncopy = \"x\"",
        "[step]\ncopy = \"x\"\npdf = \"x\"",
        "[step]\ncopy = \"x\"\ntimeout = 60",
        "[step]\ncopy = \"x\"\nengines = [\"builtin\"]",
        "[step]\ncopy = \"x\"\n[outputs]\nx = { path = \"x\", schema = true }",
        "[step]\ncopy = \"x\"\n[check]\ntest = \"x\"",
        "[step]\ncopy = \"x\"\n[errors]\nengine = \"x\"",
        "[step]\ncopy = \"x\"\n[each.a]\nfrom = \"x\"",
    ] {
        let value: Value = toml::from_str(wrong).unwrap();
        assert!(!validator("stages/1_x.toml").is_valid(&value), "{wrong}");
    }
    for wrong in [
        "",
        "name = 1",
        "name = \"x\"\n[agents.a]\nexternal = false",
        "name = \"x\"\n[params]\nx = { base = \"y\" }",
    ] {
        let value: Value = toml::from_str(wrong).unwrap();
        assert!(!validator("milepost.toml").is_valid(&value), "{wrong}");
    }
}
