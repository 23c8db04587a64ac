//! The program `tests/preload/loops.c`, which plays a schedule in its own process, or several in a series, which saves
//! starting a program and reading keys for each.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use hasten_telemetry::{Event, PAGE_NAME, Snapshot};
use hasten_tests::product;
use hasten_tests::program::{Program, Run, Variables, preload, without_library};
use tempfile::TempDir;

/// The program, and the location of its keys: made once, since an RSA key takes longer than a schedule.
#[derive(Debug)]
pub(crate) struct Loops {
    program: Program,
    keys: TempDir,
}

/// The terms of all schedules of a test: how many connections a round has, and a list of habits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) connections: usize,
    pub(crate) habits: &'a str,
}

/// The results of a schedule.
#[derive(Debug, Default)]
pub(crate) struct Played {
    /// The part that must not depend on the library. It includes how the process ended.
    pub(crate) output: Vec<String>,
    /// The habits that were exercised.
    pub(crate) habits: Vec<String>,
    pub(crate) suspended: u64,
    errors: String,
}

/// A process that plays seeds, each in a separate child.
#[derive(Debug)]
pub(crate) struct Series {
    child: Child,
    seeds: ChildStdin,
    output: BufReader<ChildStdout>,
    errors: File,
}

pub(crate) fn loops() -> &'static Loops {
    static LOOPS: OnceLock<Loops> = OnceLock::new();
    LOOPS.get_or_init(|| {
        let keys = tempfile::Builder::new().prefix("hasten-loops-").tempdir().expect("a directory for keys");
        let program = Program::named("loops");
        let _ = program.stock(&["keys", &keys.path().display().to_string()]).succeeded();
        Loops { program, keys }
    })
}

impl Loops {
    /// The name of every habit.
    pub(crate) fn habits(&self) -> Vec<String> {
        self.program.stock(&["habits", "."]).succeeded().output
    }

    /// Plays it in a process of its own; without variables, without the library.
    pub(crate) fn play(&self, seed: u64, terms: Terms, variables: Option<Variables>) -> Played {
        let arguments = self.arguments(&seed.to_string(), terms);
        let arguments = arguments.each_ref().map(String::as_str);
        match variables {
            None => self.program.stock(&arguments).into(),
            Some(variables) => self.program.preloaded(&arguments, variables).into(),
        }
    }

    pub(crate) fn series(&self, terms: Terms, variables: Option<Variables>) -> Series {
        let mut command = Command::new(self.program.path());
        command.args(self.arguments("series", terms));
        match variables {
            None => without_library(&mut command),
            Some(variables) => preload(&mut command, variables),
        }
        let errors = tempfile::tempfile().expect("a file for messages");
        let stderr = errors.try_clone().expect("a second descriptor");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let seeds = child.stdin.take().expect("stdin is a pipe");
        let output = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        Series { child, seeds, output, errors }
    }

    fn arguments(&self, what: &str, Terms { connections, habits }: Terms) -> [String; 4] {
        [what.to_owned(), self.keys.path().display().to_string(), connections.to_string(), habits.to_owned()]
    }

    /// The differences, and the commands that reproduce them: in a process of its own, and in a series.
    pub(crate) fn report(
        &self,
        seed: u64,
        Terms { connections, habits }: Terms,
        variables: Variables,
        [expected, outcome]: [&Played; 2],
    ) -> String {
        let program = self.program.path().display();
        let variables: Vec<_> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let differing = outcome.output.iter().filter(|line| !expected.output.contains(line));
        format!(
            "seed {seed}: {} of {} lines{}\n{}replay: {program} keys /tmp </dev/null; export LD_PRELOAD={} {}; \
             {program} {seed} /tmp {connections} '{habits}' </dev/null; echo {seed} | {program} series /tmp \
             {connections} '{habits}'",
            outcome.output.len(),
            expected.output.len(),
            differing.take(6).map(|line| format!("\n  {line}")).collect::<String>(),
            outcome.errors.lines().take(30).map(|line| format!("  {line}\n")).collect::<String>(),
            product::library().display(),
            variables.join(" "),
        )
    }
}

impl Played {
    /// Parses the lines that it printed.
    fn of(lines: Vec<String>, suspended: u64, errors: String) -> Self {
        let mut played = Self { suspended, errors, ..Self::default() };
        for line in lines {
            match line.strip_prefix("habits:") {
                Some(habits) => played.habits = habits.split_whitespace().map(str::to_owned).collect(),
                None => played.output.push(line),
            }
        }
        played
    }
}

impl From<Run> for Played {
    fn from(mut run: Run) -> Self {
        run.output.push(run.status.to_string());
        Self::of(run.output, run.counters[Event::Suspended], run.errors)
    }
}

impl Series {
    pub(crate) fn play(&mut self, seed: u64) -> Played {
        let before = self.errors.metadata().expect("an open file").len();
        writeln!(self.seeds, "{seed}").expect("the series goes on");
        let (mut lines, mut suspended) = (Vec::new(), 0);
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).is_ok_and(|length| length > 0), "the series has ended");
            let line = line.trim_end();
            if let Some(process) = line.strip_prefix("done ") {
                suspended = suspensions_of(process);
                // It may have been killed meanwhile: then the next line says so.
                let _ = writeln!(self.seeds);
                continue;
            }
            if line == "end" {
                return Played::of(lines, suspended, self.errors_since(before));
            }
            lines.push(line.to_owned());
        }
    }

    fn errors_since(&self, offset: u64) -> String {
        let length = self.errors.metadata().expect("an open file").len() - offset;
        let mut text = vec![0; usize::try_from(length.min(4096)).expect("a few bytes")];
        self.errors.read_exact_at(&mut text, offset).expect("a readable file");
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Drop for Series {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Read from the page that it has mapped, since searching all processes of the host would take longer than a schedule.
/// A process without a page has not suspended anything.
fn suspensions_of(process: &str) -> u64 {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let name = PAGE_NAME.to_str().expect("a name of ASCII");
    let Some(mapping) = maps.lines().find(|line| line.contains(name)) else { return 0 };
    let range = mapping.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
    let [start, end] =
        [range.0, range.1].map(|text| u64::from_str_radix(text, 16).expect("a hexadecimal number"));
    let mut page = vec![0; usize::try_from(end - start).expect("a page")];
    let memory = File::open(format!("/proc/{process}/mem")).expect("the memory of a child");
    memory.read_exact_at(&mut page, start).expect("a mapped page");
    Snapshot::parse(&page).expect("a counter page").total()[Event::Suspended]
}
