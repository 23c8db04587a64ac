//! What a manual page says and `--help` does not: exit codes and variables, from their documents, and files.

/// A row of a table in the documents: a code or variable, and its meaning.
pub(super) type Row = (String, String);

const COMMAND_PAGE: &str = include_str!("../../../../docs/cli.md");
const CONFIGURATION_PAGE: &str = include_str!("../../../../docs/configuration.md");

/// Files that concern more than one command.
const CONFIGURATION: (&str, &str) = (
    "/etc/hasten/hasten.toml",
    "The configuration, unless there is a hasten.toml in the working directory, or --config names another file. \
     docs/configuration.md has an example with every setting.",
);
const LIBRARIES: (&str, &str) = (
    "/usr/lib/hasten",
    "The preload libraries, in musl/ those for musl, and in node/ the plugin for Node.js; outside of a package in lib/hasten beside the command's bin. \
     HASTEN_LIBDIR is another place.",
);
const CACHE: (&str, &str) = (
    "~/.cache/hasten",
    "Caches of Node.js applications. They may be removed at any time. HASTEN_CACHE_DIR is another place.",
);
const RUNTIME: (&str, &str) = (
    "$XDG_RUNTIME_DIR/hasten",
    "Sockets and recordings of Node.js processes, and what a hasten tune that was killed has to undo; of root, /run/hasten. \
     HASTEN_RUNTIME_DIR is another place.",
);
const REPORT: (&str, &str) =
    ("hasten-report.html, hasten-report.json", "The report, in the working directory or in --out.");
const DOCUMENTS: (&str, &str) = (
    "/usr/share/doc/hasten",
    "All pages that are named docs/ here; outside of a package in share/doc/hasten beside the command's bin.",
);

/// What ends the list, whatever the command.
const ALWAYS: &[(&str, &str)] = &[DOCUMENTS];

/// Exit codes of every command, from docs/cli.md.
pub(super) fn exit_codes() -> Vec<Row> {
    rows(COMMAND_PAGE, "| code |")
}

/// The exit codes that every command has, in words that fit each.
pub(super) fn usual_exit_codes() -> Vec<Row> {
    [("0", "done"), ("1", "failed"), ("2", "the command line, a variable or the configuration file is wrong")]
        .map(|(code, text)| (code.to_owned(), text.to_owned()))
        .to_vec()
}

/// Variables that `command` reads, from docs/configuration.md: all of them for `hasten` and `hasten run`.
pub(super) fn variables(command: &str) -> Vec<Row> {
    let names: &[&str] = match command {
        "hasten" | "hasten-run" => return rows(CONFIGURATION_PAGE, "| variable | read by |"),
        "hasten-check" => {
            &["HASTEN_DISABLE", "HASTEN_ONLY", "HASTEN_CONFIG", "HASTEN_DEVICES", "HASTEN_LIBDIR"]
        }
        "hasten-tune" | "hasten-bench-node" => &["HASTEN_LIBDIR", "HASTEN_CACHE_DIR"],
        name if name.starts_with("hasten-bench") => &["HASTEN_LIBDIR"],
        "hasten-gc-record" => &["HASTEN_RUNTIME_DIR", "HASTEN_NODE_GC"],
        "hasten-selftest" => &["HASTEN_GZIP_ENGINES"],
        _ => &[],
    };
    let has = |(variables, _): &Row| {
        let mut words = variables.split(", ");
        words.any(|word| word == "NO_COLOR" || names.contains(&word))
    };
    rows(CONFIGURATION_PAGE, "| variable | read by |").into_iter().filter(has).collect()
}

pub(super) fn files(command: &str) -> Vec<(&'static str, &'static str)> {
    let own: &[(&str, &str)] = match command {
        "hasten" | "hasten-run" => &[CONFIGURATION, LIBRARIES, CACHE, RUNTIME],
        "hasten-check" => &[CONFIGURATION, LIBRARIES],
        "hasten-tune" => &[
            (
                "hasten-tune",
                "The session, in the working directory or in --out: hasten.toml, report.html, and every measurement.",
            ),
            RUNTIME,
        ],
        "hasten-core" => &[("hasten-core.html", "The page that --html writes, unless it names another.")],
        "hasten-gc" => &[("hasten-gc.html", "The page that --html writes, unless it names another.")],
        "hasten-gc-record" => &[RUNTIME],
        "hasten-export" => &[
            (
                "hasten-export.service",
                "A unit of systemd that runs it with the rights it needs and no others; not enabled.",
            ),
            (
                "/usr/share/hasten/grafana/hasten.json, /usr/share/hasten/prometheus/hasten.rules.yml",
                "A dashboard and alert rules.",
            ),
        ],
        name if name.starts_with("hasten-bench") => &[REPORT, LIBRARIES],
        _ => &[],
    };
    own.iter().chain(ALWAYS).copied().collect()
}

/// Other programs' related pages.
pub(super) fn neighbours(command: &str) -> &'static [&'static str] {
    match command {
        "hasten" | "hasten-run" | "hasten-check" => &["ld.so(8)"],
        "hasten-export" => &["systemd.service(5)"],
        _ => &[],
    }
}

/// The pages of docs/ with more detail.
pub(super) fn pages(command: &str) -> &'static [&'static str] {
    match command {
        "hasten" => &["README.md", "docs/cli.md", "docs/configuration.md"],
        "hasten-run" => &["docs/cli.md", "docs/configuration.md", "docs/install.md"],
        "hasten-check" => &["docs/cli.md", "docs/node-tunings.md"],
        "hasten-top" => &["docs/telemetry.md"],
        "hasten-export" => &["docs/metrics.md"],
        "hasten-tune" => &["docs/tune.md", "docs/tune-cases.md"],
        "hasten-gc" => &["docs/gc.md", "docs/gc-model.md"],
        "hasten-gc-record" => &["docs/gc-recorder.md"],
        "hasten-selftest" => &["docs/devices.md"],
        name if name.starts_with("hasten-bench") => &["docs/bench.md", "docs/performance.md"],
        _ => &["docs/cli.md"],
    }
}

/// The first and the last column of the table that begins with `head`, as plain text.
fn rows(page: &str, head: &str) -> Vec<Row> {
    let lines = page.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let cells = lines.map_while(|line| {
        let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
        Some((row.split_once(" | ")?.0, row.rsplit_once(" | ")?.1))
    });
    cells.map(|(name, text)| (plain(name), plain(text))).collect()
}

/// Without backquotes, and with links reduced to their text.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, (words, after))) = rest.split_once('[').and_then(|(before, link)| {
        let (words, target) = link.split_once("](")?;
        Some((before, (words, target.split_once(')')?.1)))
    }) {
        text.extend([before, words]);
        rest = after;
    }
    text.push_str(rest);
    text.replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_the_documents_are_found() {
        let codes: Vec<_> = exit_codes().into_iter().map(|(code, _)| code).collect();
        assert!(codes.ends_with(&["126".to_owned(), "127".to_owned()]), "{codes:?}");
        let all = variables("hasten");
        assert!(all.iter().any(|(name, _)| name == "HASTEN_DISABLE"), "{all:?}");
        assert!(all.iter().all(|(_, text)| !text.contains(['`', '[', ']'])), "{all:?}");
        // A name that the page does not have would be left out silently.
        assert_eq!(variables("hasten-check").len(), 6);
    }

    #[test]
    fn pages_exist() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for command in [
            "hasten",
            "run",
            "check",
            "top",
            "export",
            "tune",
            "gc",
            "gc-record",
            "selftest",
            "bench",
            "engine",
        ] {
            for page in pages(&format!("hasten-{command}").replace("hasten-hasten", "hasten")) {
                assert!(root.join(page).is_file(), "{page}");
            }
        }
    }
}
