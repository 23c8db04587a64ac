use proptest::prelude::*;

use super::*;
use crate::catalogue as metric;

fn sample(labels: &[(&'static str, &str)], value: Value) -> Sample {
    Sample { labels: labels.iter().map(|(name, text)| (*name, (*text).to_owned())).collect(), value }
}

fn some_of_each() -> Vec<Family> {
    let streams = [("program", "nginx"), ("accelerator", "gzip"), ("op", "deflate")];
    let lanes = Value::Histogram { buckets: vec![(1.0, 5), (2.0, 0), (8.0, 2)], sum: 21 };
    vec![
        Family { about: &metric::BUILD, samples: vec![sample(&[("version", "1.2.3")], Value::Count(1))] },
        Family { about: &metric::PROCESSES_DENIED, samples: vec![sample(&[], Value::Count(0))] },
        Family { about: &metric::BATCH_LANES, samples: vec![sample(&[("op", "p-256-sign")], lanes)] },
        Family { about: &metric::CPU_SAVED, samples: vec![sample(&streams, Value::Number(2.5))] },
    ]
}

/// Without the help, which comes from the catalogue and may be reworded.
fn written(format: Format) -> Vec<String> {
    let text = encode(&some_of_each(), format);
    text.lines().filter(|line| !line.starts_with("# HELP")).map(str::to_owned).collect()
}

const LANES: [&str; 6] = [
    "hasten_batch_lanes_bucket{op=\"p-256-sign\",le=\"1.0\"} 5",
    "hasten_batch_lanes_bucket{op=\"p-256-sign\",le=\"2.0\"} 5",
    "hasten_batch_lanes_bucket{op=\"p-256-sign\",le=\"8.0\"} 7",
    "hasten_batch_lanes_bucket{op=\"p-256-sign\",le=\"+Inf\"} 7",
    "hasten_batch_lanes_sum{op=\"p-256-sign\"} 21",
    "hasten_batch_lanes_count{op=\"p-256-sign\"} 7",
];
const SAVED: &str =
    "hasten_cpu_saved_seconds_total{program=\"nginx\",accelerator=\"gzip\",op=\"deflate\"} 2.5";

#[test]
fn prometheus_names_a_metric_as_its_samples_are_called() {
    let mut expected = vec![
        "# TYPE hasten_build_info gauge",
        "hasten_build_info{version=\"1.2.3\"} 1",
        "# TYPE hasten_processes_denied gauge",
        "hasten_processes_denied 0",
        "# TYPE hasten_batch_lanes histogram",
    ];
    expected.extend(LANES);
    expected.extend(["# TYPE hasten_cpu_saved_seconds_total counter", SAVED]);
    assert_eq!(written(Format::Prometheus), expected);
}

#[test]
fn open_metrics_names_the_family_and_its_unit_and_ends() {
    let mut expected = vec![
        "# TYPE hasten_build info",
        "hasten_build_info{version=\"1.2.3\"} 1",
        "# TYPE hasten_processes_denied gauge",
        "hasten_processes_denied 0",
        "# TYPE hasten_batch_lanes histogram",
    ];
    expected.extend(LANES);
    expected.extend([
        "# TYPE hasten_cpu_saved_seconds counter",
        "# UNIT hasten_cpu_saved_seconds seconds",
        SAVED,
    ]);
    expected.push("# EOF");
    assert_eq!(written(Format::OpenMetrics), expected);
    assert!(encode(&[], Format::OpenMetrics).ends_with("# EOF\n"));
}

#[test]
fn help_is_one_line() {
    for format in [Format::Prometheus, Format::OpenMetrics] {
        assert_eq!(escaped_help("a\\b\nc", format), "a\\\\b\\nc");
    }
    assert_eq!(escaped_help("\"x\"", Format::Prometheus), "\"x\"");
    assert_eq!(escaped_help("\"x\"", Format::OpenMetrics), "\\\"x\\\"");
}

#[test]
fn numbers_are_as_the_formats_want_them() {
    let numbers = [0.0, 1.0, 0.1, 1e-9, 1e20, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let expected = ["0.0", "1.0", "0.1", "1e-9", "1e20", "+Inf", "-Inf", "NaN"];
    assert_eq!(numbers.map(number), expected);
}

/// Reads a line back as a scraper does: name, the value of its only label, number.
fn read(line: &str) -> (String, String, String) {
    let (name, rest) = line.split_once('{').unwrap();
    let rest = rest.strip_prefix("program=\"").unwrap();
    let mut text = String::new();
    let mut characters = rest.chars();
    loop {
        match characters.next().unwrap() {
            '"' => break,
            '\\' => text.push(match characters.next().unwrap() {
                'n' => '\n',
                other => other,
            }),
            other => text.push(other),
        }
    }
    let value = characters.as_str().strip_prefix("} ").unwrap();
    (name.to_owned(), text, value.to_owned())
}

proptest! {
    #[test]
    fn any_text_comes_back_from_a_label(text in any::<String>().prop_map(|text| text.replace('\r', "")), count: u64) {
        let families =
            [Family { about: &metric::PROCESSES, samples: vec![sample(&[("program", &text)], Value::Count(count))] }];
        for format in [Format::Prometheus, Format::OpenMetrics] {
            let all = encode(&families, format);
            let line = all.split('\n').find(|line| !line.starts_with('#')).unwrap();
            prop_assert_eq!(read(line), ("hasten_processes".to_owned(), text.clone(), count.to_string()));
        }
    }
}
