//! HAProxy.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Finding, option};

const DEFAULT_BUFFER: u64 = 16384;

struct Line {
    file: PathBuf,
    number: usize,
    section: String,
    words: Vec<String>,
}

pub(super) fn suggest(arguments: &[String], cpus: usize) -> Vec<Finding> {
    let files: Vec<_> = option(arguments, "-f").flat_map(|path| files(Path::new(path))).collect();
    let Some(first) = files.first().cloned() else { return Vec::new() };
    let lines: Vec<_> = files.iter().flat_map(|file| lines(file)).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let server = Haproxy { file: first, lines };
    [server.threads(cpus), server.tls_sessions(), server.closing(), server.reuse(), server.buffer()]
        .into_iter()
        .flatten()
        .collect()
}

struct Haproxy {
    file: PathBuf,
    lines: Vec<Line>,
}

impl Haproxy {
    fn threads(&self, cpus: usize) -> Option<Finding> {
        let line = self.find(&["nbthread"])?;
        let threads: usize = line.words.get(1)?.parse().ok()?;
        (threads < cpus).then(|| {
            let why = format!("{threads} of {cpus} CPUs can be used; without the line HAProxy takes all");
            self.at(Some(line), "global", &format!("nbthread {cpus}"), &why)
        })
    }

    fn tls_sessions(&self) -> Option<Finding> {
        let is_tls = |line: &Line| line.words[0] == "bind" && line.words.iter().any(|word| word == "ssl");
        if !self.lines.iter().any(is_tls) {
            return None;
        }
        let line = self.find(&["tune.ssl.cachesize"]);
        let size: u64 = line.and_then(|line| line.words.get(1)?.parse().ok()).unwrap_or(20000);
        (size < 100_000).then(|| {
            let why =
                format!("{size} sessions are kept; a client whose session is gone pays a whole handshake");
            self.at(line, "global", "tune.ssl.cachesize 100000", &why)
        })
    }

    fn closing(&self) -> Option<Finding> {
        let line = self.find(&["option", "httpclose"]).or_else(|| self.find(&["option", "forceclose"]))?;
        let why = "each request pays for a connection, with TLS for a handshake";
        Some(self.at(Some(line), "defaults", "option http-keep-alive", why))
    }

    fn reuse(&self) -> Option<Finding> {
        let line = self.find(&["http-reuse", "never"])?;
        let why = "each request opens a connection to the server behind";
        Some(self.at(Some(line), "defaults", "http-reuse safe", why))
    }

    fn buffer(&self) -> Option<Finding> {
        let line = self.find(&["tune.bufsize"])?;
        let size: u64 = line.words.get(1)?.parse().ok()?;
        (size > DEFAULT_BUFFER).then(|| {
            let why = format!(
                "each connection takes two buffers of {size} bytes, which no longer fit into the caches"
            );
            self.at(Some(line), "global", &format!("tune.bufsize {DEFAULT_BUFFER}"), &why)
        })
    }

    fn find(&self, words: &[&str]) -> Option<&Line> {
        let begins = |line: &&Line| {
            words.iter().enumerate().all(|(at, word)| line.words.get(at).is_some_and(|w| w == word))
        };
        self.lines.iter().rev().find(begins)
    }

    fn at(&self, present: Option<&Line>, within: &str, text: &str, why: &str) -> Finding {
        Finding {
            file: present.map_or(&self.file, |line| &line.file).clone(),
            number: present.map(|line| line.number),
            line: text.to_owned(),
            within: present.map_or(within, |line| &line.section).to_owned(),
            why: why.to_owned(),
        }
    }
}

/// A file, or the `.cfg` files of a folder.
fn files(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.extension() == Some("cfg".as_ref())).collect();
    files.sort();
    files
}

fn lines(file: &Path) -> Vec<Line> {
    const SECTIONS: [&str; 5] = ["global", "defaults", "frontend", "backend", "listen"];
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut section = String::new();
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<String> = line.split_whitespace().map(ToOwned::to_owned).collect();
        let Some(first) = words.first() else { continue };
        if SECTIONS.contains(&first.as_str()) {
            section.clone_from(first);
            continue;
        }
        lines.push(Line { file: file.to_owned(), number: at + 1, section: section.clone(), words });
    }
    lines
}
