//! Reads `[executor]` of the project, and `executor` and `[resources]` of a stage.

use crate::base::duration::parse_duration;
use crate::base::size::parse_size;
use crate::decl::keys::{COMMAND, EXECUTOR, MORE, Need, RESOURCES, TableSpec, ValueKind};
use crate::decl::tables::fields::Fields;
use crate::decl::tables::tree::{TomlNode, Val};
use crate::decl::values::reader::ValueReader;
use crate::expr::place::{listed, nearest};
use crate::expr::template::Template;
use crate::model::executor::{
    CommandExecutor, ExecutorName, Executors, JobSettings, MoreResources, Resources,
};
use crate::model::stage::Stage;
use std::sync::Arc;
use std::time::Duration;

/// The names that the commands of `[executor.command]` see, the one that each needs first.
const SUBMIT: &[&str] = &[
    "script",
    "name",
    "output",
    "jobs",
    "last",
    "at_once",
    "cpus",
    "memory_mb",
    "seconds",
];
const POLL: &[&str] = &["ids"];
const CANCEL: &[&str] = &["id"];
const FIND: &[&str] = &["name"];

/// Reads `[executor]`; it may be missing.
pub(crate) fn read(reader: &mut ValueReader<'_>, top: &Fields<'_>) -> Executors {
    let mut executors = Executors::default();
    let all = top.table("executor", &EXECUTOR, &mut reader.report);
    for key in EXECUTOR.keys {
        let (Ok(name), ValueKind::Table(spec)) = (key.name.parse(), key.kind) else {
            continue;
        };
        let fields = all
            .as_ref()
            .and_then(|all| all.table(key.name, spec, &mut reader.report));
        let settings = match &fields {
            Some(fields) => settings(reader, fields, spec),
            // A scheduler without required keys needs no table.
            None if spec.keys.iter().all(|key| key.need != Need::Required) => {
                JobSettings::default()
            }
            None => continue,
        };
        if std::ptr::eq(spec, &raw const COMMAND) {
            executors.command = fields.and_then(|fields| commands(reader, &fields));
            if executors.command.is_none() {
                continue;
            }
        }
        executors.jobs.insert(name, settings);
    }
    executors
}

/// Reads the commands of `[executor.command]`; `None` if one is missing or wrong.
fn commands(reader: &mut ValueReader<'_>, fields: &Fields<'_>) -> Option<CommandExecutor> {
    let mut command = |key, names| command(reader, fields, key, names);
    let (submit, poll) = (command("submit", SUBMIT), command("poll", POLL));
    let (cancel, find) = (command("cancel", CANCEL), command("find", FIND));
    if let (Some(submit), Some(spot)) = (&submit, fields.spot("find"))
        && !submit.names().contains("name")
    {
        let problem =
            spot.problem("`submit` does not use `name`, by which `find` finds jobs".to_owned());
        let help = "write `{{ name }}` in `submit` where it takes the name of the jobs";
        reader.report.add(problem.help(help));
    }
    let index = variable(reader, fields);
    Some(CommandExecutor {
        submit: submit?,
        poll: poll?,
        cancel: cancel?,
        find,
        index: index?,
    })
}

fn settings(reader: &mut ValueReader<'_>, fields: &Fields<'_>, spec: &TableSpec) -> JobSettings {
    let text = |key: &str| fields.text(key).map(|(text, _)| text.to_owned());
    let plain = spec
        .keys
        .iter()
        .filter(|key| matches!(key.kind, ValueKind::Plain));
    let texts = plain.filter_map(|key| Some((key.name, text(key.name)?)));
    let defaults = JobSettings::default();
    let number = |key: &str, default: u64| fields.integer(key).unwrap_or(default);
    JobSettings {
        texts: texts.collect(),
        setup: lines(fields.get("setup")),
        options: lines(fields.get("options")),
        batches_per_job: number("batches_per_job", defaults.batches_per_job),
        max_jobs: number("max_jobs", defaults.max_jobs),
        max_array_size: number("max_array_size", defaults.max_array_size),
        poll: duration(reader, fields, "poll_interval").unwrap_or(defaults.poll),
        visible: duration(reader, fields, "visible").unwrap_or(defaults.visible),
        program: text("program"),
        resources: resources_in(reader, fields),
    }
}

/// Reads a string, or a list of strings.
fn lines(node: Option<&TomlNode>) -> Vec<String> {
    let items = match node.map(|node| &node.value) {
        Some(Val::List(items)) => items.iter().filter_map(TomlNode::text).collect(),
        Some(Val::Text(text)) => vec![text.as_str()],
        _ => Vec::new(),
    };
    items.into_iter().map(str::to_owned).collect()
}

fn duration(reader: &mut ValueReader<'_>, fields: &Fields<'_>, key: &str) -> Option<Duration> {
    let spot = fields.spot(key)?;
    let read = match parse_duration(spot.text) {
        Ok(duration) if duration.is_zero() => {
            Err(format!("`{key}` must be a duration of more than 0"))
        }
        Ok(duration) => return Some(duration),
        Err(error) => Err(error.to_string()),
    };
    read.map_err(|message| reader.report.add(spot.problem(message)))
        .ok()
}

/// Reads the name of an environment variable, which becomes a part of a script.
fn variable(reader: &mut ValueReader<'_>, fields: &Fields<'_>) -> Option<String> {
    let spot = fields.spot("index")?;
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_name = spot.text.starts_with(is_letter)
        && spot
            .text
            .chars()
            .all(|c| is_letter(c) || c.is_ascii_digit());
    if !is_name {
        let message = format!("`{}` is not the name of an environment variable", spot.text);
        let problem = spot.problem(message);
        let label = "expected letters, digits and `_`, such as \"PBS_ARRAY_INDEX\"";
        reader.report.add(problem.label(label));
    }
    is_name.then(|| spot.text.to_owned())
}

/// Reads a command of `[executor.command]`. Without the first of its names it cannot do its work.
fn command(
    reader: &mut ValueReader<'_>,
    fields: &Fields<'_>,
    key: &str,
    names: &[&str],
) -> Option<Arc<Template>> {
    let spot = fields.spot(key)?;
    let template = match Template::compile(key, spot.text) {
        Ok(template) => template,
        Err(error) => {
            reader.report.add(spot.problem(error.message));
            return None;
        }
    };
    for name in template.names() {
        if !names.contains(&name.as_str()) {
            let help = match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("available: {}", listed(names.iter().copied())),
            };
            let problem = spot.problem(format!("`{name}` is not available in `{key}`"));
            reader.report.add(problem.label("unknown name").help(help));
            return None;
        }
    }
    if let Some(needed) = names
        .first()
        .filter(|name| !template.names().contains(**name))
    {
        let problem = spot.problem(format!("`{key}` does not use `{needed}`"));
        let help = format!("write `{{{{ {needed} }}}}` where the command takes it");
        reader.report.add(problem.help(help));
        return None;
    }
    reader.script(&spot);
    Some(Arc::new(template))
}

/// Reads `[resources]` of a stage; it may be missing.
pub(crate) fn resources(reader: &mut ValueReader<'_>, top: &Fields<'_>) -> Resources {
    match top.table("resources", &RESOURCES, &mut reader.report) {
        Some(fields) => resources_in(reader, &fields),
        None => Resources::default(),
    }
}

fn resources_in(reader: &mut ValueReader<'_>, fields: &Fields<'_>) -> Resources {
    let memory = fields.spot("memory").and_then(|spot| {
        let size = parse_size(spot.text);
        size.map_err(|error| reader.report.add(spot.problem(error.to_string())))
            .ok()
    });
    let retry = fields.table("retry", &MORE, &mut reader.report);
    let retry = retry.map(|fields| MoreResources {
        memory: factor(reader, &fields, "memory"),
        time: factor(reader, &fields, "time"),
        attempts: fields
            .integer("attempts")
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(2),
    });
    Resources {
        cpus: fields.integer("cpus"),
        memory,
        time: duration(reader, fields, "time"),
        retry,
    }
}

/// Reads a factor such as `x2`; 1 if it is missing.
fn factor(reader: &mut ValueReader<'_>, fields: &Fields<'_>, key: &str) -> f64 {
    let Some(spot) = fields.spot(key) else {
        return 1.0;
    };
    let number = spot.text.strip_prefix('x').map(str::parse::<f64>);
    match number {
        Some(Ok(factor)) if (1.0..=100.0).contains(&factor) => factor,
        _ => {
            let problem = spot.problem(format!("`{}` is not a valid factor", spot.text));
            reader
                .report
                .add(problem.label("expected `x` and a number from 1 to 100, such as \"x2\""));
            1.0
        }
    }
}

/// Reads `executor` of a stage.
pub(crate) fn executor(top: &Fields<'_>) -> Option<ExecutorName> {
    top.text("executor")?.0.parse().ok()
}

/// Reports an executor that the stage cannot use, or that the project does not declare.
pub(crate) fn check(
    reader: &mut ValueReader<'_>,
    top: &Fields<'_>,
    executors: &Executors,
    stage: &Stage,
) {
    let (Some(name), Some(spot)) = (stage.executor, top.spot("executor")) else {
        return;
    };
    if name == ExecutorName::LOCAL {
        return;
    }
    if let Some(why) = stage.stays_local() {
        let problem = spot.problem(format!("the stage cannot run on `{name}`"));
        let help = "remove `executor`: the stage runs on the machine of the runner";
        reader.report.add(problem.label(why).help(help));
    } else if executors.settings(name).is_none() {
        let problem = spot.problem(format!("the project has no `[executor.{name}]`"));
        let help = format!("declare it in milepost.toml: [executor.{name}]");
        let label = "not declared in milepost.toml";
        reader.report.add(problem.label(label).help(help));
    }
}
