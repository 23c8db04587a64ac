//! Node.js: a start-up cache, and a recorder of garbage collections on request.

mod place;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use hasten_probe::program::kind::Kind;
use hasten_probe::{Cpu, Program};

use super::{Accelerator, Carrier};
use crate::config::{Config, NodeCache};
use crate::plan::Reason;
use crate::surroundings::Surroundings;
use crate::{node_options, preload};

pub struct Node;

pub(crate) const NAME: &str = "node";

/// Whether start-up is cached: 0, read or 1.
pub(crate) const CACHE: &str = "HASTEN_NODE_CACHE";
/// Size limit of all caches of a user, in MiB.
pub(crate) const CACHE_LIMIT: &str = "HASTEN_NODE_CACHE_LIMIT";
/// Whether collections are recorded: 0, record, or on request.
pub(crate) const GC: &str = "HASTEN_NODE_GC";

const DEFAULT_CACHE_LIMIT: &str = "256";

/// Options of Node.js with which a plugin in `NODE_OPTIONS` would change the program's behaviour.
struct Conflict {
    options: &'static [&'static str],
    why: &'static str,
    fix: &'static str,
}

const CONFLICTS: [Conflict; 2] = [
    Conflict {
        options: &["--experimental-permission", "--permission", "--permission-audit"],
        why: "under the permission model, Node.js 20 ends if it may not read what NODE_OPTIONS names",
        fix: "run the application without the permission model",
    },
    Conflict {
        options: &["--env-file", "--env-file-if-exists"],
        why: "Node.js heeds NODE_OPTIONS in the file of --env-file only if the environment has none",
        fix: "set the variables of that file in the environment",
    },
];

impl Conflict {
    fn reason(&self) -> Reason {
        Reason::against(self.why).fix(self.fix)
    }

    /// Whether the script behind a program sets one of these options: in its `#!` line, or where it starts Node.js as
    /// shells do.
    fn is_in(&self, script: &Path, program: &Program) -> bool {
        let mut head = Vec::new();
        let read = File::open(script).and_then(|file| file.take(SCRIPT_BYTES).read_to_end(&mut head));
        read.is_ok()
            && head.split(|&byte| byte == b'\n').enumerate().any(|(at, line)| {
                let counts = at == 0 || (!program.kind.runs_javascript() && words(line).any(is_node));
                counts && words(line).any(|word| node_options::sets(word, self.options))
            })
    }
}

/// How much of a script is read: more than any script has that only starts a server.
const SCRIPT_BYTES: u64 = 64 * 1024;

/// The words in a line of a script, however they are quoted or joined.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace() || b"\"';&|()".contains(byte))
}

fn is_node(word: &[u8]) -> bool {
    matches!(word.rsplit(|&byte| byte == b'/').next(), Some(b"node" | b"nodejs"))
}

impl Accelerator for Node {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "start-up from a cache of resolved and compiled modules, garbage collections recorded on request"
    }

    fn library(&self) -> &'static str {
        node_options::PLUGIN
    }

    fn carrier(&self) -> Carrier {
        Carrier::NodeOptions
    }

    fn uses(&self) -> &'static [&'static str] {
        &[]
    }

    fn judge_host(&self, _: &Cpu, config: &Config, surroundings: &Surroundings) -> Vec<Reason> {
        let conflict = CONFLICTS.iter().find(|conflict| surroundings.gives_node(conflict.options));
        match conflict {
            Some(conflict) => vec![conflict.reason()],
            None => vec![Reason::favour(cache(config, surroundings))],
        }
    }

    fn judge_program(&self, program: &Program) -> Vec<Reason> {
        let conflict = CONFLICTS
            .iter()
            .find(|conflict| program.scripts.iter().any(|script| conflict.is_in(script, program)));
        conflict.map(Conflict::reason).into_iter().chain([heeds(program)]).collect()
    }

    fn concerns(&self, program: &Program) -> bool {
        program.kind.runs_javascript() || program.is_launcher() || program.is_single_executable()
    }

    fn follow_up(&self, config: &Config, surroundings: &Surroundings) -> String {
        cache(config, surroundings)
    }

    fn environment(&self, config: &Config, surroundings: &Surroundings) -> Vec<(&'static str, OsString)> {
        let mut variables = Vec::new();
        if config.node.cache != NodeCache::On && surroundings.node_cache.is_none() {
            variables.push((CACHE, config.node.cache.as_variable().into()));
        }
        if config.node.gc_record && surroundings.node_gc.is_none() {
            variables.push((GC, "record".into()));
        }
        variables
    }
}

/// Whether `NODE_OPTIONS` reaches a Node.js in this program or its children.
pub(crate) fn heeds(program: &Program) -> Reason {
    let name = program.name();
    let kind = program.kind;
    if program.privilege.secure_exec {
        let gained = preload::gained(program);
        return Reason::against(format!(
            "{name} gains {gained} at start; what the caller's environment says is not for it"
        ))
        .fix(format!(
            "start it as the user it becomes, or drop the bit from {}",
            program.executable.display()
        ));
    }
    if !kind.may_start_others() {
        return Reason::against(format!("{name} neither is Node.js nor starts it"));
    }
    match kind {
        Kind::Node => Reason::favour(format!("{name} is Node.js and reads NODE_OPTIONS")),
        Kind::Electron => Reason::against(format!(
            "{name} is Electron, which takes little of NODE_OPTIONS and has a module loader of its own, with ELECTRON_RUN_AS_NODE, too"
        ))
        .fix("run the part that is a server with node"),
        Kind::Bun | Kind::Deno => {
            Reason::against(format!("{name} is not Node.js: it loads modules in its own way")).fix("run the application with node")
        }
        _ if program.is_single_executable() => Reason::against(format!(
            "{name} is a Node.js with its application inside, which has no files that could be cached"
        ))
        .fix("run the application from its files: `hasten run -- node app.js`"),
        _ => Reason::idle(format!("{name} is not Node.js: the plugin waits in NODE_OPTIONS for one that {name} starts")),
    }
}

/// Usually for services, which cannot write to their home directory.
const ANOTHER_PLACE: &str = "set HASTEN_CACHE_DIR to a folder of its user, or in a systemd unit CacheDirectory=hasten and \
                             Environment=HASTEN_CACHE_DIR=/var/cache/hasten";

/// Where start-up is cached, or why it is not.
fn cache(config: &Config, surroundings: &Surroundings) -> String {
    let (mode, source) = match surroundings.node_cache.as_deref().map(|value| value.to_string_lossy()) {
        Some(value) => (NodeCache::from_variable(&value), format!("{CACHE}={value}")),
        None => (Some(config.node.cache), "[node] cache".to_owned()),
    };
    let Some(directory) = directory(surroundings) else {
        return format!(
            "start-up is not cached: none of HASTEN_CACHE_DIR, XDG_CACHE_HOME and HOME has an absolute path; {ANOTHER_PLACE}"
        );
    };
    let obstacle = place::obstacle(&directory);
    let directory = directory.display();
    match (mode, obstacle) {
        (Some(NodeCache::Off), _) => format!("start-up is not cached ({source})"),
        (Some(NodeCache::Read), _) => format!("its cache in {directory} is used and not written ({source})"),
        (_, Some(why)) => {
            format!("start-up is not cached: its cache would be in {directory}, but {why}; {ANOTHER_PLACE}")
        }
        _ => {
            let limit = surroundings.node_cache_limit.as_deref().map(|value| value.to_string_lossy());
            format!(
                "its cache is in {directory}, {} MiB at most",
                limit.as_deref().unwrap_or(DEFAULT_CACHE_LIMIT)
            )
        }
    }
}

fn directory(surroundings: &Surroundings) -> Option<PathBuf> {
    Some(surroundings.cache_directory.as_ref()?.join("node"))
}

/// Checks the variables as the plugin reads them; the plugin would replace unknown values by the default.
pub(crate) fn check_cache(value: &str) -> Result<(), (String, String)> {
    if value.is_empty() || NodeCache::from_variable(value).is_some() {
        return Ok(());
    }
    let fix = "write 0 (no start-up cache), read (use it, never record) or 1 (both), or unset it";
    Err((format!("`{value}` is none of 0, read and 1"), fix.into()))
}

pub(crate) fn check_cache_limit(value: &str) -> Result<(), (String, String)> {
    if value.is_empty() || value.parse().is_ok_and(|limit: u32| (1..=65536).contains(&limit)) {
        return Ok(());
    }
    Err((
        format!("`{value}` is no number from 1 to 65536"),
        "write MiB for all caches together, such as 256".into(),
    ))
}

pub(crate) fn check_gc(value: &str) -> Result<(), (String, String)> {
    if ["", "0", "record"].contains(&value) {
        return Ok(());
    }
    let fix = "write record (from the start) or 0 (not even on request), or unset it for `hasten gc record`";
    Err((format!("`{value}` is neither record nor 0"), fix.into()))
}
