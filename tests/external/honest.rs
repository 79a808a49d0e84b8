//! Clients that answer rightly: the pipeline ends as with the rules, whoever answers, and whoever is killed.

use super::client::{Site, run_as};
use milepost_engine::ops::exit_code::exit_code;
use milepost_engine::ops::external::WhyNothing;
use milepost_engine::ops::run::StageStatus;
use milepost_engine::ops::why::why;

/// What the pipeline makes.
const MADE: [&str; 6] = [
    "intermediate/classified_all.json",
    "intermediate/report.json",
    "intermediate/plans.json",
    "outputs/report.xlsx",
    "outputs/report.pdf",
    "outputs/plans.svg",
];

#[test]
fn the_report_is_the_one_of_the_rules_also_when_a_client_is_killed() {
    let rules = Site::new();
    let report = run_as(&rules.with_rules(), &[]);
    assert_eq!(exit_code(&report), 0);

    let site = Site::new();
    let held = site.run(&[]);
    assert_eq!(exit_code(&held), 3);
    let how: Vec<_> = held
        .stages
        .iter()
        .map(|stage| (stage.stage.as_str(), stage.status))
        .collect();
    assert_eq!(
        how,
        [
            ("parse", StageStatus::Complete),
            ("batch", StageStatus::Complete),
            ("classify", StageStatus::Held),
            ("generate", StageStatus::Blocked),
        ]
    );
    let awaits = held.stages[2].awaits.clone().unwrap();
    assert_eq!(awaits.agents, ["outside"]);
    assert_eq!(awaits.batches, held.stages[2].batches);
    assert!(awaits.batches > 3, "{awaits:?}");

    // The first client hands in two batches, and is killed with a third.
    for _ in 0..2 {
        let leased = site.lease("first");
        site.answer(&leased);
        let told = site.submit(&leased.lease);
        assert!(told.accepted && told.violations.is_empty(), "{told:#?}");
    }
    let told = why(&site.request(), "classify/batch_1").unwrap();
    let told = serde_json::to_string(&told).unwrap();
    assert!(told.contains("\"provider\":\"external first\""), "{told}");
    let lost = site.lease("first");
    assert_eq!(site.finish("second"), awaits.batches - 3);
    let nothing = site.next("second").nothing.unwrap();
    assert_eq!(nothing.reason, WhyNothing::Leased);
    assert_eq!(nothing.until, Some(lost.expires));
    site.wait(601);
    let last = site.lease("second");
    assert_eq!(last.batch, lost.batch);
    site.answer(&last);
    let told = site.submit(&last.lease);
    assert!(told.accepted, "{told:#?}");
    assert_eq!(told.checkpoint.as_deref(), Some("stage_3_complete.json"));
    let left = told.left.unwrap();
    assert_eq!((left.done, left.leased, left.open), (awaits.batches, 0, 0));
    let nothing = site.next("second").nothing.unwrap();
    assert_eq!(nothing.reason, WhyNothing::Complete);

    let report = site.run(&[]);
    assert_eq!(exit_code(&report), 0);
    for path in MADE {
        let path = format!("workspace/{path}");
        assert!(site.bytes(&path) == rules.bytes(&path), "{path} differs");
    }
}
