//! `hasten check`: what this host offers, and what would be done to a program.

mod envoy;
mod node;
mod running;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use comfy_table::{Cell, Color};
use hasten_plan::findings::{Finding, Group, State, findings};
use hasten_plan::hooks::{self, Binding};
use hasten_plan::{Plan, Surroundings, Verdict, host_verdicts};
use hasten_probe::host::kernel::Kernel;
use hasten_probe::program::{Libc, Linkage};
use hasten_probe::{Cpu, Environment, Host, Probe, Program};
use serde::Serialize;

use self::envoy::EnvoyReport;
use self::node::NodeReport;
use self::running::Running;
use crate::choice::Choice;
use crate::failure::Failure;
use crate::output::print;
use crate::render::{self, Style};

/// Changes only when a name is removed or changes its meaning.
const SCHEMA: u32 = 1;

const EXAMPLES: &str = "\
Examples:
  hasten check                        what this host offers
  hasten check -- nginx               what would be done to nginx, and why
  hasten check --hooks -- nginx       the same, with every hook that it would use
  hasten check -- node                the same for Node.js, and which tunings it can have
  hasten check -- envoy -c FILE       the same for Envoy, and what its configuration could do better
  hasten check --json | jq '.features[] | select(.state != \"available\")'
";

/// Show what this host offers, and what would be done to a program
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "hasten check [OPTIONS] [-- PROGRAM]", long_about = "\
Lists the CPU features, memory, devices and kernel facilities that matter, with their state, why they matter and how to \
get them, and which accelerators can use them. With PROGRAM it tells how the program is linked, which TLS and \
compression libraries it loads, and, with --hooks, which hooks would apply; with a Node.js also the state of eleven tunings, for which \
it is run for a moment, with an empty environment, to be asked how it was built. Nothing else is started, and nothing is \
changed.")]
pub(crate) struct CheckArgs {
    /// Print JSON (its names are stable; see docs/cli.md)
    #[arg(long)]
    json: bool,

    /// With PROGRAM: list every hook, and what of the program it would serve
    #[arg(long, requires = "program")]
    hooks: bool,

    #[command(flatten)]
    choice: Choice,

    /// A program to look at: a path, or a name to find in PATH; arguments behind it matter for Envoy alone
    #[arg(value_name = "PROGRAM")]
    program: Vec<OsString>,
}

#[derive(Serialize)]
struct Report {
    schema: u32,
    hasten: &'static str,
    host: Host,
    features: Vec<Finding>,
    accelerators: Vec<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<ProgramReport>,
}

#[derive(Serialize)]
struct ProgramReport {
    #[serde(flatten)]
    program: Program,
    /// The executable's own imports from libssl.
    libssl_imports: Vec<String>,
    accelerators: Vec<ProgramVerdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<NodeReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    envoy: Option<EnvoyReport>,
    /// What its running processes have counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<Running>,
}

#[derive(Serialize)]
struct ProgramVerdict {
    #[serde(flatten)]
    verdict: Verdict,
    hooks: Vec<Binding>,
}

pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let report = Report::gather(args)?;
    let text = match args.json {
        true => {
            serde_json::to_string_pretty(&report).map_err(|error| Failure::json("report", &error))? + "\n"
        }
        false => report.text(Style::stdout(), args.hooks),
    };
    print(&text).map_err(Failure::output)?;
    Ok(ExitCode::SUCCESS)
}

/// This host, with the devices of another tree if tests want them.
fn host() -> Host {
    let mut host = Probe::new().host();
    if let Some(root) = std::env::var_os("HASTEN_SYSFS_ROOT").filter(|root| !root.is_empty()) {
        host.devices = Probe::with_root(root).devices().devices;
    }
    host
}

impl Report {
    fn gather(args: &CheckArgs) -> Result<Self, Failure> {
        let config = args.choice.config()?;
        let surroundings = Surroundings::current().with_libraries();
        let host = host();
        let program = match args.program.first() {
            None => None,
            Some(program) => {
                let program = Program::inspect(program, &Environment::current()).map_err(Failure::lookup)?;
                let plan = Plan::new(&host.cpu, &program, &config, &surroundings);
                let node = NodeReport::new(&program, &host, &plan, &surroundings);
                let has_chosen_window = config.gzip.full_window || surroundings.gzip_window.is_some();
                let envoy = EnvoyReport::new(&program, &args.program[1..], has_chosen_window);
                Some(ProgramReport { envoy, ..ProgramReport::new(program, plan, node) })
            }
        };
        Ok(Self {
            schema: SCHEMA,
            hasten: env!("CARGO_PKG_VERSION"),
            features: findings(&host),
            accelerators: host_verdicts(&host.cpu, &config, &surroundings),
            host,
            program,
        })
    }

    fn text(&self, style: Style, with_hooks: bool) -> String {
        if let Some(program) = &self.program {
            return program.text(style, with_hooks);
        }
        let Host { cpu, kernel, .. } = &self.host;
        let mut text = host_line(cpu, kernel);
        for verdict in &self.accelerators {
            text += &format!("{}\n", render::in_a_line(verdict));
        }
        text += &format!("\n{}\n\nAccelerators\n", feature_table(&self.features, style).trim_fmt());
        for verdict in &self.accelerators {
            text += &format!("\n{}\n", render::verdict(verdict));
        }
        text + "\nTry `hasten check -- PROGRAM` for one program.\n"
    }
}

impl ProgramReport {
    fn new(program: Program, plan: Plan, node: Option<NodeReport>) -> Self {
        let imports = program.imports();
        let hooks = |verdict: &Verdict| {
            let table = verdict.library.as_deref().and_then(|library| hooks::read(library).ok());
            hooks::bindings(table.unwrap_or_default(), &imports)
        };
        let with_hooks = |verdict: Verdict| ProgramVerdict { hooks: hooks(&verdict), verdict };
        let accelerators = plan.accelerators.into_iter().map(with_hooks).collect();
        let libssl_imports = imports.of_executable("libssl.so").map(str::to_owned).collect();
        let running = Running::of(&program);
        Self { accelerators, libssl_imports, program, node, envoy: None, running }
    }

    fn text(&self, style: Style, with_hooks: bool) -> String {
        let mut text = format!("{}\n", self.facts(style).trim_fmt());
        for ProgramVerdict { verdict, hooks } in &self.accelerators {
            text += &format!("\n{}\n", render::verdict(verdict));
            text += &match with_hooks {
                _ if hooks.is_empty() => String::new(),
                true => format!("\n{}\n", hook_table(hooks, style).trim_fmt()),
                // An accelerator that is not loaded uses none.
                false if !verdict.is_loaded() => String::new(),
                false => hook_count(hooks),
            };
        }
        if let Some(node) = &self.node {
            text += &node.text(style);
        }
        if let Some(envoy) = &self.envoy {
            text += &envoy.text();
        }
        if let Some(running) = &self.running {
            text += &running.text();
        }
        text
    }

    fn facts(&self, style: Style) -> comfy_table::Table {
        let program = &self.program;
        let mut table = style.table(&["program", &program.executable.display().to_string()]);
        let mut row = |name: &str, value: String| {
            table.add_row(vec![style.bold(name), Cell::new(value)]);
        };
        for script in &program.scripts {
            row("script", script.display().to_string());
        }
        if let Some(node) = &self.node {
            row("build", node.build());
        }
        row("linkage", linkage(program));
        row("privilege", privilege(program));
        let dynamic = matches!(program.libc(), Some(Libc::Glibc | Libc::Musl));
        for stem in ["libssl.so", "libcrypto.so", "libz.so"].into_iter().filter(|_| dynamic) {
            let Some(library) = program.library(stem) else {
                row(
                    stem.trim_end_matches(".so"),
                    "not linked (it may still be loaded later, by a module)".into(),
                );
                continue;
            };
            let version = library.version.as_deref().unwrap_or("version unknown");
            row(stem.trim_end_matches(".so"), format!("{version}, {}", library.path.display()));
        }
        for missing in &program.missing {
            row("missing", format!("{}, needed by {}", missing.name, missing.needed_by));
        }
        table
    }
}

/// Without `/proc` a CPU has no name and no number, and the kernel no version.
fn host_line(cpu: &Cpu, kernel: &Kernel) -> String {
    if cpu.threads == 0 && kernel.release.is_empty() {
        return "No /proc is mounted here, so much is unknown: mount it to see all (`mount -t proc proc /proc`)\n\n"
            .to_owned();
    }
    format!("{}, {} CPUs, Linux {}\n\n", cpu.name(), cpu.threads, kernel.release)
}

fn linkage(program: &Program) -> String {
    match &program.linkage {
        _ if program.is_foreign() => format!("unknown: it is {} program", program.machine.label()),
        Linkage::Static => "static".into(),
        Linkage::Unknown { why } => format!("unknown: {why}"),
        Linkage::Dynamic { libc, interpreter } => {
            let libc = match libc {
                Libc::Glibc => "glibc",
                Libc::Musl => "musl",
                Libc::Other => "another C library",
            };
            format!("dynamic, {libc} ({})", interpreter.display())
        }
    }
}

fn privilege(program: &Program) -> String {
    let privilege = &program.privilege;
    let marks = [
        (privilege.setuid, "set-user-ID"),
        (privilege.setgid, "set-group-ID"),
        (privilege.capabilities, "file capabilities"),
    ];
    let marks: Vec<_> = marks.into_iter().filter_map(|(set, mark)| set.then_some(mark)).collect();
    match (marks.is_empty(), privilege.secure_exec) {
        (true, _) => "none".into(),
        (false, true) => format!("{}: the loader ignores LD_PRELOAD", marks.join(", ")),
        (false, false) => format!("{}, without effect for this user", marks.join(", ")),
    }
}

fn feature_table(features: &[Finding], style: Style) -> comfy_table::Table {
    let mut table = style.table(&["Feature", "State", "Why it matters", "How to fix", "Used by"]);
    let mut group = None;
    for finding in features {
        if group.replace(finding.group) != Some(finding.group) {
            table.add_row(vec![style.bold(title(finding.group))]);
        }
        table.add_row(vec![
            Cell::new(format!("  {}", finding.feature)),
            state(finding, style),
            Cell::new(finding.why),
            Cell::new(finding.fix.as_deref().unwrap_or("")),
            Cell::new(finding.used_by.join(", ")),
        ]);
    }
    table
}

fn title(group: Group) -> &'static str {
    match group {
        Group::Cpu => "CPU",
        Group::Memory => "Memory",
        Group::Devices => "Devices",
        Group::Kernel => "Kernel",
    }
}

fn state(finding: &Finding, style: Style) -> Cell {
    let (mark, colour) = match finding.state {
        State::Available => ('+', Color::Green),
        State::Limited => ('!', Color::Yellow),
        State::Absent => ('-', Color::DarkGrey),
        State::Unknown => ('?', Color::Yellow),
    };
    style.cell(&format!("{mark} {}", finding.detail), colour)
}

/// One line in place of the table, which is longer than a screen.
fn hook_count(bindings: &[Binding]) -> String {
    let used = bindings.iter().filter(|binding| !binding.bound_in.is_empty()).count();
    format!("  {used} of {} hooks would be used at start; --hooks lists them\n", bindings.len())
}

fn hook_table(bindings: &[Binding], style: Style) -> comfy_table::Table {
    let mut table = style.table(&["Hook", "Of", "Called by", "Purpose"]);
    for Binding { hook, bound_in } in bindings {
        let callers = if bound_in.is_empty() {
            style.cell("-", Color::DarkGrey)
        } else {
            style.cell(&bound_in.join(", "), Color::Green)
        };
        table.add_row(vec![
            Cell::new(&hook.symbol),
            Cell::new(&hook.library),
            callers,
            Cell::new(&hook.purpose),
        ]);
    }
    table
}
