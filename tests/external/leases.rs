//! Leases: one client for a batch, for as long as it holds, over threads and processes.

use super::client::{NOW, Site, agent};
use jiff::{SignedDuration, Timestamp};
use milepost::view;
use milepost_engine::ops::change::approve::{ApproveOptions, approve};
use milepost_engine::ops::external::{
    LeaseOptions, Refusal, Submission, WhyNothing, next_batch, release_batch, submit_batch,
};
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::StopFlag;
use milepost_store::store::lock::{Holder, Lock};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn code(told: &milepost_engine::ops::external::Submitted) -> &str {
    told.refused.as_ref().map_or("", Refusal::code)
}

#[test]
fn a_lease_expires_is_given_back_and_is_handed_in_once() {
    let site = Site::new();
    site.run(&[]);
    let first = site.lease("one");
    let now: Timestamp = NOW.parse().unwrap();
    assert_eq!(first.expires, now + SignedDuration::from_secs(600));
    assert_eq!((first.batch.as_str(), first.number), ("batch_1", 3));
    let second = site.lease("two");
    assert_eq!(second.batch, "batch_2");

    // Nobody else hands in under it, and nobody under one that there is not.
    let submission = Submission {
        lease: first.lease.clone(),
        client: Some("two".to_owned()),
        answer: None,
    };
    let told = submit_batch(&site.request(), &submission, &StopFlag::new()).unwrap();
    assert_eq!(code(&told), "foreign_lease");
    assert_eq!(
        code(&site.submit("01KAK3Y7Q0Z7V5W3N2M1P0R9S8")),
        "unknown_lease"
    );
    assert_eq!(code(&site.submit("../../x")), "unknown_lease");
    assert_eq!(code(&site.submit(&first.lease)), "answer_missing");

    // What is given back goes to the next.
    let given = release_batch(
        &site.request(),
        &second.lease,
        Some("one"),
        &StopFlag::new(),
    )
    .unwrap();
    assert_eq!(given.refused.unwrap().code(), "foreign_lease");
    let given = release_batch(
        &site.request(),
        &second.lease,
        Some("two"),
        &StopFlag::new(),
    )
    .unwrap();
    assert!(given.released);
    assert_eq!(code(&site.submit(&second.lease)), "lease_released");
    assert_eq!(site.lease("three").batch, "batch_2");

    // One that expired publishes nothing; what was right in it is kept, so that a run needs nobody for the batch.
    site.answer(&first);
    site.wait(600);
    let told = site.submit(&first.lease);
    assert_eq!(code(&told), "lease_expired");
    assert_eq!(
        (told.accepted, told.kept, told.open.len()),
        (false, first.questions, 0)
    );
    assert_eq!(site.lease("one").batch, "batch_2");
    let report = site.run(&["classify"]);
    assert_eq!(
        (report.stages[0].ran, report.stages[0].left),
        (1, report.stages[0].batches - 1)
    );

    // What is made is not handed in again.
    assert_eq!(code(&site.submit(&first.lease)), "already_made");
    let leased = site.lease("four");
    site.answer(&leased);
    assert!(site.submit(&leased.lease).accepted);
    assert_eq!(code(&site.submit(&leased.lease)), "already_submitted");
}

#[test]
fn nothing_is_leased_before_a_person_has_approved_it() {
    let site = Site::new();
    site.run(&[]);
    let early = site.lease("one");
    let declared = site.read("stages/3_classify.toml") + "\n[approve]\nby = \"reviewer\"\n";
    site.write("stages/3_classify.toml", declared);
    let next = site.next("two");
    let open = next.left.unwrap().open;
    let nothing = next.nothing.unwrap();
    let approval = nothing.approval.as_ref().unwrap();
    assert_eq!(
        (nothing.reason, approval.by.as_str(), approval.batches),
        (WhyNothing::Approval, "reviewer", open)
    );
    let advice = view::external::nothing(&nothing, &site.request().invocation);
    assert_eq!(
        advice.message,
        format!("stage `classify` is waiting for approval by reviewer: {open} batches")
    );
    // An answer to an earlier lease is kept, and its batch waits.
    site.answer(&early);
    let told = site.submit(&early.lease);
    assert_eq!((told.accepted, code(&told)), (false, "blocked"));
    let options = ApproveOptions {
        stages: vec!["classify".to_owned()],
        why: "seen".to_owned(),
        who: Some("Ada".to_owned()),
        expected: None,
    };
    let approved = approve(&site.request(), &options).unwrap();
    assert_eq!(approved.approved["classify"].batches, open + 1);
    let report = site.run(&["classify"]);
    assert_eq!(
        (report.stages[0].ran, &report.stages[0].approval),
        (1, &None)
    );
    assert_eq!(site.lease("two").batch, "batch_2");
}

#[test]
fn what_changed_since_it_was_leased_is_stale_and_what_is_still_asked_is_kept() {
    let site = Site::new();
    site.run(&[]);
    let leased = site.lease("one");
    site.answer(&leased);
    let model = site.read("workspace/inputs/sample.ifc");
    let changed = model.replace("IFCWALL(", "IFCWALL( ");
    assert_ne!(model, changed);
    site.write("workspace/inputs/sample.ifc", &changed);
    // The stages before it are no longer up to date: nothing is leased, and what is handed in is kept.
    let nothing = site.next("two").nothing.unwrap();
    assert_eq!(nothing.reason, WhyNothing::Blocked);
    assert_eq!(nothing.missing.unwrap().stage, "parse");
    let told = site.submit(&leased.lease);
    assert_eq!((told.accepted, code(&told)), (false, "blocked"));
    assert_eq!((told.kept, told.open.len()), (leased.questions, 0));
    site.run(&[]);

    let leased = site.lease("one");
    site.answer(&leased);
    // A prompt that says something else asks something else.
    let prompt = site.read("prompts/batch-processor.md");
    site.write("prompts/batch-processor.md", format!("Be exact. {prompt}"));
    let told = site.submit(&leased.lease);
    assert_eq!((told.accepted, code(&told)), (false, "stale"));
    let again = site.lease("two");
    assert_eq!(again.batch, "batch_1");
    assert!(
        std::fs::read_to_string(&again.prompt_file)
            .unwrap()
            .starts_with("Be exact.")
    );
}

#[test]
fn threads_never_have_the_same_batch_and_finish_together() {
    let site = Site::new();
    let batches = site.run(&[]).stages[2].batches;
    let counts: Vec<u64> = std::thread::scope(|threads| {
        let clients: Vec<_> = (0..3)
            .map(|number| {
                let site = &site;
                threads.spawn(move || site.finish(&format!("client {number}")))
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    assert_eq!(counts.iter().sum::<u64>(), batches);
    assert!(site.at("workspace/stage_3_complete.json").exists());
}

/// A client that is a process of its own, when another test starts it: it leases what it can, and never gives anything back.
#[test]
#[ignore = "a process that other tests start"]
fn another_process() {
    let folder = std::env::var_os("MILEPOST_TEST_SITE").unwrap();
    let request = Request {
        values: agent("classifier=outside"),
        ..Request::new(PathBuf::from(folder), BTreeMap::new())
    };
    let wanted = LeaseOptions {
        client: format!("process {}", std::process::id()),
        ..LeaseOptions::default()
    };
    let next = || next_batch(&request, &wanted, &StopFlag::new()).unwrap();
    while let Some(leased) = next().leased {
        eprintln!("leased {}", leased.batch);
    }
}

#[test]
fn processes_never_have_the_same_batch() {
    let site = Site::new();
    let batches = site.run(&[]).stages[2].batches;
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .args([
                "external::leases::another_process",
                "--exact",
                "--ignored",
                "--nocapture",
            ])
            .env("MILEPOST_TEST_SITE", site.at(""))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let clients: Vec<_> = (0..3).map(|_| start()).collect();
    let mut all = Vec::new();
    for client in clients {
        let said = client.wait_with_output().unwrap();
        assert!(said.status.success());
        let said = String::from_utf8(said.stderr).unwrap();
        let leased = said.lines().filter_map(|line| line.strip_prefix("leased "));
        all.extend(leased.map(str::to_owned));
    }
    let different: BTreeSet<&String> = all.iter().collect();
    assert_eq!(
        (all.len() as u64, different.len() as u64),
        (batches, batches)
    );
}

#[test]
fn a_run_at_work_is_in_use_and_a_stage_waits_for_those_before_it() {
    let site = Site::new();
    let nothing = site.next("one").nothing.unwrap();
    assert_eq!(nothing.reason, WhyNothing::Blocked);
    let advice = view::external::nothing(&nothing, &site.request().invocation);
    assert_eq!(nothing.missing.unwrap().stage, "parse");
    assert_eq!(
        advice.message,
        "stage `classify` cannot begin: stage `parse` is not complete"
    );
    assert_eq!(advice.hint, "complete stage `parse` first: run it");
    site.run(&["parse"]);
    let nothing = site.next("one").nothing.unwrap();
    assert_eq!(nothing.missing.unwrap().stage, "batch");
    site.run(&["batch"]);
    let leased = site.lease("one");
    site.answer(&leased);

    let path = site.at("workspace/.milepost/lock");
    let holder = Holder::this("R1", NOW.parse().unwrap(), "milepost run");
    let (lock, _) = Lock::take(&milepost_store::store::disk::Disk::real(), &path, &holder).unwrap();
    let wanted = LeaseOptions {
        client: "one".to_owned(),
        ..LeaseOptions::default()
    };
    let refused = next_batch(&site.request(), &wanted, &StopFlag::new());
    assert!(matches!(refused, Err(OpsError::Lock(_))));
    let submission = Submission {
        lease: leased.lease.clone(),
        ..Submission::default()
    };
    let refused = submit_batch(&site.request(), &submission, &StopFlag::new());
    assert!(matches!(refused, Err(OpsError::Lock(_))));
    drop(lock);
    assert!(site.submit(&leased.lease).accepted);

    // The workspace keeps who answers; whoever asks nobody outside leases nothing.
    let next = next_batch(&site.with_rules(), &wanted, &StopFlag::new()).unwrap();
    assert!(next.leased.is_some() || next.nothing.unwrap().reason != WhyNothing::NotExternal);
    let declared = Request {
        values: agent("classifier=default"),
        ..site.with_rules()
    };
    let nothing = next_batch(&declared, &wanted, &StopFlag::new())
        .unwrap()
        .nothing
        .unwrap();
    assert_eq!(nothing.reason, WhyNothing::NotExternal);
}

/// Two containers may have processes with the same id.
#[test]
fn a_server_of_another_container_has_its_lease_until_it_expires() {
    let site = Site::new();
    site.run(&[]);
    let leased = site.lease("one");
    site.answer(&leased);
    let path = format!("workspace/.milepost/leases/{}/lease.json", leased.lease);
    let mut lease = site.json(&path);
    let this = Holder::this("R1", NOW.parse().unwrap(), "milepost mcp");
    lease["server"] = serde_json::to_value(this).unwrap();
    lease["server"]["pid_namespace"] = "pid:[1]".into();
    site.write(&path, lease.to_string());
    assert_eq!(code(&site.submit(&leased.lease)), "foreign_lease");
    site.wait(600);
    assert_eq!(code(&site.submit(&leased.lease)), "lease_expired");
}
