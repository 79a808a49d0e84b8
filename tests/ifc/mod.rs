//! Reading building models: against the reference extractor, pitfall by pitfall, and what is refused.

// Models are put together of formatted records; what that costs does not matter here.
#![allow(clippy::format_push_string)]

mod errors;
mod geometry;
mod golden;
mod left_out;
mod pitfalls;
mod reading;

use std::path::{Path, PathBuf};

use milepost_formats::ifc::{IfcError, ModelSummary, extract};
use serde_json::Value;
use tempfile::TempDir;

/// A model in a folder of its own.
struct Sample {
    folder: TempDir,
    path: PathBuf,
}

impl Sample {
    fn bytes(name: &str, bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        Self { folder, path }
    }

    /// A model of `schema` with these records after the project and its units (metres).
    fn model(schema: &str, records: &str) -> Self {
        Self::bytes("model.ifc", step(schema, records).as_bytes())
    }

    fn read(&self) -> (Value, ModelSummary) {
        self.try_read().unwrap()
    }

    fn try_read(&self) -> Result<(Value, ModelSummary), IfcError> {
        parsed(&self.path)
    }
}

fn parsed(path: &Path) -> Result<(Value, ModelSummary), IfcError> {
    let mut out = Vec::new();
    let name = path.file_name().unwrap().to_str().unwrap();
    let summary = extract(path, name, &mut out)?;
    Ok((serde_json::from_slice(&out).unwrap(), summary))
}

/// A whole file: header, a project in metres (#1 to #5), `records`.
fn step(schema: &str, records: &str) -> String {
    format!(
        "ISO-10303-21;\nHEADER;\nFILE_DESCRIPTION((''),'2;1');\nFILE_NAME('','',(''),(''),'','','');\n\
         FILE_SCHEMA(('{schema}'));\nENDSEC;\nDATA;\n\
         #1=IFCPROJECT('{}',$,'Project',$,$,$,$,$,#2);\n#2=IFCUNITASSIGNMENT((#3,#4,#5));\n\
         #3=IFCSIUNIT(*,.LENGTHUNIT.,$,.METRE.);\n#4=IFCSIUNIT(*,.AREAUNIT.,$,.SQUARE_METRE.);\n\
         #5=IFCSIUNIT(*,.VOLUMEUNIT.,$,.CUBIC_METRE.);\n{records}\nENDSEC;\nEND-ISO-10303-21;\n",
        id(1)
    )
}

/// A GlobalId that tells its number.
fn id(number: u32) -> String {
    format!("0000000000000000{number:06}")
}

/// A wall record.
fn wall(number: u32) -> String {
    format!(
        "#{number}=IFCWALL('{}',$,'Wall {number}',$,$,$,$,$,$);\n",
        id(number)
    )
}
