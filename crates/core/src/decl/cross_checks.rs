//! Checks across stages: every file has one writer, and only later stages read it.

use crate::base::glob::{is_pattern, may_meet};
use crate::base::path::{RelPath, Root};
use crate::base::reserved::reserved;
use crate::decl::problem::{Problem, Report, SourceFile};
use crate::decl::project::Project;
use crate::expr::place::nearest;
use crate::model::stage::{PathTemplate, Stage};
use serde_json::Value;
use std::ops::Range;

/// A stage as far as it could be read.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) file: SourceFile,
    pub(crate) number: u32,
    pub(crate) name: String,
    /// The stage, if it has no mistakes.
    pub(crate) stage: Option<Stage>,
    /// The paths that it writes.
    pub(crate) writes: Vec<Written>,
    /// The paths that it reads.
    pub(crate) reads: Vec<Read>,
    /// The progress file, and the place of its declaration; the place is empty if the stage uses the default.
    pub(crate) progress: Option<(RelPath, Range<usize>)>,
    /// True if all its outputs could be read.
    pub(crate) names_its_outputs: bool,
}

/// A path that a stage writes.
#[derive(Debug)]
pub(crate) struct Written {
    /// The description for messages: "output `parsed`".
    pub(crate) what: String,
    pub(crate) path: PathTemplate,
    /// Where it is declared.
    pub(crate) span: Range<usize>,
}

/// A path that a stage reads.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) path: PathTemplate,
    /// Where it is declared.
    pub(crate) span: Range<usize>,
    /// Absent is allowed.
    pub(crate) is_optional: bool,
    /// Someone else writes it while the stage runs.
    pub(crate) is_awaited: bool,
}

impl Draft {
    /// Creates a draft of a stage of which only the file, number and name are known.
    pub(crate) fn new(file: SourceFile, number: u32, name: &str) -> Self {
        Self {
            file,
            number,
            name: name.to_owned(),
            stage: None,
            writes: Vec::new(),
            reads: Vec::new(),
            progress: None,
            names_its_outputs: false,
        }
    }
}

/// Checks all stages against one another. `near_file` finds the project's file that is most likely meant.
pub(crate) fn check(
    report: &mut Report,
    project: &Project,
    drafts: &[Draft],
    exists: &dyn Fn(&str) -> bool,
    near_file: &dyn Fn(&RelPath) -> Option<String>,
) {
    check_places(report, project, drafts);
    check_twice(report, drafts);
    check_batches(report, drafts);
    let all = All {
        project,
        drafts,
        exists,
        near_file,
    };
    for draft in drafts {
        for read in &draft.reads {
            report_some(report, all.wrong_read(draft, read));
        }
    }
}

fn report_some(report: &mut Report, problem: Option<Problem>) {
    if let Some(problem) = problem {
        report.add(problem);
    }
}

/// Outputs at places that are Milepost's own.
fn check_places(report: &mut Report, project: &Project, drafts: &[Draft]) {
    for draft in drafts {
        for written in &draft.writes {
            let pattern = written.path.pattern();
            let owner = if pattern == ".milepost" || pattern.starts_with(".milepost/") {
                Some("`.milepost/` holds Milepost's own files".to_owned())
            } else if pattern == "manifests" || pattern.starts_with("manifests/") {
                Some("`manifests/` holds the lists of outputs".to_owned())
            } else if may_meet(&pattern, "stage_*_complete.json") {
                Some("`stage_N_complete.json` is the checkpoint of a stage".to_owned())
            } else {
                let progress = drafts.iter().find(|other| {
                    other
                        .progress
                        .as_ref()
                        .is_some_and(|(path, _)| may_meet(&pattern, path.as_str()))
                });
                let param = project.params.iter().find(|param| {
                    param
                        .file
                        .as_ref()
                        .is_some_and(|file| may_meet(&pattern, file.path.as_str()))
                });
                progress
                    .map(|other| format!("it is the progress file of the stage `{}`", other.name))
                    .or_else(|| {
                        param.map(|param| {
                            format!("it is the file of the parameter `{}`", param.name)
                        })
                    })
            };
            if let Some(owner) = owner {
                let problem = draft.file.problem(
                    written.span.clone(),
                    format!("a stage cannot write `{}`", written.path.text),
                );
                report.add(
                    problem.label(owner).help(
                        "choose another path, such as one under `intermediate/` or `outputs/`",
                    ),
                );
            }
        }
    }
}

/// Two that write one path.
fn check_twice(report: &mut Report, drafts: &[Draft]) {
    let all: Vec<(&Draft, &Written)> = drafts
        .iter()
        .flat_map(|draft| draft.writes.iter().map(move |written| (draft, written)))
        .collect();
    for (at, (draft, written)) in all.iter().enumerate() {
        let pattern = written.path.pattern();
        for (other_draft, other) in &all[..at] {
            let other_pattern = other.path.pattern();
            let meet = may_meet(&pattern, &other_pattern);
            let is_plain = !is_pattern(&pattern) && !is_pattern(&other_pattern);
            // The scan of a stage compares the files of its batches.
            let nest = (is_plain || !std::ptr::eq(*draft, *other_draft))
                && (holds(&pattern, &other_pattern) || holds(&other_pattern, &pattern));
            let differ = || !may_meet(&pattern.to_lowercase(), &other_pattern.to_lowercase());
            if !meet && !nest && differ() {
                continue;
            }
            let message = match (meet, pattern == other_pattern && is_plain) {
                _ if nest => format!(
                    "of `{}` and `{}`, one is a file and the other is in it",
                    written.path.text, other.path.text
                ),
                (true, true) => format!("two outputs are written to `{}`", written.path.text),
                (true, false) => format!(
                    "`{}` and `{}` can be the same file",
                    written.path.text, other.path.text
                ),
                (false, _) => format!(
                    "`{}` and `{}` differ only in case",
                    written.path.text, other.path.text
                ),
            };
            let label = format!("{} of the stage `{}`", written.what, draft.name);
            let also = format!("{} of the stage `{}`", other.what, other_draft.name);
            let problem = draft
                .file
                .problem(written.span.clone(), message)
                .label(label);
            report.add(
                problem
                    .also(&other_draft.file, other.span.clone(), also)
                    .help("each file has one writer: give one of them another path"),
            );
            break;
        }
    }
    for (at, draft) in drafts.iter().enumerate() {
        let Some((progress, span)) = &draft.progress else {
            continue;
        };
        let other = drafts[..at].iter().find(|other| {
            other
                .progress
                .as_ref()
                .is_some_and(|(path, _)| path == progress)
        });
        if let Some(other) = other {
            let problem = draft.file.problem(
                span.clone(),
                format!(
                    "the stages `{}` and `{}` have one progress file, `{progress}`",
                    other.name, draft.name
                ),
            );
            report.add(problem.help("declare another `progress` file for one of them"));
        }
    }
}

/// Returns true if the second path leads through a file at the first one.
fn holds(file: &str, inside: &str) -> bool {
    let inside = inside.to_lowercase();
    let inside = inside.strip_prefix(&file.to_lowercase());
    inside.is_some_and(|rest| rest.starts_with('/'))
}

/// Batches of one stage that would all write the same file.
fn check_batches(report: &mut Report, drafts: &[Draft]) {
    for draft in drafts {
        let Some(stage) = &draft.stage else { continue };
        for written in &draft.writes {
            let named = written.path.template.names();
            let missing = stage.each.iter().find(|each| {
                !named
                    .iter()
                    .any(|dotted| dotted.split('.').next() == Some(each.name.as_str()))
            });
            if let Some(each) = missing {
                let part = each.distinguishing();
                let problem = draft.file.problem(
                    written.span.clone(),
                    format!(
                        "all batches of the stage would write `{}`",
                        written.path.text
                    ),
                );
                let problem = problem.label(format!("it is the same for every `{}`", each.name));
                report.add(problem.help(format!("put its name into the path: {{{{ {part} }}}}")));
            }
        }
    }
}

struct All<'a> {
    project: &'a Project,
    drafts: &'a [Draft],
    exists: &'a dyn Fn(&str) -> bool,
    near_file: &'a dyn Fn(&RelPath) -> Option<String>,
}

impl All<'_> {
    fn wrong_read(&self, draft: &Draft, read: &Read) -> Option<Problem> {
        let pattern = self.pattern(&read.path)?;
        let path = RelPath::parse(&pattern).ok();
        let progress = |path: &RelPath| {
            let of = |other: &&Draft| other.progress.as_ref().is_some_and(|(at, _)| at == path);
            let other = self.drafts.iter().find(of);
            let other = other.filter(|_| read.path.root == Root::Workspace)?;
            Some(format!("the progress file of the stage `{}`", other.name))
        };
        let owner = |path| match reserved(read.path.root, &path) {
            Some(owner) => Some(owner.to_owned()),
            None => progress(&path),
        };
        if let Some(owner) = path.and_then(owner) {
            let message = format!("a stage cannot read `{}`", read.path.text);
            let problem = draft.file.problem(read.span.clone(), message);
            return Some(problem.label(format!("it is {owner}")));
        }
        if read.path.root == Root::Project {
            return self.wrong_project_read(draft, read, &pattern);
        }
        let writers: Vec<(&Draft, &Written)> = self
            .drafts
            .iter()
            .flat_map(|other| other.writes.iter().map(move |written| (other, written)))
            .filter(|(_, written)| may_meet(&pattern, &written.path.pattern()))
            .collect();
        // a path with a template is one file: when an earlier stage can have written it, that is the one
        let is_one = read.path.text.contains("{{") && !read.path.text.contains('*');
        if is_one && writers.iter().any(|(other, _)| other.number < draft.number) {
            return None;
        }
        let problem = |message: String| draft.file.problem(read.span.clone(), message);
        if let Some((_, written)) = writers
            .iter()
            .find(|(other, _)| other.name == draft.name && other.number == draft.number)
        {
            let message = format!("the stage `{}` reads its own output", draft.name);
            let help = "a stage reads what stages with a smaller number write; steps of one stage pass files on by `out`";
            return Some(
                problem(message)
                    .label(format!("this is its {}", written.what))
                    .also(&draft.file, written.span.clone(), "written here")
                    .help(help),
            );
        }
        if let Some((other, written)) = writers
            .iter()
            .find(|(other, _)| other.number >= draft.number)
        {
            let message = format!(
                "the stage `{}` reads what the later stage `{}` writes: a cycle",
                draft.name, other.name
            );
            let help = "a stage reads only what stages with a smaller number write: renumber them, or read something else";
            return Some(
                problem(message)
                    .label(format!("this can be its {}", written.what))
                    .also(&other.file, written.span.clone(), "written here")
                    .help(help),
            );
        }
        if !writers.is_empty() || read.is_awaited || self.is_put_there(&pattern) {
            return None;
        }
        if !read.path.text.contains("{{") && (self.exists)(&pattern) {
            let what = if is_pattern(&pattern) {
                "files that it matches"
            } else {
                "a file of this name"
            };
            let message = format!("no stage writes `{pattern}`, but the project has {what}");
            let help = format!("files of the project have a prefix: write \"project:{pattern}\"");
            return Some(
                problem(message)
                    .label("this is a path in the workspace")
                    .help(help),
            );
        }
        let is_told = self.drafts.iter().all(|draft| draft.names_its_outputs);
        (is_told && self.is_written_beside(&pattern))
            .then(|| self.no_writer(draft, read, &pattern))?
    }

    /// Returns the workspace's path with each `{{ }}` as `*`; for a parameter alone what that is by default. None: anything.
    fn pattern(&self, path: &PathTemplate) -> Option<String> {
        if !path.is_whole() {
            return Some(path.pattern());
        }
        let inner = path
            .text
            .trim_start_matches("{{")
            .trim_end_matches("}}")
            .trim();
        let name = inner.strip_prefix("params.")?;
        let param = self
            .project
            .params
            .iter()
            .find(|param| param.name == name)?;
        match &param.default {
            Value::String(text) if !text.contains("{{") => Some(text.clone()),
            _ => None,
        }
    }

    fn wrong_project_read(&self, draft: &Draft, read: &Read, pattern: &str) -> Option<Problem> {
        if is_pattern(pattern) || read.is_optional || read.is_awaited || (self.exists)(pattern) {
            return None;
        }
        let problem = draft.file.problem(
            read.span.clone(),
            format!("there is no `{pattern}` in the project"),
        );
        let near = RelPath::parse(pattern)
            .ok()
            .and_then(|path| (self.near_file)(&path));
        Some(
            problem
                .label("no such file")
                .maybe_help(near.map(|near| format!("did you mean `project:{near}`?"))),
        )
    }

    /// Returns true if people put files there: under `inputs/`, or where a parameter's file lies.
    fn is_put_there(&self, pattern: &str) -> bool {
        let folder = top(pattern);
        let meets = |path: &RelPath| may_meet(pattern, path.as_str());
        folder == "inputs"
            || folder.contains('*')
            || self
                .project
                .params
                .iter()
                .any(|param| param.file.as_ref().is_some_and(|file| meets(&file.path)))
    }

    /// Returns true if stages write into the same top folder: then people do not.
    fn is_written_beside(&self, pattern: &str) -> bool {
        let folder = top(pattern);
        self.drafts
            .iter()
            .flat_map(|draft| &draft.writes)
            .any(|written| top(&written.path.pattern()) == folder)
    }

    fn no_writer(&self, draft: &Draft, read: &Read, pattern: &str) -> Option<Problem> {
        let outputs: Vec<(String, &Draft)> = self
            .drafts
            .iter()
            .filter(|other| other.number < draft.number)
            .flat_map(|other| {
                other
                    .writes
                    .iter()
                    .map(move |written| (written.path.pattern(), other))
            })
            .collect();
        let near = nearest(pattern, outputs.iter().map(|(text, _)| text.as_str()))
            .or_else(|| beside(pattern, &outputs))
            .and_then(|near| outputs.iter().find(|(text, _)| text == near));
        if !pattern.contains('/') && near.is_none() {
            // beside the outputs of stages people may well put a file into the workspace itself
            return None;
        }
        let message = if is_pattern(pattern) {
            format!(
                "no stage before `{}` writes anything that `{}` matches",
                draft.name, read.path.text
            )
        } else {
            format!(
                "no stage before `{}` writes `{}`",
                draft.name, read.path.text
            )
        };
        let help = match near {
            Some((text, other)) => format!("did you mean `{text}` of the stage `{}`?", other.name),
            None => "files that people provide belong in `inputs/`".to_owned(),
        };
        Some(
            draft
                .file
                .problem(read.span.clone(), message)
                .label("no stage writes this")
                .help(help),
        )
    }
}

/// Returns the first folder of a path; empty for a file of the workspace's own folder.
fn top(path: &str) -> String {
    path.split_once('/')
        .map_or(String::new(), |(top, _)| top.to_lowercase())
}

/// An output of the same folder, or else of the same name.
fn beside<'a>(pattern: &str, outputs: &'a [(String, &Draft)]) -> Option<&'a str> {
    let split = |path: &str| {
        path.rsplit_once('/')
            .map_or((String::new(), path.to_owned()), |(folder, name)| {
                (folder.to_owned(), name.to_owned())
            })
    };
    let (folder, name) = split(pattern);
    let names = outputs.iter().map(|(text, _)| text.as_str());
    names
        .clone()
        .find(|text| split(text).1 == name)
        .or_else(|| names.clone().find(|text| split(text).0 == folder))
}
