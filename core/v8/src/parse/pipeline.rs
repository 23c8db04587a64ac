//! One thread reads a long trace and another sums it up.

use std::panic;
use std::thread::{self, Scope, ScopedJoinHandle};

use super::assemble::Assembler;
use super::event::Event;
use super::relay::{self, Giver};
use crate::summarize::Summarizer;

/// How many events are handed over at once, some 80 KB. A shorter trace is not worth a thread.
const BATCH: usize = 256;

/// Takes events in the order of the trace.
pub(super) struct Pipeline<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    batch: Vec<Event>,
    place: Option<Place<'scope>>,
}

/// Where events are summed up: on another thread if there is a CPU for it and the system permits one.
enum Place<'scope> {
    Here(Sum),
    There(Worker<'scope>),
}

impl<'scope, 'env> Pipeline<'scope, 'env> {
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>) -> Self {
        Self { scope, batch: Vec::with_capacity(BATCH), place: None }
    }

    pub(super) fn push(&mut self, event: Event) {
        if self.batch.len() == BATCH {
            match self.place.get_or_insert_with(|| Place::find(self.scope)) {
                Place::Here(sum) => sum.add(&mut self.batch),
                Place::There(worker) => worker.batches.give(&mut self.batch),
            }
        }
        self.batch.push(event);
    }

    pub(super) fn finish(mut self) -> Summarizer {
        let mut sum = match self.place {
            None => Sum::default(),
            Some(Place::Here(sum)) => sum,
            Some(Place::There(worker)) => worker.finish(),
        };
        sum.add(&mut self.batch);
        sum.finish()
    }
}

impl<'scope> Place<'scope> {
    fn find(scope: &'scope Scope<'scope, '_>) -> Self {
        let worker = if relay::is_worth_it() { Worker::start(scope) } else { None };
        worker.map_or_else(|| Place::Here(Sum::default()), Place::There)
    }
}

struct Worker<'scope> {
    batches: Giver<Vec<Event>>,
    thread: ScopedJoinHandle<'scope, Sum>,
}

impl<'scope> Worker<'scope> {
    fn start(scope: &'scope Scope<'scope, '_>) -> Option<Self> {
        let (batches, taker) = relay::relay();
        let work = move || {
            let mut sum = Sum::default();
            while let Some(mut batch) = taker.take() {
                sum.add(&mut batch);
                taker.give_back(batch);
            }
            sum
        };
        let thread = thread::Builder::new().name("summary".to_owned()).spawn_scoped(scope, work).ok()?;
        Some(Self { batches, thread })
    }

    fn finish(self) -> Sum {
        drop(self.batches);
        self.thread.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    }
}

#[derive(Default)]
struct Sum {
    assembler: Assembler,
    summarizer: Summarizer,
}

impl Sum {
    fn add(&mut self, batch: &mut Vec<Event>) {
        for event in batch.drain(..) {
            self.assembler.push(event, &mut |fact| self.summarizer.push(fact));
        }
    }

    fn finish(mut self) -> Summarizer {
        self.assembler.flush(&mut |fact| self.summarizer.push(fact));
        self.summarizer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use crate::summary::Lines;

    /// `lines` lines of two heaps in turns, with a process that begins half way through.
    fn trace(lines: usize) -> String {
        let line = |n: usize| {
            let (pid, at_ms, used) = (7 + n % 2, (n / 2 % 5000) * 10, 4 + n % 60);
            format!(
                "[{pid}:0x3f] {at_ms:8} ms: Scavenge {used}.5 (70.0) -> {used}.1 (70.5) MB, 0.{:02} / 0.00 ms  \
                 (average mu = 1.000, current mu = 1.000) {}; \n",
                n % 97,
                ["task", "allocation failure", "external memory pressure"][n % 3]
            )
        };
        (0..lines).map(line).collect()
    }

    fn here<'a>(_: &'a Scope<'a, '_>) -> Option<Place<'a>> {
        Some(Place::Here(Sum::default()))
    }

    fn there<'a>(scope: &'a Scope<'a, '_>) -> Option<Place<'a>> {
        Worker::start(scope).map(Place::There)
    }

    fn wherever<'a>(_: &'a Scope<'a, '_>) -> Option<Place<'a>> {
        None
    }

    fn summed_up(text: &str, place: for<'a> fn(&'a Scope<'a, '_>) -> Option<Place<'a>>) -> String {
        let summarizer = thread::scope(|scope| {
            let mut pipeline = Pipeline { place: place(scope), ..Pipeline::new(scope) };
            let _ = parse::events(text.as_bytes(), &mut |event| pipeline.push(event));
            pipeline.finish()
        });
        let summary = summarizer.finish("trace", Lines::default(), None);
        serde_json::to_string(&summary).expect("a summary has no keys but names")
    }

    #[test]
    fn all_places_come_to_the_same_sum() {
        for lines in [0, 1, BATCH, BATCH + 1, 2 * BATCH, 40_000] {
            let text = trace(lines);
            let sum = summed_up(&text, here);
            assert_eq!(summed_up(&text, there), sum, "{lines} lines");
            assert_eq!(summed_up(&text, wherever), sum, "{lines} lines");
        }
    }

    #[test]
    fn a_panic_of_the_other_thread_is_not_lost() {
        let panicked = panic::catch_unwind(|| {
            thread::scope(|scope| {
                let (batches, taker) = relay::relay();
                let thread = scope.spawn(move || {
                    drop(taker);
                    panic!("of the other thread")
                });
                let worker = Worker { batches, thread };
                worker.batches.give(&mut vec![Event::OutOfMemory]);
                worker.finish()
            });
        });
        let message = panicked.expect_err("a panic");
        assert_eq!(message.downcast_ref(), Some(&"of the other thread"));
    }
}
