//! Anthropic's Message Batches: `POST {base}/v1/messages/batches`, results as lines in any order.

use super::{BatchFault, BatchResult, Known, LARGEST, Limit, Progress, checked, lines};
use crate::anthropic::Anthropic;
use crate::fault::{CallFault, FaultKind, Told};
use crate::http::Cancelled;
use crate::wire::{Ask, count, parsed, text, whole};
use serde_json::Value;
use std::time::Duration;

/// What the list of batches holds, in bytes.
const SMALL: usize = 1 << 20;

impl Anthropic {
    /// What one batch may hold.
    pub const BATCH: Limit = Limit {
        requests: 100_000,
        bytes: 256_000_000,
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
        let mut body = br#"{"requests":["#.to_vec();
        for (at, (id, params)) in requests.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            body.extend_from_slice(format!(r#"{comma}{{"custom_id":"{id}","params":"#).as_bytes());
            body.extend_from_slice(params);
            body.push(b'}');
        }
        body.extend_from_slice(b"]}");
        let post = Some(("application/json", body));
        let batch = self.wire.json(
            Ask {
                path: "/messages/batches",
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
        let path = format!("/messages/batches/{id}");
        let batch = self.wire.json(
            Ask {
                path: &path,
                post: None,
                within,
                largest: SMALL,
            },
            cancelled,
        )?;
        if batch["processing_status"] == "ended" {
            return Ok(Progress::Ended);
        }
        let of = total(&batch["request_counts"]);
        let done = of.saturating_sub(count(&batch["request_counts"]["processing"]));
        Ok(Progress::Running { done, of })
    }

    /// See [`crate::client::Client::harvest`]. The address of the results is made here: one that came in an answer
    /// is not sent the key.
    ///
    /// # Errors
    /// When they could not be fetched.
    pub fn harvest(
        &self,
        id: &str,
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<(String, BatchResult)>, CallFault> {
        let path = format!("/messages/batches/{id}/results");
        let answer = self.wire.ask(
            Ask {
                path: &path,
                post: None,
                within,
                largest: LARGEST,
            },
            cancelled,
        )?;
        let answer = whole(answer)?;
        lines(&answer.body).map(|line| self.result(line)).collect()
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
        let path = format!("/messages/batches/{id}/cancel");
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
        let path = "/messages/batches?limit=100";
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
                created: batch["created_at"].as_str()?.parse().ok()?,
                requests: total(&batch["request_counts"]),
            })
        });
        Ok(known.collect())
    }

    fn result(&self, line: &[u8]) -> Result<(String, BatchResult), CallFault> {
        let value: Value = parsed(line)?;
        let Some(id) = text(&value["custom_id"]) else {
            let message = "a result has no `custom_id`";
            return Err(CallFault::new(FaultKind::Unreadable, message).with_raw(line.to_vec()));
        };
        let result = &value["result"];
        let ended = match result["type"].as_str().unwrap_or_default() {
            "succeeded" => self
                .of_message(&result["message"], line.to_vec())
                .map_err(BatchFault::Call),
            "expired" => Err(BatchFault::Expired),
            "canceled" => Err(BatchFault::Cancelled),
            _ => {
                // The error stands in an envelope of its own: `{"type": "error", "error": {…}}`.
                let told = Told::of(&result["error"]);
                let words = told.message.clone().unwrap_or_else(|| result.to_string());
                Err(BatchFault::Call(
                    told.fault(None, words).with_raw(line.to_vec()),
                ))
            }
        };
        Ok((id, ended))
    }
}

/// Requests in any state.
fn total(counts: &Value) -> u64 {
    let counts = counts.as_object().into_iter().flatten();
    counts.map(|(_, number)| count(number)).sum()
}
