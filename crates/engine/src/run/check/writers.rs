//! Checks that an input that a value names is neither a progress file nor an output of the stage itself or of a later one. Declared paths
//! are checked when declarations are read.

use milepost_core::base::glob::{Glob, escaped};
use milepost_core::base::path::Root;
use milepost_core::model::pipeline::Pipeline;
use milepost_core::model::stage::{InputSource, PathTemplate, Stage};
use milepost_core::plan::inputs::{Missed, Resolved};

/// The files that no input of a stage may be. Built once for a scan: a batch may have many inputs.
pub(super) struct Writers {
    /// The inputs that values name; empty for `reads`.
    named: Vec<String>,
    /// Patterns of the files, each with what they are.
    written: Vec<(Glob, String)>,
}

impl Writers {
    pub(super) fn of(pipeline: &Pipeline, stage: &Stage) -> Self {
        let is_named = |path: &PathTemplate| path.is_whole() && !stage.is_item(path);
        let inputs = stage.inputs.iter().filter(|input| match &input.source {
            InputSource::Path(path) => is_named(path),
            InputSource::From { .. } => true,
        });
        let inputs = inputs.map(|input| input.name.clone());
        let reads = stage.reads.iter().filter(|path| is_named(path));
        let named: Vec<String> = inputs.chain(reads.map(|_| String::new())).collect();
        let mut written = Vec::new();
        for other in pipeline.stages.iter().filter(|_| !named.is_empty()) {
            let progress = escaped(other.progress.as_str()).into_owned();
            let progress = (
                progress,
                format!("the progress file of stage `{}`", other.name),
            );
            let outputs = other.outputs.iter().map(|output| &output.path);
            let outputs = outputs.chain(&other.marker);
            let later = outputs.filter(|_| other.number >= stage.number);
            let later = later.map(|path| {
                let what = format!("an output of stage `{}`", other.name);
                (path.pattern(), what)
            });
            let all = later.chain([progress]);
            written.extend(all.filter_map(|(text, what)| Some((Glob::parse(&text).ok()?, what))));
        }
        Self { named, written }
    }

    /// Checks the inputs of a batch.
    ///
    /// # Errors
    /// The input and what it is.
    pub(super) fn check(&self, inputs: &[Resolved]) -> Result<(), Missed> {
        for input in inputs.iter().filter(|it| self.named.contains(&it.name)) {
            let mut files = input.files.iter();
            let found = files.find_map(|file| {
                let mut written = self.written.iter();
                let (_, what) = written.find(|(glob, _)| {
                    file.root == Root::Workspace && glob.matches_hidden(&file.path)
                })?;
                Some((file, what))
            });
            if let Some((file, what)) = found {
                let name = match input.name.as_str() {
                    "" => "`reads`".to_owned(),
                    name => format!("input `{name}`"),
                };
                return Err(Missed::from(format!(
                    "{name}: `{file}` is {what}, and a stage reads only what earlier stages write: copy the file to `inputs/`, or name another one"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::project::find::OnDisk;
    use milepost_core::base::path::{FilePath, RelPath};

    #[test]
    fn patterns_are_built_once_for_all_batches() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let place = folder.path().join(path);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, text).unwrap();
        };
        let stage = |top: &str, number: u32| {
            let text = format!(
                "{top}[step]\njq = '1'\n\n[outputs]\no = {{ path = \"out_{number}/x.json\", schema = false }}\n"
            );
            write(&format!("stages/{number}_s{number}.toml"), &text);
        };
        write("milepost.toml", "name = \"p\"\n");
        let named =
            "[inputs]\nd = { from = \"inputs/list.json\", select = '.[]', base = \"inputs\" }\n\n";
        stage(named, 1);
        (2..=6).for_each(|number| stage("", number));
        let found = milepost_core::decl::load(&OnDisk::new(folder.path()));
        let (pipeline, _) = found.map_err(|problems| problems.render(false)).unwrap();
        let writers = Writers::of(&pipeline, &pipeline.stages[0]);
        // Six outputs and six progress files for any number of inputs.
        assert_eq!(writers.written.len(), 12);
        assert_eq!(Writers::of(&pipeline, &pipeline.stages[1]).written.len(), 0);
        drop(pipeline);
        let file = |path: &str| FilePath::workspace(RelPath::parse(path).unwrap());
        let mut input = Resolved {
            name: "d".to_owned(),
            files: (0..4000).map(|n| file(&format!("inputs/{n}"))).collect(),
            many: true,
        };
        for _ in 0..10 {
            assert_eq!(writers.check(std::slice::from_ref(&input)), Ok(()));
        }
        input.files.push(file("out_6/x.json"));
        let why = writers.check(&[input]).unwrap_err().why;
        assert_eq!(
            why,
            "input `d`: `out_6/x.json` is an output of stage `s6`, and a stage reads only what earlier stages write: copy the file to `inputs/`, or name another one"
        );
    }
}
