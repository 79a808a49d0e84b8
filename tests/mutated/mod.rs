//! Journals, checkpoints, manifests, declarations, models and documents with bytes changed, cut, doubled and put in, and models and
//! documents whose references lead anywhere, by a seed.

pub(crate) mod structures;
mod targets;

use crate::hostile::files::hostile_file;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};
use targets::{TARGETS, Target};

/// What means something to one of the readers.
const WORDS: &[&[u8]] = &[
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\n",
    b"\0",
    b"\xff",
    b"\\",
    b"'",
    b",",
    b"#",
    b"(",
    b")",
    b";",
    b"=",
    b"$",
    b"*",
    b"..",
    b"null",
    b"-1",
    b"18446744073709551616",
    b"1e999",
    b"0.0000001",
    b"\xc3\xa9",
    b"\xf0\x9f\x8f\xa0",
    b"\\X2\\00E9\\X0\\",
    b"{{ ",
    b" }}",
    b"{% for x in y %}",
    b"\"format\":9",
    b"\"prev\":null",
    b"sha256:",
    b"# milepost manifest",
    b"[[step]]\n",
    b"[each.batch]\n",
    b"path = \"",
    b"jq = '''",
    b"IFCWALL(",
    b"IFCRELAGGREGATES(",
    b"#1",
    b"/*",
    b"*/",
    b"ENDSEC;",
    b"DATA;",
];

/// A number below `below` (SplitMix64).
fn random(seed: &mut u64, below: usize) -> usize {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) % below.max(1) as u64) as usize
}

/// Up to six changes.
fn mutated(sample: &[u8], seed: &mut u64) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..=random(seed, 6) {
        let at = random(seed, bytes.len() + 1);
        let length = 1 << random(seed, 9);
        let end = (at + random(seed, length)).min(bytes.len());
        match random(seed, 7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random(seed, 8),
            1 if at < bytes.len() => bytes[at] = random(seed, 256) as u8,
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].to_vec();
                let to = random(seed, bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            4 => {
                let word = WORDS[random(seed, WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
            5 => {
                let word = WORDS[random(seed, WORDS.len())];
                bytes.splice(at..end, word.iter().copied());
            }
            _ if random(seed, 20) == 0 => bytes.truncate(at),
            _ => {}
        }
    }
    bytes
}

/// What there is to begin with.
fn samples(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read(root.join(path)).unwrap();
    match target {
        "ifc" => {
            let mut files = vec![hostile_file("mat30.ifc")];
            files.push(read("tests/crash/six_elements.ifc"));
            files
        }
        "pdf" => {
            let broken = ["firstself", "nextself", "namescycle", "kidcount"];
            let mut files = broken
                .map(|name| hostile_file(&format!("{name}.pdf")))
                .to_vec();
            files.push(structures::pdf(&structures::page("", "")));
            files
        }
        "project" => vec![read("milepost.toml")],
        "stage" => {
            let mut paths: Vec<_> = fs::read_dir(root.join("stages"))
                .unwrap()
                .flatten()
                .collect();
            paths.sort_by_key(fs::DirEntry::file_name);
            paths
                .iter()
                .map(|entry| fs::read(entry.path()).unwrap())
                .collect()
        }
        name => {
            let path = match name {
                "journal" => ".milepost/journal/000001.jsonl",
                "checkpoint" => "stage_1_complete.json",
                _ => "manifests/classify/page_0001.sha256",
            };
            vec![made(path)]
        }
    }
}

/// A file that a run of the main pipeline makes.
fn made(path: &str) -> Vec<u8> {
    let project = crate::support::Project::six();
    project.complete(&["run", "--set", "batch_size=3"]);
    fs::read(project.at("workspace").join(path)).unwrap()
}

/// Decisions about a structure: some thousand bytes.
fn decisions(seed: &mut u64) -> Vec<u8> {
    let length = random(seed, 3000);
    (0..length).map(|_| random(seed, 256) as u8).collect()
}

/// `MILEPOST_TEST_MUTATIONS` says how many changed files are read, `MILEPOST_TEST_SECONDS` for how long.
fn survives(name: &str) {
    let set = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|set| set.parse::<u64>().ok())
    };
    let is_structure = name.ends_with("_structure");
    let usual = if is_structure { 1500 } else { 300 };
    let count = set("MILEPOST_TEST_MUTATIONS").unwrap_or(usual);
    let time = set("MILEPOST_TEST_SECONDS").map(Duration::from_secs);
    let first = set("MILEPOST_TEST_SEED").unwrap_or(0);
    let target: &Target = TARGETS.iter().find(|target| target.0 == name).unwrap();
    let samples = if is_structure {
        Vec::new()
    } else {
        samples(name)
    };
    let begun = Instant::now();
    let mut tried = 0;
    for number in first.. {
        if time.map_or(tried >= count, |time| begun.elapsed() > time) {
            break;
        }
        tried += 1;
        let mut seed = number.wrapping_mul(0x5851_f42d_4c95_7f2d);
        let bytes = if is_structure {
            decisions(&mut seed)
        } else {
            mutated(&samples[number as usize % samples.len()], &mut seed)
        };
        let folder = crate::support::temporary();
        let done = catch_unwind(AssertUnwindSafe(|| target.1(folder.path(), &bytes)));
        if done.is_err() {
            let kept = std::env::temp_dir().join(format!("milepost-{name}-{number}"));
            fs::write(&kept, &bytes).unwrap();
            panic!(
                "{name} stopped at MILEPOST_TEST_SEED={number}: the file is {}",
                kept.display()
            );
        }
    }
    eprintln!("{name}: {tried} files in {:?}", begun.elapsed());
}

#[test]
fn a_changed_journal_is_read_or_refused() {
    survives("journal");
}

#[test]
fn a_changed_checkpoint_is_read_or_refused() {
    survives("checkpoint");
}

#[test]
fn a_changed_manifest_is_read_or_refused() {
    survives("manifest");
}

#[test]
fn a_changed_stage_file_is_read_or_refused() {
    survives("stage");
}

#[test]
fn a_changed_project_file_is_read_or_refused() {
    survives("project");
}

#[test]
fn a_changed_model_is_read_or_refused() {
    survives("ifc");
}

#[test]
fn a_changed_document_is_read_or_refused() {
    survives("pdf");
}

#[test]
fn a_model_of_any_structure_is_read_or_refused() {
    survives("ifc_structure");
}

#[test]
fn a_document_of_any_structure_is_read_or_refused() {
    survives("pdf_structure");
}
