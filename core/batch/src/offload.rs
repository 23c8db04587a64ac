//! Operations on their way to a device and back.
//!
//! They are handed over as they are queued, and polled once a turn of the event loop. The device's answers are checked;
//! if an answer is missing or wrong, the operation runs at once in software.

use core::ptr::null_mut;

use hasten_crypto::{Algorithm, LANES, RsaSize};
use hasten_device::Refusal;
use hasten_guard::clock::thread_cpu_ns;
use hasten_telemetry::{Event, Reason, slot};

use crate::batch::Batch;
use crate::device::{Ended, List};
use crate::engine::Group8;
use crate::host::Host;
use crate::operation::{Verdict, Waker, Work};
use crate::queue::{Queue, Waiting};

impl<W: Waker, H: Host> Batch<W, H> {
    /// Hands queued operations to the device if it is available and cheaper.
    #[cold]
    pub(crate) fn offer(&self, queue: &Queue<W>) {
        let (device, len) = (&self.device, queue.len());
        let Some(first) = queue.operations().next() else { return };
        // SAFETY: queued operations are where they were submitted.
        let first = unsafe { &*first };
        let algorithm = first.algorithm();
        if !device.wants(first, len, |depth| self.engine.software_ns(algorithm, depth)) {
            return;
        }
        if !device.is_busy() {
            device.go_on();
        }
        for operation in queue.operations().rev() {
            // SAFETY: as above; `withdraw` and `recall` take it back.
            match unsafe { device.submit(operation) } {
                Ok(()) => self.queues.pop(queue),
                // The fault also ended the operations it already had.
                Err(Refusal::Fault(_)) if device.is_busy() => return self.collect(),
                Err(_) => return,
            }
        }
    }

    /// Polls the device for answers.
    #[cold]
    pub fn collect(&self) {
        let mut ended = self.device.poll();
        let wrong = self.check(&ended);
        if wrong {
            self.device.blame(&mut ended);
        }
        for &operation in ended.answered.operations() {
            // SAFETY: operations that have ended are still where they were submitted.
            if unsafe { (*operation).verdict } == Verdict::Done {
                self.wake(operation);
            } else {
                ended.failed.push(operation);
            }
        }
        if !ended.failed.operations().is_empty() {
            self.device.count_failed(ended.failed.operations().len());
            self.redo(&ended.failed);
        }
    }

    /// Takes an operation back from the device, to be done in software; returns whether it was there.
    pub(crate) fn recall(&self, operation: Waiting<W>) -> bool {
        let was_there = self.device.forget(operation);
        if was_there {
            let mut list = List::EMPTY;
            list.push(operation);
            self.redo(&list);
        }
        was_there
    }

    /// Gives every answer its verdict: done or failed. Returns whether any was wrong.
    fn check(&self, ended: &Ended<W>) -> bool {
        let mut wrong = 0;
        for size in RsaSize::ALL {
            let algorithm = size.sign();
            let mut good = 0;
            in_groups(&ended.answered, algorithm, |group| {
                let count = group.iter().flatten().count();
                let start = thread_cpu_ns();
                let passed = self.engine.check(group);
                self.device.spend(start);
                good += passed;
                wrong += count - passed;
            });
            if good > 0 {
                let alone = self.engine.software_ns(algorithm, 1);
                self.device.account(algorithm, ended.depth, good, alone);
            }
        }
        slot().event_n(Event::VerifyFailed, wrong as u64);
        wrong > 0
    }

    /// Redoes in software what the device has not done.
    fn redo(&self, failed: &List<W>) {
        for size in RsaSize::ALL {
            in_groups(failed, size.sign(), |group| {
                let mut operations = [null_mut(); LANES];
                for (to, from) in operations.iter_mut().zip(group.iter_mut().flatten()) {
                    *to = core::ptr::from_mut(*from);
                }
                self.engine.answer(group.each_mut().map(Option::take));
                for &operation in operations.iter().take_while(|operation| !operation.is_null()) {
                    // SAFETY: as in `collect`.
                    let verdict = unsafe { &mut (*operation).verdict };
                    if let Verdict::Bypass(Reason::Alone | Reason::BelowBreakEven) = verdict {
                        *verdict = Verdict::Bypass(Reason::BreakerOpen);
                    }
                    self.wake(operation);
                }
            });
        }
    }
}

/// Visits the operations of one kind, eight at a time.
fn in_groups<W>(list: &List<W>, algorithm: Algorithm, mut visit: impl FnMut(&mut Group8<'_, W>)) {
    // SAFETY: operations that have ended are still where they were submitted, each is in the list once, and nothing
    // else accesses them.
    let all = list.operations().iter().map(|&operation| unsafe { &mut *operation });
    let mut all =
        all.filter(|operation| matches!(operation.work, Work::Rsa(_)) && operation.algorithm() == algorithm);
    loop {
        let mut group: Group8<'_, W> = core::array::from_fn(|_| all.next());
        if group[0].is_none() {
            return;
        }
        visit(&mut group);
    }
}
