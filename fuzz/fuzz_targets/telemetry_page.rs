//! A counter page belongs to another process and may hold anything.

#![no_main]

use hasten_telemetry::{
    Counters, Engine, EngineCondition, EngineReport, HEADER_SIZE, MAGIC, SLOT_SIZE, Snapshot, VERSION,
    Warning, Window,
};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

fuzz_target!(|data: &[u8]| {
    check(data);
    check(&damaged_page(data));
});

fn check(bytes: &[u8]) {
    let Ok(snapshot) = Snapshot::parse(bytes) else { return };
    let texts = [&snapshot.program, &snapshot.accelerator, &snapshot.note];
    assert!(texts.iter().all(|text| !text.contains(char::is_control)));
    warn(&snapshot);
    let total = snapshot.total();
    assert_eq!(total.since(&total), Counters::default());
    let mut by_pid = Counters::default();
    snapshot.by_pid().values().for_each(|counters| by_pid += counters);
    assert_eq!(by_pid, total);
    assert!(snapshot.engines.len() <= Engine::COUNT);
    assert!(snapshot.engines.iter().all(|info| !info.device.contains(char::is_control)));
    for engine in Engine::ALL {
        let reports = snapshot.reports(engine, |_| true);
        let gravest = EngineReport::gravest(reports.values());
        assert_eq!(gravest.is_none(), reports.is_empty());
        assert!(
            reports.values().all(|report| report.state.gravity() <= gravest.map_or(0, |g| g.state.gravity()))
        );
    }
}

/// What is made of a page for people, who must not be misled by its texts.
fn warn(snapshot: &Snapshot) {
    let total = snapshot.total();
    let engines = EngineCondition::all(snapshot, |_| true, Duration::from_secs(9));
    assert_eq!(engines.len(), snapshot.engines.len());
    let recent = Window { elapsed: Duration::from_millis(1), counted: total.clone() };
    let warnings = engines.iter().filter_map(|engine| Warning::of_engine(engine, Some(1)));
    let warnings = warnings.chain(Warning::of_counters(&total, Some(&recent), false));
    for warning in warnings.chain(Warning::of_batches(|algorithm| snapshot.break_even(algorithm), &recent)) {
        assert!(!warning.message.contains(char::is_control) && warning.fix.ends_with('.'), "{warning:?}");
    }
}

/// A small page that starts well: without the right magic and sizes an input
/// of a few bytes would never get beyond the first checks.
fn damaged_page(data: &[u8]) -> Vec<u8> {
    let (keep_sizes, data) = data.split_first().map_or((true, data), |(first, rest)| (first % 4 != 0, rest));
    let (header, slots) = data.split_at(data.len().min(900));
    let mut page = vec![0; HEADER_SIZE + 2 * SLOT_SIZE];
    page[12..12 + header.len()].copy_from_slice(header);
    page[..8].copy_from_slice(&MAGIC.to_le_bytes());
    page[8..12].copy_from_slice(&VERSION.to_le_bytes());
    if keep_sizes {
        for (offset, value) in [(12, HEADER_SIZE as u32), (16, SLOT_SIZE as u32), (20, 2)] {
            page[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }
    }
    let length = slots.len().min(2 * SLOT_SIZE);
    page[HEADER_SIZE..HEADER_SIZE + length].copy_from_slice(&slots[..length]);
    // The same once more where the second slot has its engines, which few inputs would reach.
    let engines = HEADER_SIZE + SLOT_SIZE + 2880;
    let length = slots.len().min(16 * 72);
    page[engines..engines + length].copy_from_slice(&slots[..length]);
    page
}
