//! `hasten run`: what it decides, says and sets.

mod support;

use std::os::unix::fs::{PermissionsExt, chown};

use support::{Place, has_adx, has_ifma, is_root};

#[test]
fn a_server_is_accelerated_and_told_so_on_stderr_only() {
    if !has_ifma() {
        return;
    }
    let place = Place::new();
    let assert = place.run(&["run", "--", "./server"]).success();
    assert_eq!(place.stdout(&assert), "./server loaded=yes handshake=79\n");
    insta::assert_snapshot!(place.stderr(&assert), @"
    hasten: tls on for server (expected): TLS handshakes, in batches of eight where the CPU can (RSA, ECDSA, ECDHE); watch it with `hasten top`
    hasten: gzip on standby: server does not link libz.so.1: the library stays idle until server, or a program that it starts, loads it
    hasten: node on standby: server is not Node.js: the plugin waits in NODE_OPTIONS for one that server starts
    ");
}

#[test]
fn a_program_that_compresses_is_accelerated_on_any_cpu() {
    let place = Place::new();
    place.add_packer();
    let mut command = place.hasten(&["run", "--only", "gzip", "--", "./packer"]);
    let assert = assert_cmd::Command::from_std({
        command.env("HASTEN_CPU_DISABLE_IFMA", "1");
        command
    })
    .assert()
    .success();
    assert_eq!(place.stdout(&assert), "loaded=yes deflate=100\n");
    let said = place.stderr(&assert);
    assert!(said.contains("hasten: gzip on for packer: zlib's compression and decompression"), "{said}");
    assert!(said.contains("hasten: tls off: --only does not name it"), "{said}");
}

#[test]
fn what_the_file_leaves_out_is_not_told_at_every_start() {
    let place = Place::new();
    place.add_packer();
    place.write("hasten.toml", "[run]\nonly = [\"tls\"]\n");
    let said = place.stderr(&place.run(&["run", "--", "./packer"]).success());
    assert!(!said.contains("gzip off"), "{said}");
    let said = place.stderr(&place.run(&["run", "--dry-run", "--", "./packer"]).success());
    assert!(said.contains("does not name it"), "the whole plan has it: {said}");
    let said = place.stderr(&place.run(&["run", "--without", "gzip", "--", "./packer"]).success());
    assert!(said.contains("hasten: gzip off: --without leaves it out"), "{said}");
}

#[test]
fn verification_is_a_flag_a_variable_or_a_key() {
    let place = Place::new();
    place.add_packer();
    let verify = |arguments: &[&str], variable: &str| {
        let mut command =
            place.hasten(&[&["run", "-q"], arguments, &["--", "printenv", "HASTEN_GZIP_VERIFY"]].concat());
        command.env("HASTEN_GZIP_VERIFY", variable);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(verify(&[], ""), "\n");
    assert_eq!(verify(&["--verify"], ""), "1\n");
    assert_eq!(verify(&["--verify"], "0"), "1\n", "a flag wins over the environment");
    place.write("hasten.toml", "[gzip]\nverify = true\n");
    assert_eq!(verify(&[], ""), "1\n");
    assert_eq!(verify(&[], "0"), "0\n", "the environment wins over the file");
    let assert = place.run(&["run", "--verify", "--only", "tls", "--", "./packer"]).success();
    let said = place.stderr(&assert);
    assert!(said.contains("hasten: warning: --verify has no effect: gzip is off"), "{said}");
}

#[test]
fn zlib_inside_a_program_is_out_of_reach_and_said_to_be() {
    let place = Place::new();
    let text = "deflate 1.2.13 Copyright 1995-2022 Jean-loup Gailly and Mark Adler";
    let own = format!("const char *volatile text = \" {text}\"; int deflate(void) {{ return 0; }}");
    let hidden = "int main(void) { return deflate() + (text == 0); }";
    let reason = |name: &str| {
        let assert = place.run(&["run", "--dry-run", "--", &format!("./{name}")]).success();
        let said = place.stderr(&assert);
        said.lines().skip_while(|line| !line.starts_with("gzip ")).collect::<Vec<_>>().join("\n")
    };
    place.cc("exporting", &format!("{own} {hidden}"), &["-rdynamic"]);
    place.cc("hiding", &format!("{own} {hidden}"), &[]);
    for name in ["exporting", "hiding"] {
        let said = reason(name);
        assert!(said.starts_with("gzip off: "), "{said}");
        assert!(said.contains(&format!("- {name} carries its own zlib 1.2.13 inside")), "{said}");
        assert!(said.contains("fix: use a build that links the system's libz.so.1"), "{said}");
    }
    let slz = "const char *volatile text = \"Built with libslz for stateless compression.\";\
               int main(void) { return text == 0; }";
    place.cc("balancer", slz, &[]);
    let said = reason("balancer");
    assert!(said.contains("- balancer compresses with libslz inside it and never calls zlib"), "{said}");
}

#[test]
fn without_the_gzip_library_tls_goes_on() {
    if !has_ifma() {
        return;
    }
    let place = Place::new();
    std::fs::remove_file(place.path("libhasten_gzip.so")).unwrap();
    let command = place.hasten_alone(&["run", "--", "./server"]);
    let assert = assert_cmd::Command::from_std(command).assert().success();
    assert_eq!(place.stdout(&assert), "./server loaded=yes handshake=79\n");
    let said = place.stderr(&assert);
    assert!(said.contains("hasten: tls on for server"), "{said}");
    assert!(said.contains("hasten: gzip off: libhasten_gzip.so is not in [PLACE]"), "{said}");
}

#[test]
fn dry_run_shows_every_reason_and_starts_nothing() {
    if !has_ifma() {
        return;
    }
    let place = Place::new();
    let assert = place.run(&["run", "--dry-run", "--", "./server", "7", "two words", "it's"]).success();
    insta::assert_snapshot!(place.stderr(&assert), @r#"
    program  [PLACE]/server
    config   none

    tls on (expected): TLS handshakes, in batches of eight where the CPU can (RSA, ECDSA, ECDHE)
      + on by default
      + AVX-512 IFMA is usable on this [CPU]
      + server is dynamically linked with glibc
      + server uses [PLACE]/libssl.so.3 (OpenSSL 3.0.99)
      + server has an event loop: its first handshakes are watched, and batched once it comes back for them
      + the library is [PLACE]/libhasten_tls.so

    gzip standby: zlib's compression and decompression by faster engines
      + on by default
      + any x86-64 CPU will do; this one makes it faster with [FEATURES]
      + server is dynamically linked with glibc
      ~ server does not link libz.so.1: the library stays idle until server, or a program that it starts, loads it
      + the library is [PLACE]/libhasten_gzip.so

    node standby: start-up from a cache of resolved and compiled modules, garbage collections recorded on request
      + on by default
      + its cache is in [PLACE]/home/.cache/hasten/node, 256 MiB at most
      ~ server is not Node.js: the plugin waits in NODE_OPTIONS for one that server starts
      + the plugin is [PLACE]/node/register.js

    the same by hand:
    "#);
    // Nothing else, so that it can be piped.
    insta::assert_snapshot!(place.stdout(&assert), @r#"LD_PRELOAD=[PLACE]/libhasten_tls.so:[PLACE]/libhasten_gzip.so NODE_OPTIONS='--require [PLACE]/node/register.js' ./server 7 'two words' "it's""#);
}

#[test]
fn the_command_line_that_dry_run_prints_does_the_same() {
    if !has_ifma() {
        return;
    }
    let place = Place::new();
    let output = place.hasten(&["run", "-n", "--", "./server", "3"]).output().unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    let line = line.trim_end();
    let output = place.hasten(&["run", "-q", "--", "sh", "-c", line]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "./server loaded=yes handshake=79\n");
}

#[test]
fn programs_started_by_the_command_inherit_the_library() {
    if !has_ifma() {
        return;
    }
    let place = Place::new();
    let assert = place.run(&["run", "--", "dash", "-c", "./server; true"]).success();
    assert_eq!(place.stdout(&assert), "./server loaded=yes handshake=79\n");
    insta::assert_snapshot!(place.stderr(&assert), @"
    hasten: tls on standby: dash does not link libssl: the library stays idle until dash, or a program that it starts, loads it, and looks then whether its handshakes can wait
    hasten: gzip on standby: dash does not link libz.so.1: the library stays idle until dash, or a program that it starts, loads it
    hasten: node on standby: dash is not Node.js: the plugin waits in NODE_OPTIONS for one that dash starts
    ");
}

#[test]
fn a_script_is_judged_by_its_interpreter() {
    if !has_ifma() {
        return;
    }
    let place = Place::new();
    place.write("start.sh", "#!/bin/sh\nexec ./server 4\n");
    std::fs::set_permissions(place.path("start.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    let assert = place.run(&["run", "--", "./start.sh"]).code(4);
    assert_eq!(place.stdout(&assert), "./server loaded=yes handshake=79\n");
    assert!(place.stderr(&assert).contains("tls on standby: "));
}

#[test]
fn without_ifma_and_adx_tls_is_not_preloaded_and_the_reason_is_given() {
    let place = Place::new();
    let command = |arguments: &[&str]| {
        let mut command = place.hasten(arguments);
        command.env("HASTEN_CPU_DISABLE_IFMA", "1").env("HASTEN_CPU_DISABLE_ADX", "1");
        assert_cmd::Command::from_std(command).assert()
    };
    let assert = command(&["run", "--", "./server"]).success();
    assert_eq!(place.stdout(&assert), "./server loaded=no handshake=79\n");
    insta::assert_snapshot!(place.stderr(&assert), @r#"
    hasten: tls off: HASTEN_CPU_DISABLE_IFMA hides AVX-512 IFMA; and for operations one at a time, HASTEN_CPU_DISABLE_ADX hides ADX
      fix: unset HASTEN_CPU_DISABLE_ADX
    hasten: gzip on standby: server does not link libz.so.1: the library stays idle until server, or a program that it starts, loads it
    hasten: node on standby: server is not Node.js: the plugin waits in NODE_OPTIONS for one that server starts
    "#);
    let assert = command(&["run", "--strict", "--without", "gzip,node", "--", "./server"]).code(1);
    assert_eq!(place.stdout(&assert), "");
    assert!(place.stderr(&assert).contains("hasten: running server as it is"));
    assert!(place.stderr(&assert).contains("--strict forbids"), "{}", place.stderr(&assert));
}

#[test]
fn without_ifma_operations_are_done_one_at_a_time() {
    if !has_adx() {
        return;
    }
    let place = Place::new();
    let mut command = place.hasten(&["run", "--only", "tls", "--", "./server"]);
    command.env("HASTEN_CPU_DISABLE_IFMA", "1");
    let assert = assert_cmd::Command::from_std(command).assert().success();
    assert_eq!(place.stdout(&assert), "./server loaded=yes handshake=79\n");
    let mut command = place.hasten(&["check", "./server"]);
    let output = command.env("HASTEN_CPU_DISABLE_IFMA", "1").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let why = "+ HASTEN_CPU_DISABLE_IFMA hides AVX-512 IFMA: ECDSA and key exchange are done one at a time, RSA by OpenSSL";
    assert!(text.contains(why), "{text}");
}

#[test]
fn the_kill_switch_needs_no_other_change() {
    let place = Place::new();
    for value in ["tls", "all", "1", "gzip,tls", "ALL", "TLS,GZIP", "gzip tls"] {
        let mut command = place.hasten(&["run", "--only", "tls", "--", "./server"]);
        let output = command.env("HASTEN_DISABLE", value).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "./server loaded=no handshake=79\n", "{value}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("HASTEN_DISABLE"));
    }
}

#[test]
fn a_misspelt_kill_switch_does_not_fail_in_silence() {
    let place = Place::new();
    let output = place.hasten(&["run", "-q", "--", "true"]).env("HASTEN_DISABLE", "tsl").output().unwrap();
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "hasten: warning: HASTEN_DISABLE names no accelerator `tsl`; did you mean `tls`?\n"
    );
}

#[test]
fn a_misspelt_variable_is_pointed_out() {
    let place = Place::new();
    let output = place
        .hasten(&["run", "-q", "--", "true"])
        .env("HASTEN_DISBALE", "tls")
        .env("HASTEN_OF_MY_OWN", "1")
        .output();
    let text = String::from_utf8(output.unwrap().stderr).unwrap();
    assert_eq!(text, "hasten: warning: nothing reads HASTEN_DISBALE; did you mean HASTEN_DISABLE?\n");
}

#[test]
fn empty_variables_count_as_unset() {
    let place = Place::new();
    let mut command = place.hasten(&["run", "--", "./server"]);
    for name in ["ONLY", "WITHOUT", "STRICT", "CONFIG", "DISABLE", "TLS_BREAK_EVEN", "CPU_DISABLE_IFMA"] {
        command.env(format!("HASTEN_{name}"), "");
    }
    let output = command.output().unwrap();
    let loaded = if has_adx() { "yes" } else { "no" };
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        text,
        format!("./server loaded={loaded} handshake=79\n"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn quiet_is_silent() {
    let place = Place::new();
    place.run(&["run", "--quiet", "--", "true"]).success().stdout("").stderr("");
}

#[test]
fn without_and_only_decide() {
    let place = Place::new();
    let assert = place.run(&["run", "--without", "tls", "--", "./server"]).success();
    assert_eq!(place.stdout(&assert), "./server loaded=no handshake=79\n");
    assert!(place.stderr(&assert).contains("tls off: --without leaves it out"));
    let assert = place.run(&["run", "--only", "tsl", "--", "./server"]).code(2);
    assert!(place.stderr(&assert).contains("did you mean `tls`?"), "{}", place.stderr(&assert));
}

#[test]
fn what_is_preloaded_already_stays_in_front() {
    if !has_ifma() {
        return;
    }
    let place = Place::new();
    let other = place.cc("libother.so", "int other;", &["-shared", "-fPIC"]);
    let output = place
        .hasten(&["run", "-q", "--", "printenv", "LD_PRELOAD"])
        .env("LD_PRELOAD", &other)
        .output()
        .unwrap();
    let expected = "[PLACE]/libother.so:[PLACE]/libhasten_tls.so:[PLACE]/libhasten_gzip.so\n";
    assert_eq!(place.normalise(&output.stdout), expected);
}

#[test]
fn run_inside_run_means_what_the_inner_one_says() {
    let place = Place::new();
    let inner = [support::HASTEN, "run", "-q", "--without", "tls,gzip", "--", "./server"];
    let assert = place.run(&[&["run", "-q", "--"], &inner[..]].concat()).success();
    // The constructor ran in the inner hasten itself, so the variable is inherited; the library is not.
    let environment = [support::HASTEN, "run", "-q", "--without", "tls,gzip", "--", "printenv", "LD_PRELOAD"];
    assert!(place.stdout(&assert).starts_with("./server"));
    place.run(&[&["run", "-q", "--"], &environment[..]].concat()).code(1).stdout("");
}

#[test]
fn programs_that_cannot_be_preloaded_run_as_they_are() {
    let place = Place::new();
    place.cc("static", "int main(void){return 5;}", &["-static"]);
    let assert = place.run(&["run", "--", "./static"]).code(5);
    insta::assert_snapshot!(place.stderr(&assert).replace(" AVX-512 IFMA", ""), @r#"
    hasten: tls off: static is statically linked: there is no loader to preload anything
      fix: use a dynamically linked build; if static only starts the server, put hasten behind it: `static … hasten run -- SERVER`
    hasten: gzip off: static is statically linked: there is no loader to preload anything
    hasten: node on standby: static is not Node.js: the plugin waits in NODE_OPTIONS for one that static starts
    "#);
    let assert = place.run(&["run", "--without", "node", "--", "./static"]).code(5);
    assert!(place.stderr(&assert).ends_with("hasten: running static as it is\n"));
    place.run(&["run", "--strict", "--", "./static"]).code(1);
}

/// It has no loader, but what it starts has one.
#[test]
fn what_starts_envoy_hands_the_library_on() {
    let place = Place::new();
    let source =
        "#include <stdio.h>\n#include <stdlib.h>\nint main(void){puts(getenv(\"LD_PRELOAD\"));return 0;}";
    place.cc("func-e", source, &["-static"]);
    let assert = place.run(&["run", "--without", "node", "--", "./func-e"]).code(0);
    assert_eq!(place.stdout(&assert), "[PLACE]/libhasten_envoy.so\n");
    insta::assert_snapshot!(
        place.stderr(&assert),
        @"hasten: envoy on standby: func-e is not Envoy: the library waits for one that func-e starts"
    );
}

#[test]
fn a_program_with_openssl_inside_is_left_alone() {
    let place = Place::new();
    let source = "int SSL_do_handshake(void){return 0;} int main(void){return SSL_do_handshake();}";
    place.cc("fat", source, &["-rdynamic"]);
    let assert = place.run(&["run", "--dry-run", "--", "./fat"]).success();
    assert!(place.stderr(&assert).contains("carries its own OpenSSL inside"), "{}", place.stderr(&assert));
}

#[test]
fn another_openssl_is_left_alone() {
    let place = Place::new();
    place.cc(
        "libssl.so.1.1",
        "int SSL_new(void){return 0;}",
        &["-shared", "-fPIC", "-Wl,-soname,libssl.so.1.1"],
    );
    let source = "int SSL_new(void); int main(void){return SSL_new();}";
    place.cc("old", source, &["@/libssl.so.1.1", "-Wl,-rpath,@"]);
    let assert = place.run(&["run", "--dry-run", "--", "./old"]).success();
    assert!(
        place
            .stderr(&assert)
            .contains("libssl.so.1.1 (version unknown); only OpenSSL 3.0 to 3.6 or 4.0 are known")
    );
}

#[test]
fn a_musl_program_gets_the_libraries_for_musl_or_none() {
    let place = Place::new();
    let source = place.write("main.c", "int main(void){return 6;}");
    let built =
        std::process::Command::new("musl-gcc").arg(source).arg("-o").arg(place.path("musl-program")).status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: musl-gcc is not installed (apt-get install musl-tools)");
        return;
    }
    let assert = place.run(&["run", "--", "./musl-program"]).code(6);
    let said = place.stderr(&assert);
    assert!(said.contains("musl/libhasten_gzip.so is not in"), "{said}");
    std::fs::create_dir(place.path("musl")).unwrap();
    for library in ["libhasten_tls.so", "libhasten_gzip.so"] {
        place.write(&format!("musl/{library}"), "");
    }
    let assert = place.run(&["run", "--dry-run", "--", "./musl-program"]).success();
    let said = place.stdout(&assert);
    assert!(
        said.contains("LD_PRELOAD=[PLACE]/musl/libhasten_tls.so:[PLACE]/musl/libhasten_gzip.so"),
        "{said}"
    );
    // By the shim, which is above them, where there is one.
    place.write("libhasten.so", "");
    let assert = place.run(&["run", "--dry-run", "--", "./musl-program"]).success();
    let said = place.stdout(&assert);
    assert!(said.contains("LD_PRELOAD=[PLACE]/libhasten.so HASTEN_PRELOAD='tls,gzip'"), "{said}");
}

#[test]
fn a_set_user_id_program_is_left_alone() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let program = place.cc("privileged", "int main(void){return 0;}", &[]);
    chown(&program, Some(65534), None).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    let assert = place.run(&["run", "--dry-run", "--", "./privileged"]).success();
    assert!(
        place.stderr(&assert).contains("another user's rights (set-user-ID)"),
        "{}",
        place.stderr(&assert)
    );
    // For the file's owner the same bit changes nothing, so nothing is refused.
    chown(&program, Some(0), None).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    let assert = place.run(&["run", "--dry-run", "--", "./privileged"]).success();
    assert!(!place.stderr(&assert).contains("set-user-ID"), "{}", place.stderr(&assert));
}

#[test]
fn what_cannot_be_started_is_reported_as_a_shell_would() {
    let place = Place::new();
    place.write("data", "not a program");
    let assert = place.run(&["run", "--", "./absent"]).code(127);
    assert!(place.stderr(&assert).starts_with("hasten: cannot find `./absent`"), "{}", place.stderr(&assert));
    let assert = place.run(&["run", "--", "./data"]).code(126);
    assert!(place.stderr(&assert).contains("chmod +x"), "{}", place.stderr(&assert));
    let assert = place.run(&["run", "--", "no-such-command"]).code(127);
    assert!(place.stderr(&assert).contains("in PATH"), "{}", place.stderr(&assert));
    place.run(&["run"]).code(2);
}

/// A misspelt option used to be taken for the command: "cannot find `--olny`".
#[test]
fn a_misspelt_option_is_no_command() {
    let place = Place::new();
    for (given, word, meant) in [
        (&["--olny", "tls"][..], "--olny", "--only"),
        (&["--olny=tls"], "--olny", "--only"),
        (&["--dryrun"], "--dryrun", "--dry-run"),
        (&["--dry_run"], "--dry_run", "--dry-run"),
        (&["--with-out", "gzip"], "--with-out", "--without"),
        (&["--stric"], "--stric", "--strict"),
        (&["--verfiy"], "--verfiy", "--verify"),
        (&["--conf", "x.toml"], "--conf", "--config"),
        (&["-strict"], "-strict", "--strict"),
        (&["-dry-run"], "-dry-run", "--dry-run"),
        (&["-quiet"], "-quiet", "--quiet"),
        (&["-only=tls"], "-only=tls", "--only"),
    ] {
        for command in ["run", "tune"] {
            if command == "tune" && !["--only", "--without"].contains(&meant) {
                continue;
            }
            let words = [&[command], given, &["--", "./server"]].concat();
            let said = place.stderr(&place.run(&words).code(2).stdout(""));
            assert!(said.contains(&format!("unexpected argument '{word}' found")), "{words:?}: {said}");
            assert!(said.contains(&format!("a similar argument exists: '{meant}'")), "{words:?}: {said}");
            assert!(!said.contains("as a value"), "{words:?}: {said}");
        }
    }
    let said = place.stderr(&place.run(&["run", "--xyzzy", "--", "./server"]).code(2).stdout(""));
    assert!(said.contains("unexpected argument '--xyzzy' found") && !said.contains("similar"), "{said}");
}

#[test]
fn what_belongs_to_the_command_stays_its_own() {
    let place = Place::new();
    let echo = |words: &[&str]| {
        let assert = place.run(&[&["run", "-q"], words].concat()).success();
        String::from_utf8(assert.get_output().stdout.clone()).unwrap()
    };
    assert_eq!(echo(&["printf", "%s.", "--olny", "-x", "--dry-run"]), "--olny.-x.--dry-run.");
    assert_eq!(echo(&["--", "printf", "%s.", "-n", "--", "--strict"]), "-n.--.--strict.");
    place.cc("-program", "int main(void) { return 5; }", &[]);
    let mut command = place.hasten(&["run", "-q", "--", "-program"]);
    assert_eq!(command.env("PATH", place.path("")).status().unwrap().code(), Some(5));
}

/// A shell would have read it as a script.
#[test]
fn a_program_of_another_machine_is_refused_and_not_given_to_a_shell() {
    let place = Place::new();
    let mut bytes = std::fs::read(place.path("server")).unwrap();
    bytes[18] = 183;
    std::fs::write(place.path("foreign"), &bytes).unwrap();
    std::fs::set_permissions(place.path("foreign"), PermissionsExt::from_mode(0o755)).unwrap();
    let said = place.stderr(&place.run(&["run", "--", "./foreign"]).code(126).stdout(""));
    insta::assert_snapshot!(said, @r"
    hasten: cannot execute [PLACE]/foreign: it is an aarch64 program, and this machine is x86-64
      fix: use the amd64 build
    ");
    let said = place.stdout(&place.run(&["check", "--", "./foreign"]).success());
    assert!(said.contains("unknown: it is an aarch64 program"), "{said}");
}

#[test]
fn a_program_that_is_cut_off_is_refused() {
    let place = Place::new();
    // As a copy onto a full disk leaves it: with part of its header, without its segments, and without its end.
    let page = "static char filler[1 << 16] = {1}; int main(void) { return filler[4]; }";
    let whole = std::fs::read(place.cc("whole", page, &[])).unwrap();
    for length in [4, 10, 40, 63, 100, 600, 5000, 20_000] {
        std::fs::write(place.path("part"), &whole[..length]).unwrap();
        std::fs::set_permissions(place.path("part"), PermissionsExt::from_mode(0o755)).unwrap();
        let said = place.stderr(&place.run(&["run", "--", "./part"]).code(126).stdout(""));
        let expected =
            format!("hasten: cannot execute [PLACE]/part: it is cut off: it has {length} bytes of ");
        assert!(said.starts_with(&expected), "{said}");
        assert!(said.ends_with("  fix: copy, download or install [PLACE]/part again\n"), "{said}");
        assert_eq!(said.lines().count(), 2, "{said}");
    }
    place.run(&["run", "--", "./whole"]).success();
}

#[test]
fn a_script_is_named_with_what_is_wrong_in_its_first_line() {
    let place = Place::new();
    let script = |text: &str| {
        std::fs::set_permissions(place.write("script", text), PermissionsExt::from_mode(0o755)).unwrap();
        place.stderr(&place.run(&["run", "--", "./script"]).code(126).stdout(""))
    };
    insta::assert_snapshot!(script("#!/opt/nodejs/bin/node\n"), @r"
    hasten: cannot execute ./script: its first line names `/opt/nodejs/bin/node`, which does not exist
      fix: install /opt/nodejs/bin/node, or correct the first line of ./script
    ");
    let said = script("#!/usr/bin/env no-such-node\n");
    assert!(
        said.contains("cannot execute ./script: its first line names `no-such-node`, which is not in PATH ("),
        "{said}"
    );
    insta::assert_snapshot!(script("#!/bin/sh\r\n"), @r"
    hasten: cannot execute ./script: its first line names `/bin/sh\r`, which does not exist
      fix: take the carriage returns out: `sed -i 's/\r$//' ./script`
    ");
}

#[test]
fn a_directory_for_libraries_that_has_none_is_said_to_be_ignored() {
    let place = Place::new();
    let said = |directory: &str| {
        let mut command = place.hasten_alone(&["run", "--", "./server"]);
        for library in ["libhasten_tls.so", "libhasten_gzip.so"] {
            assert!(place.path(library).exists());
        }
        // Beside the command, where it looks next.
        place.normalise(&command.env("HASTEN_LIBDIR", directory).output().unwrap().stderr)
    };
    let warning = "hasten: warning: HASTEN_LIBDIR=/nope is no directory; what is used is in [PLACE]\n";
    assert!(said("/nope").contains(warning), "{}", said("/nope"));
    let mut check = place.hasten_alone(&["check", "--", "./server"]);
    let answer = place.normalise(&check.env("HASTEN_LIBDIR", "/nope").output().unwrap().stdout);
    let reason = "the library is [PLACE]/libhasten_gzip.so, which is not in HASTEN_LIBDIR (/nope)";
    assert!(answer.contains(reason), "{answer}");
    std::fs::create_dir_all(place.path("empty")).unwrap();
    let text = said("empty");
    assert!(text.contains("warning: HASTEN_LIBDIR=empty has no lib"), "{text}");
    assert!(!said(".").contains("warning"), "{}", said("."));
}

#[test]
fn settings_come_from_flags_then_environment_then_file() {
    if !has_ifma() {
        return;
    }
    let place = Place::new();
    let file = "[run]\nwithout = ['tls']\n[tls.break_even]\nrsa-2048-sign = 5\n";
    place.write("hasten.toml", file);
    let server = |arguments: &[&str], only: &str| {
        let mut command = place.hasten(
            &[&["run", "-q"], arguments, &["--", "sh", "-c", "./server; printenv HASTEN_TLS_BREAK_EVEN"]]
                .concat(),
        );
        if !only.is_empty() {
            command.env("HASTEN_ONLY", only);
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(server(&[], ""), "./server loaded=no handshake=79\n");
    let on = "./server loaded=yes handshake=79\nrsa-2048-sign:5\n";
    assert_eq!(server(&[], "tls"), on, "the environment wins over the file");
    assert_eq!(server(&["--only", "tls"], ""), on, "a flag wins over the file");
    assert_eq!(server(&["--without", "tls"], "tls"), "./server loaded=no handshake=79\n");
    place.write("other.toml", "");
    assert_eq!(server(&["--config", "other.toml"], ""), "./server loaded=yes handshake=79\n");
}

#[test]
fn a_wrong_configuration_starts_nothing() {
    let place = Place::new();
    place.write("hasten.toml", "[tls]\nbreakeven = 3\n");
    let assert = place.run(&["run", "--", "./server"]).code(2).stdout("");
    insta::assert_snapshot!(place.stderr(&assert), @r#"
    hasten: hasten.toml:2: unknown key `breakeven` in [tls]
      fix: did you mean `break_even`?
    "#);
    let output = place
        .hasten(&["run", "--config", "/dev/null", "--", "./server"])
        .env("HASTEN_TLS_BREAK_EVEN", "p-256-sgn:1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(place.normalise(&output.stderr), @r#"
    hasten: HASTEN_TLS_BREAK_EVEN: unknown operation `p-256-sgn`
      fix: did you mean `p-256-sign`?
    "#);
}

#[test]
fn a_switch_of_the_environment_is_yes_or_no_and_nothing_else() {
    let place = Place::new();
    let with = |variable: &str, value: &str| {
        let output = place.hasten(&["run", "--", "true"]).env(variable, value).output().unwrap();
        (output.status.code(), place.normalise(&output.stderr))
    };
    for value in ["1", "true", "YES", "On"] {
        assert_eq!(with("HASTEN_QUIET", value), (Some(0), String::new()), "{value}");
    }
    for value in ["0", "False", "no", "OFF", ""] {
        let (code, said) = with("HASTEN_QUIET", value);
        assert!(code == Some(0) && !said.is_empty(), "{value}: {said}");
    }
    for (variable, value) in
        [("HASTEN_STRICT", "maybe"), ("HASTEN_QUIET", "2"), ("HASTEN_STRICT", "yes please")]
    {
        let (code, said) = with(variable, value);
        assert_eq!(code, Some(2), "{said}");
        assert!(
            said.contains(&format!("{variable}=`{value}` says neither yes nor no; write 1, true")),
            "{said}"
        );
    }
}

#[test]
fn a_list_that_names_nothing_is_refused_where_it_was_typed() {
    let place = Place::new();
    for arguments in
        [&["run", "--only=", "--", "true"][..], &["run", "--only", "", "--", "true"], &["check", "--only="]]
    {
        let said = place.stderr(&place.run(arguments).code(2));
        assert!(said.contains("--only names nothing"), "{arguments:?}: {said}");
    }
    // An empty variable counts as unset, and the command's own options are its own.
    let mut command = place.hasten(&["run", "-q", "--", "echo", "--only="]);
    let output = command.env("HASTEN_ONLY", "").output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"--only=\n"[..]), "{output:?}");
}

#[test]
fn a_directory_is_said_to_be_one() {
    let place = Place::new();
    let said = place.stderr(&place.run(&["run", "--", "./node"]).code(126));
    assert!(said.contains("cannot execute ./node: it is a directory\n  fix: name a program in it"), "{said}");
    assert!(!said.contains("chmod"), "{said}");
}

/// As `hasten run -- echo hi` where OpenSSL is of an unknown series.
#[test]
fn nothing_is_said_of_an_openssl_that_the_program_does_not_link() {
    let place = Place::new();
    place.add_openssl("3.7.1");
    place.cc(
        "plain",
        "int puts(const char *); int main(void) { puts(\"hi\"); return 0; }",
        &["-Wl,-rpath,@"],
    );
    let assert = place.run(&["run", "--", "./plain"]).success();
    assert_eq!(place.stdout(&assert), "hi\n");
    assert!(!place.stderr(&assert).contains("tls"), "{}", place.stderr(&assert));
    let plan = place.stderr(&place.run(&["run", "--dry-run", "--", "./plain"]).success());
    assert!(plan.contains("plain does not link libssl, and would load"), "{plan}");
}
