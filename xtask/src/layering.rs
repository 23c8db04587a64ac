//! Those laws of docs/architecture.md that a machine can check.

use std::fs;
use std::path::Path;

use crate::error::Error;
use crate::source::{Source, lines_with_word};
use crate::workspace::{Package, Workspace, rust_files};

/// The members that each member may be built from. Dependencies point one way because no entry leads back to itself.
const LAYERS: [(&str, &[&str]); 34] = [
    ("hasten-names", &[]),
    ("hasten-blocks", &[]),
    ("hasten-charts", &[]),
    ("hasten-corefile", &["hasten-charts"]),
    ("hasten-guard", &["hasten-names"]),
    ("hasten-crypto", &["hasten-guard", "hasten-names"]),
    ("hasten-device", &["hasten-guard", "hasten-names"]),
    ("hasten-deflate", &["hasten-device", "hasten-guard", "hasten-names"]),
    ("hasten-envoy-builds", &[]),
    ("hasten-evidence", &[]),
    ("hasten-exec", &[]),
    ("hasten-hook", &[]),
    ("hasten-livecopy", &[]),
    ("hasten-logs", &[]),
    ("hasten-openssl", &[]),
    ("hasten-probe", &["hasten-device", "hasten-names", "hasten-openssl"]),
    ("hasten-telemetry", &["hasten-guard", "hasten-names"]),
    ("hasten-compress", &["hasten-deflate", "hasten-device", "hasten-telemetry"]),
    ("hasten-batch", &["hasten-crypto", "hasten-device", "hasten-guard", "hasten-telemetry"]),
    ("hasten-export", &["hasten-charts", "hasten-device", "hasten-names", "hasten-telemetry"]),
    ("hasten-plan", &["hasten-envoy-builds", "hasten-names", "hasten-openssl", "hasten-probe"]),
    ("hasten-units", &[]),
    ("hasten-v8", &["hasten-charts"]),
    ("hasten-bench", &["hasten-deflate", "hasten-evidence", "hasten-v8"]),
    (
        "hasten-tune",
        &[
            "hasten-bench",
            "hasten-charts",
            "hasten-evidence",
            "hasten-names",
            "hasten-plan",
            "hasten-probe",
            "hasten-units",
        ],
    ),
    ("hasten-gzip", &["hasten-compress", "hasten-deflate", "hasten-hook", "hasten-telemetry"]),
    (
        "hasten-envoy",
        &[
            "hasten-batch",
            "hasten-compress",
            "hasten-crypto",
            "hasten-deflate",
            "hasten-envoy-builds",
            "hasten-guard",
            "hasten-hook",
            "hasten-telemetry",
        ],
    ),
    ("hasten-wal", &["hasten-hook", "hasten-logs", "hasten-telemetry"]),
    ("hasten-tier", &["hasten-hook", "hasten-telemetry"]),
    ("hasten-readcache", &["hasten-blocks", "hasten-guard", "hasten-hook", "hasten-telemetry"]),
    (
        "hasten-tls",
        &[
            "hasten-batch",
            "hasten-crypto",
            "hasten-device",
            "hasten-guard",
            "hasten-hook",
            "hasten-openssl",
            "hasten-telemetry",
        ],
    ),
    (
        "hasten",
        &[
            "hasten-bench",
            "hasten-corefile",
            "hasten-crypto",
            "hasten-deflate",
            "hasten-device",
            "hasten-evidence",
            "hasten-exec",
            "hasten-export",
            "hasten-livecopy",
            "hasten-logs",
            "hasten-names",
            "hasten-openssl",
            "hasten-plan",
            "hasten-probe",
            "hasten-telemetry",
            "hasten-tune",
            "hasten-units",
            "hasten-v8",
        ],
    ),
    // Nothing is built from these two, so they may use anything.
    (
        "hasten-tests",
        &[
            "hasten-bench",
            "hasten-charts",
            "hasten-corefile",
            "hasten-deflate",
            "hasten-evidence",
            "hasten-export",
            "hasten-logs",
            "hasten-names",
            "hasten-openssl",
            "hasten-plan",
            "hasten-probe",
            "hasten-telemetry",
            "hasten-tune",
            "hasten-v8",
        ],
    ),
    ("xtask", &["hasten-envoy-builds", "hasten-evidence", "hasten-plan"]),
];

/// The modules of their crate that these files may name; the first matching line counts. Unlisted files may name any.
const MODULES: [(&str, &[&str]); 9] = [
    // A slice runs any function: the coroutine knows neither which nor why.
    ("preload/tls/src/handshake/slice.rs", &[]),
    ("preload/tls/src/handshake/slice/", &[]),
    ("preload/tls/src/handshake/", &["config", "handshake", "hooks", "openssl", "runtime"]),
    // OpenSSL's work is done in its place whether or not a handshake can be left, and whatever the server's event loop
    // is.
    ("preload/tls/src/openssl/", &["config", "hooks", "runtime", "stack", "start"]),
    // Knowledge about descriptors comes from calls and from the kernel.
    ("preload/tls/src/event_loop/fds.rs", &[]),
    ("preload/tls/src/event_loop/kernel.rs", &[]),
    ("preload/tls/src/event_loop/", &["handshake", "hooks", "openssl", "runtime"]),
    ("preload/tls/src/host.rs", &["openssl", "stack"]),
    ("preload/tls/src/stack.rs", &[]),
];

/// Where `unsafe` may be used.
const UNSAFE: [&str; 25] = [
    "bench/src/gzip/worker/abi.rs", // calls zlib as a C program does
    "bench/src/wait.rs",            // wait4, which says what a process cost
    "core/batch/src/",              // operations are known by their address
    "core/corefile/src/map.rs",     // maps a file
    "core/crypto/src/crt/",
    "core/crypto/src/ecdhe.rs", // marks a type as plain bytes for the wiping container
    "core/crypto/src/memory.rs",
    "core/crypto/src/multibuffer/",
    "core/deflate/src/abi.rs", // the types of zlib's callbacks
    "core/deflate/src/checksum.rs",
    "core/deflate/src/engine/",
    "core/deflate/src/inflate", // zlib-rs by its C interface: the file and its folder
    "core/deflate/src/pages.rs", // maps and gives back pages
    "core/deflate/src/pool.rs",
    "core/deflate/src/stack.rs", // asks a thread where its stack ends
    "core/deflate/src/store.rs",
    "core/deflate/src/verify.rs",
    "core/device/src/counters.rs", // perf_event_open, which the C library has no function for
    "core/device/src/engines/",    // the C interfaces of devices' libraries
    "core/device/src/library.rs",
    "core/device/src/worker.rs", // signals are blocked on its thread
    "core/exec/",
    "core/hook/",
    "core/livecopy/src/trace.rs", // ptrace
    "core/telemetry/src/",
];

/// Only a few places in `core`, and the layers above it, may treat a server specially.
const SERVERS: [&str; 4] = ["nginx", "haproxy", "envoy", "redis"];

/// The second has the list of proven servers, which `core/probe` and the TLS library share; the third is a table of one
/// server's builds, and the last has an accelerator that is for it alone.
const KNOW_SERVERS: [&str; 4] =
    ["core/probe/", "core/openssl/", "core/envoy-builds/", "core/plan/src/accelerator/"];

/// Reports every broken rule, not only the first.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    let mut broken = Vec::new();
    for package in workspace.members() {
        broken.extend(dependencies(workspace, package));
        broken.extend(unsafe_code(workspace, package)?);
        broken.extend(servers(workspace, package)?);
        broken.extend(modules(workspace, package)?);
    }
    broken.extend(lines_about_nothing(workspace));
    if broken.is_empty() { Ok(()) } else { Err(Error::Rules(broken)) }
}

fn dependencies(workspace: &Workspace, package: &Package) -> Vec<String> {
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == package.name) else {
        return vec![format!(
            "{} has no place in the layers: give it one in xtask/src/layering.rs",
            package.name
        )];
    };
    let used = workspace.member_dependencies(package);
    used.into_iter()
        .filter(|name| !allowed.contains(name))
        .map(|name| {
            format!("{} must not depend on {name}: docs/architecture.md says which way", package.name)
        })
        .collect()
}

/// Requires that only the modules in [`MODULES`] are named.
fn modules(workspace: &Workspace, package: &Package) -> Result<Vec<String>, Error> {
    let mut broken = Vec::new();
    for file in rust_files(&package.directory().join("src"))? {
        let name = workspace.relative(&file).to_string_lossy();
        let Some((_, allowed)) = MODULES.iter().find(|(prefix, _)| name.starts_with(prefix)) else {
            continue;
        };
        let code = Source::product(&read(&file)?).code;
        if code.contains("super::super::") {
            broken.push(format!("{name}: name modules from `crate::` on, not by `super::super::`"));
        }
        broken.extend(modules_named(&code).filter(|(_, module)| !allowed.contains(module)).map(
            |(line, module)| {
                format!("{name}:{line}: must not name `{module}`: docs/architecture.md says why")
            },
        ));
    }
    Ok(broken)
}

/// Lines of [`MODULES`] whose files have moved: they would check nothing.
fn lines_about_nothing(workspace: &Workspace) -> impl Iterator<Item = String> {
    let gone = MODULES.iter().map(|(path, _)| *path).filter(|path| !workspace.root.join(path).exists());
    gone.map(|path| format!("xtask/src/layering.rs: there is no {path}"))
}

/// The modules at the crate's root that code names, each with its line.
fn modules_named(code: &str) -> impl Iterator<Item = (usize, &str)> {
    const ROOT: &str = "crate::";
    code.match_indices(ROOT).flat_map(move |(at, _)| {
        let line = code[..at].matches('\n').count() + 1;
        let path = &code[at + ROOT.len()..];
        let paths: Vec<_> = match path.strip_prefix('{') {
            Some(list) => split_list(list),
            None => vec![path],
        };
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        paths.into_iter().map(move |path| {
            let path = path.trim_start();
            (line, path.split(|c| !is_word(c)).next().unwrap_or(path))
        })
    })
}

/// Splits at commas up to the brace that closes the list, keeping nested lists together.
fn split_list(list: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' | ',' if depth == 0 => {
                parts.push(&list[begin..at]);
                begin = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Requires `unsafe` to be only where it is allowed, and crates without any to say so to the compiler.
fn unsafe_code(workspace: &Workspace, package: &Package) -> Result<Vec<String>, Error> {
    let directory = workspace.relative(package.directory()).to_string_lossy().into_owned() + "/";
    if directory.starts_with("preload/") {
        return Ok(Vec::new());
    }
    if !UNSAFE.iter().any(|allowed| allowed.starts_with(&directory)) {
        return forbids_unsafe(workspace, package);
    }
    let mut broken = Vec::new();
    for file in rust_files(&package.directory().join("src"))? {
        let name = workspace.relative(&file).to_string_lossy();
        if UNSAFE.iter().any(|allowed| name.starts_with(allowed)) || name.ends_with("/tests.rs") {
            continue;
        }
        let lines = lines_with_word(&Source::product(&read(&file)?).code, "unsafe");
        broken
            .extend(lines.iter().map(|line| format!("{name}:{line}: `unsafe` is not allowed in this file")));
    }
    Ok(broken)
}

fn forbids_unsafe(workspace: &Workspace, package: &Package) -> Result<Vec<String>, Error> {
    let mut broken = Vec::new();
    for root in package.crate_roots() {
        if !Source::of(&read(root)?).code.contains("#![forbid(unsafe_code)]") {
            broken.push(format!(
                "{}: `#![forbid(unsafe_code)]` is missing",
                workspace.relative(root).display()
            ));
        }
    }
    Ok(broken)
}

/// In `core/`, a server's name may occur in a sentence for people, but neither in code nor as a value.
fn servers(workspace: &Workspace, package: &Package) -> Result<Vec<String>, Error> {
    let directory = workspace.relative(package.directory());
    if !directory.starts_with("core") {
        return Ok(Vec::new());
    }
    let mut broken = Vec::new();
    for file in rust_files(&package.directory().join("src"))? {
        let name = workspace.relative(&file).to_string_lossy();
        // Test files are modules included by a `#[cfg(test)]` elsewhere.
        if name.ends_with("tests.rs") || KNOW_SERVERS.iter().any(|known| name.starts_with(known)) {
            continue;
        }
        let source = Source::product(&read(&file)?);
        broken.extend(server_names(&source).map(|(line, server)| {
            format!("{name}:{line}: core must not know {server}: facts about servers come from core/probe")
        }));
    }
    Ok(broken)
}

fn server_names(source: &Source) -> impl Iterator<Item = (usize, &'static str)> {
    let code = source.code.to_lowercase();
    let values = source.strings.to_lowercase();
    SERVERS.iter().flat_map(move |&server| {
        let identifier =
            code.lines().enumerate().filter(|(_, line)| names(line, server)).map(|(at, _)| at + 1);
        let quoted = format!("\"{server}\"");
        let value =
            values.lines().enumerate().filter(|(_, line)| line.contains(&quoted)).map(|(at, _)| at + 1);
        identifier.chain(value).map(move |line| (line, server)).collect::<Vec<_>>()
    })
}

/// Whether an identifier in `line` has `server` as one of its words.
fn names(line: &str, server: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric()).any(|word| word == server)
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_layer_leads_back_to_itself() {
        for (at, (name, allowed)) in LAYERS.iter().enumerate() {
            for dependency in *allowed {
                let below = LAYERS[..at].iter().any(|(lower, _)| lower == dependency);
                assert!(below, "{name} may depend on {dependency}, which does not stand before it");
            }
        }
    }

    #[test]
    fn modules_are_found_however_they_are_named() {
        let found = |text: &str| modules_named(text).map(|(_, module)| module.to_owned()).collect::<Vec<_>>();
        assert_eq!(found("use crate::fds;\npub(crate) fn f() { crate::turn::waits(); }"), ["fds", "turn"]);
        assert_eq!(
            found("use crate::{\n    config, openssl::{self, Ssl}, hooks::{a, b},\n};"),
            ["config", "openssl", "hooks"]
        );
        assert_eq!(modules_named("\n\ncrate::runtime::Runtime").collect::<Vec<_>>(), [(3, "runtime")]);
        assert_eq!(found("use super::kernel; use std::io;"), [""; 0]);
    }

    #[test]
    fn a_server_may_be_named_in_advice_only() {
        let found = |text: &str| server_names(&Source::product(text)).collect::<Vec<_>>();
        assert_eq!(found("fix(\"let nginx do it\"); // as HAProxy does"), []);
        assert_eq!(found("if name == \"nginx\" {"), [(1, "nginx")]);
        assert_eq!(found("\nfn is_haproxy() {"), [(2, "haproxy")]);
        assert_eq!(found("Kind::Envoy"), [(1, "envoy")]);
    }
}
