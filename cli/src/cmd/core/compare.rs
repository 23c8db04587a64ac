//! What has grown between two core files, for a terminal.

use std::fmt::Write;

use hasten_corefile::Comparison;

const ROWS: usize = 25;

pub(super) fn render(comparison: &Comparison) -> String {
    let mut text = String::new();
    let Comparison { before, after, node, .. } = comparison;
    _ = writeln!(text, "Node.js {node}: from {before} to {after}");
    for note in &comparison.notes {
        _ = writeln!(text, "note: {note}");
    }
    let megabytes = |[before, after]: [u64; 2]| {
        let grown = after as f64 - before as f64;
        format!("{:.1} → {:.1} MB ({:+.1})", before as f64 / 1e6, after as f64 / 1e6, grown / 1e6)
    };
    let [objects, later] = comparison.live_objects;
    _ = writeln!(text, "\nalive: {}, {objects} → {later} objects", megabytes(comparison.live_bytes));
    _ = writeln!(text, "buffers outside: {}", megabytes(comparison.external_bytes));
    let told = comparison.growth.iter().any(|growth| growth.retained_bytes.is_some());
    let bytes = if told { "retained bytes" } else { "bytes" };
    _ = writeln!(text, "\n{:>12} {:>12} {:>16}  constructor", "count", "more", bytes);
    let half = ROWS / 2;
    let (first, last) = match comparison.growth.len() {
        count if count <= ROWS => (count, count),
        count => (ROWS - half, count - half),
    };
    for (index, growth) in comparison.growth.iter().enumerate() {
        if index == first && first < last {
            _ = writeln!(text, "{:>42}  … {} more", "", last - first);
        }
        if (first..last).contains(&index) {
            continue;
        }
        let [before, count] = growth.count;
        let more = count.cast_signed() - before.cast_signed();
        _ = writeln!(text, "{count:>12} {more:>+12} {:>+16}  {}", growth.bytes(), growth.name);
    }
    if !comparison.retainers.is_empty() {
        _ = writeln!(
            text,
            "\n{:>14} {:>14}  grown, of the largest, and who alone holds them",
            "retained", "more"
        );
    }
    for grown in &comparison.retainers {
        let held = &grown.retainer;
        let more = match grown.retained_before {
            Some(before) => format!("{:+}", held.retained_bytes.cast_signed() - before.cast_signed()),
            None => "new".to_owned(),
        };
        let chain: String = held.held_by.iter().map(|by| format!(" ← {by}")).collect();
        _ = writeln!(text, "{:>14} {more:>14}  {} @{}{chain}", held.retained_bytes, held.name, held.address);
    }
    text
}
