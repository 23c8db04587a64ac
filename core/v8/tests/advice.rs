//! Advice: given where it is worthwhile and certain, within the available memory, and not otherwise.

mod support;

use hasten_v8::advice::{Advice, Facts, Id, advise};
use hasten_v8::parse;
use hasten_v8::summary::{Process, Summary, Trend};
use proptest::prelude::*;
use support::{Heap, MB, fixture, text};

/// Requests whose objects live for 3 MB: small semi-spaces copy and promote what larger ones find dead.
const BUSY: Heap = Heap { allocated: 600 * MB, immortal: 0.0, window: (0.3, 3 * MB) };
const GARBAGE: Heap = Heap { allocated: 600 * MB, immortal: 0.0, window: (0.001, 64 << 10) };

fn summary(heap: &Heap, size: u64) -> Summary {
    read(text(&heap.run(size * MB)).as_bytes())
}

fn read(trace: &[u8]) -> Summary {
    parse::read(trace, "gc.log", &mut |_| ()).unwrap()
}

fn facts(limit: Option<u64>) -> Facts {
    Facts {
        memory_limit_bytes: limit.map(|limit| limit * MB),
        node_version: Some("20.20.2".into()),
        ..Facts::default()
    }
}

fn find(advice: &[Advice], id: Id) -> Option<&Advice> {
    advice.iter().find(|one| one.id == id)
}

fn semi_space(advice: &[Advice]) -> Option<u64> {
    let mut options = advice.iter().flat_map(|one| &one.node_options);
    options.find_map(|option| option.strip_prefix("--max-semi-space-size=")?.parse().ok())
}

#[test]
fn a_busy_program_in_a_small_semi_space_gets_a_larger_one() {
    let advice = advise(&[summary(&BUSY, 4)], &facts(None));
    let one = find(&advice, Id::SemiSpace).unwrap_or_else(|| panic!("{advice:#?}"));
    assert!((8..=64).contains(&semi_space(&advice).unwrap()), "{one:#?}");
    assert!(one.reason.contains("Scavenges stop the program for"), "{one:#?}");
    assert!(one.effect.contains("instead of") && one.effect.contains("four of five"), "{one:#?}");
    assert!(one.unknowns.iter().any(|unknown| unknown.contains("caches")), "{one:#?}");
}

#[test]
fn what_a_container_shrank_is_called_by_its_name() {
    let advice = advise(&[summary(&BUSY, 1)], &facts(Some(512)));
    let one = find(&advice, Id::ContainerDefault).unwrap_or_else(|| panic!("{advice:#?}"));
    assert!(one.reason.contains("512") && one.reason.contains("16"), "{one:#?}");
    assert!(semi_space(&advice).unwrap() * 3 <= 512 / 4, "{one:#?}");
}

#[test]
fn no_change_pays_where_objects_die_at_once() {
    let advice = advise(&[summary(&GARBAGE, 16)], &facts(None));
    assert_eq!(advice.len(), 1, "{advice:#?}");
    assert_eq!(advice[0].id, Id::Nothing);
    assert!(advice[0].reason.contains("%") && advice[0].node_options.is_empty(), "{advice:#?}");
}

#[test]
fn without_memory_there_is_no_larger_size() {
    let advice = advise(&[summary(&BUSY, 4)], &facts(Some(40)));
    assert_eq!(semi_space(&advice), None, "{advice:#?}");
    assert!(find(&advice, Id::Nothing).unwrap().reason.contains("do not fit"), "{advice:#?}");
}

#[test]
fn nothing_comes_of_nothing() {
    assert_eq!(advise(&[], &Facts::default()), []);
    assert_eq!(advise(&[read(b"hello\n")], &Facts::default()), []);
    let advice = advise(&[read(text(&BUSY.run(MB)[..3]).as_bytes())], &Facts::default());
    assert_eq!(advice[0].id, Id::Nothing);
    assert!(advice[0].reason.contains("needs 12"), "{advice:#?}");
}

#[test]
fn a_heap_that_grows_is_a_suspicion() {
    let mut trace = summary(&GARBAGE, 16);
    trace.isolates[0].heap.after_full = vec![(1.0, 50 * MB), (2.0, 60 * MB)];
    trace.isolates[0].heap.trend = Some(Trend {
        bytes_per_hour: 40.0 * MB as f64,
        low: 30.0 * MB as f64,
        high: 50.0 * MB as f64,
        collections: 20,
        is_suspicious: true,
    });
    let advice = advise(&[trace], &facts(Some(1024)));
    assert_eq!(advice[0].id, Id::Leak);
    assert!(advice[0].effect.contains("1d 0h"), "964 MB at 40 MB an hour: {advice:#?}");
    assert!(advice[0].node_options.is_empty() && !advice[0].unknowns.is_empty());
}

#[test]
fn a_heap_that_was_full_may_grow_if_there_is_memory() {
    let mut trace = summary(&GARBAGE, 16);
    trace.isolates[0].ran_out_of_memory = true;
    trace.isolates[0].heap.peak_used = 500 * MB;
    let roomy = advise(&[trace.clone()], &facts(Some(4096)));
    let one = find(&roomy, Id::OldSpace).unwrap_or_else(|| panic!("{roomy:#?}"));
    assert_eq!(one.node_options, ["--max-old-space-size=1024"], "{one:#?}");
    let tight = advise(&[trace], &facts(Some(512)));
    let one = find(&tight, Id::OldSpace).unwrap_or_else(|| panic!("{tight:#?}"));
    assert!(one.node_options.is_empty() && one.effect.contains("raise that first"), "{one:#?}");
}

#[test]
fn a_heap_may_not_outgrow_the_container() {
    let mut trace = summary(&GARBAGE, 16);
    trace.isolates[0].process = Some(Process { heap_limit: Some(4096 * MB), ..Process::default() });
    let advice = advise(&[trace], &facts(Some(1024)));
    let one = find(&advice, Id::OldSpace).unwrap_or_else(|| panic!("{advice:#?}"));
    let size: u64 = one.node_options[0].strip_prefix("--max-old-space-size=").unwrap().parse().unwrap();
    assert!((128..1024 - 48).contains(&size), "{one:#?}");
}

#[test]
fn a_newer_release_is_mentioned_if_it_is_installed() {
    let installed = |versions: &[&str]| Facts {
        installed: versions.iter().map(ToString::to_string).collect(),
        ..facts(None)
    };
    let trace = summary(&GARBAGE, 16);
    let advice =
        advise(std::slice::from_ref(&trace), &installed(&["18.20.8", "20.20.2", "24.1.0", "25.0.0"]));
    assert!(find(&advice, Id::Upgrade).unwrap().title.contains("24.1.0"), "{advice:#?}");
    let advice = advise(&[trace], &installed(&["18.20.8", "20.20.2", "21.7.0"]));
    assert_eq!(find(&advice, Id::Upgrade), None, "{advice:#?}");
}

#[test]
fn real_traces_of_all_releases_get_advice() {
    for release in [18, 20, 22, 24, 26] {
        for kind in ["trace-gc", "trace-gc-nvp", "trace-gc-verbose", "trace-gc.semi64", "all3", "oom"] {
            let name = format!("v{release}.{kind}.txt");
            let advice = advise(&[read(&fixture(&name))], &facts(Some(512)));
            assert!(!advice.is_empty(), "{name}");
            for one in &advice {
                assert!(!one.title.is_empty() && !one.reason.is_empty(), "{name}: {one:#?}");
                assert!(!format!("{one:?}").contains("NaN"), "{name}: {one:#?}");
            }
            let is_full = advice.iter().any(|one| one.id == Id::OldSpace);
            assert_eq!(is_full, kind == "oom", "{name}: {advice:#?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn advice_stays_within_the_memory_limit(
        immortal in 0.0..0.1_f64, share in 0.0..0.5_f64, window in 0..20_u64, from in 0..6_u32, limit in 16..4096_u64,
    ) {
        let heap = Heap { allocated: 100 * MB, immortal, window: (share, window * MB) };
        let trace = summary(&heap, 1 << from);
        let peak = trace.isolates.first().map_or(0, |heap| heap.heap.peak_used);
        let advice = advise(&[trace], &facts(Some(limit)));
        prop_assert!(!advice.is_empty());
        if let Some(size) = semi_space(&advice) {
            prop_assert!(size > 1 << from && size * 3 * 4 <= limit, "{advice:#?}");
            prop_assert!(peak + 3 * (size - (1 << from)) * MB <= limit * MB, "{advice:#?}");
        }
    }
}
