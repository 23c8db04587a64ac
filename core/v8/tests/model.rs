//! The model against a heap whose truth is known, against real traces, and against nonsense.

mod support;

use hasten_v8::event::{Collection, Kind};
use hasten_v8::model::{Model, ModelInput, Prediction, Unfit};
use hasten_v8::parse;
use proptest::prelude::*;
use support::{Heap, MB, fixture, only_heap};

fn fit(collections: &[Collection]) -> Result<Model, Unfit> {
    Model::fit(&collections.iter().collect::<ModelInput>(), None)
}

fn scavenges(collections: &[Collection]) -> (f64, f64) {
    let pauses = collections.iter().filter(|one| one.kind == Kind::Scavenge).map(|one| one.pause_ms);
    pauses.fold((0.0, 0.0), |(count, total), pause| (count + 1.0, total + pause))
}

/// Predicts every size from a trace at `from` MB, and compares with the same heap at that size.
fn hold(heap: &Heap, from: u64, tolerance: f64, seen: fn(Vec<Collection>) -> Vec<Collection>) {
    let model = fit(&seen(heap.run(from * MB))).unwrap();
    for size in [1, 2, 4, 8, 16, 32, 64] {
        let prediction = model.predict(size * MB);
        let (count, pause) = scavenges(&heap.run(size * MB));
        for (what, predicted, true_one) in
            [("scavenges", prediction.scavenges, count), ("pause", prediction.scavenge_pause_ms, pause)]
        {
            let factor = predicted / true_one;
            assert!(
                (1.0 / tolerance..tolerance).contains(&factor),
                "{what} at {size} MB from {from} MB: {predicted:.1}, in truth {true_one:.1}; {prediction:?}"
            );
        }
    }
}

#[test]
fn objects_that_die_at_once() {
    hold(&Heap { allocated: 800 * MB, immortal: 0.0, window: (0.02, 64 << 10) }, 16, 1.3, |trace| trace);
}

#[test]
fn a_tenth_lives_on() {
    let heap = Heap { allocated: 800 * MB, immortal: 0.1, window: (0.0, 0) };
    hold(&heap, 16, 1.2, |trace| trace);
    hold(&heap, 1, 1.3, |trace| trace);
    hold(&heap, 64, 1.3, |trace| trace);
}

#[test]
fn a_quarter_lives_for_some_megabytes() {
    hold(&Heap { allocated: 800 * MB, immortal: 0.02, window: (0.25, 6 * MB) }, 16, 1.6, |trace| trace);
}

#[test]
fn a_trace_of_the_heap_alone_is_enough() {
    let heap = Heap { allocated: 800 * MB, immortal: 0.1, window: (0.0, 0) };
    hold(&heap, 16, 1.4, only_heap);
}

#[test]
fn what_was_seen_is_predicted_exactly() {
    let trace = Heap { allocated: 400 * MB, immortal: 0.05, window: (0.2, 3 * MB) }.run(16 * MB);
    let model = fit(&trace).unwrap();
    assert_eq!(model.semi_space(), 16 * MB);
    let (count, pause) = scavenges(&trace);
    let own = model.predict(16 * MB);
    assert!(
        (own.scavenges / count - 1.0).abs() < 1e-6 && (own.scavenge_pause_ms / pause - 1.0).abs() < 1e-6,
        "{own:?}"
    );
    assert!(own.scavenge_pause_low_ms < pause && pause < own.scavenge_pause_high_ms);
}

#[test]
fn sizes_between_powers_of_two_are_rounded_up_as_v8_does() {
    let model =
        fit(&Heap { allocated: 400 * MB, immortal: 0.05, window: (0.2, 3 * MB) }.run(16 * MB)).unwrap();
    assert_eq!(model.predict(20 * MB), model.predict(32 * MB));
    assert_eq!(model.predict(0).semi_space, MB);
    assert_eq!(model.predict(u64::MAX).semi_space, 1024 * MB);
}

/// Some of them show only the start-up of a small program; nothing may be made up from that, and nothing may break.
#[test]
fn real_traces_of_all_releases_are_fit_or_say_why_not() {
    for release in [18, 20, 22, 24, 26] {
        for kind in [
            "trace-gc",
            "trace-gc-nvp",
            "trace-gc-verbose",
            "trace-gc.semi64",
            "trace-gc.single",
            "all3",
            "oom",
        ] {
            let name = format!("v{release}.{kind}.txt");
            match fit(&parse::collections(&fixture(&name))) {
                Ok(model) => model.predictions().iter().for_each(|prediction| assert_sane(prediction, &name)),
                Err(why) => assert!(!why.to_string().is_empty(), "{name}"),
            }
        }
    }
    assert!(fit(&parse::collections(&fixture("v20.trace-gc-nvp.txt"))).is_ok());
}

#[test]
fn too_little_is_no_trace() {
    assert!(matches!(fit(&[]), Err(Unfit::TooFew { detailed: 0, all: 0, .. })));
    let trace = Heap { allocated: 400 * MB, immortal: 0.05, window: (0.0, 0) }.run(16 * MB);
    assert!(matches!(fit(&trace[..8]), Err(Unfit::TooFew { .. })));
    // For most of them the heap's size is unknown; the summary counts them all the same.
    let mut vague: Vec<Collection> = trace[..30].to_vec();
    for one in &mut vague[8..] {
        (one.used_before, one.used_after) = (None, None);
    }
    let why = fit(&vague).err().unwrap().to_string();
    assert!(why.contains("scavenges, ") && why.contains("come with the size of the heap"), "{why}");
    let idle: Vec<Collection> = trace
        .iter()
        .map(|one| Collection {
            used_before: Some(5 * MB),
            used_after: Some(5 * MB),
            young: None,
            ..one.clone()
        })
        .collect();
    assert_eq!(fit(&idle).err(), Some(Unfit::NoAllocation));
    let marked: Vec<Collection> =
        trace.iter().map(|one| Collection { kind: Kind::MinorMarkSweep, ..one.clone() }).collect();
    assert_eq!(fit(&marked).err(), Some(Unfit::MinorMarkSweep));
}

fn assert_sane(prediction: &Prediction, of: &str) {
    let figures = [
        prediction.scavenges,
        prediction.scavenge_pause_ms,
        prediction.copied_bytes,
        prediction.promoted_bytes,
        prediction.full_collections,
        prediction.full_pause_ms,
        prediction.scavenge_pause_low_ms,
        prediction.scavenge_pause_high_ms,
    ];
    assert!(figures.iter().all(|figure| figure.is_finite() && *figure >= 0.0), "{of}: {prediction:?}");
    assert!(prediction.reached <= prediction.semi_space, "{of}: {prediction:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn more_room_never_means_more_scavenges(
        immortal in 0.0..0.5_f64, share in 0.0..0.5_f64, window in 0..40_u64, from in 0..6_u32, plain: bool,
    ) {
        let heap = Heap { allocated: 200 * MB, immortal, window: (share, window * MB) };
        let trace = heap.run(MB << from);
        if let Ok(model) = fit(&if plain { only_heap(trace) } else { trace }) {
            for pair in model.predictions().windows(2) {
                prop_assert!(pair[0].scavenges >= pair[1].scavenges, "{pair:?}");
            }
            model.predictions().iter().for_each(|prediction| assert_sane(prediction, "a random heap"));
        }
    }

    #[test]
    fn nonsense_is_refused_or_answered_with_numbers(
        figures in prop::collection::vec((0.0..1e6_f64, 0..1_u64 << 40, 0..1_u64 << 40, any::<bool>()), 0..80),
    ) {
        let mut trace = Heap { allocated: 4 * MB, immortal: 0.1, window: (0.0, 0) }.run(MB);
        trace.truncate(1);
        let one = trace.remove(0);
        let nonsense: Vec<Collection> = figures.iter().map(|(pause, before, after, full)| Collection {
            kind: if *full { Kind::MarkCompact } else { Kind::Scavenge },
            pause_ms: *pause,
            used_before: Some(*before),
            used_after: Some(*after),
            ..one.clone()
        }).collect();
        if let Ok(model) = fit(&nonsense) {
            model.predictions().iter().for_each(|prediction| assert_sane(prediction, "nonsense"));
        }
    }
}
