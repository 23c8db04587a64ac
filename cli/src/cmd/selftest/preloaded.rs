//! The libraries for memory and storage, each in a process of its own that does work whose results are known.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hasten_names::Event;
use hasten_plan::config::storage::ReadCache;
use hasten_plan::config::{Config, Request, Tier};
use hasten_plan::process::Allocator;
use hasten_plan::{Decision, Plan, Side, Surroundings};
use hasten_probe::program::Environment;
use hasten_probe::{Probe, Program};
use hasten_telemetry::{Counters, pages_of};

use super::exercise::Exercise;
use super::{Row, Verdict};
use crate::failure::own_program;

/// Enough for the files of an exercise.
const CACHE: u64 = 64 << 20;
const FAR_SHARE: Tier = Tier { near: 0, far: 0, near_share: 1, far_share: 3 };

/// Tests all three, with files in a folder of this directory that is removed again.
pub(super) fn run(directory: &Path) -> Vec<Row> {
    let folder = tempfile::Builder::new().prefix("hasten-selftest-").tempdir_in(directory);
    let folder = match folder {
        Ok(folder) => folder,
        Err(error) => {
            let why = format!("no folder can be made in {}: {error}", directory.display());
            return Exercise::ALL.map(|exercise| row(exercise, Err(Outcome::NotHere(why.clone())))).into();
        }
    };
    Exercise::ALL.map(|exercise| row(exercise, tested(exercise, folder.path()))).into()
}

/// Why a library has not passed.
enum Outcome {
    NotHere(String),
    Failed(String),
}

fn failed(what: &str, error: impl std::fmt::Display) -> Outcome {
    Outcome::Failed(format!("{what}: {error}"))
}

fn row(exercise: Exercise, outcome: Result<String, Outcome>) -> Row {
    let (result, detail) = match outcome {
        Ok(detail) => (Verdict::Passed, detail),
        Err(Outcome::Failed(detail)) => (Verdict::Failed, detail),
        Err(Outcome::NotHere(detail)) => (Verdict::NotHere, detail),
    };
    let engine = exercise.accelerator();
    Row { engine, class: "preloaded", result, detail, library: None, simulated: false, devices: Vec::new() }
}

fn tested(exercise: Exercise, folder: &Path) -> Result<String, Outcome> {
    let home = tempfile::Builder::new().prefix("hasten-selftest-").tempdir();
    let home = home.map_err(|error| failed("no temporary folder", error))?;
    let place = if exercise == Exercise::ReadCache { folder } else { home.path() };
    if exercise == Exercise::Wal && is_one_device(folder, home.path()) {
        let why = format!("{} is on the device of temporary files, so no log would move", folder.display());
        return Err(Outcome::NotHere(why));
    }
    let mut child = Running(start(exercise, folder, place)?);
    let said = child.said().map_err(|error| failed("its process", error))?;
    if said.trim() != Exercise::DONE {
        return Err(Outcome::Failed(said.trim().to_owned()));
    }
    let seen = Seen::of(child.0.id());
    drop(child);
    acted(exercise, &seen, place)
}

fn is_one_device(one: &Path, other: &Path) -> bool {
    let device = |path| fs::metadata(path).map(|facts: fs::Metadata| facts.dev()).ok();
    device(one) == device(other)
}

/// The process as `hasten run` would start it, if it would apply the library.
fn start(exercise: Exercise, folder: &Path, place: &Path) -> Result<Child, Outcome> {
    let own = own_program().map_err(|failure| Outcome::Failed(failure.into_words().0))?;
    let command: Vec<OsString> =
        [own.as_os_str(), "selftest".as_ref(), "--exercise".as_ref(), exercise.accelerator().as_ref()]
            .into_iter()
            .chain(["--storage".as_ref(), place.as_os_str()])
            .map(OsString::from)
            .collect();
    let mut surroundings = Surroundings::current();
    if exercise == Exercise::Tier {
        let jemalloc = Allocator::Jemalloc.library();
        let none =
            || Outcome::NotHere("there is no libjemalloc.so.2 for it (Debian: libjemalloc2)".to_owned());
        surroundings.ld_preload = Some(jemalloc.ok_or_else(none)?.into());
    }
    let program = Program::inspect(&command[0], &Environment::current());
    let program = program.map_err(|error| failed("this program", error))?;
    let plan = Plan::new(&Probe::new().cpu(), &program, &config(exercise, folder), &surroundings);
    let verdict = plan.verdict(exercise.accelerator()).filter(|verdict| verdict.decision != Decision::Apply);
    if let Some(verdict) = verdict {
        let reasons: Vec<_> = verdict.reasons(Side::Against).map(|reason| reason.text.as_str()).collect();
        return Err(Outcome::NotHere(reasons.join("; ")));
    }
    let launch = plan.launch(&program, &command);
    let mut process = Command::new(&launch.argv[0]);
    process.args(&launch.argv[1..]);
    for (name, value) in &launch.env {
        match value {
            Some(value) => process.env(name, value),
            None => process.env_remove(name),
        };
    }
    // Its trials need more reads than there are here.
    process.env("HASTEN_READ_CACHE_EAGER", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    process.spawn().map_err(|error| failed("its process", error))
}

fn config(exercise: Exercise, folder: &Path) -> Config {
    let mut config = Config::default();
    let only = Some(vec![exercise.accelerator().to_owned()]);
    config.prefer(Request { only_source: "selftest".to_owned(), only, ..Request::default() });
    match exercise {
        Exercise::Tier => config.tier = Some(FAR_SHARE),
        Exercise::ReadCache => {
            config.storage.read_cache = Some(ReadCache { directory: folder.join("cache"), size: CACHE });
            let _ = fs::create_dir(folder.join("cache"));
        }
        Exercise::Wal => config.storage.wal = Some(folder.to_owned()),
    }
    config
}

/// A process that waits, and ends with its owner.
struct Running(Child);

impl Running {
    fn said(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if let Some(output) = self.0.stdout.as_mut() {
            BufReader::new(output.take(4096)).read_line(&mut line)?;
        }
        if line.is_empty() {
            line = format!("it ended ({})", self.0.wait()?);
        }
        Ok(line)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// What the library counted.
#[derive(Default)]
struct Seen {
    total: Counters,
    far: u64,
}

impl Seen {
    fn of(pid: u32) -> Self {
        let mut seen = Self::default();
        for snapshot in pages_of(pid).into_iter().flatten().filter_map(|page| page.read().ok()) {
            seen.total += &snapshot.total();
            seen.far += snapshot.tiers(|one| one == pid).values().map(|tiers| tiers.far).sum::<u64>();
        }
        seen
    }
}

/// What shows that the results came from the library.
fn acted(exercise: Exercise, seen: &Seen, place: &Path) -> Result<String, Outcome> {
    let idle = |what: &str| Err(Outcome::Failed(what.to_owned()));
    match exercise {
        Exercise::Tier if seen.far == 0 => idle("no object was far"),
        Exercise::Tier => Ok(format!("objects of all sizes, of which {} MB were far", seen.far >> 20)),
        Exercise::ReadCache => match seen.total[Event::ReadCacheHitBytes] {
            0 if seen.total[Event::ReadCacheMissBytes] == 0 => {
                let why = "no file of this file system is accepted: docs/storage.md lists those that are";
                Err(Outcome::NotHere(why.to_owned()))
            }
            0 => idle("no read was answered from the cache"),
            bytes => Ok(format!("a file read again, {} KiB of it from the cache", bytes >> 10)),
        },
        Exercise::Wal if seen.total[Event::WalMade] == 0 => idle("no log was made on the device"),
        // Without the library, as the stock program would after a crash.
        Exercise::Wal => match exercise.is_left_right(place) {
            Ok(()) => Ok("a log written there, and read without the library".to_owned()),
            Err(error) => idle(&error),
        },
    }
}
