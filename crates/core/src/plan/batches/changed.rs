//! The batches of a stage that changed files concern, found without the records of its other batches.

use crate::base::glob::{Glob, may_meet};
use crate::base::path::{FilePath, Root};
use crate::base::safe_name::component;
use crate::model::fingerprint::FactKind;
use crate::model::pipeline::Pipeline;
use crate::model::record::BatchRecord;
use crate::model::stage::{Each, EachSource, Input, InputSource, PathTemplate, Stage};
use crate::plan::batches::expand::{Batch, BatchItem};
use crate::plan::{facts, lineage};

/// Returns true if the records that name changed files are all that a scan of the stage needs. Lists of files, and the files of
/// earlier stages' batches, are as before; `renamed`: those of batches are not.
pub fn needs_few(pipeline: &Pipeline, stage: &Stage, renamed: bool) -> bool {
    let is_written = |path: &PathTemplate| {
        path.root == Root::Workspace
            && !lineage::writers(pipeline, stage, &path.pattern()).is_empty()
    };
    let is_item = |each: &Each| match &each.source {
        EachSource::Path(path) => {
            each.key.is_none() && !path.is_whole() && !(renamed && is_written(path))
        }
        _ => false,
    };
    let is_path_of_item = |path: &PathTemplate| {
        let mut each = stage.each.iter();
        each.any(|each| {
            path.template
                .names()
                .iter()
                .eq([&format!("{}.path", each.name)])
        })
    };
    // A pattern over what stages write is answered by all records. A whole value may be such a pattern.
    let is_known = |path: &PathTemplate| {
        (!path.is_pattern() || !is_written(path)) && (!path.is_whole() || is_path_of_item(path))
    };
    let is_plain = |input: &Input| match &input.source {
        InputSource::Path(path) => is_known(path) && !input.earlier,
        InputSource::From { .. } => false,
    };
    let outputs = || {
        stage
            .outputs
            .iter()
            .map(|output| &output.path)
            .chain(&stage.marker)
    };
    // The path of a batch that is rebuilt can be that of another batch if it names the run.
    stage.each.len() <= 1
        && stage.each.iter().all(is_item)
        && stage.inputs.iter().all(is_plain)
        && stage.reads.iter().all(is_known)
        && !outputs().any(|path| path.is_pattern() || stage.names_run(path))
        && stage.refine.is_none()
        && stage.approve.is_none()
        && !facts::mentions_overrides(stage)
}

/// The batches of a stage whose records can name a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedBy {
    Nothing,
    /// Only the one with this key, if there is one.
    Batch(String),
    /// Perhaps any.
    Unclear,
}

/// Returns which records of a stage that [`needs_few`] can name a file. `pattern` is that of its `each`.
pub fn named_by(stage: &Stage, pattern: Option<&(Root, Glob)>, file: &FilePath) -> NamedBy {
    let (Some(each), Some((root, glob))) = (stage.each.first(), pattern) else {
        return NamedBy::Unclear;
    };
    // Arguments of programs can name files of the project.
    if file.root == Root::Project {
        return NamedBy::Unclear;
    }
    let name = file.path.as_str();
    let may_be = |path: &PathTemplate| path.root == file.root && may_meet(&path.pattern(), name);
    let item = format!("{}.path", each.name);
    let is_item = |path: &PathTemplate| path.is_whole() && path.template.names().iter().eq([&item]);
    let inputs = stage.inputs.iter().filter_map(|input| match &input.source {
        InputSource::Path(path) => Some(path),
        InputSource::From { .. } => None,
    });
    let mut others = inputs.chain(&stage.reads).filter(|path| !is_item(path));
    if others.any(may_be) {
        return NamedBy::Unclear;
    }
    let mut keys = Vec::new();
    if file.root == *root && glob.matches(&file.path) {
        keys.push(file.path.stem().to_owned());
    }
    let outputs = stage.outputs.iter().map(|output| &output.path);
    for path in outputs.chain(&stage.marker).filter(|path| may_be(path)) {
        match key_of(&path.shown(), &format!("{}.stem", each.name), name) {
            Some(key) => keys.push(key),
            None => return NamedBy::Unclear,
        }
    }
    keys.dedup();
    match keys.as_slice() {
        [] => NamedBy::Nothing,
        [key] => NamedBy::Batch(key.clone()),
        _ => NamedBy::Unclear,
    }
}

/// Returns the value of a name in a rendered path that contains no other template; `None` if the path does not determine it.
fn key_of(path: &str, name: &str, rendered: &str) -> Option<String> {
    let (before, rest) = path.split_once("{{")?;
    let (inside, after) = rest.split_once("}}")?;
    if inside.trim() != name || after.contains("{{") {
        return None;
    }
    let key = rendered.strip_prefix(before)?.strip_suffix(after)?;
    // A marked component does not tell the value.
    (!key.contains('/') && component(key) == key).then(|| key.to_owned())
}

/// Returns true if a fact or an output of a record is one of these files.
pub fn names(record: &BatchRecord, has: &dyn Fn(&str) -> bool) -> bool {
    let mut facts = record.facts.iter();
    let mut outputs = record.outputs.iter();
    facts.any(|(key, _)| has(&key.name)) || outputs.any(|made| has(made.path.as_str()))
}

/// Returns the batch of a record of a stage that [`needs_few`]; `None` if its item is unclear. `pattern` is that of its `each`.
pub fn batch_of(
    stage: &Stage,
    pattern: Option<&(Root, Glob)>,
    record: &BatchRecord,
    position: u64,
) -> Option<Batch> {
    let inputs = record.facts.iter();
    let inputs = inputs.filter(|(key, _)| key.kind == FactKind::Input);
    let files: Vec<FilePath> = inputs
        .map(|(key, _)| key.name.parse().ok())
        .collect::<Option<_>>()?;
    let items = match (stage.each.first(), pattern) {
        (None, _) => Vec::new(),
        (Some(each), Some((root, glob))) => {
            let is_it = |file: &FilePath| {
                file.root == *root && glob.matches(&file.path) && file.path.stem() == record.key
            };
            let mut found = files.into_iter().filter(is_it);
            let file = found.next()?;
            if found.next().is_some() {
                return None;
            }
            vec![(each.name.clone(), BatchItem::File(file))]
        }
        (Some(_), None) => return None,
    };
    Some(Batch {
        key: record.key.clone(),
        position,
        items,
        refused: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_the_value_that_is_in_one_place_of_it() {
        for (path, rendered, key) in [
            (
                "outputs/{{ item.stem }}.json",
                "outputs/a_1.json",
                Some("a_1"),
            ),
            (
                "outputs/{{item.stem}}/x.json",
                "outputs/a/x.json",
                Some("a"),
            ),
            ("outputs/{{ item.stem }}.json", "outputs/a/b.json", None),
            ("outputs/{{ item.stem }}.json", "outputs/a.csv", None),
            (
                "outputs/{{ item.stem | upper }}.json",
                "outputs/A.json",
                None,
            ),
            (
                "outputs/{{ item.stem }}_{{ item.stem }}.json",
                "outputs/a_a.json",
                None,
            ),
            (
                "outputs/{{ item.stem }}.json",
                "outputs/a_b~c14cddc033f64b9dea80ea67.json",
                None,
            ),
            ("outputs/all.json", "outputs/all.json", None),
        ] {
            let found = key_of(path, "item.stem", rendered);
            assert_eq!(found.as_deref(), key, "{path} {rendered}");
        }
    }
}
