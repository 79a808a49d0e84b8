//! Tests of the state machine: what follows from what, and a world in which people change files, and batches fail.

use super::*;
use proptest::prelude::*;

const PACE: Pace = Pace {
    quiet: Duration::from_millis(200),
    longest: Duration::from_secs(10),
    poll: None,
    retry: Duration::from_millis(500),
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn batch(name: &str, facts: &str, kind: Kind) -> (Key, Item) {
    let key = Key {
        stage: "s".to_owned(),
        what: What::Batch,
        name: name.to_owned(),
    };
    let item = Item {
        facts: facts.to_owned(),
        outside: Some(facts.to_owned()),
        by_people: kind == Kind::Open,
        kind,
    };
    (key, item)
}

fn todo<const N: usize>(items: [(Key, Item); N]) -> Sight {
    Sight::Todo(items.into())
}

fn look(machine: &mut Machine, at: u64, sight: Sight) -> Verdict {
    assert_eq!(machine.next(ms(at)), Next::Look, "at {at}");
    machine.looks(ms(at));
    machine.saw(ms(at), sight, false)
}

/// A machine that rests after a run, at 1 s.
fn resting() -> Machine {
    let mut machine = Machine::new(PACE);
    let first = todo([batch("a", "1", Kind::Open)]);
    assert_eq!(look(&mut machine, 0, first), Verdict::Run);
    machine.ended(ms(1000), true, BTreeMap::new());
    assert_eq!(look(&mut machine, 1000, todo([])), Verdict::Rests);
    assert_eq!(machine.next(ms(1000)), Next::Wait(None));
    machine
}

#[test]
fn it_looks_when_changes_have_ended_or_last_too_long() {
    let mut machine = resting();
    for at in [2000, 2100, 2250] {
        machine.heard(ms(at));
        assert_eq!(machine.next(ms(at)), Next::Wait(Some(ms(at + 200))));
    }
    assert_eq!(machine.next(ms(2450)), Next::Look);
    let mut machine = resting();
    for at in (2000..12_000).step_by(100) {
        machine.heard(ms(at));
        assert!(matches!(machine.next(ms(at)), Next::Wait(Some(_))), "{at}");
    }
    assert_eq!(machine.next(ms(12_000)), Next::Look);
}

#[test]
fn what_is_seen_while_it_changes_is_seen_again_before_it_runs() {
    let mut machine = resting();
    let seen = || todo([batch("a", "2", Kind::Open)]);
    machine.heard(ms(2000));
    machine.looks(ms(2200));
    assert_eq!(machine.saw(ms(2200), seen(), true), Verdict::Quiet);
    assert_eq!(machine.next(ms(2200)), Next::Wait(Some(ms(2400))));
    assert_eq!(look(&mut machine, 2400, seen()), Verdict::Run);
    // It does not wait for ever.
    let mut machine = resting();
    machine.looks(ms(2000));
    assert_eq!(machine.saw(ms(2000), seen(), true), Verdict::Quiet);
    machine.looks(ms(12_000));
    assert_eq!(machine.saw(ms(12_000), seen(), true), Verdict::Run);
}

#[test]
fn what_failed_waits_for_a_change_and_what_people_do_meanwhile_runs() {
    let mut machine = resting();
    machine.heard(ms(2000));
    let two = todo([batch("a", "2", Kind::Open), batch("b", "1", Kind::Open)]);
    assert_eq!(look(&mut machine, 2200, two), Verdict::Run);
    machine.ended(ms(3000), false, BTreeMap::new());
    let left = || todo([batch("a", "2", Kind::Failed), batch("b", "1", Kind::Open)]);
    assert_eq!(look(&mut machine, 3000, left()), Verdict::Again);
    let tried = BTreeMap::from([(
        "s".to_owned(),
        BTreeMap::from([("a".to_owned(), "2".to_owned())]),
    )]);
    assert_eq!(machine.tried(), tried);
    assert_eq!(look(&mut machine, 3000, left()), Verdict::Rests);
    machine.heard(ms(4000));
    assert_eq!(look(&mut machine, 4200, left()), Verdict::Quiet);
    machine.heard(ms(5000));
    let mended = todo([batch("a", "3", Kind::Failed), batch("b", "1", Kind::Open)]);
    assert_eq!(look(&mut machine, 5200, mended), Verdict::Run);
    // It changes once more while it fails.
    machine.ended(ms(6000), false, BTreeMap::new());
    let later = || todo([batch("a", "4", Kind::Failed)]);
    look(&mut machine, 6000, later());
    assert_eq!(machine.next(ms(6200)), Next::Look);
    let mut verdict = look(&mut machine, 6200, later());
    if verdict == Verdict::Rests {
        verdict = look(&mut machine, 6200, later());
    }
    assert_eq!(verdict, Verdict::Run);
}

#[test]
fn what_others_left_failed_is_left() {
    let mut machine = resting();
    machine.heard(ms(2000));
    assert_eq!(
        look(&mut machine, 2200, Sight::Busy("R".to_owned())),
        Verdict::Hindered
    );
    assert_eq!(machine.next(ms(2200)), Next::Wait(Some(ms(2700))));
    assert_eq!(
        look(&mut machine, 2700, Sight::Busy("R".to_owned())),
        Verdict::Quiet
    );
    let failed = || todo([batch("a", "2", Kind::Failed)]);
    assert_eq!(look(&mut machine, 3200, failed()), Verdict::Again);
    assert_eq!(look(&mut machine, 3200, failed()), Verdict::Rests);
    assert_eq!(machine.next(ms(3200)), Next::Wait(None));
}

#[test]
fn mistakes_and_folders_that_are_away_are_said_once_and_again_when_they_are_others() {
    let mut machine = resting();
    let wrong = |text: &str| Sight::Wrong(text.to_owned());
    for (at, text, verdict) in [
        (2000, "x", Verdict::Hindered),
        (3000, "x", Verdict::Quiet),
        (4000, "y", Verdict::Hindered),
    ] {
        machine.heard(ms(at));
        assert_eq!(look(&mut machine, at + 200, wrong(text)), verdict);
    }
    machine.heard(ms(5000));
    assert_eq!(look(&mut machine, 5200, todo([])), Verdict::Rests);
    machine.heard(ms(6000));
    let gone = || Sight::Gone(BTreeSet::from(["inputs".to_owned()]));
    assert_eq!(look(&mut machine, 6200, gone()), Verdict::Hindered);
    // Nobody tells when it is back.
    assert_eq!(look(&mut machine, 6700, gone()), Verdict::Quiet);
    assert_eq!(
        look(&mut machine, 7200, todo([batch("a", "2", Kind::Open)])),
        Verdict::Run
    );
}

#[test]
fn trouble_is_told_once_and_so_is_that_it_is_over() {
    let mut machine = resting();
    let key = Key {
        stage: "s".to_owned(),
        what: What::Altered,
        name: "page".to_owned(),
    };
    let altered = |facts: &str| {
        let (_, item) = batch("", facts, Kind::Trouble);
        todo([(key.clone(), item)])
    };
    for (at, sight, verdict) in [
        (2000, altered("1"), Verdict::Trouble),
        (3000, altered("1"), Verdict::Quiet),
        (4000, altered("2"), Verdict::Trouble),
        (5000, todo([]), Verdict::Rests),
        (6000, todo([]), Verdict::Quiet),
    ] {
        machine.heard(ms(at));
        assert_eq!(look(&mut machine, at + 200, sight), verdict, "{at}");
    }
}

#[test]
fn runs_that_change_what_they_read_come_ever_more_slowly() {
    let mut machine = Machine::new(PACE);
    let mut at = 0;
    let mut pauses = Vec::new();
    for run in 0..8 {
        let sight = || todo([batch("a", &run.to_string(), Kind::Open)]);
        assert_eq!(look(&mut machine, at, sight()), Verdict::Run);
        machine.ended(ms(at), true, BTreeMap::new());
        if let Verdict::PutOff(pause) = look(
            &mut machine,
            at,
            todo([batch("a", &(run + 1).to_string(), Kind::Open)]),
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
    assert_eq!(look(&mut machine, 0, todo([])), Verdict::Rests);
    assert_eq!(machine.next(ms(0)), Next::Wait(Some(ms(2000))));
    let half = todo([batch("a", "half", Kind::Open)]);
    assert_eq!(look(&mut machine, 2000, half), Verdict::Quiet);
    let whole = || todo([batch("a", "whole", Kind::Open)]);
    assert_eq!(look(&mut machine, 2200, whole()), Verdict::Quiet);
    assert_eq!(look(&mut machine, 2400, whole()), Verdict::Run);
    machine.ended(ms(2500), true, BTreeMap::new());
    assert_eq!(look(&mut machine, 2500, todo([])), Verdict::Rests);
    assert_eq!(machine.next(ms(2500)), Next::Wait(Some(ms(4500))));
    // A look that takes long is not followed by the next at once.
    machine.looks(ms(4500));
    machine.saw(ms(5500), todo([]), false);
    assert_eq!(machine.next(ms(5500)), Next::Wait(Some(ms(9500))));
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

    fn sight(&self) -> Sight {
        let all = self.facts.iter().enumerate();
        let stale = all.filter(|(at, facts)| self.made[*at] != Some(**facts));
        let items = stale.map(|(at, facts)| {
            let kind = match self.failed[at] {
                Some(_) => Kind::Failed,
                None => Kind::Open,
            };
            let (key, item) = batch(&at.to_string(), &facts.to_string(), kind);
            let by_people = self.made[at].is_some();
            (key, Item { by_people, ..item })
        });
        Sight::Todo(items.collect())
    }

    /// Tries one batch, as a run does.
    fn attempt(&mut self, at: usize, tried: &BTreeMap<String, BTreeMap<String, String>>) -> bool {
        let facts = self.facts[at];
        let of_stage = tried.get("s");
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
                Next::Wait(until) => {
                    let deed = deeds.last().map(|deed| now + ms(deed.0));
                    match (deed, until) {
                        (Some(at), until) if until.is_none_or(|until| at <= until) => {
                            let (_, batch, facts) = deeds.pop().unwrap();
                            now = at;
                            world.facts[batch] = facts;
                            if !poll {
                                machine.heard(now);
                            }
                        }
                        (_, Some(until)) => now = until,
                        (_, None) => break,
                    }
                }
                Next::Look => {
                    machine.looks(now);
                    let verdict = machine.saw(now, world.sight(), false);
                    idle = if verdict == Verdict::Quiet && deeds.is_empty() { idle + 1 } else { 0 };
                    if verdict != Verdict::Run {
                        continue;
                    }
                    runs += 1;
                    let tried = machine.tried();
                    let meanwhile = in_runs.next();
                    let mut whole = true;
                    let mut failed = BTreeMap::new();
                    for at in 0..4 {
                        if let Some((_, batch, facts)) = meanwhile.filter(|deed| deed.0 == at) {
                            world.facts[batch] = facts;
                        }
                        let tries = world.tries.len();
                        let facts = world.facts[at];
                        let is_made = world.attempt(at, &tried);
                        if !is_made && world.tries.len() > tries {
                            failed.insert(batch(&at.to_string(), "", Kind::Failed).0, facts.to_string());
                        }
                        whole &= is_made;
                    }
                    if let Some((_, batch, facts)) = meanwhile.filter(|deed| deed.0 == 4) {
                        world.facts[batch] = facts;
                    }
                    now += ms(300);
                    machine.ended(now, whole, failed);
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
