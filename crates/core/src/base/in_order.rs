//! The same work on many items on several threads, with the results in the order of the items.

pub mod no_thread;

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, scope};

/// Items that are queued for each thread: enough that it does not wait, few enough to bound memory.
const AHEAD: usize = 3;

/// The stack of a thread: programs and schemas can nest.
const STACK: usize = 16 << 20;

/// Makes what does the work, once for each thread.
pub type MakeWork<'w, I, O> = dyn Fn() -> Box<dyn FnMut(I) -> O + 'w> + Sync + 'w;

/// Does the work on each item that `feed` passes on, and passes the results to `take` in the order of the items. With one thread,
/// or if no other can be started, all of it happens on the thread of the caller.
///
/// # Errors
/// The first error of `feed` and `take`. No further item is then taken.
pub fn in_order<'w, I: Send, O: Send, E>(
    threads: usize,
    make_work: &'w MakeWork<'w, I, O>,
    feed: impl FnOnce(&mut dyn FnMut(I) -> Result<(), E>) -> Result<(), E>,
    take: &mut dyn FnMut(O) -> Result<(), E>,
) -> Result<(), E> {
    scope(|scope| {
        let wanted = if threads > 1 { threads } else { 0 };
        let started: Vec<Lane<I, O>> = (0..wanted)
            .map_while(|_| Lane::start(scope, make_work))
            .collect();
        if started.is_empty() {
            let mut work = make_work();
            return feed(&mut |item| take(work(item)));
        }
        let lane = |number: usize| &started[number % started.len()];
        let (mut given, mut taken) = (0, 0);
        feed(&mut |item| {
            if given - taken == AHEAD * started.len() {
                take(lane(taken).take())?;
                taken += 1;
            }
            lane(given).give(item);
            given += 1;
            Ok(())
        })?;
        (taken..given).try_for_each(|number| take(lane(number).take()))
    })
}

/// The way to one thread and back.
struct Lane<I, O> {
    items: SyncSender<I>,
    results: Receiver<O>,
}

impl<I: Send, O: Send> Lane<I, O> {
    fn start<'scope, 'w: 'scope>(
        scope: &'scope Scope<'scope, '_>,
        make_work: &'w MakeWork<'w, I, O>,
    ) -> Option<Self>
    where
        I: 'scope,
        O: 'scope,
    {
        let (items, received) = sync_channel::<I>(AHEAD);
        let (sender, results) = sync_channel(AHEAD);
        let run = move || {
            let mut work = make_work();
            for item in received {
                if sender.send(work(item)).is_err() {
                    return;
                }
            }
        };
        let started = Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        started.ok().map(|_| Self { items, results })
    }

    fn give(&self, item: I) {
        if self.items.send(item).is_err() {
            panicked();
        }
    }

    fn take(&self) -> O {
        self.results.recv().unwrap_or_else(|_| panicked())
    }
}

/// A thread ends early only by a panic, whose message was printed.
fn panicked() -> ! {
    resume_unwind(Box::new("a thread panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn squares(threads: usize, fails_at: Option<u64>) -> (Vec<u64>, Result<(), String>) {
        let mut found = Vec::new();
        let ran = in_order(
            threads,
            &|| {
                let seen = Cell::new(0);
                Box::new(move |item: u64| {
                    seen.set(seen.get() + 1);
                    item * item
                })
            },
            |each| (0..100).try_for_each(each),
            &mut |square| {
                if fails_at == Some(square) {
                    return Err("enough".to_owned());
                }
                found.push(square);
                Ok(())
            },
        );
        (found, ran)
    }

    #[test]
    fn results_have_the_order_of_the_items() {
        let expected: Vec<u64> = (0..100).map(|number| number * number).collect();
        for threads in [0, 1, 2, 3, 7] {
            assert_eq!(squares(threads, None), (expected.clone(), Ok(())));
            let (found, ran) = squares(threads, Some(100));
            assert_eq!(
                (found.as_slice(), ran),
                (&expected[..10], Err("enough".to_owned()))
            );
        }
    }

    #[test]
    fn a_panic_is_passed_on() {
        let ran = std::panic::catch_unwind(|| {
            in_order::<_, (), ()>(
                2,
                &|| Box::new(|_: u8| panic!("a test")),
                |each| (0..100).try_for_each(each),
                &mut |()| Ok(()),
            )
        });
        assert!(ran.is_err());
    }
}
