//! Work on several threads whose results are taken in order.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};
use std::time::Duration;

/// The results of each thread that may wait to be taken.
const AHEAD: usize = 4;

/// The stack of each thread.
const STACK: usize = 16 << 20;

/// How long the taker waits before it asks whether to continue.
const PATIENCE: Duration = Duration::from_millis(100);

/// The receiver of the results.
pub(super) trait Taker<T, E> {
    /// Returns an error to end the work.
    fn ask(&mut self) -> Result<(), E>;

    /// Takes the next result.
    fn take(&mut self, result: T) -> Result<(), E>;
}

/// Does `count` pieces of work on at most `threads` threads. `start` prepares a thread, `work` does the piece of a number, and
/// `taker` receives the results on this thread, in the order of their numbers.
///
/// # Errors
/// The first error of `taker`, which ends all work.
///
/// # Panics
/// If `start` or `work` panics.
pub(super) fn in_order<W, T: Send, E>(
    threads: usize,
    count: usize,
    start: &(impl Fn() -> W + Sync),
    work: &(impl Fn(&mut W, usize) -> T + Sync),
    taker: &mut impl Taker<T, E>,
) -> Result<(), E> {
    let threads = threads.min(count);
    let shared = Shared::new(count, threads * AHEAD);
    thread::scope(|scope| {
        // An error and a panic end the threads too.
        let _stop = StopOnDrop(&shared);
        let is_started = (0..threads).filter(|_| threads > 1).all(|_| {
            let thread = Builder::new().stack_size(STACK);
            let thread = thread.spawn_scoped(scope, || shared.serve(start, work));
            thread.is_ok()
        });
        if threads <= 1 || !is_started {
            shared.stop();
            let mut worker = start();
            for number in 0..count {
                taker.ask()?;
                taker.take(work(&mut worker, number))?;
            }
            return Ok(());
        }
        for number in 0..count {
            let result = loop {
                taker.ask()?;
                if let Some(result) = shared.result(number) {
                    break result;
                }
            };
            match result {
                Ok(result) => taker.take(result)?,
                Err(panic) => resume_unwind(panic),
            }
        }
        Ok(())
    })
}

type Panic = Box<dyn Any + Send>;

/// The state that the threads share.
struct Shared<T> {
    state: Mutex<State<T>>,
    /// There is a result.
    done: Condvar,
    /// There is room for results.
    room: Condvar,
    count: usize,
    ahead: usize,
}

struct State<T> {
    /// The next piece of work.
    next: usize,
    /// The next result that is taken.
    taken: usize,
    waiting: BTreeMap<usize, Result<T, Panic>>,
    is_stopped: bool,
}

impl<T> Shared<T> {
    fn new(count: usize, ahead: usize) -> Self {
        Self {
            state: Mutex::new(State {
                next: 0,
                taken: 0,
                waiting: BTreeMap::new(),
                is_stopped: false,
            }),
            done: Condvar::new(),
            room: Condvar::new(),
            count,
            ahead,
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does pieces of work until there are no more.
    fn serve<W>(&self, start: &impl Fn() -> W, work: &impl Fn(&mut W, usize) -> T) {
        let mut worker = None;
        while let Some(number) = self.number() {
            let result = catch_unwind(AssertUnwindSafe(|| {
                work(worker.get_or_insert_with(start), number)
            }));
            self.state().waiting.insert(number, result);
            self.done.notify_one();
        }
    }

    /// Returns the next piece of work, once there is room for its result.
    fn number(&self) -> Option<usize> {
        let mut state = self.state();
        while !state.is_stopped && state.next < self.count && state.next >= state.taken + self.ahead
        {
            let guard = self.room.wait(state);
            state = guard.unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_stopped || state.next >= self.count {
            return None;
        }
        state.next += 1;
        Some(state.next - 1)
    }

    /// Returns a result, which is then gone. Waits for it a while.
    fn result(&self, number: usize) -> Option<Result<T, Panic>> {
        let mut state = self.state();
        if !state.waiting.contains_key(&number) {
            let guard = self.done.wait_timeout(state, PATIENCE);
            state = guard.unwrap_or_else(PoisonError::into_inner).0;
        }
        let result = state.waiting.remove(&number)?;
        state.taken = number + 1;
        drop(state);
        self.room.notify_all();
        Some(result)
    }

    fn stop(&self) {
        self.state().is_stopped = true;
        self.room.notify_all();
    }
}

/// Ends the threads when it goes out of scope.
struct StopOnDrop<'s, T>(&'s Shared<T>);

impl<T> Drop for StopOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps results, up to a number.
    struct Kept(Vec<usize>, usize);

    impl Taker<usize, String> for Kept {
        fn ask(&mut self) -> Result<(), String> {
            Ok(())
        }

        fn take(&mut self, result: usize) -> Result<(), String> {
            if self.0.len() == self.1 {
                return Err("enough".to_owned());
            }
            self.0.push(result);
            Ok(())
        }
    }

    fn squares(threads: usize, count: usize, most: usize) -> (Result<(), String>, Vec<usize>) {
        let mut kept = Kept(Vec::new(), most);
        let work = |done: &mut usize, number: usize| {
            *done += 1;
            number * number
        };
        let ended = in_order(threads, count, &|| 0, &work, &mut kept);
        (ended, kept.0)
    }

    #[test]
    fn results_come_in_order_whatever_the_number_of_threads() {
        let expected: Vec<usize> = (0..100).map(|number| number * number).collect();
        for threads in [0, 1, 2, 7] {
            assert_eq!(squares(threads, 100, 100), (Ok(()), expected.clone()));
        }
        assert_eq!(squares(2, 0, 9), (Ok(()), Vec::new()));
    }

    #[test]
    fn an_error_and_a_panic_end_all_threads() {
        let enough = Err("enough".to_owned());
        assert_eq!(squares(3, 10_000, 2), (enough, vec![0, 1]));
        let mut kept = Kept(Vec::new(), 9);
        let work = |(): &mut (), number: usize| [0_usize; 3][number + 1];
        let ended = catch_unwind(AssertUnwindSafe(|| {
            in_order(2, 5, &|| (), &work, &mut kept)
        }));
        assert!(ended.is_err());
        assert_eq!(kept.0, [0, 0]);
    }
}
