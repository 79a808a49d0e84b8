//! OpenAI's batches: a file of lines is uploaded, a batch made of it, and results are two files.

use super::{BatchFault, BatchResult, Known, LARGEST, Limit, Progress, checked, lines};
use crate::fault::{CallFault, FaultKind, Told};
use crate::http::Cancelled;
use crate::openai::OpenAi;
use crate::wire::{Ask, count, parsed, text, whole};
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use serde_json::{Value, json};
use std::time::Duration;

/// What a description of a file or batch holds, in bytes.
const SMALL: usize = 1 << 20;

impl OpenAi {
    /// What one batch may hold.
    pub const BATCH: Limit = Limit {
        requests: 50_000,
        bytes: 200_000_000,
    };

    /// See [`crate::client::Client::submit`].
    ///
    /// # Errors
    /// When it is not taken.
    pub fn submit(
        &self,
        requests: &[(String, Vec<u8>)],
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<String, CallFault> {
        checked(requests, Self::BATCH)?;
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
        let ask = Ask {
            path: "/files",
            post: Some((&kind, form)),
            within,
            largest: SMALL,
        };
        let uploaded = self.wire.json(ask, cancelled)?;
        let batch = json!({
            "input_file_id": uploaded["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h"
        });
        let post = Some(("application/json", batch.to_string().into_bytes()));
        let batch = self.wire.json(
            Ask {
                path: "/batches",
                post,
                within,
                largest: SMALL,
            },
            cancelled,
        )?;
        text(&batch["id"]).ok_or_else(|| {
            CallFault::new(
                FaultKind::Unreadable,
                format!("the batch has no id: {batch}"),
            )
        })
    }

    /// See [`crate::client::Client::poll`].
    ///
    /// # Errors
    /// When it could not be found out.
    pub fn poll(
        &self,
        id: &str,
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<Progress, CallFault> {
        let batch = self.batch(id, within, cancelled)?;
        let counts = &batch["request_counts"];
        Ok(match batch["status"].as_str().unwrap_or_default() {
            "failed" if batch["output_file_id"].is_null() && batch["error_file_id"].is_null() => {
                let told = Told::of(&batch["errors"]["data"][0]);
                let words = told
                    .message
                    .clone()
                    .unwrap_or_else(|| batch["errors"].to_string());
                let fault = told.fault(Some(400), format!("the batch was refused: {words}"));
                // It is a request that is wrong, though no status said so.
                let fault = CallFault {
                    status: None,
                    ..fault
                };
                Progress::Refused(fault.with_raw(batch.to_string().into_bytes()))
            }
            "completed" | "failed" | "expired" | "cancelled" => Progress::Ended,
            _ => Progress::Running {
                done: count(&counts["completed"]) + count(&counts["failed"]),
                of: count(&counts["total"]),
            },
        })
    }

    /// See [`crate::client::Client::harvest`].
    ///
    /// # Errors
    /// When they could not be fetched.
    pub fn harvest(
        &self,
        id: &str,
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<(String, BatchResult)>, CallFault> {
        let batch = self.batch(id, within, cancelled)?;
        let mut results = Vec::new();
        for file in ["output_file_id", "error_file_id"] {
            let Some(file) = batch[file].as_str() else {
                continue;
            };
            let path = format!("/files/{file}/content");
            let answer = self.wire.ask(
                Ask {
                    path: &path,
                    post: None,
                    within,
                    largest: LARGEST,
                },
                cancelled,
            )?;
            for line in lines(&whole(answer)?.body) {
                results.push(self.result(line)?);
            }
        }
        Ok(results)
    }

    /// See [`crate::client::Client::cancel`].
    ///
    /// # Errors
    /// When the provider could not be told.
    pub fn cancel(
        &self,
        id: &str,
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<(), CallFault> {
        let path = format!("/batches/{id}/cancel");
        let post = Some(("application/json", b"{}".to_vec()));
        self.wire.ask(
            Ask {
                path: &path,
                post,
                within,
                largest: SMALL,
            },
            cancelled,
        )?;
        Ok(())
    }

    /// See [`crate::client::Client::recent`].
    ///
    /// # Errors
    /// When they could not be listed.
    pub fn recent(
        &self,
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<Known>, CallFault> {
        let path = "/batches?limit=100";
        let list = self.wire.json(
            Ask {
                path,
                post: None,
                within,
                largest: SMALL,
            },
            cancelled,
        )?;
        let batches = list["data"].as_array().into_iter().flatten();
        let known = batches.filter_map(|batch| {
            Some(Known {
                id: text(&batch["id"])?,
                created: Timestamp::from_second(batch["created_at"].as_i64()?).ok()?,
                requests: count(&batch["request_counts"]["total"]),
            })
        });
        Ok(known.collect())
    }

    fn batch(
        &self,
        id: &str,
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<Value, CallFault> {
        let path = format!("/batches/{id}");
        self.wire.json(
            Ask {
                path: &path,
                post: None,
                within,
                largest: SMALL,
            },
            cancelled,
        )
    }

    fn result(&self, line: &[u8]) -> Result<(String, BatchResult), CallFault> {
        let value: Value = parsed(line)?;
        let Some(id) = text(&value["custom_id"]) else {
            let message = "a result has no `custom_id`";
            return Err(CallFault::new(FaultKind::Unreadable, message).with_raw(line.to_vec()));
        };
        let code = value["error"]["code"].as_str();
        let status = value["response"]["status_code"]
            .as_u64()
            .and_then(|status| u16::try_from(status).ok());
        let body = &value["response"]["body"];
        let fault = |status: Option<u16>, error: &Value| {
            let told = Told::of(error);
            let words = told.message.clone().unwrap_or_else(|| error.to_string());
            BatchFault::Call(told.fault(status, words).with_raw(line.to_vec()))
        };
        let ended = match (code, status) {
            (Some("batch_expired"), _) => Err(BatchFault::Expired),
            (Some("batch_cancelled"), _) => Err(BatchFault::Cancelled),
            (None, Some(200..300)) => self
                .of_completion(body, line.to_vec())
                .map_err(BatchFault::Call),
            (None, Some(status)) => Err(fault(Some(status), body)),
            (_, status) => Err(fault(status, &value["error"])),
        };
        Ok((id, ended))
    }
}

/// The file as a form with two fields, and the form's type. What parts the fields is made of the file's digest: it cannot
/// stand in it.
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
