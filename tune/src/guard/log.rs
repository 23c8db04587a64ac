//! Error lines in a service's log that the baseline does not write.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

/// How much of a line is compared and shown.
const MAX_LINE: usize = 500;

/// Errors that the baseline writes too, whatever their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KnownErrors(BTreeSet<String>);

impl KnownErrors {
    /// Takes a log of the baseline.
    pub fn learn(&mut self, log: &str) {
        self.0.extend(errors(log).map(normalised));
    }

    /// The first error line of another log whose kind the baseline does not write.
    #[must_use]
    pub fn first_new(&self, log: &str) -> Option<String> {
        errors(log).find(|line| !self.0.contains(&normalised(line))).map(str::to_owned)
    }
}

/// The first error line of `new` whose kind is not in `old`.
#[must_use]
pub fn log_errors(old: &str, new: &str) -> Option<String> {
    let mut known = KnownErrors::default();
    known.learn(old);
    known.first_new(new)
}

fn errors(log: &str) -> impl Iterator<Item = &str> {
    let cut = |line: &str| {
        let least = MAX_LINE.min(line.len());
        (0..=least).rev().find(|&at| line.is_char_boundary(at)).unwrap_or(0)
    };
    log.lines().map(str::trim).map(move |line| &line[..cut(line)]).filter(|line| is_error(line))
}

fn is_error(line: &str) -> bool {
    static ERROR: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r"(?i:\b(?:errors?|fatal|panic(?:ked)?|segfault|segmentation fault|traceback|uncaught|unhandled|emerg|alert|crit(?:ical)?",
            r"|core dumped|out of memory|aborted|assertion)\b)",
            // `TypeError: …` of Node.js and Python.
            r"|\b[A-Z][A-Za-z]*(?:Error|Exception)\b",
        ))
        .expect("a regular expression")
    });
    // A count of errors is not an error.
    static NONE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)\b(?:no|0|without) errors?\b|\berrors?[ =:]+0\b|\berror[_-](?:log|page)\b")
            .expect("a regular expression")
    });
    ERROR.is_match(line) && ERROR.is_match(&NONE.replace_all(line, ""))
}

/// Strips numbers, addresses and times.
fn normalised(line: &str) -> String {
    static NUMBERS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"0x[0-9a-fA-F]+|\b[0-9a-f]*[0-9][0-9a-f]{3,}\b|[0-9]+").expect("a regular expression")
    });
    NUMBERS.replace_all(line, "#").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_all_sorts_of_servers_are_seen() {
        for line in [
            "2026/11/22 12:00:00 [emerg] 12#12: bind() to 0.0.0.0:80 failed",
            "2026/11/22 12:00:00 [crit] 12#12: *1 SSL_write() failed",
            "[ERROR] something broke",
            "error: connection lost",
            "Traceback (most recent call last):",
            "TypeError: Cannot read properties of undefined (reading 'x')",
            "thread 'main' panicked at src/main.rs:1:1",
            "Segmentation fault (core dumped)",
            "# Fatal, can't open the append only file",
            "Uncaught exception",
            "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
        ] {
            assert_eq!(log_errors("listening on 3000\n", line).as_deref(), Some(line));
        }
        for line in [
            "0 errors",
            "no error",
            "errors=0",
            "Ready to accept connections",
            "error_log off",
            "terrors",
            "[warn] x",
            "",
        ] {
            assert_eq!(log_errors("", line), None, "{line}");
        }
    }

    #[test]
    fn errors_that_the_baseline_writes_are_not_new_whatever_their_numbers() {
        let old = "12:00:01 [error] 7#7: *1 client 127.0.0.1:4711 timed out, request 5f3a9b\n";
        let new = "13:59:59 [error] 4242#4242: *99 client 127.0.0.1:1 timed out, request 01beef\n";
        assert_eq!(log_errors(old, new), None);
        let other = format!("{new}[error] 1#1: upstream refused\n");
        assert_eq!(log_errors(old, &other).as_deref(), Some("[error] 1#1: upstream refused"));
    }
}
