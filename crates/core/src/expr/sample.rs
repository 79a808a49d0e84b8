//! Random JSON and the files of the projects in this repository, for tests.

use proptest::prelude::*;
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};

/// JSON values of a few levels, with few and odd keys, so that paths meet them.
pub(crate) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9f64..1e9).prop_map(Value::from),
        "[a-zä/\"\\\\]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[abc]|odd key", inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Returns the files of a folder of every project in this repository: the root of the project, and the path below it.
pub(crate) fn project_files(folder: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut projects = vec![root.clone()];
    projects.extend(entries(&root.join("examples")));
    let files: Vec<(PathBuf, String)> = projects
        .iter()
        .filter(|project| project.join(folder).is_dir())
        .flat_map(|project| {
            let files = entries(&project.join(folder)).into_iter();
            files.filter(|path| path.is_file()).map(move |path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                (project.clone(), format!("{folder}/{name}"))
            })
        })
        .collect();
    assert!(!files.is_empty(), "no project has files in `{folder}`");
    files
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}
