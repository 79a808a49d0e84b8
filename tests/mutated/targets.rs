//! What reads bytes that anything may have happened to: each gives an answer, and never stops the program.

use super::structures::{Choices, any_ifc, any_pdf};
use milepost_core::base::clock::StillClock;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::decl::{self, ProjectFiles};
use milepost_core::model::event::{Event, EventType};
use milepost_formats::ifc::{IfcError, extract};
use milepost_store::store::disk::Disk;
use milepost_store::store::journal::{Journal, read_all, read_since_seal};
use milepost_store::store::layout::Layout;
use milepost_store::store::{checkpoint, manifest};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// One of them: a name, and what it does with bytes in a folder of its own.
pub type Target = (&'static str, fn(&Path, &[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("journal", journal),
    ("checkpoint", checkpoint),
    ("manifest", manifest),
    ("stage", stage),
    ("project", project),
    ("ifc", ifc),
    ("pdf", pdf),
    ("ifc_structure", ifc_structure),
    ("pdf_structure", pdf_structure),
];

/// The first segment of a journal is read, or said to be broken; one that is read is cut where it ends and goes on. So is one whose
/// lines name the digest of the line before, whatever else is wrong with them.
pub fn journal(folder: &Path, bytes: &[u8]) {
    segment(folder, bytes);
    segment(folder, &chained(bytes));
}

fn chained(bytes: &[u8]) -> Vec<u8> {
    const PREV: &[u8] = b"\"prev\":";
    let mut before: Option<Digest> = None;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').map(|line| {
        let at = line.windows(PREV.len()).rposition(|part| part == PREV);
        let mut line = line.to_vec();
        if let (Some(at), true) = (at, line.ends_with(b"}\n")) {
            line.truncate(at + PREV.len());
            let prev = before.map_or("null".to_owned(), |digest| format!("\"{digest}\""));
            line.extend_from_slice(prev.as_bytes());
            line.extend_from_slice(b"}\n");
        }
        before = Some(Digest::of(line.strip_suffix(b"\n").unwrap_or(&line)));
        line
    });
    lines.collect::<Vec<_>>().concat()
}

fn segment(folder: &Path, bytes: &[u8]) {
    let layout = Layout::new(folder);
    fs::create_dir_all(layout.journal()).unwrap();
    fs::write(layout.segment(1), bytes).unwrap();
    let last = read_since_seal(&layout);
    let mut read = Vec::new();
    let all = read_all(&layout, &mut |_, record| read.push(record));
    assert_eq!(fs::read(layout.segment(1)).unwrap(), bytes);
    let (records, tail) = match (&last, &all) {
        (Ok(last), Ok(whole)) => {
            let since = read.len() - last.0.len();
            assert_eq!((&last.0[..], &last.1), (&read[since..], whole));
            last
        }
        // What is broken before the last seal is not read.
        (Ok(last), Err(_)) => last,
        (Err(_), _) => {
            assert!(all.is_err(), "{last:?} {all:?}");
            return;
        }
    };
    assert_eq!(tail.size + tail.torn, bytes.len() as u64);
    let clock = Arc::new(StillClock("2026-11-21T10:00:00Z".parse().unwrap()));
    let disk = Disk::from_setting(Some("unflushed"));
    let mut opened = Journal::open(&disk, &layout, clock, "S", "R").unwrap();
    let appended = opened
        .journal
        .append(EventType::Complete, "x", Event::Barrier, "", Vec::new());
    appended.unwrap();
    let (again, _) = read_since_seal(&layout).unwrap();
    assert_eq!(again.len(), records.len() + 1);
    assert_eq!(again[..records.len()], records[..]);
}

/// A checkpoint is read or refused; one that is read says the same when it is written.
pub fn checkpoint(folder: &Path, bytes: &[u8]) {
    let layout = Layout::new(folder);
    fs::write(layout.checkpoint(1), bytes).unwrap();
    if let Ok(Some(found)) = checkpoint::read(&layout, 1) {
        fs::write(
            layout.checkpoint(1),
            checkpoint::bytes(&found.checkpoint).unwrap(),
        )
        .unwrap();
        let again = checkpoint::read(&layout, 1).unwrap().unwrap();
        assert_eq!(again.checkpoint, found.checkpoint);
    }
    let _ = checkpoint::list(&layout).unwrap();
}

/// A page of a manifest is read or refused; what was read is read again when it is written.
pub fn manifest(folder: &Path, bytes: &[u8]) {
    let layout = Layout::new(folder);
    let pages = layout.manifests().join("classify");
    fs::create_dir_all(&pages).unwrap();
    fs::write(pages.join("page_0001.sha256"), bytes).unwrap();
    if let Ok(state) = manifest::read(&layout, "classify") {
        let state = manifest::kept(&state);
        let disk = Disk::from_setting(Some("unflushed"));
        if manifest::write(&disk, &layout, "classify", &state).is_ok() {
            assert_eq!(manifest::read(&layout, "classify").unwrap(), state);
        }
    }
    let _ = manifest::read_all(&layout);
}

/// A project of one stage file.
struct Files<'a>(&'a str, &'a [u8]);

impl ProjectFiles for Files<'_> {
    fn read(&self, path: &RelPath) -> Option<Result<Vec<u8>, String>> {
        match path.as_str() {
            path if path == self.0 => Some(Ok(self.1.to_vec())),
            "milepost.toml" => Some(Ok(b"name = \"x\"\n[params]\nbatch_size = 5\nmodel = { file = \"inputs/x.ifc\" }\n[agents.classifier]\nrules = \"rules.toml\"\n".to_vec())),
            "stages/1_x.toml" => Some(Ok(b"[step]\njq = \"1\"\n[outputs]\nx = \"outputs/x.json\"\n".to_vec())),
            "rules.toml" => Some(Ok(Vec::new())),
            path if path.ends_with(".schema.json") => Some(Ok(b"{}".to_vec())),
            "filters/plans.jq" | "filters/question.jq" | "filters/record.jq" | "filters/report.jq" => Some(Ok(b".".to_vec())),
            "prompts/batch-processor.md" | "templates/plans.svg" | "templates/report.md" => Some(Ok(b"x".to_vec())),
            _ => None,
        }
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let names: &[&str] = match folder {
            "" => &["milepost.toml", "rules.toml"],
            "stages" => &["1_x.toml"],
            _ => &[],
        };
        names.iter().map(|name| (*name).to_owned()).collect()
    }
}

fn declared(path: &str, bytes: &[u8]) {
    match decl::load(&Files(path, bytes)) {
        Ok((pipeline, warnings)) => {
            let _ = (pipeline.stages.len(), warnings.len());
        }
        // They are shown with their places, which must be places of the text.
        Err(problems) => {
            let _ = problems.to_string();
            let _ = problems.to_json();
        }
    }
}

/// A stage file is read, or said to be wrong at places that are there.
pub fn stage(_: &Path, bytes: &[u8]) {
    declared("stages/1_x.toml", bytes);
}

/// The same of a project's file.
pub fn project(_: &Path, bytes: &[u8]) {
    declared("milepost.toml", bytes);
}

/// A building model gives elements as JSON, or an error.
pub fn ifc(folder: &Path, bytes: &[u8]) {
    let path = folder.join("model.ifc");
    fs::write(&path, bytes).unwrap();
    let mut out = Vec::new();
    match extract(&path, "model.ifc", &mut out) {
        Ok(_) => {
            let parsed: serde_json::Value = serde_json::from_slice(&out).unwrap();
            assert!(parsed["elements"].is_array());
        }
        Err(IfcError::Parser { message, .. }) => panic!("the parser stopped: {message}"),
        Err(_) => {}
    }
}

/// A PDF gives its pages in order, or an error.
pub fn pdf(_: &Path, bytes: &[u8]) {
    if let Ok(read) = milepost_formats::pdf_text::read(bytes) {
        let numbers = read.pages.iter().map(|page| page.number as usize);
        assert!(numbers.eq(1..=read.pages.len()));
    }
}

/// The same of a PDF whose structure the bytes decide.
pub fn pdf_structure(folder: &Path, bytes: &[u8]) {
    pdf(folder, &any_pdf(&mut Choices(bytes)));
}

/// A building model whose structure the bytes decide gives elements, or an error.
pub fn ifc_structure(folder: &Path, bytes: &[u8]) {
    ifc(folder, &any_ifc(&mut Choices(bytes)));
}
