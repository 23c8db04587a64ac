//! Whatever is written in a format is read back; how the bytes arrive does not matter.

use std::io::{self, Read};

use hasten_v8::event::Kind;
use hasten_v8::parse;
use proptest::prelude::*;

/// A collection with the precision of the formats.
#[derive(Clone, Debug)]
struct Written {
    pid: u32,
    address: u64,
    at_ms: u64,
    kind: Kind,
    /// In hundredths of a millisecond.
    pause: u64,
    /// In tenths of a MiB: used and committed before, used and committed after.
    tenths: [u64; 4],
    reason: &'static str,
    remark: &'static str,
    young: [u64; 3],
}

fn written() -> impl Strategy<Value = Written> {
    let kind = prop::sample::select(vec![Kind::Scavenge, Kind::MinorMarkSweep, Kind::MarkCompact]);
    let reason =
        prop::sample::select(vec!["allocation failure", "task", "GC in old space requested", "testing"]);
    let remark = prop::sample::select(vec![
        "",
        "(reduce) ",
        "(interleaved) ",
        "(during sweeping) ",
        "(interleaved) (reduce) ",
    ]);
    let sizes = prop::array::uniform4(0..100_000_u64);
    let young = prop::array::uniform3(0..1_u64 << 40);
    (1..u32::MAX, 1..u64::MAX, 0..10_000_000_000_u64, kind, 0..1_000_000_u64, sizes, reason, remark, young)
        .prop_map(|(pid, address, at_ms, kind, pause, tenths, reason, remark, young)| Written {
            pid,
            address,
            at_ms,
            kind,
            pause,
            tenths,
            reason,
            remark,
            young,
        })
}

impl Written {
    fn prefix(&self, group: &str) -> String {
        format!("[{}:{:#x}{group}] {:>8} ms: ", self.pid, self.address, self.at_ms)
    }

    /// As `--trace-gc` of a release writes it.
    fn plain(&self, node: u32) -> String {
        let kind = match (self.kind, node) {
            (Kind::Scavenge, _) => "Scavenge",
            (Kind::MinorMarkSweep, 18) => "Minor Mark-Compact",
            (Kind::MinorMarkSweep, _) => "Minor Mark-Sweep",
            (Kind::MarkCompact, 18) => "Mark-sweep",
            (Kind::MarkCompact, 26) => "Incremental Mark-Compact",
            (Kind::MarkCompact, _) => "Mark-Compact",
        };
        let [a, b, c, d] = self.tenths.map(|tenths| format!("{}.{}", tenths / 10, tenths % 10));
        let pooled = match node {
            22 | 24 => "pooled: 3 MB, ",
            26 => "pooled: 3.0 MB, ",
            _ => "",
        };
        let pause = match node {
            18 => format!("{}.{} / 0.0", self.pause / 100, self.pause / 10 % 10),
            _ => format!("{}.{:02} / 0.00", self.pause / 100, self.pause % 100),
        };
        let space = if node == 26 { " " } else { "  " };
        format!(
            "{}{kind} {}{a} ({b}) -> {c} ({d}) MB, {pooled}{pause} ms{space}(average mu = 0.987, current mu = 0.9) {}; \n",
            self.prefix(""),
            self.remark,
            self.reason
        )
    }

    fn pause_ms(&self, node: u32) -> f64 {
        if node == 18 { (self.pause / 10) as f64 / 10.0 } else { self.pause as f64 / 100.0 }
    }

    fn bytes(&self) -> [u64; 4] {
        self.tenths.map(|tenths| (tenths as f64 / 10.0 * 1_048_576.0).round() as u64)
    }

    /// As `--trace-gc-nvp` of a release writes it.
    fn nvp(&self, node: u32) -> String {
        let kind = match (self.kind, node) {
            (Kind::Scavenge, _) => "s",
            (Kind::MinorMarkSweep, 18 | 20) => "mmc",
            (Kind::MinorMarkSweep, _) => "mms",
            (Kind::MarkCompact, 18) => "ms",
            (Kind::MarkCompact, _) => "mc",
        };
        let [before, _, after, _] = self.bytes();
        let [allocated, promoted, copied] = self.young;
        let (pause, tenth) = (self.pause / 100, self.pause / 10 % 10);
        let (start, end, kept) = match node {
            18 => ("total_size_before", "total_size_after", "semi_space_copied"),
            20 | 22 => ("total_size_before", "total_size_after", "new_space_survived"),
            _ => ("start_object_size", "end_object_size", "new_space_survived"),
        };
        if node == 26 {
            return format!(
                "{}GC: {{\"pause\":{pause}.{tenth},\"mutator\":1.5e+06,\"gc\":\"{kind}\",\"stack\":true,\"reason\":\"{}\",\"{start}\":\
                 {before},\"{end}\":{after},\"x\":-0.5,\"allocated\":{allocated},\"promoted\":{promoted},\"{kept}\":{copied}}}\n",
                self.prefix(":0"),
                self.reason
            );
        }
        let group = if node == 24 { ":0" } else { "" };
        format!(
            "{}pause={pause}.{tenth} mutator=4012176.0 gc={kind} clear.join_filter_job=0.0clear.join_job=0.0 {start}={before} \
             {end}={after} allocated={allocated} promoted={promoted} {kept}={copied} promotion_ratio=0.0% pool_chunks=4 \n",
            self.prefix(group)
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plain_traces_are_read_as_they_were_written(
        all in prop::collection::vec(written(), 1..6),
        node in prop::sample::select(vec![18, 20, 22, 24, 26]),
    ) {
        let text: String = all.iter().map(|one| one.plain(node)).collect();
        let mut read = parse::collections(text.as_bytes());
        // In the order of completion, which is heap by heap at the end.
        for one in &all {
            let at = read.iter().position(|read| read.isolate.pid == one.pid && read.at_ms == one.at_ms as f64);
            let read = read.remove(at.expect("a collection"));
            let [before, committed_before, after, committed_after] = one.bytes();
            prop_assert_eq!(read.kind, one.kind);
            prop_assert_eq!(read.pause_ms, one.pause_ms(node));
            prop_assert_eq!((read.used_before, read.used_after), (Some(before), Some(after)));
            prop_assert_eq!((read.committed_before, read.committed_after), (committed_before, committed_after));
            prop_assert_eq!(&*read.reason.0, one.reason);
            prop_assert_eq!(read.last_resort, one.reason == "testing");
        }
        prop_assert!(read.is_empty());
    }

    #[test]
    fn names_with_values_are_read_as_they_were_written(
        one in written(),
        node in prop::sample::select(vec![18, 20, 22, 24, 26]),
    ) {
        let text = one.nvp(node);
        let read = parse::collections(text.as_bytes());
        prop_assert_eq!(read.len(), 1, "{}", text);
        let (read, [before, _, after, _], [allocated, promoted, copied]) = (&read[0], one.bytes(), one.young);
        prop_assert_eq!((read.isolate.pid, read.isolate.address), (one.pid, one.address));
        prop_assert_eq!((read.kind, read.pause_ms), (one.kind, one.pause_ms(18)));
        prop_assert_eq!((read.used_before, read.used_after), (Some(before), Some(after)));
        let young = read.young.expect("a young generation");
        prop_assert_eq!([young.allocated, young.promoted, young.copied], [Some(allocated), Some(promoted), Some(copied)]);
        prop_assert_eq!(&*read.reason.0, if node == 26 { one.reason } else { "" });
    }
}

proptest! {
    // Each case reads a quarter of a megabyte twice.
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn how_bytes_arrive_does_not_matter(
        mut sizes in prop::collection::vec(1..5000_usize, 1..40),
        small in prop::collection::vec(1..3_usize, 0..40),
    ) {
        sizes.extend(small);
        let text = mixture();
        let summary = |source: &mut dyn Read| {
            serde_json::to_string(&parse::read(source, "test", &mut |_| {}).expect("a trace")).expect("JSON")
        };
        let whole = summary(&mut text.as_bytes());
        let parts = summary(&mut Parts { text: text.as_bytes(), sizes: sizes.iter().copied().cycle() });
        prop_assert_eq!(whole, parts);
    }
}

/// A bit of everything, with lines that are too long in between.
fn mixture() -> String {
    let long = "no end [5:0".repeat(10_000);
    [
        include_str!("fixtures/v26.all3.txt"),
        &long,
        include_str!("fixtures/v24.trace-gc.single.txt"),
        &long,
        include_str!("fixtures/v18.oom.txt"),
        include_str!("fixtures/recorder-v20.fast.jsonl"),
        include_str!("fixtures/v22.workers.txt"),
    ]
    .concat()
}

struct Parts<'a, I> {
    text: &'a [u8],
    sizes: I,
}

impl<I: Iterator<Item = usize>> Read for Parts<'_, I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes.next().unwrap_or(1).min(self.text.len()).min(buffer.len());
        let (part, rest) = self.text.split_at(size);
        buffer[..size].copy_from_slice(part);
        self.text = rest;
        Ok(size)
    }
}
