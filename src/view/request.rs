//! `plan --show-request` as text: the request that an agent would receive.

use crate::view::text::words::{count, grouped};
use milepost_core::base::visible::visible;
use milepost_engine::ops::inspect::show_request::FirstRequest;

pub(crate) fn request(would: &FirstRequest) -> String {
    let Some(shown) = &would.request else {
        let why = would.why_not.as_deref().unwrap_or_default();
        let text = format!("{} sends nothing: {why}", would.batch);
        return format!("{}\n", visible(&text));
    };
    let most = match shown.most_output {
        0 => String::new(),
        most => format!(", at most {} tokens of answer", grouped(most)),
    };
    let cost = match shown.most {
        Some(most) => format!("a budget reserves {most}"),
        None => "cost unknown".to_owned(),
    };
    let body = serde_json::to_string_pretty(&shown.body).unwrap_or_default();
    format!(
        "{} asks {} ({}): {}, about {} tokens{most}, {cost}\n\n{body}\n",
        visible(&would.batch),
        visible(&shown.agent),
        visible(&shown.provider),
        count(shown.questions, "question", "questions"),
        grouped(shown.likely_input),
    )
}
