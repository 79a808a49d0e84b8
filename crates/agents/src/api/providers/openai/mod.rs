//! OpenAI's Chat Completions API, and what speaks it: Ollama, vLLM, llama.cpp, gateways.

mod batches;

use crate::api::ModelApi;
use crate::api::batches::BatchApi;
use crate::api::schema_fit::{SchemaDialect, fit, schema_instruction};
use crate::api::settings::ClientSettings;
use crate::api::versions::takes_temperature;
use crate::api::wire::{KeyHeader, Wire, parsed, text, tokens, whole};
use crate::fault::{CallFault, ErrorBody, FaultKind};
use crate::http::{CallLimit, Http, HttpResponse};
use crate::request::{AgentRequest, Attachment, Reply, StopReason};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use milepost_core::model::api_kind::ApiKind;
use milepost_core::model::usage::Usage;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A client of the Chat Completions API.
#[derive(Debug, Clone)]
pub(super) struct OpenAi {
    wire: Wire,
    model: String,
    /// Whether OpenAI itself answers: other servers know older settings, and take more schemas.
    own: bool,
}

impl OpenAi {
    pub(super) fn new(http: Arc<Http>, settings: ClientSettings) -> Self {
        let own = ApiKind::OpenAi.spec().base_url;
        let base = settings.base_url.as_deref().unwrap_or(own);
        let base = base.trim_end_matches('/').to_owned();
        Self {
            own: base == own || base.contains(".openai.azure.com"),
            wire: Wire::new(http, base, &settings, KeyHeader::Bearer, &[]),
            model: settings.model,
        }
    }

    /// Returns the response format for a schema, and the words that tell it where no format can.
    fn format(&self, schema: Option<&Value>) -> (Option<Value>, Option<String>) {
        let Some(schema) = schema else {
            return (None, None);
        };
        let format = |schema: &Value, strict: bool| {
            let schema = json!({"name": "answer", "strict": strict, "schema": schema});
            json!({"type": "json_schema", "json_schema": schema})
        };
        match fit(schema, SchemaDialect::OpenAi) {
            Some(fitted) => (Some(format(&fitted, true)), None),
            // Grammars of servers of one's own know optional properties and open objects.
            None if !self.own => (
                Some(format(schema, false)),
                Some(schema_instruction(schema)),
            ),
            // This format makes objects only.
            None if schema["type"] == "object" => (
                Some(json!({"type": "json_object"})),
                Some(schema_instruction(schema)),
            ),
            None => (None, Some(schema_instruction(schema))),
        }
    }

    /// Reads an answer of a good status.
    fn of_answer(answer: HttpResponse) -> Result<Reply, CallFault> {
        let answer = whole(answer)?;
        let id = answer.request_id();
        let completion = parsed(&answer.body)?;
        let reply = Self::of_completion(&completion, answer.body)?;
        Ok(Reply {
            request_id: id.or(reply.request_id),
            ..reply
        })
    }

    /// A reply from a completion.
    fn of_completion(completion: &Value, raw: Vec<u8>) -> Result<Reply, CallFault> {
        // Gateways send errors of those behind them with a status of 200.
        let choice = &completion["choices"][0];
        for part in [completion, choice] {
            if !part["error"].is_null() {
                let told = ErrorBody::of(part);
                let status = part["error"]["code"]
                    .as_u64()
                    .and_then(|code| u16::try_from(code).ok());
                let words = told.message.clone().unwrap_or_default();
                return Err(told.fault(status, words).with_raw(raw));
            }
        }
        let message = &choice["message"];
        if !message.is_object() {
            return Err(CallFault::new(
                FaultKind::Unreadable,
                "the response has no `choices[0].message`",
            )
            .with_raw(raw));
        }
        let refusal = message["refusal"]
            .as_str()
            .filter(|refusal| !refusal.is_empty());
        // Some servers that speak this format leave the reason out, or have words of their own for the end.
        let reason = match choice.get("finish_reason") {
            None => "stop",
            Some(reason) => reason.as_str().unwrap_or("null"),
        };
        let stop = match (refusal, reason) {
            (Some(_), _) | (None, "content_filter") => StopReason::Refused,
            (None, "stop" | "eos" | "eos_token" | "stop_sequence") => StopReason::End,
            (None, "length") => StopReason::Length,
            (None, other) => StopReason::Other(other.to_owned()),
        };
        Ok(Reply {
            text: refusal.map_or_else(|| content_of(&message["content"]), str::to_owned),
            structured: None,
            stop,
            usage: usage_of(&completion["usage"]).unwrap_or_default(),
            reported_cost: None,
            served_model: text(&completion["model"]),
            request_id: text(&completion["id"]),
            raw,
        })
    }
}

impl ModelApi for OpenAi {
    fn model(&self) -> &str {
        &self.model
    }

    fn body(&self, request: &AgentRequest) -> Vec<u8> {
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(self.model));
        let (format, words) = self.format(request.schema.as_ref());
        let system: Vec<&str> = request
            .system
            .as_deref()
            .into_iter()
            .chain(words.as_deref())
            .collect();
        let mut messages = Vec::new();
        if !system.is_empty() {
            messages.push(json!({"role": "system", "content": system.join("\n\n")}));
        }
        let content = if request.attachments.is_empty() {
            json!(request.prompt)
        } else {
            let parts = request.attachments.iter().map(part);
            parts
                .chain([json!({"type": "text", "text": request.prompt})])
                .collect()
        };
        messages.push(json!({"role": "user", "content": content}));
        body.insert("messages".to_owned(), json!(messages));
        // OpenAI refuses the old name for reasoning models; servers of one's own may not know the new one.
        let most = if self.own {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body.insert(most.to_owned(), json!(request.max_tokens));
        if let Some(temperature) = request
            .temperature
            .filter(|_| takes_temperature(&self.model))
        {
            body.insert("temperature".to_owned(), json!(temperature));
        }
        if let Some(format) = format {
            body.insert("response_format".to_owned(), format);
        }
        Value::Object(body).to_string().into_bytes()
    }

    fn call(&self, body: &[u8], limit: CallLimit<'_>) -> Result<Reply, CallFault> {
        let path = "/chat/completions";
        Self::of_answer(self.wire.call(path, body, limit)?)
    }

    fn read(&self, raw: Vec<u8>) -> Result<Reply, CallFault> {
        Self::of_answer(HttpResponse::of_success(raw))
    }

    fn cooldown(&self) -> Option<Duration> {
        self.wire.cooldown()
    }

    fn check(&self, limit: CallLimit<'_>) -> Result<(), CallFault> {
        self.wire.check(limit)
    }

    fn batches(&self) -> Option<&dyn BatchApi> {
        Some(self)
    }
}

/// Returns the text of a message: one string, or parts.
fn content_of(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}

/// OpenAI includes cached tokens in the input and lists them in the details. `None` if a count is not a number.
fn usage_of(usage: &Value) -> Option<Usage> {
    let details = &usage["prompt_tokens_details"];
    Some(Usage {
        reasoning: tokens(&usage["completion_tokens_details"]["reasoning_tokens"])?,
        ..Usage::of_whole_input(
            tokens(&usage["prompt_tokens"])?,
            tokens(&details["cached_tokens"])?,
            tokens(&details["cache_write_tokens"])?,
            tokens(&usage["completion_tokens"])?,
        )
    })
}

/// An attachment as a part of a message.
fn part(file: &Attachment) -> Value {
    let url = || {
        format!(
            "data:{};base64,{}",
            file.media_type,
            STANDARD.encode(&file.bytes)
        )
    };
    if file.media_type.starts_with("image/") {
        return json!({"type": "image_url", "image_url": {"url": url()}});
    }
    match std::str::from_utf8(&file.bytes) {
        Ok(text) if file.media_type != "application/pdf" => {
            json!({"type": "text", "text": format!("The file {}:\n\n{text}", file.name)})
        }
        _ => json!({"type": "file", "file": {"filename": file.name, "file_data": url()}}),
    }
}
