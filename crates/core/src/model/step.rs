//! A step as declared: what it does, what it makes, how often and how long it may try.

use super::pipeline::Asset;
use super::stage::{PathTemplate, Program, Templated};
use crate::base::path::RelPath;
use crate::expr::place::listed;
use crate::expr::select::Select;
use crate::expr::template::Template;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Time for one try of a step that starts a program, asks an agent or calls a service, if it declares none.
pub const PROGRAM_TIMEOUT: Duration = Duration::from_mins(10);
/// Time for a file that another process writes, if the step declares none.
pub const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

/// One `[step]` or `[[step]]`.
#[derive(Debug, Clone)]
pub struct Step {
    /// What it does.
    pub kind: StepKind,
    /// What it makes: an output, or a name for later steps only.
    pub out: String,
    /// Only when this gives true.
    pub when: Option<Program>,
    /// `agent_name` in the journal; by default the stage's name.
    pub role: Option<String>,
    /// One try of this step.
    pub timeout: Option<Templated<Duration>>,
    /// Tries of this step.
    pub attempts: u32,
}

/// A template with the file it stands in, if it stands in one.
#[derive(Clone)]
pub struct TemplateFile {
    /// The file.
    pub asset: Asset,
    /// The files that it includes.
    pub included: Vec<Asset>,
    /// Compiled.
    pub template: Arc<Template>,
}

impl fmt::Debug for TemplateFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.asset.fmt(f)
    }
}

/// The template of a step.
#[derive(Debug, Clone)]
pub enum TemplateChoice {
    /// The same for all batches.
    One(TemplateFile),
    /// The one that a path gives for a batch.
    Picked(Picked),
}

impl TemplateChoice {
    /// Returns every file that it may be.
    pub fn files(&self) -> Vec<&TemplateFile> {
        match self {
            Self::One(file) => vec![file],
            Self::Picked(picked) => picked.files.values().flatten().collect(),
        }
    }

    /// The template of a batch, whose names that are known before it runs are `scope`.
    ///
    /// # Errors
    /// When the path cannot be rendered, no file of the project is there, or that one is no template for this stage.
    pub fn of(&self, scope: &Value) -> Result<&TemplateFile, String> {
        match self {
            Self::One(file) => Ok(file),
            Self::Picked(picked) => picked.of(scope),
        }
    }
}

/// A template that each batch picks among files of the project.
#[derive(Clone)]
pub struct Picked {
    /// Gives the file's path.
    pub path: PathTemplate,
    /// The files that it can give, as they were read; the text says why one is no template for this stage.
    pub files: BTreeMap<RelPath, Result<TemplateFile, String>>,
}

impl Picked {
    fn of(&self, scope: &Value) -> Result<&TemplateFile, String> {
        let rendered = self.path.template.render_path(scope);
        let rendered = rendered.map_err(|error| error.to_string())?;
        let path =
            RelPath::parse(&rendered).map_err(|error| format!("`{}`: {error}", self.path.text))?;
        match self.files.get(&path) {
            Some(Ok(file)) => Ok(file),
            Some(Err(why)) => Err(why.clone()),
            None => {
                let right = self.files.iter().filter(|(_, file)| file.is_ok());
                let right = right.map(|(path, _)| path.as_str());
                Err(format!(
                    "`{}` gives `{path}`, which the project has not: there is {}",
                    self.path.text,
                    listed(right)
                ))
            }
        }
    }
}

impl fmt::Debug for Picked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.text.fmt(f)
    }
}

/// A string of a declaration that may hold `{{ }}`.
#[derive(Clone)]
pub struct Text {
    /// As written.
    pub source: String,
    /// Compiled.
    pub template: Arc<Template>,
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

/// A call of a service.
#[derive(Debug, Clone)]
pub struct HttpCall {
    /// Where it is.
    pub url: Text,
    /// `GET`, `POST` and so on.
    pub method: String,
    /// Headers, their names in small letters.
    pub headers: Vec<(String, Text)>,
    /// What is sent.
    pub body: Option<Program>,
    /// What the reply must be; with one it is JSON.
    pub schema: Option<Asset>,
}

impl HttpCall {
    /// Headers whose names tell that they carry keys.
    pub fn key_headers(&self) -> impl Iterator<Item = &Text> {
        let carries_key = |name: &str| {
            let words = ["auth", "key", "token", "cookie", "secret"];
            words.iter().any(|word| name.contains(word))
        };
        let headers = self.headers.iter();
        headers.filter_map(move |(name, text)| carries_key(name).then_some(text))
    }

    /// The file that is sent as it is, if the body is one name and nothing else: `.scan`, `$scan` or `.page.data`.
    pub fn sent_file(&self) -> Option<&str> {
        let source = self.body.as_ref()?.source.trim();
        let name = source.strip_prefix(['.', '$'])?;
        let is_name = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let own = name.strip_suffix(".data").unwrap_or(name);
        is_name(own).then_some(name)
    }
}

/// The output that `split` writes beside its batches: which questions stand in which batch.
pub const ASSIGNMENT: &str = "assignment";

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

/// What reads the text of a PDF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PdfEngine {
    /// Milepost itself.
    Builtin,
    /// The program of Poppler.
    Pdftotext,
}

impl PdfEngine {
    /// All, in the order in which they are tried where nothing is said.
    pub const ALL: [Self; 2] = [Self::Builtin, Self::Pdftotext];

    /// The name in declarations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Pdftotext => "pdftotext",
        }
    }
}

/// What a step does.
#[expect(
    clippy::large_enum_variant,
    reason = "a project has some dozens of steps"
)]
#[derive(Debug, Clone)]
pub enum StepKind {
    /// Starts a program.
    Command {
        /// The program and its arguments.
        arguments: Vec<Text>,
        /// Whether the declaration was one string, which goes through `sh -c`.
        shell: bool,
        /// Names of environment variables that the program sees besides the usual.
        env: Vec<String>,
        /// The input or `out` that is its standard input.
        stdin: Option<String>,
    },
    /// Asks an agent.
    Agent {
        /// The agent's name in the project, before `--agent` puts another in its place.
        agent: String,
        /// What it is asked.
        prompt: TemplateChoice,
        /// Of one answer.
        schema: Option<Asset>,
        /// Makes the record: `.` is the answer, `$element` the element.
        result: Option<Program>,
        /// Asks the questions that `split` wrote.
        questions: bool,
        /// The form of an answer.
        answer: AnswerForm,
        /// Inputs and earlier `out` whose files are sent along.
        attach: Vec<String>,
        /// Values for keys that an answer of `tap-yaml` lacks.
        defaults: Map<String, Value>,
    },
    /// Calls a service.
    Http(Box<HttpCall>),
    /// Computes one value.
    Jq {
        /// The program.
        program: Program,
        /// Its records come by `inputs`, one at a time.
        stream: Option<Select>,
    },
    /// Writes text by a template.
    Render {
        /// The template.
        template: TemplateChoice,
    },
    /// Writes a workbook by its file.
    Xlsx {
        /// The workbook's form.
        workbook: Asset,
    },
    /// Reads a building model.
    Ifc {
        /// The input that is the model.
        input: String,
    },
    /// Sets Markdown as PDF.
    Pdf {
        /// The input or `out` that is the Markdown.
        input: String,
    },
    /// Reads the text of a PDF.
    PdfText {
        /// The input or `out` that is the PDF.
        input: String,
        /// What reads it: the next is tried when one fails.
        engines: Vec<PdfEngine>,
    },
    /// Copies a file.
    Copy {
        /// The input or `out` that is copied.
        input: String,
    },
    /// Waits for a file that someone else writes, and copies it.
    Wait {
        /// The file.
        path: PathTemplate,
        /// A file that says that all is written.
        marker: Option<PathTemplate>,
    },
    /// Packs records into batches by what must be asked of them.
    Split {
        /// The records.
        records: Select,
        /// What of a record an answer may depend on; by default all of it.
        question: Option<Program>,
        /// At most so many questions a batch.
        size: Templated<u64>,
        /// At most so many elements a batch.
        max_elements: Templated<u64>,
    },
    /// Joins records of many files into one, in a given order.
    Merge {
        /// The records.
        records: Select,
        /// What a record is known by.
        key: Program,
        /// The order of the keys.
        order: Option<Select>,
        /// An input of key, field, value, who and why that wins over the records.
        corrections: Option<String>,
    },
}

impl StepKind {
    /// The key that declares it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::Agent { .. } => "agent",
            Self::Http(_) => "http",
            Self::Jq { .. } => "jq",
            Self::Render { .. } => "render",
            Self::Xlsx { .. } => "xlsx",
            Self::Ifc { .. } => "ifc",
            Self::Pdf { .. } => "pdf",
            Self::PdfText { .. } => "pdf_text",
            Self::Copy { .. } => "copy",
            Self::Wait { .. } => "wait",
            Self::Split { .. } => "split",
            Self::Merge { .. } => "merge",
        }
    }

    /// The key that names its template, where it has one.
    pub fn template_key(&self) -> &'static str {
        match self {
            Self::Agent { .. } => "prompt",
            _ => self.name(),
        }
    }

    /// The arguments of a program; of other steps none.
    pub fn arguments(&self) -> &[Text] {
        match self {
            Self::Command { arguments, .. } => arguments,
            _ => &[],
        }
    }

    /// The version of what the step makes from the same inputs; raised when that changes.
    pub fn version(&self) -> u32 {
        1
    }
}
