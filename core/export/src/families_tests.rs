use std::collections::BTreeSet;
use std::time::Duration;

use hasten_telemetry::{Suspension, SuspensionReport, SuspensionShare, Tiers};

use super::*;
use crate::collector::{self, Unreadable};
use crate::encode::{Format, encode};
use crate::totals::Live;

fn program(accelerator: &str, change: impl FnOnce(&mut Program)) -> (Key, Program) {
    let mut program = Program::default();
    change(&mut program);
    (
        Key { program: "nginx".to_owned(), accelerator: accelerator.to_owned(), container: String::new() },
        program,
    )
}

fn tls(program: &mut Program) {
    let one = &mut program.counters[Algorithm::Rsa2048Sign];
    (one.batched, one.scalar, one.failed, one.batches) = (20, 4, 2, 3);
    (one.lanes[3], one.lanes[7], one.saved_ns) = (1, 2, 1_500_000_000);
    program.good[Algorithm::Rsa2048Sign.index()] = 18;
    program.counters[Event::HandshakeFinished] = 26;
    program.counters[Event::VerifyFailed] = 2;
    program.counters[Reason::Alone] = 4;
    program.counters[Reason::NotPolled] = 2;
    program.live = vec![Live { processes: 3, ..Live::default() }; 2];
}

fn gzip(program: &mut Program) {
    for (event, count) in [
        (Event::DeflateStreams, 5),
        (Event::DeflateBytesIn, 5000),
        (Event::DeflateBytesOut, 1000),
        (Event::DeflateIsal, 4000),
        (Event::DeflateOriginal, 1000),
        (Event::DeflateSavedNs, 250_000_000),
    ] {
        program.counters[event] = count;
    }
    program.counters[Reason::StoredLevel] = 1;
}

fn text(programs: impl IntoIterator<Item = (Key, Program)>) -> String {
    let look = Look { programs: programs.into_iter().collect(), denied: 7, ..Look::default() };
    encode(&families(&look), Format::Prometheus)
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
}

#[test]
fn operations_are_told_by_engine_and_add_up() {
    let text = text([program("tls", tls)]);
    let of = "program=\"nginx\",accelerator=\"tls\",op=";
    for line in [
        format!("hasten_ops_total{{{of}\"rsa-2048-sign\",engine=\"multibuffer\",result=\"ok\"}} 18"),
        format!("hasten_ops_total{{{of}\"rsa-2048-sign\",engine=\"multibuffer\",result=\"failed\"}} 2"),
        format!("hasten_ops_total{{{of}\"rsa-2048-sign\",engine=\"original\",result=\"ok\"}} 6"),
        format!("hasten_ops_total{{{of}\"public-key\",engine=\"original\",result=\"bypassed\"}} 2"),
        format!("hasten_batch_lanes_bucket{{{of}\"rsa-2048-sign\",le=\"7.0\"}} 1"),
        format!("hasten_batch_lanes_sum{{{of}\"rsa-2048-sign\"}} 20"),
        format!("hasten_fallback_total{{{of}\"public-key\",reason=\"alone\"}} 4"),
        format!("hasten_verify_failures_total{{{of}\"public-key\"}} 2"),
        format!("hasten_cpu_saved_seconds_total{{{of}\"rsa-2048-sign\"}} 1.5"),
        "hasten_processes{program=\"nginx\",accelerator=\"tls\"} 6".to_owned(),
        "hasten_processes_denied 7".to_owned(),
    ] {
        has(&text, &line);
    }
    assert!(!text.contains("p-256-sign") && !text.contains("hasten_streams"), "{text}");
}

#[test]
fn what_a_device_signs_is_told_apart_from_batches() {
    let text = text([program("tls", |program| {
        tls(program);
        program.counters[Engine::Qat] = EngineCounters { ok: 70, failed: 3, ..EngineCounters::default() };
    })]);
    let of = "program=\"nginx\",accelerator=\"tls\",op=";
    for line in [
        format!("hasten_ops_total{{{of}\"public-key\",engine=\"qat\",result=\"ok\"}} 70"),
        format!("hasten_ops_total{{{of}\"public-key\",engine=\"qat\",result=\"failed\"}} 3"),
        format!("hasten_ops_total{{{of}\"rsa-2048-sign\",engine=\"multibuffer\",result=\"ok\"}} 18"),
    ] {
        has(&text, &line);
    }
}

#[test]
fn processes_are_told_by_whether_they_put_handshakes_aside() {
    let share = |state, doubt, processes| SuspensionShare {
        report: SuspensionReport { state, doubt, since: Duration::from_secs(1) },
        processes,
        of: 3,
        now: Duration::from_secs(2),
    };
    let page = |suspension| Live { suspension, ..Live::default() };
    let text = text([program("tls", |program| {
        let off = share(Suspension::Off, Some(Doubt::NestedLoop), 1);
        program.live = vec![
            page(vec![off, share(Suspension::Expected, None, 2)]),
            page(vec![share(Suspension::Expected, None, 3)]),
        ];
        (program.counters[Event::CalledIn], program.counters[Event::Overdue]) = (5, 1);
    })]);
    let of = "program=\"nginx\",accelerator=\"tls\",";
    for line in [
        format!("hasten_suspension_processes{{{of}state=\"expected\",doubt=\"\"}} 5"),
        format!("hasten_suspension_processes{{{of}state=\"off\",doubt=\"nested-loop\"}} 1"),
        format!("hasten_handshakes_called_in_total{{{of}cause=\"blocking\"}} 5"),
        format!("hasten_handshakes_called_in_total{{{of}cause=\"overdue\"}} 1"),
        format!("hasten_handshakes_called_in_total{{{of}cause=\"foreign-thread\"}} 0"),
    ] {
        has(&text, &line);
    }
}

#[test]
fn storage_has_metrics_of_its_own_and_no_others() {
    let text = text([
        program("readcache", |program| {
            program.counters[Event::ReadCacheHitBytes] = 9000;
            program.counters[Event::ReadCacheDamaged] = 1;
        }),
        program("wal", |program| program.counters[Event::WalMade] = 3),
        program("tier", |program| {
            let tiers = |near, far| Tiers { near, far, threshold: 64, target: 3 << 14 };
            program.live = vec![Live { tiers: vec![tiers(10, 30), tiers(1, 3)], ..Live::default() }];
        }),
    ]);
    for line in [
        "hasten_read_cache_bytes_total{program=\"nginx\",accelerator=\"readcache\",what=\"hit\"} 9000",
        "hasten_read_cache_bytes_total{program=\"nginx\",accelerator=\"readcache\",what=\"miss\"} 0",
        "hasten_read_cache_damaged_total{program=\"nginx\",accelerator=\"readcache\"} 1",
        "hasten_read_cache_rests_total{program=\"nginx\",accelerator=\"readcache\"} 0",
        "hasten_wal_logs_total{program=\"nginx\",accelerator=\"wal\",place=\"fast\"} 3",
        "hasten_wal_logs_total{program=\"nginx\",accelerator=\"wal\",place=\"home\"} 0",
        "hasten_tier_bytes{program=\"nginx\",accelerator=\"tier\",place=\"near\"} 11",
        "hasten_tier_bytes{program=\"nginx\",accelerator=\"tier\",place=\"far\"} 33",
        "hasten_tier_target_ratio{program=\"nginx\",accelerator=\"tier\"} 0.75",
        "hasten_tier_full_total{program=\"nginx\",accelerator=\"tier\"} 0",
    ] {
        has(&text, line);
    }
    assert!(!text.contains("handshakes") && !text.contains("streams"), "{text}");
}

#[test]
fn bytes_are_told_by_engine_and_streams_by_direction() {
    let text = text([program("gzip", gzip)]);
    let of = "program=\"nginx\",accelerator=\"gzip\",op=\"deflate\"";
    for line in [
        format!("hasten_bytes_total{{{of},engine=\"isal\",direction=\"in\"}} 4000"),
        format!("hasten_bytes_total{{{of},engine=\"original\",direction=\"in\"}} 1000"),
        format!("hasten_stream_bytes_total{{{of},direction=\"in\"}} 5000"),
        format!("hasten_stream_bytes_total{{{of},direction=\"out\"}} 1000"),
        format!("hasten_streams_total{{{of}}} 5"),
        format!("hasten_fallback_total{{{of},reason=\"stored-level\"}} 1"),
        format!("hasten_cpu_saved_seconds_total{{{of}}} 0.25"),
    ] {
        has(&text, &line);
    }
    assert!(!text.contains("hasten_ops_total") && !text.contains("hasten_handshakes"), "{text}");
}

#[test]
fn alerts_have_their_series_before_anything_has_happened() {
    let text = text([program("tls", |_| {}), program("gzip", |_| {})]);
    has(&text, "hasten_verify_failures_total{program=\"nginx\",accelerator=\"tls\",op=\"public-key\"} 0");
    has(&text, "hasten_verify_failures_total{program=\"nginx\",accelerator=\"gzip\",op=\"deflate\"} 0");
    has(&text, "hasten_pages_unreadable{reason=\"version\"} 0");
}

#[test]
fn a_process_that_stands_by_is_told_from_one_that_could_make_no_page() {
    let missing = Unreadable {
        program: "nginx".to_owned(),
        pid: 7,
        reason: collector::Reason::Missing,
        message: String::new(),
        fix: String::new(),
    };
    let look = Look { standing_by: 3, unreadable: vec![missing], ..Look::default() };
    let text = encode(&families(&look), Format::Prometheus);
    has(&text, "hasten_processes_standby 3");
    has(&text, "hasten_pages_unreadable{reason=\"missing\"} 1");
}

#[test]
fn no_series_is_there_twice() {
    let everything = |program: &mut Program| {
        Algorithm::ALL.iter().for_each(|one| program.counters[*one].batched = 1);
        Reason::ALL.iter().for_each(|one| program.counters[*one] = 1);
        Event::ALL.iter().for_each(|one| program.counters[*one] = 1);
    };
    let text = text(["tls", "gzip", "(other)"].map(|accelerator| program(accelerator, everything)));
    let series: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').unwrap().0)
        .collect();
    assert_eq!(series.iter().collect::<BTreeSet<_>>().len(), series.len());
    assert!(series.len() > 150, "{}", series.len());
}

/// Whatever a page contains, the answer is a text that scrapers can read: names, a value, and buckets that never
/// decrease.
#[test]
fn numbers_of_a_damaged_page_do_no_harm() {
    let everything = |program: &mut Program| {
        for algorithm in Algorithm::ALL {
            let one = &mut program.counters[algorithm];
            (one.batched, one.scalar, one.failed, one.batches) = (u64::MAX, u64::MAX, u64::MAX, u64::MAX);
            (one.saved_ns, one.lanes) = (u64::MAX, [u64::MAX; 8]);
        }
        Reason::ALL.iter().for_each(|one| program.counters[*one] = u64::MAX);
        Event::ALL.iter().for_each(|one| program.counters[*one] = u64::MAX);
        for engine in Engine::ALL {
            let one = &mut program.counters[engine];
            (one.ok, one.failed, one.bytes_in, one.bytes_out) = (u64::MAX, u64::MAX, u64::MAX, u64::MAX);
            (one.busy_ns, one.opened) = (u64::MAX, u64::MAX);
        }
        program.live.push(Live { processes: usize::MAX, note: "\u{0}\n\"".to_owned(), ..Live::default() });
    };
    let text = text([program("a\n\\\"b{}", everything)]);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(
            series.starts_with("hasten_") && value.parse::<f64>().is_ok_and(|value| value >= 0.0),
            "{line}"
        );
    }
}

#[test]
fn names_are_as_monitoring_wants_them() {
    for about in metric::CATALOGUE {
        let name = about.name;
        assert!(
            name.starts_with("hasten_") && !name.ends_with("_total") && !name.ends_with("_info"),
            "{name}"
        );
        assert!(about.unit.is_none_or(|unit| name.ends_with(&format!("_{unit}"))), "{name}");
        assert!(about.help.ends_with('.') && !about.help.contains("  "), "{name}");
        assert!(!about.labels.iter().any(|label| ["pid", "le", "job", "instance"].contains(label)), "{name}");
    }
}

#[test]
fn the_manual_has_every_metric_with_its_labels_and_no_other() {
    let manual = include_str!("../../../docs/metrics.md");
    let rows: Vec<&str> = manual.lines().filter(|line| line.starts_with("| `hasten_")).collect();
    for about in metric::CATALOGUE {
        let labels: Vec<String> = about.labels.iter().map(|label| format!("`{label}`")).collect();
        let row = format!("| `{}` | {} | {} ", about.metric(), about.kind.as_str(), labels.join(", "));
        assert!(rows.iter().any(|line| line.replace("|  |", "| |").starts_with(row.trim_end())), "{row}");
    }
    assert_eq!(rows.len(), metric::CATALOGUE.len());
    let words = manual.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let metrics: Vec<String> = metric::CATALOGUE.iter().map(|about| about.metric()).collect();
    for word in words.filter(|word| word.starts_with("hasten_")) {
        let word = ["_sum", "_count"].iter().find_map(|suffix| word.strip_suffix(suffix)).unwrap_or(word);
        assert!(metrics.iter().any(|metric| metric == word), "{word} is in the manual only");
    }
}

#[test]
fn a_program_in_a_container_has_one_more_label() {
    let (mut key, program) = program("tls", |_| {});
    key.container = "c0ffee".to_owned();
    let look = Look { programs: [(key, program)].into(), ..Look::default() };
    let text = encode(&families(&look), Format::Prometheus);
    assert!(
        text.contains("hasten_processes{program=\"nginx\",accelerator=\"tls\",container_id=\"c0ffee\"} 0\n"),
        "{text}"
    );
}
