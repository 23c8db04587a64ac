//! The size of the young generation: `--max-semi-space-size`.

use super::{Advice, Facts, Id, MIB, defaults, heaps, major, size_text, wall_ms};
use crate::model::{Model, Prediction};
use crate::summary::{IsolateSummary, Summary};
use crate::units;

/// A smaller fraction of wall time is not worth an option that somebody has to maintain.
const WORTH: f64 = 0.01;

/// A size has to achieve this fraction of what the largest one would.
const MOST_OF_IT: f64 = 0.85;

/// Beyond this the semi-spaces outgrow the caches of most machines: pauses still fall, CPU time often does not.
const LARGEST: u64 = 64 * MIB;

/// The young generation is two semi-spaces, and as much again for large objects.
const SPACES: u64 = 3;

/// Fractions of the memory limit: for the heap together with the program itself, and for the young generation alone.
const FILLED: f64 = 0.85;
const YOUNG: f64 = 0.25;

/// The program, its libraries and its memory outside the heap, unless known more precisely.
const OUTSIDE: u64 = 64 * MIB;

/// Always gives advice: a size, or `nothing` with the figures.
pub(super) fn advise(summary: &Summary, facts: &Facts) -> Advice {
    let heap = &summary.isolates[0];
    let model = match Model::fit(&heap.model, limit(heap, facts)) {
        Ok(model) => model,
        Err(unfit) => {
            return nothing(
                heap,
                "No advice on the young generation",
                format!("A model of it needs more: {unfit}."),
            );
        }
    };
    let now = model.predict(model.semi_space());
    if !model.is_limited() {
        return not_limited(heap, &now);
    }
    let allowed =
        |size: &&Prediction| size.semi_space <= LARGEST && fits(size.semi_space, &model, summary, facts);
    let larger: Vec<&Prediction> = model
        .predictions()
        .iter()
        .filter(|size| size.semi_space > model.semi_space())
        .filter(allowed)
        .collect();
    let wall = wall_ms(heap).max(1.0);
    let saving = |size: &Prediction| (now.scavenge_pause_ms - size.scavenge_pause_ms) / wall;
    let most = larger.iter().map(|size| saving(size)).fold(0.0, f64::max);
    // It is still a gain half way to the bad end of the interval.
    let is_likely = |size: &&&Prediction| {
        (size.scavenge_pause_ms + size.scavenge_pause_high_ms) / 2.0 < now.scavenge_pause_ms
    };
    let best = larger.iter().filter(is_likely).find(|size| saving(size) >= (MOST_OF_IT * most).max(WORTH));
    match best {
        Some(best) => size(summary, facts, &model, best),
        None => no_size(heap, &model, &larger, now, facts),
    }
}

/// The size set by such options, in bytes.
pub(super) fn size_of(options: &[String]) -> Option<u64> {
    let number = options.iter().find_map(|option| option.strip_prefix("--max-semi-space-size="))?;
    Some(number.parse::<u64>().ok()? * MIB)
}

fn limit(heap: &IsolateSummary, facts: &Facts) -> Option<u64> {
    facts.semi_space_max.or(heap.process.as_ref().and_then(|process| process.semi_space_max))
}

/// Whether the trace's heaps, with semi-spaces of that size, stay within the memory limit.
fn fits(semi_space: u64, model: &Model, summary: &Summary, facts: &Facts) -> bool {
    let Some(limit) = facts.memory_limit_bytes else { return true };
    let young = SPACES * semi_space * heaps(summary);
    let more = SPACES * semi_space.saturating_sub(model.semi_space()) * heaps(summary);
    let heap: u64 =
        summary.isolates.iter().map(|heap| heap.heap.peak_committed.max(heap.heap.peak_used)).sum();
    let outside: u64 = summary.isolates.iter().filter_map(|heap| heap.heap.peak_external).sum();
    let all = heap.saturating_add(outside.max(OUTSIDE)).saturating_add(more);
    young as f64 <= YOUNG * limit as f64 && all as f64 <= FILLED * limit as f64
}

fn size(summary: &Summary, facts: &Facts, model: &Model, best: &Prediction) -> Advice {
    let heap = &summary.isolates[0];
    let (now, wall) = (model.predict(model.semi_space()), wall_ms(heap).max(1.0));
    let share = |ms: f64| units::percent(ms / wall);
    let shrunk = shrunk(heap, model, facts);
    let more = SPACES * (best.semi_space - model.semi_space()) * heaps(summary);
    let reason = format!(
        "{}Scavenges stop the program for {} of wall time: {} of them, {} in all, at {} per semi-space.",
        shrunk.as_deref().unwrap_or_default(),
        share(now.scavenge_pause_ms),
        units::count(now.scavenges.round() as u64),
        units::pause(now.scavenge_pause_ms),
        size_text(model.semi_space()),
    );
    let effect = format!(
        "{} scavenges instead of {}; {} of wall time instead of {} (between {} and {} in four of five cases); \
         {} promoted instead of {}. Up to {} more memory{}.",
        units::count(best.scavenges.round() as u64),
        units::count(now.scavenges.round() as u64),
        share(best.scavenge_pause_ms),
        share(now.scavenge_pause_ms),
        share(best.scavenge_pause_low_ms),
        share(best.scavenge_pause_high_ms),
        units::bytes(best.promoted_bytes),
        units::bytes(now.promoted_bytes),
        size_text(more),
        memory(facts),
    );
    Advice {
        id: if shrunk.is_some() { Id::ContainerDefault } else { Id::SemiSpace },
        isolate: Some(heap.isolate),
        title: format!("Give the young generation semi-spaces of {}", size_text(best.semi_space)),
        reason,
        effect,
        unknowns: unknowns(model, best.semi_space),
        node_options: vec![format!("--max-semi-space-size={}", best.semi_space / MIB)],
    }
}

/// The sentence about V8's own choice, if the container made it a small one.
fn shrunk(heap: &IsolateSummary, model: &Model, facts: &Facts) -> Option<String> {
    let release = major(heap, facts)?;
    let limit = facts.memory_limit_bytes?;
    let (small, usual) = (defaults::semi_space(release, Some(limit))?, defaults::unlimited(release)?);
    (small < usual && small == model.semi_space()).then(|| {
        format!(
            "Under a memory limit of {} Node {release} makes a semi-space {}, where it would be {} with more memory. ",
            size_text(limit),
            size_text(small),
            size_text(usual)
        )
    })
}

fn memory(facts: &Facts) -> String {
    match facts.memory_limit_bytes {
        Some(limit) => format!(", under the limit of {}", size_text(limit)),
        None => String::new(),
    }
}

fn unknowns(model: &Model, semi_space: u64) -> Vec<String> {
    let mut unknowns = vec![
        "What larger semi-spaces do to the caches of the CPU: pauses can fall while CPU time rises. Compare CPU time \
         for the same work, not pauses alone."
            .to_owned(),
        "Whether the program will do what it did in the trace; at another load objects live through more or less \
         allocation."
            .to_owned(),
    ];
    if semi_space > 8 * model.semi_space() {
        unknowns.push(format!(
            "How long objects live beyond what semi-spaces of {} show; trace again with the new size.",
            size_text(model.semi_space())
        ));
    }
    if !model.is_measured() {
        unknowns.push(
            "What was copied and promoted: the trace tells only of the heap. --trace-gc-nvp or `hasten gc record` tell it."
                .to_owned(),
        );
    }
    unknowns
}

/// All sizes were considered, and none is worthwhile.
fn no_size(
    heap: &IsolateSummary,
    model: &Model,
    larger: &[&Prediction],
    now: Prediction,
    facts: &Facts,
) -> Advice {
    let wall = wall_ms(heap).max(1.0);
    let share = |ms: f64| units::percent(ms / wall);
    let now_text = format!(
        "Scavenges stop the program for {} of wall time at {} per semi-space",
        share(now.scavenge_pause_ms),
        size_text(model.semi_space()),
    );
    let best = larger.iter().min_by(|a, b| a.scavenge_pause_ms.total_cmp(&b.scavenge_pause_ms));
    let reason = match best {
        Some(best) => format!(
            "{now_text}; at {} it would be {} (between {} and {}), which is no difference that matters, or none that is likely.",
            size_text(best.semi_space),
            share(best.scavenge_pause_ms),
            share(best.scavenge_pause_low_ms),
            share(best.scavenge_pause_high_ms),
        ),
        None if model.semi_space() >= LARGEST => {
            format!("{now_text}; larger ones outgrow the caches of most CPUs.")
        }
        None => format!("{now_text}; larger ones do not fit{}.", memory(facts)),
    };
    nothing(heap, "No change pays", reason)
}

/// A larger limit only helps programs that reach the present one.
fn not_limited(heap: &IsolateSummary, now: &Prediction) -> Advice {
    let reason = format!(
        "Scavenges stop the program for {} of wall time. Semi-spaces grew to {} in the trace, and too little survived for V8 \
         to make them larger: their limit is not what costs time.",
        units::percent(now.scavenge_pause_ms / wall_ms(heap).max(1.0)),
        size_text(now.semi_space),
    );
    nothing(heap, "No change pays", reason)
}

fn nothing(heap: &IsolateSummary, title: &str, reason: String) -> Advice {
    Advice {
        id: Id::Nothing,
        isolate: Some(heap.isolate),
        title: title.to_owned(),
        reason,
        effect: String::new(),
        unknowns: Vec::new(),
        node_options: Vec::new(),
    }
}
