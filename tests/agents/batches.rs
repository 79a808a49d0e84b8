//! The batch APIs of both: submitted, polled and harvested.

use super::server::{Play, Server};
use super::{LIMIT, client, settings};
use milepost_agents::api::{
    BatchApi, BatchFault, BatchProgress, BatchResult, ClientSettings, ModelApi, SubmittedBatch,
};
use milepost_agents::fault::{CallFault, FaultKind};
use milepost_agents::request::AgentRequest;
use milepost_core::model::api_kind::ApiKind;
use serde_json::{Value, json};

fn batches(client: &dyn ModelApi) -> &dyn BatchApi {
    client.batches().unwrap()
}

fn requests(client: &dyn ModelApi) -> Vec<(String, Vec<u8>)> {
    let request = |prompt: &str| AgentRequest {
        prompt: prompt.to_owned(),
        max_tokens: 100_000,
        ..AgentRequest::default()
    };
    let all = [("q-1", "one"), ("q-2", "two")];
    all.map(|(id, prompt)| (id.to_owned(), client.body(&request(prompt))))
        .to_vec()
}

/// Each result in short: the text, or what went wrong.
fn told(results: Vec<(String, BatchResult)>) -> Vec<(String, String)> {
    let short = |result: BatchResult| match result {
        Ok(reply) => format!("{} ({} tokens)", reply.text, reply.usage.total()),
        Err(BatchFault::Call(fault)) => format!("{:?}: {fault}", fault.kind),
        Err(other) => other.to_string(),
    };
    results
        .into_iter()
        .map(|(id, result)| (id, short(result)))
        .collect()
}

fn expected(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(id, text)| ((*id).to_owned(), (*text).to_owned()))
        .collect()
}

fn says(value: &Value) -> Play {
    Play::Says(200, &["content-type: application/json"], value.to_string())
}

#[test]
fn anthropics_batches() {
    let message = json!({"type": "message", "content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn", "usage": {"input_tokens": 5, "output_tokens": 2}});
    let error =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}});
    let results = [
        json!({"custom_id": "q-2", "result": {"type": "succeeded", "message": message}}),
        json!({"custom_id": "q-1", "result": {"type": "errored", "error": error}}),
        json!({"custom_id": "q-3", "result": {"type": "expired"}}),
        json!({"custom_id": "q-4", "result": {"type": "canceled"}}),
    ];
    let lines: Vec<String> = results.iter().map(Value::to_string).collect();
    let counts =
        json!({"processing": 1, "succeeded": 2, "errored": 1, "canceled": 0, "expired": 0});
    let server = Server::new(vec![
        says(&json!({"id": "msgbatch_1", "processing_status": "in_progress"})),
        says(
            &json!({"id": "msgbatch_1", "processing_status": "in_progress", "request_counts": counts}),
        ),
        says(
            &json!({"id": "msgbatch_1", "processing_status": "ended", "results_url": "http://elsewhere.invalid/x"}),
        ),
        Play::Says(200, &[], lines.join("\n") + "\n"),
    ]);
    let settings = ClientSettings {
        batch: true,
        ..settings(&server.url, "claude-haiku-4-5")
    };
    let client = client(ApiKind::Anthropic, settings);
    let id = batches(&*client)
        .submit(&requests(&*client), LIMIT)
        .unwrap();
    assert_eq!(id, "msgbatch_1");
    assert_eq!(
        batches(&*client).poll(&id, LIMIT),
        Ok(BatchProgress::Running { done: 3, of: 4 })
    );
    assert_eq!(batches(&*client).poll(&id, LIMIT), Ok(BatchProgress::Ended));
    let results = told(batches(&*client).results(&id, LIMIT).unwrap());
    let wanted = [
        ("q-2", "yes (7 tokens)"),
        ("q-1", "BadRequest: bad"),
        ("q-3", "the batch expired before this request was answered"),
        (
            "q-4",
            "the batch was cancelled before this request was answered",
        ),
    ];
    assert_eq!(results, expected(&wanted));
    let seen = server.seen();
    let asked: Vec<&str> = seen.iter().map(|seen| seen.line.as_str()).collect();
    let batch = "/v1/messages/batches/msgbatch_1";
    let lines = [
        "POST /v1/messages/batches".to_owned(),
        format!("GET {batch}"),
        format!("GET {batch}"),
        format!("GET {batch}/results"),
    ];
    assert_eq!(asked, lines);
    let params = |text: &str| json!({"model": "claude-haiku-4-5", "max_tokens": 100_000, "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]});
    let sent = json!({"requests": [{"custom_id": "q-1", "params": params("one")}, {"custom_id": "q-2", "params": params("two")}]});
    assert_eq!(seen[0].json(), sent);
}

#[test]
fn openais_batches() {
    let completion = json!({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
    let refused = json!({"error": {"code": "context_length_exceeded", "message": "long"}});
    let good = json!({"custom_id": "q-2", "response": {"status_code": 200, "request_id": "r", "body": completion}, "error": null});
    let bad = [
        json!({"custom_id": "q-1", "response": {"status_code": 400, "body": refused}, "error": null}),
        json!({"custom_id": "q-3", "response": null, "error": {"code": "batch_expired", "message": "late"}}),
    ];
    let ended = json!({"id": "batch_1", "status": "expired", "output_file_id": "file_2", "error_file_id": "file_3"});
    let server = Server::new(vec![
        says(&json!({"id": "file_1"})),
        says(&json!({"id": "batch_1", "status": "validating"})),
        says(
            &json!({"id": "batch_1", "status": "in_progress", "request_counts": {"total": 3, "completed": 1, "failed": 1}}),
        ),
        says(&ended),
        says(&ended),
        Play::Says(200, &[], good.to_string() + "\n"),
        Play::Says(200, &[], format!("{}\n{}\n", bad[0], bad[1])),
    ]);
    let client = super::openai(&server.url, "gpt-6-luna");
    let requests = requests(&*client);
    let id = batches(&*client).submit(&requests, LIMIT).unwrap();
    assert_eq!(id, "batch_1");
    assert_eq!(
        batches(&*client).poll(&id, LIMIT),
        Ok(BatchProgress::Running { done: 2, of: 3 })
    );
    assert_eq!(batches(&*client).poll(&id, LIMIT), Ok(BatchProgress::Ended));
    let results = told(batches(&*client).results(&id, LIMIT).unwrap());
    let wanted = [
        ("q-2", "yes (7 tokens)"),
        ("q-1", "TooLong: long"),
        ("q-3", "the batch expired before this request was answered"),
    ];
    assert_eq!(results, expected(&wanted));
    let seen = server.seen();
    let asked: Vec<&str> = seen.iter().map(|seen| seen.line.as_str()).collect();
    let lines = [
        "POST /v1/files",
        "POST /v1/batches",
        "GET /v1/batches/batch_1",
        "GET /v1/batches/batch_1",
        "GET /v1/batches/batch_1",
        "GET /v1/files/file_2/content",
        "GET /v1/files/file_3/content",
    ];
    assert_eq!(asked, lines);
    let kind = seen[0].header("content-type").unwrap();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let line = |at: usize| {
        let body = String::from_utf8(requests[at].1.clone()).unwrap();
        format!(
            "{{\"custom_id\":\"{}\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{body}}}\n",
            requests[at].0
        )
    };
    let form = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--{boundary}\r\n\
         content-disposition: form-data; name=\"file\"; filename=\"requests.jsonl\"\r\ncontent-type: application/jsonl\r\n\r\n\
         {}{}\r\n--{boundary}--\r\n",
        line(0),
        line(1)
    );
    assert_eq!(String::from_utf8(seen[0].body.clone()).unwrap(), form);
    let batch = json!({"input_file_id": "file_1", "endpoint": "/v1/chat/completions", "completion_window": "24h"});
    assert_eq!(seen[1].json(), batch);
}

#[test]
fn a_batch_that_is_refused_says_why() {
    let failed = json!({"id": "b", "status": "failed", "errors": {"data": [{"code": "invalid_json_line", "message": "line 1 is no JSON"}]}});
    let server = Server::new(vec![says(&failed)]);
    let client = super::openai(&server.url, "m");
    let expected = CallFault {
        code: Some("invalid_json_line".to_owned()),
        raw: failed.to_string().into_bytes(),
        ..CallFault::new(
            FaultKind::BadRequest,
            "the batch was refused: line 1 is no JSON",
        )
    };
    assert_eq!(
        batches(&*client).poll("b", LIMIT),
        Ok(BatchProgress::Refused(expected))
    );
}

#[test]
fn a_batch_whose_id_was_lost_is_found() {
    let counts =
        json!({"processing": 2, "succeeded": 3, "errored": 0, "canceled": 0, "expired": 0});
    let anthropic = json!({"data": [{"id": "msgbatch_1", "created_at": "2026-11-22T09:00:00Z", "request_counts": counts}], "has_more": false});
    let openai = json!({"data": [{"id": "batch_1", "created_at": 1_795_338_000, "request_counts": {"total": 5}}]});
    let server = Server::new(vec![says(&anthropic), says(&openai)]);
    let known = |id: &str| SubmittedBatch {
        id: id.to_owned(),
        created: "2026-11-22T09:00:00Z".parse().unwrap(),
        requests: 5,
    };
    let anthropic = super::anthropic(&server.url, "m");
    assert_eq!(
        batches(&*anthropic).recent(LIMIT),
        Ok(vec![known("msgbatch_1")])
    );
    let openai = super::openai(&server.url, "m");
    assert_eq!(batches(&*openai).recent(LIMIT), Ok(vec![known("batch_1")]));
    let asked: Vec<String> = server.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(
        asked,
        [
            "GET /v1/messages/batches?limit=100",
            "GET /v1/batches?limit=100"
        ]
    );
}
