//! The programs outside the project that the commands of a stage name.

use crate::expr::shell::{commands, run_by, script_of};
use crate::model::pipeline::Pipeline;
use crate::model::stage::Stage;
use crate::model::step::{CommandStep, StepKind};
use crate::plan::options::settings::Settings;
use serde_json::Value;

/// The variable with the folders of programs.
const PATH: &str = "PATH";

/// A program that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedProgram {
    /// An absolute path, or a name that is searched in `PATH`.
    pub name: String,
    /// The `PATH` that the step declares; `None` for that of Milepost.
    pub path: Option<String>,
}

/// Returns the programs that the commands of a stage start, and the absolute paths of scripts that are arguments of interpreters.
/// Names that depend on the batch are left out, and so are those of the project, which are inputs.
pub fn programs(stage: &Stage, pipeline: &Pipeline, settings: &Settings) -> Vec<NamedProgram> {
    let mut found = Vec::new();
    for step in &stage.steps {
        if let StepKind::Command(step) = &step.kind {
            let path = step.env.iter().any(|name| name == PATH);
            let path = path.then(|| settings.env.get(PATH).cloned()).flatten();
            for name in names(step, pipeline, settings) {
                let path = path.clone();
                found.push(NamedProgram { name, path });
            }
        }
    }
    found
}

fn names(step: &CommandStep, pipeline: &Pipeline, settings: &Settings) -> Vec<String> {
    let sources = step.arguments.iter().map(|argument| &*argument.source);
    let mut all = match (step.shell, sources.clone().next()) {
        (true, Some(source)) => commands(source),
        _ => {
            let script = script_of(sources.clone()).and_then(|at| step.arguments.get(at));
            let mut all = script.map_or(Vec::new(), |script| commands(&script.source));
            all.push(words(step, pipeline, settings));
            all
        }
    };
    all.retain(|words| {
        words
            .first()
            .is_some_and(|name| !BUILTINS.contains(&name.as_str()))
    });
    let mut names = Vec::new();
    for words in &all {
        let shown: Vec<&str> = words.iter().map(String::as_str).collect();
        let script = run_by(&shown).map(|at| shown[at]);
        let script = script.filter(|script| script.starts_with('/'));
        names.extend(script.map(str::to_owned));
        let name = shown[0];
        let is_outside = name.starts_with('/') || !name.contains(['/', ':']);
        if is_outside && !name.is_empty() {
            names.push(name.to_owned());
        }
    }
    names
}

/// Commands of a shell that are also programs.
const BUILTINS: [&str; 8] = [
    "[", "echo", "false", "kill", "printf", "pwd", "test", "true",
];

/// Returns the words of a command. One that depends on the batch is empty.
fn words(step: &CommandStep, pipeline: &Pipeline, settings: &Settings) -> Vec<String> {
    let scope = (step.arguments.iter())
        .any(|argument| argument.source.contains("{{"))
        .then(|| Value::Object(settings.scope(pipeline)));
    let rendered = step.arguments.iter().map(|argument| match &scope {
        Some(scope) => argument.template.render(scope).unwrap_or_default(),
        None => argument.source.clone(),
    });
    rendered.collect()
}
