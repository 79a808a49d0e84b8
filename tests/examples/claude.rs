//! What Anthropic's server answers in the scripts of the examples.

use crate::agents::server::Play;
use serde_json::json;

/// The headers of an answer.
pub const JSON: &[&str] = &["content-type: application/json"];

/// The answer to the free call that checks a key.
pub fn takes_the_key() -> Play {
    Play::Says(200, JSON, "{}".to_owned())
}

/// A message with this text of a model, and the tokens that it used for input and output.
pub fn says(model: &str, text: &str, (input, output): (u64, u64)) -> Play {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": model,
        "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn",
        "usage": { "input_tokens": input, "output_tokens": output }
    });
    Play::Says(200, JSON, message.to_string())
}
