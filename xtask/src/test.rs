//! All tests, several test programs at a time.
//!
//! Cargo runs test programs one after another, and many of them wait for servers most of their time. Here they run side
//! by side, the longest first; only what fails, and figures that are meant to be seen, is shown. What fails beside
//! others runs once more, alone: if it passes then, the tests go on, and the test is named as unsteady.

mod share;

use std::env;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use clap::Args;
use serde::Deserialize;

use crate::error::Error;
use share::{Outcome, Share};

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Where the verdict is written: a line "passed N", then "failed NAME" for each test that did
    #[arg(long)]
    verdict: PathBuf,

    /// Where seconds and names of tests are added, a line each
    #[arg(long)]
    times: PathBuf,

    /// How many test programs run at once [default: one for each CPU, and one more]
    #[arg(long)]
    jobs: Option<usize>,

    /// A script of tests to run beside the programs, which reports as test programs do; `SCRIPT '' NAME` repeats one test
    #[arg(long)]
    beside: Vec<String>,

    /// What `cargo test` is told
    #[arg(last = true)]
    cargo: Vec<String>,
}

/// What cargo says of something that it built.
#[derive(Debug, Deserialize)]
struct Artifact {
    manifest_path: Option<PathBuf>,
    executable: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

pub(crate) fn run(args: &TestArgs) -> Result<(), Error> {
    let mut shares: Vec<Share> = args.beside.iter().map(|script| Share::script(script)).collect();
    shares.extend(programs(&args.cargo)?);
    // Taken from the end.
    shares.reverse();
    // One waits at any time.
    let jobs = args.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from) + 1);
    let outcomes = side_by_side(shares, jobs);
    record_times(&args.times, &outcomes)?;
    let unsteady_or_failed: Vec<(String, bool)> = outcomes.iter().flat_map(Outcome::repeat).collect();
    report(args, &outcomes, &unsteady_or_failed)
}

/// Builds the test programs. They run in the reverse order of their names, except that those of whole servers come first:
/// the longest are among them, and none of the short ones is left to run alone at the end.
fn programs(arguments: &[String]) -> Result<Vec<Share>, Error> {
    const COMMAND: &str = "cargo test --no-run";
    let mut cargo = Command::new(cargo())
        .args(["test", "--no-run", "--message-format=json-render-diagnostics"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Error::Start(COMMAND, error))?;
    let lines = BufReader::new(cargo.stdout.take().expect("stdout is piped")).lines();
    let mut found: Vec<Share> = lines
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_str::<Artifact>(&line).ok())
        .filter_map(program)
        .collect();
    if !cargo.wait().is_ok_and(|status| status.success()) {
        return Err(Error::Command(COMMAND));
    }
    found.sort_by(|one, other| {
        other.of_servers().cmp(&one.of_servers()).then_with(|| other.name().cmp(one.name()))
    });
    Ok(found)
}

/// The cargo that runs this, or that of the path: rustup's own puts the tool chain into the environment. Without it, crates that
/// name a tool chain of theirs would be built by that one.
fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn program(artifact: Artifact) -> Option<Share> {
    let package = artifact.manifest_path?.parent()?.to_owned();
    let is_test = artifact.profile.is_some_and(|profile| profile.test);
    let name = format!("{} {}", package.file_name()?.to_str()?, artifact.target?.name);
    is_test.then_some(Share::program(name, artifact.executable?, package))
}

fn side_by_side(shares: Vec<Share>, jobs: usize) -> Vec<Outcome> {
    let total = shares.len();
    let (open, outcomes) = (Mutex::new(shares), Mutex::new(Vec::with_capacity(total)));
    let next = || open.lock().expect("nothing panics with it").pop();
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(share) = next() {
                    let outcome = share.run();
                    let mut outcomes = outcomes.lock().expect("nothing panics with it");
                    outcomes.push(outcome);
                    outcomes[outcomes.len() - 1].show(outcomes.len(), total);
                }
            });
        }
    });
    outcomes.into_inner().expect("nothing panics with it")
}

fn record_times(path: &Path, outcomes: &[Outcome]) -> Result<(), Error> {
    let error = |source| Error::File { path: path.to_owned(), source };
    let mut file = OpenOptions::new().append(true).create(true).open(path).map_err(error)?;
    for (name, seconds) in outcomes.iter().flat_map(|outcome| &outcome.times) {
        writeln!(file, "{seconds:.3} {name}").map_err(error)?;
    }
    Ok(())
}

fn report(args: &TestArgs, outcomes: &[Outcome], repeated: &[(String, bool)]) -> Result<(), Error> {
    let unsteady: Vec<&str> =
        repeated.iter().filter(|(_, passes)| *passes).map(|(name, _)| name.as_str()).collect();
    let failed: Vec<&str> =
        repeated.iter().filter(|(_, passes)| !passes).map(|(name, _)| name.as_str()).collect();
    for name in &unsteady {
        println!("unsteady: {name} failed beside others and passed alone: find out why");
    }
    let passed = outcomes.iter().map(|outcome| outcome.passed).sum::<usize>() + unsteady.len();
    println!("{passed} tests passed, {} of them unsteady; {} failed", unsteady.len(), failed.len());
    let lines = failed.iter().map(|name| format!("failed {name}\n"));
    let verdict = std::iter::once(format!("passed {passed}\n")).chain(lines).collect::<String>();
    fs::write(&args.verdict, verdict).map_err(|source| Error::File { path: args.verdict.clone(), source })?;
    if failed.is_empty() { Ok(()) } else { Err(Error::Tests(failed.len())) }
}
