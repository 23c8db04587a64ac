//! What is far: objects above a threshold, which follows from the sizes of all that is allocated.
//!
//! The largest size classes whose bytes together are the wanted share are far. The class on the boundary changes sides
//! as the share passes the target, which keeps it there even if all objects have one size. Once the share is off by
//! more than half a point, more classes take part, until all that is allocated corrects it.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize};

/// Four for each doubling, with jemalloc's bounds, up to 2^48.
const CLASSES: usize = 192;
const SHARDS: usize = 8;
/// A shard looks at the share whenever it has allocated this much.
const PERIOD_SHIFT: u32 = 16;

#[repr(align(128))]
struct Shard {
    near: [AtomicI64; CLASSES],
    far: [AtomicI64; CLASSES],
    allocated: AtomicUsize,
}

static LIVE: [Shard; SHARDS] = [const {
    Shard {
        near: [const { AtomicI64::new(0) }; CLASSES],
        far: [const { AtomicI64::new(0) }; CLASSES],
        allocated: AtomicUsize::new(0),
    }
}; SHARDS];

/// Larger objects are far.
static THRESHOLD: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The wanted share in 1/65,536; 0 keeps everything near.
static TARGET: AtomicU32 = AtomicU32::new(0);
static IS_BALANCING: AtomicBool = AtomicBool::new(false);

pub(crate) fn start(target: u32) {
    TARGET.store(target, Relaxed);
}

/// Whether an object of this size is to be far.
pub(crate) fn is_far(size: usize) -> bool {
    size > THRESHOLD.load(Relaxed)
}

/// Counts an object that is there from now on.
pub(crate) fn add(is_far: bool, usable: usize) {
    let shard = shard();
    count(shard, is_far, usable, usable as i64);
    let before = shard.allocated.fetch_add(usable, Relaxed);
    if before >> PERIOD_SHIFT != before.wrapping_add(usable) >> PERIOD_SHIFT {
        balance();
    }
}

/// Counts an object that is gone.
pub(crate) fn remove(is_far: bool, usable: usize) {
    count(shard(), is_far, usable, -(usable as i64));
}

/// All bytes: near, far.
pub(crate) fn bytes() -> (i64, i64) {
    let sum = |counters: &[AtomicI64; CLASSES]| counters.iter().map(|bytes| bytes.load(Relaxed)).sum::<i64>();
    LIVE.iter().fold((0, 0), |(near, far), shard| (near + sum(&shard.near), far + sum(&shard.far)))
}

fn shard() -> &'static Shard {
    // SAFETY: it only tells which thread this is.
    let thread = unsafe { libc::pthread_self() } as usize;
    // Descriptors of threads are at the ends of stacks, which differ in the page.
    &LIVE[((thread >> 12) ^ (thread >> 23)) % SHARDS]
}

fn count(shard: &Shard, is_far: bool, usable: usize, change: i64) {
    let counters = if is_far { &shard.far } else { &shard.near };
    counters[class(usable)].fetch_add(change, Relaxed);
}

/// The class of a size: a bound belongs to the class below it, as in jemalloc.
fn class(size: usize) -> usize {
    let size = size.saturating_sub(1).max(4);
    let doubling = size.ilog2() as usize;
    (doubling * 4 + (size >> (doubling - 2)) % 4).min(CLASSES - 1)
}

/// The size that all sizes of a class are larger than.
fn below(class: usize) -> usize {
    ((4 + class % 4) << (class / 4)) >> 2
}

/// Sets the threshold, unless another thread does.
fn balance() {
    let target = i64::from(TARGET.load(Relaxed));
    if target == 0 || IS_BALANCING.swap(true, Acquire) {
        return;
    }
    let (near, far) = bytes();
    let total = (near + far).max(1);
    let wanted = (total >> 16) * target;
    let (mut class, mut above) = (CLASSES - 1, 0);
    while class > 0 {
        above += LIVE.iter().map(|s| s.near[class].load(Relaxed) + s.far[class].load(Relaxed)).sum::<i64>();
        if above > wanted {
            break;
        }
        class -= 1;
    }
    let threshold = choose(class, far - wanted, total);
    THRESHOLD.store(below(threshold), Relaxed);
    IS_BALANCING.store(false, Release);
}

/// The first class that is far, given the one on the boundary and how many bytes too many are far.
fn choose(boundary: usize, excess: i64, total: i64) -> usize {
    let tolerance = total / 200;
    // All the classes at one and a half points.
    let shift = ((excess.abs() - tolerance).max(0) / (total / 20_000).max(1)) as usize;
    if excess < 0 { boundary.saturating_sub(shift).max(8) } else { (boundary + 1 + shift).min(CLASSES - 1) }
}
