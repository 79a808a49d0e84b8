//! The kinds of steps. Each is described once: its keys, its parts, and how it runs.
//!
//! A new kind is a struct with [`Describe`] and a line in `step_kinds!`; the reader of declarations and the engine then do not
//! compile without it.

use super::diff::DiffStep;
use super::documents::{IfcStep, PdfStep, PdfTextStep, XlsxStep};
use super::info::{Describe, KindInfo, Outputs, PROGRAM_TIMEOUT};
use super::outside::{AgentStep, CommandStep, HttpStep, WaitStep};
use super::part::Part;
use crate::expr::scope::Format;
use crate::expr::select::Select;
use crate::model::declared::expression::{Program, TemplateChoice, Templated};
use crate::model::declared::keys::ValueKind::{Count, File, Jq, Name, Select as Plain};
use crate::model::declared::keys::key;

macro_rules! step_kinds {
    ($($kind:ident($step:ident)),* $(,)?) => {
        /// The kind of a step, with its keys.
        #[derive(Debug, Clone)]
        pub enum StepKind {
            $(
                #[doc = concat!("See [`", stringify!($step), "`].")]
                $kind($step),
            )*
        }

        /// The kind of a step without its keys.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum KindName {
            $(
                #[doc = concat!("See [`", stringify!($step), "`].")]
                $kind,
            )*
        }

        impl KindName {
            /// All kinds, in the order of messages and schemas.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Returns the kind that a key declares.
            pub(crate) fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.info().name == name)
            }

            /// Returns what holds for all steps of the kind.
            pub const fn info(self) -> &'static KindInfo {
                match self {
                    $(Self::$kind => &$step::INFO,)*
                }
            }
        }

        impl StepKind {
            /// Returns what holds for all steps of the kind.
            pub fn info(&self) -> &'static KindInfo {
                match self {
                    $(Self::$kind(_) => &$step::INFO,)*
                }
            }

            /// Returns the parts of every key of the kind, in the order of [`KindInfo::keys`]. A list has one for each entry.
            pub fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
                match self {
                    $(Self::$kind(step) => step.parts(),)*
                }
            }

            /// Returns how an `out` that is not an output is read back.
            pub fn out_format(&self) -> Format {
                match self {
                    $(Self::$kind(step) => step.out_format(),)*
                }
            }
        }
    };
}

step_kinds! {
    Command(CommandStep),
    Agent(AgentStep),
    Http(HttpStep),
    Jq(JqStep),
    Render(RenderStep),
    Xlsx(XlsxStep),
    Ifc(IfcStep),
    Pdf(PdfStep),
    PdfText(PdfTextStep),
    Copy(CopyStep),
    Wait(WaitStep),
    Split(SplitStep),
    Merge(MergeStep),
    Diff(DiffStep),
}

impl StepKind {
    /// Returns the key that declares it.
    pub fn name(&self) -> &'static str {
        self.info().name
    }

    /// The version of what every kind makes from the same inputs; raise it when that changes.
    pub(crate) const VERSION: u32 = 1;

    /// Returns the step that asks an agent, if it is one.
    pub fn agent(&self) -> Option<&AgentStep> {
        if let Self::Agent(step) = self {
            Some(step)
        } else {
            None
        }
    }
}

/// Computes one value.
#[derive(Debug, Clone)]
pub struct JqStep {
    pub program: Program,
    /// Records that the program reads one at a time by `inputs`.
    pub stream: Option<Select>,
}

impl Describe for JqStep {
    const INFO: KindInfo = KindInfo {
        timeout: Some(PROGRAM_TIMEOUT),
        ..KindInfo::computing(
            "jq",
            &[
                key("jq", Jq).what().doc(
                    "Computes one value with a jq program: JSON, or text for a text \
                     output.",
                ),
                key("stream", Plain)
                    .beside(&["jq"])
                    .default("none")
                    .doc("Records that the jq program reads one at a time with `inputs`."),
            ],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self { program, stream } = self;
        let is_whole = stream.is_none();
        let program = if is_whole {
            Part::ScopeProgram(program)
        } else {
            Part::Program(program)
        };
        vec![
            ("jq", program),
            ("stream", Part::optional(stream.as_ref(), Part::Select)),
        ]
    }
}

/// Writes text by a template.
#[derive(Debug, Clone)]
pub struct RenderStep {
    pub template: TemplateChoice,
}

impl Describe for RenderStep {
    const INFO: KindInfo = KindInfo {
        format: Format::Text,
        ..KindInfo::computing(
            "render",
            &[key("render", File).what().doc(
                "Renders this template. With `{{ }}` in its path, each batch has \
                 its own template.",
            )],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self { template } = self;
        vec![("render", Part::Template(template))]
    }
}

/// Copies a file.
#[derive(Debug, Clone)]
pub struct CopyStep {
    /// The input or `out` that is copied.
    pub input: String,
}

impl Describe for CopyStep {
    const INFO: KindInfo = KindInfo {
        format: Format::Text,
        ..KindInfo::computing(
            "copy",
            &[key("copy", Name)
                .what()
                .doc("Copies this input or earlier `out`.")],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self { input } = self;
        vec![("copy", Part::Reads(input))]
    }
}

/// Groups records by question, and packs them into batches.
#[derive(Debug, Clone)]
pub struct SplitStep {
    pub records: Select,
    /// The part of a record that an answer may depend on; by default all of it.
    pub question: Option<Program>,
    /// The most questions of a batch.
    pub size: Templated<u64>,
    /// The most records of a batch.
    pub max_elements: Templated<u64>,
}

impl Describe for SplitStep {
    const INFO: KindInfo = KindInfo {
        outputs: Outputs::Many,
        ending: Some("json"),
        ..KindInfo::computing(
            "split",
            &[
                key("split", Plain)
                    .what()
                    .doc("Groups these records into batches by question."),
                key("question", Jq)
                    .beside(&["split"])
                    .default("the whole record")
                    .doc(
                        "The part of a record that an answer may depend on; `.` is the \
                         record.",
                    ),
                key("size", Count)
                    .beside(&["split"])
                    .default("50")
                    .doc("Maximum questions in a batch."),
                key("max_elements", Count)
                    .beside(&["split"])
                    .default("1000")
                    .doc("Maximum records in a batch."),
            ],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self {
            records,
            question,
            size,
            max_elements,
        } = self;
        vec![
            ("split", Part::Select(records)),
            ("question", Part::optional(question.as_ref(), Part::Program)),
            ("size", Part::Count(size)),
            ("max_elements", Part::Count(max_elements)),
        ]
    }
}

/// Joins records of many files into one, in a given order.
#[derive(Debug, Clone)]
pub struct MergeStep {
    pub records: Select,
    /// Returns the key of a record; `.` is the record.
    pub key: Program,
    /// The order of the keys.
    pub order: Option<Select>,
    /// An input of key, field, value, who and why that wins over the records.
    pub corrections: Option<String>,
    /// The field that several records share; a correction may name its value instead of a key.
    pub shared_key: Option<String>,
}

impl Describe for MergeStep {
    const INFO: KindInfo = KindInfo {
        ending: Some("json"),
        ..KindInfo::computing(
            "merge",
            &[
                key("merge", Plain)
                    .what()
                    .doc("Joins these records into one file."),
                key("key", Jq)
                    .required_beside("merge")
                    .doc("The key of a record; `.` is the record."),
                key("order", Plain)
                    .beside(&["merge"])
                    .default("as read")
                    .doc("The keys, in the order to sort the records by."),
                key("corrections", Name)
                    .beside(&["merge"])
                    .default("none")
                    .doc(
                        "An input with the columns key, field, value, who and why that \
                         overrides values of the records.",
                    ),
                key("shared_key", Name)
                    .beside(&["merge"])
                    .default("none")
                    .doc(
                        "A field that several records share. A correction with a value \
                         of this field instead of a key, in a column of the same name, \
                         applies to all records with that value.",
                    ),
            ],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self {
            records,
            key,
            order,
            corrections,
            shared_key: _,
        } = self;
        let corrections = corrections.as_deref();
        vec![
            ("merge", Part::Select(records)),
            ("key", Part::RecordKey(key)),
            ("order", Part::optional(order.as_ref(), Part::Select)),
            (
                "corrections",
                corrections.map_or(Part::Literal, Part::Reads),
            ),
            ("shared_key", Part::Literal),
        ]
    }
}
