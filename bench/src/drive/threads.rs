//! The driver's threads: they start together, and their results are merged.

use std::io;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use super::Outcome;

/// How many of `connections` each of `threads` gets; none gets zero.
pub(super) fn shares(connections: usize, threads: usize) -> impl Iterator<Item = usize> {
    let threads = threads.clamp(1, connections.max(1));
    (0..threads).map(move |index| connections / threads + usize::from(index < connections % threads))
}

/// Runs every loop to its end, after `warm_up` in its thread.
pub(super) fn run<L: Send>(
    mut loops: Vec<L>,
    warm_up: &(dyn Fn() + Sync),
    run: &(dyn Fn(L) -> io::Result<Outcome> + Sync),
) -> io::Result<Outcome> {
    // The calling thread is warm after its first run, so one loop needs no thread of its own.
    match loops.pop() {
        Some(only) if loops.is_empty() => {
            warm_up();
            let started = Instant::now();
            let mut outcome = run(only)?;
            outcome.elapsed = started.elapsed();
            Ok(outcome)
        }
        last => {
            loops.extend(last);
            together(loops, warm_up, run)
        }
    }
}

fn together<L: Send>(
    loops: Vec<L>,
    warm_up: &(dyn Fn() + Sync),
    run: &(dyn Fn(L) -> io::Result<Outcome> + Sync),
) -> io::Result<Outcome> {
    let start = &Barrier::new(loops.len() + 1);
    thread::scope(|scope| {
        let work = |driver| {
            scope.spawn(move || {
                warm_up();
                start.wait();
                run(driver)
            })
        };
        let handles: Vec<_> = loops.into_iter().map(work).collect();
        start.wait();
        let started = Instant::now();
        let mut total = Outcome::default();
        for handle in handles {
            total.merge(&handle.join().map_err(|_| io::Error::other("a driver thread panicked"))??);
        }
        total.elapsed = started.elapsed();
        Ok(total)
    })
}
