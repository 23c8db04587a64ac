//! `hasten run`: plans, reports, and becomes the command.

mod devices;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use hasten_plan::config::storage::{ReadCache, wal_directory};
use hasten_plan::config::{StorageConfig, Tier};
use hasten_plan::process::CpuList;
use hasten_plan::{Config, Decision, GcAdvice, Launch, Plan, Side, Surroundings, Verdict};
use hasten_probe::program::elf::Machine;
use hasten_probe::{Environment, Probe, Program};

use crate::args::Switch;
use crate::choice::Choice;
use crate::failure::Failure;
use crate::output::print;
use crate::render::{self, say};

const EXAMPLES: &str = "\
Examples:
  hasten run -- nginx -g 'daemon off;'
  hasten run --dry-run -- haproxy -f /etc/haproxy/haproxy.cfg
  hasten run --strict --only tls -- nginx
  hasten run --verify -- nginx                  check every compressed byte; costs some of the gain
  hasten run -- npm start                       the same for Node.js, whoever starts it
  hasten run --apply-gc-advice advice.json -- node app.js
  HASTEN_DISABLE=tls hasten run -- nginx        the kill switch: everything else stays as it is
";

/// Start a command accelerated
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "hasten run [OPTIONS] -- COMMAND [ARGUMENT]...", long_about = "\
Works out which accelerators suit COMMAND, says so on standard error, and becomes COMMAND with their libraries \
preloaded, and with a plugin for Node.js in NODE_OPTIONS. It is the same process, so signals, terminal, standard streams \
and exit code are COMMAND's own. Where nothing can be applied COMMAND runs as it is. Programs that COMMAND starts inherit \
both.")]
pub(crate) struct RunArgs {
    /// Print the whole plan with every reason and do not start anything
    #[arg(long, short = 'n')]
    dry_run: bool,

    #[command(flatten)]
    choice: Choice,

    /// Decompress everything that the gzip engines compress and compare, before it leaves
    #[arg(long)]
    verify: bool,

    /// Read files that do not change from a cache of SIZE in DIRECTORY, on local storage
    #[arg(long, value_name = "DIRECTORY,SIZE", env = "HASTEN_READ_CACHE", hide_env_values = true)]
    read_cache: Option<String>,

    /// Make new logs in DIRECTORY, on the fastest durable device, with links in their place
    #[arg(long, value_name = "DIRECTORY", env = "HASTEN_WAL", hide_env_values = true)]
    wal: Option<String>,

    /// The device of --wal may be lost with the machine, and the logs with it
    #[arg(long, requires = "wal")]
    wal_ephemeral: bool,

    /// Keep large objects on another NUMA node: NEAR:FAR=SHARE:SHARE, such as 0:2=1:3
    #[arg(long, value_name = "NODES=SHARES", env = "HASTEN_TIER", hide_env_values = true)]
    tier: Option<String>,

    /// Set the options that `hasten gc --json` advises in FILE for Node.js; the user's own win
    #[arg(long, value_name = "FILE")]
    apply_gc_advice: Option<PathBuf>,

    /// Refuse to start a command that cannot be accelerated
    #[arg(long, env = "HASTEN_STRICT", hide_env_values = true, value_parser = Switch("HASTEN_STRICT"))]
    strict: bool,

    /// Print nothing about the plan
    #[arg(long, short, env = "HASTEN_QUIET", hide_env_values = true, value_parser = Switch("HASTEN_QUIET"))]
    quiet: bool,

    /// The command to start, with its arguments
    // Without `allow_hyphen_values`: a misspelt option in front of it is no command.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let config = args.load_config()?;
    let surroundings = surroundings(args, &config);
    surroundings.validate()?;
    let program = Program::inspect(&args.command[0], &Environment::current())?;
    if let Some(error) = program.is_cut_off() {
        return Err(error.into());
    }
    let mut plan = Plan::new(&Probe::new().cpu(), &program, &config, &surroundings);
    for warning in &plan.warnings {
        say(format!("hasten: warning: {warning}"));
    }
    let launch = plan.launch(&program, &args.command);
    if args.dry_run {
        devices::look(&mut plan, &config, &surroundings);
        devices::open_libraries(&mut plan, &config, &surroundings);
        print_plan(&plan, &program, &config, &launch)?;
    } else if !args.quiet && !is_doubtful(&program) {
        devices::look(&mut plan, &config, &surroundings);
        print_summary(&plan, &program, &config);
    }
    if config.strict && !plan.promises() {
        return Err(Failure::new(
            format!("nothing can be applied to {}, and --strict forbids to run it as it is", program.name()),
            "see the reasons with `hasten run --dry-run`, or drop --strict",
        ));
    }
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let error = execute(&launch);
    Err(match program.refusal(&error) {
        Some(refusal) => refusal.into(),
        None => Failure::exec(&args.command[0].to_string_lossy(), &error),
    })
}

/// Whether the kernel will reject it, unless it has an emulator: then only the error is reported.
fn is_doubtful(program: &Program) -> bool {
    // 64-bit x86 runs 32-bit programs by itself.
    program.machine.is_foreign() && program.machine != Machine::X86
}

/// What the plan depends on; CPUs and memory are looked at only if a setting depends on them.
fn surroundings(args: &RunArgs, config: &Config) -> Surroundings {
    let probe = Probe::new();
    let cpus = config.process.cpus.is_some().then(|| probe.cpus_allowed_list()).flatten();
    let memory = (!config.node.options.is_empty()).then(|| probe.memory_limit_bytes()).flatten();
    Surroundings {
        arguments: args.command[1..].to_vec(),
        cpus: cpus.as_deref().and_then(CpuList::parse),
        memory_limit: memory,
        ..Surroundings::current()
    }
}

/// Returns only if the command could not be started.
fn execute(launch: &Launch) -> std::io::Error {
    settle(launch);
    hasten_exec::exec(launch.file.as_deref(), &launch.argv, &launch.env)
}

/// Changes what the command inherits from this process. If that fails, the command runs without it.
fn settle(launch: &Launch) {
    if let Some(cpus) = &launch.cpus
        && let Err(error) = hasten_exec::keep_to_cpus(&cpus.0)
    {
        say(format!("hasten: warning: cannot keep to CPUs {cpus}: {error}"));
    }
    if launch.no_thp
        && let Err(error) = hasten_exec::forbid_huge_pages()
    {
        say(format!("hasten: warning: cannot switch off transparent huge pages: {error}"));
    }
}

impl RunArgs {
    fn load_config(&self) -> Result<Config, Failure> {
        let mut config = self.choice.config()?;
        config.strict |= self.strict;
        config.gzip.verify_always = self.verify;
        self.storage(&mut config.storage)?;
        if let Some(tier) = self.tier()? {
            config.tier = Some(tier);
        }
        config.gc_advice = self.gc_advice(&config)?;
        Ok(config)
    }

    /// In service files and manifests an empty variable means an unset one.
    fn storage(&self, config: &mut StorageConfig) -> Result<(), Failure> {
        let wrong =
            |flag| move |(problem, fix): (String, String)| Failure::usage(format!("{flag}: {problem}"), fix);
        if let Some(cache) = self.read_cache.as_deref().filter(|cache| !cache.is_empty()) {
            config.read_cache = Some(ReadCache::parse(cache).map_err(wrong("--read-cache"))?);
        }
        if let Some(directory) = self.wal.as_deref().filter(|directory| !directory.is_empty()) {
            config.wal = Some(wal_directory(directory).map_err(wrong("--wal"))?);
        }
        config.wal_ephemeral |= self.wal_ephemeral;
        Ok(())
    }

    /// The nodes must be there: a command that was told to save memory is not to start without.
    fn tier(&self) -> Result<Option<Tier>, Failure> {
        self.tier.as_deref().filter(|text| !text.is_empty()).map(tier).transpose()
    }

    /// The advice in the named file, which must fit the available memory.
    fn gc_advice(&self, config: &Config) -> Result<Option<GcAdvice>, Failure> {
        let Some(file) = self.apply_gc_advice.as_deref().or(config.node.gc_advice.as_deref()) else {
            return Ok(None);
        };
        Ok(Some(GcAdvice::read(file, Probe::new().memory_limit_bytes())?))
    }
}

/// A line for each accelerator, and the fix for each one that is off.
fn print_summary(plan: &Plan, program: &Program, config: &Config) {
    let mut said = Vec::new();
    let settled =
        |verdict: &Verdict| verdict.decision == Decision::Skip && config.file_leaves_out(verdict.name);
    let reported = plan.accelerators.iter().filter(|verdict| !settled(verdict));
    let is_aside = |verdict: &Verdict| verdict.reasons.iter().any(|reason| reason.is_aside);
    for verdict in reported.filter(|verdict| verdict.concerns || verdict.is_loaded() && !is_aside(verdict)) {
        say(format!("hasten: {} {}", verdict.name, headline(verdict, program)));
        for fix in verdict.reasons(Side::Against).filter_map(|reason| reason.fix.as_ref()) {
            // The same obstacle often rules out all accelerators.
            if !said.contains(&fix) {
                say(format!("  fix: {fix}"));
                said.push(fix);
            }
        }
    }
    for line in devices::summary(&plan.outlooks) {
        say(line);
    }
    for line in render::gc_advice(plan, config).into_iter().chain(render::settings(plan)) {
        say(format!("hasten: {line}"));
    }
    if !plan.applies() {
        say(format!("hasten: running {} as it is", program.name()));
    }
}

fn headline(verdict: &Verdict, program: &Program) -> String {
    let texts =
        |side| verdict.reasons(side).map(|reason| reason.text.as_str()).collect::<Vec<_>>().join("; ");
    match verdict.decision {
        Decision::Apply => {
            let proof = verdict.proof.map(|proof| format!(" ({})", proof.as_str())).unwrap_or_default();
            format!("on for {}{proof}: {}; {}", program.name(), verdict.summary, verdict.follow_up)
        }
        Decision::Standby => format!("on standby: {}", texts(Side::Idle)),
        Decision::Skip => format!("off: {}", texts(Side::Against)),
    }
}

fn print_plan(plan: &Plan, program: &Program, config: &Config, launch: &Launch) -> Result<(), Failure> {
    say(format!("program  {}", program.executable.display()));
    for script in &program.scripts {
        say(format!("script   {}", script.display()));
    }
    let file = config.file.as_ref().map_or("none".into(), |path| path.display().to_string());
    say(format!("config   {file}"));
    for verdict in &plan.accelerators {
        say(format!("\n{}", render::verdict(verdict)));
    }
    for outlook in &plan.outlooks {
        say(format!("\n{}", devices::details(outlook)));
    }
    for lines in [render::gc_advice(plan, config), render::settings(plan)] {
        for (at, line) in lines.into_iter().enumerate() {
            say(format!("{}{line}", if at == 0 { "\n" } else { "" }));
        }
    }
    if launch.no_thp {
        say("\nno command switches off transparent huge pages for one process; hasten does it by prctl");
    }
    say("\nthe same by hand:");
    // Alone on standard output, so that it can be piped.
    print(&format!("{}\n", launch.by_hand())).map_err(Failure::output)
}

/// The value of `--tier`, whose nodes are there.
pub(super) fn tier(text: &str) -> Result<Tier, Failure> {
    let wrong = |(problem, fix): (String, String)| Failure::usage(format!("--tier: {problem}"), fix);
    let tier = Tier::parse(text).map_err(wrong)?;
    match tier.complaint(&Probe::new().nodes()) {
        Some(complaint) => Err(wrong(complaint)),
        None => Ok(tier),
    }
}
