//! Many clients at once.

use std::thread;

/// Calls `act` `times` times on each of `threads` threads, with a different argument each time.
pub fn repeat<T: Send>(threads: usize, times: usize, act: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let act = &act;
    thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || (0..times).map(|time| act(thread * times + time)).collect::<Vec<_>>())
            })
            .collect();
        started.into_iter().flat_map(|thread| thread.join().expect("the clients do not panic")).collect()
    })
}
