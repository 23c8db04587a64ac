//! The exporter's companions: dashboard, alerts, unit. They use existing metrics, and the programs that use them
//! accept them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use hasten_export::CATALOGUE;
use hasten_tests::tools;
use serde_json::Value;

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(file)
}

fn text(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Metrics named in expressions.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let words = words.filter(|word| word.starts_with("hasten_"));
    let suffixes = ["_sum", "_count", "_bucket"];
    let base =
        |word: &str| suffixes.iter().find_map(|suffix| word.strip_suffix(suffix)).unwrap_or(word).to_owned();
    words.map(base).collect()
}

fn all() -> BTreeSet<String> {
    CATALOGUE.iter().map(|about| about.metric()).collect()
}

/// All texts among the values of `key`, at any depth.
fn texts<'a>(json: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match json {
        Value::Object(map) => map.iter().for_each(|(name, value)| match value {
            Value::String(text) if name == key => found.push(text),
            other => texts(other, key, found),
        }),
        Value::Array(items) => items.iter().for_each(|item| texts(item, key, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_shows_every_metric_and_no_other() {
    let dashboard: Value = serde_json::from_str(&text("grafana/hasten.json")).unwrap();
    let mut expressions = Vec::new();
    texts(&dashboard, "expr", &mut expressions);
    assert!(expressions.len() > 20);
    assert_eq!(metrics_in(&expressions.join("\n")), all());
    // It can be used with any data source, and panels do not overlap.
    let mut sources = Vec::new();
    texts(&dashboard, "uid", &mut sources);
    assert!(sources.iter().all(|uid| ["hasten", "${datasource}"].contains(uid)), "{sources:?}");
    let mut places = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let place = &panel["gridPos"];
        let at = |key: &str| place[key].as_u64().unwrap();
        for (x, y) in
            (at("x")..at("x") + at("w")).flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y)))
        {
            assert!(x < 24 && places.insert((x, y)), "{} lies on another", panel["title"]);
        }
    }
}

/// Queries of the dashboard and of the manual, as Prometheus reads them.
#[test]
fn prometheus_understands_every_query() {
    let dashboard: Value = serde_json::from_str(&text("grafana/hasten.json")).unwrap();
    let mut expressions = Vec::new();
    texts(&dashboard, "expr", &mut expressions);
    let mut queries: Vec<String> =
        expressions.iter().map(|query| query.replace("$__rate_interval", "5m").replace('$', "")).collect();
    let manual = text("../docs/metrics.md");
    let block =
        manual.split("```promql\n").nth(1).and_then(|rest| rest.split("```").next()).expect("queries");
    queries.extend(block.split("\n\n").map(str::to_owned));
    let rules: Vec<Value> = queries
        .iter()
        .enumerate()
        .map(|(at, query)| serde_json::json!({"record": format!("query:{at}"), "expr": query}))
        .collect();
    let file = tempfile::Builder::new().suffix(".yml").tempfile().unwrap();
    // JSON is YAML.
    let groups = serde_json::json!({"groups": [{"name": "queries", "rules": rules}]});
    fs::write(file.path(), groups.to_string()).unwrap();
    tools::run(promtool().args(["check", "rules"]).arg(file.path()));
}

#[test]
fn alerts_are_valid_come_when_they_should_and_know_only_metrics_that_exist() {
    tools::run(promtool().args(["check", "rules"]).arg(path("prometheus/hasten.rules.yml")));
    tools::run(promtool().args(["test", "rules"]).arg(path("prometheus/hasten.rules.test.yml")));
    for file in ["prometheus/hasten.rules.yml", "prometheus/hasten.rules.test.yml"] {
        let unknown: Vec<_> = metrics_in(&text(file)).difference(&all()).cloned().collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
    // A test has seen each alert fire, or not fire.
    let rules = text("prometheus/hasten.rules.yml");
    let tests = text("prometheus/hasten.rules.test.yml");
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.matches(alert).count() >= 2, "{alert} is not tested both ways");
    }
}

#[test]
fn the_unit_is_valid_and_has_no_more_rights_than_it_needs() {
    let unit = text("systemd/hasten-export.service");
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("hasten-export.service");
    // `verify` wants to see the program; which one does not matter.
    fs::write(&copy, unit.replace("ExecStart=hasten", "ExecStart=true")).unwrap();
    let analyze = || Command::new(tools::tool("systemd-analyze", "systemd"));
    let said = tools::run(analyze().args(["verify", "--man=no"]).arg(&copy));
    // It also complains about the machine's other units if they are loaded along.
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let of_ours: Vec<&str> = said.lines().filter(|line| line.contains("hasten-export")).collect();
    assert!(of_ours.is_empty(), "{said}");
    // 0 is no exposure at all, 100 an ordinary service running as root.
    tools::run(analyze().args(["security", "--offline=true", "--threshold=25", "--no-pager"]).arg(&copy));
    for line in ["NoNewPrivileges=yes", "ProtectSystem=strict", "DynamicUser=yes"] {
        assert!(unit.lines().any(|one| one == line), "{line}");
    }
}

fn promtool() -> Command {
    Command::new(tools::tool("promtool", "prometheus"))
}

/// The package's messages about others' files before it is removed: in a test's tree, and without doing anything.
#[test]
fn a_unit_that_looks_first_is_told_to_go_on_without_the_package() {
    let tree = tempfile::tempdir().unwrap();
    let units = [
        ("broken.service", "ExecStart=/usr/bin/hasten run -- nginx"),
        (
            "prepared.service",
            r#"ExecStart=/bin/sh -c '[ ! -x /usr/bin/hasten ] || exec /usr/bin/hasten run -- "$$@"; exec "$$@"' sh node"#,
        ),
        ("preloads.service", "Environment=LD_PRELOAD=/usr/lib/hasten/libhasten.so"),
        ("comment.service", "# ExecStart=/usr/bin/hasten run -- nginx"),
    ];
    for (name, line) in units {
        fs::write(tree.path().join(name), format!("[Service]\n{line}\n")).unwrap();
    }
    let functions = text("farewell.sh");
    let script = format!("{functions}\nunits='{}'\nothers=\ntell\n", tree.path().display());
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let part = |beginning: &str| {
        let rest = said.split(beginning).nth(1).unwrap_or_else(|| panic!("no `{beginning}`: {said}"));
        rest.split("hasten: these").next().unwrap().to_owned()
    };
    for (beginning, only) in [
        ("these files start a service", "broken"),
        ("these files look first", "prepared"),
        ("these files preload", "preloads"),
    ] {
        let part = part(beginning);
        for (name, _) in units {
            assert_eq!(part.contains(name), name.starts_with(only), "{beginning}: {name}: {said}");
        }
    }
}
