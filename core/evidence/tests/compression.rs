//! The views of a report about work that turns bytes into fewer bytes.

use hasten_evidence::paired::{Estimate, Pair};
use hasten_evidence::report::{Bytes, Case, Host, Report, Row, Side, Sizes, Style, Text, WorstFile};
use hasten_evidence::verdict::Verdict;
use hasten_evidence::warning::Warning;
use serde::Serialize;

#[derive(Clone, Serialize)]
struct Example {
    engine: &'static str,
    level: u8,
}

impl Case for Example {
    const COLUMNS: &'static [&'static str] = &["engine", "level"];

    fn cells(&self) -> Vec<String> {
        vec![self.engine.to_owned(), self.level.to_string()]
    }

    fn is_claim(&self) -> bool {
        self.engine == "ours"
    }

    fn curve(&self) -> Option<(String, u8)> {
        Some((self.engine.to_owned(), self.level))
    }
}

fn side(speed: f64, compression: f64) -> Side {
    Side {
        server_cpu_us_per_op: 1e5 / speed,
        ops_per_s: 10.0 * speed,
        p50_us: 100,
        p99_us: 200,
        p999_us: 300,
        failures: 0,
        ops: 1000,
        driver_cpu_us_per_op: 0.0,
        failure_details: Vec::new(),
        latency: Vec::new(),
        bytes: Some(Bytes { wire_bytes_per_op: 1e5 / compression, mb_per_cpu_s: speed, compression }),
        memory: None,
    }
}

fn row(engine: &'static str, level: u8, stock: (f64, f64), other: (f64, f64)) -> Row<Example> {
    let value = other.0 / stock.0;
    let worst_file = WorstFile { name: "css/4KB".to_owned(), wire_bytes_ratio: 1.021 };
    Row {
        case: Example { engine, level },
        stock: side(stock.0, stock.1),
        hasten: side(other.0, other.1),
        cpu_ratio: Estimate { value, low: value * 0.99, high: value * 1.01 },
        verdict: Verdict::Faster,
        sizes: Some(Sizes { wire_bytes_ratio: stock.1 / other.1, worst_file: Some(worst_file) }),
        pairs: vec![Pair { stock: 1e5 / stock.0, hasten: 1e5 / other.0 }; 2],
        warnings: Vec::new(),
    }
}

/// Another engine is listed first and gains more.
fn example() -> Report<Example> {
    Report {
        host: Host(vec![("cpu", "Example".to_owned())]),
        workload: "example",
        text: Text {
            title: "Compression".to_owned(),
            unit: "file".to_owned(),
            method: "By hand.".to_owned(),
            reproduce: Vec::new(),
            next: Vec::new(),
        },
        complete: true,
        rows: vec![
            row("theirs", 1, (120.0, 2.8), (600.0, 2.2)),
            row("ours", 1, (130.0, 2.8), (500.0, 2.83)),
            row("ours", 6, (40.0, 3.2), (100.0, 3.21)),
        ],
        warnings: Vec::new(),
    }
}

#[test]
fn others_are_compared_with_and_claim_nothing() {
    let report = example();
    assert_eq!(report.headline(), "2 of 2 faster: 2.50× to 3.85× less CPU per file");
    assert_eq!(report.tally(), "2 cases: 2 faster, 0 no difference, 0 slower, 0 failed");
    let page = report.html().unwrap();
    // A bar for each claim, a line of numbers for every row.
    assert_eq!(page.matches("class=\"bar hasten\"").count(), 2);
    assert_eq!(page.matches("<td class=\"case\">hasten</td>").count(), 3);
}

#[test]
fn the_plot_has_a_curve_for_each_engine_and_one_for_stock() {
    let page = example().html().unwrap();
    let (_, plot) = page.split_once("<svg class=\"frontier\"").unwrap();
    let plot = plot.split_once("</svg>").unwrap().0.replace("&#x2f;", "/");
    assert_eq!(plot.matches("<polyline").count(), 3);
    assert_eq!(plot.matches("<circle").count(), 2 + 2 + 1);
    // Stock at level 1 was measured twice: the middle is shown.
    for point in
        ["stock level 1: 125 MB/s, 2.80×", "ours level 6: 100 MB/s, 3.21×", "theirs level 1: 600 MB/s"]
    {
        assert!(plot.contains(point), "{point} is missing in {plot}");
    }
    let legend = ["curve-0\"></i>stock", "curve-1\"></i>ours", "curve-2\"></i>theirs"];
    assert!(legend.iter().all(|entry| page.contains(entry)), "our colour is not ours");
    for foreign in ["http://", "https://", "src=", "@import", "url(", "<script", "<link"] {
        assert!(!page.contains(foreign), "the page contains {foreign}");
    }
}

#[test]
fn sizes_are_in_the_data_where_they_were_measured() {
    let mut report = example();
    report.rows.truncate(2);
    report.rows[0].sizes = None;
    report.rows[0].hasten.bytes = None;
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    let (without, with) = (&json["rows"][0], &json["rows"][1]);
    assert!(without.get("wire_bytes_ratio").is_none() && without["hasten"].get("compression").is_none());
    assert_eq!(with["hasten"]["mb_per_cpu_s"], 500.0);
    assert_eq!(with["worst_file"]["name"], "css/4KB");
    assert!(with["wire_bytes_ratio"].as_f64().unwrap() < 1.0);
}

#[test]
fn every_terminal_shows_whether_the_output_grew() {
    for width in [Some(80), Some(130), Some(150), Some(190), None] {
        let table = example().table(Style { color: false, width });
        let limit = width.map_or(usize::MAX, usize::from);
        assert!(table.lines().all(|line| line.chars().count() <= limit), "too wide for {width:?}:\n{table}");
        assert!(table.contains("1.273") && table.contains("0.989"), "{width:?}:\n{table}");
    }
    assert!(example().table(Style::PLAIN).contains("130 → 500"));
}

#[test]
fn output_that_grew_is_named_with_its_file() {
    let mut report = example();
    report.rows[1].warnings.push(Warning::Larger { what: "css/4KB".to_owned(), percent: 3.2 });
    report.rows[2].warnings.push(Warning::Larger { what: "the corpus".to_owned(), percent: 1.4 });
    let table = report.table(Style::PLAIN);
    assert!(table.contains("css/4KB became 3.2 % larger") && table.contains("(ours 1)"), "{table}");
    assert!(table.contains("the corpus became 1.4 % larger") && table.contains("(ours 6)"), "{table}");
}
