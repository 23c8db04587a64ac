//! Plans for TLS: what is promised to a program, by its imports and by what is known about it. The programs are small,
//! and link a look-alike of OpenSSL.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hasten_plan::{Config, Decision, Plan, Proof, Surroundings, Verdict, host_verdicts};
use hasten_probe::host::cpu::FeatureState;
use hasten_probe::program::Library;
use hasten_probe::{Cpu, Environment, Feature, Program};

const LIBSSL: &str = "int SSL_do_handshake() { return 1; } int SSL_accept() { return 1; } int SSL_connect() { return 1; } \
                      int SSL_set_fd() { return 1; } int SSL_set_bio() { return 1; }";
const LIBCRYPTO: &str = "const char version_text[] = \"OpenSSL VERSION 1 Jan 2030\"; int BIO_s_mem() { return 0; } \
                         int BIO_meth_new() { return 0; }";
const OPENSSL: [&str; 4] = ["@/libssl.so.3", "@/libcrypto.so.3", "-Wl,-rpath,@", "-Wl,-rpath-link,@"];

/// A directory in which C programs and libraries are built.
struct Workshop(tempfile::TempDir);

impl Workshop {
    fn new() -> Self {
        Self::with_openssl("3.0.19")
    }

    fn with_openssl(version: &str) -> Self {
        let workshop = Self(tempfile::tempdir().unwrap());
        workshop.library("libcrypto.so.3", &LIBCRYPTO.replace("VERSION", version), &[]);
        workshop.library("libssl.so.3", LIBSSL, &[]);
        std::fs::write(workshop.path("libhasten_tls.so"), "").unwrap();
        workshop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles `source`; `@` in an argument stands for this directory.
    fn cc(&self, name: &str, source: &str, arguments: &[&str]) {
        let file = self.path("source.c");
        std::fs::write(&file, source).unwrap();
        let directory = self.0.path().to_str().unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-w", "-x", "c"]).arg(&file).args(["-x", "none", "-o"]).arg(self.path(name));
        cc.args(arguments.iter().map(|argument| argument.replace('@', directory)));
        assert!(cc.status().expect("cc runs (apt-get install gcc)").success(), "cc {name}");
    }

    fn library(&self, name: &str, source: &str, arguments: &[&str]) {
        let soname = format!("-Wl,-soname,{name}");
        self.cc(name, source, &[&["-shared", "-fPIC", &soname, "-Wl,-rpath,@"], arguments].concat());
    }

    /// A program that links OpenSSL and calls these functions.
    fn caller(&self, name: &str, functions: &[&str], arguments: &[&str]) {
        self.cc(name, &calls("main", functions), &[arguments, &OPENSSL].concat());
    }

    /// A server that links AWS-LC, whose libraries have this suffix.
    fn link_aws_lc(&self, name: &str, suffix: &str, arguments: &[&str]) {
        let [ssl, crypto] = ["libssl", "libcrypto"].map(|library| format!("{library}{suffix}"));
        self.library(&crypto, &LIBCRYPTO.replace("OpenSSL VERSION", "AWS-LC 5.12.0\\0"), &[]);
        self.library(&ssl, LIBSSL, &[]);
        let libraries = [format!("@/{ssl}"), format!("@/{crypto}"), "-Wl,-rpath,@".to_owned()];
        let libraries: Vec<&str> = libraries.iter().map(String::as_str).collect();
        self.cc(
            name,
            &calls("main", &["SSL_accept", "SSL_set_fd", "epoll_wait"]),
            &[&libraries, arguments].concat(),
        );
    }

    fn verdict(&self, program: &str) -> Verdict {
        self.verdict_with(program, &[])
    }

    fn verdict_with(&self, program: &str, environment: &[(&str, PathBuf)]) -> Verdict {
        let program = Program::inspect(self.path(program).as_os_str(), &Environment::default()).unwrap();
        let library_directory = Some(self.0.path().to_owned());
        let environment = environment.iter().map(|(name, value)| ((*name).into(), value.into())).collect();
        let surroundings = Surroundings { library_directory, environment, ..Surroundings::default() };
        let plan = Plan::new(&cpu(), &program, &Config::default(), &surroundings);
        plan.verdict("tls").unwrap().clone()
    }

    /// Asserts the decision, the evidence behind it, and that one of the reasons contains `why`.
    #[track_caller]
    fn is(&self, program: &str, decision: Decision, proof: Option<Proof>, why: &str) {
        let verdict = self.verdict(program);
        assert!(verdict.reasons.iter().any(|reason| reason.text.contains(why)), "{verdict:#?}");
        assert_eq!((verdict.decision, verdict.proof), (decision, proof), "{verdict:#?}");
    }
}

/// C code of a function that calls these functions.
fn calls(name: &str, functions: &[&str]) -> String {
    let called: String = functions.iter().map(|function| format!("{function}(0, 0, 0, 0);")).collect();
    format!("int {name}(int n) {{ if (n > 9) {{ {called} }} return 0; }}")
}

/// A CPU with every feature.
fn cpu() -> Cpu {
    let state = |feature| FeatureState { feature, cpu: true, kernel: true, usable: true };
    Cpu { features: Feature::ALL.into_iter().map(state).collect(), ..Cpu::default() }
}

fn copy(workshop: &Workshop, from: &str, to: &str) {
    std::fs::copy(workshop.path(from), workshop.path(to)).unwrap();
}

#[test]
fn a_program_with_an_event_loop_is_expected_and_a_tested_one_is_proven() {
    let workshop = Workshop::new();
    workshop.caller("server", &["SSL_accept", "SSL_set_fd", "epoll_wait"], &[]);
    workshop.is("server", Decision::Apply, Some(Proof::Expected), "its first handshakes are watched");
    for name in ["nginx", "haproxy"] {
        copy(&workshop, "server", name);
        workshop.is(
            name,
            Decision::Apply,
            Some(Proof::Proven),
            "hasten's tests, and a public suite of tests",
        );
    }
}

/// Like the library in the process, which compares the exact name.
#[test]
fn a_program_with_a_longer_name_than_a_proven_one_is_expected() {
    let workshop = Workshop::new();
    for name in ["nginx-1.24", "haproxy2"] {
        workshop.caller(name, &["SSL_accept", "SSL_set_fd", "epoll_wait"], &[]);
        workshop.is(name, Decision::Apply, Some(Proof::Expected), "its first handshakes are watched");
    }
}

/// Like `openssl s_server`, and stunnel, whose libsystemd has a loop that is not the program's.
#[test]
fn a_program_without_an_event_loop_is_off_whatever_its_helpers_have() {
    let workshop = Workshop::new();
    workshop.caller("waits", &["SSL_accept", "SSL_set_fd", "select"], &[]);
    workshop.is("waits", Decision::Skip, None, "nothing in waits calls epoll_wait or epoll_pwait");
    workshop.library("libsystemd.so.0", &calls("sd_notify", &["epoll_wait"]), &[]);
    let needs = ["-Wl,--no-as-needed", "@/libsystemd.so.0"];
    workshop.caller("helped", &["SSL_accept", "SSL_set_fd", "poll"], &needs);
    workshop.is("helped", Decision::Skip, None, "nothing in helped calls epoll_wait");
}

/// Like memcached and hitch.
#[test]
fn the_event_loop_may_be_a_library() {
    let workshop = Workshop::new();
    workshop.library("libevent.so.2", &calls("event_loop", &["epoll_pwait"]), &[]);
    workshop.caller("looping", &["SSL_accept", "SSL_set_fd", "event_loop"], &["@/libevent.so.2"]);
    workshop.is("looping", Decision::Apply, Some(Proof::Expected), "has an event loop");
}

/// Like Debian's Node.js, whose libnode moves the bytes itself.
#[test]
fn a_program_that_passes_tls_through_memory_is_off() {
    let workshop = Workshop::new();
    let functions = ["SSL_do_handshake", "SSL_set_bio", "BIO_s_mem", "epoll_wait"];
    workshop.library("libworker.so", &calls("work", &functions), &OPENSSL);
    for name in ["engine", "node"] {
        let arguments = ["@/libworker.so", "-Wl,-rpath,@", "-Wl,-rpath-link,@"];
        workshop.cc(name, &calls("main", &["work"]), &arguments);
        workshop.is(name, Decision::Skip, None, &format!("{name} passes TLS through memory (BIO)"));
    }
}

/// Like puma, which Ruby runs: Ruby's name alone would say nothing.
#[test]
fn a_script_is_known_by_its_own_name() {
    let workshop = Workshop::new();
    for (name, decision) in [("puma", Decision::Skip), ("other", Decision::Standby)] {
        std::fs::write(workshop.path(name), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(workshop.path(name), PermissionsExt::from_mode(0o755)).unwrap();
        workshop.is(name, decision, None, "does not link libssl");
    }
    workshop.is("puma", Decision::Skip, None, "puma passes TLS through memory (BIO)");
}

#[test]
fn a_bio_of_its_own_may_read_from_anywhere_so_the_library_waits_and_sees() {
    let workshop = Workshop::new();
    workshop.caller("own", &["SSL_accept", "SSL_set_bio", "BIO_meth_new", "epoll_wait"], &[]);
    workshop.is("own", Decision::Standby, None, "own moves the bytes of TLS by a BIO of its own");
}

/// Like lighttpd with its mod_openssl, Apache with its mod_ssl, and every interpreter; also like curl.
#[test]
fn what_is_seen_only_after_the_start_is_on_standby() {
    let workshop = Workshop::new();
    workshop.cc("modular", &calls("main", &["dlopen", "epoll_wait"]), &[]);
    workshop.is("modular", Decision::Standby, None, "and looks then whether its handshakes can wait");
    workshop.caller("client", &["SSL_connect", "SSL_set_fd", "epoll_wait"], &[]);
    let why = "nothing that client loads at start calls SSL_do_handshake or SSL_accept";
    workshop.is("client", Decision::Standby, None, why);
}

#[test]
fn servers_that_are_known_to_wait_for_each_handshake_are_off() {
    let workshop = Workshop::new();
    workshop.caller("postgres", &["SSL_accept", "SSL_set_fd", "epoll_wait"], &[]);
    copy(&workshop, "postgres", "php-fpm8.2");
    for name in ["postgres", "php-fpm8.2"] {
        workshop.is(name, Decision::Skip, None, &format!("{name} waits for each handshake"));
    }
}

/// As in Debian 13 and later.
#[test]
fn every_series_that_was_read_is_on() {
    for version in ["3.0.19", "3.1.4", "3.2.6", "3.3.5", "3.4.3", "3.5.4", "3.6.3", "4.0.3"] {
        let workshop = Workshop::with_openssl(version);
        workshop.caller("nginx", &["SSL_do_handshake", "SSL_set_fd", "epoll_wait"], &[]);
        workshop.is("nginx", Decision::Apply, Some(Proof::Proven), &format!("(OpenSSL {version})"));
    }
}

/// Even for a proven program.
#[test]
fn another_series_of_openssl_is_off_and_the_needed_ones_are_named() {
    for version in ["3.7.0", "4.1.2"] {
        let workshop = Workshop::with_openssl(version);
        workshop.caller("nginx", &["SSL_do_handshake", "SSL_set_fd", "epoll_wait"], &[]);
        let why = format!("(OpenSSL {version}); only OpenSSL 3.0 to 3.6 or 4.0 are known");
        workshop.is("nginx", Decision::Skip, None, &why);
    }
}

/// Like HAProxy in Alpine, and in AWS's images: by the names of a plain build, of a package, or of OpenSSL itself.
#[test]
fn aws_lc_is_named_as_the_reason_whatever_its_libraries_are_called() {
    let workshop = Workshop::new();
    for suffix in [".so", "-awslc.so.1", ".so.3"] {
        workshop.link_aws_lc("haproxy", suffix, &[]);
        workshop.is("haproxy", Decision::Skip, None, "haproxy links AWS-LC 5.12.0, not OpenSSL");
    }
}

/// The program calls the one that it links itself.
#[test]
fn beside_another_library_the_programs_own_decides() {
    let workshop = Workshop::new();
    let calls_tls = calls("fetch", &["SSL_connect"]);
    workshop.library("libfetch.so", &calls_tls, &OPENSSL);
    workshop.link_aws_lc(
        "haproxy",
        "-awslc.so.1",
        &["-Wl,--no-as-needed", "@/libfetch.so", "-Wl,-rpath-link,@"],
    );
    workshop.is("haproxy", Decision::Skip, None, "haproxy links AWS-LC 5.12.0, not OpenSSL");

    let helper = ["-Wl,--no-as-needed", "@/libssl-awslc.so.1", "@/libcrypto-awslc.so.1"];
    workshop.library("libfetch.so", &calls_tls, &helper);
    let needs = ["-Wl,--no-as-needed", "@/libssl.so.3", "@/libfetch.so"];
    workshop.caller("nginx", &["SSL_do_handshake", "SSL_set_fd", "epoll_wait"], &needs);
    workshop.is("nginx", Decision::Apply, Some(Proof::Proven), "(OpenSSL 3.0.19)");
}

/// Like lighttpd with its mod_openssl of a later release: the module would load an OpenSSL that cannot be accelerated. A
/// shell may start a program that brings its own library.
#[test]
fn what_would_be_loaded_is_looked_at_before_a_standby_is_promised() {
    for (version, decision) in [("3.7.1", Decision::Skip), ("3.0.19", Decision::Standby)] {
        let workshop = Workshop::with_openssl(version);
        workshop.cc("modular", &calls("main", &["dlopen", "epoll_wait"]), &["-Wl,-rpath,@"]);
        copy(&workshop, "modular", "bash");
        let (server, shell) = match decision {
            Decision::Skip => ("and would load", "this system's own is OpenSSL 3.7.1"),
            _ => ("looks then whether its handshakes can wait", "looks then whether"),
        };
        workshop.is("modular", decision, None, server);
        workshop.is("bash", Decision::Standby, None, shell);
    }
    let workshop = Workshop::with_openssl("3.7.1");
    workshop.cc("modular", &calls("main", &["dlopen", "epoll_wait"]), &["-Wl,-rpath,@"]);
    let verdict = workshop.verdict("modular");
    let fix = verdict.reasons.iter().find_map(|reason| reason.fix.as_deref());
    assert!(fix.is_some_and(|fix| fix.contains("a build for OpenSSL 3")), "{verdict:#?}");
}

/// Like `echo` on a later release: its user did not ask for anything.
#[test]
fn a_program_that_does_not_link_openssl_is_left_out_without_a_word() {
    let workshop = Workshop::with_openssl("3.7.1");
    workshop.cc("modular", &calls("main", &["dlopen", "epoll_wait"]), &["-Wl,-rpath,@"]);
    let verdict = workshop.verdict("modular");
    assert_eq!((verdict.decision, verdict.concerns), (Decision::Skip, false), "{verdict:#?}");
    workshop.caller("nginx", &["SSL_do_handshake", "SSL_set_fd", "epoll_wait"], &[]);
    assert!(workshop.verdict("nginx").concerns);
}

#[test]
fn a_node_with_another_openssl_is_not_sent_to_a_build_that_is_off_as_well() {
    let workshop = Workshop::with_openssl("3.7.1");
    workshop.caller("node", &["SSL_do_handshake", "SSL_set_bio", "BIO_s_mem", "epoll_wait"], &[]);
    let verdict = workshop.verdict("node");
    let fix = verdict.reasons.iter().find_map(|reason| reason.fix.as_deref()).unwrap();
    assert!(fix.contains("in front of it") && !fix.contains("build"), "{verdict:#?}");
}

/// The verdict before any program is named.
#[test]
fn the_hosts_own_libssl_decides_for_the_host() {
    let workshop = Workshop::new();
    let host = |library: Option<&str>| {
        let library = library.map(|version| Library {
            name: "libssl.so.3".to_owned(),
            path: "/usr/lib/libssl.so.3".into(),
            needed_by: String::new(),
            version: Some(version.to_owned()),
        });
        let library_directory = Some(workshop.0.path().to_owned());
        let surroundings =
            Surroundings { library_directory, libssl: Some(library), ..Surroundings::default() };
        host_verdicts(&cpu(), &Config::default(), &surroundings).remove(0)
    };
    for (version, decision, why) in [
        (
            Some("OpenSSL 3.0.19"),
            Decision::Apply,
            "this host's libssl is /usr/lib/libssl.so.3 (OpenSSL 3.0.19)",
        ),
        (Some("OpenSSL 3.7.1"), Decision::Skip, "(OpenSSL 3.7.1); only OpenSSL 3.0 to 3.6 or 4.0 are known"),
        (None, Decision::Standby, "this host has no libssl.so.3"),
    ] {
        let verdict = host(version);
        assert_eq!(verdict.decision, decision, "{verdict:#?}");
        assert!(verdict.reasons.iter().any(|reason| reason.text.contains(why)), "{verdict:#?}");
    }
}

/// As with the FIPS module: the library looks at the first handshake, and leaves the work to the module.
#[test]
fn a_configuration_that_puts_another_provider_in_place_is_heeded() {
    let workshop = Workshop::new();
    workshop.caller("nginx", &["SSL_do_handshake", "SSL_set_fd", "epoll_wait", "BIO_s_mem"], &[]);
    let fips = "openssl_conf = init\n[init]\nproviders = list\n[list]\nfips = fips\n[fips]\nactivate = 1\n";
    let demanded = fips.replace("providers", "alg_section = demands\nproviders")
        + "[demands]\ndefault_properties = fips=yes\n";
    for (text, decision, why) in [
        ("", Decision::Apply, ""),
        (fips, Decision::Standby, "activates the provider `fips`"),
        (&demanded, Decision::Skip, "demands `default_properties = fips=yes`"),
    ] {
        std::fs::write(workshop.path("openssl.cnf"), text).unwrap();
        let verdict = workshop.verdict_with("nginx", &[("OPENSSL_CONF", workshop.path("openssl.cnf"))]);
        assert_eq!(verdict.decision, decision, "{verdict:#?}");
        assert!(verdict.reasons.iter().any(|reason| reason.text.contains(why)), "{verdict:#?}");
    }
}

/// Debian 12's programs, if they are installed.
#[test]
fn programs_of_the_distribution_are_what_they_are() {
    let workshop = Workshop::new();
    for (path, decision, proof) in [
        ("/usr/bin/openssl", Decision::Skip, None),
        ("/usr/sbin/lighttpd", Decision::Standby, None),
        ("/usr/bin/memcached", Decision::Apply, Some(Proof::Expected)),
        ("/usr/sbin/mosquitto", Decision::Apply, Some(Proof::Expected)),
        ("/usr/sbin/nginx", Decision::Apply, Some(Proof::Proven)),
        ("/usr/sbin/haproxy", Decision::Apply, Some(Proof::Proven)),
    ] {
        if Path::new(path).exists() {
            workshop.is(path, decision, proof, "dynamically linked with glibc");
        }
    }
}
