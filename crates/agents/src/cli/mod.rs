//! Command-line agents: the program to start for a request, and the meaning of its output. Nothing is started here.

mod claude;
mod codex;
mod gemini;
mod opencode;
mod output;
mod read;

pub use output::{CommandExit, CommandOutput, NOT_FOUND};

use super::fault::{CallFault, FaultKind};
use super::request::AgentRequest;
use crate::api::{SchemaDialect, fit, schema_instruction};
use milepost_core::model::money::NanoUsd;

/// A command line with known arguments and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Preset {
    /// Claude Code: `claude`.
    Claude,
    /// OpenCode: `opencode`.
    OpenCode,
    /// Cursor: `cursor-agent`.
    Cursor,
    /// Codex: `codex`.
    Codex,
    /// Gemini: `gemini`.
    Gemini,
}

impl Preset {
    /// Returns the preset with this name, one of [`milepost_core::model::agent::KNOWN_TOOLS`].
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "claude-code" => Some(Self::Claude),
            name => name.parse().ok(),
        }
    }

    /// Returns the preset of a program, in any folder.
    fn of_program(program: &str) -> Option<Self> {
        match program.rsplit('/').next().unwrap_or(program) {
            "agent" | "cursor-agent" => Some(Self::Cursor),
            name => Self::named(name).filter(|preset| *preset != Self::Cursor),
        }
    }

    /// Variables that it is given, unless a declaration sets them. Claude Code tries for minutes what the caller tries
    /// again with better reason.
    fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Claude => &[
                ("CLAUDE_CODE_MAX_RETRIES", "0"),
                ("DISABLE_AUTOUPDATER", "1"),
            ],
            Self::OpenCode => &[("OPENCODE_DISABLE_AUTOUPDATE", "1")],
            Self::Cursor | Self::Codex | Self::Gemini => &[],
        }
    }
}

/// The form of a command line's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Envelope {
    /// The answer and nothing else.
    Text,
    /// One JSON value that contains the answer.
    Json,
    /// Events, one JSON value on each line.
    Ndjson,
}

impl Envelope {
    /// Returns the envelope with this name: `text`, `json` or `ndjson`.
    pub fn named(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// Where the prompt goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptPosition {
    /// Standard input.
    Input,
    /// A last argument.
    Last,
    /// At `{{ prompt }}` in the arguments.
    Within,
}

/// A command line that answers requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    command: Vec<String>,
    preset: Option<Preset>,
    envelope: Envelope,
    place: PromptPosition,
}

/// The program to start for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The bytes of its standard input.
    pub stdin: Vec<u8>,
    /// The environment variables to set, unless the declaration sets them.
    pub env: Vec<(String, String)>,
    /// The files to write into its working folder: name and content.
    pub files: Vec<(String, Vec<u8>)>,
}

/// The placeholder of the prompt in a list of arguments.
const PROMPTS: [&str; 2] = ["{{ prompt }}", "{{prompt}}"];

/// An argument may have 128 KiB on Linux.
const LONGEST_ARGUMENT: usize = 128 * 1024 - 1;

/// A dollar in billionths.
const DOLLAR: u64 = 1_000_000_000;

/// The file with the schema, for the tools that read it from one.
const SCHEMA_FILE: &str = "answer.schema.json";

impl Tool {
    /// Returns the tool of a preset.
    pub fn preset(preset: Preset) -> Self {
        let command: &[&str] = match preset {
            Preset::Claude => &[
                "claude",
                "-p",
                "--output-format",
                "json",
                "--no-session-persistence",
            ],
            Preset::OpenCode => &["opencode", "run", "--format", "json"],
            Preset::Cursor => &["cursor-agent", "-p", "--output-format", "json"],
            Preset::Codex => &["codex", "exec", "--json", "--skip-git-repo-check"],
            Preset::Gemini => &["gemini", "--output-format", "json"],
        };
        Self {
            command: command.iter().map(|&part| part.to_owned()).collect(),
            preset: Some(preset),
            envelope: match preset {
                Preset::OpenCode | Preset::Codex => Envelope::Ndjson,
                Preset::Claude | Preset::Cursor | Preset::Gemini => Envelope::Json,
            },
            place: match preset {
                Preset::Cursor => PromptPosition::Last,
                _ => PromptPosition::Input,
            },
        }
    }

    /// Creates a tool from any command line. The prompt replaces `{{ prompt }}` in the arguments, or goes to standard input.
    pub fn generic(command: Vec<String>, envelope: Envelope) -> Self {
        let within = command
            .iter()
            .any(|part| PROMPTS.iter().any(|prompt| part.contains(prompt)));
        Self {
            command,
            preset: None,
            envelope,
            place: if within {
                PromptPosition::Within
            } else {
                PromptPosition::Input
            },
        }
    }

    /// Returns the program to start for a request, with a cost limit if the tool has such an option.
    /// The system text comes before the prompt. Attached files are written to the working folder and named at its end.
    ///
    /// # Errors
    /// Fails with `TooLong` if the prompt is an argument and exceeds the system's limit.
    pub fn invocation(
        &self,
        request: &AgentRequest,
        most: Option<NanoUsd>,
    ) -> Result<Invocation, CallFault> {
        let mut argv = self.command.clone();
        let mut files = Vec::new();
        let mut prompt = prompt(request, &mut files);
        let mut untold = request.schema.as_ref();
        if let Some(preset) = self.preset {
            if schema_is_given(preset, request, &mut argv, &mut files) {
                untold = None;
            }
            match (preset, most) {
                (Preset::Claude, Some(most)) => {
                    let dollars = format!("{}.{:09}", most.0 / DOLLAR, most.0 % DOLLAR);
                    argv.extend(["--max-budget-usd".to_owned(), dollars]);
                }
                // Standard input is the prompt.
                (Preset::Codex, _) => argv.push("-".to_owned()),
                _ => {}
            }
        }
        if let Some(schema) = untold {
            prompt.push_str("\n\n");
            prompt.push_str(&schema_instruction(schema));
        }
        let mut stdin = Vec::new();
        match self.place {
            PromptPosition::Input => stdin = prompt.into_bytes(),
            PromptPosition::Last => argv.extend(["--".to_owned(), prompt]),
            PromptPosition::Within => {
                for part in &mut argv {
                    let filled = PROMPTS
                        .iter()
                        .fold(part.clone(), |text, place| text.replace(place, &prompt));
                    *part = if part.starts_with('-') {
                        filled
                    } else {
                        no_option(filled)
                    };
                }
            }
        }
        if let Some(part) = argv.iter().find(|part| part.len() > LONGEST_ARGUMENT) {
            let message = format!(
                "the prompt is an argument of {} bytes; the limit is {LONGEST_ARGUMENT}",
                part.len()
            );
            return Err(CallFault::new(FaultKind::TooLong, message));
        }
        let known = self
            .preset
            .or_else(|| Preset::of_program(self.command.first().map_or("", String::as_str)));
        let env = known.map_or(&[][..], Preset::environment).iter();
        let env = env.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Ok(Invocation {
            argv,
            stdin,
            env: env.collect(),
            files,
        })
    }
}

/// Returns an argument that no program takes for an option.
fn no_option(argument: String) -> String {
    if argument.starts_with('-') {
        format!("\n{argument}")
    } else {
        argument
    }
}

/// Returns the whole prompt: the constant part, the question, and the files.
fn prompt(request: &AgentRequest, files: &mut Vec<(String, Vec<u8>)>) -> String {
    let mut text = String::new();
    if let Some(system) = &request.system {
        text.push_str(system);
        text.push_str("\n\n");
    }
    text.push_str(&request.prompt);
    if !request.attachments.is_empty() {
        text.push_str("\n\nFiles in the working folder:\n");
        for file in &request.attachments {
            let name = file.name.rsplit(['/', '\\']).next().unwrap_or(&file.name);
            text.push_str(&format!("- ./{name} ({})\n", file.media_type));
            files.push((name.to_owned(), file.bytes.clone()));
        }
    }
    text
}

/// Gives the schema to a tool that takes one; whether it did.
fn schema_is_given(
    preset: Preset,
    request: &AgentRequest,
    argv: &mut Vec<String>,
    files: &mut Vec<(String, Vec<u8>)>,
) -> bool {
    let Some(schema) = &request.schema else {
        return true;
    };
    match preset {
        Preset::Claude => {
            let text = schema.to_string();
            let fits = text.len() <= LONGEST_ARGUMENT;
            if fits {
                argv.extend(["--json-schema".to_owned(), text]);
            }
            fits
        }
        Preset::Codex => {
            let fitted = fit(schema, SchemaDialect::OpenAi);
            if let Some(schema) = &fitted {
                argv.extend(["--output-schema".to_owned(), SCHEMA_FILE.to_owned()]);
                files.push((SCHEMA_FILE.to_owned(), schema.to_string().into_bytes()));
            }
            fitted.is_some()
        }
        Preset::OpenCode | Preset::Cursor | Preset::Gemini => false,
    }
}
