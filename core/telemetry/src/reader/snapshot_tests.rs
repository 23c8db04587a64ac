use super::super::SuspensionShare;
use super::*;
use crate::layout::Page;
use crate::{EngineWork, PAGE_SIZE, SLOT_COUNT, SLOT_SIZE};
use proptest::prelude::*;
use std::mem::offset_of;

/// A page as its writer leaves it, with two writers of one process.
fn page() -> Vec<u8> {
    let mut bytes = vec![0; PAGE_SIZE];
    put(&mut bytes, offset_of!(Header, magic), &MAGIC.to_le_bytes());
    for (offset, value) in [
        (offset_of!(Header, version), VERSION),
        (offset_of!(Header, header_size), HEADER_SIZE as u32),
        (offset_of!(Header, slot_size), SLOT_SIZE as u32),
        (offset_of!(Header, slot_count), SLOT_COUNT as u32),
        (offset_of!(Header, creator_pid), 100),
        (offset_of!(Header, algorithm_count), Algorithm::COUNT as u32),
        (offset_of!(Header, reason_count), Reason::COUNT as u32),
        (offset_of!(Header, event_count), Event::COUNT as u32),
        (offset_of!(Header, engine_count), Engine::COUNT as u32),
    ] {
        put(&mut bytes, offset, &value.to_le_bytes());
    }
    put(&mut bytes, offset_of!(Header, program), b"nginx");
    put(&mut bytes, offset_of!(Header, accelerator), b"tls");
    for (index, tid) in [(0, 101_u64), (2, 102)] {
        let slot = HEADER_SIZE + index * SLOT_SIZE;
        put(&mut bytes, slot, &(101_u64 << 32 | tid).to_le_bytes());
        put(&mut bytes, slot + offset_of!(Slot, events), &tid.to_le_bytes());
    }
    bytes
}

fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}

fn with_u32(offset: usize, value: u32) -> Vec<u8> {
    let mut bytes = page();
    put(&mut bytes, offset, &value.to_le_bytes());
    bytes
}

#[test]
fn reads_names_and_sums_slots_by_process() {
    let snapshot = Snapshot::parse(&page()).unwrap();
    assert_eq!((snapshot.program.as_str(), snapshot.accelerator.as_str()), ("nginx", "tls"));
    assert_eq!(snapshot.creator_pid, 100);
    assert_eq!(snapshot.writers.iter().map(|w| w.tid).collect::<Vec<_>>(), [101, 102]);
    assert_eq!(snapshot.by_pid().keys().copied().collect::<Vec<_>>(), [101]);
    assert_eq!(snapshot.total()[Event::HandshakeStarted], 203);
    assert_eq!(snapshot.total(), snapshot.by_pid()[&101]);
}

#[test]
fn a_slot_that_changes_hands_does_not_credit_the_past_to_its_new_writer() {
    let before = Snapshot::parse(&page()).unwrap();
    let mut bytes = page();
    let slot = HEADER_SIZE;
    put(&mut bytes, slot, &(200_u64 << 32 | 200).to_le_bytes());
    put(&mut bytes, slot + offset_of!(Slot, events), &(101_u64 + 5).to_le_bytes());
    let delta = Snapshot::parse(&bytes).unwrap().by_pid_since(&before);
    assert_eq!(delta[&200][Event::HandshakeStarted], 5);
    assert_eq!(delta[&101][Event::HandshakeStarted], 0);
}

#[test]
fn another_version_is_an_error_that_names_both() {
    let error = Snapshot::parse(&with_u32(offset_of!(Header, version), 7)).unwrap_err();
    assert!(matches!(error, PageError::WrongVersion { found: 7 }));
    let text = error.to_string();
    assert!(text.contains("version 7") && text.contains("version 1"), "{text}");
    assert!(error.fix().contains("restart the server"), "{}", error.fix());
}

#[test]
fn impossible_sizes_are_named() {
    for (offset, value, expected) in [
        (offset_of!(Header, header_size), 0, "header size"),
        (offset_of!(Header, header_size), u32::MAX, "header size"),
        (offset_of!(Header, slot_size), 64, "slot size"),
        (offset_of!(Header, slot_size), u32::MAX, "slot size"),
        (offset_of!(Header, slot_count), 0, "slot count"),
        (offset_of!(Header, slot_count), u32::MAX, "slot count"),
    ] {
        match Snapshot::parse(&with_u32(offset, value)).unwrap_err() {
            PageError::Corrupt { field, value: found } => {
                assert_eq!((field, found), (expected, value.into()));
            }
            other => panic!("{expected} {value}: {other}"),
        }
    }
}

#[test]
fn short_or_foreign_bytes_are_told_apart() {
    let bytes = page();
    assert!(matches!(Snapshot::parse(&[]), Err(PageError::TooShort { have: 0, .. })));
    assert!(matches!(Snapshot::parse(&bytes[..100]), Err(PageError::TooShort { have: 100, .. })));
    let last = bytes.len() - 1;
    assert!(matches!(Snapshot::parse(&bytes[..last]), Err(PageError::TooShort { have, .. }) if have == last));
    assert!(matches!(Snapshot::parse(&[0; PAGE_SIZE]), Err(PageError::NotAPage)));
}

#[test]
fn a_larger_page_of_a_newer_writer_is_read_as_far_as_it_is_known() {
    let wide = SLOT_SIZE + 64;
    let mut bytes = with_u32(offset_of!(Header, slot_size), wide as u32);
    put(&mut bytes, offset_of!(Header, event_count), &60_u32.to_le_bytes());
    put(&mut bytes, offset_of!(Header, slot_count), &8_u32.to_le_bytes());
    let slot = HEADER_SIZE + 7 * wide;
    put(&mut bytes, slot, &(5_u64 << 32 | 5).to_le_bytes());
    let snapshot = Snapshot::parse(&bytes).unwrap();
    assert!(snapshot.writers.iter().any(|w| (w.pid, w.tid) == (5, 5)));
}

#[test]
fn names_an_older_writer_did_not_know_read_as_zero() {
    let mut bytes = with_u32(offset_of!(Header, event_count), 0);
    put(&mut bytes, offset_of!(Header, algorithm_count), &1_u32.to_le_bytes());
    let second = offset_of!(Header, break_even) + size_of::<BreakEvenCell>();
    put(&mut bytes, second, &3_u64.to_le_bytes());
    let snapshot = Snapshot::parse(&bytes).unwrap();
    assert_eq!(snapshot.total()[Event::HandshakeStarted], 0);
    assert_eq!(snapshot.break_even(Algorithm::ALL[1]), None);
}

#[test]
fn a_hostile_name_cannot_reach_the_terminal() {
    let mut bytes = page();
    put(&mut bytes, offset_of!(Header, program), b"\x1b]0;owned\x07\xff\xfe");
    let program = Snapshot::parse(&bytes).unwrap().program;
    assert!(!program.contains(char::is_control), "{program:?}");
    assert!(program.contains("owned"), "{program:?}");
}

/// The writer's structs and the reader's offsets agree.
#[test]
fn reads_back_what_the_writer_stored() {
    static WRITTEN: Page = Page::new();
    let written = &WRITTEN;
    written.set_note("AVX-512 IFMA");
    written.set_break_even(Algorithm::P384Derive, 1, 1_266_000, 427_000);
    let slot = &written.slots[0];
    slot.batched(Algorithm::P384Derive, 6, 427_000, 7_169_000);
    slot.failed(Algorithm::P384Derive, 1);
    slot.scalar(Algorithm::Rsa2048Sign, 2);
    slot.bypass(Reason::UnknownLibrary);
    slot.event_n(Event::TurnsBatched, 9);
    written.register(Engine::Libdeflate, EngineClass::Software, "", 0);
    written.register(Engine::Qat, EngineClass::Device, "0000:6b:00.0", 20_000_000);
    let work = EngineWork { ok: 5, failed: 2, bytes_in: 500, bytes_out: 90, busy_ns: 7_000, opened: 1 };
    slot.engine_ran(Engine::Libdeflate, &work);
    slot.engine_state(Engine::Libdeflate, BreakerState::Closed, None, 0);
    slot.engine_state(Engine::Qat, BreakerState::Open, Some(Fault::HeartbeatLost), 99_000_000_000);
    slot.suspension(Suspension::Off, Some(Doubt::MovedDescriptor));

    let mut bytes = page();
    // SAFETY: Page is PAGE_SIZE bytes without padding (asserted by the layout)
    // and nothing else uses this one.
    let raw = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(written).cast::<u8>(), PAGE_SIZE) };
    let texts_and_table = offset_of!(Header, note)..HEADER_SIZE;
    put(&mut bytes, texts_and_table.start, &raw[texts_and_table]);
    let cells = HEADER_SIZE + offset_of!(Slot, suspension)..HEADER_SIZE + SLOT_SIZE;
    put(&mut bytes, cells.start, &raw[cells]);

    let snapshot = Snapshot::parse(&bytes).unwrap();
    assert_eq!(snapshot.note, "AVX-512 IFMA");
    let break_even = BreakEven { lanes: 1, scalar_ns: 1_266_000, batch_ns: 427_000 };
    assert_eq!(snapshot.break_even(Algorithm::P384Derive), Some(break_even));
    assert_eq!(snapshot.break_even(Algorithm::P384Sign), None);
    let counters = &snapshot.writers[0].counters;
    let derive = counters[Algorithm::P384Derive];
    assert_eq!((derive.batched, derive.batches, derive.failed), (6, 1, 1));
    assert_eq!((derive.batch_ns, derive.saved_ns, derive.lanes[5]), (427_000, 7_169_000, 1));
    assert_eq!(counters[Algorithm::Rsa2048Sign].scalar, 2);
    assert_eq!(counters[Reason::UnknownLibrary], 1);
    assert_eq!(counters[Event::TurnsBatched], 9);

    let device = EngineInfo {
        engine: Engine::Qat,
        class: EngineClass::Device,
        device: "0000:6b:00.0".to_owned(),
        timeout: Some(Duration::from_millis(20)),
    };
    assert_eq!(snapshot.engines.len(), 2, "those that were registered");
    assert_eq!(snapshot.engine(Engine::Qat), Some(&device));
    let software = snapshot.engine(Engine::Libdeflate).unwrap();
    assert_eq!(
        (software.class, software.device.as_str(), software.timeout),
        (EngineClass::Software, "", None)
    );
    let done = counters[Engine::Libdeflate];
    assert_eq!((done.ok, done.failed, done.operations(), done.opened), (5, 2, 7, 1));
    assert_eq!((done.bytes_in, done.bytes_out, done.busy_ns), (500, 90, 7_000));
    let report = snapshot.reports(Engine::Qat, |pid| pid == 101)[&101];
    assert_eq!((report.state, report.fault), (BreakerState::Open, Some(Fault::HeartbeatLost)));
    assert_eq!(report.probe, Some(Duration::from_secs(99)));
    assert!(!report.since.is_zero() && report.since <= boottime());
    assert!(snapshot.reports(Engine::Libdeflate, |_| true)[&101].fault.is_none());
    assert!(snapshot.reports(Engine::Isal, |_| true).is_empty(), "nobody has looked at it");
    let report = snapshot.suspensions(|pid| pid == 101)[&101];
    assert_eq!((report.state, report.doubt), (Suspension::Off, Some(Doubt::MovedDescriptor)));
    assert!(!report.since.is_zero() && report.since <= boottime());
}

/// A slot's report on suspended handshakes, in `page`.
fn suspension(bytes: &mut [u8], slot: usize, word: u64, since: u64) {
    let cells = HEADER_SIZE + slot * SLOT_SIZE;
    put(bytes, cells + offset_of!(Slot, suspension), &word.to_le_bytes());
    put(bytes, cells + offset_of!(Slot, suspension_since_ns), &since.to_le_bytes());
}

#[test]
fn a_process_says_where_its_memory_is_once() {
    let mut bytes = page();
    let cells = HEADER_SIZE + 2 * SLOT_SIZE + offset_of!(Slot, tiers);
    for (i, value) in [100_u64, 300, 2048, 3 << 14].iter().enumerate() {
        put(&mut bytes, cells + i * 8, &value.to_le_bytes());
    }
    let snapshot = Snapshot::parse(&bytes).unwrap();
    let pid = snapshot.writers.iter().find(|writer| writer.slot == 2).unwrap().pid;
    let tiers = snapshot.tiers(|_| true);
    assert_eq!(tiers.len(), 1, "only one slot has a report");
    assert_eq!(tiers[&pid], Tiers { near: 100, far: 300, threshold: 2048, target: 3 << 14 });
    assert_eq!((tiers[&pid].share(), tiers[&pid].target_share()), (0.75, 0.75));
    assert!(snapshot.tiers(|one| one != pid).is_empty());
}

#[test]
fn a_process_is_as_far_as_its_furthest_thread_unless_it_is_off() {
    let said = |first: u64, second: u64| {
        let mut bytes = page();
        suspension(&mut bytes, 0, first, 1_000);
        suspension(&mut bytes, 2, second, 2_000);
        let reports = Snapshot::parse(&bytes).unwrap().suspensions(|_| true);
        reports.get(&101).map(|report| (report.state, report.doubt, report.since.as_nanos()))
    };
    let [proven, expected, shadowing] = [1, 2, 3];
    let off = 4 | u64::from(Doubt::NestedLoop.number()) << 8;
    assert_eq!(said(0, 0), None, "nobody has reported");
    assert_eq!(said(expected, shadowing), Some((Suspension::Expected, None, 1_000)));
    assert_eq!(said(shadowing, proven), Some((Suspension::Proven, None, 2_000)));
    assert_eq!(said(off, proven), Some((Suspension::Off, Some(Doubt::NestedLoop), 1_000)));
    assert_eq!(said(4 | 200 << 8, 99), Some((Suspension::Off, None, 1_000)), "of a newer writer");
}

#[test]
fn processes_that_say_the_same_stand_together_and_those_that_are_off_first() {
    let mut bytes = page();
    for (slot, pid, word, since) in
        [(0, 101_u64, 2, 5), (1, 102, 2, 3), (2, 103, 4 | 3 << 8, 7), (3, 104, 2, 1)]
    {
        put(&mut bytes, HEADER_SIZE + slot * SLOT_SIZE, &(pid << 32 | pid).to_le_bytes());
        suspension(&mut bytes, slot, word, since * 1_000_000_000);
    }
    let snapshot = Snapshot::parse(&bytes).unwrap();
    let shares = SuspensionShare::all(&snapshot, |pid| pid != 104, Duration::from_secs(10));
    let texts: Vec<_> = shares.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["off (nobody-came) in 1 of 3 processes", "expected in 2 of 3 processes"]);
    assert_eq!(shares[1].age(), Duration::from_secs(7), "that of the first who said so");
    assert_eq!(SuspensionShare::all(&snapshot, |pid| pid == 104, Duration::ZERO)[0].to_string(), "expected");
}

/// The state cells of an engine in a slot of `page`.
fn report(bytes: &mut [u8], slot: usize, engine: Engine, state: u64, since: u64) {
    let cells = HEADER_SIZE
        + slot * SLOT_SIZE
        + offset_of!(Slot, engines)
        + engine.index() * size_of::<EngineCells>();
    put(bytes, cells + offset_of!(EngineCells, state), &state.to_le_bytes());
    put(bytes, cells + offset_of!(EngineCells, since_ns), &since.to_le_bytes());
}

#[test]
fn of_the_threads_of_a_process_the_one_that_saw_the_last_change_speaks() {
    let mut bytes = page();
    report(&mut bytes, 0, Engine::Isal, 1 | 4 << 8, 1_000);
    report(&mut bytes, 2, Engine::Isal, 4 << 8, 2_000);
    let snapshot = Snapshot::parse(&bytes).unwrap();
    let reports = snapshot.reports(Engine::Isal, |_| true);
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[&101].state, reports[&101].fault), (BreakerState::Closed, Some(Fault::BadOutput)));
    assert!(snapshot.reports(Engine::Isal, |pid| pid != 101).is_empty(), "it has ended");
}

#[test]
fn states_and_faults_that_nobody_knows_are_passed_over() {
    let mut bytes = page();
    report(&mut bytes, 0, Engine::Isal, 4, 1_000);
    report(&mut bytes, 0, Engine::Qpl, 1 | 200 << 8, 1_000);
    report(&mut bytes, 0, Engine::Dml, 1, 0);
    let snapshot = Snapshot::parse(&bytes).unwrap();
    assert!(snapshot.reports(Engine::Isal, |_| true).is_empty());
    assert_eq!(snapshot.reports(Engine::Qpl, |_| true)[&101].fault, None);
    assert!(snapshot.reports(Engine::Dml, |_| true).is_empty());
}

#[test]
fn a_page_without_an_engine_table_has_neither_engines_nor_control() {
    let mut bytes = with_u32(offset_of!(Header, engine_count), 0);
    put(&mut bytes, offset_of!(Header, control), &77_u64.to_le_bytes());
    let cell = offset_of!(Header, engines);
    put(&mut bytes, cell + offset_of!(EngineCell, class), &1_u32.to_le_bytes());
    put(&mut bytes, cell + offset_of!(EngineCell, present), &1_u32.to_le_bytes());
    report(&mut bytes, 0, Engine::Multibuffer, 1, 1_000);
    let snapshot = Snapshot::parse(&bytes).unwrap();
    assert!(snapshot.engines.is_empty() && snapshot.control.is_none());
    assert!(snapshot.reports(Engine::Multibuffer, |_| true).is_empty());

    put(&mut bytes, offset_of!(Header, engine_count), &1_u32.to_le_bytes());
    let snapshot = Snapshot::parse(&bytes).unwrap();
    assert_eq!((snapshot.engines.len(), snapshot.control), (1, Some(77)));
    assert_eq!(snapshot.reports(Engine::Multibuffer, |_| true).len(), 1);
}

proptest! {
    #[test]
    fn any_bytes_parse_or_fail(bytes: Vec<u8>) {
        prop_assert!(Snapshot::parse(&bytes).is_err());
    }

    #[test]
    fn a_page_with_any_damage_parses_or_fails(damage in prop::collection::vec((0..PAGE_SIZE, any::<u8>()), 0..64)) {
        let mut bytes = page();
        damage.iter().for_each(|(offset, value)| bytes[*offset] = *value);
        if let Ok(snapshot) = Snapshot::parse(&bytes) {
            prop_assert!(snapshot.writers.len() <= 1024);
            prop_assert!(!snapshot.program.contains(char::is_control));
            prop_assert_eq!(snapshot.total().since(&snapshot.total()), Counters::default());
            for engine in Engine::ALL {
                let reports = snapshot.reports(engine, |_| true);
                let gravest = EngineReport::gravest(reports.values());
                prop_assert_eq!(gravest.is_none(), reports.is_empty());
            }
        }
    }

    #[test]
    fn a_page_with_any_header_parses_or_fails(header in prop::collection::vec(any::<u32>(), 15)) {
        let mut bytes = page();
        for (index, value) in header.iter().enumerate() {
            // Small values get further than random ones, which are rejected.
            put(&mut bytes, 12 + index * 4, &((value % 9000) & !7).to_le_bytes());
        }
        if let Ok(snapshot) = Snapshot::parse(&bytes) {
            prop_assert!(snapshot.writers.len() <= 1024);
        }
    }
}
