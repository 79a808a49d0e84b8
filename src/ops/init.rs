//! Makes a project from a template: Milepost's own main pipeline, or the smallest that shows how stages work together.

use super::open::OpsError;
use super::schema::{FOLDER, schemas, text};
use crate::store::disk::{Disk, parent};
use serde::Serialize;
use std::path::Path;

/// A file of a template: its path in the project, and what it holds.
type TemplateFile = (&'static str, &'static [u8]);

/// A template.
struct Template {
    name: &'static str,
    about: &'static str,
    files: &'static [TemplateFile],
    /// Schemas that its files name, for editors.
    schemas: &'static [&'static str],
}

/// Files of Milepost's repository, as they are there.
macro_rules! repository {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path)))),*]
    };
}

const TEMPLATES: &[Template] = &[
    Template {
        name: "ifc",
        about: "a building model to an Excel and a PDF report",
        files: repository![
            "milepost.toml",
            "stages/1_parse.toml",
            "stages/2_batch.toml",
            "stages/3_classify.toml",
            "stages/4_generate.toml",
            "schemas/all.schema.json",
            "schemas/answer.schema.json",
            "schemas/batches.schema.json",
            "schemas/classified.schema.json",
            "schemas/corrections.schema.json",
            "schemas/parsed.schema.json",
            "schemas/report.schema.json",
            "rules/elements.toml",
            "filters/question.jq",
            "filters/record.jq",
            "filters/report.jq",
            "prompts/batch-processor.md",
            "templates/report.md",
            "templates/report.xlsx.toml",
            "workspace/inputs/sample.ifc",
        ],
        schemas: &["project", "stage", "rules", "workbook"],
    },
    Template {
        name: "minimal",
        about: "two stages that run commands over text files",
        files: &[
            ("milepost.toml", MINIMAL.as_bytes()),
            ("stages/1_upper.toml", UPPER.as_bytes()),
            ("stages/2_join.toml", JOIN.as_bytes()),
            ("workspace/inputs/note_1.txt", b"the first milepost\n"),
            ("workspace/inputs/note_2.txt", b"the second\n"),
        ],
        schemas: &["project", "stage"],
    },
];

const MINIMAL: &str = r#"#:schema ./schemas/milepost/project.schema.json
name = "minimal"
"#;

const UPPER: &str = r#"#:schema ../schemas/milepost/stage.schema.json
description = "Each note in capitals"

[each.note]                              # a batch per file
path = "inputs/*.txt"

[step]
command = ["sh", "-c", 'tr a-z A-Z < "$1" > "$2"', "upper", "{{ note.path }}", "{{ paths.upper }}"]

[outputs]
upper = "intermediate/{{ note.stem }}.txt"
"#;

const JOIN: &str = r#"#:schema ../schemas/milepost/stage.schema.json
description = "All notes in one file"

[inputs]
notes = "intermediate/*.txt"             # what the stage before wrote

[step]
command = ["sh", "-c", 'all="$1"; shift; cat "$@" > "$all"', "join", "{{ paths.all }}", "{{ paths.notes }}"]

[outputs]
all = "outputs/all.txt"
"#;

/// What is Milepost's own, or made by a run, is not for version control.
const IGNORED: &str = "/.milepost/\n/workspace*/*\n!/workspace*/inputs/\n";

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Initiated {
    /// The template.
    pub template: String,
    /// What it is.
    pub about: String,
    /// The project's folder, as it was given.
    pub folder: String,
    /// The files, in the project.
    pub files: Vec<String>,
    /// Commands to go on with.
    pub next: Vec<String>,
}

/// The templates, each with what it is.
pub fn templates() -> Vec<(&'static str, &'static str)> {
    TEMPLATES
        .iter()
        .map(|template| (template.name, template.about))
        .collect()
}

/// Makes a project from a template. `base` is the folder that `folder` is relative to.
///
/// # Errors
/// When there is no such template, a file of it is there already, or the disk fails.
pub fn init(disk: &Disk, base: &Path, folder: &str, name: &str) -> Result<Initiated, OpsError> {
    let template = TEMPLATES.iter().find(|template| template.name == name);
    let Some(template) = template else {
        let known: Vec<String> = templates()
            .iter()
            .map(|(name, about)| format!("`{name}` ({about})"))
            .collect();
        let message = format!(
            "there is no template `{name}`: there are {}",
            known.join(", ")
        );
        return Err(OpsError::Usage(message));
    };
    let mut files: Vec<(String, Vec<u8>)> = template
        .files
        .iter()
        .map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec()))
        .collect();
    for (name, schema) in schemas() {
        if template.schemas.contains(&name) {
            let path = format!("{FOLDER}/{name}.schema.json");
            files.push((path, text(&schema).into_bytes()));
        }
    }
    files.push((".gitignore".to_owned(), IGNORED.as_bytes().to_vec()));
    let root = base.join(folder);
    let there: Vec<&str> = files
        .iter()
        .filter(|(path, _)| root.join(path).symlink_metadata().is_ok())
        .map(|(path, _)| path.as_str())
        .collect();
    if let Some(first) = there.first() {
        let more = match there.len() {
            1 => String::new(),
            many => format!(" (and {} more)", many - 1),
        };
        return Err(OpsError::Usage(format!(
            "`{first}`{more} is in {} already, and nothing is overwritten: name another folder, `milepost init {name} DIR`",
            root.display()
        )));
    }
    for (path, bytes) in &files {
        let path = root.join(path);
        disk.create_dir_all(parent(&path))?;
        disk.write_atomic(&path, bytes)?;
    }
    let place = if matches!(folder, "" | ".") {
        String::new()
    } else {
        format!(" -C {folder}")
    };
    Ok(Initiated {
        template: template.name.to_owned(),
        about: template.about.to_owned(),
        folder: folder.to_owned(),
        files: files.into_iter().map(|(path, _)| path).collect(),
        next: vec![
            format!("milepost{place} plan"),
            format!("milepost{place} run"),
        ],
    })
}
