//! `hasten.toml`: what is accepted, and what every complaint says.

use std::path::Path;

use hasten_names::Algorithm;
use hasten_plan::config::NodeCache;
use hasten_plan::process::Allocator;
use hasten_plan::{Config, ConfigError, accelerator};

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("hasten.toml"))
}

/// The complaint and its cure.
fn complaint(text: &str) -> (String, String) {
    let error = parse(text).expect_err(text);
    (error.to_string(), error.fix())
}

#[test]
fn accepts_everything_that_is_documented() {
    let config = parse(
        "[run]\nstrict = true\nonly = [\"tls\"]\nwithout = []\n[tls]\nenabled = true\n[tls.break_even]\nrsa-2048-sign = 0x3\n\
         [gzip]\nenabled = true\nverify = true\nengines = [\"isal\", \"zlib-rs\"]\nwindow = \"full\"\n\
         [devices]\nuse = [\"qpl\"]\ntimeout_ms = 0x14\nretry_ms = [1, 3_600_000]\nlibraries = \"/usr\"\n\
         [node]\nenabled = true\ncache = \"read\"\ngc_record = true\ngc_advice = \"advice.json\"\n\
         options = [\"--maglev\"]\nthreadpool = 8\ncompile_cache = true\n\
         [process]\ncpus = \"0,2-3\"\nthp = \"never\"\nallocator = \"jemalloc\"\nmalloc_arenas = 2\n\
         malloc_hugepages = true\nmalloc_keep = 64\n[environment]\nA = \"b\"\n",
    )
    .unwrap();
    assert!(config.strict);
    assert_eq!(config.tls.break_even["rsa-2048-sign"], 3);
    assert!(config.gzip.verify && !config.gzip.verify_always);
    assert_eq!(config.gzip.engines, ["isal", "zlib-rs"]);
    assert!(config.gzip.full_window);
    assert_eq!((config.devices.timeout_ms, config.devices.retry_ms), (Some(20), Some((1, 3_600_000))));
    assert_eq!((config.node.cache, config.node.gc_record), (NodeCache::Read, true));
    assert_eq!(
        config.node.options.iter().map(|option| option.text.as_str()).collect::<Vec<_>>(),
        ["--maglev"]
    );
    assert_eq!((config.node.threadpool, config.node.compile_cache), (Some(8), true));
    let process = &config.process;
    assert_eq!(process.cpus.as_ref().map(ToString::to_string).as_deref(), Some("0,2-3"));
    assert_eq!((process.no_thp, process.allocator), (true, Some(Allocator::Jemalloc)));
    assert_eq!(
        (process.malloc_arenas, process.malloc_hugepages, process.malloc_keep),
        (Some(2), true, Some(64))
    );
    assert_eq!(config.environment["A"], "b");
    assert!(parse("").is_ok());
}

#[test]
fn advice_is_looked_for_beside_the_file_that_names_it() {
    let advice = |value: &str| {
        let text = format!("[node]\ngc_advice = '{value}'");
        Config::parse(&text, Path::new("/etc/hasten/hasten.toml")).unwrap().node.gc_advice.unwrap()
    };
    assert_eq!(advice("gc.json"), Path::new("/etc/hasten/gc.json"));
    assert_eq!(advice("/srv/gc.json"), Path::new("/srv/gc.json"));
    assert_eq!(parse("[node]\ngc_advice = 'gc.json'").unwrap().node.gc_advice.unwrap(), Path::new("gc.json"));
}

#[test]
fn the_documentation_names_every_key_and_its_example_is_valid() {
    let page = include_str!("../../../docs/configuration.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    parse(example).unwrap();
    let keys = [
        "strict",
        "only",
        "without",
        "enabled",
        "break_even",
        "verify",
        "engines",
        "use",
        "timeout_ms",
        "retry_ms",
        "libraries",
        "cache",
        "gc_record",
        "gc_advice",
        "options",
        "threadpool",
        "compile_cache",
        "cpus",
        "thp",
        "allocator",
        "malloc_arenas",
        "malloc_hugepages",
        "malloc_keep",
        "[environment]",
    ];
    let names = [&Algorithm::NAMES[..], &accelerator::gzip::ENGINES, &NodeCache::NAMES];
    for key in keys.into_iter().chain(names.concat()) {
        assert!(page.contains(key), "{key}");
    }
}

#[test]
fn unknown_keys_name_the_line_and_the_nearest_valid_key() {
    for (text, what, fix) in [
        ("[rnu]\n", "hasten.toml:1: unknown table `rnu`", "did you mean `run`?"),
        ("\n\n[run]\nstrct = true", "hasten.toml:4: unknown key `strct` in [run]", "did you mean `strict`?"),
        (
            "[tls]\nbreakeven = {}",
            "hasten.toml:2: unknown key `breakeven` in [tls]",
            "did you mean `break_even`?",
        ),
        ("[run]\nonly = ['tsl']", "hasten.toml:2: unknown accelerator `tsl`", "did you mean `tls`?"),
        (
            "[run]\nonly = ['memory']",
            "hasten.toml:2: unknown accelerator `memory`",
            "use one of tls, gzip, envoy, node, readcache, wal, tier",
        ),
        (
            "[node]\ngc_recrod = true",
            "hasten.toml:2: unknown key `gc_recrod` in [node]",
            "did you mean `gc_record`?",
        ),
        ("[gzip]\nverfy = true", "hasten.toml:2: unknown key `verfy` in [gzip]", "did you mean `verify`?"),
        (
            "[gzip]\nengines = ['isal', 'libdflate']",
            "hasten.toml:2: unknown engine `libdflate`",
            "did you mean `libdeflate`?",
        ),
        ("[process]\ncpu = '1'", "hasten.toml:2: unknown key `cpu` in [process]", "did you mean `cpus`?"),
        (
            "[process]\nallocator = 'jmalloc'",
            "hasten.toml:2: unknown allocator `jmalloc`",
            "did you mean `jemalloc`?",
        ),
        ("[gzipp]", "hasten.toml:1: unknown table `gzipp`", "did you mean `gzip`?"),
        (
            "[tls.break_even]\nrsa-2048-sgn = 3",
            "hasten.toml:2: unknown operation `rsa-2048-sgn` in [tls.break_even]",
            "did you mean `rsa-2048-sign`?",
        ),
    ] {
        assert_eq!(complaint(text), (what.to_owned(), fix.to_owned()), "{text}");
    }
}

#[test]
fn values_of_the_wrong_kind_say_what_is_expected() {
    for (text, what) in [
        ("[run]\nstrict = 'yes'", "hasten.toml:2: `strict` must be true or false, not 'yes'"),
        ("run = 3", "hasten.toml:1: `run` must be a table, not 3"),
        (
            "[run]\nonly = 'tls'",
            "hasten.toml:2: `only` must be a list of accelerators, such as [\"tls\"], not 'tls'",
        ),
        ("[node]\ncache = true", "hasten.toml:2: `cache` must be \"on\", \"read\" or \"off\", not true"),
        ("[node]\ncache = 'no'", "hasten.toml:2: `cache` must be \"on\", \"read\" or \"off\", not 'no'"),
        ("[node]\ngc_advice = ''", "hasten.toml:2: `gc_advice` must be the path of a file, not ''"),
        (
            "[process]\ncpus = '3-1'",
            "hasten.toml:2: `cpus` must be a list of CPUs, such as \"0,2-3\", not '3-1'",
        ),
        ("[process]\nthp = true", "hasten.toml:2: `thp` must be \"never\" or \"system\", not true"),
        ("[process]\nmalloc_keep = 0", "hasten.toml:2: `malloc_keep` must be a number from 1 to 1024, not 0"),
        ("[environment]\nA = 1", "hasten.toml:2: `A` must be a text in quotes, not 1"),
        ("[gzip]\nverify = 1", "hasten.toml:2: `verify` must be true or false, not 1"),
        (
            "[gzip]\nengines = []",
            "hasten.toml:2: `engines` must be a list of engines, such as [\"isal\", \"libdeflate\"], not []",
        ),
        (
            "[tls]\nbreak_even = { p-256-sign = 10 }",
            "hasten.toml:2: `p-256-sign` must be a number from 1 to 9 (9 means never), not 10",
        ),
    ] {
        assert_eq!(complaint(text).0, what, "{text}");
    }
}

#[test]
fn what_is_not_toml_has_a_line_too() {
    let (what, fix) = complaint("[run]\nstrict = \n");
    assert!(what.starts_with("hasten.toml:2: not TOML: "), "{what}");
    assert!(fix.contains("docs/configuration.md"));
}

#[test]
fn a_named_file_must_exist() {
    let error = Config::load(Some(Path::new("/no/such/hasten.toml"))).unwrap_err();
    assert!(error.to_string().starts_with("cannot read /no/such/hasten.toml: "), "{error}");
}

#[test]
fn a_file_cannot_make_a_program_run_other_code() {
    for (text, what, fix) in [
        (
            "[node]\noptions = ['--max-semi-space-size=8', '--require=/tmp/x.js']",
            "hasten.toml:2: `options`: `--require` is not an option that a configuration may set",
            "use one of --max-semi-space-size,",
        ),
        (
            "[node]\noptions = ['--maglve']",
            "hasten.toml:2: `options`: `--maglve`",
            "did you mean `--maglev`?",
        ),
        (
            "[environment]\nA = 'x'\nLD_PRELOAD = '/tmp/x.so'",
            "hasten.toml:3: `LD_PRELOAD`: [environment] may not set LD_PRELOAD",
            "use the key for it",
        ),
        ("[environment]\nNODE_OPTIONS = '-r x'", "hasten.toml:2: `NODE_OPTIONS`: ", "use the key for it"),
    ] {
        let (said, cure) = complaint(text);
        assert!(said.starts_with(what), "{said}");
        assert!(cure.starts_with(fix), "{cure}");
    }
}
