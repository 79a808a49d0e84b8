//! Whatever stands in the files of a project: the reader says what is wrong and never panics.

use super::Files;
use super::cases::project;
use super::docs::documented;
use proptest::prelude::*;

/// Pieces that break declarations in more places than random bytes do.
const PIECES: [&str; 20] = [
    "\"",
    "'",
    "{{",
    "}}",
    "{% include \"",
    "[",
    "]]",
    "[step]",
    "\n",
    "..",
    "*",
    "ä",
    ".",
    "$",
    "\\",
    "|",
    "= 5",
    "\u{0}",
    "project:",
    "{",
];

fn break_one(files: &Files, which: usize, at: usize, cut: usize, piece: &[u8]) -> Files {
    let mut broken = files.clone();
    let count = broken.0.len();
    if let Some(bytes) = broken.0.values_mut().nth(which % count) {
        let start = at % (bytes.len() + 1);
        let end = (start + cut).min(bytes.len());
        bytes.splice(start..end, piece.iter().copied());
    }
    broken
}

fn told(files: &Files) {
    match files.load() {
        Ok((_, warnings)) => warnings
            .iter()
            .for_each(|warning| assert!(!warning.render(true).is_empty())),
        Err(problems) => {
            assert!(!problems.0.is_empty());
            assert!(!problems.render(true).is_empty());
            assert!(!problems.to_json().to_string().is_empty());
        }
    }
}

proptest! {
    // reading a project takes some time: a quarter of the usual number of cases
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_change_of_bytes_is_told(
        documents in any::<bool>(),
        changes in prop::collection::vec((any::<usize>(), any::<usize>(), 0..12_usize, 0..PIECES.len(), prop::option::of(any::<u8>())), 1..4),
    ) {
        let mut files = if documents { documented() } else { project() };
        for (which, at, cut, piece, byte) in changes {
            files = match byte {
                Some(byte) => break_one(&files, which, at, cut, &[byte]),
                None => break_one(&files, which, at, cut, PIECES[piece].as_bytes()),
            };
        }
        told(&files);
    }
}

#[test]
fn an_empty_folder_is_told() {
    assert_eq!(
        Files::default().wrong(),
        "error: there is no `milepost.toml` here\n--> milepost.toml\n = help: run `milepost init` to create a project, or `-C DIR` to use another folder\n"
    );
    assert_eq!(
        Files::of([("milepost.toml", "name = \"x\"\n")]).wrong(),
        "error: the project has no stages\n--> milepost.toml\n = help: write the first into `stages/1_name.toml`\n"
    );
}
