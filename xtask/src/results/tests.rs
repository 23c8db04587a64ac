use super::*;

fn row(concurrency: u32, verdict: &str) -> String {
    format!(
        r#"{{"server": "nginx", "cert": "rsa-2048", "protocol": "tls1.3", "tickets": "on", "concurrency": {concurrency},
            "stock": {{"server_cpu_us_per_op": 570.4, "ops_per_s": 1750, "p50_us": 900, "p99_us": 2000, "failures": 0}},
            "hasten": {{"server_cpu_us_per_op": 260.0, "ops_per_s": 3800, "p50_us": 500, "p99_us": 1500, "failures": 0}},
            "cpu_ratio": {{"value": 2.194, "low": 2.15, "high": 2.24}}, "verdict": "{verdict}"}}"#
    )
}

fn report(complete: bool) -> String {
    format!(
        r#"{{"host": {{"cpu": "Example (R) CPU 9", "cores": "2", "os": "Debian", "kernel": "6.1", "nginx": "1.22.1",
            "openssl": "3.0.15", "date": "2026-01-02T03:04:05Z"}}, "workload": "tls", "complete": {complete},
            "rows": [{}, {}]}}"#,
        row(1, "no difference"),
        row(256, "faster")
    )
}

#[test]
fn a_kept_report_names_no_folder_of_this_machine() {
    let report =
        "--node /a/b/.deps/node20,/c/.deps/node22 --out /srv \"the library is /d/target/release/x.so\"";
    let kept = "--node .deps/node20,.deps/node22 --out /srv \"the library is target/release/x.so\"";
    assert_eq!(from_root(report), kept);
    assert_eq!(from_root(kept), kept, "what is kept is kept as it is");
    assert_eq!(from_root("a/target/b"), "a/target/b");
}

/// The outcome of keeping a report, and where it is kept.
fn keeping(report: &str) -> (tempfile::TempDir, Result<(), Error>) {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("hasten-report.json");
    fs::write(&source, report).unwrap();
    let outcome = keep(&source, directory.path());
    (directory, outcome)
}

#[test]
fn a_kept_report_fills_its_table() {
    let (directory, outcome) = keeping(&report(true));
    outcome.unwrap();
    assert!(directory.path().join("tls-example-r-cpu-9-2-cores.json").is_file());

    let results = load_all("tls", directory.path()).unwrap();
    let everything = join(&results, tls::everything);
    assert!(everything.contains("nginx 1.22.1 with OpenSSL 3.0.15; 2026-01-02."), "{everything}");
    assert_eq!(everything.matches("\n| nginx | RSA-2048 | TLS 1.3 | X25519 | on |").count(), 2);
}

#[test]
fn another_openssl_does_not_replace_debian_12s() {
    let other = report(true).replace(r#""openssl": "3.0.15""#, r#""openssl": "OpenSSL 3.5.6""#);
    let (directory, outcome) = keeping(&other);
    outcome.unwrap();
    assert!(directory.path().join("reach-openssl-3.5-example-r-cpu-9-2-cores.json").is_file());
    let table = join(&load_all(tls::REACH, directory.path()).unwrap(), tls::everything);
    assert!(table.contains("nginx 1.22.1 with OpenSSL 3.5.6; 2026-01-02."), "{table}");
}

#[test]
fn hidden_extensions_are_told_and_replace_nothing() {
    let hidden =
        report(true).replace(r#""openssl": "3.0.15""#, r#""openssl": "OpenSSL 3.0.15", "hidden": "AVX-512""#);
    let (directory, outcome) = keeping(&hidden);
    outcome.unwrap();
    assert!(directory.path().join("reach-openssl-3.0-avx2-example-r-cpu-9-2-cores.json").is_file());
    let table = join(&load_all(tls::REACH, directory.path()).unwrap(), tls::everything);
    assert!(table.contains(" without AVX-512, 2 cores"), "{table}");
}

#[test]
fn envoy_alone_does_not_replace_the_other_servers() {
    let alone = report(true)
        .replace(r#""server": "nginx""#, r#""server": "envoy""#)
        .replace(r#""nginx": "1.22.1""#, r#""envoy": "1.40.0""#)
        .replace(r#""openssl": "3.0.15""#, r#""envoy_tls": "BoringSSL""#);
    let (directory, outcome) = keeping(&alone);
    outcome.unwrap();
    assert!(directory.path().join("envoy-example-r-cpu-9-2-cores.json").is_file());
    let table = join(&load_all(tls::ENVOY, directory.path()).unwrap(), tls::everything);
    assert!(table.contains("kernel 6.1; Envoy 1.40.0 with BoringSSL; 2026-01-02."), "{table}");
    assert!(load_all::<tls::Row>("tls", directory.path()).unwrap().is_empty());
}

/// A report with three HAProxys; `hasten` is what its last round cost in AWS-LC's row.
fn peer_report(hasten: f64) -> String {
    let row = |server: &str, stock: f64, last: f64, value: f64| {
        let side = |cost: f64| {
            format!(
                r#"{{"server_cpu_us_per_op": {cost}, "ops_per_s": 9, "p50_us": 9, "p99_us": 9, "failures": 0}}"#
            )
        };
        format!(
            r#"{{"server": "{server}", "cert": "p-256", "protocol": "tls1.3", "group": "x25519", "tickets": "on",
                "concurrency": 64, "stock": {}, "hasten": {}, "verdict": "faster",
                "cpu_ratio": {{"value": {value}, "low": 0.5, "high": 2.5}},
                "pairs": [{{"stock": {stock}, "hasten": 160}}, {{"stock": {stock}, "hasten": 160}},
                          {{"stock": {stock}, "hasten": {last}}}]}}"#,
            side(stock),
            side(160.0)
        )
    };
    let rows = [row("haproxy", 300.0, 160.0, 1.875), row("haproxy-aws-lc", 120.0, hasten, 0.75)].join(",");
    format!(
        r#"{{"host": {{"cpu": "Example", "cores": "2", "os": "Debian", "kernel": "6.1", "haproxy": "3.0.11",
            "haproxy_openssl": "OpenSSL 3.0.15", "haproxy-aws-lc": "3.0.11", "haproxy_aws_lc": "AWS-LC 5.12.0",
            "date": "2026-01-02T03:04:05Z"}}, "workload": "tls", "complete": true, "rows": [{rows}]}}"#
    )
}

#[test]
fn another_tls_library_stands_between_stock_and_hasten() {
    let (directory, outcome) = keeping(&peer_report(160.0));
    outcome.unwrap();
    assert!(directory.path().join("peer-example-2-cores.json").is_file());
    assert!(load_all::<tls::Row>("tls", directory.path()).unwrap().is_empty());
    let table = join(&load_all(peer::PEER, directory.path()).unwrap(), peer::everything);
    assert!(table.contains("HAProxy 3.0.11 with OpenSSL 3.0.15 and with AWS-LC 5.12.0; 2026"), "{table}");
    let line = "| P-256 | TLS 1.3 | X25519 | 64 | 300 | **120** | 160 | 2.50 [2.50, 2.50] | 1.88 [0.50, 2.50] | 0.75 [0.50, 2.50] |";
    assert!(table.lines().any(|other| other == line), "{table}");
}

#[test]
fn sides_of_different_rounds_are_not_compared() {
    let (directory, outcome) = keeping(&peer_report(170.0));
    outcome.unwrap();
    let table = join(&load_all(peer::PEER, directory.path()).unwrap(), peer::everything);
    assert!(!table.contains("P-256"), "{table}");
}

#[test]
fn a_peer_without_avx_512_replaces_nothing() {
    let hidden = peer_report(160.0).replace(r#""cores": "2""#, r#""cores": "2", "hidden": "AVX-512""#);
    let (directory, outcome) = keeping(&hidden);
    outcome.unwrap();
    assert!(directory.path().join("peer-without-avx512-example-2-cores.json").is_file());
}

#[test]
fn a_run_of_all_workloads_is_one_short_table() {
    let all = |parts: &str, left_out: &str| {
        format!(r#"{{"workload": "all", "complete": true, "parts": [{parts}], "left_out": [{left_out}]}}"#)
    };
    let parts = [report(true), gzip_report(1.0)].join(",");
    let (directory, outcome) = keeping(&all(&parts, ""));
    outcome.unwrap();
    let table = brief(&directory.path().join("bench-example-r-cpu-9-2-cores.json")).unwrap();
    let lines: Vec<_> = table.lines().skip(4).collect();
    assert_eq!(
        lines,
        [
            "| nginx, TLS 1.3 handshake and a request, RSA-2048, 1 connection | 570 µs | 260 µs | no difference [2.15, 2.24] |",
            "| nginx, TLS 1.3 handshake and a request, RSA-2048, 256 connections | 570 µs | 260 µs | **2.19** [2.15, 2.24] |",
            "| nginx, gzip, 100KB at level 6 | 570 µs | 260 µs | **2.19** [2.15, 2.24] |",
            "| zlib, deflate, level 6 | 40 MB/s | 90 MB/s | **2.19** [2.15, 2.24] |",
        ],
        "{table}"
    );

    let left_out = r#"{"workload": "node", "why": "no npm", "fix": "install it"}"#;
    let (_directory, outcome) = keeping(&all(&parts, left_out));
    assert!(matches!(outcome, Err(Error::Result { why, .. }) if why.contains("without node")));
    let (_directory, outcome) = keeping(&all(&report(false), ""));
    assert!(matches!(outcome, Err(Error::Result { .. })), "a part is unfinished");
}

#[test]
fn an_unfinished_report_is_not_kept() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("hasten-report.json");
    fs::write(&source, report(false)).unwrap();
    assert!(matches!(keep(&source, directory.path()), Err(Error::Result { .. })));
    assert!(load_all::<tls::Row>("tls", directory.path()).unwrap().is_empty());
}

#[test]
fn only_the_text_between_the_marks_changes() {
    let (begin, end) = RESULTS;
    let document = format!("a\n{begin}old\n{end}b\n");
    let replaced = replace(&document, RESULTS, "new\n").unwrap();
    assert_eq!(replaced, format!("a\n{begin}\nnew\n\n{end}b\n"));
    assert_eq!(replace(&replaced, RESULTS, "new\n").unwrap(), replaced);
    assert_eq!(replace("no marks", RESULTS, "new"), None);
    assert_eq!(replace(&document, PROFILE_TLS, "new"), None, "other marks");
}

/// A library row, a server row; `worst` is the growth of the worst file.
fn gzip_report(worst: f64) -> String {
    let side = |cpu: f64, speed: f64| {
        format!(
            r#"{{"server_cpu_us_per_op": {cpu}, "ops_per_s": 900, "p50_us": 900, "p99_us": 2000, "failures": 0,
                "wire_bytes_per_op": 1000, "mb_per_cpu_s": {speed}, "compression": 4.2}}"#
        )
    };
    let (stock, hasten) = (side(570.4, 40.0), side(260.0, 90.0));
    let both = format!(
        r#""level": 6, "stock": {stock}, "hasten": {hasten}, "wire_bytes_ratio": 1.004, "verdict": "faster",
            "cpu_ratio": {{"value": 2.194, "low": 2.15, "high": 2.24}}"#
    );
    format!(
        r#"{{"host": {{"cpu": "Example", "cores": "2", "os": "Debian", "kernel": "6.1", "nginx": "1.22.1",
            "openssl": "3.0.15", "date": "2026-01-02T03:04:05Z"}}, "workload": "gzip", "complete": true, "rows": [
            {{"engine": "hasten", "work": "deflate", {both}, "worst_file": {{"name": "css/4KB", "wire_bytes_ratio": {worst}}}}},
            {{"engine": "isal", "work": "deflate", {both}, "worst_file": {{"name": "x", "wire_bytes_ratio": 1.2}}}},
            {{"server": "nginx", "size": "100KB", {both}}}]}}"#
    )
}

#[test]
fn a_report_of_compression_fills_its_tables() {
    let (directory, outcome) = keeping(&gzip_report(1.021));
    outcome.unwrap();
    assert!(directory.path().join("gzip-example-2-cores.json").is_file());

    let results = load_all("gzip", directory.path()).unwrap();
    let everything = join(&results, gzip::everything);
    assert!(everything.contains("| +2.1 % (css/4KB) | faster |\n"), "{everything}");
    assert_eq!(everything.matches("\n| isal |").count(), 1);
}

#[test]
fn output_that_breaks_the_rules_is_no_result() {
    let (_directory, outcome) = keeping(&gzip_report(1.031));
    assert!(matches!(outcome, Err(Error::Result { why, .. }) if why.contains("larger")));
}
