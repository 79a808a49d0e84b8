//! The work: N JSON files of 4 KB, each mapped to an output, then one aggregate; declared for Milepost and for every other tool.

use crate::Result;
use milepost_core::base::digest::Digest;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Bytes of an input.
const SIZE: usize = 4096;

/// Folders and files beside the workspace that other tools make, each named after its tool.
const MADE: &str = "made";

/// How Milepost maps an input to its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// By the program `cp`.
    Command,
    /// By its own step `copy`.
    Copy,
    /// By a jq program that gives the input as it is.
    Jq,
}

/// A project of N batches in a folder of its own.
pub struct Work {
    /// How many batches.
    pub batches: usize,
    /// The project's folder.
    pub folder: PathBuf,
}

impl Work {
    /// The work of this size below a folder.
    pub fn new(folder: &Path, batches: usize) -> Self {
        Self {
            batches,
            folder: folder.join(batches.to_string()),
        }
    }

    /// Writes inputs and build files, unless they are there.
    pub fn make(&self) -> Result<()> {
        let whole = self.folder.join("inputs-are-whole");
        if whole.exists() {
            return Ok(());
        }
        fs::create_dir_all(self.inputs())?;
        fs::create_dir_all(self.folder.join("stages"))?;
        fs::write(self.folder.join("milepost.toml"), "name = \"beside\"\n")?;
        let schemas = self.folder.join("schemas");
        fs::create_dir_all(&schemas)?;
        fs::write(schemas.join("result.schema.json"), RESULT)?;
        fs::write(schemas.join("total.schema.json"), TOTAL)?;
        for item in 0..self.batches {
            self.write_input(item, item)?;
        }
        self.write_ninja()?;
        fs::write(self.folder.join("Makefile"), MAKEFILE)?;
        fs::write(self.folder.join("Snakefile"), SNAKEFILE)?;
        self.write_dvc()?;
        fs::write(whole, "")?;
        Ok(())
    }

    /// Takes everything away.
    pub fn remove(&self) -> Result<()> {
        Ok(fs::remove_dir_all(&self.folder)?)
    }

    /// Bytes of all inputs.
    pub fn bytes(&self) -> usize {
        self.batches * SIZE
    }

    /// Where the inputs lie.
    pub fn inputs(&self) -> PathBuf {
        self.folder.join("workspace/inputs/items")
    }

    /// An input.
    pub fn input(&self, item: usize) -> PathBuf {
        self.inputs().join(format!("{}.json", name(item)))
    }

    /// What Milepost makes of an input.
    pub fn result(&self, item: usize) -> PathBuf {
        let path = format!("workspace/intermediate/results/{}.json", name(item));
        self.folder.join(path)
    }

    /// What another tool makes of an input.
    pub fn made_by(&self, tool: &str, item: usize) -> PathBuf {
        self.made(tool).join(format!("{}.json", name(item)))
    }

    /// Where the outputs of another tool lie.
    pub fn made(&self, tool: &str) -> PathBuf {
        self.folder.join(MADE).join(tool)
    }

    /// Writes an input that holds this value. All values of a number of digits give as many bytes.
    pub fn write_input(&self, item: usize, value: usize) -> Result<()> {
        let head = format!("{{\"id\":\"{}\",\"value\":{value},\"text\":\"", name(item));
        let text = Digest::of(value.to_string()).hex();
        let filled = SIZE - head.len() - 3;
        let text: String = text.chars().cycle().take(filled).collect();
        Ok(fs::write(self.input(item), format!("{head}{text}\"}}\n"))?)
    }

    /// Declares the stages of Milepost.
    pub fn declare(&self, step: Step, aggregate: bool) -> Result<()> {
        let how = match step {
            Step::Command => "command = [\"cp\", \"{{ item.path }}\", \"{{ paths.result }}\"]",
            Step::Copy => "copy = \"file\"",
            Step::Jq => "jq = '$item.data'",
        };
        let file = match step {
            Step::Copy => "\n[inputs]\nfile = \"{{ item.path }}\"\n",
            Step::Command | Step::Jq => "",
        };
        let map = format!(
            "[each.item]\npath = \"inputs/items/*.json\"\n{file}\n[step]\n{how}\n\n[outputs]\n\
             result = {{ path = \"intermediate/results/{{{{ item.stem }}}}.json\" }}\n"
        );
        fs::write(self.folder.join("stages/1_map.toml"), map)?;
        let sum = self.folder.join("stages/2_sum.toml");
        if aggregate {
            fs::write(sum, SUM)?;
        } else if sum.exists() {
            fs::remove_file(sum)?;
        }
        Ok(())
    }

    /// Removes what Milepost made and knows; the inputs stay.
    pub fn clear(&self) -> Result<()> {
        for entry in fs::read_dir(self.folder.join("workspace"))? {
            let entry = entry?;
            if entry.file_name() == "inputs" {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes what another tool made and knows.
    pub fn clear_made(&self, tool: &str, knows: &[&str]) -> Result<()> {
        let total = format!("{MADE}/{tool}.txt");
        for path in knows.iter().copied().chain([total.as_str()]) {
            let path = self.folder.join(path);
            if path.is_dir() {
                fs::remove_dir_all(path)?;
            } else if path.exists() {
                fs::remove_file(path)?;
            }
        }
        let made = self.made(tool);
        if made.exists() {
            fs::remove_dir_all(&made)?;
        }
        Ok(fs::create_dir_all(made)?)
    }

    fn write_ninja(&self) -> Result<()> {
        for tool in ["ninja", "n2"] {
            let mut file = BufWriter::new(File::create(self.folder.join(format!("{tool}.build")))?);
            write!(
                file,
                "rule cp\n command = cp $in $out\nrule sum\n command = xargs cat < {tool}.rsp | wc -c > $out\n \
                 rspfile = {tool}.rsp\n rspfile_content = $in_newline\n"
            )?;
            for item in (0..self.batches).map(name) {
                writeln!(
                    file,
                    "build {MADE}/{tool}/{item}.json: cp workspace/inputs/items/{item}.json"
                )?;
            }
            write!(file, "build {MADE}/{tool}.txt: sum")?;
            for item in (0..self.batches).map(name) {
                write!(file, " {MADE}/{tool}/{item}.json")?;
            }
            writeln!(file, "\ndefault {MADE}/{tool}.txt")?;
            file.flush()?;
        }
        Ok(())
    }

    fn write_dvc(&self) -> Result<()> {
        let mut file = BufWriter::new(File::create(self.folder.join("dvc.yaml"))?);
        writeln!(file, "stages:\n  copy:\n    foreach:")?;
        for item in (0..self.batches).map(name) {
            writeln!(file, "    - {item}")?;
        }
        let from = "workspace/inputs/items/${item}.json";
        let to = format!("{MADE}/dvc/${{item}}.json");
        writeln!(
            file,
            "    do:\n      cmd: cp {from} {to}\n      deps: [{from}]\n      outs: [{{{to}: {{cache: false}}}}]\n  sum:\n    \
             cmd: find {MADE}/dvc -name '*.json' | xargs cat | wc -c > {MADE}/dvc.txt\n    deps: [{MADE}/dvc]\n    \
             outs: [{{{MADE}/dvc.txt: {{cache: false}}}}]"
        )?;
        Ok(file.flush()?)
    }
}

/// An item's name, the same length for all.
fn name(item: usize) -> String {
    format!("item_{item:07}")
}

const SUM: &str = "[inputs]\nresults = \"intermediate/results/*.json\"\n\n[step]\n\
    jq = '{count: ($results | length), sum: ([$results[].value] | add)}'\n\n[outputs]\n\
    total = { path = \"outputs/total.json\" }\n";

/// What each result is validated by.
const RESULT: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "required": ["id", "value", "text"],
  "properties": {
    "id": {"type": "string", "pattern": "^item_[0-9]+$"},
    "value": {"type": "integer", "minimum": 0},
    "text": {"type": "string", "minLength": 1}
  },
  "additionalProperties": false
}
"#;

/// What the aggregate is validated by.
const TOTAL: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "required": ["count", "sum"],
  "properties": {"count": {"type": "integer"}, "sum": {"type": "number"}}
}
"#;

const MAKEFILE: &str = "IN := $(wildcard workspace/inputs/items/*.json)\n\
    OUT := $(IN:workspace/inputs/items/%=made/make/%)\n\n\
    made/make.txt: $(OUT)\n\tfind made/make -name '*.json' | xargs cat | wc -c > $@\n\n\
    made/make/%.json: workspace/inputs/items/%.json\n\tcp $< $@\n";

const SNAKEFILE: &str = "ITEMS, = glob_wildcards(\"workspace/inputs/items/{item}.json\")\n\n\
    rule sum:\n    input: expand(\"made/snakemake/{item}.json\", item=ITEMS)\n    output: \"made/snakemake.txt\"\n    \
    shell: \"find made/snakemake -name '*.json' | xargs cat | wc -c > {output}\"\n\n\
    rule copy:\n    input: \"workspace/inputs/items/{item}.json\"\n    output: \"made/snakemake/{item}.json\"\n    \
    shell: \"cp {input} {output}\"\n";
