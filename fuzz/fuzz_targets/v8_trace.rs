//! Traces of garbage collection that somebody else wrote: any bytes, and lines of V8 cut, glued and altered.

#![no_main]

use std::io::{self, Read};

use hasten_v8::profile::Profile;
use hasten_v8::summary::{IsolateSummary, Summary};
use hasten_v8::{export, parse};
use libfuzzer_sys::fuzz_target;

/// One line of each kind: without these, an input would hardly ever get beyond a prefix.
const LINES: [&str; 21] = [
    "[7:0x5f00]       25 ms: Scavenge 4.5 (4.9) -> 3.7 (5.9) MB, 0.8 / 0.0 ms  (average mu = 1.000, current mu = 1.000) task; \n",
    "[7:0x5f00]      335 ms: Mark-sweep (reduce) 11.7 (24.4) -> 8.5 (26.4) MB, 10.2 / 0.0 ms  (+ 4.8 ms in 21 steps) testing; x\n",
    "[7:0x5f00]      370 ms: Incremental Mark-Compact 21.8 (49.7) -> 18.0 (85.3) MB, pooled: 0.0 MB, 15.07 / 0.00 ms (a) f; \n",
    "[7:0x5f00]      22 ms: pause=0.7 gc=s total_size_before=4740512 total_size_after=3908880 allocated=4740512 promoted=5 \
     semi_space_copied=199312 promotion_ratio=0.5% semi_space_copy_rate=19.2%\n",
    "[8:0x5f00:0]    1179 ms: pause=49.0 gc=mc clear.join_filter_job=0.0clear.join_job=0.0 start_object_size=72483928 \
     end_object_size=64712072 start_memory_size=1 end_memory_size=2 incremental=100.8 new_space_capacity=67108864\n",
    "[8:0x5f00:0]     126 ms: GC: {\"pause\":0.7,\"gc\":\"s\",\"reason\":\"task\",\"start_object_size\":5e6,\"end_object_size\":4}\n",
    "[7:0x5f00] New space,              used:    182 KB, available:    824 KB, committed:   2048 KB\n",
    "[7:0x5f00] External memory reported:     10 KB\n",
    "<--- Last few GCs --->\n",
    "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n",
    "{\"hasten_gc\":1,\"pid\":1,\"node\":\"v20.20.2\",\"semi_space_max\":16777216}\n",
    "{\"gc\":\"scavenge\",\"at_ms\":1.5,\"pause_ms\":0.8,\"before\":{\"used\":9,\"committed\":9},\"after\":{\"used\":5,\"committed\":9}}\n",
    "{\"cpu\":\"start\",\"version\":1,\"at_ms\":1.5,\"interval_us\":1000}\n",
    "{\"cpu\":\"functions\",\"first\":0,\"functions\":[[\"(root)\",\"\",0,0],[\"(idle)\",\"\",0,0],[\"f\",\"file:///f\",7,9]]}\n",
    "{\"cpu\":\"nodes\",\"first\":1,\"nodes\":[0,0,1,1,1,2]}\n",
    "{\"cpu\":\"samples\",\"from_ms\":2.5,\"runs\":[3,2,2000,2,1,900]}\n",
    "{\"cpu\":\"end\",\"at_ms\":9.5,\"cut\":0,\"why\":\"time\"}\n",
    "{\"cpu\":\"start\",\"worker\":3,\"version\":1,\"at_ms\":1.5,\"interval_us\":1000,\"name\":\"w\",\"script\":\"file:///w\"}\n",
    "{\"cpu\":\"functions\",\"worker\":3,\"first\":0,\"functions\":[[\"(root)\",\"\",0,0],[\"g\",\"file:///w\",1,1]]}\n",
    "{\"cpu\":\"nodes\",\"worker\":3,\"first\":1,\"nodes\":[0,0,1,1]}\n",
    "{\"cpu\":\"samples\",\"worker\":3,\"from_ms\":2.5,\"runs\":[2,2,2000]}\n",
];

fuzz_target!(|data: &[u8]| {
    check(data);
    check(&altered(data));
});

/// Three bytes at a time say which line comes next, where it is cut, and what is put there.
fn altered(data: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for step in data.chunks_exact(3) {
        let line = LINES[step[0] as usize % LINES.len()].as_bytes();
        let at = (step[0] as usize / LINES.len() * 256 + step[1] as usize) % line.len();
        text.extend_from_slice(&line[..at]);
        match step[2] {
            // Whole.
            0..128 => {}
            // Cut off, or a digit or letter altered.
            128..160 => continue,
            byte => text.push(byte & 127),
        }
        text.extend_from_slice(&line[at + usize::from(step[2] >= 160)..]);
    }
    text
}

fn check(text: &[u8]) {
    let Ok(summary) = parse::read(text, "-", &mut |_| {}) else { return };
    let lines = &summary.lines;
    assert_eq!(lines.total, lines.understood + lines.other + lines.unknown);
    assert!(lines.samples.len() as u64 <= lines.unknown);
    assert!(lines.samples.iter().all(|sample| !sample.contains(char::is_control)));
    let told: u64 = summary.isolates.iter().map(|heap| heap.pauses.count).sum();
    let rest = summary.rest.map_or(0, |rest| rest.collections);
    if !text.starts_with(&[0x1f, 0x8b]) {
        assert_eq!(lines.bytes, text.len() as u64);
        assert_eq!(told + rest, parse::collections(text).len() as u64);
    }
    summary.isolates.iter().for_each(heap);
    summary.isolates.iter().flat_map(|heap| heap.profile.iter().chain(&heap.workers)).for_each(profile);
    exported(text, &summary);
    let parts = parse::read(Parts(text), "-", &mut |_| {}).expect("it was readable");
    assert_eq!(json(&summary), json(&parts));
}

fn heap(heap: &IsolateSummary) {
    let shares = [heap.pause_share, heap.young.survival];
    assert!(shares.into_iter().flatten().all(|share| (0.0..=1.0).contains(&share)), "{shares:?}");
    let pauses = heap.pauses;
    let figures = [pauses.p50_ms, pauses.p90_ms, pauses.p99_ms, pauses.max_ms];
    assert!(figures.is_sorted() && figures.iter().all(|ms| ms.is_finite()), "{pauses:?}");
    assert_eq!(heap.by_kind.iter().map(|kind| kind.pauses.count).sum::<u64>(), pauses.count);
    assert!(heap.timeline.slices.len() <= 512 && heap.timeline.pauses.len() <= 2048);
    assert_eq!(heap.timeline.slices.iter().map(|slice| slice.collections).sum::<u64>(), pauses.count);
}

fn profile(profile: &Profile) {
    let parts = profile.functions_ms + profile.program_ms + profile.collector_ms + profile.idle_ms;
    assert!((parts - profile.sampled_ms).abs() <= 1e-6 * parts.max(1.0), "{parts} of {}", profile.sampled_ms);
    assert!(profile.from_ms <= profile.to_ms && profile.timeline.slices.len() <= 240);
    assert!(profile.functions.iter().all(|one| (0.0..=1.0).contains(&one.share)));
    let _ = profile.overview(true);
}

/// What is exported refers only to stacks that it has.
fn exported(text: &[u8], summary: &Summary) {
    let Ok(profiles) = export::cpuprofiles(text, "-") else { return };
    assert!(summary.profiled().is_some() || summary.rest.is_some());
    profiles.iter().for_each(|one| whole(&one.text));
}

fn whole(text: &str) {
    let file: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let array = |name: &str| file[name].as_array().expect("an array");
    assert_eq!(array("samples").len(), array("timeDeltas").len());
    let nodes = array("nodes").len() as u64;
    assert!(array("samples").iter().all(|id| id.as_u64().is_some_and(|id| (1..=nodes).contains(&id))));
}

fn json(summary: &Summary) -> String {
    serde_json::to_string(summary).expect("JSON")
}

/// Bytes that come by the seven.
struct Parts<'a>(&'a [u8]);

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (part, rest) = self.0.split_at(self.0.len().min(buffer.len()).min(7));
        buffer[..part.len()].copy_from_slice(part);
        self.0 = rest;
        Ok(part.len())
    }
}
