//! The command under test, and a place with a preload library and small programs for it.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::assert::Assert;
use hasten_probe::{Feature, Probe};

pub(crate) const HASTEN: &str = env!("CARGO_BIN_EXE_hasten");

/// A library with a hook table; programs can detect it by the variable that its constructor sets.
const PRELOAD: &str = r#"
    #include <stdlib.h>
    __attribute__((section(".hasten.hooks"), used)) static const char table[] =
        "SSL_do_handshake\tSsl\trequired\t Suspends a handshake.\n"
        "EVP_DigestSign\tCrypto\trequired\t Queues a signature.\n"
        "SSL_read_early_data\tSsl\toptional\t Early data.\n";
    __attribute__((constructor)) static void loaded(void) { setenv("LOADED", "yes", 1); }
"#;

/// The same for compression; nothing here links zlib, unless a test builds it.
const PRELOAD_GZIP: &str = r#"
    #include <stdlib.h>
    __attribute__((section(".hasten.hooks"), used)) static const char table[] =
        "deflate\tZ\trequired\t Compresses.\n"
        "inflate\tZ\trequired\t Decompresses.\n";
    __attribute__((constructor)) static void loaded(void) { setenv("LOADED_GZIP", "yes", 1); }
"#;

/// A plugin that announces that it was loaded.
const PLUGIN: &str = "process.env.LOADED_NODE = Number(process.env.LOADED_NODE ?? 0) + 1;";

/// Enough of OpenSSL to be recognised: the names, an edge between the two libraries, a version text.
const LIBCRYPTO: &str = r#"
    const char version_text[] = "OpenSSL VERSION 1 Jan 2030";
    int EVP_DigestSign(void) { return version_text[0]; }
"#;
const LIBSSL: &str = r#"
    int EVP_DigestSign(void);
    int SSL_do_handshake(void) { return EVP_DigestSign(); }
    int SSL_accept(void) { return EVP_DigestSign(); }
    int SSL_set_fd(void) { return 1; }
"#;
const SERVER: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/epoll.h>
    int SSL_do_handshake(void), SSL_set_fd(void);
    int main(int argc, char **argv) {
        const char *loaded = getenv("LOADED");
        if (!SSL_set_fd()) epoll_wait(0, NULL, 0, 0);
        printf("%s loaded=%s handshake=%d\n", argv[0], loaded ? loaded : "no", SSL_do_handshake());
        return argc > 1 ? atoi(argv[1]) : 0;
    }
"#;

pub(crate) struct Place(tempfile::TempDir);

impl Place {
    /// A working directory with the preload libraries and `server`, which links the look-alike of OpenSSL.
    pub(crate) fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a temporary directory"));
        place.cc("libhasten_tls.so", PRELOAD, &["-shared", "-fPIC"]);
        place.cc("libhasten_gzip.so", PRELOAD_GZIP, &["-shared", "-fPIC"]);
        place.cc("libhasten_envoy.so", "", &["-shared", "-fPIC"]);
        place.add_openssl("3.0.99");
        let arguments = ["-shared", "-fPIC", "-Wl,-soname,libssl.so.3", "@/libcrypto.so.3", "-Wl,-rpath,@"];
        place.cc("libssl.so.3", LIBSSL, &arguments);
        place.cc("server", SERVER, &["@/libssl.so.3", "-Wl,-rpath,@", "-Wl,-rpath-link,@"]);
        std::fs::create_dir(place.path("node")).expect("writable");
        std::fs::create_dir(place.path("home")).expect("writable");
        place.write("node/register.js", PLUGIN);
        place.write("node/package.json", r#"{ "name": "hasten" }"#);
        place
    }

    /// The look-alike of libcrypto, claiming this version.
    pub(crate) fn add_openssl(&self, version: &str) {
        let source = LIBCRYPTO.replace("VERSION", version);
        self.cc("libcrypto.so.3", &source, &["-shared", "-fPIC", "-Wl,-soname,libcrypto.so.3"]);
    }

    /// A program that links the look-alike of OpenSSL and contains calls of these functions that never run.
    pub(crate) fn add_caller(&self, name: &str, functions: &[&str]) {
        let called: String = functions.iter().map(|function| format!("{function}(0, 0, 0, 0);")).collect();
        let source = format!("int main(int n) {{ if (n > 9) {{ {called} }} puts(\"ran\"); return 0; }}");
        self.cc(name, &source, &["-w", "@/libssl.so.3", "-Wl,-rpath,@", "-Wl,-rpath-link,@"]);
    }

    /// `packer`, which links a look-alike of zlib and says whether compression is preloaded.
    pub(crate) fn add_packer(&self) {
        let zlib = r#"
            const char copyright[] = " deflate 1.2.99 Copyright 1995-2030 ";
            int deflate(void) { return copyright[1]; }
        "#;
        self.cc("libz.so.1", zlib, &["-shared", "-fPIC", "-Wl,-soname,libz.so.1"]);
        let packer = r#"
            #include <stdio.h>
            #include <stdlib.h>
            int deflate(void);
            int main(void) {
                const char *loaded = getenv("LOADED_GZIP");
                printf("loaded=%s deflate=%d\n", loaded ? loaded : "no", deflate());
            }
        "#;
        self.cc("packer", packer, &["@/libz.so.1", "-Wl,-rpath,@"]);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("writable");
        path
    }

    /// Compiles C; `@` in an argument stands for this directory.
    pub(crate) fn cc(&self, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
        let (file, output) = (self.write("source.c", source), self.path(name));
        let directory = self.0.path().to_str().expect("UTF-8");
        let status = Command::new("cc")
            .args(["-x", "c"])
            .arg(file)
            .args(["-x", "none", "-o"])
            .arg(&output)
            .args(arguments.iter().map(|argument| argument.replace('@', directory)))
            .status()
            .expect("cc runs (apt-get install gcc)");
        assert!(status.success(), "cc {name}");
        output
    }

    /// `hasten` in this place, without any part of the caller's environment that could influence it.
    pub(crate) fn hasten(&self, arguments: &[&str]) -> Command {
        self.command(HASTEN.as_ref(), arguments)
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let known = name.to_string_lossy();
            let others = ["LD_PRELOAD", "NO_COLOR", "COLUMNS", "NODE_OPTIONS", "XDG_CACHE_HOME"];
            if known.starts_with("HASTEN_") || others.contains(&&*known) {
                command.env_remove(&name);
            }
        }
        command.args(arguments).current_dir(self.0.path());
        command.env("HASTEN_LIBDIR", self.0.path()).env("HOME", self.path("home"));
        command
    }

    /// The same command without a library of the build beside it. Another process makes the copy: in this one, a
    /// child of another test could keep it open for writing.
    pub(crate) fn hasten_alone(&self, arguments: &[&str]) -> Command {
        let alone = self.path("alone");
        let copied = Command::new("cp").arg(HASTEN).arg(&alone).status().expect("cp runs");
        assert!(copied.success(), "cp {HASTEN}");
        self.command(&alone, arguments)
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Assert {
        assert_cmd::Command::from_std(self.hasten(arguments)).assert()
    }

    /// Output with this place's path and other changeable parts replaced by names.
    pub(crate) fn normalise(&self, output: &[u8]) -> String {
        let text = String::from_utf8_lossy(output);
        let text = text.replace(self.0.path().to_str().expect("UTF-8"), "[PLACE]");
        let text = text.replace(&Probe::new().cpu().model, "[CPU]");
        let features = |line: &str| match line.split_once("makes it faster with ") {
            Some((before, _)) => format!("{before}makes it faster with [FEATURES]\n"),
            None => line.to_owned(),
        };
        text.split_inclusive('\n').map(features).collect()
    }

    pub(crate) fn stderr(&self, assert: &Assert) -> String {
        self.normalise(&assert.get_output().stderr)
    }

    pub(crate) fn stdout(&self, assert: &Assert) -> String {
        self.normalise(&assert.get_output().stdout)
    }
}

/// Whether this host's CPU can run the TLS engine for batches; prints a note if not.
pub(crate) fn has_ifma() -> bool {
    has(&Feature::MULTIBUFFER, "AVX-512 IFMA")
}

/// The same for single operations.
pub(crate) fn has_adx() -> bool {
    has(&Feature::SINGLE, "ADX or AVX2")
}

fn has(features: &[Feature], name: &str) -> bool {
    let cpu = Probe::new().cpu();
    let has = features.iter().all(|feature| cpu.has(*feature));
    if !has {
        println!("skipped: this CPU has no {name}");
    }
    has
}

pub(crate) fn is_root() -> bool {
    let root =
        Path::new("/proc/self").metadata().is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !root {
        println!("skipped: needs root");
    }
    root
}
