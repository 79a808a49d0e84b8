//! Files that broke an earlier version, all written for this purpose.
//!
//! | file | what it holds | what it did |
//! |---|---|---|
//! | `firstself.pdf` | an outline whose `/First` is itself | overflowed the stack |
//! | `nextself.pdf` | an outline whose `/Next` is itself | took 0.6 GB of memory a second |
//! | `namescycle.pdf` | `/Names /Dests /Kids` that contains itself | overflowed the stack |
//! | `kidcount.pdf` | `/Pages /Count 99999999999999` | allocated 1.2 PB |
//! | `deepq60.pdf` | 60 million operators `q` when inflated | took 11 GB |
//! | `mat30.ifc` | an `IFCMATERIALLIST` that contains itself 30 times | took exponential time |
//! | `rel60000.ifc` | 60,000 elements times 60,000 property sets in one relation | took 29 GB |

use std::io::Read as _;
use std::path::Path;

/// Returns the bytes of a file. The files that are large are stored compressed.
pub fn hostile_file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/hostile/files")
        .join(name);
    if path.exists() {
        return std::fs::read(path).unwrap();
    }
    let compressed = std::fs::File::open(path.with_file_name(format!("{name}.gz"))).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(compressed)
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}
