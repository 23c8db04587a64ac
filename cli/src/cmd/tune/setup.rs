//! Turns the command line into everything that a session needs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hasten_tune::journal::{Held, Journal, System};
use hasten_tune::keeper;
use hasten_tune::knob::{self, Choices, Custom, CustomError, Facts, Knob};
use hasten_tune::load::{Load, Target};
use hasten_tune::objective::{Constraints, Objective};
use hasten_tune::report::Suggestion;
use hasten_tune::service::{Launch, Limits, Readiness, SEARCH_PATH, ServiceError, Unit, UnitError};
use hasten_tune::session::{self, Findings, Halt, RecordError, Settings};
use hasten_tune::space::Space;
use hasten_tune::trial::{Checks, TrialError, Trials};

use super::{TuneArgs, output};
use crate::failure::{Failure, own_program};
use crate::render::say;

/// A run of a load tool that takes longer counts as hung.
const LOAD_LIMIT: Duration = Duration::from_secs(600);

pub(super) const BUDGET: Duration = Duration::from_secs(15 * 60);

/// A session that is ready to begin.
pub(super) struct Setup {
    pub(super) launch: Launch,
    pub(super) choices: Choices,
    pub(super) suggestions: Vec<Suggestion>,
    pub(super) space: Space,
    pub(super) settings: Settings,
    pub(super) load: Load,
    readiness: Readiness,
    pages: Vec<Target>,
    limits: Limits,
    warm_up: Option<Duration>,
    unit: Option<Unit>,
}

/// The knobs of the registry and of the user, and those left to the user.
pub(super) struct Knobs {
    launch: Launch,
    unit: Option<Unit>,
    /// Listing knobs does not need one.
    load: Option<Load>,
    pub(super) choices: Choices,
    suggestions: Vec<Suggestion>,
}

impl Setup {
    pub(super) fn new(args: &TuneArgs, seed: u64) -> Result<Self, Failure> {
        let settings = settings(args, seed)?;
        let Knobs { launch, unit, load, choices, suggestions } = knobs(args)?;
        if choices.knobs.is_empty() {
            return Err(Failure::new(
                "there is nothing to try for this command",
                "see why with --list-knobs, or give a knob of your own: --knob 'pool=env:POOL_SIZE=4,16'",
            ));
        }
        let load = load.map_or_else(|| self::load(args), Ok)?;
        load.is_installed().map_err(|error| Failure::missing(error.to_string(), error.fix()))?;
        must_fit(&load, settings.budget)?;
        Ok(Self {
            launch,
            space: choices.space(),
            choices,
            suggestions,
            settings,
            readiness: readiness(args, &load)?,
            pages: pages(args, &load)?,
            load,
            limits: Limits { start: args.ready_timeout, ..Limits::default() },
            warm_up: args.warm_up,
            unit,
        })
    }

    /// From here on, everything started is ended even after `kill -9`.
    pub(super) fn keep(&self) {
        if let Err(error) = keeper::start(&self.launch.hasten) {
            say(format!(
                "cannot start a second process to clean up after kill -9 ({error}); the next hasten command would do it"
            ));
        }
    }

    /// Stops a running unit for the duration, if that is allowed; it is started again when the result is dropped.
    pub(super) fn take_over(&self, allow_system: bool) -> Result<Option<Held>, Failure> {
        let Some(unit) = &self.unit else { return Ok(None) };
        for setting in &unit.left_out {
            say(format!("{}: {setting}= is not applied here", unit.name));
        }
        let journal = Journal::open().map_err(|error| {
            Failure::new(
                format!("cannot note that {} has to be started again: {error}", unit.name),
                "see that the runtime folder can be written to (HASTEN_RUNTIME_DIR)",
            )
        })?;
        unit.take_over(&System::default(), &journal, allow_system).map_err(|error| unit_failure(&error))
    }

    /// How the unit would start the service with a profile.
    pub(super) fn drop_in(&self, run: &str) -> Option<String> {
        let unit = self.unit.as_ref()?;
        Some(format!(
            "systemctl edit {}, with [Service], ExecStart= and, below it, ExecStart={run}",
            unit.name
        ))
    }

    pub(super) fn subject<'a>(&'a self, logs: &Path, stop: &'a AtomicBool) -> Result<Trials<'a>, Failure> {
        Ok(Trials {
            launch: self.launch.clone(),
            choices: &self.choices,
            readiness: self.readiness.clone(),
            limits: self.limits,
            load: &self.load,
            load_limit: LOAD_LIMIT.min(self.settings.budget),
            warm_up: self.warm_up,
            budget: self.settings.budget,
            folder: absolute(logs),
            stop,
            checks: Checks::of(self.pages.clone()),
        })
    }
}

pub(super) fn knobs(args: &TuneArgs) -> Result<Knobs, Failure> {
    let (unit, mut launch) = launch(args)?;
    launch.journal = Journal::open().ok();
    let load = (args.load.is_some() || args.url.is_some()).then(|| load(args)).transpose()?;
    let mut facts = Facts::of(&launch, args.allow_system)?;
    facts.tls_load = load.as_ref().and_then(Load::uses_tls);
    let mut choices = Choices::of(&facts, custom(args)?);
    choose(args, &mut choices)?;
    let suggestions = knob::suggest(&facts).into_iter().map(suggestion).collect();
    Ok(Knobs { launch, unit, load, choices, suggestions })
}

fn launch(args: &TuneArgs) -> Result<(Option<Unit>, Launch), Failure> {
    let Some(name) = &args.unit else {
        if args.command.is_empty() {
            return Err(Failure::usage(
                "no command is given to tune",
                "hasten tune --url http://127.0.0.1:3000/ -- node app.js",
            ));
        }
        return Ok((None, Launch::new(args.command.iter().map(OsString::from).collect(), own_program()?)));
    };
    let failure = |error: UnitError| unit_failure(&error);
    let unit = Unit::read(name, &SEARCH_PATH.map(PathBuf::from)).map_err(failure)?;
    let launch = unit.launch(own_program()?).map_err(failure)?;
    Ok((Some(unit), launch))
}

/// Refuses a load that is too long for the budget before starting anything for it; if its command does not reveal its
/// length, the first measurement does.
fn must_fit(load: &Load, budget: Duration) -> Result<(), Failure> {
    let Some(seconds) = load.seconds() else { return Ok(()) };
    let least = session::shortest(seconds);
    if least <= budget {
        return Ok(());
    }
    // Starts and warm-ups take time, too.
    let enough = output::minutes(1.5 * least.as_secs_f64() + 60.0);
    Err(Failure::new(
        format!(
            "one run of the load takes {seconds} s, so {:.0} s are too short for a proof, which needs {} of them",
            budget.as_secs_f64(),
            session::LEAST_ROOM
        ),
        format!("give --budget {enough}, or a load that runs for a shorter time"),
    ))
}

fn unit_failure(error: &UnitError) -> Failure {
    Failure::new(error.to_string(), error.fix())
}

fn suggestion(suggestion: knob::Suggestion) -> Suggestion {
    let knob::Suggestion { text, why, file, line } = suggestion;
    Suggestion { text, why, file, line }
}

fn custom(args: &TuneArgs) -> Result<Vec<Custom>, Failure> {
    let mut custom: Vec<(String, Custom)> = Vec::new();
    for text in &args.knob {
        let knob: Custom = text.parse().map_err(|error: CustomError| {
            Failure::usage(error.to_string(), "--knob 'pool=env:POOL_SIZE=4,16'")
        })?;
        let name = knob.name().to_owned();
        if custom.iter().any(|(known, _)| *known == name) {
            return Err(Failure::usage(
                format!("there are two knobs named `{name}`"),
                "give each --knob a name of its own",
            ));
        }
        custom.push((name, knob));
    }
    Ok(custom.into_iter().map(|(_, knob)| knob).collect())
}

/// `--only` and `--without`; an unknown name is a mistake.
fn choose(args: &TuneArgs, choices: &mut Choices) -> Result<(), Failure> {
    let known: Vec<String> = choices
        .knobs
        .iter()
        .map(|choice| choice.knob.name().to_owned())
        .chain(choices.left_out.iter().map(|left_out| left_out.name.clone()))
        .collect();
    for name in args.only.iter().flatten().chain(&args.without) {
        if !known.contains(name) {
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let fix = hasten_plan::suggestion(name, &names);
            return Err(Failure::usage(
                format!("no knob is named `{name}`"),
                format!("{fix}; see --list-knobs"),
            ));
        }
    }
    if let Some(only) = &args.only {
        // The user's own knobs are requested by being given.
        let own = |name: &str| args.knob.iter().any(|text| text.split('=').next() == Some(name));
        choices.retain(|name| only.iter().any(|known| known == name) || own(name), "--only does not name it");
    }
    choices.retain(|name| !args.without.iter().any(|known| known == name), "left out with --without");
    Ok(())
}

fn settings(args: &TuneArgs, seed: u64) -> Result<Settings, Failure> {
    let objective: Objective =
        args.objective.parse().map_err(|error: hasten_tune::objective::ObjectiveError| {
            Failure::usage(
                error.to_string(),
                "--objective cpu, throughput, p99, memory, or such as 'cpu_us * rss_mb'",
            )
        })?;
    Ok(Settings {
        budget: args.budget.unwrap_or(BUDGET),
        effect: args.effect,
        seed,
        objective,
        constraints: Constraints {
            max_rss_bytes: args.max_rss,
            max_p99_ms: args.max_p99,
            max_growth: Some(args.max_bytes).filter(|limit| limit.is_finite()),
        },
    })
}

fn load(args: &TuneArgs) -> Result<Load, Failure> {
    let failure = |error: hasten_tune::load::LoadError| {
        Failure::usage(
            error.to_string(),
            "hasten tune --load 'wrk -t1 -c64 -d5s http://127.0.0.1:3000/' -- …",
        )
    };
    match (&args.load, &args.url) {
        (Some(load), _) => Load::parse(load, args.metric_regex.as_deref()).map_err(failure),
        (None, Some(url)) => Load::builtin(url, args.connections, args.duration)
            .map_err(|error| Failure::usage(error.to_string(), "write --url http://127.0.0.1:3000/")),
        (None, None) => Err(Failure::usage(
            "there is no load to measure the service under",
            "give --url http://127.0.0.1:3000/ or --load 'wrk -t1 -c64 -d5s http://127.0.0.1:3000/'",
        )),
    }
}

/// The pages whose answers are compared: the load's, and the user's.
fn pages(args: &TuneArgs, load: &Load) -> Result<Vec<Target>, Failure> {
    let mut pages = load.targets();
    if let Some(url) = &args.url {
        let target = Target::new(url)
            .map_err(|error| Failure::usage(error.to_string(), "write --url http://127.0.0.1:3000/"))?;
        if pages.iter().all(|known| known.to_string() != target.to_string()) {
            pages.push(target);
        }
    }
    Ok(pages)
}

/// The user's choice, or the page that the load requests, or any port.
fn readiness(args: &TuneArgs, load: &Load) -> Result<Readiness, Failure> {
    let failure = |error: ServiceError| Failure::usage(error.to_string(), error.fix());
    let page = args.url.clone().or_else(|| load.targets().first().map(ToString::to_string));
    let by_page =
        page.map_or_else(|| Ok(Readiness::listening()), |url| Readiness::url(&url).map_err(failure));
    match args.ready.as_deref() {
        Some(ready) if ready.starts_with("http://") || ready.starts_with("https://") => {
            Readiness::url(ready).map_err(failure)
        }
        Some(command) => Ok(by_page?.command(command)),
        None => by_page,
    }
}

pub(super) fn seed_of_the_time() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Short enough to be typed.
    (now.as_nanos() % 1_000_000) as u64
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

pub(super) fn record_failure(error: &RecordError) -> Failure {
    let fix = match error {
        RecordError::Write { .. } => "choose another directory with --out",
        RecordError::Read { .. } => {
            "name the directory that an earlier session wrote to: --resume hasten-tune; a session that was stopped \
             before its first measurement wrote none, so begin a new one without --resume"
        }
        RecordError::Format { .. } | RecordError::Diverged { .. } => "begin a new session, without --resume",
    };
    Failure::new(error.to_string(), fix)
}

pub(super) fn failure_of(halt: Halt<TrialError>, findings: &Findings, again: &str) -> Failure {
    let what = halt.to_string();
    match halt {
        Halt::Stopped(error) => Failure::new(error.to_string(), error.fix()),
        Halt::Record(error) => record_failure(&error),
        Halt::NoCost(_) => Failure::new(what, "choose another --objective, or a load that tells more"),
        Halt::TooShort { .. } => {
            Failure::new(what, format!("give it more time: {again}; or begin a session with a shorter load"))
        }
        Halt::Baseline(_) if findings.trials.len() <= 3 => Failure::new(
            what,
            "start the service and the load by hand, and see that all requests are answered",
        ),
        Halt::Baseline(_) | Halt::OutOfTime => {
            Failure::new(what, "the session is kept: put the service right, then go on with --resume")
        }
    }
}
