//! `hasten engine disable` and `enable`.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hasten_telemetry::{BreakerState, ControlError, Engine, PageError, PageHandle, Snapshot};

use super::programs::{Found, Program, find};
use super::{EngineError, SwitchArgs, Wanted, print};
use crate::denied;
use crate::render::say;

const POLL: Duration = Duration::from_millis(20);

pub(super) fn run(args: &SwitchArgs, disable: bool) -> Result<ExitCode, EngineError> {
    let Found { programs, denied } = find(args.pid)?;
    let has = engines_of(&programs);
    let (mut switched, mut problems) = (Vec::new(), Vec::new());
    for program in programs {
        let title = program.title();
        let Program { page, snapshot } = program;
        match snapshot.map_err(Problem::Page).and_then(|snapshot| switch(page, snapshot, args.name, disable))
        {
            Ok(one) if one.engines.is_empty() => {}
            Ok(one) => switched.push(one),
            Err(problem) => problems.push((title, problem)),
        }
    }
    if switched.is_empty() && problems.is_empty() {
        return Err(nowhere(args, denied, has));
    }
    wait(&mut switched, disable, args.wait);
    let mut text: String = switched.iter().map(|one| one.outcome(disable) + "\n").collect();
    if disable && !switched.is_empty() {
        let name = args.name.as_str();
        text += &format!(
            "Put it back with `hasten engine enable {name}`; a restart of the program does so, too.\n"
        );
    }
    print(&text)?;
    for (title, problem) in &problems {
        say(format!("hasten: {title}: {problem}\n  fix: {}", problem.fix()));
    }
    if denied > 0 {
        say(format!("hasten: this may not be all{}: {}", denied::note(denied), denied::CURE));
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A program in which something was switched.
struct Switched {
    program: Program,
    engines: Vec<Engine>,
}

/// Why a program could not be switched.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Page(PageError),
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl Problem {
    fn fix(&self) -> String {
        match self {
            Self::Page(error) => error.fix().to_owned(),
            Self::Control(error) => error.fix(),
        }
    }
}

/// Switches those of the engines that the program has.
fn switch(page: PageHandle, snapshot: Snapshot, wanted: Wanted, disable: bool) -> Result<Switched, Problem> {
    let has = snapshot.engines.iter().map(|info| info.engine);
    let engines: Vec<Engine> = has.filter(|engine| wanted.includes(*engine)).collect();
    let is_older = snapshot.engines.is_empty() && snapshot.control.is_none();
    if is_older || !engines.is_empty() {
        let control = page.control(&snapshot)?;
        for engine in &engines {
            control.set_disabled(*engine, disable).map_err(ControlError::Io)?;
        }
    }
    Ok(Switched { program: Program { page, snapshot: Ok(snapshot) }, engines })
}

/// Gives busy processes time to notice.
fn wait(switched: &mut [Switched], disable: bool, limit: Duration) {
    let deadline = Instant::now() + limit;
    loop {
        for one in &mut *switched {
            one.program.snapshot = one.program.page.read();
        }
        let all = switched.iter().all(|one| one.seen(disable).pending.is_empty());
        if all || Instant::now() >= deadline {
            return;
        }
        sleep(POLL);
    }
}

/// Which processes have noticed the change.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    done: usize,
    /// They used the engine before, and have not since.
    pending: Vec<u32>,
}

impl Switched {
    fn seen(&self, disable: bool) -> Seen {
        let mut seen = Seen::default();
        for process in &self.program.page.processes {
            let mut states = self
                .engines
                .iter()
                .flat_map(|engine| self.program.reports(*engine))
                .filter(|(reporter, _)| reporter == process)
                .map(|(_, report)| (report.state == BreakerState::Disabled) == disable)
                .peekable();
            if states.peek().is_none() {
                continue;
            }
            match states.all(|taken| taken) {
                true => seen.done += 1,
                false => seen.pending.push(process.pid),
            }
        }
        seen
    }

    fn outcome(&self, disable: bool) -> String {
        let names: Vec<&str> = self.engines.iter().map(|engine| engine.as_str()).collect();
        let Seen { done, pending } = self.seen(disable);
        let unused = self.program.page.processes.len() - done - pending.len();
        let mut parts = Vec::new();
        if done > 0 {
            parts.push(format!("{} {} seen it", processes(done), if done == 1 { "has" } else { "have" }));
        }
        if !pending.is_empty() {
            let pids: Vec<String> = pending.iter().map(u32::to_string).collect();
            parts.push(format!(
                "{} idle and will see it with the next operation ({})",
                if pending.len() == 1 {
                    "1 process is".to_owned()
                } else {
                    format!("{} processes are", pending.len())
                },
                pids.join(", ")
            ));
        }
        if unused > 0 {
            parts.push(format!(
                "{} {} not used it so far",
                processes(unused),
                if unused == 1 { "has" } else { "have" }
            ));
        }
        let what = if disable { "disabled" } else { "enabled" };
        format!("{}: {} {what}; {}", self.program.title(), names.join(", "), parts.join(", "))
    }
}

fn processes(count: usize) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

/// All existing engines, in page order.
fn engines_of(programs: &[Program]) -> Vec<&'static str> {
    let snapshots = || programs.iter().filter_map(Program::snapshot);
    let has = |engine: &Engine| snapshots().any(|snapshot| snapshot.engine(*engine).is_some());
    Engine::ALL.into_iter().filter(has).map(Engine::as_str).collect()
}

fn nowhere(args: &SwitchArgs, denied: usize, has: Vec<&'static str>) -> EngineError {
    let engine = args.name.as_str();
    match args.pid {
        Some(pid) => {
            let program = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            EngineError::NotThere { program: program.trim().to_owned(), pid, engine, has }
        }
        None => EngineError::Nowhere { engine, denied, has },
    }
}
