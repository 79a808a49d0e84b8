//! A client that is stopped at operations of the disk, while it leases or hands in: another goes on, and all ends the same.

use super::client::{NOW, Site, run_as};
use super::shapes::meetings;
use crate::crash::sweep::step;
use milepost_core::base::clock::StillClock;
use milepost_engine::ops::exit_code::exit_code;
use milepost_engine::ops::external::{
    LeaseOptions, NextBatch, Refusal, Submission, Submitted, next_batch, submit_batch,
};
use milepost_engine::ops::inspect::verify::verify;
use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::StopFlag;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

fn next(request: &Request) -> NextBatch {
    let wanted = LeaseOptions {
        client: "one".to_owned(),
        ..LeaseOptions::default()
    };
    next_batch(request, &wanted, &StopFlag::new()).unwrap()
}

fn submit(request: &Request, lease: &str, answer: Option<Value>) -> Submitted {
    let submission = Submission {
        lease: lease.to_owned(),
        client: None,
        answer,
    };
    submit_batch(request, &submission, &StopFlag::new()).unwrap()
}

fn minutes(batch: &str) -> Value {
    json!({ "title": batch, "people": if batch == "a" { 2 } else { 3 } })
}

/// Leases, or hands in what it is told to, on a disk that stops it.
#[test]
#[ignore = "a process that other tests start"]
fn stopped_client() {
    let folder = std::env::var_os("MILEPOST_TEST_SITE").unwrap();
    let stop = std::env::var("MILEPOST_TEST_STOP").unwrap();
    let environment = BTreeMap::from([("MILEPOST_STOP_AT".to_owned(), stop)]);
    let request = Request {
        clock: Arc::new(StillClock(NOW.parse().unwrap())),
        ..Request::new(PathBuf::from(folder), environment)
    };
    match std::env::var("MILEPOST_TEST_LEASE") {
        Ok(lease) => drop(submit(&request, &lease, None)),
        Err(_) => drop(next(&request)),
    }
}

/// Stops a client that hands in under a lease, or leases, at the Nth operation; whether it was.
fn stopped(site: &Site, at: usize, lease: Option<&str>) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["external::crash::stopped_client", "--exact", "--ignored"])
        .env("MILEPOST_TEST_SITE", site.at(""))
        .env("MILEPOST_TEST_STOP", at.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(lease) = lease {
        command.env("MILEPOST_TEST_LEASE", lease);
    }
    !command.status().unwrap().success()
}

/// Answers what is left, and runs the rest.
fn finish(site: &Site, at: usize) {
    let request = site.with_rules();
    while let Some(leased) = next(&request).leased {
        let told = submit(&request, &leased.lease, Some(minutes(&leased.batch)));
        assert!(told.accepted, "{at}: {told:#?}");
    }
    assert_eq!(exit_code(&run_as(&request, &[])), 0, "{at}");
    let titles = site.read("workspace/outputs/titles.json");
    assert_eq!(titles, "[\n  \"a\",\n  \"b\"\n]\n", "{at}");
    let verified = verify(&request, true).unwrap();
    assert_eq!(verified.findings, [], "{at}");
}

#[test]
fn handing_in_is_stopped_anywhere_and_loses_nothing() {
    let site = meetings();
    let request = site.with_rules();
    let first = next(&request).leased.unwrap();
    submit(&request, &first.lease, Some(minutes(&first.batch)));
    let last = next(&request).leased.unwrap();
    let text = minutes(&last.batch).to_string();
    std::fs::write(&last.output_file, text).unwrap();
    let (mut at, step) = (1, step(11));
    loop {
        let twin = site.twin();
        let is_stopped = stopped(&twin, at, Some(&last.lease));
        let told = submit(&twin.with_rules(), &last.lease, None);
        let code = told.refused.as_ref().map(Refusal::code);
        let is_made = matches!(code, Some("already_made" | "already_submitted"));
        assert!(told.accepted || is_made, "{at}: {told:#?}");
        finish(&twin, at);
        if !is_stopped {
            break;
        }
        at += step;
    }
    assert!(at > 50, "{at}");
}

#[test]
fn leasing_is_stopped_anywhere_and_leaves_the_batch_or_a_lease() {
    let site = meetings();
    let (mut at, step) = (1, step(7));
    loop {
        let twin = site.twin();
        let is_stopped = stopped(&twin, at, None);
        twin.wait(601);
        finish(&twin, at);
        if !is_stopped {
            break;
        }
        at += step;
    }
    assert!(at > 10, "{at}");
}
