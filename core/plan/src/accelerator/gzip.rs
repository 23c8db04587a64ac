//! zlib's work by faster engines.

use std::ffi::OsString;

use hasten_names::{Engine, ORIGINAL};
use hasten_probe::program::compression::Carried;
use hasten_probe::{Cpu, Feature, Program};

use super::envoy::leads_to_envoy;
use super::{Accelerator, UNMEASURED};
use crate::config::Config;
use crate::plan::{Reason, Side};
use crate::preload;
use crate::suggestion;
use crate::surroundings::Surroundings;

pub struct Gzip;

pub(super) const USES: [&str; 12] = [
    "cpu.sse4_2",
    "cpu.pclmulqdq",
    "cpu.avx2",
    "cpu.bmi1",
    "cpu.bmi2",
    "cpu.avx512f",
    "cpu.avx512dq",
    "cpu.avx512bw",
    "cpu.avx512vl",
    "cpu.avx512cd",
    "cpu.vpclmulqdq",
    "kernel.memfd",
];

/// The engines by their names in the configuration; the original zlib always backs them.
pub const ENGINES: [&str; 5] = [
    Engine::Isal.as_str(),
    Engine::Libdeflate.as_str(),
    Engine::Bucket.as_str(),
    Engine::ZlibRs.as_str(),
    ORIGINAL,
];

/// Verifies the engines' output.
pub(crate) const VERIFY: &str = "HASTEN_GZIP_VERIFY";
/// The engines that may be used.
pub(crate) const ENGINE_LIST: &str = "HASTEN_GZIP_ENGINES";
/// Whether matches may reach back further than Envoy's configuration says.
pub(crate) const WINDOW: &str = "HASTEN_GZIP_WINDOW";
/// Its values: what the configuration says, which is the default, or all that the format allows.
pub const WINDOWS: [&str; 2] = ["configured", "full"];

/// CPU features that the engines look for at run time, most useful first; without any of them they use plain code.
const FASTER: [Feature; 5] =
    [Feature::Avx2, Feature::Bmi2, Feature::Pclmulqdq, Feature::Avx512Bw, Feature::Vpclmulqdq];

impl Accelerator for Gzip {
    fn name(&self) -> &'static str {
        "gzip"
    }

    fn summary(&self) -> &'static str {
        "zlib's compression and decompression by faster engines"
    }

    fn library(&self) -> &'static str {
        "libhasten_gzip.so"
    }

    fn is_for_musl(&self) -> bool {
        true
    }

    fn is_for_arm64(&self) -> bool {
        true
    }

    fn uses(&self) -> &'static [&'static str] {
        &USES
    }

    fn judge_host(&self, cpu: &Cpu, config: &Config, surroundings: &Surroundings) -> Vec<Reason> {
        if let Some(reason) = no_engine(config, surroundings) {
            return vec![reason];
        }
        if cfg!(target_arch = "aarch64") {
            return vec![Reason::favour(format!("any arm64 CPU will do; {UNMEASURED}"))];
        }
        let faster: Vec<_> =
            FASTER.into_iter().filter(|feature| cpu.has(*feature)).map(Feature::label).collect();
        let with = if faster.is_empty() {
            "; this one has none of the extensions that make it faster".to_owned()
        } else {
            format!("; this one makes it faster with {}", faster.join(", "))
        };
        vec![Reason::favour(format!("any x86-64 CPU will do{with}"))]
    }

    fn judge_program(&self, program: &Program) -> Vec<Reason> {
        if leads_to_envoy(program) {
            return vec![
                Reason::against("Envoy carries its zlib inside, where `envoy` accelerates it").aside(),
            ];
        }
        let accepts = preload::accepts(program);
        // If a program preloads nothing, its libraries are not known either.
        let zlib = (accepts.side == Side::For).then(|| zlib(program));
        [accepts].into_iter().chain(zlib).collect()
    }

    fn concerns(&self, program: &Program) -> bool {
        // Official builds carry their own copy; nobody starts them with hasten for this.
        !program.kind.runs_javascript() && !leads_to_envoy(program)
    }

    fn environment(&self, config: &Config, surroundings: &Surroundings) -> Vec<(&'static str, OsString)> {
        let mut variables = Vec::new();
        let by_file = config.gzip.verify && surroundings.gzip_verify.is_none();
        if config.gzip.verify_always || by_file {
            variables.push((VERIFY, "1".into()));
        }
        if !config.gzip.engines.is_empty() && surroundings.gzip_engines.is_none() {
            variables.push((ENGINE_LIST, config.gzip.engines.join(",").into()));
        }
        if config.gzip.full_window && surroundings.gzip_window.is_none() {
            variables.push((WINDOW, WINDOWS[1].into()));
        }
        variables
    }
}

/// The reason against an accelerator that may use only the original engine: it would merely pass on every call.
fn no_engine(config: &Config, surroundings: &Surroundings) -> Option<Reason> {
    let variable = surroundings.gzip_engines.as_deref().map(|list| list.to_string_lossy().into_owned());
    let (source, engines) = match variable {
        Some(list) => (ENGINE_LIST.to_owned(), list),
        None => ("[gzip] engines".to_owned(), config.gzip.engines.join(",")),
    };
    let mut names = engines.split(',').map(str::trim).filter(|name| !name.is_empty()).peekable();
    names.peek()?;
    names.all(|name| name == ORIGINAL).then(|| {
        Reason::against(format!("{source} allows nothing but the original zlib"))
            .fix(format!("name another engine in {source}: {}", ENGINES[..3].join(", ")))
    })
}

/// Whether the program's compression goes through a zlib that can be interposed.
fn zlib(program: &Program) -> Reason {
    let name = program.name();
    if program.kind.runs_javascript() && program.library("libz.so.1").is_none() {
        // Reading such a file would take longer than starting it.
        return Reason::against(format!(
            "{name} does not link libz.so.1, and no preload can reach a zlib inside it"
        ))
        .fix("use a build that links the system's libz.so.1, such as the distribution's package");
    }
    // The executable's own functions take precedence over preloaded ones, in all of its libraries, too.
    if program.exports("deflate") {
        return carried(program.carried_compression().as_ref(), &name);
    }
    if let Some(library) = program.library("libz.so.1") {
        let version = library.version.as_deref().unwrap_or("version unknown");
        let through = match &library.needed_by {
            by if *by == name => String::new(),
            by => format!(", through {by}"),
        };
        return Reason::favour(format!("{name} uses {} ({version}){through}", library.path.display()));
    }
    match program.carried_compression() {
        None => Reason::idle(format!(
            "{name} does not link libz.so.1: the library stays idle until {name}, or a program that it starts, loads it"
        )),
        found => carried(found.as_ref(), &name),
    }
}

fn carried(code: Option<&Carried>, name: &str) -> Reason {
    let zlib = |which: &str| {
        Reason::against(format!("{name} carries its own {which} inside, which no preload can reach"))
            .fix("use a build that links the system's libz.so.1, such as the distribution's package")
    };
    match code {
        Some(Carried::Zlib { version }) => zlib(&format!("zlib {version}")),
        Some(Carried::Slz) => Reason::against(format!(
            "{name} compresses with libslz inside it and never calls zlib"
        ))
        .fix("nothing to do: libslz costs little CPU; for smaller output let the servers behind it compress"),
        None => zlib("zlib"),
    }
}

/// Reads the variables as the library does; the error says what is wrong and what to do.
pub(crate) fn check_verify(value: &str) -> Result<(), (String, String)> {
    match value {
        "" | "0" | "1" => Ok(()),
        other => Err((format!("`{other}` is neither 0 nor 1"), "write 1 to verify, or unset it".to_owned())),
    }
}

pub(crate) fn check_window(value: &str) -> Result<(), (String, String)> {
    match value {
        "" => Ok(()),
        known if WINDOWS.contains(&known) => Ok(()),
        other => Err((
            format!("`{other}` is neither `configured` nor `full`"),
            "write `full` to let matches reach back 32 KiB in Envoy, or unset it".to_owned(),
        )),
    }
}

pub(crate) fn check_engines(list: &str) -> Result<(), (String, String)> {
    let names = || list.split(',').map(str::trim).filter(|name| !name.is_empty());
    if let Some(unknown) = names().find(|name| !ENGINES.contains(name)) {
        return Err((format!("unknown engine `{unknown}`"), suggestion(unknown, &ENGINES)));
    }
    if !list.is_empty() && names().next().is_none() {
        let fix = "unset it to use every engine; HASTEN_DISABLE=gzip switches gzip off".to_owned();
        return Err((format!("`{list}` names no engine"), fix));
    }
    Ok(())
}
