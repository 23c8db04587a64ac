//! `hasten gc` from its command line to its exit code: real traces, and other files.

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use support::HASTEN;

/// A folder with traces, and a host whose properties are all known.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        for (fixture, name) in [
            ("v20.trace-gc.txt", "before.log"),
            ("v20.trace-gc.semi64.txt", "after.log"),
            ("v22.trace-gc-verbose.txt", "verbose.log"),
        ] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/v8/tests/fixtures").join(fixture);
            fs::copy(path, desk.path(name)).unwrap();
        }
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &[u8]) {
        fs::write(self.path(name), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(HASTEN);
        // No release of Node, no terminal, no colour except where a test requests them.
        command.env_clear().env("PATH", "/usr/bin:/bin").env("COLUMNS", "100").env("HOME", self.0.path());
        command.current_dir(self.0.path()).arg("gc").args(arguments).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[&["--json"], arguments].concat())).unwrap()
    }

    /// The error: nothing on standard output, what and why and a fix on standard error.
    fn error(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{text}");
        assert!(text.starts_with("hasten: ") && text.contains("\n  fix: "), "{text}");
        text
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Without the advice, whose words are the model's.
fn facts(text: &str) -> &str {
    text.split("\n1. ").next().unwrap()
}

#[test]
fn one_trace_on_one_screen() {
    let text = Desk::new().ok(&["before.log"]);
    insta::assert_snapshot!(facts(&text));
    assert!(text.contains("\n1. "), "no advice: {text}");
}

#[test]
fn two_traces_side_by_side() {
    insta::assert_snapshot!(facts(&Desk::new().ok(&["before.log", "after.log"])));
}

#[test]
fn a_narrow_terminal_is_enough() {
    let desk = Desk::new();
    for arguments in [&["before.log"][..], &["before.log", "after.log", "verbose.log"]] {
        let output = desk.command(arguments).env("COLUMNS", "72").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let too_long: Vec<_> = text.lines().filter(|line| line.chars().count() > 72).collect();
        // Commands are for pasting, and never broken into lines.
        let prose: Vec<_> = too_long
            .iter()
            .filter(|line| !line.contains("hasten ") && !line.contains("NODE_OPTIONS"))
            .collect();
        assert!(prose.is_empty(), "{prose:#?}");
    }
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let desk = Desk::new();
    let on_terminal = |variable: (&str, &str)| {
        let line = format!("{HASTEN} gc before.log");
        let script = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .current_dir(desk.0.path())
            .env("COLUMNS", "100")
            .env(variable.0, variable.1)
            .stdin(Stdio::null())
            .output();
        String::from_utf8(script.expect("script: `apt-get install bsdutils`").stdout).unwrap()
    };
    assert!(on_terminal(("TERM", "xterm")).contains("\x1b[1;31mCollections stop"));
    assert!(!on_terminal(("NO_COLOR", "1")).contains('\x1b'));
    assert!(!desk.ok(&["before.log"]).contains('\x1b'));
}

#[test]
fn json_holds_traces_comparison_and_advice() {
    let desk = Desk::new();
    let one = desk.json(&["before.log", "--memory-limit", "2G", "--node", "20.20.2"]);
    assert_eq!((&one["schema"], &one["hasten"]), (&1.into(), &env!("CARGO_PKG_VERSION").into()));
    assert_eq!(one["traces"][0]["source"], "before.log");
    assert_eq!(one["traces"][0]["isolates"][0]["pauses"]["count"], 71);
    assert!(one["comparison"].is_null());
    let advice = one["advice"].as_array().unwrap();
    assert!(!advice.is_empty());
    for one in advice {
        assert!(
            one["id"].is_string() && one["reason"].is_string() && one["node_options"].is_array(),
            "{one}"
        );
    }

    let two = desk.json(&["before.log", "after.log"]);
    assert_eq!(two["traces"].as_array().unwrap().len(), 2);
    let rows = two["comparison"]["rows"].as_array().unwrap();
    let scavenges = rows.iter().find(|row| row["id"] == "scavenges").unwrap();
    assert_eq!(scavenges["ratios"][0], 1.0);
    assert!(scavenges["ratios"][1].as_f64().unwrap() < 1.0, "{scavenges}");
}

#[test]
fn a_trace_is_the_same_from_a_file_a_pipe_and_a_packed_file() {
    let desk = Desk::new();
    let text = fs::read(desk.path("before.log")).unwrap();
    let gzip =
        Command::new("gzip").args(["--keep", "before.log"]).current_dir(desk.0.path()).status().unwrap();
    assert!(gzip.success());
    let plain = desk.json(&["before.log"]);
    let packed = desk.json(&["before.log.gz"]);
    let mut child =
        desk.command(&["--json", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let piped = child.wait_with_output().unwrap();
    let piped: Value = serde_json::from_slice(&piped.stdout).unwrap();
    assert_eq!(
        (&packed["traces"][0]["source"], &piped["traces"][0]["source"]),
        (&"before.log.gz".into(), &"-".into())
    );
    for other in [packed, piped] {
        assert_eq!(other["traces"][0]["isolates"], plain["traces"][0]["isolates"]);
    }
}

#[test]
fn the_page_goes_where_it_is_wanted_and_nowhere_else() {
    let desk = Desk::new();
    for (arguments, page) in [
        (&["before.log", "--html"][..], "hasten-gc.html"),
        (&["--html", "before.log"], "hasten-gc.html"),
        (&["before.log", "--html=one.html"], "one.html"),
        (&["before.log", "--html", "two.html"], "two.html"),
        (&["before.log", "after.log", "--html", "three.html", "--json"], "three.html"),
    ] {
        let _ = fs::remove_file(desk.path(page));
        let before = fs::read(desk.path("before.log")).unwrap();
        let output = desk.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("Page: /") && said.trim_end().ends_with(page), "{said}");
        let html = fs::read_to_string(desk.path(page)).unwrap();
        assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"), "{arguments:?}");
        assert_eq!(fs::read(desk.path("before.log")).unwrap(), before);
    }
    assert!(!desk.names().iter().any(|name| name.ends_with(".tmp")), "{:?}", desk.names());
}

#[test]
fn a_page_that_cannot_be_written_leaves_nothing_behind() {
    let desk = Desk::new();
    fs::create_dir(desk.path("folder.html")).unwrap();
    let before = desk.names();
    assert!(desk.error(&["before.log", "--html=folder.html"]).contains("cannot write folder.html"));
    assert!(desk.error(&["before.log", "--html=none/gc.html"]).contains("none/gc.html"));
    assert!(desk.error(&["before.log", "--html=before.log"]).contains("before.log is no name for a page"));
    assert!(desk.error(&["before.log", "page.html"]).contains("page.html is a page, not a trace"));
    assert_eq!(desk.names(), before);
}

#[test]
fn what_is_no_trace_is_answered_with_how_to_make_one() {
    let desk = Desk::new();
    desk.write("empty.log", b"");
    desk.write("app.log", b"listening on 3000\nGET / 200\n");
    desk.write("cut.log", b"[1:0x1]  12 ms: Scavenge 3.9 (4.0) ->\n");
    for (arguments, what) in [
        (&["none.log"][..], "cannot read none.log: No such file"),
        (&["empty.log"], "empty.log is empty"),
        (&[], "no trace is named"),
        (&["app.log"], "app.log is no trace of garbage collection: none of its 2 lines"),
        (&["cut.log"], "lines of V8: 1 of 1, and none is understood, such as: [1:0x1]"),
        (&["before.log", "app.log"], "app.log is no trace"),
    ] {
        let text = desk.error(arguments);
        assert!(text.contains(what) && text.contains("node --trace-gc app.js > gc.log"), "{text}");
    }
    assert!(desk.error(&["."]).contains("is a directory"));
    assert!(desk.error(&["-", "-"]).contains("only once"));
    assert!(desk.error(&["before.log"; 17]).contains("17 traces are too many"));
}

#[test]
fn wrong_arguments_are_a_matter_of_usage() {
    let desk = Desk::new();
    for (arguments, what) in [
        (&["before.log", "--memory-limit", "much"][..], "write 512M or 2G"),
        (&["before.log", "--node", "lts"], "write 20 or 20.20.2"),
    ] {
        let output = desk.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(what), "{text}");
    }
}

#[test]
fn a_log_cannot_command_the_terminal() {
    let desk = Desk::new();
    let mut text = fs::read(desk.path("before.log")).unwrap();
    text.extend(b"[1:0x1]  99 ms: Scavenge \x1b]0;owned\x07 \x1b[2J nonsense\n");
    desk.write("evil.log", &text);
    let shown = desk.ok(&["evil.log"]);
    assert!(shown.contains("1 of V8 not understood") && shown.contains("nonsense"), "{shown}");
    assert!(!shown.contains('\x1b') && !shown.contains('\x07'), "{shown:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let desk = Desk::new();
    let line = format!("set -o pipefail; {HASTEN} gc --json before.log | head -c 1");
    let output = Command::new("bash").args(["-c", &line]).current_dir(desk.0.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"{"[..], &b""[..]));
}

/// Larger than a file needs to be for a bar, and than the memory that is allowed below.
fn long_trace() -> String {
    let fixture = include_str!("../../core/v8/tests/fixtures/v24.trace-gc.txt");
    fixture.repeat((40 << 20) / fixture.len())
}

#[test]
fn a_long_trace_takes_no_more_memory_than_a_short_one() {
    let desk = Desk::new();
    let text = long_trace();
    desk.write("long.log", text.as_bytes());
    let gzip = Command::new("gzip").args(["-1", "--keep"]).arg(desk.path("long.log")).status().unwrap();
    assert!(gzip.success());
    for file in ["long.log", "long.log.gz"] {
        let mut command = Command::new("sh");
        // Kilobytes of all writable memory: heap, stacks, data.
        command.args(["-c", "ulimit -d 32768 && exec \"$0\" gc --json \"$1\"", HASTEN, file]);
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", desk.0.path())
            .current_dir(desk.0.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{file}: {output:?}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["traces"][0]["lines"]["bytes"], text.len(), "{file}");
    }
}

#[test]
fn a_bar_says_how_far_a_long_trace_is_and_goes() {
    let desk = Desk::new();
    desk.write("long.log", long_trace().as_bytes());
    let on_terminal = |file: &str| {
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &format!("'{HASTEN}' gc {file}"), "/dev/null"]);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", desk.0.path()).env("TERM", "xterm");
        let output = command.current_dir(desk.0.path()).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = on_terminal("long.log");
    let (bar, rest) = text.rsplit_once("left long.log").unwrap_or_else(|| panic!("no bar: {text}"));
    assert!(bar.contains(" MiB of 40.00 MiB, "), "{bar}");
    // The line is erased before anything else is written.
    assert!(rest.trim_start_matches(' ').starts_with("\r\u{1b}[2K"), "{rest}");
    assert!(!on_terminal("before.log").contains("left before.log"), "a short trace needs none");
}
