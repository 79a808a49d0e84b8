//! Reads `stages/N_name.toml`: batches, inputs, steps, outputs, checks and policy.

mod canonical;
mod columns;
mod inputs_outputs;
mod policy;
mod refine;

use crate::base::path::RelPath;
use crate::decl::cross_checks::{Draft, Read, Written};
use crate::decl::keys;
use crate::decl::keys::{APPROVE, CHECK, CONSERVE, EACH, INPUT, OUTPUT, REQUIRE, STAGE};
use crate::decl::problem::SourceFile;
use crate::decl::project::{Project, errors};
use crate::decl::project::{executor, services};
use crate::decl::step;
use crate::decl::tables::fields::{self, Fields};
use crate::decl::tables::hints;
use crate::decl::tables::tree::{self, TomlKey, TomlNode, TomlTable, Val};
use crate::decl::values::names::{Sees, StageNames, check_name};
use crate::decl::values::reader::ValueReader;
use crate::expr::scope::Format;
use crate::expr::template::Template;
use crate::model::stage::{Check, Conserve, Each, Input, Output, PathTemplate, Program, Stage};
use crate::model::step::{ASSIGNMENT, Outputs, Part, Step};
use std::ops::Range;
use std::sync::Arc;

/// Reads a stage. If it has mistakes, the draft holds what could be read.
#[expect(clippy::too_many_lines)]
pub(crate) fn read(
    reader: &mut ValueReader<'_>,
    project: &Project,
    file: &SourceFile,
    number: u32,
    name: &str,
) -> Draft {
    let mut draft = Draft::new(file.clone(), number, name);
    let before = reader.report.count();
    let Some(tree) = tree::parse(file, &mut reader.report) else {
        return draft;
    };
    let top = fields::check(file, &mut reader.report, &STAGE, "", 0..0, &tree);
    let steps = step_tables(&top);
    let names = declared(reader, project, file, &top, &steps);
    let mut part = StageReader {
        reader,
        file,
        names: &names,
        draft: &mut draft,
    };

    let each: Vec<Each> = part.named(&top, "each", &EACH, StageReader::each);
    let inputs: Vec<Input> = part.named(&top, "inputs", &INPUT, StageReader::input);
    let outputs: Vec<Output> = part.named(&top, "outputs", &OUTPUT, StageReader::output);
    let requires = part.checks(&top, "require", &REQUIRE, Sees::Inputs);
    let checks = part.checks(&top, "check", &CHECK, Sees::All);
    let conserve = part.conserve(&top);
    let refine = part.refine(&top);
    let mut policy = part.policy(&top);
    let (memory, timeout) = part.limits(&top);
    policy.memory = memory;
    let approve = part.approve(&top);
    let estimate = part.estimate(&top);
    let summary = part.jq(&top, "summary", Sees::All);
    let verdict = part.jq(&top, "verdict", Sees::All);
    let marker = part.place(&top, "marker");
    if let (Some(path), Some((_, span))) = (&marker, top.text("marker")) {
        part.draft.writes.push(Written {
            what: "marker".to_owned(),
            path: path.clone(),
            span,
        });
    }
    let progress = part.progress(&top, name);
    let resources = executor::resources(part.reader, &top);
    let needed = services::needed(part.reader, file, &project.names, &top);
    let reads: Vec<PathTemplate> = steps
        .iter()
        .flat_map(|(table, _)| part.step_reads(table))
        .collect();
    let mut built = step::read(part.reader, project, file, &names, &steps, &outputs);
    if let Some((role, _)) = top.text("role") {
        for step in &mut built {
            step.role.get_or_insert_with(|| role.to_owned());
        }
    }
    if let Some(timeout) = timeout {
        let without = built.iter_mut().zip(&steps);
        for (step, _) in without.filter(|(_, (table, _))| table.get("timeout").is_none()) {
            step.timeout = Some(timeout.clone());
        }
    }
    let mut all_errors = project.errors.clone();
    all_errors.extend(errors(file, &mut part.reader.report, &top));
    draft.names_its_outputs = outputs.len() == names.outputs.len();
    let (Some(progress), Ok(rel)) = (progress, RelPath::parse(&file.name)) else {
        return draft;
    };
    if outputs.is_empty() && names.outputs.is_empty() && top.get("step").is_some() {
        reader.report.add(
            file.whole_problem("the stage has no outputs")
                .help("declare what it writes: [outputs] and below it NAME = \"path\"; nothing else shows that the stage ran"),
        );
    }
    if reader.report.count() > before {
        return draft;
    }
    let mut stage = Stage {
        name: name.to_owned(),
        number,
        file: rel,
        is_read: true,
        description: top.text("description").map(|(text, _)| text.to_owned()),
        progress,
        marker,
        services: needed,
        allow_partial: top.is_true("allow_partial"),
        summary,
        verdict,
        each,
        inputs,
        reads,
        steps: built,
        outputs,
        refine,
        conserve,
        requires,
        checks,
        policy,
        executor: executor::executor(&top),
        resources,
        approve,
        estimate,
        errors: all_errors,
        parts: std::collections::BTreeMap::new(),
    };
    executor::check(reader, &top, &project.executors, &stage);
    draft.reads.extend(awaited(&stage, &steps));
    let step_nodes: Vec<&TomlTable> = steps.iter().map(|(table, _)| *table).collect();
    stage.parts = canonical::of(&stage, &step_nodes);
    stage.outputs.extend(assignment(&stage));
    draft.stage = Some(stage);
    draft
}

/// Returns the files that steps wait for.
fn awaited(stage: &Stage, steps: &[(&TomlTable, Range<usize>)]) -> Vec<Read> {
    let mut reads = Vec::new();
    for (step, (table, _)) in stage.steps.iter().zip(steps) {
        for (key, part) in step.kind.parts() {
            let (Part::Awaited(path) | Part::AwaitedMarker(path)) = part else {
                continue;
            };
            reads.extend(table.get(key).map(|node| Read {
                path: path.clone(),
                span: node.span.clone(),
                is_optional: false,
                is_awaited: true,
            }));
        }
    }
    reads
}

/// Returns the name and path of the first output.
pub(crate) fn first_output<'a>(top: &Fields<'a>) -> Option<(&'a str, &'a str)> {
    let (key, node) = top.get("outputs")?.table()?.entries.first()?;
    let path = node.text().or_else(|| node.table()?.get("path")?.text())?;
    Some((key.name.as_str(), path))
}

/// Returns the output that `split` writes beside its batches: the assignment of questions to batches.
fn assignment(stage: &Stage) -> Option<Output> {
    let splits = |step: &&Step| step.kind.info().outputs == Outputs::Many;
    let batches = stage.output(&stage.steps.iter().find(splits)?.out)?;
    let text = match batches.path.text.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}.assignment.json"),
        None => "assignment.json".to_owned(),
    };
    let template = Template::compile("assignment", &text).ok()?;
    Some(Output {
        name: ASSIGNMENT.to_owned(),
        path: PathTemplate {
            root: batches.path.root,
            text,
            template: Arc::new(template),
            is_param: false,
        },
        schema: None,
        stream: None,
        format: Format::Json,
        columns: None,
        min: None,
        per_round: false,
    })
}

/// Returns the tables of `[step]` or `[[step]]`, with their headers' places.
fn step_tables<'a>(top: &Fields<'a>) -> Vec<(&'a TomlTable, Range<usize>)> {
    let Some(node) = top.get("step") else {
        return Vec::new();
    };
    match &node.value {
        Val::Table(table) => vec![(table, node.span.clone())],
        Val::List(list) => list
            .iter()
            .filter_map(|item| Some((item.table()?, item.span.clone())))
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns the names that a stage declares. Names that are already used or invalid are reported.
fn declared<'p>(
    reader: &mut ValueReader<'_>,
    project: &'p Project,
    file: &SourceFile,
    top: &Fields<'_>,
    steps: &[(&TomlTable, Range<usize>)],
) -> StageNames<'p> {
    let mut names = StageNames::of_project(&project.names);
    names.is_refined = top.get("refine").is_some();
    let entries = |key: &str| {
        top.get(key)
            .and_then(TomlNode::table)
            .map_or(&[][..], |table| &table.entries)
    };
    for (kind, key, node) in ["each", "inputs", "outputs"].iter().flat_map(|kind| {
        entries(kind)
            .iter()
            .map(move |(key, node)| (*kind, key, node))
    }) {
        if !check_name(file, &mut reader.report, key) {
            continue;
        }
        if let Some(what) = names.taken(&key.name) {
            let problem = file.problem(
                key.span.clone(),
                format!("the name `{}` is already used", key.name),
            );
            reader.report.add(
                problem
                    .label(format!("it is {what}"))
                    .help("the names of a stage share one scope: choose another"),
            );
            continue;
        }
        match kind {
            "each" => names.each.push((
                key.name.clone(),
                node.table()
                    .is_some_and(|table| table.get("path").is_some()),
            )),
            "inputs" => names.inputs.push(key.name.clone()),
            _ => names.outputs.push(key.name.clone()),
        }
    }
    for (table, _) in steps {
        let Some((text, node)) = table.get("out").and_then(|node| Some((node.text()?, node)))
        else {
            continue;
        };
        let key = TomlKey {
            span: node.span.clone(),
            name: text.to_owned(),
        };
        if names.outputs.contains(&key.name)
            || names.outs.contains(&key.name)
            || !check_name(file, &mut reader.report, &key)
        {
            continue;
        }
        match names.taken(text) {
            Some(what) => {
                let problem = file.problem(key.span, format!("the name `{text}` is already used"));
                reader.report.add(
                    problem
                        .label(format!("it is {what}"))
                        .help("`out` is the name of an output, or a new name"),
                );
            }
            None => names.outs.push(text.to_owned()),
        }
    }
    names
}

/// Reads the tables of a stage.
pub(crate) struct StageReader<'r, 'a, 'n> {
    pub(crate) reader: &'r mut ValueReader<'a>,
    pub(crate) file: &'r SourceFile,
    pub(crate) names: &'r StageNames<'n>,
    pub(crate) draft: &'r mut Draft,
}

impl StageReader<'_, '_, '_> {
    /// Reads each entry of a table of names.
    fn named<T>(
        &mut self,
        top: &Fields<'_>,
        key: &str,
        spec: &'static keys::TableSpec,
        read: fn(&mut Self, &TomlKey, &Fields<'_>) -> Option<T>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        let Some(table) = top.get(key).and_then(TomlNode::table) else {
            return found;
        };
        for (name, node) in &table.entries {
            let header = format!("[{key}.{}]", name.name);
            let short;
            let table = match (&node.value, spec.short) {
                (Val::Table(table), _) => table,
                (Val::Text(text), Some(stands_for)) => {
                    if let Some(help) = hints::slipped(&name.name, text, &format!("[{key}]")) {
                        let message = format!(
                            "`{}` here would be one of the stage's {key}, and {text:?} is not a path",
                            name.name
                        );
                        self.reader.report.add(
                            self.file
                                .problem(name.span.clone(), message)
                                .label("a name")
                                .help(help),
                        );
                        continue;
                    }
                    let inner = TomlKey {
                        span: name.span.clone(),
                        name: stands_for.to_owned(),
                    };
                    short = TomlTable {
                        entries: vec![(inner, node.clone())],
                    };
                    &short
                }
                (other, stands_for) => {
                    let wants = if stands_for.is_some() {
                        "a path, or a table"
                    } else {
                        "a table"
                    };
                    let problem = self.file.problem(
                        node.span.clone(),
                        format!("`{}` of `[{key}]` must be {wants}", name.name),
                    );
                    let problem = problem.label(format!("this is {}", other.described()));
                    let help = keys::STAGE
                        .key(&name.name)
                        .map_or_else(|| format!("write `{header}` and its keys below it"), |key_of_stage| {
                            format!("`{}` is a key of the stage itself: move it to the top of the file, above `[{key}]` and every other table", key_of_stage.name)
                        });
                    self.reader.report.add(problem.help(help));
                    continue;
                }
            };
            let fields = fields::check(
                self.file,
                &mut self.reader.report,
                spec,
                &header,
                name.span.clone(),
                table,
            );
            found.extend(read(self, name, &fields));
        }
        found
    }

    pub(crate) fn jq(&mut self, fields: &Fields<'_>, key: &str, sees: Sees) -> Option<Program> {
        let spot = fields.spot(key)?;
        self.reader.jq(&spot, self.names, sees)
    }

    fn progress(&mut self, top: &Fields<'_>, name: &str) -> Option<RelPath> {
        let (text, span) = top.text("progress").map_or_else(
            || (format!("{name}_progress.json"), 0..0),
            |(text, span)| (text.to_owned(), span),
        );
        let problem = match RelPath::parse(&text) {
            Ok(path) if path.as_str().contains(['{', '*']) => {
                "`progress` must be the name of one file".to_owned()
            }
            Ok(path) => {
                self.draft.progress = Some((path.clone(), span));
                return Some(path);
            }
            Err(error) => error.to_string(),
        };
        self.reader.report.add(self.file.problem(span, problem));
        None
    }

    /// Reads `[[check]]` or `[[require]]`.
    fn checks(
        &mut self,
        top: &Fields<'_>,
        key: &str,
        spec: &'static keys::TableSpec,
        sees: Sees,
    ) -> Vec<Check> {
        let list = top.get(key).and_then(TomlNode::list).unwrap_or_default();
        let mut checks = Vec::new();
        for node in list {
            let Some(table) = node.table() else { continue };
            let fields = fields::check(
                self.file,
                &mut self.reader.report,
                spec,
                spec.header,
                node.span.clone(),
                table,
            );
            let test = self.jq(&fields, "test", sees);
            let message = fields
                .spot("message")
                .and_then(|spot| self.reader.template(&spot, self.names, sees));
            let default = spec.key("error").map_or("", |key| key.default);
            let error = fields.text("error").map_or(default, |(text, _)| text);
            let error = error.to_owned();
            checks.extend(test.map(|test| Check {
                test,
                error,
                message,
            }));
        }
        checks
    }

    /// Returns the role of the person who approves.
    fn approve(&mut self, top: &Fields<'_>) -> Option<String> {
        let fields = top.table("approve", &APPROVE, &mut self.reader.report)?;
        fields.text("by").map(|(role, _)| role.to_owned())
    }

    fn conserve(&mut self, top: &Fields<'_>) -> Option<Conserve> {
        let fields = top.table("conserve", &CONSERVE, &mut self.reader.report)?;
        let mut side = |key: &str| {
            let spot = fields.spot(key)?;
            self.reader.select(&spot, Some(self.names))
        };
        let (input, output) = (side("in"), side("out"));
        Some(Conserve {
            input: input?,
            output: output?,
        })
    }
}
