//! Anthropic's Message Batches: `POST {base}/v1/messages/batches`, results as lines in any order.

use super::Anthropic;
use crate::api::batches::{
    BatchApi, BatchFault, BatchLimit, BatchProgress, BatchResult, LARGEST, SubmittedBatch, checked,
    failed, id_of, lines, request_of,
};
use crate::api::wire::{WireRequest, count, parsed, text, whole};
use crate::fault::CallFault;
use crate::http::CallLimit;
use serde_json::Value;

impl BatchApi for Anthropic {
    fn limit(&self) -> BatchLimit {
        BatchLimit {
            requests: 100_000,
            bytes: 256_000_000,
        }
    }

    fn submit(
        &self,
        requests: &[(String, Vec<u8>)],
        limit: CallLimit<'_>,
    ) -> Result<String, CallFault> {
        checked(requests, self.limit())?;
        let mut body = br#"{"requests":["#.to_vec();
        for (at, (id, params)) in requests.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            body.extend_from_slice(format!(r#"{comma}{{"custom_id":"{id}","params":"#).as_bytes());
            body.extend_from_slice(params);
            body.push(b'}');
        }
        body.extend_from_slice(b"]}");
        let request = WireRequest::json("/messages/batches", body);
        id_of(&self.wire.json(request, limit)?)
    }

    fn poll(&self, id: &str, limit: CallLimit<'_>) -> Result<BatchProgress, CallFault> {
        let path = format!("/messages/batches/{id}");
        let batch = self.wire.json(WireRequest::get(&path), limit)?;
        if batch["processing_status"] == "ended" {
            return Ok(BatchProgress::Ended);
        }
        let of = total(&batch["request_counts"]);
        let done = of.saturating_sub(count(&batch["request_counts"]["processing"]));
        Ok(BatchProgress::Running { done, of })
    }

    /// Builds the address of the results: an address from an answer must not receive the key.
    fn results(
        &self,
        id: &str,
        limit: CallLimit<'_>,
    ) -> Result<Vec<(String, BatchResult)>, CallFault> {
        let path = format!("/messages/batches/{id}/results");
        let request = WireRequest::get(&path).largest(LARGEST);
        let answer = whole(self.wire.send(request, limit)?)?;
        lines(&answer.body).map(Self::result).collect()
    }

    fn recent(&self, limit: CallLimit<'_>) -> Result<Vec<SubmittedBatch>, CallFault> {
        let request = WireRequest::get("/messages/batches?limit=100");
        let list = self.wire.json(request, limit)?;
        let batches = list["data"].as_array().into_iter().flatten();
        let known = batches.filter_map(|batch| {
            Some(SubmittedBatch {
                id: text(&batch["id"])?,
                created: batch["created_at"].as_str()?.parse().ok()?,
                requests: total(&batch["request_counts"]),
            })
        });
        Ok(known.collect())
    }
}

impl Anthropic {
    fn result(line: &[u8]) -> Result<(String, BatchResult), CallFault> {
        let value: Value = parsed(line)?;
        let id = request_of(&value, line)?;
        let result = &value["result"];
        let ended = match result["type"].as_str().unwrap_or_default() {
            "succeeded" => {
                Self::of_message(&result["message"], line.to_vec()).map_err(BatchFault::Call)
            }
            "expired" => Err(BatchFault::Expired),
            "canceled" => Err(BatchFault::Cancelled),
            // The error has an envelope of its own: `{"type": "error", "error": {…}}`.
            _ => Err(failed(None, &result["error"], result, line)),
        };
        Ok((id, ended))
    }
}

/// Returns the number of requests in any state.
fn total(counts: &Value) -> u64 {
    let counts = counts.as_object().into_iter().flatten();
    counts.map(|(_, number)| count(number)).sum()
}
