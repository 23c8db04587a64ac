//! Every fixture: a trace of a real program, release by release.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use hasten_v8::parse;
use hasten_v8::summary::{IsolateSummary, Summary};

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("fixtures").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn every_fixture_is_summed_up_as_reviewed() {
    for path in fixtures() {
        let name = path.file_name().expect("a name").to_string_lossy();
        let file = fs::File::open(&path).expect("a fixture");
        let summary = parse::read(file, &name, &mut |_| {}).expect("a trace");
        insta::assert_snapshot!(&*name, text(&summary));
    }
}

/// The figures that a reviewer can check by hand.
fn text(summary: &Summary) -> String {
    let mut text = String::new();
    let lines = &summary.lines;
    let _ = writeln!(
        text,
        "{} bytes, {} lines: {} understood, {} other, {} unknown {:?}",
        lines.bytes, lines.total, lines.understood, lines.other, lines.unknown, lines.samples
    );
    if summary.out_of_memory > 0 || summary.incomplete.is_some() {
        let _ =
            writeln!(text, "out of memory {}, incomplete {:?}", summary.out_of_memory, summary.incomplete);
    }
    for isolate in &summary.isolates {
        heap(&mut text, isolate);
    }
    text
}

fn heap(text: &mut String, heap: &IsolateSummary) {
    let share = heap.pause_share.unwrap_or(f64::NAN);
    let _ = writeln!(
        text,
        "\n{}:{:#x} {:?}, Node {}, {}..{} ms, share {share:.4}{}",
        heap.isolate.pid,
        heap.isolate.address,
        heap.formats,
        heap.node.as_deref().unwrap_or("?"),
        heap.first_ms,
        heap.last_ms,
        if heap.ran_out_of_memory { ", full" } else { "" }
    );
    for kind in &heap.by_kind {
        let _ = writeln!(text, "  {:?}: {:?}, steps {:.1}", kind.kind, kind.pauses, kind.steps_ms);
        let _ = writeln!(
            text,
            "    {:?}",
            kind.reasons.iter().map(|(reason, count)| (&*reason.0, count)).collect::<Vec<_>>()
        );
        let _ = writeln!(text, "    {:?}", kind.histogram);
    }
    let longest = heap.longest.first().map(|pause| (pause.at_ms, pause.kind, pause.pause_ms));
    let _ = writeln!(text, "  longest {longest:?} of {}", heap.longest.len());
    let _ = writeln!(text, "  {:?}", heap.young);
    let (full, shown) = (&heap.heap.after_full, &heap.heap);
    let _ = writeln!(
        text,
        "  heap {} used, {} committed, external {:?}, {} after full, last {:?}, {:?}",
        shown.peak_used,
        shown.peak_committed,
        shown.peak_external,
        full.len(),
        full.last(),
        shown.trend
    );
    let line = &heap.timeline;
    let sum = |of: fn(&hasten_v8::summary::Slice) -> u64| line.slices.iter().map(of).sum::<u64>();
    let _ = writeln!(
        text,
        "  {} slices, allocated {}, promoted {}, {} pauses, complete {}, spaces {:?}",
        line.slices.len(),
        sum(|slice| slice.allocated),
        sum(|slice| slice.promoted),
        line.pauses.len(),
        line.is_complete,
        line.slices.iter().rev().find_map(|slice| slice.spaces)
    );
}
