//! From collections to a summary, in memory that does not grow with the trace.

mod heap;
mod pauses;
mod profile;
mod timeline;
mod trend;
mod young;

use crate::event::Isolate;
use crate::parse::assemble::Fact;
use crate::summary::{Format, Lines, Rest, Summary};
use heap::Heap;

/// Heaps beyond this number are only counted. A heap takes some 250 KB besides what the model keeps for it.
const HEAPS: usize = 64;

/// Takes facts in the order of the trace.
#[derive(Default)]
pub(crate) struct Summarizer {
    #[expect(
        clippy::vec_box,
        reason = "of a file of thousands of short processes, one is forgotten whenever another begins, and the others move up"
    )]
    heaps: Vec<Box<Heap>>,
    /// The position of the last fact: most of them come in a row.
    last: usize,
    rest: Rest,
    out_of_memory: u64,
}

impl Summarizer {
    pub(crate) fn push(&mut self, fact: Fact) {
        match fact {
            Fact::Collection(collection, formats) => {
                let heap = self.heap(collection.isolate);
                if formats.first != Format::Recorder && heap.is_over(collection) {
                    let isolate = collection.isolate;
                    self.begin(isolate);
                }
                self.heap(collection.isolate).push(collection, formats);
            }
            Fact::Release(isolate, releases) => self.heap(isolate).narrow(releases),
            Fact::Process(isolate, process) => {
                self.begin(isolate);
                self.heap(isolate).process = Some(process);
            }
            Fact::Gap(isolate, from_ms, to_ms) => self.heap(isolate).gap(from_ms, to_ms),
            Fact::Profile(isolate, worker, part) => self.heap(isolate).sample(worker, *part),
            Fact::LastWords(isolate) => self.heap(isolate).ran_out_of_memory = true,
            Fact::OutOfMemory => self.out_of_memory += 1,
        }
    }

    pub(crate) fn finish(mut self, source: &str, lines: Lines, incomplete: Option<String>) -> Summary {
        // With --trace-gc-nvp the report of a full heap does not name it; if there is only one, it must be that.
        if let [heap] = &mut self.heaps[..] {
            heap.ran_out_of_memory |= self.out_of_memory > 0;
        }
        let mut isolates: Vec<_> =
            self.heaps.into_iter().filter(|heap| !heap.is_empty()).map(|heap| heap.finish()).collect();
        isolates.sort_by(|a, b| b.pauses.total_ms.total_cmp(&a.pauses.total_ms));
        Summary {
            source: source.to_owned(),
            lines,
            incomplete,
            out_of_memory: self.out_of_memory,
            isolates,
            rest: (self.rest.isolates > 0).then_some(self.rest),
        }
    }

    /// The newest heap of that name.
    fn heap(&mut self, isolate: Isolate) -> &mut Heap {
        if self.heaps.get(self.last).is_none_or(|heap| heap.isolate != isolate) {
            match self.heaps.iter().rposition(|heap| heap.isolate == isolate) {
                Some(known) => self.last = known,
                None => self.begin(isolate),
            }
        }
        &mut self.heaps[self.last]
    }

    /// A process or a worker thread may reuse the name of one that has ended.
    fn begin(&mut self, isolate: Isolate) {
        if self.heaps.len() == HEAPS {
            self.forget_one();
        }
        self.heaps.push(Box::new(Heap::new(isolate)));
        self.last = self.heaps.len() - 1;
    }

    /// Forgets the heap with the shortest total pause.
    fn forget_one(&mut self) {
        let totals = self.heaps.iter().map(|heap| heap.pause_ms()).enumerate();
        let Some((least, _)) = totals.min_by(|(_, a), (_, b)| a.total_cmp(b)) else { return };
        let heap = self.heaps.remove(least);
        self.rest.isolates += u64::from(!heap.is_empty());
        self.rest.collections += heap.collections();
        self.rest.pause_ms += heap.pause_ms();
    }
}
