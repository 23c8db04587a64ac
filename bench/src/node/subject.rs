//! Turns a case into two measurable sides.

use std::path::PathBuf;

use hasten_evidence::report::Row;
use hasten_evidence::warning::Warning;
use tempfile::TempDir;

use super::Options;
use super::app::App;
use super::case::{NodeCase, Workload};
use super::error::NodeError;
use super::ghost::Ghosts;
use super::http::{AppWorkload, Pair, Request, Side, Turns};
use super::install::install;
use super::matrix::Paces;
use super::programs::Programs;
use super::recipe::Recipe;
use super::runtime::Runtime;
use super::tuning::Tuning;
use crate::affinity::Placement;
use crate::duel::Duel;
use crate::error::BenchError;
use crate::progress::Progress;
use crate::summary::row;

/// Starts in a round that starts programs: each takes a fraction of a second.
const STARTS: usize = 3;

/// Servers per side.
pub(super) const SERVERS: usize = 3;

pub(super) struct Preparation<'a> {
    pub(super) options: &'a Options,
    pub(super) runtime: &'a Runtime,
    pub(super) placement: &'a Placement,
    pub(super) stopped: &'a dyn Fn() -> bool,
}

pub(super) enum Prepared {
    Subject(Subject, Option<Warning>),
    /// Both sides would be the same, for a legitimate reason.
    NothingToMeasure(Warning),
}

pub(super) struct Subject {
    case: NodeCase,
    sides: Sides,
}

enum Sides {
    Programs(Box<Programs>),
    Servers(Box<Pair>),
}

impl Preparation<'_> {
    pub(super) fn prepare(&self, mut case: NodeCase) -> Result<Prepared, BenchError> {
        let app = App::of(case.workload);
        let directory = install(&app, &self.options.cache, self.runtime, self.stopped)?;
        let cache =
            tempfile::Builder::new().prefix("hasten-cache-").tempdir().map_err(BenchError::Directory)?;
        let (stock, hasten) = self.recipes(&case, &cache);
        match case.workload {
            Workload::FaasStartup | Workload::WebTooling => {
                self.programs(case, directory, stock, hasten.env("HASTEN_CACHE_DIR", cache.path()), cache)
            }
            Workload::ReactSsr | Workload::JsonApi => self.servers(case, directory, &stock, hasten, cache),
            Workload::GhostHttp | Workload::GhostHttps => {
                let ghosts = Ghosts {
                    workload: case.workload,
                    directory: &directory,
                    hasten: &self.options.hasten,
                    placement: self.placement,
                    version: self.runtime.version,
                    trace: self.options.paces.ghost.warm_up,
                    stopped: self.stopped,
                };
                let (mut pair, advice) = ghosts.start(&stock, &hasten)?;
                case.advice = advice;
                pair._directories.push(cache);
                Ok(self.subject(case, pair))
            }
        }
    }

    /// How both sides start Node.js; options from the advice are added later.
    fn recipes(&self, case: &NodeCase, cache: &TempDir) -> (Recipe, Recipe) {
        let stock = Recipe::stock(&self.runtime.path);
        let accelerated = || stock.clone().accelerated(&self.options.hasten, cache.path());
        let option = |option: &str| stock.clone().options(&[option.to_owned()]);
        let hasten = match case.tuning {
            None => accelerated(),
            Some(Tuning::BytecodeCache) => accelerated().env("HASTEN_ONLY", "node"),
            Some(Tuning::SemiSpace64) => option("--max-semi-space-size=64"),
            Some(Tuning::HugePages) => option("--use-largepages=on"),
            Some(Tuning::Cpuset) => stock.clone().cpu(self.placement.server),
            Some(Tuning::SemiSpace | Tuning::ShortBuiltinCalls | Tuning::MainThreadAffinity) => stock.clone(),
        };
        let stock = match case.tuning {
            Some(Tuning::ShortBuiltinCalls) => stock.flag("--no-short-builtin-calls"),
            _ => stock,
        };
        (stock, hasten)
    }

    fn programs(
        &self,
        case: NodeCase,
        directory: PathBuf,
        stock: Recipe,
        hasten: Recipe,
        scratch: TempDir,
    ) -> Result<Prepared, BenchError> {
        let tooling = case.workload == Workload::WebTooling;
        let (arguments, expected) = match (tooling, self.options.paces.short) {
            (true, true) => (vec!["short"], "ok 9\n"),
            (true, false) => (Vec::new(), "ok 18\n"),
            (false, _) => (Vec::new(), "ok 3\n"),
        };
        let count = if tooling { 1 } else { STARTS };
        let programs = Programs { stock, hasten, directory, arguments, expected, count, scratch };
        let accelerated = !uses_plugin(&case) || programs.record(self.stopped)?;
        let warning = (!accelerated).then(not_accelerated);
        Ok(Prepared::Subject(Subject { case, sides: Sides::Programs(Box::new(programs)) }, warning))
    }

    fn servers(
        &self,
        mut case: NodeCase,
        directory: PathBuf,
        stock: &Recipe,
        hasten: Recipe,
        cache: TempDir,
    ) -> Result<Prepared, BenchError> {
        let app = AppWorkload { workload: case.workload, directory, version: self.runtime.version };
        if matches!(case.tuning, None | Some(Tuning::SemiSpace)) {
            case.advice = app.advice(&hasten, self.options.paces.trace, self.placement, self.stopped)?;
        }
        if case.tuning == Some(Tuning::SemiSpace) && case.advice.is_empty() {
            let what = format!("semi-space for {} on Node.js {}", case.workload, case.node);
            let why = "the advice for a trace of this load is to leave it as it is".to_owned();
            return Ok(Prepared::NothingToMeasure(Warning::Missing { what, why }));
        }
        let start = |recipe: &Recipe| -> Result<Turns, BenchError> {
            let start = |_| Ok(Side { app: app.start(recipe, self.stopped)?, front: None });
            (0..SERVERS).map(start).collect::<Result<_, _>>().map(Turns::new)
        };
        let stock = start(stock)?;
        let content = app.content(&stock.all()[0].app)?;
        let hasten = start(&hasten.options(&case.advice))?;
        if case.tuning == Some(Tuning::MainThreadAffinity) {
            let cpu = self.placement.server.unwrap_or_default();
            for side in hasten.all() {
                side.app.pin_main_thread(cpu).map_err(NodeError::Wait)?;
            }
        }
        let pair = Pair {
            stock,
            hasten,
            request: Request::Plain { path: app.path(), content },
            concurrency: app.concurrency(),
            driver_cpus: self.placement.driver.clone(),
            _database: None,
            _directories: vec![cache],
        };
        Ok(self.subject(case, pair))
    }

    fn subject(&self, case: NodeCase, pair: Pair) -> Prepared {
        let accelerated = !uses_plugin(&case) || pair.hasten.all().iter().all(|side| side.app.has_plugin());
        let warning = (!accelerated).then(not_accelerated);
        Prepared::Subject(Subject { case, sides: Sides::Servers(Box::new(pair)) }, warning)
    }
}

impl Subject {
    /// `None` if the user interrupted.
    pub(super) fn row(
        self,
        paces: &Paces,
        progress: &Progress,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Row<NodeCase>>, BenchError> {
        let pace = paces.of(self.case.workload);
        let measured = match self.sides {
            Sides::Programs(programs) => {
                let duel = Duel { pace, progress, stopped, driver_threads: 0 };
                duel.measure(|which| programs.round(which, stopped))?
            }
            Sides::Servers(mut pair) => {
                pair.warm_up(pace.warm_up)?;
                let duel = Duel { pace, progress, stopped, driver_threads: pair.driver_threads() };
                duel.measure(|which| pair.round(which, pace.round))?
            }
        };
        Ok(measured.map(|measured| row(self.case, measured)))
    }
}

/// Whether the second side demonstrates the plugin.
fn uses_plugin(case: &NodeCase) -> bool {
    matches!(case.tuning, None | Some(Tuning::BytecodeCache))
}

/// Two equal sides are not an error, but the reader must know.
fn not_accelerated() -> Warning {
    Warning::NotAccelerated { server: "node".to_owned() }
}
