//! OpenAI's batches: a file of lines is uploaded, a batch made of it, and results are two files.

use super::OpenAi;
use crate::api::batches::{
    BatchApi, BatchFault, BatchLimit, BatchProgress, BatchResult, LARGEST, SubmittedBatch, checked,
    failed, id_of, lines, request_of,
};
use crate::api::wire::{WireRequest, count, parsed, text, whole};
use crate::fault::{CallFault, ErrorBody};
use crate::http::CallLimit;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use serde_json::{Value, json};

impl BatchApi for OpenAi {
    fn limit(&self) -> BatchLimit {
        BatchLimit {
            requests: 50_000,
            bytes: 200_000_000,
        }
    }

    fn submit(
        &self,
        requests: &[(String, Vec<u8>)],
        limit: CallLimit<'_>,
    ) -> Result<String, CallFault> {
        checked(requests, self.limit())?;
        let mut file = Vec::new();
        for (id, body) in requests {
            let head = format!(
                r#"{{"custom_id":"{id}","method":"POST","url":"/v1/chat/completions","body":"#
            );
            file.extend_from_slice(head.as_bytes());
            file.extend_from_slice(body);
            file.extend_from_slice(b"}\n");
        }
        let (kind, form) = form(&file);
        let upload = WireRequest::post("/files", &kind, form);
        let uploaded = self.wire.json(upload, limit)?;
        let batch = json!({
            "input_file_id": uploaded["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h"
        });
        let request = WireRequest::json("/batches", batch.to_string().into_bytes());
        id_of(&self.wire.json(request, limit)?)
    }

    fn poll(&self, id: &str, limit: CallLimit<'_>) -> Result<BatchProgress, CallFault> {
        let batch = self.batch(id, limit)?;
        let counts = &batch["request_counts"];
        Ok(match batch["status"].as_str().unwrap_or_default() {
            "failed" if batch["output_file_id"].is_null() && batch["error_file_id"].is_null() => {
                let error = ErrorBody::of(&batch["errors"]["data"][0]);
                let words = error.message.clone();
                let words = words.unwrap_or_else(|| batch["errors"].to_string());
                let fault = error.fault(Some(400), format!("the batch was refused: {words}"));
                // A request is wrong, although no status says so.
                let fault = CallFault {
                    status: None,
                    ..fault
                };
                BatchProgress::Refused(fault.with_raw(batch.to_string().into_bytes()))
            }
            "completed" | "failed" | "expired" | "cancelled" => BatchProgress::Ended,
            _ => BatchProgress::Running {
                done: count(&counts["completed"]) + count(&counts["failed"]),
                of: count(&counts["total"]),
            },
        })
    }

    fn results(
        &self,
        id: &str,
        limit: CallLimit<'_>,
    ) -> Result<Vec<(String, BatchResult)>, CallFault> {
        let batch = self.batch(id, limit)?;
        let mut results = Vec::new();
        for file in ["output_file_id", "error_file_id"] {
            let Some(file) = batch[file].as_str() else {
                continue;
            };
            let path = format!("/files/{file}/content");
            let request = WireRequest::get(&path).largest(LARGEST);
            let answer = whole(self.wire.send(request, limit)?)?;
            for line in lines(&answer.body) {
                results.push(Self::result(line)?);
            }
        }
        Ok(results)
    }

    fn recent(&self, limit: CallLimit<'_>) -> Result<Vec<SubmittedBatch>, CallFault> {
        let request = WireRequest::get("/batches?limit=100");
        let list = self.wire.json(request, limit)?;
        let batches = list["data"].as_array().into_iter().flatten();
        let known = batches.filter_map(|batch| {
            Some(SubmittedBatch {
                id: text(&batch["id"])?,
                created: Timestamp::from_second(batch["created_at"].as_i64()?).ok()?,
                requests: count(&batch["request_counts"]["total"]),
            })
        });
        Ok(known.collect())
    }
}

impl OpenAi {
    fn batch(&self, id: &str, limit: CallLimit<'_>) -> Result<Value, CallFault> {
        let path = format!("/batches/{id}");
        self.wire.json(WireRequest::get(&path), limit)
    }

    fn result(line: &[u8]) -> Result<(String, BatchResult), CallFault> {
        let value: Value = parsed(line)?;
        let id = request_of(&value, line)?;
        let code = value["error"]["code"].as_str();
        let status = value["response"]["status_code"].as_u64();
        let status = status.and_then(|status| u16::try_from(status).ok());
        let body = &value["response"]["body"];
        let ended = match (code, status) {
            (Some("batch_expired"), _) => Err(BatchFault::Expired),
            (Some("batch_cancelled"), _) => Err(BatchFault::Cancelled),
            (None, Some(200..300)) => {
                Self::of_completion(body, line.to_vec()).map_err(BatchFault::Call)
            }
            (None, Some(status)) => Err(failed(Some(status), body, body, line)),
            (_, status) => Err(failed(status, &value["error"], &value["error"], line)),
        };
        Ok((id, ended))
    }
}

/// Returns the media type and the bytes of a form with the file. The boundary contains the file's digest, so that the file
/// cannot contain the boundary.
fn form(file: &[u8]) -> (String, Vec<u8>) {
    let boundary = format!("milepost-{}", &Digest::of(file).hex()[..32]);
    let head = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
         --{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"requests.jsonl\"\r\n\
         content-type: application/jsonl\r\n\r\n"
    );
    let mut form = head.into_bytes();
    form.extend_from_slice(file);
    form.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), form)
}
