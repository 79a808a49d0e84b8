//! What the schedule decides, as situations over plain values: no file is read.

use super::fixture::{Disk, PAID, pipeline};
use super::*;
use crate::base::digest::Digest;
use crate::base::path::RelPath;
use crate::model::checkpoint::Status;
use crate::model::fingerprint::Facts;
use crate::model::outcome::{Outcome, OutcomeKind};
use crate::model::reason::{Condition, Reason};
use crate::model::record::{BatchRecord, Made, Pin};
use crate::model::state::{BatchState, Phase};
use crate::plan::batches::inputs::Missed;
use crate::plan::options::RunOptions;
use crate::plan::options::selection::Target;
use crate::plan::scan::BatchScan;
use Action::{Fail, Left, May, Revalidate, Run, UpToDate, Wait};
use jiff::Timestamp;

#[expect(
    clippy::unnecessary_wraps,
    reason = "the situations are lists of results"
)]
fn will(reason: Reason) -> Result<Decision, Missed> {
    Ok(Decision::Will(vec![reason]))
}

fn missed() -> Result<Decision, Missed> {
    Err(Missed::from("input `it` is missing".to_owned()))
}

fn failed() -> Outcome {
    Outcome::new(OutcomeKind::Exit, "it ended with 1")
}

fn forced_before() -> Reason {
    Reason::ForcedBefore {
        run: "r".to_owned(),
        interrupted: true,
    }
}

fn file(path: &str) -> Modification {
    Modification {
        path: RelPath::parse(path).unwrap(),
        recorded: None,
        found: Digest::of("other"),
        pinned: false,
    }
}

/// A state in which these stages have a checkpoint.
fn complete(stages: &[(&str, Status)]) -> State {
    let mut state = State::default();
    for (stage, status) in stages {
        state.stages.entry((*stage).to_owned()).or_default().status = Some(*status);
    }
    state
}

/// Everything, under these options.
fn options(options: RunOptions) -> Selection {
    Selection {
        options,
        ..Selection::default()
    }
}

fn only(stage: &str, batch: Option<&str>) -> Selection {
    Selection {
        targets: vec![Target {
            stage: stage.to_owned(),
            batch: batch.map(str::to_owned),
        }],
        ..Selection::default()
    }
}

/// Returns the decision on stage `c`, in one word, when stages `a` and `b` had no turn.
fn of_c(selection: &Selection, state: &State, disk: &Disk) -> String {
    let pipeline = pipeline();
    let schedule = Schedule::new(&pipeline, selection);
    word(&schedule, &pipeline, 2, state, disk)
}

fn word(
    schedule: &Schedule<'_>,
    pipeline: &Pipeline,
    stage: usize,
    state: &State,
    disk: &Disk,
) -> String {
    let stage = &pipeline.stages[stage];
    match schedule.stage(stage, state, &Pending::default(), disk) {
        Ok(StageDecision::Skipped) => "skipped".to_owned(),
        Ok(StageDecision::Stopped(at)) => format!("stopped at {at}"),
        Ok(StageDecision::Blocked(by)) => format!("blocked: {} {:?}", by.stage, by.how),
        Ok(StageDecision::Failed(why)) => format!("failed: {why}"),
        Ok(StageDecision::Modified(_, files)) => format!("modified: {}", files[0].1.path),
        Ok(StageDecision::Ready(_)) => "ready".to_owned(),
        Err(why) => format!("error: {why}"),
    }
}

#[test]
fn a_stage_begins_when_those_before_it_are_complete_and_up_to_date() {
    let all = Selection::default();
    let both = complete(&[("a", Status::Complete), ("b", Status::Complete)]);
    let partial = complete(&[("a", Status::Complete), ("b", Status::Partial)]);
    let further = complete(&[("a", Status::Partial), ("b", Status::Complete)]);
    let is = |state: &State, disk: Disk| of_c(&all, state, &disk);
    let b = |decision| Disk::default().with("b", [("", decision)]);
    let altered = || Ok(Decision::Modified(vec![file("b.json")]));
    assert_eq!(is(&both, Disk::default()), "ready");
    assert_eq!(
        is(&State::default(), Disk::default()),
        "blocked: a Incomplete"
    );
    assert_eq!(is(&partial, Disk::default()), "blocked: b Partial");
    assert_eq!(is(&further, Disk::default()), "ready");
    assert_eq!(is(&both, b(will(Reason::NeverMade))), "blocked: b Outdated");
    assert_eq!(
        is(&both, b(Ok(Decision::Revalidate(Vec::new())))),
        "blocked: b Unvalidated"
    );
    assert_eq!(is(&both, b(altered())), "blocked: b Modified");
    let failed = will(Reason::Failed { outcome: failed() });
    assert_eq!(is(&both, b(failed)), "ready");
    let skipped = of_c(&only("a", None), &both, &Disk::default());
    assert_eq!(skipped, "skipped");
}

#[test]
fn outputs_and_checkpoints_that_were_modified_stop_the_run() {
    let (pipeline, all) = (pipeline(), Selection::default());
    let state = State {
        checkpoints: BTreeMap::from([("a".to_owned(), Digest::of("as written"))]),
        ..State::default()
    };
    let modified = Disk {
        checkpoint: Some(Digest::of("other")),
        ..Disk::default()
    };
    let mut schedule = Schedule::new(&pipeline, &all);
    let first = |disk: &Disk, schedule: &Schedule<'_>| word(schedule, &pipeline, 0, &state, disk);
    assert_eq!(first(&modified, &schedule), "modified: checkpoint.json");
    let output = Disk::default().with("a", [("", Ok(Decision::Modified(vec![file("a.json")])))]);
    assert_eq!(first(&output, &schedule), "modified: a.json");
    schedule.ended(&pipeline.stages[0], StageStatus::Modified, false);
    assert_eq!(
        word(&schedule, &pipeline, 1, &state, &output),
        "stopped at a"
    );
    let force = options(RunOptions {
        force: true,
        ..RunOptions::default()
    });
    assert_eq!(first(&modified, &Schedule::new(&pipeline, &force)), "ready");
}

#[test]
fn outcomes_decide_whether_later_stages_begin() {
    let (pipeline, all) = (pipeline(), Selection::default());
    let (state, disk) = (State::default(), Disk::default());
    for (status, then) in [
        (StageStatus::Complete, "ready"),
        (StageStatus::Partial, "blocked: a Partial"),
        (StageStatus::Failed, "blocked: a Incomplete"),
        (StageStatus::Held, "blocked: a Incomplete"),
    ] {
        let mut schedule = Schedule::new(&pipeline, &all);
        schedule.ended(&pipeline.stages[0], status, true);
        assert_eq!(
            word(&schedule, &pipeline, 1, &state, &disk),
            then,
            "{status:?}"
        );
    }
}

/// Returns the actions on the batches of stage `b`, with what remains of the limit for others.
fn actions(selection: &Selection, state: &State, disk: &Disk) -> Vec<Action> {
    batches(selection, state, disk, None).actions
}

fn batches(
    selection: &Selection,
    state: &State,
    disk: &Disk,
    revalidated: Option<Revalidated<'_>>,
) -> BatchSchedule {
    let pipeline = pipeline();
    let mut schedule = Schedule::new(&pipeline, selection);
    schedule.ended(&pipeline.stages[0], StageStatus::Complete, true);
    let stage = &pipeline.stages[1];
    let found = schedule
        .scan(stage, state, &Pending::default(), disk)
        .unwrap();
    schedule
        .batches(stage, state, &found, revalidated, disk)
        .unwrap()
}

#[test]
fn each_batch_has_one_action() {
    let may = Condition::OutputChanges {
        stage: "a".to_owned(),
        path: "a.json".to_owned(),
    };
    let disk = Disk {
        waiting: BTreeSet::from(["asks"]),
        ..Disk::default()
    };
    let disk = disk.with(
        "b",
        [
            ("same", Ok(Decision::UpToDate)),
            ("new", will(Reason::NeverMade)),
            ("lacks", missed()),
            ("asks", will(Reason::NeverMade)),
            ("may", Ok(Decision::May(vec![may]))),
            ("judge", Ok(Decision::Revalidate(Vec::new()))),
        ],
    );
    let all = Selection::default();
    let found = batches(&all, &State::default(), &disk, None);
    assert_eq!(found.actions, [UpToDate, Run, Fail, Wait, May, Revalidate]);
    assert_eq!(found.open, [1, 2, 3]);
    assert_eq!(found.awaits.map(|awaits| awaits.batches), Some(1));
    let named = actions(&only("b", Some("new")), &State::default(), &disk);
    assert_eq!(named, [UpToDate, Run, Left, Left, May, Revalidate]);
}

#[test]
fn batches_that_the_run_does_not_pay_for_wait() {
    let disk = Disk {
        unpaid: true,
        ..Disk::default()
    };
    let new = || will(Reason::NeverMade);
    let disk = disk.with(
        "b",
        [
            ("same", Ok(Decision::UpToDate)),
            ("new", new()),
            ("two", new()),
        ],
    );
    let found = batches(&Selection::default(), &State::default(), &disk, None);
    assert_eq!(found.actions, [UpToDate, Wait, Wait]);
    assert_eq!(found.unpaid, BTreeSet::from([1, 2]));
    let money = |batches| {
        let why = PAID.to_owned();
        Some(AwaitedMoney { why, batches })
    };
    assert_eq!((found.awaits, found.money), (None, money(2)));
    // Nobody pays for batches that are not known yet.
    let unknown = Disk {
        uncertain: true,
        unpaid: true,
        ..Disk::default()
    };
    let found = batches(
        &Selection::default(),
        &State::default(),
        &unknown.with("b", []),
        None,
    );
    assert_eq!(found.money, money(0));
}

#[test]
fn calls_that_are_not_known_yet_are_conditions_in_a_plan() {
    let disk = Disk {
        unknown: true,
        ..Disk::default()
    };
    let disk = disk.with(
        "b",
        [
            ("same", Ok(Decision::UpToDate)),
            ("new", will(Reason::NeverMade)),
        ],
    );
    let all = Selection::default();
    let planned = batches(&all, &State::default(), &disk, None);
    assert_eq!(planned.actions, [UpToDate, May]);
    let conditions = BTreeMap::from([(1, Condition::BudgetAllows)]);
    assert_eq!(planned.conditions, conditions);
    // A run knows the calls when it comes to the batch.
    let none = BTreeSet::new();
    let revalidated = Revalidated {
        invalid: &none,
        left: &none,
    };
    let ran = batches(&all, &State::default(), &disk, Some(revalidated));
    assert_eq!(ran.actions, [UpToDate, Run]);
    assert!(ran.conditions.is_empty());
}

#[test]
fn a_limit_counts_the_batches_that_run_and_no_others() {
    let disk = Disk::default().with(
        "b",
        [
            ("same", Ok(Decision::UpToDate)),
            ("lacks", missed()),
            ("1", will(Reason::NeverMade)),
            ("2", will(Reason::NeverMade)),
            ("lacks too", missed()),
        ],
    );
    let limited = |limit| {
        options(RunOptions {
            limit: Some(limit),
            ..RunOptions::default()
        })
    };
    let with = |limit| actions(&limited(limit), &State::default(), &disk);
    assert_eq!(with(0), [UpToDate, Fail, Left, Left, Fail]);
    assert_eq!(with(1), [UpToDate, Fail, Run, Left, Fail]);
    assert_eq!(with(2), [UpToDate, Fail, Run, Run, Fail]);
}

#[test]
fn a_run_of_failed_batches_leaves_the_others() {
    let mut state = State::default();
    let known = state.stages.entry("b".to_owned()).or_default();
    for key in ["bad", "lacks"] {
        let batch = BatchState {
            phase: Phase::Failed {
                outcome: Box::new(failed()),
            },
            ..BatchState::default()
        };
        known.batches.insert(key.to_owned(), batch);
    }
    let disk = Disk::default().with(
        "b",
        [
            ("new", will(Reason::NeverMade)),
            ("bad", will(Reason::Failed { outcome: failed() })),
            ("lacks", missed()),
            ("lacks, new", missed()),
        ],
    );
    let retry = options(RunOptions {
        failed: true,
        ..RunOptions::default()
    });
    assert_eq!(actions(&retry, &state, &disk), [Left, Run, Fail, Left]);
}

#[test]
fn a_batch_that_failed_as_it_stands_is_left_by_watch() {
    let disk = Disk::default().with(
        "b",
        [
            ("1", will(Reason::NeverMade)),
            ("2", will(Reason::NeverMade)),
        ],
    );
    let facts = Facts::default().id();
    let tried = BTreeMap::from([("1".to_owned(), facts)]);
    let watched = options(RunOptions {
        known_failures: Some(BTreeMap::from([("b".to_owned(), tried)])),
        ..RunOptions::default()
    });
    assert_eq!(actions(&watched, &State::default(), &disk), [Left, Run]);
}

#[test]
fn batches_stay_forced_where_a_stage_between_is_not_selected() {
    let pipeline = pipeline();
    let disk = Disk::default().with(
        "c",
        [
            ("forced", will(forced_before())),
            ("new", will(Reason::NeverMade)),
        ],
    );
    let mut selection = only("a", None);
    selection.targets.extend(only("c", None).targets);
    let of = |changed: bool| {
        let mut schedule = Schedule::new(&pipeline, &selection);
        schedule.ended(&pipeline.stages[0], StageStatus::Complete, changed);
        let (stage, state) = (&pipeline.stages[2], State::default());
        let found = schedule
            .scan(stage, &state, &Pending::default(), &disk)
            .unwrap();
        schedule
            .batches(stage, &state, &found, None, &disk)
            .unwrap()
            .actions
    };
    assert_eq!(of(false), [Run, Run]);
    assert_eq!(of(true), [Left, Run]);
}

#[test]
fn outputs_that_are_no_longer_valid_are_rebuilt_unless_a_person_accepted_them() {
    let judge = || Ok(Decision::Revalidate(Vec::new()));
    let disk = Disk::default().with("b", [("1", judge()), ("2", judge()), ("3", judge())]);
    let revalidated = Revalidated {
        invalid: &BTreeSet::from([1]),
        left: &BTreeSet::from([2]),
    };
    let all = Selection::default();
    let mut state = State::default();
    let found = batches(&all, &state, &disk, Some(revalidated));
    assert_eq!(found.actions, [UpToDate, Run, Left]);
    let made = Made {
        name: "out".to_owned(),
        path: RelPath::parse("b.json").unwrap(),
        digest: Digest::of("by hand"),
        size: 1,
    };
    let record = BatchRecord {
        key: "2".to_owned(),
        outputs: vec![made],
        pin: Some(Box::new(Pin::default())),
        ..BatchRecord::default()
    };
    let batch = BatchState {
        record: Some(record),
        ..BatchState::default()
    };
    let known = state.stages.entry("b".to_owned()).or_default();
    known.batches.insert("2".to_owned(), batch);
    let found = batches(&all, &state, &disk, Some(revalidated));
    let modified: Vec<&str> = found.modified.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!((modified, found.actions.len()), (vec!["2"], 0));
}

#[test]
fn a_plan_expects_what_a_run_would_find() {
    use StageStatus::{Complete, Failed, Held, Modified, Partial};
    let pipeline = pipeline();
    let ended = |stage: usize, disk: &Disk| {
        let all = Selection::default();
        let mut schedule = Schedule::new(&pipeline, &all);
        let stage = &pipeline.stages[stage];
        let state = State::default();
        for earlier in pipeline
            .stages
            .iter()
            .filter(|one| one.number < stage.number)
        {
            schedule.ended(earlier, StageStatus::Complete, false);
        }
        let pending = Pending::default();
        let decision = schedule.stage(stage, &state, &pending, disk).unwrap();
        let batches = match &decision {
            StageDecision::Ready(found) => {
                Some(schedule.batches(stage, &state, found, None, disk).unwrap())
            }
            _ => None,
        };
        schedule.expect(stage, &decision, batches.as_ref(), false);
        (
            schedule.ended.get(&stage.name).copied(),
            schedule.has_changed(&stage.name),
        )
    };
    let of = |stage: &'static str, decision| Disk::default().with(stage, [("", decision)]);
    let waits = Disk {
        waiting: BTreeSet::from([""]),
        ..of("a", will(Reason::NeverMade))
    };
    let unpaid = Disk {
        unpaid: true,
        uncertain: true,
        ..Disk::default().with("a", [])
    };
    assert_eq!(ended(0, &unpaid), (Some(Held), true));
    let gone = Disk {
        gone: BTreeSet::from(["old"]),
        ..Disk::default()
    };
    let uncertain = Disk {
        uncertain: true,
        ..Disk::default()
    };
    let altered = of("a", Ok(Decision::Modified(vec![file("a.json")])));
    assert_eq!(ended(0, &Disk::default()), (Some(Complete), false));
    assert_eq!(
        ended(0, &of("a", will(Reason::NeverMade))),
        (Some(Complete), true)
    );
    assert_eq!(ended(0, &of("a", missed())), (Some(Failed), true));
    assert_eq!(ended(1, &of("b", missed())), (Some(Partial), true));
    assert_eq!(ended(0, &waits), (Some(Held), false));
    assert_eq!(ended(0, &gone), (Some(Complete), true));
    assert_eq!(ended(0, &uncertain), (Some(Held), true));
    assert_eq!(ended(0, &altered), (Some(Modified), false));
}

#[test]
fn the_first_batch_that_asks_and_is_not_leased_is_leased_next() {
    let disk = Disk::default().with(
        "b",
        [
            ("made", Ok(Decision::UpToDate)),
            ("leased", will(Reason::NeverMade)),
            ("same question", will(Reason::NeverMade)),
            ("answered", will(Reason::NeverMade)),
            ("failed", will(Reason::Failed { outcome: failed() })),
            ("lacks", missed()),
            ("open", will(Reason::NeverMade)),
        ],
    );
    let (pipeline, all) = (pipeline(), Selection::default());
    let schedule = Schedule::new(&pipeline, &all);
    let (stage, state) = (&pipeline.stages[1], State::default());
    let found = schedule
        .scan(stage, &state, &Pending::default(), &disk)
        .unwrap();
    let now = Timestamp::UNIX_EPOCH;
    let lease_of = |batch: &BatchScan| {
        (batch.batch.key == "leased").then(|| HeldLease {
            expires: now,
            addresses: vec![Digest::of("same")],
        })
    };
    let next = |open: bool| {
        let mut ask = |batch: &BatchScan, anew: bool| {
            Ok(match batch.batch.key.as_str() {
                "same question" => LeaseRequest::Asks("same", vec![Digest::of("same")]),
                "open" if open => LeaseRequest::Asks("open", vec![Digest::of("open")]),
                "failed" if anew => LeaseRequest::Asks("again", vec![Digest::of("again")]),
                _ => LeaseRequest::Nothing,
            })
        };
        let (not, chosen) = next_lease(&found, now, &lease_of, &|_| false, &mut ask).unwrap();
        let leased: Vec<String> = not.leased.into_keys().collect();
        (chosen.map(|chosen| chosen.request), leased, not.ready)
    };
    let leased = || vec!["leased".to_owned(), "same question".to_owned()];
    let ready = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect::<Vec<_>>();
    assert_eq!(next(true), (Some("open"), leased(), ready(&["answered"])));
    assert_eq!(
        next(false),
        (Some("again"), leased(), ready(&["answered", "open"]))
    );
}
