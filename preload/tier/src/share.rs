//! Which objects are far: the large ones, above a threshold that keeps the wanted share of all bytes.
//!
//! jemalloc knows how many objects of each size class there are, so nothing is counted here. Now and then a thread that
//! allocates asks it, computes how much of what comes next should be far for the share to be right soon, and finds the
//! class on the boundary: larger objects are far, smaller ones near, and of that class a part, chosen at random. So the
//! share is kept even if all objects have one size, and whatever that is.

use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};

use hasten_telemetry::{Event, Tiers};

use crate::jemalloc::{self, Mib};
use crate::{far, limits, start, thread};

/// A thread considers a look at the share whenever it has allocated this much.
const PERIOD: usize = 64 << 10;

/// The share is to be right once the heap has grown by one part in so many.
const HORIZON: usize = 16;
/// And by no less than this.
const LEAST_HORIZON: usize = 1 << 20;

/// Smaller heaps are not worth a page of counters.
const WORTH_COUNTING: usize = 1 << 20;

/// A forked process has a heap of its own, for the counters, once it has allocated so many periods.
const OWN: usize = 128;

/// More size classes than any jemalloc has.
const CLASSES: usize = 320;

/// Sizes up to here are near.
static NEAR: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Larger sizes are far.
static FAR: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The part of those between that is far, in 1/65,536.
static PART: AtomicU32 = AtomicU32::new(0);

/// The wanted share in 1/65,536.
static TARGET: AtomicU32 = AtomicU32::new(0);
/// A thread is looking.
static IS_LOOKING: AtomicBool = AtomicBool::new(false);
/// No look before this, in nanoseconds, even if much is allocated.
static SOON: AtomicU64 = AtomicU64::new(0);
/// A look after this in any case.
static DUE: AtomicU64 = AtomicU64::new(0);
/// How many periods were allocated since the last look, and how many are much for this heap.
static SINCE: AtomicUsize = AtomicUsize::new(0);
static MUCH: AtomicUsize = AtomicUsize::new(LEAST_HORIZON / PERIOD);
/// How many periods this process has allocated since it was forked.
static PERIODS: AtomicUsize = AtomicUsize::new(OWN);

/// The size and the bytes of each class; written by the thread that looks.
static SIZES: [AtomicUsize; CLASSES] = [const { AtomicUsize::new(0) }; CLASSES];
static BYTES: [AtomicUsize; CLASSES] = [const { AtomicUsize::new(0) }; CLASSES];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Near,
    Far,
    /// A size on the boundary.
    Either,
}

/// Where an object of this size belongs.
#[inline]
pub(crate) fn place(size: usize) -> Place {
    if thread::has_allocated(size, PERIOD) {
        consider();
    }
    // A threshold that changes meanwhile puts the object somewhere, which is never wrong.
    if size <= NEAR.load(Relaxed) {
        Place::Near
    } else if size > FAR.load(Relaxed) {
        Place::Far
    } else {
        Place::Either
    }
}

/// Whether a new object of this size is to be far.
#[inline]
pub(crate) fn is_far(size: usize) -> bool {
    match place(size) {
        Place::Near => false,
        Place::Far => true,
        Place::Either => thread::random() < PART.load(Relaxed),
    }
}

/// There was no far memory for an object: none is tried until the next look.
#[cold]
pub(crate) fn far_is_full() {
    NEAR.store(usize::MAX, Relaxed);
    hasten_telemetry::slot().event(Event::TierFull);
}

/// The numbers of what jemalloc is asked for.
#[derive(Clone, Copy)]
struct Questions {
    classes: usize,
    bins: usize,
    bin: Mib,
    extent: Mib,
    far_small: Mib,
    far_large: Mib,
}

struct Asked(core::cell::UnsafeCell<Questions>);
// SAFETY: written by `start` only, before any thread looks.
unsafe impl Sync for Asked {}

static QUESTIONS: Asked = Asked(core::cell::UnsafeCell::new(Questions {
    classes: 0,
    bins: 0,
    bin: Mib::NONE,
    extent: Mib::NONE,
    far_small: Mib::NONE,
    far_large: Mib::NONE,
}));

/// Begins to place objects; false if this jemalloc does not know what it has. Far memory is open.
pub(crate) fn start(target: u32) -> bool {
    let Some(questions) = questions() else { return false };
    // SAFETY: the target is still 0, so nobody reads them.
    unsafe { *QUESTIONS.0.get() = questions };
    // SAFETY: the function stays loaded, as every preload library does.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    TARGET.store(target, Release);
    look();
    true
}

fn questions() -> Option<Questions> {
    if jemalloc::get::<u8>(c"config.stats") != Some(1) {
        return None;
    }
    let bins = jemalloc::get::<u32>(c"arenas.nbins")? as usize;
    let extents = jemalloc::get::<u32>(c"arenas.nlextents")? as usize;
    let classes = (bins + extents).min(CLASSES);
    if bins == 0 || bins + extents > CLASSES {
        return None;
    }
    let (bin, extent) = (Mib::of(c"arenas.bin.0.size")?, Mib::of(c"arenas.lextent.0.size")?);
    for (class, size) in SIZES.iter().enumerate().take(classes) {
        let of_class = if class < bins { bin.with(2, class) } else { extent.with(2, class - bins) };
        size.store(of_class.size(), Relaxed);
    }
    let is_ascending = SIZES[..classes].windows(2).all(|pair| pair[0].load(Relaxed) < pair[1].load(Relaxed));
    let arena = far::arena() as usize;
    is_ascending.then_some(Questions {
        classes,
        bins,
        bin: Mib::of(c"stats.arenas.0.bins.0.curregs")?.with(2, jemalloc::ALL),
        extent: Mib::of(c"stats.arenas.0.lextents.0.curlextents")?.with(2, jemalloc::ALL),
        far_small: Mib::of(c"stats.arenas.0.small.allocated")?.with(2, arena),
        far_large: Mib::of(c"stats.arenas.0.large.allocated")?.with(2, arena),
    })
}

/// Looks, unless that was done a moment ago or another thread does.
#[cold]
fn consider() {
    PERIODS.fetch_add(1, Relaxed);
    let is_much = SINCE.fetch_add(1, Relaxed) >= MUCH.load(Relaxed);
    if TARGET.load(Acquire) == 0 || start::is_sandboxed() {
        return;
    }
    let due = if is_much { &SOON } else { &DUE };
    if now(libc::CLOCK_MONOTONIC) >= due.load(Relaxed) {
        look();
    }
}

/// A child has one thread: one of the parent's that was looking does not exist there.
extern "C" fn in_child() {
    IS_LOOKING.store(false, Relaxed);
    PERIODS.store(0, Relaxed);
    limits::start();
}

fn look() {
    /// One part in so many of a thread's time, and the same where much is allocated.
    const COST: u64 = 200;
    const MOST_COST: u64 = 30;
    const LEAST: u64 = 1_000_000;
    const MOST: u64 = 250_000_000;
    if IS_LOOKING.swap(true, Acquire) {
        return;
    }
    // Not the time that has passed: the thread may have had to wait for a processor.
    let started = now(libc::CLOCK_THREAD_CPUTIME_ID);
    // A handler that interrupts this may wait for one of jemalloc's locks, which this thread may hold.
    without_signals(balance);
    let cost = now(libc::CLOCK_THREAD_CPUTIME_ID).saturating_sub(started);
    let pause = |part: u64| now(libc::CLOCK_MONOTONIC) + (cost * part).clamp(LEAST, MOST);
    SOON.store(pause(MOST_COST), Relaxed);
    DUE.store(pause(COST), Relaxed);
    SINCE.store(0, Relaxed);
    IS_LOOKING.store(false, Release);
}

/// Not on the stack for signal handlers, which may be small.
fn without_signals(body: fn()) {
    let (mut all, mut before) = (MaybeUninit::<libc::sigset_t>::uninit(), MaybeUninit::uninit());
    let mut stack = MaybeUninit::<libc::stack_t>::uninit();
    // SAFETY: each is written before it is read; the mask of this thread is as before in the end.
    unsafe {
        if libc::sigaltstack(null(), stack.as_mut_ptr()) != 0
            || stack.assume_init_ref().ss_flags & libc::SS_ONSTACK != 0
        {
            return;
        }
        libc::sigfillset(all.as_mut_ptr());
        if libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) != 0 {
            return;
        }
        body();
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut());
    }
}

fn balance() {
    // SAFETY: written before the target, which the caller has read.
    let questions = unsafe { &*QUESTIONS.0.get() };
    // Jemalloc's statistics are those of the last epoch.
    if !jemalloc::set(c"epoch", 1_u64) {
        return;
    }
    let mut total = 0;
    for class in 0..questions.classes {
        let count = match class.checked_sub(questions.bins) {
            None => questions.bin.with(4, class).size(),
            Some(extent) => questions.extent.with(4, extent).size(),
        };
        let bytes = count.saturating_mul(SIZES[class].load(Relaxed));
        BYTES[class].store(bytes, Relaxed);
        total += bytes;
    }
    let far = questions.far_small.size() + questions.far_large.size();
    MUCH.store((total / HORIZON / 2).max(LEAST_HORIZON) / PERIOD, Relaxed);
    let target = TARGET.load(Relaxed);
    let wanted = next(total, far, target);
    let bytes = |class: usize| BYTES[class].load(Relaxed);
    let size = |class: usize| SIZES[class].load(Relaxed);
    let boundary = boundary(questions.classes, bytes, wanted);
    FAR.store(size(boundary.class), Relaxed);
    PART.store(boundary.part, Relaxed);
    let near = if boundary.class == 0 { 0 } else { size(boundary.class - 1) };
    NEAR.store(near, Relaxed);
    publish(total, far, size(boundary.class), target);
}

/// How much of each 65,536 bytes that come next should be far.
fn next(total: usize, far: usize, target: u32) -> u32 {
    let horizon = (total / HORIZON).max(LEAST_HORIZON) as u128;
    let missing = (((total as u128 + horizon) * u128::from(target)) >> 16).saturating_sub(far as u128);
    ((missing << 16) / horizon).min(1 << 16) as u32
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Boundary {
    class: usize,
    /// What is far of this class, in 1/65,536.
    part: u32,
}

/// The class down to which all objects together are `wanted` 65,536ths of all bytes.
fn boundary(classes: usize, bytes: impl Fn(usize) -> usize, wanted: u32) -> Boundary {
    let total: u128 = (0..classes).map(|class| bytes(class) as u128).sum();
    let wanted = (total * u128::from(wanted)) >> 16;
    let mut above = 0;
    for class in (0..classes).rev() {
        let own = bytes(class) as u128;
        if above + own > wanted {
            // There are bytes in this class, or its sum would be no larger.
            return Boundary { class, part: (((wanted - above) << 16) / own) as u32 };
        }
        above += own;
    }
    // All is to be far.
    Boundary { class: 0, part: 1 << 16 }
}

fn publish(total: usize, far: usize, threshold: usize, target: u32) {
    if total < WORTH_COUNTING || PERIODS.load(Relaxed) < OWN {
        return;
    }
    hasten_telemetry::start();
    hasten_telemetry::set_tiers(&Tiers {
        near: total.saturating_sub(far) as u64,
        far: far as u64,
        threshold: threshold as u64,
        target: target.into(),
    });
}

fn now(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and its time is written there.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_next_mends_the_share() {
        const QUARTER: u32 = 1 << 14;
        assert_eq!(next(1 << 30, 1 << 28, QUARTER), QUARTER, "the share is right");
        assert_eq!(next(1 << 30, 0, QUARTER), 1 << 16, "nothing is far");
        assert_eq!(next(1 << 30, 1 << 30, QUARTER), 0, "all is far");
        let slightly = next(1 << 30, (1 << 28) - (1 << 20), QUARTER);
        assert!((QUARTER + 500..QUARTER + 2000).contains(&slightly), "{slightly}");
        assert_eq!(next(0, 0, QUARTER), QUARTER);
        assert_eq!(next(usize::MAX >> 8, 0, 65535), 1 << 16);
    }

    #[test]
    fn the_boundary_divides_all_bytes() {
        let heap = [100, 0, 300, 0, 600];
        let at = |wanted| boundary(heap.len(), |class| heap[class], wanted);
        assert_eq!(at(1 << 15), Boundary { class: 4, part: (500 << 16) / 600 });
        assert_eq!(at(0), Boundary { class: 4, part: 0 });
        // 60 % and a little more.
        assert_eq!(at((3 << 16) / 4), Boundary { class: 2, part: (150 << 16) / 300 });
        assert_eq!(at(1 << 16), Boundary { class: 0, part: 1 << 16 });
        assert_eq!(boundary(3, |_| 0, 1 << 15), Boundary { class: 0, part: 1 << 16 });
    }
}
