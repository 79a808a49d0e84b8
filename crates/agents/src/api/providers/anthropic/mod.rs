//! Anthropic's Messages API: `POST {base}/v1/messages`, streamed where the answer may be long.

mod batches;

use crate::api::ModelApi;
use crate::api::batches::BatchApi;
use crate::api::schema_fit::{SchemaDialect, fit, schema_instruction};
use crate::api::settings::ClientSettings;
use crate::api::sse;
use crate::api::versions::{of_claude, takes_temperature};
use crate::api::wire::{KeyHeader, Wire, parsed, text, tokens, whole};
use crate::fault::{CallFault, ErrorBody, FaultKind};
use crate::http::{CallLimit, Http, HttpResponse};
use crate::request::{AgentRequest, Attachment, Reply, StopReason};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use milepost_core::expr::json;
use milepost_core::model::api_kind::ApiKind;
use milepost_core::model::usage::Usage;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Above this many tokens an answer is streamed: a connection over which nothing comes for minutes is closed on its way.
const STREAMED_ABOVE: u64 = 8_192;

/// A client of the Messages API.
#[derive(Debug, Clone)]
pub(super) struct Anthropic {
    wire: Wire,
    model: String,
    batch: bool,
}

impl Anthropic {
    /// Returns a client. Another base URL may be given with or without `/v1`.
    pub(super) fn new(http: Arc<Http>, settings: ClientSettings) -> Self {
        let base = settings.base_url.as_deref();
        let base = base.unwrap_or(ApiKind::Anthropic.spec().base_url);
        let base = base.trim_end_matches('/').trim_end_matches("/v1");
        let headers = &[("anthropic-version", "2023-06-01")];
        let base = format!("{base}/v1");
        Self {
            wire: Wire::new(http, base, &settings, KeyHeader::XApiKey, headers),
            model: settings.model,
            batch: settings.batch,
        }
    }

    /// Reads an answer of a good status, whole or streamed.
    fn of_answer(answer: HttpResponse) -> Result<Reply, CallFault> {
        // Without a content type, the first character tells a stream of events from a message.
        let streamed = answer.header("content-type").map_or_else(
            || !answer.body.trim_ascii_start().starts_with(b"{"),
            |kind| kind.starts_with("text/event-stream"),
        );
        if streamed && !sse::events(&answer.body).is_empty() {
            return Self::of_stream(answer);
        }
        let answer = whole(answer)?;
        let id = answer.request_id();
        let message = parsed(&answer.body)?;
        let reply = Self::of_message(&message, answer.body)?;
        Ok(Reply {
            request_id: id.or(reply.request_id),
            ..reply
        })
    }

    /// A reply from a whole message.
    fn of_message(message: &Value, raw: Vec<u8>) -> Result<Reply, CallFault> {
        if message["type"] == "error" {
            let told = ErrorBody::of(message);
            let words = told.message.clone().unwrap_or_default();
            return Err(told.fault(None, words).with_raw(raw));
        }
        if !message["content"].is_array() {
            return Err(
                CallFault::new(FaultKind::Unreadable, "the response has no `content`")
                    .with_raw(raw),
            );
        }
        Ok(Reply {
            text: text_of(message),
            structured: None,
            stop: stop_of(message["stop_reason"].as_str().unwrap_or_default()),
            usage: usage_of(&message["usage"]).unwrap_or_default(),
            reported_cost: None,
            served_model: text(&message["model"]),
            request_id: None,
            raw,
        })
    }

    /// A reply from a stream: the message is put together from its events. A stream that ends before `message_stop` is cut,
    /// and an `error` event after a good status is an error all the same.
    fn of_stream(answer: HttpResponse) -> Result<Reply, CallFault> {
        let id = answer.request_id();
        let mut message = json!({"content": []});
        let mut usage = Map::new();
        let mut ended = false;
        for event in sse::events(&answer.body) {
            let Ok(data) = json::parse(&event.data) else {
                continue;
            };
            match data["type"].as_str().unwrap_or(&event.kind) {
                "message_start" => {
                    message["model"] = data["message"]["model"].clone();
                    merge(&mut usage, &data["message"]["usage"]);
                }
                "content_block_start" => {
                    if let Some(blocks) = message["content"].as_array_mut() {
                        blocks.push(data["content_block"].clone());
                    }
                }
                "content_block_delta" => {
                    let part = data["delta"]["text"].as_str().unwrap_or_default();
                    let at = data["index"].as_u64().unwrap_or(0) as usize;
                    let block = message["content"].get_mut(at);
                    if let Some(Value::String(text)) = block.and_then(|block| block.get_mut("text"))
                    {
                        text.push_str(part);
                    }
                }
                "message_delta" => {
                    message["stop_reason"] = data["delta"]["stop_reason"].clone();
                    merge(&mut usage, &data["usage"]);
                }
                "message_stop" => ended = true,
                "error" => {
                    let told = ErrorBody::of(&data);
                    let words = told.message.clone().unwrap_or_default();
                    let fault =
                        told.fault(None, format!("the stream ended with an error: {words}"));
                    let usage = usage_of(&Value::Object(usage)).unwrap_or_default();
                    return Err(CallFault {
                        request_id: id,
                        usage,
                        raw: answer.body,
                        text: text_of(&message).into(),
                        ..fault
                    });
                }
                // `ping`, `content_block_stop`, and what is yet to be invented.
                _ => {}
            }
        }
        message["usage"] = Value::Object(usage);
        if !ended {
            let fault = answer.cut.unwrap_or_else(|| {
                CallFault::new(FaultKind::Cut, "the stream ended before its last event")
            });
            let usage = usage_of(&message["usage"]).unwrap_or_default();
            return Err(CallFault {
                request_id: id,
                usage,
                raw: answer.body,
                text: text_of(&message).into(),
                ..fault
            });
        }
        Ok(Reply {
            request_id: id,
            ..Self::of_message(&message, answer.body)?
        })
    }
}

impl ModelApi for Anthropic {
    fn model(&self) -> &str {
        &self.model
    }

    fn body(&self, request: &AgentRequest) -> Vec<u8> {
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(self.model));
        body.insert("max_tokens".to_owned(), json!(request.max_tokens));
        if let Some(temperature) = request
            .temperature
            .filter(|_| takes_temperature(&self.model))
        {
            body.insert("temperature".to_owned(), json!(temperature));
        }
        // Claude 4.5 and later support structured output. For other models and servers that only speak this API, the prompt
        // contains the schema.
        let by_format = of_claude(&self.model).is_some_and(|version| version >= (4, 5));
        let fitted = request.schema.as_ref().filter(|_| by_format);
        let fitted = fitted.and_then(|schema| fit(schema, SchemaDialect::Anthropic));
        let words = request
            .schema
            .as_ref()
            .filter(|_| fitted.is_none())
            .map(schema_instruction);
        let system: Vec<&str> = request
            .system
            .as_deref()
            .into_iter()
            .chain(words.as_deref())
            .collect();
        if !system.is_empty() {
            let block = json!({
                "type": "text", "text": system.join("\n\n"), "cache_control": {"type": "ephemeral"}
            });
            body.insert("system".to_owned(), json!([block]));
        }
        let mut content: Vec<Value> = request.attachments.iter().map(block).collect();
        content.push(json!({"type": "text", "text": request.prompt}));
        body.insert(
            "messages".to_owned(),
            json!([{"role": "user", "content": content}]),
        );
        if let Some(schema) = fitted {
            let format = json!({"type": "json_schema", "schema": schema});
            body.insert("output_config".to_owned(), json!({"format": format}));
        }
        if request.max_tokens > STREAMED_ABOVE && !self.batch {
            body.insert("stream".to_owned(), json!(true));
        }
        Value::Object(body).to_string().into_bytes()
    }

    fn call(&self, body: &[u8], limit: CallLimit<'_>) -> Result<Reply, CallFault> {
        Self::of_answer(self.wire.call("/messages", body, limit)?)
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

/// Returns the text of a message.
fn text_of(message: &Value) -> String {
    let content = message["content"].as_array().into_iter().flatten();
    let texts = content.filter(|block| block["type"] == "text");
    texts.filter_map(|block| block["text"].as_str()).collect()
}

/// Later counts of a stream are totals: they take the place of earlier ones. Gateways tell 0 where they do not know yet.
fn merge(usage: &mut Map<String, Value>, told: &Value) {
    for (key, value) in told.as_object().into_iter().flatten() {
        if value != &json!(0) || !usage.contains_key(key) {
            usage.insert(key.clone(), value.clone());
        }
    }
}

/// Anthropic counts as input only tokens that no cache contained. `None` if a count is not a number.
pub(crate) fn usage_of(usage: &Value) -> Option<Usage> {
    Some(Usage {
        input: tokens(&usage["input_tokens"])?,
        cache_read: tokens(&usage["cache_read_input_tokens"])?,
        cache_write: tokens(&usage["cache_creation_input_tokens"])?,
        output: tokens(&usage["output_tokens"])?,
        reasoning: tokens(&usage["output_tokens_details"]["thinking_tokens"])?,
    })
}

/// Why an answer ended, in Anthropic's words.
pub(crate) fn stop_of(reason: &str) -> StopReason {
    match reason {
        "end_turn" | "stop_sequence" => StopReason::End,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "refusal" => StopReason::Refused,
        other => StopReason::Other(other.to_owned()),
    }
}

/// An attachment as a content block.
fn block(file: &Attachment) -> Value {
    let encoded = || json!({"type": "base64", "media_type": file.media_type, "data": STANDARD.encode(&file.bytes)});
    if file.media_type.starts_with("image/") {
        return json!({"type": "image", "source": encoded()});
    }
    let source = match std::str::from_utf8(&file.bytes) {
        Ok(text) if file.media_type != "application/pdf" => {
            json!({"type": "text", "media_type": "text/plain", "data": text})
        }
        _ => encoded(),
    };
    json!({"type": "document", "source": source, "title": file.name})
}
