//! Traces as they occur: among other output, cut, glued, packed, repeated.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use hasten_v8::event::{Collection, Kind};
use hasten_v8::parse::{self, TraceError};
use hasten_v8::summary::{Format, Lines, Summary};

const PLAIN: &str = include_str!("fixtures/v20.trace-gc.txt");
const NVP: &str = include_str!("fixtures/v22.trace-gc-nvp.txt");
const WORKERS: &str = include_str!("fixtures/v22.workers.txt");
const OOM: &str = include_str!("fixtures/v22.oom.txt");
const RECORDING: &str = include_str!("fixtures/recorder-v20.app.jsonl");

const SCAVENGE: &str = "[7:0x5f00]       25 ms: Scavenge 4.5 (4.9) -> 3.7 (5.9) MB, 0.81 / 0.00 ms  (average mu = 1.000, \
                        current mu = 1.000) allocation failure; ";

fn read(text: impl AsRef<[u8]>) -> Summary {
    parse::read(text.as_ref(), "test", &mut |_| {}).expect("a trace")
}

/// Everything but the byte count, which depends on what surrounds the lines.
fn counts(lines: &Lines) -> [u64; 4] {
    [lines.total, lines.understood, lines.other, lines.unknown]
}

fn json(mut summary: Summary) -> String {
    summary.lines = Lines::default();
    serde_json::to_string(&summary).expect("JSON")
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn a_program_s_own_output_changes_nothing() {
    let mixed: String = PLAIN
        .lines()
        .enumerate()
        .map(|(n, line)| {
            format!("GET /{n} 200\n{line}\n{{\"level\":\"info\",\"gc\":\"off\"}}\n\n[INFO] 12:0x3 {n}\n")
        })
        .collect();
    let (plain, mixed) = (read(PLAIN), read(mixed));
    assert_eq!(counts(&mixed.lines), [5 * 71, 71, 4 * 71, 0]);
    assert_eq!(json(mixed), json(plain));
}

#[test]
fn lines_may_end_as_on_windows_or_behind_what_did_not_end() {
    let dos = read(PLAIN.replace('\n', "\r\n"));
    assert_eq!(json(dos), json(read(PLAIN)));
    let glued: String = PLAIN.lines().map(|line| format!("progress [##  ] 50%\r{line}\n")).collect();
    let glued = read(glued);
    assert_eq!(counts(&glued.lines), [71, 71, 0, 0]);
    assert_eq!(json(glued), json(read(PLAIN)));
}

#[test]
fn a_line_cut_by_another_is_shown_and_the_other_one_is_read() {
    let (head, tail) = SCAVENGE.split_at(50);
    let other = SCAVENGE.replace("[7:0x5f00]", "[8:0x6f00]");
    let summary = read(format!("{head}{other}\n{tail}\n{SCAVENGE}\n"));
    assert_eq!(counts(&summary.lines), [3, 1, 0, 2]);
    assert_eq!(summary.lines.samples.len(), 2);
    assert!(summary.lines.samples[0].starts_with("[7:0x5f00]       25 ms: Scavenge"));
    let pids: Vec<u32> = summary.isolates.iter().map(|heap| heap.isolate.pid).collect();
    assert_eq!(pids.len(), 2, "{pids:?}");
}

#[test]
fn output_in_the_middle_of_a_line_makes_it_unknown() {
    for cut in 15..SCAVENGE.find(" ms  (").expect("a pause") {
        let (head, tail) = SCAVENGE.split_at(cut);
        let summary = read(format!("{head}hello\n{tail}\n"));
        assert_eq!(summary.isolates.len(), 0, "cut at {cut}");
        assert!(summary.lines.unknown >= 1, "cut at {cut}");
    }
}

#[test]
fn what_v8_may_say_tomorrow_is_shown() {
    let summary = read("[7:0x5f00]  25 ms: Compaction 4.5 -> 3.7\n[7:0x5f00] Cold space, unused\n[7:0x5f\n");
    assert_eq!(counts(&summary.lines), [3, 0, 0, 3]);
    assert_eq!(summary.lines.samples[0], "[7:0x5f00]  25 ms: Compaction 4.5 -> 3.7");
}

#[test]
fn samples_can_be_printed() {
    let hostile = format!("[7:0x5f00] 25 ms: \x1b[2J\0\u{85}{}\n", "ä".repeat(500));
    let summary = read([hostile.as_bytes(), b"\xff\xfe\n"].concat());
    let sample = &summary.lines.samples[0];
    assert!(!sample.chars().any(char::is_control) && sample.ends_with('…') && sample.len() < 500, "{sample}");
}

#[test]
fn bytes_that_are_no_text_do_no_harm() {
    let text = [b"\0".repeat(300_000), PLAIN.as_bytes().to_vec(), b"\xff\xc0\n\0\0".to_vec()].concat();
    assert_eq!(json(read(text)), json(read(PLAIN)));
}

#[test]
fn very_long_lines_are_read_to_their_end() {
    let long = "a [1 ".repeat(1 << 20);
    let summary = read(format!("{long}{SCAVENGE}\n{long}\n"));
    assert_eq!(counts(&summary.lines), [2, 1, 1, 0]);
    assert_eq!(summary.isolates[0].pauses.count, 1);
}

#[test]
fn gzip_is_unpacked_also_in_several_members() {
    let members: Vec<u8> = PLAIN.as_bytes().chunks(1000).flat_map(gzip).collect();
    assert_eq!(json(read(&members)), json(read(PLAIN)));
    let mut reported = 0;
    parse::read(&members[..], "test", &mut |bytes| reported = bytes).expect("a trace");
    assert_eq!(reported, members.len() as u64, "progress counts the packed bytes");
}

#[test]
fn a_file_that_breaks_off_is_summed_up_to_there() {
    let packed = gzip(PLAIN.as_bytes());
    let summary = read(&packed[..packed.len() / 2]);
    assert!(summary.incomplete.is_some());
    let count = summary.isolates[0].pauses.count;
    assert!((5..71).contains(&count), "{count}");
    let damaged = [&gzip(PLAIN.as_bytes())[..], b"no member"].concat();
    assert_eq!(read(damaged).isolates[0].pauses.count, 71);
}

#[test]
fn what_cannot_be_read_says_how_to() {
    let zstd = [&[0x28, 0xb5, 0x2f, 0xfd][..], b"rest"].concat();
    let error = parse::read(&zstd[..], "gc.log.zst", &mut |_| {}).expect_err("zstd");
    assert_eq!(
        error.to_string(),
        "it is packed by zstd, which hasten does not unpack: `zstdcat gc.log.zst | hasten gc -`"
    );
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    let error = parse::read(Broken, "test", &mut |_| {}).expect_err("EIO");
    assert!(matches!(error, TraceError::Read { .. }));
    let summary = parse::read(SCAVENGE.as_bytes().chain(Broken), "test", &mut |_| {}).expect("a part");
    assert!(summary.incomplete.is_some() && summary.isolates[0].pauses.count == 1);
}

#[test]
fn nothing_is_a_summary_of_nothing() {
    let summary = read("");
    assert_eq!(counts(&summary.lines), [0; 4]);
    assert!(summary.isolates.is_empty());
}

#[test]
fn processes_and_workers_are_kept_apart() {
    let other = PLAIN.replace("[11480:", "[11481:");
    let mixed: String = PLAIN.lines().zip(other.lines()).map(|(a, b)| format!("{a}\n{b}\n")).collect();
    let summary = read(mixed);
    let alone = read(PLAIN);
    assert_eq!(summary.isolates.len(), 2);
    for heap in &summary.isolates {
        assert_eq!((heap.pauses, heap.young), (alone.isolates[0].pauses, alone.isolates[0].young));
    }
}

#[test]
fn a_worker_that_gets_the_address_of_another_is_another() {
    let summary = read(WORKERS);
    let mut heaps: Vec<_> =
        summary.isolates.iter().map(|heap| (heap.isolate.address, heap.first_ms)).collect();
    heaps.sort_by(|a, b| a.partial_cmp(b).expect("times"));
    // The main thread, and four workers one after the other.
    assert_eq!(heaps.len(), 5, "{heaps:?}");
    let addresses: std::collections::BTreeSet<_> = heaps.iter().map(|(address, _)| address).collect();
    assert!(addresses.len() < 5, "an address came twice when this was recorded");
}

#[test]
fn many_short_lived_heaps_take_bounded_memory() {
    let text: String = (0..500)
        .map(|n| {
            SCAVENGE.replace("0x5f00", &format!("0x{n}f")).replace("0.81", &format!("0.{:03}", n + 1)) + "\n"
        })
        .collect();
    let summary = read(text);
    let rest = summary.rest.expect("too many heaps");
    assert_eq!(summary.isolates.len() as u64 + rest.isolates, 500);
    assert_eq!(summary.isolates.iter().map(|heap| heap.pauses.count).sum::<u64>() + rest.collections, 500);
    assert_eq!(summary.isolates[0].pauses.max_ms, 0.5, "the longest are kept");
}

#[test]
fn the_report_of_a_full_heap_repeats_lines_that_count_once() {
    let summary = read(OOM);
    let heap = &summary.isolates[0];
    let lines = OOM
        .lines()
        .take_while(|line| !line.starts_with("<---"))
        .filter(|line| line.contains(" ms: "))
        .count();
    assert_eq!(heap.pauses.count, lines as u64);
    assert!(heap.ran_out_of_memory && summary.out_of_memory == 1);
    // What other processes write after the report is their own.
    let followed = read(format!("{OOM}\n{PLAIN}"));
    let full: Vec<bool> = followed.isolates.iter().map(|heap| heap.ran_out_of_memory).collect();
    assert_eq!(full, [true, false]);
    // A process that was not traced still reports its last collections.
    let untraced = &OOM[OOM.find("<--- Last few").expect("a report")..];
    assert_eq!(read(untraced).isolates[0].pauses.count, 2);
}

#[test]
fn a_collection_told_in_two_formats_is_one() {
    let nvp = "[7:0x5f00]       25 ms: pause=0.8 mutator=20.5 gc=s total_size_before=4740512 total_size_after=3908968 \
               allocated=4740512 promoted=10 new_space_survived=199400";
    for text in [format!("{SCAVENGE}\n{nvp}\n"), format!("{nvp}\n{SCAVENGE}\n")] {
        let collections = parse::collections(text.as_bytes());
        let [collection] = &collections[..] else { panic!("{collections:?}") };
        assert_eq!((&*collection.reason.0, collection.used_before), ("allocation failure", Some(4_740_512)));
        assert_eq!(collection.young.and_then(|young| young.promoted), Some(10));
        assert_eq!(collection.committed_after, 6_186_598);
        let heap = &read(&text).isolates[0];
        assert_eq!(heap.formats.len(), 2);
    }
    let later = nvp.replace("25 ms", "26 ms");
    assert_eq!(parse::collections(format!("{SCAVENGE}\n{later}\n").as_bytes()).len(), 2);
    let twice = format!("{SCAVENGE}\n{SCAVENGE}\n");
    assert_eq!(parse::collections(twice.as_bytes()).len(), 2, "one format does not repeat itself");
}

#[test]
fn a_table_belongs_to_the_collection_before_it() {
    let text = format!(
        "{SCAVENGE}\n[7:0x5f00] New space, used: 176 KB, available: 830 KB, committed: 2048 KB\n\
         [8:0x5f00] Old space, used: 5 KB, available: 1 KB, committed: 8 KB\n\
         [7:0x5f00] Old space, used: 2415 KB, available: 142 KB*, committed: 2608 KB\n\
         [7:0x5f00] External memory reported: 10 KB\n"
    );
    let collections = parse::collections(text.as_bytes());
    let spaces = collections[0].spaces.expect("spaces");
    assert_eq!((spaces.new, spaces.old), (176 << 10, 2415 << 10));
    assert_eq!(collections[0].external_after, Some(10 << 10));
    let young = collections[0].young.expect("a young generation");
    assert_eq!((young.copied, young.capacity), (Some(176 << 10), Some(1 << 20)));
    assert_eq!(read(&text).isolates[0].formats, [Format::TraceGc, Format::TraceGcVerbose]);
}

#[test]
fn recordings_may_follow_each_other_and_be_cut() {
    let one = read(RECORDING);
    let two = read(format!("{RECORDING}{RECORDING}"));
    assert_eq!(two.isolates.len(), 2);
    assert_eq!(two.isolates[0].pauses, one.isolates[0].pauses);
    let process = one.isolates[0].process.as_ref().expect("a process");
    assert_eq!((process.node.as_deref(), process.semi_space_max), (Some("20.20.2"), Some(16 << 20)));
    // Killed: without a last line, and in the middle of one.
    let end = RECORDING.rfind("{\"end\"").expect("an end");
    assert_eq!(counts(&read(&RECORDING[..end]).lines), [39 + 1, 39 + 1, 0, 0]);
    assert_eq!(counts(&read(&RECORDING[..end - 9]).lines), [39 + 1, 39, 0, 1]);
}

#[test]
fn an_entry_without_a_heap_still_counts() {
    let header = r#"{"hasten_gc":1,"pid":9,"node":"v24.1.0"}"#;
    let heap = r#""before":{"used":100,"committed":200},"after":{"used":60,"committed":200}"#;
    let text = format!(
        "{header}\n{{\"gc\":\"incremental-marking\",\"at_ms\":5,\"pause_ms\":0.25}}\n\
         {{\"gc\":\"scavenge\",\"at_ms\":10,\"pause_ms\":1.5,\"flags\":\"\",{heap}}}\n\
         {{\"gc\":\"scavenge\",\"at_ms\":20,\"pause_ms\":1.5}}\n\
         {{\"gc\":\"mark-compact\",\"at_ms\":30,\"pause_ms\":2,\"flags\":\"forced\",\"late\":true,\"after\":{{\"used\":50,\"committed\":9}}}}\n\
         {{\"gc\":\"later\",\"at_ms\":40,\"pause_ms\":2}}\n"
    );
    let collections = parse::collections(text.as_bytes());
    let reported: Vec<_> =
        collections.iter().map(|one| (one.kind, one.used_before, one.used_after)).collect();
    let expected = [
        (Kind::Scavenge, Some(100), Some(60)),
        (Kind::Scavenge, None, None),
        (Kind::MarkCompact, None, Some(50)),
    ];
    assert_eq!(reported, expected);
    let Collection { steps_ms, last_resort, .. } = collections[2];
    assert_eq!((steps_ms, last_resort), (0.25, true));
    let summary = read(text);
    assert_eq!((summary.isolates[0].pauses.count, summary.isolates[0].pauses.total_ms), (3, 5.0));
    assert_eq!(summary.isolates[0].heap.after_full, [(30.0, 50)]);
    assert_eq!(summary.lines.unknown, 1);
}

#[test]
fn what_lies_on_both_sides_of_a_gap_are_no_neighbours() {
    let scavenge = |at_ms: u32, before: u32, after: u32| {
        format!(
            "{{\"gc\":\"scavenge\",\"at_ms\":{at_ms},\"pause_ms\":10,\"before\":{{\"used\":{before},\"committed\":9999}},\
             \"after\":{{\"used\":{after},\"committed\":9999}}}}\n"
        )
    };
    let gap = |from: &str, to: &str| format!("{{\"gap\":true,\"from_ms\":{from},\"at_ms\":{to}}}\n");
    let header = "{\"hasten_gc\":1,\"pid\":9}\n".to_owned();
    let seen = [scavenge(1000, 500, 100), scavenge(2000, 600, 100)].concat();
    let behind = [scavenge(7000, 900, 100), scavenge(8000, 400, 100)].concat();
    let gaps = [gap("2000", "3000"), gap("3000", "6000")].concat();
    // Unobserved time before the first collection and after the last one is not part of the time between them.
    let summary = read(
        [&header, &gap("1", "900"), &seen, &gaps, &behind, &gap("8000", "9000")].map(|text| &**text).concat(),
    );
    assert_eq!(counts(&summary.lines), [9, 9, 0, 0]);
    let heap = &summary.isolates[0];
    assert_eq!((heap.span_ms(), heap.unseen_ms, heap.observed_ms()), (7000.0, 4000.0, 3000.0));
    assert_eq!(heap.pause_share, Some(30.0 / 3000.0));
    // 500 before the second collection and 300 before the last one, in a second each.
    assert_eq!((heap.young.allocated_bytes, heap.young.allocation_rate), (Some(800), Some(400.0)));
    assert!(summary.description().ends_with("observed 3.0 s of 7.0 s"), "{}", summary.description());
    let whole = read([header.clone(), seen.clone(), behind].concat());
    assert_eq!(whole.isolates[0].young.allocated_bytes, Some(1600));
    assert_eq!(whole.isolates[0].unseen_ms, 0.0);
    // Not understood: invalid times, or times that run backwards.
    for (from, to) in [("3000", "2000"), ("-1", "2"), ("1e300", "1e301"), ("null", "2")] {
        let summary = read([header.as_str(), &seen, &gap(from, to)].concat());
        assert_eq!((summary.lines.unknown, summary.isolates[0].unseen_ms), (1, 0.0), "{from} to {to}");
    }
}

#[test]
fn an_entry_that_comes_late_is_the_same_heap_s() {
    let entry = |at_ms: u32| format!("{{\"gc\":\"scavenge\",\"at_ms\":{at_ms},\"pause_ms\":1.5}}\n");
    let text = format!("{{\"hasten_gc\":1,\"pid\":9}}\n{}{}{}", entry(100), entry(50), entry(200));
    let summary = read(text);
    assert_eq!(summary.isolates.len(), 1);
    assert_eq!((summary.isolates[0].first_ms, summary.isolates[0].last_ms), (100.0, 200.0));
}

#[test]
fn a_program_s_json_is_not_a_recording() {
    let line = "{\"gc\":\"scavenge\",\"at_ms\":10,\"pause_ms\":1.5}\n";
    assert_eq!(counts(&read(line).lines), [1, 0, 1, 0]);
    let behind = read(format!("{RECORDING}{line}"));
    assert_eq!((behind.lines.other, behind.isolates.len()), (1, 1));
}

#[test]
fn prefixes_of_log_collectors_do_not_matter() {
    let kubernetes: String =
        NVP.lines().map(|line| format!("2026-11-22T06:30:00.1Z stdout F {line}\n")).collect();
    assert_eq!(json(read(kubernetes)), json(read(NVP)));
    let docker: String = PLAIN
        .lines()
        .map(|line| format!("{{\"log\":\"{}\\n\",\"stream\":\"stdout\"}}\n", line.replace("->", "-\\u003e")))
        .collect();
    assert_eq!(json(read(docker)), json(read(PLAIN)));
}
