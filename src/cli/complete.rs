//! Completion of command lines: commands and options, and the names of the project. Nothing is written or reported.

use super::args::{Cli, Everywhere};
use super::env::Environment;
use super::settings;
use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory as _};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use milepost_core::base::visible::visible;
use milepost_core::plan::options::invocation::shell_word;
use milepost_engine::ops::change::init::templates;
use milepost_engine::ops::inspect::names::{
    DeclaredNames, batch_names, output_names, project_names,
};
use milepost_engine::ops::project::{Request, stage_names};
use milepost_engine::ops::run::Values;
use milepost_engine::ops::schema;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

/// The variable that the registered scripts set to the name of their shell.
pub(crate) const VARIABLE: &str = "MILEPOST_COMPLETE";

/// The most batches or outputs that are offered.
const BATCHES: usize = 100;

/// Returns the script that registers completion in a shell.
///
/// # Errors
/// If it cannot be rendered.
pub(crate) fn script(
    shell: clap_complete::Shell,
    environment: &Environment,
) -> std::io::Result<String> {
    let program = environment
        .arguments
        .first()
        .map(PathBuf::from)
        .unwrap_or_default();
    // A name is looked up in PATH, a path is relative to the folder.
    let program = if program.components().count() > 1 {
        environment.folder.join(program)
    } else {
        program
    };
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(&shell.to_string()) {
        let program = program.to_string_lossy();
        shell.write_registration(VARIABLE, "milepost", "milepost", &program, &mut script)?;
    }
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Completes the command line that a registered script passes on.
pub(crate) fn complete(environment: &Environment) {
    let context = Arc::new(Context::new(environment));
    let factory = || {
        let cli = Cli::command().mut_args(|arg| completed(arg, "", &context));
        cli.mut_subcommands(|command| {
            let name = command.get_name().to_owned();
            command.mut_args(|arg| completed(arg, &name, &context))
        })
    };
    let words = environment.arguments.clone();
    // A shell has no place for an error.
    let _ = CompleteEnv::with_factory(factory)
        .var(VARIABLE)
        .try_complete(words, Some(&environment.folder));
}

/// Adds to an argument what completes it, by the kind of its value.
fn completed(arg: Arg, command: &str, context: &Arc<Context>) -> Arg {
    let kind = arg
        .get_value_names()
        .and_then(<[_]>::first)
        .map(ToString::to_string);
    let complete: fn(&Context, &str) -> Vec<CompletionCandidate> =
        match (command, arg.get_id().as_str(), kind.as_deref()) {
            (_, _, Some("STAGE[/BATCH]" | "STAGE/BATCH" | "STAGE[/BATCH]|PATH")) => Context::target,
            (_, _, Some("STAGE")) => Context::stage,
            (_, _, Some("KEY|FILE")) => Context::output,
            (_, _, Some("NAME=VALUE")) => Context::setting,
            (_, "unset", _) => Context::param,
            (_, _, Some("[NAME=]OTHER")) => Context::agent,
            ("init", "template", _) => |_, start| template(start),
            ("schema", "name", _) => |_, start| schema_name(start),
            ("help", _, Some("COMMAND")) => |_, start| command_name(start),
            _ => return arg,
        };
    let takes_path = kind.as_deref() == Some("STAGE[/BATCH]|PATH");
    let context = Arc::clone(context);
    arg.add(ArgValueCompleter::new(move |current: &OsStr| {
        let Some(text) = current.to_str() else {
            return Vec::new();
        };
        let mut candidates = complete(&context, text);
        if takes_path {
            candidates.extend(PathCompleter::any().complete(current));
        }
        candidates
    }))
}

/// The project that is completed for.
struct Context {
    request: Option<Request>,
    names: DeclaredNames,
    /// True if the shell inserts a word as it is.
    is_raw: bool,
}

impl Context {
    fn new(environment: &Environment) -> Self {
        let words = environment.arguments.iter();
        let everywhere = everywhere(words.skip_while(|word| *word != "--").skip(1));
        let request = settings::request(&everywhere, Values::default(), environment).ok();
        let names = request
            .as_ref()
            .and_then(|request| project_names(request).ok());
        Self {
            request,
            names: names.unwrap_or_default(),
            is_raw: environment
                .get(VARIABLE)
                .is_some_and(|shell| shell.ends_with("bash")),
        }
    }

    fn candidate(&self, word: &str, about: Option<&str>) -> Option<CompletionCandidate> {
        // A shell would read other names differently, or they would reach the terminal.
        let is_plain = matches!(visible(word), Cow::Borrowed(_));
        let fits = is_plain && (!self.is_raw || shell_word(word) == word);
        let about = about.map(|about| StyledStr::from(visible(about).into_owned()));
        fits.then(|| CompletionCandidate::new(word).help(about))
    }

    fn stages(&self, start: &str, with_batches: bool) -> Vec<CompletionCandidate> {
        let mut candidates = Vec::new();
        for stage in &self.names.stages {
            if stage.name.starts_with(start) {
                let about = stage.description.as_deref();
                candidates.extend(self.candidate(&stage.name, about));
                if with_batches && stage.has_batches {
                    candidates
                        .extend(self.candidate(&format!("{}/", stage.name), Some("one batch")));
                }
            }
        }
        if self.names.stages.is_empty()
            && let Some(request) = &self.request
        {
            // The declarations are wrong: the names of the files will do.
            let names = stage_names(&request.folder).into_iter();
            let names = names.filter(|name| name.starts_with(start));
            candidates.extend(names.filter_map(|name| self.candidate(&name, None)));
        }
        candidates
    }

    fn stage(&self, start: &str) -> Vec<CompletionCandidate> {
        self.stages(start, false)
    }

    fn target(&self, start: &str) -> Vec<CompletionCandidate> {
        let Some((stage, start)) = start.split_once('/') else {
            return self.stages(start, true);
        };
        let Some(request) = &self.request else {
            return Vec::new();
        };
        let batches = batch_names(request, stage, start, BATCHES).unwrap_or_default();
        let batches = batches.iter().filter(|batch| !batch.is_empty());
        let words = batches.filter_map(|batch| self.candidate(&format!("{stage}/{batch}"), None));
        words.collect()
    }

    fn output(&self, start: &str) -> Vec<CompletionCandidate> {
        let Some(request) = &self.request else {
            return Vec::new();
        };
        let names = output_names(request, start, BATCHES).unwrap_or_default();
        let words = names.iter().filter_map(|name| self.candidate(name, None));
        words.collect()
    }

    fn param(&self, start: &str) -> Vec<CompletionCandidate> {
        let params = self.names.params.iter();
        let params = params.filter(|(name, _)| name.starts_with(start));
        params
            .filter_map(|(name, about)| self.candidate(name, about.as_deref()))
            .collect()
    }

    fn setting(&self, start: &str) -> Vec<CompletionCandidate> {
        let params = self.names.params.iter();
        let params = params.filter(|(name, _)| name.starts_with(start));
        let words = params.map(|(name, about)| (format!("{name}="), about));
        words
            .filter_map(|(word, about)| self.candidate(&word, about.as_deref()))
            .collect()
    }

    fn agent(&self, start: &str) -> Vec<CompletionCandidate> {
        let replaced = start.split_once('=').map(|(name, _)| name);
        let agents = self.names.agents.iter();
        let words: Vec<String> = match replaced {
            Some(name) => agents
                .map(String::as_str)
                .chain(["default"])
                .map(|agent| format!("{name}={agent}"))
                .collect(),
            None => agents
                .flat_map(|agent| [agent.clone(), format!("{agent}=")])
                .collect(),
        };
        let words = words.iter().filter(|word| word.starts_with(start));
        words
            .filter_map(|word| self.candidate(word, None))
            .collect()
    }
}

fn template(start: &str) -> Vec<CompletionCandidate> {
    let templates = templates().into_iter();
    let templates = templates.filter(|(name, _)| name.starts_with(start));
    let candidate = |(name, about): (&str, &str)| {
        CompletionCandidate::new(name).help(Some(StyledStr::from(about.to_owned())))
    };
    templates.map(candidate).collect()
}

fn schema_name(start: &str) -> Vec<CompletionCandidate> {
    let names = schema::NAMES.iter().filter(|name| name.starts_with(start));
    names.map(CompletionCandidate::new).collect()
}

fn command_name(start: &str) -> Vec<CompletionCandidate> {
    let cli = Cli::command();
    let commands = cli.get_subcommands();
    let commands =
        commands.filter(|command| !command.is_hide_set() && command.get_name().starts_with(start));
    let candidate = |command: &Command| {
        CompletionCandidate::new(command.get_name()).help(command.get_about().cloned())
    };
    commands.map(candidate).collect()
}

/// Returns the options of every command that select project and workspace, from a command line that need not be complete.
pub(crate) fn everywhere<'a>(mut words: impl Iterator<Item = &'a OsString>) -> Everywhere {
    let mut everywhere = Everywhere::default();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if word == "-C" {
            everywhere.directory = words.next().map(PathBuf::from);
        } else if word == "--workspace" {
            everywhere.workspace = words.next().map(PathBuf::from);
        } else if let Some(folder) = text.strip_prefix("--workspace=") {
            everywhere.workspace = Some(PathBuf::from(folder));
        } else if let Some(folder) = text.strip_prefix("-C").filter(|folder| !folder.is_empty()) {
            everywhere.directory = Some(PathBuf::from(folder));
        }
    }
    everywhere
}
