//! No text makes a parser panic, and the numbers it reads are usable.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use hasten_tune::load::{Load, Printed};
use proptest::prelude::*;

const TOOLS: [&str; 10] = [
    "wrk",
    "ab",
    "h2load",
    "autocannon",
    "oha",
    "k6",
    "redis-benchmark -n 100",
    "memtier_benchmark",
    "db_bench",
    "./other",
];

static FIXTURES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/load");
    let files = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    files.collect()
});

fn read(text: &str) {
    for tool in TOOLS {
        for metric in [None, Some("([0-9.]+).*")] {
            let load = Load::parse(tool, metric).unwrap();
            let text = text.to_owned();
            let printed = Printed {
                stderr: text.clone(),
                file: Some(text.clone()),
                stdout: text,
                elapsed: Duration::from_secs(1),
            };
            let Ok(found) = load.understand(&printed) else { continue };
            assert!(found.seconds.is_finite() && found.seconds >= 0.0, "{tool}: {found:?}");
            assert!(
                found.requests.is_none_or(|requests| requests.is_finite() && requests >= 0.0),
                "{tool}: {found:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_taken(text in "\\PC{0,200}(\n\\PC{0,80}){0,5}") {
        read(&text);
    }

    #[test]
    fn damaged_output_is_taken(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        length in 0usize..40,
        instead in "[-0-9a-z%│:.,{}\n ]{0,12}",
    ) {
        let mut text: Vec<char> = which.get(&FIXTURES).chars().collect();
        let from = at.index(text.len());
        let to = (from + length).min(text.len());
        text.splice(from..to, instead.chars());
        read(&text.into_iter().collect::<String>());
    }
}
