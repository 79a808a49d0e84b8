//! The request to an agent and its reply, in one form for all providers.

use milepost_core::base::redact::Redactor;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::usage::Usage;
use serde_json::Value;
use std::borrow::Cow;

/// A file that is sent with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The name by which the agent can refer to it.
    pub name: String,
    /// The media type, such as `image/png`, `application/pdf` or `text/csv`.
    pub media_type: String,
    pub bytes: Vec<u8>,
    /// The number of pages of a PDF, and the bytes of their text, if they are known and a limit needs them.
    pub pages: Option<(u64, u64)>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentRequest {
    /// The part of the prompt that many requests share. It comes first, so that a provider can cache it.
    pub system: Option<String>,
    /// The prompt without its shared part.
    pub prompt: String,
    /// The files that are sent with the prompt.
    pub attachments: Vec<Attachment>,
    /// The JSON Schema of the answer. Providers enforce it only partly, so Milepost validates the answer.
    pub schema: Option<Value>,
    /// The maximum number of tokens in the answer, reasoning included.
    pub max_tokens: u64,
    /// The sampling temperature; `None` for the provider's default. It is not sent to models that refuse it.
    pub temperature: Option<f64>,
}

/// The most tokens that providers add to a request: roles, and instructions about the schema.
pub const ADDED: u64 = 500;

/// Likely tokens of an image, and of a page of a PDF beyond its text.
const LIKELY_IMAGE: u64 = 1_600;

/// Maximum tokens of an image of any size: providers scale images down.
const IMAGE: u64 = 50_000;

/// The most tokens of a page of a PDF beyond its text: providers read it as an image too.
const PAGE: u64 = 5_000;

/// The most tokens of a PDF: the largest context window.
const DOCUMENT: u64 = 1_000_000;

impl AgentRequest {
    /// Returns an estimate of the input tokens, for rate limits and plans: one for every 3 bytes of text, and 1,600 for an image (a
    /// megapixel) or a page. Prose has fewer; digits, ids and some scripts have up to three times as many.
    pub fn likely_tokens(&self) -> u64 {
        let attached = self.attachments.iter().map(Attachment::tokens);
        let attached = attached.map(|(likely, most)| likely.min(most));
        self.text().div_ceil(3) + attached.sum::<u64>()
    }

    /// Returns the most input tokens that it can have, for budgets: one for every byte of text, as tokens are never shorter.
    pub fn most_tokens(&self) -> u64 {
        let attached = self.attachments.iter().map(|file| file.tokens().1);
        self.text() + ADDED + attached.sum::<u64>()
    }

    /// Returns the bytes of its text.
    fn text(&self) -> u64 {
        let schema = self.schema.as_ref().map_or(0, |it| it.to_string().len());
        let system = self.system.as_ref().map_or(0, String::len);
        (system + self.prompt.len() + schema) as u64
    }
}

impl Attachment {
    pub fn is_pdf(&self) -> bool {
        self.media_type == "application/pdf"
    }

    /// Returns the likely and the most tokens.
    fn tokens(&self) -> (u64, u64) {
        let bytes = self.bytes.len() as u64;
        match self.pages {
            Some((pages, text)) => (
                text.div_ceil(3) + LIKELY_IMAGE * pages,
                DOCUMENT.min(text + PAGE * pages),
            ),
            None if self.is_pdf() => (bytes.div_ceil(3), DOCUMENT),
            None if self.media_type.starts_with("image/") => (LIKELY_IMAGE, IMAGE),
            None => (bytes.div_ceil(3), bytes),
        }
    }
}

/// The reason why an answer ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StopReason {
    /// The answer is complete.
    #[default]
    End,
    /// The answer is truncated: it reached `max_tokens` or the context window was full.
    Length,
    /// The model or a filter refused to answer.
    Refused,
    /// Another reason, in the provider's words.
    Other(String),
}

/// A reply of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The text of the answer or of the refusal.
    pub text: String,
    /// The answer as a JSON value, if the tool returns it separately from the text.
    pub structured: Option<Value>,
    /// The reason why the answer ended.
    pub stop: StopReason,
    pub usage: Usage,
    /// The cost that the tool itself reports.
    pub reported_cost: Option<NanoUsd>,
    /// The model that answered, as the provider names it.
    pub served_model: Option<String>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// The exact bytes of the reply, with the key removed.
    pub raw: Vec<u8>,
}

impl Reply {
    /// Removes known keys. A key that arrived in pieces cannot be removed from the bytes, so the text replaces them.
    #[must_use]
    pub fn without_keys(mut self, redactor: &Redactor) -> Self {
        let hidden = redactor.known_text(&self.text).into_owned();
        if let Cow::Owned(raw) = redactor.known_bytes(&self.raw) {
            self.raw = raw;
        } else if hidden != self.text {
            self.raw = hidden.clone().into_bytes();
        }
        self.text = hidden;
        let texts = [&mut self.served_model, &mut self.request_id];
        for text in texts.into_iter().flatten() {
            if let Cow::Owned(hidden) = redactor.known_text(text) {
                *text = hidden;
            }
        }
        if let Some(value) = &mut self.structured {
            redactor.known_value(value);
        }
        if let StopReason::Other(reason) = &mut self.stop {
            *reason = redactor.known_text(reason).into_owned();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_has_an_estimate_and_a_bound() {
        let attachment = |media_type: &str, bytes: Vec<u8>| Attachment {
            name: "file".to_owned(),
            media_type: media_type.to_owned(),
            bytes,
            pages: None,
        };
        let request = |attachments| AgentRequest {
            system: Some("x".repeat(300)),
            prompt: "y".repeat(31),
            attachments,
            ..AgentRequest::default()
        };
        let counted = |attachments| {
            let request = request(attachments);
            (request.likely_tokens(), request.most_tokens())
        };
        assert_eq!(counted(vec![]), (111, 331 + ADDED));
        let image = attachment("image/png", vec![0; 900_000]);
        assert_eq!(counted(vec![image]), (111 + 1_600, 331 + ADDED + IMAGE));
        let text = attachment("text/csv", vec![b'1'; 300]);
        assert_eq!(counted(vec![text]), (111 + 100, 331 + ADDED + 300));
        let pdf = |pages| Attachment {
            pages,
            ..attachment("application/pdf", vec![0; 30])
        };
        for (pages, likely, most) in [
            (Some((2, 700)), 234 + 2 * 1_600, 700 + 2 * PAGE),
            (Some((3_000, 700)), DOCUMENT, DOCUMENT),
            (None, 10, DOCUMENT),
        ] {
            let expected = (111 + likely, 331 + ADDED + most);
            assert_eq!(counted(vec![pdf(pages)]), expected);
        }
        let huge = attachment("application/pdf", vec![0; 6_000_000]);
        assert_eq!(counted(vec![huge]).0, 111 + DOCUMENT);
    }
}
