//! The state of the eleven tunings for invented builds and hosts, and the measurements behind it.

use std::collections::HashSet;

use hasten_plan::tunings::{Measurements, Subject, Tuning, TuningState, tunings};
use hasten_plan::{Config, Plan, Surroundings};
use hasten_probe::host::cpu::FeatureState;
use hasten_probe::host::memory::TransparentHugePages;
use hasten_probe::program::Library;
use hasten_probe::program::node::NodeBuild;
use hasten_probe::{Environment, Feature, Host, Program};

const RESULTS: &str = r#"{ "rows": [
    { "workload": "json-api", "node": "24.21.0", "tuning": "huge-pages", "verdict": "no difference",
      "cpu_ratio": { "value": 1.004, "low": 0.98, "high": 1.02 } },
    { "workload": "json-api", "node": "20.20.2", "tuning": "huge-pages", "verdict": "faster",
      "cpu_ratio": { "value": 1.06, "low": 1.04, "high": 1.08 } },
    { "workload": "react-ssr", "node": "20.20.2", "tuning": "huge-pages", "verdict": "no difference",
      "cpu_ratio": { "value": 1.0, "low": 0.98, "high": 1.01 } },
    { "workload": "json-api", "node": "20.20.2", "tuning": "cpuset", "verdict": "slower",
      "cpu_ratio": { "value": 0.9, "low": 0.88, "high": 0.92 } },
    { "workload": "json-api", "node": "20.20.2", "verdict": "faster",
      "cpu_ratio": { "value": 9.0, "low": 9.0, "high": 9.0 } }
] }"#;

const HANDSHAKES: &str = r#"{ "rows": [
    { "server": "nginx", "cert": "p-256", "protocol": "tls1.3", "concurrency": 1, "verdict": "faster",
      "cpu_ratio": { "value": 1.5, "low": 1.4, "high": 1.6 } },
    { "server": "nginx", "cert": "p-256", "protocol": "tls1.3", "concurrency": 256, "verdict": "faster",
      "cpu_ratio": { "value": 2.6, "low": 2.57, "high": 2.63 } },
    { "server": "haproxy", "cert": "p-256", "protocol": "tls1.3", "concurrency": 256, "verdict": "faster",
      "cpu_ratio": { "value": 1.7, "low": 1.6, "high": 1.8 } }
] }"#;

/// Everything that a test may want to change.
struct Case {
    build: NodeBuild,
    host: Host,
    surroundings: Surroundings,
    cpus_allowed: Option<usize>,
    results: &'static [(&'static str, &'static str)],
}

impl Case {
    fn of(release: &str) -> Self {
        let build = serde_json::json!({
            "release": release, "v8": "11.3", "pointer_compression": false, "short_builtin_calls": true,
            "pgo": false, "lto": false, "ignores_node_options": false, "compile_cache": true,
            "heap_limit_bytes": 4144u64 << 20, "semi_space_bytes": 16u64 << 20,
            "swap16_gb_s": 40.0, "swap32_gb_s": 16.0, "swap64_gb_s": 28.0, "copy_gb_s": 44.0,
        });
        let mut host = Host::default();
        host.cpu.threads = 2;
        host.memory.transparent_huge_pages =
            Some(TransparentHugePages { enabled: "madvise".into(), defrag: None });
        Self {
            build: serde_json::from_value(build).unwrap(),
            host,
            surroundings: Surroundings::default(),
            cpus_allowed: Some(2),
            results: &[
                ("results.json", RESULTS),
                ("tls.json", HANDSHAKES),
                ("broken.json", "{"),
                ("other.json", "{}"),
            ],
        }
    }

    fn table(&self) -> Vec<Tuning> {
        let program = Program::inspect("/bin/sh".as_ref(), &Environment::default()).unwrap();
        let plan = Plan::new(&self.host.cpu, &program, &Config::default(), &self.surroundings);
        tunings(&Subject {
            build: &self.build,
            host: &self.host,
            plan: &plan,
            surroundings: &self.surroundings,
            cpus_allowed: self.cpus_allowed,
            measurements: &Measurements::parse(self.results),
        })
    }

    fn tuning(&self, id: &str) -> Tuning {
        self.table().into_iter().find(|tuning| tuning.id == id).unwrap_or_else(|| panic!("no {id}"))
    }

    fn state(&self, id: &str) -> TuningState {
        self.tuning(id).state
    }

    fn node_options(mut self, options: &str) -> Self {
        self.surroundings.node_options = Some(options.into());
        self
    }
}

#[test]
fn there_are_eleven_and_each_has_a_reason_and_a_measurement() {
    let table = Case::of("20.20.2").table();
    assert_eq!(table.iter().map(|tuning| tuning.id).collect::<HashSet<_>>().len(), 11);
    for tuning in table {
        for text in [tuning.name, &tuning.detail, &tuning.measured, &tuning.source] {
            assert!(!text.is_empty(), "{tuning:?}");
        }
    }
}

#[test]
fn a_measurement_of_the_same_release_decides() {
    let huge_pages = |release: &str| Case::of(release).tuning("huge-pages");
    let on_20 = huge_pages("20.1.0");
    assert_eq!(on_20.state, TuningState::Applicable);
    assert_eq!(
        on_20.measured,
        "CPU without ÷ with: json-api on 20.20.2 1.06 [1.04, 1.08]; react-ssr on 20.20.2 1.00 [0.98, 1.01]"
    );
    assert_eq!(on_20.source, "results.json");
    assert_eq!(huge_pages("24.0.0").state, TuningState::NoEffect);
    let on_22 = huge_pages("22.0.0");
    assert_eq!(on_22.state, TuningState::Unmeasured);
    assert!(
        on_22.measured.starts_with("not measured yet on Node.js 22; json-api on 24.21.0 1.00 "),
        "{on_22:?}"
    );
    assert_eq!(Case::of("20.0.0").state("cpuset"), TuningState::NoEffect, "slower is no reason to apply it");
    let nothing = Case { results: &[], ..Case::of("20.0.0") }.tuning("cpuset");
    assert_eq!(nothing.measured, "not measured yet on Node.js 20");
    assert_eq!(nothing.source, "`hasten bench node --tunings` measures it");
}

#[test]
fn huge_pages_are_gated_by_release_and_kernel() {
    let on_26 = Case::of("26.10.0").tuning("huge-pages");
    assert_eq!((on_26.state, on_26.how), (TuningState::NoEffect, None));
    let mut case = Case::of("20.0.0");
    case.host.memory.transparent_huge_pages = None;
    let without = case.tuning("huge-pages");
    assert_eq!(without.state, TuningState::NoEffect);
    assert!(without.how.unwrap().contains("transparent_hugepage/enabled"));
    let asked = Case::of("20.0.0").node_options("--use-largepages=on");
    assert_eq!(asked.state("huge-pages"), TuningState::InEffect);
}

#[test]
fn what_is_compiled_in_or_set_is_in_effect() {
    let mut case = Case::of("20.0.0");
    for id in ["pointer-compression", "pgo"] {
        assert_eq!(case.state(id), TuningState::NeedsBuild, "{id}");
    }
    assert_eq!(case.state("bolt"), TuningState::NoEffect);
    case.build.pointer_compression = true;
    case.build.pgo = true;
    case.build.bolt = true;
    for id in ["pointer-compression", "pgo", "bolt", "short-builtin-calls", "buffer-swap"] {
        assert_eq!(case.state(id), TuningState::InEffect, "{id}");
    }
    case.build.bolt = false;
    case.build.relocations = true;
    assert_eq!(case.state("bolt"), TuningState::Applicable);
    let set = Case::of("20.0.0").node_options("--max_semi_space_size=8").tuning("semi-space");
    assert_eq!(set.state, TuningState::InEffect);
    assert_eq!(set.detail, "NODE_OPTIONS sets it; the default here is 16 MiB");
}

#[test]
fn a_small_heap_has_no_short_calls_and_an_old_build_neither() {
    let mut case = Case::of("20.0.0");
    case.build.heap_limit_bytes = 600 << 20;
    let small = case.tuning("short-builtin-calls");
    assert_eq!(small.state, TuningState::NoEffect);
    assert!(small.detail.contains("here it is 552 MiB"), "{small:?}");
    case.build.short_builtin_calls = false;
    assert_eq!(case.state("short-builtin-calls"), TuningState::NeedsBuild);
}

#[test]
fn slow_swapping_is_seen() {
    let mut case = Case::of("20.0.0");
    case.build.swap32_gb_s = 2.0;
    assert_eq!(case.state("buffer-swap"), TuningState::NeedsBuild);
}

#[test]
fn cpus_that_are_withheld_are_a_cpuset() {
    let with = |cpus_allowed, threads| {
        let mut case = Case { cpus_allowed, ..Case::of("20.0.0") };
        case.host.cpu.threads = threads;
        (case.state("cpuset"), case.state("main-thread-affinity"))
    };
    assert_eq!(with(Some(1), 2).0, TuningState::InEffect);
    assert_eq!(with(Some(1), 1), (TuningState::NoEffect, TuningState::NoEffect));
    assert_eq!(with(None, 2), (TuningState::NoEffect, TuningState::Unmeasured));
}

#[test]
fn tls_is_quoted_from_the_first_server_under_the_highest_load() {
    let tls = Case::of("20.0.0").tuning("async-tls");
    assert_eq!(tls.measured, "CPU per handshake, stock ÷ hasten: nginx p-256 2.60 [2.57, 2.63]");
    // This invented CPU lacks what it needs.
    assert_eq!(tls.state, TuningState::NoEffect);
}

#[test]
fn an_nginx_in_front_is_advised_only_where_it_can_be_accelerated() {
    let with = |version: &str| {
        let mut case = Case::of("20.0.0");
        let state = |feature| FeatureState { feature, cpu: true, kernel: true, usable: true };
        case.host.cpu.features = Feature::ALL.into_iter().map(state).collect();
        let library = Library {
            name: "libssl.so.3".to_owned(),
            path: "/usr/lib/libssl.so.3".into(),
            needed_by: String::new(),
            version: Some(version.to_owned()),
        };
        case.surroundings.libssl = Some(Some(library));
        case.tuning("async-tls")
    };
    assert_eq!(with("OpenSSL 3.0.19").state, TuningState::Applicable);
    let other = with("OpenSSL 3.7.1");
    assert_eq!(other.state, TuningState::NoEffect);
    assert!(other.detail.contains("OpenSSL 3.7.1"), "{other:?}");
    assert!(
        other.how.as_deref().is_some_and(|how| how.contains("an nginx that uses OpenSSL 3")),
        "{other:?}"
    );
}

#[test]
fn the_cache_is_in_effect_where_something_loads_it() {
    let case = Case::of("22.0.0");
    let missing = case.tuning("bytecode-cache");
    assert_eq!(missing.state, TuningState::Applicable);
    assert!(missing.how.unwrap().contains("make install"));
    let mut own = Case::of("22.0.0");
    own.surroundings.node_compile_cache = Some("/tmp/cache".into());
    assert_eq!(own.state("bytecode-cache"), TuningState::InEffect);
    own.build.compile_cache = false;
    assert_eq!(own.state("bytecode-cache"), TuningState::Applicable, "a release that ignores the variable");
    let tree = tempfile::tempdir().unwrap();
    let plugin = tree.path().join("hasten/node/register.js");
    std::fs::create_dir_all(plugin.parent().unwrap()).unwrap();
    std::fs::write(&plugin, "").unwrap();
    let mut loaded = case.node_options(&format!("-r {}", plugin.display()));
    loaded.surroundings.library_directory = Some(tree.path().join("hasten"));
    assert_eq!(loaded.state("bytecode-cache"), TuningState::InEffect);
}

#[test]
fn what_is_kept_in_the_repository_is_understood() {
    let case = Case::of("20.0.0");
    let program = Program::inspect("/bin/sh".as_ref(), &Environment::default()).unwrap();
    let plan = Plan::new(&case.host.cpu, &program, &Config::default(), &case.surroundings);
    let subject = Subject {
        build: &case.build,
        host: &case.host,
        plan: &plan,
        surroundings: &case.surroundings,
        cpus_allowed: None,
        measurements: &Measurements::kept(),
    };
    let tls = tunings(&subject).remove(0);
    assert!(tls.source.starts_with("docs/results/tls-"), "{tls:?}");
}
