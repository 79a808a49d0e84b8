//! The declarations that the language was tried with on paper load.

use super::Files;
use std::path::{Path, PathBuf};

fn sketch(name: &str) -> Option<Files> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/sketches")
        .join(name);
    if !root.is_dir() {
        eprintln!("skipped: ../shared is not here");
        return None;
    }
    let mut files = Files::default();
    read(&root, &root, &mut files);
    Some(files)
}

fn read(root: &Path, folder: &Path, files: &mut Files) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(root, &path, files);
        } else {
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            files.0.insert(name, std::fs::read(&path).unwrap());
        }
    }
}

#[test]
fn the_main_pipeline_loads() {
    let Some(files) = sketch("ifc") else { return };
    let files = files.with(
        "milepost.toml",
        "name = \"building-model\"\n\n[params]\nmodel = { file = \"inputs/sample.ifc\" }\nbatch_size = 50\nreview_below = 0.5\n\n\
         [agents.classifier]\nrules = \"rules/elements.toml\"\n",
    );
    let files = files.with(
        "stages/1_parse.toml",
        "description = \"Read the building model\"\n\n[inputs]\nmodel = \"{{ params.model }}\"\n\n[step]\nifc = \"model\"\n\n\
         [outputs.parsed]\npath = \"intermediate/parsed_data.json\"\nstream = \".elements\"\n",
    );
    let (pipeline, warnings) = files
        .load()
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    assert_eq!(warnings, []);
    let stages: Vec<_> = pipeline
        .stages
        .iter()
        .map(|stage| (stage.number, stage.name.as_str(), stage.steps.len()))
        .collect();
    assert_eq!(
        stages,
        [
            (1, "parse", 1),
            (2, "batch", 1),
            (3, "classify", 1),
            (4, "generate", 5)
        ]
    );
}

/// The other systems need more than this version has: they are told that, and nothing that is not so.
#[test]
fn the_other_systems_are_told_only_what_is_missing() {
    let known = [
        "`all_engines` is no outcome",
        "there is no `service/server.js` in the project",
    ];
    for name in ["grading", "prompt-tests", "study-plan", "diagrams"] {
        let Some(files) = sketch(name) else { return };
        let problems = files.load().err().map_or(Vec::new(), |problems| problems.0);
        let others: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let others: Vec<_> = others
            .iter()
            .filter(|text| !known.iter().any(|known| text.contains(known)))
            .collect();
        assert_eq!(others, Vec::<&String>::new(), "{name}");
    }
}
