//! Installs what a workload runs: once per lock, in the cache folder, without any package's install scripts.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use indicatif::ProgressBar;
use serde_json::Value;
use tempfile::TempDir;

use super::app::App;
use super::error::NodeError;
use super::runtime::{self, Runtime};
use crate::progress::{can_redraw, say};
use crate::wait::wait;

/// Ghost's half a gigabyte over a slow line.
const LIMIT: Duration = Duration::from_secs(20 * 60);

const NPM: [&str; 5] = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"];

/// The folder of `app` below `cache`, installed if it is not there yet.
pub fn install(
    app: &App,
    cache: &Path,
    runtime: &Runtime,
    stopped: &dyn Fn() -> bool,
) -> Result<PathBuf, NodeError> {
    let parent = cache.join("bench/node");
    let folder = parent.join(app.folder());
    if folder.is_dir() {
        return Ok(folder);
    }
    let unusable = |source| NodeError::Cache { path: parent.clone(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(&parent).map_err(unusable)?;
    // Nobody sees half an installation, and two at the same time do not collide.
    let unfinished = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(&parent).map_err(unusable)?;
    let installation =
        Installation { app, runtime, unfinished, stopped, progress: Progress::start(app, &folder) };
    let made = installation.make()?;
    match fs::rename(&made, &folder) {
        Ok(()) => Ok(folder),
        // Another process was quicker.
        Err(_) if folder.is_dir() => Ok(folder),
        Err(source) => Err(unusable(source)),
    }
}

struct Installation<'a> {
    app: &'a App,
    runtime: &'a Runtime,
    unfinished: TempDir,
    stopped: &'a dyn Fn() -> bool,
    progress: Progress,
}

impl Installation<'_> {
    /// Everything that belongs in the folder, in a separate place.
    fn make(&self) -> Result<PathBuf, NodeError> {
        let folder = match self.app.package {
            Some((package, checksum)) => self.unpack(package, checksum)?,
            None => self.unfinished.path().join("app"),
        };
        let failed = |error: io::Error| self.failed(error.to_string());
        fs::create_dir_all(&folder).map_err(failed)?;
        for (name, content) in self.app.files {
            fs::write(folder.join(name), content).map_err(failed)?;
        }
        let mut npm = self.npm()?;
        npm.arg("ci").args(NPM);
        if self.app.package.is_some() {
            npm.args(["--omit=dev", "--legacy-peer-deps"]);
        }
        self.run("npm ci", npm.current_dir(&folder))?;
        if let Some(script) = self.app.build {
            self.run(script, Command::new(&self.runtime.path).arg(script).current_dir(&folder))?;
        }
        Ok(folder)
    }

    /// A package whose dependencies can only be installed from inside it.
    fn unpack(&self, package: &str, checksum: &str) -> Result<PathBuf, NodeError> {
        let place = self.unfinished.path();
        let answer =
            self.run("npm pack", self.npm()?.args(["pack", package, "--json"]).current_dir(place))?;
        let answer: Value = serde_json::from_str(&answer).map_err(|error| self.failed(error.to_string()))?;
        let (file, found) = (answer[0]["filename"].as_str(), answer[0]["integrity"].as_str());
        let file = file.ok_or_else(|| self.failed(format!("`npm pack {package}` names no file")))?;
        if found != Some(checksum) {
            return Err(self.failed(format!("{package} has the checksum {found:?} instead of {checksum}")));
        }
        self.run("tar", Command::new("tar").args(["-xzf", file]).current_dir(place))?;
        let folder = place.join("package");
        // `npm ci` compares it with the lock, and the lock omits what only the package's developers need.
        let path = folder.join("package.json");
        let without_development = || {
            let mut about: Value = serde_json::from_slice(&fs::read(&path)?)?;
            about.as_object_mut().and_then(|about| about.remove("devDependencies"));
            fs::write(&path, about.to_string())
        };
        without_development().map_err(|error| self.failed(error.to_string()))?;
        Ok(folder)
    }

    fn npm(&self) -> Result<Command, NodeError> {
        Ok(Command::new(runtime::npm()?))
    }

    /// The standard output of `command`, if it succeeds.
    fn run(&self, step: &str, command: &mut Command) -> Result<String, NodeError> {
        self.progress.step(step);
        let failed = |error: io::Error| self.failed(format!("{step}: {error}"));
        let said = self.unfinished.path().join("said");
        let complaints = self.unfinished.path().join("complaints");
        command
            .env_remove("NODE_OPTIONS")
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::null())
            .stdout(File::create(&said).map_err(failed)?)
            .stderr(File::create(&complaints).map_err(failed)?)
            .process_group(0);
        let mut child = command.spawn().map_err(failed)?;
        let ended = wait(&mut child, LIMIT, self.stopped).map_err(failed)?;
        match ended {
            None if (self.stopped)() => Err(NodeError::Stopped),
            None => Err(self.failed(format!("{step} takes too long"))),
            Some(ended) if ended.status.success() => fs::read_to_string(&said).map_err(failed),
            Some(ended) => {
                let complaints = fs::read_to_string(&complaints).unwrap_or_default();
                let why = complaints.lines().find(|line| line.contains("ERR!") || line.contains("Error"));
                Err(self.failed(format!(
                    "{step} ended with {}: {}",
                    ended.status,
                    why.unwrap_or("it does not say why")
                )))
            }
        }
    }

    fn failed(&self, why: String) -> NodeError {
        NodeError::Install { what: self.app.name.to_owned(), why }
    }
}

/// A line that is updated on a terminal, and printed once elsewhere.
struct Progress {
    name: &'static str,
    bar: Option<ProgressBar>,
}

impl Progress {
    fn start(app: &App, folder: &Path) -> Self {
        say(&format!("Installing what {} runs, once, in {}", app.name, folder.display()));
        let bar = can_redraw().then(ProgressBar::new_spinner);
        if let Some(bar) = &bar {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { name: app.name, bar }
    }

    fn step(&self, step: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}: {step}", self.name));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
