//! The identity of a session, so that measurements of two different things are not mixed.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use clap::Parser;
use hasten_probe::{Environment, Program};
use hasten_tune::session::Record;
use serde_json::{Value, json};

use super::setup::Setup;
use super::{Stored, TuneArgs};
use crate::failure::Failure;

/// What a session must share with the one that it resumes, and what is wrong otherwise.
const MUST_BE: [(&str, &str); 2] =
    [("space", "other knobs, or other levels, apply now"), ("load", "the load is another")];
/// The same, where the user may know better.
const SHOULD_BE: [(&str, &str); 4] = [
    ("hasten", "it is another version of hasten"),
    ("directory", "it was begun in another directory"),
    ("program", "the program has changed"),
    ("files", "a file that the command names has changed"),
];

/// Everything that determines the course of the session.
pub(super) fn identity(setup: &Setup) -> Value {
    let command = &setup.launch.command;
    let directory = env::current_dir().unwrap_or_default();
    let at = setup.launch.directory.as_deref().unwrap_or(&directory);
    json!({
        "hasten": env!("CARGO_PKG_VERSION"),
        "seed": setup.settings.seed,
        "arguments": words(),
        "directory": directory,
        "program": program(command.first().map_or(OsStr::new(""), |word| word)),
        "files": files(command, at),
        "load": setup.load.describe(),
        "space": setup.space,
    })
}

/// Refuses to mix measurements of two different things; names all differences.
pub(super) fn must_be_the_same(
    setup: &Setup,
    record: &Record,
    args: &TuneArgs,
    given: &TuneArgs,
) -> Result<(), Failure> {
    let (then, now) = (record.setup(), identity(setup));
    let changed = |list: &[(&str, &str)]| -> Vec<String> {
        let changed = list.iter().filter(|(key, _)| then[*key] != now[*key]);
        changed.map(|(key, what)| format!("{what}{}", details(key, &then[*key], &now[*key]))).collect()
    };
    let (mut contradictions, changes) = (changed(&MUST_BE), changed(&SHOULD_BE));
    contradictions.extend(contradicted(args, given).into_iter().map(|what| format!("{what} is another")));
    let allowed = given.despite_changes || changes.is_empty();
    if contradictions.is_empty() && allowed {
        return Ok(());
    }
    let fix = if contradictions.is_empty() {
        "begin a new session, without --resume; or, if that changes nothing for the service, go on with --despite-changes"
    } else {
        "begin a new session, without --resume"
    };
    let all = [contradictions, changes].concat().join("; ");
    Err(Failure::new(format!("this is not what the session measured: {all}"), fix))
}

fn details(key: &str, then: &Value, now: &Value) -> String {
    let of = |file: &Value| file["path"].as_str().unwrap_or_default().to_owned();
    match (key, then.as_array(), now.as_array()) {
        ("hasten", ..) => format!(" ({then}, and now {now})"),
        ("files", Some(then), Some(now)) => {
            let changed = now.iter().chain(then).filter(|file| !then.contains(file) || !now.contains(file));
            let mut names: Vec<String> = changed.map(of).collect();
            names.sort();
            names.dedup();
            format!(" ({})", names.join(", "))
        }
        _ => String::new(),
    }
}

/// Arguments that differ from those of the beginning. More time may be given, and how to print.
fn contradicted(args: &TuneArgs, given: &TuneArgs) -> Vec<&'static str> {
    let usual = Stored::try_parse_from(["hasten tune"]).map_or_else(|_| given.clone(), |stored| stored.args);
    macro_rules! differs {
        ($($field:ident: $name:literal),*) => {
            [$(($name, given.$field != usual.$field && given.$field != args.$field)),*]
        };
    }
    let all = differs!(
        command: "the command", unit: "--unit", load: "the load", url: "the load", connections: "--connections",
        duration: "--duration", warm_up: "--warm-up", metric_regex: "--metric-regex", ready: "--ready",
        objective: "the objective", max_rss: "--max-rss", max_p99: "--max-p99", max_bytes: "--max-bytes", effect: "--effect", only: "--only",
        without: "--without", knob: "--knob", allow_system: "--allow-system", seed: "--seed"
    );
    all.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

/// The command line that begins this session again.
pub(super) fn words() -> Vec<String> {
    env::args().skip(2).collect()
}

/// The command line that a session was begun with, and its seed.
pub(super) fn stored(setup: &Value) -> (Vec<String>, u64) {
    let words = setup["arguments"].as_array().into_iter().flatten();
    let words = words.filter_map(|word| word.as_str().map(str::to_owned)).collect();
    (words, setup["seed"].as_u64().unwrap_or_default())
}

/// Another binary is another service.
fn program(command: &OsStr) -> Value {
    let path = Program::inspect(command, &Environment::current()).map(|program| program.executable);
    about(&path.unwrap_or_else(|_| PathBuf::from(command)))
}

/// Scripts and configurations; files that these refer to in turn are noticed only through the measurements.
fn files(command: &[OsString], directory: &Path) -> Vec<Value> {
    let paths = command.iter().skip(1).map(|word| directory.join(word));
    paths.filter(|path| path.is_file()).map(|path| about(&path)).collect()
}

fn about(path: &Path) -> Value {
    let about = fs::metadata(path);
    let modified = about.as_ref().ok().and_then(|about| about.modified().ok());
    let seconds = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|time| time.as_secs());
    json!({ "path": path, "bytes": about.map(|about| about.len()).unwrap_or_default(), "modified": seconds })
}
