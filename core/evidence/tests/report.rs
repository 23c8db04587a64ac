//! The three views of a report: golden texts, and properties that hold for any of them.

use hasten_evidence::paired::{Pair, ratio};
use hasten_evidence::report::{Case, Host, Memory, Report, Row, Side, Style, Text};
use hasten_evidence::verdict::Verdict;
use hasten_evidence::warning::Warning;
use serde::Serialize;

#[derive(Clone, Serialize)]
struct Example {
    server: &'static str,
    concurrency: usize,
}

impl Case for Example {
    const COLUMNS: &'static [&'static str] = &["server", "conn"];

    fn cells(&self) -> Vec<String> {
        vec![self.server.to_owned(), self.concurrency.to_string()]
    }
}

fn side(cpu: f64, failures: u64) -> Side {
    let latency = [(0.0, 0.5), (50.0, 1.0), (90.0, 1.5), (99.0, 2.0), (99.9, 4.0)];
    Side {
        server_cpu_us_per_op: cpu,
        ops_per_s: 1e6 / cpu,
        p50_us: cpu as u64,
        p99_us: 2 * cpu as u64,
        p999_us: 4 * cpu as u64,
        failures,
        ops: 5000,
        driver_cpu_us_per_op: 150.0,
        failure_details: if failures > 0 {
            vec![format!("{failures} × body (differs)")]
        } else {
            Vec::new()
        },
        latency: latency.map(|(percentile, factor)| (percentile, (cpu * factor) as u64)).to_vec(),
        bytes: None,
        memory: None,
    }
}

fn row(server: &'static str, concurrency: usize, stock: f64, hasten: f64, failures: u64) -> Row<Example> {
    let spread = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0];
    let pairs: Vec<Pair> = spread.map(|factor| Pair { stock: stock * factor, hasten }).to_vec();
    let cpu_ratio = ratio(&pairs).unwrap();
    Row {
        case: Example { server, concurrency },
        stock: side(stock, 0),
        hasten: side(hasten, failures),
        cpu_ratio,
        verdict: Verdict::of(cpu_ratio, failures),
        sizes: None,
        pairs,
        warnings: Vec::new(),
    }
}

fn report(rows: Vec<Row<Example>>) -> Report<Example> {
    Report {
        host: Host(vec![("cpu", "Example <CPU> & co".to_owned()), ("cores", "2".to_owned())]),
        workload: "example",
        text: Text {
            title: "Examples".to_owned(),
            unit: "handshake".to_owned(),
            method: "By hand.".to_owned(),
            reproduce: vec!["hasten bench example --quick".to_owned()],
            next: vec![("hasten run -- nginx".to_owned(), "Start a server".to_owned())],
        },
        complete: true,
        rows,
        warnings: Vec::new(),
    }
}

fn example() -> Report<Example> {
    let mut report = report(vec![
        row("nginx", 1, 500.0, 499.0, 0),
        row("nginx", 256, 1100.0, 250.0, 0),
        row("haproxy", 256, 300.0, 330.0, 0),
    ]);
    report.rows[2].warnings.push(Warning::Steal { percent: 12.0 });
    report
}

#[test]
fn table_is_golden() {
    insta::assert_snapshot!("table", example().table(Style::PLAIN));
}

#[test]
fn memory_is_shown_where_it_is_known() {
    let mut report = example();
    assert!(!report.table(Style::PLAIN).contains("RSS") && !report.html().unwrap().contains("RSS"));
    for row in &mut report.rows {
        row.stock.memory = Some(Memory { rss_mb: 175.4, rss_peak_mb: 180.0 });
        row.hasten.memory = Some(Memory { rss_mb: 268.6, rss_peak_mb: 270.0 });
    }
    let table = report.table(Style::PLAIN);
    assert!(table.contains("RSS MB") && table.contains("175 → 269"), "{table}");
    assert!(report.html().unwrap().contains("<td>269</td>"));
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["rows"][0]["hasten"]["rss_peak_mb"], 270.0);
    let narrow = report.table(Style { color: false, width: Some(100) });
    assert!(!narrow.contains("RSS"), "{narrow}");
}

#[test]
fn json_is_golden() {
    let mut report = example();
    report.rows.truncate(1);
    insta::assert_snapshot!("json", report.json().unwrap());
}

#[test]
fn page_is_golden() {
    insta::assert_snapshot!("page", example().html().unwrap());
}

#[test]
fn page_needs_nothing_from_anywhere_and_escapes_what_it_shows() {
    let page = example().html().unwrap();
    for foreign in ["http://", "https://", "src=", "@import", "url(", "<script", "<link"] {
        assert!(!page.contains(foreign), "the page contains {foreign}");
    }
    assert!(page.contains("Example &lt;CPU&gt; &amp; co"));
    assert!(!page.contains("<CPU>"));
}

#[test]
fn narrower_terminals_get_fewer_columns_and_every_verdict() {
    for (name, width) in [("table_narrow", 80), ("table_medium", 120)] {
        let table = example().table(Style { color: false, width: Some(width) });
        for line in table.lines().take_while(|line| !line.starts_with("warning")) {
            assert!(line.chars().count() <= usize::from(width), "too wide for {width}: {line}");
        }
        insta::assert_snapshot!(name, table);
    }
}

#[test]
fn colour_only_when_asked_for() {
    let escape = '\u{1b}';
    assert!(!example().table(Style::PLAIN).contains(escape));
    assert!(example().table(Style { color: true, width: Some(170) }).contains(escape));
}

#[test]
fn the_headline_never_hides_a_failure_or_a_loss() {
    let failed = report(vec![row("nginx", 1, 900.0, 300.0, 0), row("nginx", 256, 900.0, 300.0, 3)]);
    assert_eq!(failed.headline(), "Failures in 1 of 2 cases");
    assert_eq!(failed.tally(), "2 cases: 1 faster, 0 no difference, 0 slower, 1 failed");
    assert!(failed.table(Style::PLAIN).contains("failed: hasten: 3 × body (differs) (nginx 256)"));
    assert!(failed.html().unwrap().contains("3 × body (differs)"));

    assert_eq!(
        example().headline(),
        "1 of 3 faster, 1 no difference, 1 slower: CPU per handshake, stock / hasten 0.91× to 4.40×"
    );
    assert_eq!(example().tally(), "3 cases: 1 faster, 1 no difference, 1 slower, 0 failed");
    let slower = report(vec![row("nginx", 1, 300.0, 330.0, 0)]);
    assert_eq!(slower.headline(), "0 of 1 faster, 1 slower: CPU per handshake, stock / hasten 0.91×");
    assert_eq!(
        report(vec![row("nginx", 1, 300.0, 300.0, 0)]).headline(),
        "No difference in CPU per handshake"
    );
    assert_eq!(report(Vec::new()).headline(), "Nothing was measured");
    report(Vec::new()).html().unwrap();
}

#[test]
fn warnings_of_a_kind_are_one_line_with_the_worst_number() {
    let mut report = example();
    for (row, percent) in report.rows.iter_mut().zip([40.0, 80.0, 60.0]) {
        row.warnings = vec![Warning::Neighbours { percent }];
    }
    report.warnings.push(Warning::SharedCore);
    let table = report.table(Style::PLAIN);
    let warnings: Vec<_> = table.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[1].contains("80 %") && warnings[1].ends_with("(all cases, this is the worst)"));

    report.rows[0].warnings.clear();
    let page = report.html().unwrap();
    assert!(page.contains("80 %") && page.contains("(nginx 256; haproxy 256)"));
}

#[test]
fn saving_replaces_both_files_and_leaves_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new");
    report(Vec::new()).save(&out).unwrap();
    let saved = example().save(&out).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&saved.json).unwrap()).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), 3);
    assert_eq!(json["rows"][1]["verdict"], "faster");
    assert!(std::fs::read_to_string(&saved.html).unwrap().starts_with("<!DOCTYPE html>"));
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 2);
}

#[test]
fn several_reports_are_one_page_and_one_json() {
    use hasten_evidence::report::{LeftOut, Overview, Part};
    use std::path::Path;

    let mut tls = report(vec![row("nginx", 1, 400.0, 200.0, 0), row("nginx", 2, 4.1e6, 4.1e6, 0)]);
    tls.rows[0].warnings.push(Warning::Neighbours { percent: 71.0 });
    tls.text.title = "<b>handshakes</b>".to_owned();
    let part = |report: &Report<Example>, page| Part::of(report, Path::new(page), Style::PLAIN).unwrap();
    let left_out = LeftOut {
        workload: "node".to_owned(),
        why: "node is not installed".to_owned(),
        fix: "apt-get install nodejs".to_owned(),
    };
    let mut overview = Overview {
        parts: vec![part(&tls, "tls/hasten-report.html")],
        left_out: vec![left_out],
        complete: true,
        command: "hasten bench".to_owned(),
    };
    assert_eq!(overview.headline(), "1 of 2 faster, 1 no difference: CPU, stock / hasten 1.00× to 2.00×");
    assert!(!overview.has_failures());
    let html = overview.html().unwrap();
    for text in [
        "hasten-report.html\">all numbers",
        "&lt;b&gt;handshakes",
        "2.00×",
        "node is not installed",
        "400 µs → 200 µs",
        "4.1 s → 4.1 s",
        "used 71 % of the CPUs",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
    assert!(!html.contains("<b>handshakes") && !html.contains("<script"), "{html}");
    let terminal = overview.terminal();
    assert!(
        terminal.contains(&tls.table(Style::PLAIN)) && terminal.contains("apt-get install nodejs"),
        "{terminal}"
    );
    let json: serde_json::Value = serde_json::from_str(&overview.json().unwrap()).unwrap();
    assert_eq!(json["workload"], "all");
    assert_eq!(json["summary"]["headline"], overview.headline().as_str());
    assert_eq!((&json["summary"]["faster"], &json["summary"]["cases"]), (&1.into(), &2.into()));
    assert_eq!(json["parts"][0], serde_json::from_str::<serde_json::Value>(&tls.json().unwrap()).unwrap());
    assert_eq!(json["left_out"][0]["workload"], "node");

    let failed = report(vec![row("nginx", 1, 400.0, 200.0, 3)]);
    overview.parts.push(part(&failed, "gzip/hasten-report.html"));
    assert!(overview.has_failures());
    assert_eq!(overview.headline(), "Failures in 1 of 3 cases");
}
