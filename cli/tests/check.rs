//! `hasten check`: the table, the JSON, and the answer for one program.

mod support;

use serde_json::Value;
use support::{HASTEN, Place, has_adx, has_ifma};

fn json(place: &Place, arguments: &[&str]) -> Value {
    let assert = place.run(&[&["check", "--json"], arguments].concat()).success();
    serde_json::from_slice(&assert.get_output().stdout).unwrap()
}

#[test]
fn tells_of_a_program_what_it_links_and_which_hooks_it_would_use() {
    if !has_ifma() {
        return;
    }
    let place = Place::new();
    let output =
        place.hasten(&["check", "--hooks", "--", "./server"]).env("COLUMNS", "160").output().unwrap();
    insta::assert_snapshot!(place.normalise(&output.stdout));
    assert!(output.stderr.is_empty());
}

#[test]
fn tells_of_a_program_that_compresses() {
    let place = Place::new();
    place.add_packer();
    let report = json(&place, &["--", "./packer"]);
    let accelerators = report["program"]["accelerators"].as_array().unwrap();
    let gzip = accelerators.iter().find(|accelerator| accelerator["name"] == "gzip").unwrap();
    assert_eq!(gzip["decision"], "apply");
    assert_eq!(gzip["hooks"][0]["bound_in"], serde_json::json!(["packer"]));
    assert_eq!(gzip["hooks"][1]["bound_in"], serde_json::json!([]));
    assert_eq!(report["accelerators"][1]["decision"], "apply", "the host alone says nothing against it");
}

#[test]
fn the_configuration_of_an_envoy_is_read() {
    let place = Place::new();
    std::fs::copy(place.path("server"), place.path("envoy")).unwrap();
    let yaml = r#"static_resources: { listeners: [ { name: a, filter_chains: [ { filters: [ { typed_config:
        { "@type": x.TcpProxy } } ] } ] } ] }"#;
    std::fs::write(place.path("envoy.yaml"), yaml).unwrap();
    let check = |arguments: &[&str]| {
        json(&place, &[&["--", "./envoy"], arguments].concat())["program"]["envoy"].take()
    };
    let found = check(&["-c", "envoy.yaml", "--concurrency", "8"]);
    assert_eq!(found["suggestions"][0]["line"], "connection_balance_config: { exact_balance: {} }");
    assert_eq!(check(&["-c", "envoy.yaml", "--concurrency", "1"])["suggestions"], serde_json::json!([]));
    let unread = check(&["-c", "other.yaml"])["unread"].take();
    assert!(unread.as_str().unwrap().starts_with("cannot read other.yaml"), "{unread}");
    assert_eq!(check(&[]), Value::Null);
    let assert = place.run(&["check", "--", "./envoy", "-c", "envoy.yaml", "--concurrency", "8"]).success();
    assert!(place.stdout(&assert).contains("the busiest of 8"));
}

#[test]
fn the_json_of_a_program_says_the_same() {
    let place = Place::new();
    let program = &json(&place, &["--", "./server"])["program"];
    assert_eq!(program["linkage"]["type"], "dynamic");
    assert_eq!(program["linkage"]["libc"], "glibc");
    assert_eq!(program["machine"], "x86-64");
    assert_eq!(program["privilege"]["secure_exec"], false);
    assert_eq!(program["libraries"][0]["name"], "libssl.so.3");
    assert_eq!(program["libraries"][0]["version"], "OpenSSL 3.0.99");
    let tls = &program["accelerators"][0];
    assert_eq!(tls["name"], "tls");
    assert_eq!(tls["decision"], if has_adx() { "apply" } else { "skip" });
    let hooks: Vec<_> =
        tls["hooks"].as_array().unwrap().iter().map(|hook| (&hook["symbol"], &hook["bound_in"])).collect();
    let expected = serde_json::json!([
        ["SSL_do_handshake", ["server"]],
        ["EVP_DigestSign", ["libssl.so.3"]],
        ["SSL_read_early_data", []],
    ]);
    assert_eq!(serde_json::json!(hooks), expected);
}

#[test]
fn every_feature_of_the_host_has_state_reason_and_use() {
    let place = Place::new();
    let report = json(&place, &[]);
    assert_eq!(report["schema"], 1);
    assert_eq!(report["hasten"], env!("CARGO_PKG_VERSION"));
    let features = report["features"].as_array().unwrap();
    for feature in features {
        for name in ["id", "group", "feature", "state", "detail", "why"] {
            assert!(feature[name].as_str().is_some_and(|text| !text.is_empty()), "{name} of {feature}");
        }
        assert!(["available", "limited", "absent", "unknown"].contains(&feature["state"].as_str().unwrap()));
    }
    let of =
        |id: &str| features.iter().find(|feature| feature["id"] == id).unwrap_or_else(|| panic!("no {id}"));
    assert_eq!(of("cpu.avx512ifma")["used_by"], serde_json::json!(["tls", "envoy"]));
    for id in [
        "cpu.avx512f",
        "cpu.vaes",
        "cpu.avx512vbmi",
        "cpu.avx_ifma",
        "cpu.sha_ni",
        "cpu.gfni",
        "memory.huge_pages",
        "memory.numa",
        "memory.tiers",
        "memory.promotion",
        "memory.zswap",
        "memory.damon_reclaim",
        "memory.dax",
        "memory.cxl",
        "device.qat",
        "device.iaa",
        "device.dsa",
        "device.dlb",
        "kernel.io_uring",
        "kernel.ktls",
        "kernel.perf_events",
        "kernel.userns",
        "kernel.cpu_limit",
    ] {
        of(id);
    }
    assert_eq!(report["accelerators"][0]["decision"], if has_adx() { "apply" } else { "skip" });
    assert!(report["host"]["cpu"]["threads"].as_u64().unwrap() > 0);
}

#[test]
fn every_name_of_the_json_is_documented() {
    let place = Place::new();
    let page = include_str!("../../docs/cli.md");
    let report = json(&place, &["--", "./server"]);
    let documented = |names: &Value| {
        for name in names.as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{name}`")), "docs/cli.md does not mention `{name}`");
        }
    };
    documented(&report);
    documented(&report["features"][0]);
    documented(&report["program"]);
    documented(&report["program"]["accelerators"][0]);
    documented(&report["program"]["accelerators"][0]["hooks"][0]);
    documented(&report["program"]["accelerators"][0]["reasons"][0]);
    documented(&report["program"]["libraries"][0]);
    documented(&report["program"]["privilege"]);
}

#[test]
fn what_is_off_is_not_said_to_use_hooks() {
    let place = Place::new();
    let output = place.hasten(&["check", "--", "./server"]).env("HASTEN_DISABLE", "tls").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let tls = text.split("\ntls off").nth(1).and_then(|rest| rest.split("\ngzip ").next()).unwrap();
    assert!(!tls.contains("hooks would be used"), "{text}");
    assert!(text.contains("0 of 2 hooks would be used at start"), "{text}");
}

#[test]
fn begins_with_a_line_for_each_accelerator() {
    let place = Place::new();
    let output = place.hasten(&["check"]).env("HASTEN_DISABLE", "tls").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.is_empty()).skip(1).take(4).collect();
    assert!(lines[0].starts_with("tls   off") && lines[0].contains("HASTEN_DISABLE=tls"), "{text}");
    assert!(lines[1].starts_with("gzip  on") && lines[2].starts_with("envoy on"), "{text}");
    assert!(lines[3].starts_with("node  on"), "{text}");
}

#[test]
fn a_cpu_without_ifma_and_adx_is_said_to_be_one() {
    let place = Place::new();
    let variables = [("HASTEN_CPU_DISABLE_IFMA", "1"), ("HASTEN_CPU_DISABLE_ADX", "1")];
    let output = place.hasten(&["check"]).envs(variables).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("tls off"), "{text}");
    assert!(text.contains("- HASTEN_CPU_DISABLE_IFMA hides AVX-512 IFMA; and for"), "{text}");
}

#[test]
fn the_table_fits_the_width_and_has_no_colours_in_a_pipe() {
    let place = Place::new();
    for width in [80, 100, 200] {
        let output = place.hasten(&["check"]).env("COLUMNS", width.to_string()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let table =
            text.lines().skip_while(|line| !line.contains("Feature")).take_while(|line| !line.is_empty());
        assert!(table.map(|line| line.chars().count()).max().unwrap() <= width);
        assert!(!text.contains('\u{1b}'));
    }
}

#[test]
fn colours_come_on_a_terminal_and_go_with_no_color() {
    if std::process::Command::new("script").arg("--version").output().is_err() {
        println!("skipped: script is not installed (apt-get install bsdutils)");
        return;
    }
    let on_terminal = |no_color: Option<&str>| {
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &format!("{HASTEN} check"), "/dev/null"]).env_remove("NO_COLOR");
        script.env("TERM", "xterm");
        if let Some(value) = no_color {
            script.env("NO_COLOR", value);
        }
        let output = script.stdin(std::process::Stdio::null()).output().unwrap().stdout;
        String::from_utf8(output).unwrap().contains('\u{1b}')
    };
    assert!(on_terminal(None));
    assert!(on_terminal(Some("")), "an empty NO_COLOR means nothing");
    assert!(!on_terminal(Some("1")));
}

#[test]
fn a_dumb_terminal_gets_no_escape_sequences() {
    if std::process::Command::new("script").arg("--version").output().is_err() {
        println!("skipped: script is not installed (apt-get install bsdutils)");
        return;
    }
    let place = Place::new();
    for arguments in [
        "check",
        "check -- ./server",
        "selftest",
        "--help",
        "run --olny",
        "tune --list-knobs -- ./server",
        "top",
    ] {
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &format!("{HASTEN} {arguments}"), "/dev/null"]).current_dir(place.path(""));
        script.env_remove("NO_COLOR").env("TERM", "dumb").env("HASTEN_LIBDIR", place.path(""));
        let output = script.stdin(std::process::Stdio::null()).output().unwrap().stdout;
        let text = String::from_utf8(output).unwrap();
        assert!(!text.contains('\u{1b}') && !text.is_empty(), "{arguments}: {text}");
    }
}

/// An operator's screen has 45 lines of 100 columns, or more.
#[test]
fn the_answer_for_a_program_fits_a_screen() {
    let place = Place::new();
    place.add_packer();
    // As many hooks as the real libraries have.
    for (library, hooks) in [("libhasten_tls.so", 140), ("libhasten_gzip.so", 60)] {
        let lines: String = (0..hooks)
            .map(|n| format!("\"SSL_function_{n}\\tSsl\\toptional\\tDoes what it does.\\n\""))
            .collect();
        let table =
            format!("__attribute__((section(\".hasten.hooks\"), used)) static const char table[] = {lines};");
        place.cc(library, &table, &["-shared", "-fPIC"]);
    }
    for program in ["./server", "./packer", "nginx", "haproxy", "openssl", "sh"] {
        let output = place.hasten(&["check", "--", program]).env("COLUMNS", "100").output().unwrap();
        if !output.status.success() {
            println!("skipped: {program} is not installed");
            continue;
        }
        let text = String::from_utf8(output.stdout).unwrap();
        let rows = text.lines().map(|line| line.chars().count().div_ceil(100).max(1)).sum::<usize>();
        assert!(rows <= 45, "{rows} rows of {program}:\n{text}");
    }
}

#[test]
fn a_program_that_is_not_there_is_a_plain_failure() {
    let place = Place::new();
    let assert = place.run(&["check", "--", "no-such-program"]).code(1).stdout("");
    assert!(place.stderr(&assert).contains("cannot find `no-such-program`"));
}

#[test]
fn a_wrong_configuration_is_an_error_here_too() {
    let place = Place::new();
    place.write("hasten.toml", "[tls]\nenabeld = true\n");
    let assert = place.run(&["check"]).code(2);
    assert!(place.stderr(&assert).contains("did you mean `enabled`?"));
}

/// It reflects the `run` that would be started in the same shell.
#[test]
fn what_run_is_told_to_leave_out_is_off_here_too() {
    let place = Place::new();
    place.add_packer();
    let decision = |flags: &[&str], variables: &[(&str, &str)]| {
        let arguments = [&["check", "--json"], flags, &["--", "./packer"]].concat();
        let output = place.hasten(&arguments).envs(variables.iter().copied()).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let accelerators = report["program"]["accelerators"].as_array().unwrap();
        accelerators.iter().find(|accelerator| accelerator["name"] == "gzip").unwrap()["decision"].clone()
    };
    assert_eq!(decision(&[], &[]), "apply");
    assert_eq!(decision(&["--without", "gzip"], &[]), "skip");
    assert_eq!(decision(&["--only", "tls"], &[]), "skip");
    assert_eq!(decision(&[], &[("HASTEN_WITHOUT", "gzip")]), "skip");
    assert_eq!(decision(&[], &[("HASTEN_ONLY", "tls")]), "skip");
    assert_eq!(decision(&["--only", "gzip"], &[("HASTEN_ONLY", "tls")]), "apply");
}
