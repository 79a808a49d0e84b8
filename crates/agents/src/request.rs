//! What an agent is asked, and what it replies: the same for every provider.

use milepost_core::model::money::NanoUsd;
use milepost_core::model::usage::Usage;
use serde_json::Value;

/// A file that is sent along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its name, for the agent to speak of.
    pub name: String,
    /// Such as `image/png`, `application/pdf` or `text/csv`.
    pub media_type: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// What an agent is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// What stays the same over many requests: it stands first, so that a provider can cache it.
    pub system: Option<String>,
    /// The question itself.
    pub prompt: String,
    /// Files sent along.
    pub attachments: Vec<Attachment>,
    /// The JSON Schema of the answer. A provider may hold to less of it: the answer is validated again.
    pub schema: Option<Value>,
    /// The most tokens that an answer may have, reasoning included.
    pub max_tokens: u64,
    /// None: the provider's own. Models that refuse the setting are not sent it.
    pub temperature: Option<f64>,
}

impl Request {
    /// The tokens that the input is likely to have, for limits and plans: 3 bytes of text each, and 1,600 an image, as a
    /// megapixel has. Text of most languages has more bytes a token, so this is rather too much than too little.
    pub fn likely_tokens(&self) -> u64 {
        let schema = self.schema.as_ref().map_or(0, |it| it.to_string().len());
        let text = self.system.as_ref().map_or(0, String::len) + self.prompt.len() + schema;
        let attached = self.attachments.iter().map(|file| {
            if file.media_type.starts_with("image/") {
                1_600
            } else {
                (file.bytes.len() as u64).div_ceil(3)
            }
        });
        (text as u64).div_ceil(3) + attached.sum::<u64>()
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It is whole.
    End,
    /// It is cut: `max_tokens` or the model's window were full.
    Length,
    /// The model or a filter refused: the text, if any, is not what was asked for.
    Refused,
    /// As the provider calls it.
    Other(String),
}

/// What an agent replied.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The answer's text; the refusal, if it was one.
    pub text: String,
    /// The answer as a value, where the tool gives it apart from the text.
    pub structured: Option<Value>,
    /// Why it ended.
    pub stop: Stop,
    /// Tokens used.
    pub usage: Usage,
    /// What the tool itself says that it cost.
    pub told_cost: Option<NanoUsd>,
    /// The model that was asked; empty where a tool chose.
    pub asked_model: String,
    /// The model that answered, as the provider names it.
    pub served_model: Option<String>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// The answer's exact bytes, the key taken out.
    pub raw: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_guessed_rather_too_large() {
        let image = Attachment {
            name: "plan.png".to_owned(),
            media_type: "image/png".to_owned(),
            bytes: vec![0; 900_000],
        };
        let request = Request {
            system: Some("x".repeat(300)),
            prompt: "y".repeat(31),
            attachments: vec![image],
            ..Request::default()
        };
        assert_eq!(request.likely_tokens(), 111 + 1_600);
    }
}
