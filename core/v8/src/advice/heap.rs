//! The old generation: what stays in the heap, whether that grows, and how much is allowed.

use super::{Advice, Facts, Id, MIB, heaps, size_text};
use crate::event::Kind;
use crate::summary::{IsolateSummary, Summary};
use crate::units;

/// A heap filled beyond this fraction of its limit is collected over and over before it fails.
const FULL: f64 = 0.8;

/// Room above the size after a full collection: garbage has to go somewhere until the next one.
const ROOM: f64 = 1.5;
const LEAST_ROOM: u64 = 128 * MIB;

/// `--max-old-space-size` is advised in multiples of this.
const STEP: u64 = 64 * MIB;

/// The fraction of a memory limit that all heaps may use; the rest is for the program, its threads, and memory outside
/// the heap.
const HEAPS: f64 = 0.75;

/// The semi-space size assumed if none is known.
const USUAL_SEMI_SPACE: u64 = 16 * MIB;

/// The heap after full collections certainly rises.
pub(super) fn leak(heap: &IsolateSummary, facts: &Facts) -> Option<Advice> {
    let trend = heap.heap.trend.filter(|trend| trend.is_suspicious)?;
    let last = heap.heap.after_full.last().map_or(0, |(_, bytes)| *bytes);
    let limit = heap_limit(heap).or(facts.memory_limit_bytes).filter(|limit| *limit > last);
    let effect = limit.map_or(String::new(), |limit| {
        let hours = (limit - last) as f64 / trend.bytes_per_hour;
        format!(
            "At this rate the heap is at its limit of {} in {}.",
            size_text(limit),
            units::span(hours * 3.6e6)
        )
    });
    Some(Advice {
        id: Id::Leak,
        isolate: Some(heap.isolate),
        title: "Look for a leak: the heap behind full collections grows".to_owned(),
        reason: format!(
            "{} (between {} and {}) over {} full collections; {} stay in the heap behind the last one.",
            units::trend(trend.bytes_per_hour),
            units::trend(trend.low),
            units::trend(trend.high),
            trend.collections,
            size_text(last),
        ),
        effect,
        unknowns: vec![
            "Whether it is a leak, or a cache that is still filling. What grows, and who holds it, two copies of the process tell \
             that are taken some minutes apart: `hasten snapshot PID`, then `hasten core FIRST --compare SECOND`."
                .to_owned(),
        ],
        node_options: Vec::new(),
    })
}

/// The limit of the old generation: too small for what lives in it, or too large for the available memory.
pub(super) fn old_space(summary: &Summary, facts: &Facts, semi_space: Option<u64>) -> Option<Advice> {
    let heap = summary.isolates.iter().max_by_key(|heap| need(heap))?;
    let semi_space = semi_space.or(heap.young.semi_space).unwrap_or(USUAL_SEMI_SPACE);
    let most =
        facts.memory_limit_bytes.map(|limit| share(limit, heaps(summary)).saturating_sub(3 * semi_space));
    let wanted = need(heap).next_multiple_of(STEP);
    let current = heap_limit(heap);
    let is_full = current.is_some_and(|limit| heap.heap.peak_used as f64 >= FULL * limit as f64);
    let is_leak = heap.heap.trend.is_some_and(|trend| trend.is_suspicious);
    if (heap.ran_out_of_memory || is_full) && !is_leak {
        return Some(too_small(heap, current, wanted, most, facts));
    }
    let outgrows = current.zip(facts.memory_limit_bytes).is_some_and(|(heap, memory)| heap > memory);
    match most {
        Some(most) if outgrows && wanted <= most => {
            Some(too_large(heap, current.unwrap_or_default(), wanted, most, facts))
        }
        _ => None,
    }
}

/// The live size, and room for garbage.
fn need(heap: &IsolateSummary) -> u64 {
    let live = heap.heap.after_full.iter().map(|(_, bytes)| *bytes).max().unwrap_or(heap.heap.peak_used);
    ((live as f64 * ROOM) as u64).max(live.saturating_add(LEAST_ROOM))
}

fn share(memory_limit: u64, heaps: u64) -> u64 {
    (memory_limit as f64 * HEAPS) as u64 / heaps
}

fn heap_limit(heap: &IsolateSummary) -> Option<u64> {
    heap.process.as_ref().and_then(|process| process.heap_limit)
}

fn too_small(
    heap: &IsolateSummary,
    current: Option<u64>,
    wanted: u64,
    most: Option<u64>,
    facts: &Facts,
) -> Advice {
    let why = match (heap.ran_out_of_memory, current) {
        (true, _) => format!("V8 ran out of memory at {}", size_text(heap.heap.peak_used)),
        (false, Some(limit)) => {
            format!("The heap was at {} of its limit of {}", size_text(heap.heap.peak_used), size_text(limit))
        }
        (false, None) => format!("The heap was at {}", size_text(heap.heap.peak_used)),
    };
    // When memory ran out, the program wanted more than it had.
    let wanted = if heap.ran_out_of_memory {
        wanted.max(2 * heap.heap.peak_used).next_multiple_of(STEP)
    } else {
        wanted
    };
    let room = most.map(|most| most / STEP * STEP);
    let is_enough = room.is_none_or(|room| room >= wanted);
    let size = room.map_or(wanted, |room| wanted.min(room));
    let gains = size > heap.heap.peak_used && current.is_none_or(|limit| size > limit) && size >= STEP;
    let memory = facts.memory_limit_bytes.map_or(String::new(), |limit| format!(" of {}", size_text(limit)));
    Advice {
        id: Id::OldSpace,
        isolate: Some(heap.isolate),
        title: match gains {
            true => format!("Let the heap grow to {}", size_text(size)),
            false => "Give the program more memory".to_owned(),
        },
        reason: format!("{why}; {}.", full_collections(heap)),
        effect: match (gains, is_enough) {
            (true, true) => {
                format!("{} more room before V8 gives up.", size_text(size - heap.heap.peak_used))
            }
            (true, false) => format!(
                "{} more room; it would take {}, which the memory limit{memory} does not allow.",
                size_text(size - heap.heap.peak_used),
                size_text(wanted),
            ),
            (false, _) => {
                format!("A heap that large does not fit the memory limit{memory}: raise that first.")
            }
        },
        unknowns: vec![
            "How much the program would really fill: it was stopped, or slowed down, before it showed."
                .to_owned(),
        ],
        node_options: if gains { vec![format!("--max-old-space-size={}", size / MIB)] } else { Vec::new() },
    }
}

fn too_large(heap: &IsolateSummary, current: u64, wanted: u64, most: u64, facts: &Facts) -> Advice {
    let size = wanted.max(most / 2).next_multiple_of(STEP).min((most / STEP * STEP).max(wanted));
    let memory = size_text(facts.memory_limit_bytes.unwrap_or_default());
    Advice {
        id: Id::OldSpace,
        isolate: Some(heap.isolate),
        title: format!("Tell V8 that the heap may not grow beyond {}", size_text(size)),
        reason: format!(
            "V8 may let the heap grow to {}, and the memory limit is {memory}: the kernel would end the program before V8 \
             collects in earnest. Up to now the heap was at most {}.",
            size_text(current),
            size_text(heap.heap.peak_used),
        ),
        effect: format!(
            "V8 collects everything before {} instead of being killed at {memory}; at today's need of {} nothing else \
             changes.",
            size_text(size),
            size_text(heap.heap.peak_used),
        ),
        unknowns: vec![
            "What the program needs outside of the heap, such as buffers and its threads.".to_owned(),
        ],
        node_options: vec![format!("--max-old-space-size={}", size / MIB)],
    }
}

fn full_collections(heap: &IsolateSummary) -> String {
    let full = heap.by_kind.iter().find(|kind| kind.kind == Kind::MarkCompact);
    match full {
        Some(full) => format!(
            "{} full collections took {}",
            units::count(full.pauses.count),
            units::pause(full.pauses.total_ms)
        ),
        None => "there was no full collection".to_owned(),
    }
}
