//! Tests of the state machine: what follows from what, and a world in which people change files, and batches fail.

use super::*;
use proptest::prelude::*;

const PACE: Pace = Pace {
    quiet: Duration::from_millis(200),
    longest: Duration::from_secs(10),
    poll: None,
    retry: Duration::from_millis(500),
    reconnect: Duration::from_mins(1),
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn batch(name: &str, facts: &str, remedy: Remedy) -> (PendingKey, PendingItem) {
    let key = PendingKey {
        stage: "s".to_owned(),
        kind: PendingKind::Batch,
        name: name.to_owned(),
    };
    let item = PendingItem {
        facts: facts.to_owned(),
        outside: Some(facts.to_owned()),
        by_people: remedy == Remedy::Run,
        remedy,
    };
    (key, item)
}

fn pending<const N: usize>(items: [(PendingKey, PendingItem); N]) -> Observation {
    Observation::Pending(items.into())
}

fn look(machine: &mut Machine, at: u64, observation: Observation) -> Decision {
    assert_eq!(machine.next(ms(at)), Next::Scan, "at {at}");
    machine.begin_scan(ms(at));
    machine.scanned(ms(at), observation, false)
}

/// A machine that rests after a run, at 1 s.
fn resting() -> Machine {
    let mut machine = Machine::new(PACE);
    let first = pending([batch("a", "1", Remedy::Run)]);
    assert_eq!(look(&mut machine, 0, first), Decision::Run);
    machine.run_ended(ms(1000), true, BTreeMap::new());
    assert_eq!(look(&mut machine, 1000, pending([])), Decision::Idle);
    assert_eq!(machine.next(ms(1000)), Next::Wait(None));
    machine
}

#[test]
fn it_looks_when_changes_have_ended_or_last_too_long() {
    let mut machine = resting();
    for at in [2000, 2100, 2250] {
        machine.changed(ms(at));
        assert_eq!(machine.next(ms(at)), Next::Wait(Some(ms(at + 200))));
    }
    assert_eq!(machine.next(ms(2450)), Next::Scan);
    let mut machine = resting();
    for at in (2000..12_000).step_by(100) {
        machine.changed(ms(at));
        assert!(matches!(machine.next(ms(at)), Next::Wait(Some(_))), "{at}");
    }
    assert_eq!(machine.next(ms(12_000)), Next::Scan);
}

#[test]
fn what_is_seen_while_it_changes_is_seen_again_before_it_runs() {
    let mut machine = resting();
    let last_seen = || pending([batch("a", "2", Remedy::Run)]);
    machine.changed(ms(2000));
    machine.begin_scan(ms(2200));
    assert_eq!(
        machine.scanned(ms(2200), last_seen(), true),
        Decision::Quiet
    );
    assert_eq!(machine.next(ms(2200)), Next::Wait(Some(ms(2400))));
    assert_eq!(look(&mut machine, 2400, last_seen()), Decision::Run);
    // It does not wait for ever.
    let mut machine = resting();
    machine.begin_scan(ms(2000));
    assert_eq!(
        machine.scanned(ms(2000), last_seen(), true),
        Decision::Quiet
    );
    machine.begin_scan(ms(12_000));
    assert_eq!(
        machine.scanned(ms(12_000), last_seen(), true),
        Decision::Run
    );
}

#[test]
fn a_run_that_waits_for_a_server_continues_each_minute() {
    let mut machine = resting();
    machine.changed(ms(2000));
    let waiting = || pending([batch("a", "2", Remedy::Run)]);
    assert_eq!(look(&mut machine, 2200, waiting()), Decision::Run);
    for ended in [3000, 65_000, 130_000] {
        machine.run_ended(ms(ended), false, BTreeMap::new());
        machine.waits_for_server(ms(ended));
        assert_eq!(look(&mut machine, ended, waiting()), Decision::Idle);
        assert_eq!(machine.reconnects(), Some(PACE.reconnect));
        // A change of another file is no reason to run.
        machine.changed(ms(ended + 1000));
        assert_eq!(look(&mut machine, ended + 1200, waiting()), Decision::Quiet);
        let at = ended + 60_000;
        assert_eq!(machine.next(ms(ended + 1200)), Next::Wait(Some(ms(at))));
        assert_eq!(look(&mut machine, at, waiting()), Decision::Run);
    }
    machine.run_ended(ms(200_000), true, BTreeMap::new());
    assert_eq!(look(&mut machine, 200_000, pending([])), Decision::Idle);
    assert_eq!(machine.next(ms(200_000)), Next::Wait(None));
    assert_eq!(machine.reconnects(), None);
}

#[test]
fn what_failed_waits_for_a_change_and_what_people_do_meanwhile_runs() {
    let mut machine = resting();
    machine.changed(ms(2000));
    let two = pending([batch("a", "2", Remedy::Run), batch("b", "1", Remedy::Run)]);
    assert_eq!(look(&mut machine, 2200, two), Decision::Run);
    machine.run_ended(ms(3000), false, BTreeMap::new());
    let unresolved = || pending([batch("a", "2", Remedy::Retry), batch("b", "1", Remedy::Run)]);
    assert_eq!(look(&mut machine, 3000, unresolved()), Decision::ScanAgain);
    let failed_batches = BTreeMap::from([(
        "s".to_owned(),
        BTreeMap::from([("a".to_owned(), "2".to_owned())]),
    )]);
    assert_eq!(machine.failed_batches(), failed_batches);
    assert_eq!(look(&mut machine, 3000, unresolved()), Decision::Idle);
    machine.changed(ms(4000));
    assert_eq!(look(&mut machine, 4200, unresolved()), Decision::Quiet);
    machine.changed(ms(5000));
    let mended = pending([batch("a", "3", Remedy::Retry), batch("b", "1", Remedy::Run)]);
    assert_eq!(look(&mut machine, 5200, mended), Decision::Run);
    // It changes once more while it fails.
    machine.run_ended(ms(6000), false, BTreeMap::new());
    let later = || pending([batch("a", "4", Remedy::Retry)]);
    look(&mut machine, 6000, later());
    assert_eq!(machine.next(ms(6200)), Next::Scan);
    let mut decision = look(&mut machine, 6200, later());
    if decision == Decision::Idle {
        decision = look(&mut machine, 6200, later());
    }
    assert_eq!(decision, Decision::Run);
}

#[test]
fn while_a_stage_waits_for_approval_it_plans_only_if_the_journal_moved() {
    let mut machine = resting();
    let waits = || {
        let (key, item) = batch("", "3", Remedy::Person);
        let kind = PendingKind::Approval;
        pending([(PendingKey { kind, ..key }, item)])
    };
    machine.changed(ms(2000));
    assert_eq!(look(&mut machine, 2200, waits()), Decision::NeedsPerson);
    for at in [2700, 3200] {
        assert_eq!(machine.next(ms(at - 1)), Next::Wait(Some(ms(at))));
        assert_eq!(machine.next(ms(at)), Next::CheckJournal);
        machine.checked_journal(ms(at), false);
    }
    assert_eq!(machine.next(ms(3700)), Next::CheckJournal);
    machine.checked_journal(ms(3700), true);
    // Something else was recorded.
    assert_eq!(look(&mut machine, 3700, waits()), Decision::Quiet);
    // A change leads to a scan as ever.
    machine.changed(ms(3800));
    assert_eq!(machine.next(ms(3900)), Next::Wait(Some(ms(4000))));
    assert_eq!(look(&mut machine, 4000, waits()), Decision::Quiet);
    machine.checked_journal(ms(4500), true);
    let approved = pending([batch("a", "1", Remedy::Run)]);
    assert_eq!(look(&mut machine, 4500, approved), Decision::Run);
    assert_eq!(machine.next(ms(4500)), Next::Wait(None));
}

#[test]
fn what_others_left_failed_is_left() {
    let mut machine = resting();
    machine.changed(ms(2000));
    assert_eq!(
        look(&mut machine, 2200, Observation::Busy("R".to_owned())),
        Decision::CannotPlan
    );
    assert_eq!(machine.next(ms(2200)), Next::Wait(Some(ms(2700))));
    assert_eq!(
        look(&mut machine, 2700, Observation::Busy("R".to_owned())),
        Decision::Quiet
    );
    let failed = || pending([batch("a", "2", Remedy::Retry)]);
    assert_eq!(look(&mut machine, 3200, failed()), Decision::ScanAgain);
    assert_eq!(look(&mut machine, 3200, failed()), Decision::Idle);
    assert_eq!(machine.next(ms(3200)), Next::Wait(None));
}

#[test]
fn mistakes_and_folders_that_are_away_are_said_once_and_again_when_they_are_others() {
    let mut machine = resting();
    let wrong = |text: &str| Observation::Invalid(text.to_owned());
    for (at, text, decision) in [
        (2000, "x", Decision::CannotPlan),
        (3000, "x", Decision::Quiet),
        (4000, "y", Decision::CannotPlan),
    ] {
        machine.changed(ms(at));
        assert_eq!(look(&mut machine, at + 200, wrong(text)), decision);
    }
    machine.changed(ms(5000));
    assert_eq!(look(&mut machine, 5200, pending([])), Decision::Idle);
    machine.changed(ms(6000));
    let gone = || Observation::Missing(BTreeSet::from(["inputs".to_owned()]));
    assert_eq!(look(&mut machine, 6200, gone()), Decision::CannotPlan);
    // Nobody tells when it is back.
    assert_eq!(look(&mut machine, 6700, gone()), Decision::Quiet);
    assert_eq!(
        look(&mut machine, 7200, pending([batch("a", "2", Remedy::Run)])),
        Decision::Run
    );
}

#[test]
fn trouble_is_told_once_and_so_is_that_it_is_over() {
    let mut machine = resting();
    let key = PendingKey {
        stage: "s".to_owned(),
        kind: PendingKind::Modified,
        name: "page".to_owned(),
    };
    let altered = |facts: &str| {
        let (_, item) = batch("", facts, Remedy::Person);
        pending([(key.clone(), item)])
    };
    for (at, observation, decision) in [
        (2000, altered("1"), Decision::NeedsPerson),
        (3000, altered("1"), Decision::Quiet),
        (4000, altered("2"), Decision::NeedsPerson),
        (5000, pending([]), Decision::Idle),
        (6000, pending([]), Decision::Quiet),
    ] {
        machine.changed(ms(at));
        assert_eq!(look(&mut machine, at + 200, observation), decision, "{at}");
    }
}

#[test]
fn runs_that_change_what_they_read_come_ever_more_slowly() {
    let mut machine = Machine::new(PACE);
    let mut at = 0;
    let mut pauses = Vec::new();
    for run in 0..8 {
        let observation = || pending([batch("a", &run.to_string(), Remedy::Run)]);
        assert_eq!(look(&mut machine, at, observation()), Decision::Run);
        machine.run_ended(ms(at), true, BTreeMap::new());
        if let Decision::Delay(pause) = look(
            &mut machine,
            at,
            pending([batch("a", &(run + 1).to_string(), Remedy::Run)]),
        ) {
            pauses.push(pause.as_secs());
        }
        let Next::Wait(Some(next)) = machine.next(ms(at)) else {
            panic!("it looks at once");
        };
        at = u64::try_from(next.as_millis()).unwrap();
    }
    assert_eq!(pauses, [10, 20, 40, 80, 160, 300]);
}

#[test]
fn polling_waits_until_two_looks_see_the_same() {
    let pace = Pace {
        poll: Some(ms(2000)),
        ..PACE
    };
    let mut machine = Machine::new(pace);
    assert_eq!(look(&mut machine, 0, pending([])), Decision::Idle);
    assert_eq!(machine.next(ms(0)), Next::Wait(Some(ms(2000))));
    let half = pending([batch("a", "half", Remedy::Run)]);
    assert_eq!(look(&mut machine, 2000, half), Decision::Quiet);
    let whole = || pending([batch("a", "whole", Remedy::Run)]);
    assert_eq!(look(&mut machine, 2200, whole()), Decision::Quiet);
    assert_eq!(look(&mut machine, 2400, whole()), Decision::Run);
    machine.run_ended(ms(2500), true, BTreeMap::new());
    assert_eq!(look(&mut machine, 2500, pending([])), Decision::Idle);
    assert_eq!(machine.next(ms(2500)), Next::Wait(Some(ms(4500))));
    // A look that takes long is not followed by the next at once.
    machine.begin_scan(ms(4500));
    machine.scanned(ms(5500), pending([]), false);
    assert_eq!(machine.next(ms(5500)), Next::Wait(Some(ms(9500))));
}

#[test]
fn what_failed_and_was_made_since_is_tried_again_when_it_is_as_it_was() {
    let mut machine = Machine::new(PACE);
    let item = |facts: &str, remedy| pending([batch("a", facts, remedy)]);
    let failed = |facts: &str| BTreeMap::from([(batch("a", "", Remedy::Run).0, facts.to_owned())]);
    assert_eq!(
        look(&mut machine, 0, item("bad", Remedy::Run)),
        Decision::Run
    );
    machine.run_ended(ms(10), false, failed("bad"));
    while machine.next(ms(10)) == Next::Scan {
        look(&mut machine, 10, item("bad", Remedy::Retry));
    }
    machine.changed(ms(1000));
    assert_eq!(
        look(&mut machine, 2000, item("good", Remedy::Retry)),
        Decision::Run
    );
    // During that run, which makes it, a person puts the bad one back.
    machine.run_ended(ms(2100), true, BTreeMap::new());
    let mut at = 2100;
    let mut decisions = Vec::new();
    while decisions.last() != Some(&Decision::Run) {
        match machine.next(ms(at)) {
            Next::CheckJournal => panic!("no stage waits for approval"),
            Next::Scan => decisions.push(look(&mut machine, at, item("bad", Remedy::Run))),
            Next::Wait(until) => {
                let until = until.unwrap_or_else(|| panic!("forgotten: {decisions:?}"));
                at = u64::try_from(until.as_millis()).unwrap();
            }
        }
    }
}

/// Batches whose facts people change; those whose facts are divisible by three fail.
#[derive(Debug, Clone, Default)]
struct World {
    facts: Vec<u8>,
    made: Vec<Option<u8>>,
    failed: Vec<Option<u8>>,
    /// Every try: batch and facts.
    tries: Vec<(usize, u8)>,
}

impl World {
    fn new(batches: usize) -> Self {
        World {
            facts: vec![1; batches],
            made: vec![None; batches],
            failed: vec![None; batches],
            tries: Vec::new(),
        }
    }

    fn observation(&self) -> Observation {
        let all = self.facts.iter().enumerate();
        let stale = all.filter(|(at, facts)| self.made[*at] != Some(**facts));
        let items = stale.map(|(at, facts)| {
            let remedy = match self.failed[at] {
                Some(_) => Remedy::Retry,
                None => Remedy::Run,
            };
            let (key, item) = batch(&at.to_string(), &facts.to_string(), remedy);
            let by_people = self.made[at].is_some();
            (key, PendingItem { by_people, ..item })
        });
        Observation::Pending(items.collect())
    }

    /// Tries one batch, as a run does.
    fn attempt(
        &mut self,
        at: usize,
        failed_batches: &BTreeMap<String, BTreeMap<String, String>>,
    ) -> bool {
        let facts = self.facts[at];
        let of_stage = failed_batches.get("s");
        let was_tried = of_stage.and_then(|it| it.get(&at.to_string())) == Some(&facts.to_string());
        if self.made[at] == Some(facts) {
            return true;
        }
        if was_tried {
            return false;
        }
        self.tries.push((at, facts));
        if facts.is_multiple_of(3) {
            // What it made before does not stand.
            self.failed[at] = Some(facts);
            self.made[at] = None;
            return false;
        }
        self.failed[at] = None;
        self.made[at] = Some(facts);
        true
    }
}

/// What people do: wait so long, then give a batch other facts.
type Deed = (u64, usize, u8);

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever people change, and whenever, also while a run is at work: in the end everything is made, or failed, from what is
    /// there; and nothing that failed is tried again with what it failed with.
    #[test]
    fn in_the_end_all_is_made_and_nothing_is_tried_twice_in_vain(
        deeds in prop::collection::vec((0_u64..3000, 0_usize..4, 1_u8..7), 0..12),
        in_runs in prop::collection::vec((0_usize..5, 0_usize..4, 1_u8..7), 0..6),
        poll in any::<bool>(),
    ) {
        let pace = Pace { poll: poll.then_some(ms(700)), ..PACE };
        let mut machine = Machine::new(pace);
        let mut world = World::new(4);
        let mut deeds: Vec<Deed> = deeds;
        deeds.reverse();
        let mut in_runs = in_runs.into_iter();
        let mut now = Duration::ZERO;
        let mut runs = 0;
        let mut idle = 0;
        for _ in 0..1000 {
            if idle > 4 {
                break;
            }
            match machine.next(now) {
                Next::CheckJournal => panic!("no stage waits for approval"),
                Next::Wait(until) => {
                    let deed = deeds.last().map(|deed| now + ms(deed.0));
                    match (deed, until) {
                        (Some(at), until) if until.is_none_or(|until| at <= until) => {
                            let (_, batch, facts) = deeds.pop().unwrap();
                            now = at;
                            world.facts[batch] = facts;
                            if !poll {
                                machine.changed(now);
                            }
                        }
                        (_, Some(until)) => now = until,
                        (_, None) => break,
                    }
                }
                Next::Scan => {
                    machine.begin_scan(now);
                    let decision = machine.scanned(now, world.observation(), false);
                    idle = if decision == Decision::Quiet && deeds.is_empty() { idle + 1 } else { 0 };
                    if decision != Decision::Run {
                        continue;
                    }
                    runs += 1;
                    let failed_batches = machine.failed_batches();
                    let meanwhile = in_runs.next();
                    let mut whole = true;
                    let mut failed = BTreeMap::new();
                    for at in 0..4 {
                        if let Some((_, batch, facts)) = meanwhile.filter(|deed| deed.0 == at) {
                            world.facts[batch] = facts;
                        }
                        let tries = world.tries.len();
                        let facts = world.facts[at];
                        let is_made = world.attempt(at, &failed_batches);
                        if !is_made && world.tries.len() > tries {
                            failed.insert(batch(&at.to_string(), "", Remedy::Retry).0, facts.to_string());
                        }
                        whole &= is_made;
                    }
                    if let Some((_, batch, facts)) = meanwhile.filter(|deed| deed.0 == 4) {
                        world.facts[batch] = facts;
                    }
                    now += ms(300);
                    machine.run_ended(now, whole, failed);
                }
            }
        }
        for at in 0..4 {
            let facts = Some(world.facts[at]);
            prop_assert!(
                world.made[at] == facts || world.failed[at] == facts,
                "batch {at} is forgotten: {world:?}"
            );
            let tries: Vec<u8> = world.tries.iter().filter(|it| it.0 == at).map(|it| it.1).collect();
            let in_vain = tries.windows(2).any(|two| two[0] == two[1] && two[0].is_multiple_of(3));
            prop_assert!(!in_vain, "batch {at} was tried twice: {world:?}");
        }
        prop_assert!(runs <= 1 + 12 + 6);
    }
}
