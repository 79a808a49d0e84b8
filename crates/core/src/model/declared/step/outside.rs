//! The kinds of steps that depend on more than their inputs: programs, agents, services, files of other processes.

use super::info::{Describe, KindInfo, Outputs, PROGRAM_TIMEOUT, WAIT_TIMEOUT};
use super::part::Part;
use crate::expr::name::is_name;
use crate::expr::scope::Format;
use crate::model::declared::asset::Asset;
use crate::model::declared::expression::{PathTemplate, Program, TemplateChoice, Text};
use crate::model::declared::keys::ValueKind::{
    Any, Bool, Choice, Command, File, Free, Items as ItemList, Jq, Name, Names, Path, Strings,
    Text as Templated,
};
use crate::model::declared::keys::key;
use serde_json::{Map, Value};

/// The attempts of a step that asks an agent or calls a service.
const ASKING_ATTEMPTS: u32 = 3;

/// The words of `method`.
const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE"];

/// Starts a program.
#[derive(Debug, Clone)]
pub struct CommandStep {
    /// The program and its arguments.
    pub arguments: Vec<Text>,
    /// True if the declaration is one string, which runs by `sh -c`.
    pub shell: bool,
    /// Names of environment variables that the program sees besides the usual.
    pub env: Vec<String>,
    /// The input or `out` that is its standard input.
    pub stdin: Option<String>,
    /// The file in which the program lists the files that it read.
    pub depfile: Option<Text>,
}

impl Describe for CommandStep {
    const INFO: KindInfo = KindInfo {
        outputs: Outputs::Any,
        format: Format::Text,
        writes_by_path: true,
        ..KindInfo::outside(
            "command",
            &[
                key("command", Command).what().doc(
                    "Runs a program: a list of the program and its arguments, or a \
                     string for `sh -c`.",
                ),
                key("env", Names).beside(&["command"]).default("none").doc(
                    "Environment variables to pass to the program, besides PATH, \
                     HOME and LANG=C.UTF-8.",
                ),
                key("reads", Names)
                    .beside(&["command"])
                    .default("none")
                    .doc(
                        "Files that the program reads beside its arguments, as paths or \
                         patterns with `**`, such as project:tools/**/*.py: a batch runs \
                         again when one of them changes.",
                    ),
                key("stdin", Name)
                    .beside(&["command"])
                    .default("none")
                    .doc("The input or earlier `out` to send to standard input."),
                key("depfile", Templated)
                    .beside(&["command"])
                    .default("none")
                    .doc(
                        "A file in which the program lists the files that it read, as \
                         rules of Make, such as {{ paths.deps }} or deps.d in its \
                         working folder: a batch runs again when one of those in project \
                         or workspace changes.",
                    ),
            ],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self {
            arguments,
            shell: _,
            env,
            stdin,
            depfile,
        } = self;
        let arguments = arguments.iter();
        let mut parts: Vec<_> = arguments
            .map(|argument| ("command", Part::Argument(argument)))
            .collect();
        parts.extend([
            ("env", Part::Env(env)),
            // They are `reads` of the stage.
            ("reads", Part::Literal),
            ("stdin", stdin.as_deref().map_or(Part::Literal, Part::Reads)),
            ("depfile", Part::optional(depfile.as_ref(), Part::Text)),
        ]);
        parts
    }
}

/// Asks an agent.
#[derive(Debug, Clone)]
pub struct AgentStep {
    /// The agent's name in the project, before `--agent` replaces it.
    pub agent: String,
    pub prompt: TemplateChoice,
    /// Of one answer.
    pub schema: Option<Asset>,
    /// Makes the record: `.` is the answer, `$element` the element, `$question` the id of the question.
    pub result: Option<Program>,
    /// Asks the questions that `split` wrote.
    pub questions: bool,
    /// Sends one request for each item.
    pub each: Option<Box<Items>>,
    pub answer: AnswerForm,
    /// Inputs and earlier `out` whose files are sent along.
    pub attach: Vec<String>,
    /// Values for keys that an answer of `tap-yaml` lacks.
    pub defaults: Map<String, Value>,
}

/// The items that a step sends one request for.
#[derive(Debug, Clone)]
pub struct Items {
    /// The name of an item in the prompt and in `result`.
    pub name: String,
    /// Returns the items; `.` is the scope of the stage.
    pub program: Program,
}

/// The form of an agent's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// JSON, by its schema.
    Json,
    /// The whole text.
    Text,
    /// The block of YAML that TAP has.
    TapYaml,
}

impl Describe for AgentStep {
    const INFO: KindInfo = KindInfo {
        timeout: Some(PROGRAM_TIMEOUT),
        attempts: ASKING_ATTEMPTS,
        ends_itself: true,
        ..KindInfo::computing(
            "agent",
            &[
                key("agent", Name)
                    .what()
                    .doc("Asks the agent of this name."),
                key("prompt", File).required_beside("agent").doc(
                    "The template of the prompt. With `{{ }}` in its path, each \
                     batch has its own template.",
                ),
                key("result", Jq)
                    .beside(&["agent"])
                    .default("the answer")
                    .doc(
                        "Computes the record to write; `.` is the answer, `$element` the \
                         element, `$question` the id of the question.",
                    ),
                key("answer", Choice(&["json", "text", "tap-yaml"]))
                    .beside(&["agent"])
                    .default("json")
                    .doc(
                        "The format of an answer: JSON by its schema, plain text, or a \
                         TAP block of YAML.",
                    ),
                key("attach", Names)
                    .beside(&["agent"])
                    .default("none")
                    .doc("Inputs and earlier `out` whose files are sent with the prompt."),
                key("defaults", Free)
                    .beside(&["agent"])
                    .default("none")
                    .doc(
                        "For `tap-yaml`: values for keys that an answer lacks. Each use \
                         is a warning.",
                    ),
                key("questions", Bool)
                    .beside(&["agent"])
                    .default("false")
                    .doc(
                        "If true, the input is a batch of `split`, and each distinct \
                         question is asked once.",
                    ),
                key("each", ItemList)
                    .beside(&["agent"])
                    .default("one request")
                    .doc(
                        "A name and a jq program: one request for each value that the \
                         program returns, all at once. The prompt and `result` can use \
                         the value by this name; the output is a list.",
                    ),
            ],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self {
            agent,
            prompt,
            schema,
            result,
            questions: _,
            each,
            answer: _,
            attach,
            defaults: _,
        } = self;
        let mut parts = vec![
            ("agent", Part::Agent(agent)),
            ("prompt", Part::Template(prompt)),
            ("result", Part::optional(result.as_ref(), Part::Program)),
            ("answer", Part::Literal),
            ("attach", Part::Literal),
        ];
        parts.extend(attach.iter().map(|name| ("attach", Part::Reads(name))));
        parts.extend([
            ("defaults", Part::Literal),
            ("questions", Part::Literal),
            (
                "each",
                Part::optional(each.as_ref().map(|each| &each.program), Part::ScopeProgram),
            ),
            (
                "schema",
                Part::optional(schema.as_ref(), Part::AnswerSchema),
            ),
        ]);
        parts
    }
}

/// Calls a service.
#[derive(Debug, Clone)]
pub struct HttpStep {
    pub url: Text,
    /// `GET`, `POST` and so on.
    pub method: String,
    /// Headers, their names in small letters.
    pub headers: Vec<(String, Text)>,
    /// The header that identifies the request in each attempt and run.
    pub idempotency_key: Option<String>,
    /// The origins that the URL may have, each a host or a URL; empty if any.
    pub hosts: Vec<String>,
    /// Returns the body of the request.
    pub body: Option<Program>,
    /// Whether the request may be sent again if the service may have carried it out.
    pub idempotent: bool,
    /// The schema of the reply. With a schema, the reply is read as JSON.
    pub schema: Option<Asset>,
}

impl Describe for HttpStep {
    const INFO: KindInfo = KindInfo {
        attempts: ASKING_ATTEMPTS,
        ..KindInfo::outside(
            "http",
            &[
                key("http", Templated).what().doc(
                    "Sends a request to this URL; the response is the output of the \
                     step.",
                ),
                key("method", Choice(METHODS))
                    .beside(&["http"])
                    .default("POST with `body`, else GET")
                    .doc("The HTTP method."),
                key("headers", Strings)
                    .beside(&["http"])
                    .default("none")
                    .doc(
                        "Headers of the request, each a template. Values that they take \
                         from `env` are never shown.",
                    ),
                key("hosts", Names).beside(&["http"]).default("any").doc(
                    "The hosts that may receive the request, such as api.example.com \
                     (with https) or http://localhost:3001. Required if an input \
                     names the host and the request contains values of `env` or a \
                     header that carries a key.",
                ),
                key("body", Jq).beside(&["http"]).default("none").doc(
                    "The JSON body to send; binary files in it are base64. A single \
                     file, such as `.scan`, is sent unchanged.",
                ),
                key("idempotency_key", Any)
                    .beside(&["http"])
                    .default("none")
                    .doc(
                        "Sends the header `Idempotency-Key`, or the one named here, with \
                         a digest that is the same in each attempt and run until a fact \
                         changes.",
                    ),
                key("idempotent", Bool)
                    .beside(&["http"])
                    .default("false for POST and PATCH without an idempotency key, else true")
                    .doc(
                        "If true, the service carries out a request once even if it is \
                         sent again, so Milepost repeats it when no reply comes.",
                    ),
            ],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self {
            url,
            method: _,
            headers,
            idempotency_key: _,
            hosts: _,
            body,
            idempotent: _,
            schema,
        } = self;
        let mut parts = vec![
            ("http", Part::Text(url)),
            ("method", Part::Literal),
            ("hosts", Part::Literal),
            ("headers", Part::Literal),
            ("idempotency_key", Part::Literal),
            ("idempotent", Part::Literal),
        ];
        let headers = headers.iter();
        parts.extend(headers.map(|(name, text)| ("headers", Part::Header(name, text))));
        parts.extend([
            ("body", Part::optional(body.as_ref(), Part::ScopeProgram)),
            ("schema", Part::optional(schema.as_ref(), Part::ReplySchema)),
        ]);
        parts
    }
}

impl HttpStep {
    /// Returns the headers whose names say that they carry keys.
    pub fn key_headers(&self) -> impl Iterator<Item = &Text> {
        let headers = self.headers.iter();
        headers.filter_map(|(name, text)| carries_key(name).then_some(text))
    }

    /// Returns true if the request contains values of environment variables.
    pub(crate) fn sends_env(&self) -> bool {
        let is_env = |name: &String| name.split('.').next() == Some("env");
        let headers = self.headers.iter().map(|(_, text)| text);
        let body = self.body.as_ref().map(Program::scope_names);
        let mut texts = headers.chain([&self.url]);
        texts.any(|text| text.template.names().iter().any(is_env))
            || body.is_some_and(|names| names.iter().any(is_env))
    }

    /// Returns the file that is sent as it is, if the body is one name and nothing else: `.scan`, `$scan` or `.page.data`.
    pub fn sent_file(&self) -> Option<&str> {
        let source = self.body.as_ref()?.source.trim();
        let name = source.strip_prefix(['.', '$'])?;
        let own = name.strip_suffix(".data").unwrap_or(name);
        is_name(own).then_some(name)
    }
}

/// Returns true if the name of a header says that it carries a key.
pub fn carries_key(header: &str) -> bool {
    let words = ["auth", "key", "token", "cookie", "secret"];
    words.iter().any(|word| header.contains(word))
}

/// Waits for a file that another process writes, and copies it.
#[derive(Debug, Clone)]
pub struct WaitStep {
    pub path: PathTemplate,
    /// A file that says that all is written.
    pub marker: Option<PathTemplate>,
}

impl Describe for WaitStep {
    const INFO: KindInfo = KindInfo {
        timeout: Some(WAIT_TIMEOUT),
        ..KindInfo::outside(
            "wait",
            &[
                key("wait", Path).what().doc(
                    "Waits for a file that another program writes, and copies it \
                     once it has not changed for a second and is valid by the \
                     output's schema.",
                ),
                key("marker", Path).beside(&["wait"]).default("none").doc(
                    "A second file that must exist: it marks that the first is \
                     complete.",
                ),
            ],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self { path, marker } = self;
        let marker = marker.as_ref();
        vec![
            ("wait", Part::Awaited(path)),
            ("marker", Part::optional(marker, Part::AwaitedMarker)),
        ]
    }

    /// The format of an awaited file follows from its name.
    fn out_format(&self) -> Format {
        Format::of_path(&self.path.text)
    }
}
