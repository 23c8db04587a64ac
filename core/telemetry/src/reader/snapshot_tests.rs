use super::*;
use crate::layout::Page;
use crate::{PAGE_SIZE, SLOT_COUNT, SLOT_SIZE};
use proptest::prelude::*;
use std::mem::offset_of;

/// A page as the writer leaves it, with two writers of one process.
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

    let mut bytes = page();
    // SAFETY: Page is PAGE_SIZE bytes without padding (asserted by the layout)
    // and nobody else uses this one.
    let raw = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(written).cast::<u8>(), PAGE_SIZE) };
    let texts_and_table = offset_of!(Header, note)..HEADER_SIZE;
    put(&mut bytes, texts_and_table.start, &raw[texts_and_table]);
    let cells = HEADER_SIZE + offset_of!(Slot, algorithms)..HEADER_SIZE + SLOT_SIZE;
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
        }
    }

    #[test]
    fn a_page_with_any_header_parses_or_fails(header in prop::collection::vec(any::<u32>(), 15)) {
        let mut bytes = page();
        for (index, value) in header.iter().enumerate() {
            // Small values reach deeper than random ones, which are refused.
            put(&mut bytes, 12 + index * 4, &((value % 9000) & !7).to_le_bytes());
        }
        if let Ok(snapshot) = Snapshot::parse(&bytes) {
            prop_assert!(snapshot.writers.len() <= 1024);
        }
    }
}
