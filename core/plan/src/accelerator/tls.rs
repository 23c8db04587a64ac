//! TLS handshakes of OpenSSL servers, eight at a time or one.

mod handshakes;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use hasten_names::{Algorithm, Engine, NEVER};
use hasten_openssl::{AWS_LC, LIBSSL, Series, series_names};
use hasten_probe::program::Library;
use hasten_probe::program::habit::Habit;
use hasten_probe::program::openssl_conf::{self, Takeover};
use hasten_probe::{Cpu, Feature, Program};

use super::envoy::leads_to_envoy;
use super::{Accelerator, UNMEASURED};
use crate::config::Config;
use crate::devices;
use crate::plan::{Proof, Reason, Side};
use crate::preload;
use crate::suggestion;
use crate::surroundings::Surroundings;

pub struct Tls;

pub(super) const USES: [&str; 17] = [
    "cpu.avx512f",
    "cpu.avx512dq",
    "cpu.avx512bw",
    "cpu.avx512vl",
    "cpu.avx512cd",
    "cpu.avx512ifma",
    "cpu.avx512vbmi",
    "cpu.avx512_vbmi2",
    "cpu.gfni",
    "cpu.bmi1",
    "cpu.bmi2",
    "cpu.fma",
    "cpu.adx",
    "cpu.aes",
    "cpu.avx2",
    "cpu.pclmulqdq",
    "kernel.memfd",
];

impl Accelerator for Tls {
    fn name(&self) -> &'static str {
        "tls"
    }

    fn summary(&self) -> &'static str {
        "TLS handshakes, in batches of eight where the CPU can (RSA, ECDSA, ECDHE)"
    }

    fn library(&self) -> &'static str {
        "libhasten_tls.so"
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
        if cfg!(target_arch = "aarch64") {
            return vec![on_arm64(cpu, surroundings.deny_adx)];
        }
        let lanes = lanes(cpu, surroundings.deny_ifma);
        if lanes.side != Side::Against {
            return vec![lanes];
        }
        let Some(mut engine) = single(cpu, surroundings.deny_adx) else {
            let text =
                format!("{}: ECDSA and key exchange are done one at a time, RSA by OpenSSL", lanes.text);
            return vec![Reason::favour(text)];
        };
        engine.text = format!("{}; and for operations one at a time, {}", lanes.text, engine.text);
        match devices::who_asks_for(Engine::Qat.as_str(), config, surroundings) {
            // It needs no CPU feature.
            Some(who) => {
                let text =
                    format!("{}: nothing but RSA signatures, by QAT, for which {who} asks", engine.text);
                vec![Reason::idle(text)]
            }
            None => vec![engine],
        }
    }

    fn judge_program(&self, program: &Program) -> Vec<Reason> {
        if leads_to_envoy(program) {
            return vec![
                Reason::against("Envoy carries its BoringSSL inside, where `envoy` accelerates it").aside(),
            ];
        }
        let accepts = preload::accepts(program);
        // If a program preloads nothing, its libraries are not known either.
        if accepts.side != Side::For {
            return vec![accepts];
        }
        let openssl = openssl(program);
        let behaves = match openssl.side {
            Side::For => Some(handshakes::judge(program)),
            Side::Idle => handshakes::known(program).filter(|reason| reason.side == Side::Against),
            Side::Against => None,
        };
        [accepts, openssl].into_iter().chain(behaves).collect()
    }

    fn judge_libraries(&self, surroundings: &Surroundings) -> Option<Reason> {
        Some(of_host(surroundings.libssl.as_ref()?.as_ref()))
    }

    fn judge_surroundings(
        &self,
        program: &Program,
        _: &Config,
        surroundings: &Surroundings,
    ) -> Option<Reason> {
        provider(program, surroundings)
    }

    fn proof(&self, program: &Program) -> Option<Proof> {
        // Public suites have run on x86-64 only.
        let is_proven = program.habit() == Some(Habit::Proven) && cfg!(not(target_arch = "aarch64"));
        Some(if is_proven { Proof::Proven } else { Proof::Expected })
    }

    fn concerns(&self, program: &Program) -> bool {
        // Official builds carry their own copy; nobody starts them with hasten for this.
        !program.kind.runs_javascript()
    }

    fn environment(&self, config: &Config, surroundings: &Surroundings) -> Vec<(&'static str, OsString)> {
        let table = &config.tls.break_even;
        if table.is_empty() || surroundings.tls_break_even.is_some() {
            return Vec::new();
        }
        let entries: Vec<_> = table.iter().map(|(operation, lanes)| format!("{operation}:{lanes}")).collect();
        vec![("HASTEN_TLS_BREAK_EVEN", entries.join(",").into())]
    }
}

/// Whether the engine for batches can run on this CPU.
pub(super) fn lanes(cpu: &Cpu, denied: bool) -> Reason {
    if denied {
        return Reason::against("HASTEN_CPU_DISABLE_IFMA hides AVX-512 IFMA")
            .fix("unset HASTEN_CPU_DISABLE_IFMA");
    }
    let fix = if cpu.hypervisor {
        "give the virtual machine the host's CPU model; IFMA is in Intel Ice Lake and later, AMD Zen 4 and later"
    } else {
        "use Intel Ice Lake (server) and later or AMD Zen 4 and later"
    };
    lacking(cpu, &Feature::MULTIBUFFER, fix)
        .unwrap_or_else(|| Reason::favour(format!("AVX-512 IFMA is usable on this {}", cpu.name())))
}

/// Why the engine for single operations cannot run on this CPU, if it cannot.
fn single(cpu: &Cpu, denied: bool) -> Option<Reason> {
    if denied {
        return Some(Reason::against("HASTEN_CPU_DISABLE_ADX hides ADX").fix("unset HASTEN_CPU_DISABLE_ADX"));
    }
    let fix = if cfg!(target_arch = "aarch64") {
        "use a CPU with arm64's extensions for cryptography, as all for servers have since Graviton and Ampere"
    } else if cpu.hypervisor {
        "give the virtual machine the host's CPU model; ADX is in Intel Broadwell and later, AMD Zen and later"
    } else {
        "use Intel Broadwell and later or AMD Zen and later"
    };
    lacking(cpu, &Feature::SINGLE, fix)
}

/// There are no lanes, and the rest has run in an emulator only.
fn on_arm64(cpu: &Cpu, denied: bool) -> Reason {
    single(cpu, denied).unwrap_or_else(|| {
        Reason::favour(format!("ECDSA and key exchange are done one at a time, RSA by OpenSSL; {UNMEASURED}"))
    })
}

/// Which of these a program cannot use, if any, and how to get a CPU that has them.
fn lacking(cpu: &Cpu, needed: &[Feature], fix: &'static str) -> Option<Reason> {
    let lacking: Vec<_> = needed.iter().filter(|feature| !cpu.has(**feature)).collect();
    if lacking.is_empty() {
        return None;
    }
    let names: Vec<_> = lacking.iter().map(|feature| feature.label()).collect();
    let in_silicon =
        |feature: &Feature| cpu.features.iter().any(|state| state.feature == *feature && state.cpu);
    let names = names.join(", ");
    Some(if lacking.iter().all(|feature| in_silicon(feature)) {
        Reason::against(format!("the kernel keeps {names} of this CPU from programs"))
            .fix("remove `noxsave` or `clearcpuid=` from the kernel command line")
    } else {
        Reason::against(format!("this CPU has no {names}")).fix(fix)
    })
}

/// Whether the program's TLS goes through an OpenSSL that can be interposed.
fn openssl(program: &Program) -> Reason {
    let name = program.name();
    if program.kind.runs_javascript() && program.library("libssl.so").is_none() {
        // Reading such a file would take longer than starting it.
        return Reason::against(format!(
            "{name} does not link libssl, and no preload can reach an OpenSSL inside it"
        ))
        .fix("let nginx or HAProxy end TLS in front of it");
    }
    if program.exports("SSL_do_handshake") {
        return Reason::against(format!("{name} carries its own OpenSSL inside, which no preload can reach"))
            .fix("use a build that links the system's libssl, such as the distribution's package");
    }
    if let Some(library) = program.library("libssl.so") {
        let fix = if program.kind.runs_javascript() { IN_FRONT_OF_NODE } else { OTHER_BUILD };
        return version(&name, library, fix);
    }
    if program.kind.carries_own_tls() {
        return Reason::against(format!("{name} carries BoringSSL inside, which no preload can reach"))
            .fix("let nginx or HAProxy end TLS in front of it");
    }
    unlinked(program, &name)
}

/// What programs of this host get.
fn of_host(library: Option<&Library>) -> Reason {
    let Some(library) = library else {
        return Reason::idle(format!(
            "this host has no {}: the library stays idle until a program brings one of OpenSSL {}",
            LIBSSL[0],
            series_names()
        ));
    };
    match no_use(library) {
        Some(why) => Reason::against(format!("this host's {why}")).fix(OTHER_BUILD),
        None => {
            Reason::favour(format!("this host's libssl is {} ({})", library.path.display(), says(library)))
        }
    }
}

/// Why nothing that uses this libssl can be accelerated, as the continuation of a sentence that names its owner;
/// `None` if it can be, or if only the running library can tell.
pub(crate) fn no_use(library: &Library) -> Option<String> {
    let known = library.version.as_deref().is_none_or(is_known);
    let text = || only_known(format_args!("libssl is {} ({})", library.path.display(), says(library)));
    (!known).then(text)
}

/// The prospects of a program that does not link OpenSSL: they depend on what it may load.
fn unlinked(program: &Program, name: &str) -> Reason {
    let found = LIBSSL.into_iter().find_map(|name| program.on_request(name));
    let unknown = found.filter(|library| library.version.as_deref().is_some_and(|text| !is_known(text)));
    match unknown {
        // It may start anything, including programs with their own OpenSSL.
        Some(library) if program.is_launcher() => Reason::idle(format!(
            "{name} does not link libssl: the library stays idle until a program that {name} starts brings OpenSSL \
             {}; this system's own is {}",
            series_names(),
            says(&library)
        )),
        Some(library) => Reason::against(only_known(format_args!(
            "{name} does not link libssl, and would load {} ({})",
            library.path.display(),
            says(&library)
        )))
        .fix(OTHER_BUILD)
        .aside(),
        None => Reason::idle(format!(
            "{name} does not link libssl: the library stays idle until {name}, or a program that it starts, loads it, \
             and looks then whether its handshakes can wait"
        )),
    }
}

fn is_known(version: &str) -> bool {
    Series::of_text(version).is_some()
}

/// `finding`, and what would have been needed.
fn only_known(finding: fmt::Arguments<'_>) -> String {
    format!("{finding}; only OpenSSL {} are known", series_names())
}

fn says(library: &Library) -> &str {
    library.version.as_deref().unwrap_or("version unknown")
}

/// The reason against an OpenSSL that is configured to delegate its work: the library leaves that work alone.
fn provider(program: &Program, surroundings: &Surroundings) -> Option<Reason> {
    let libcrypto = program.library("libcrypto.so")?;
    let named = surroundings.environment.get(OsStr::new("OPENSSL_CONF"));
    let file = named.map(PathBuf::from).or_else(|| openssl_conf::file(libcrypto))?;
    let (name, path) = (program.name(), file.display());
    Some(match openssl_conf::takeover(&file)? {
        Takeover::Properties(properties) => Reason::against(format!(
            "{path} demands `default_properties = {properties}`, so another provider than OpenSSL's own does the \
             handshakes, and they are left to it"
        ))
        .fix(format!("name another configuration for {name} with OPENSSL_CONF, if its handshakes need not be so")),
        Takeover::Provider(provider) => Reason::idle(format!(
            "{path} activates the provider `{provider}`: the library looks at the first handshake, and stays idle if that \
             provider does it"
        )),
    })
}

const OTHER_BUILD: &str = "use a build for OpenSSL 3, such as those of Debian since 12 and of Ubuntu since 22.04, or their container images";

/// What was measured is in docs/performance.md.
const BY_ITSELF: &str = "nothing to do: AWS-LC by itself needs less CPU than OpenSSL; with RSA certificates and many \
                         connections, a build for OpenSSL 3 under hasten may need less still: measure both";

/// A Node.js that links OpenSSL still passes TLS through memory: another build of it would not help.
const IN_FRONT_OF_NODE: &str = "let an nginx or HAProxy that uses OpenSSL 3 end TLS in front of it";

/// Whether this is a supported OpenSSL.
fn version(name: &str, library: &Library, fix: &str) -> Reason {
    let (path, version) = (library.path.display(), library.version.as_deref());
    let text = format!("{name} uses {path} ({})", says(library));
    match version {
        Some(version) if is_known(version) => Reason::favour(text),
        Some(version) if version.starts_with(AWS_LC) => {
            Reason::against(format!("{name} links {version}, not OpenSSL ({path})")).fix(BY_ITSELF)
        }
        None if LIBSSL.contains(&library.name.as_str()) => Reason::idle(format!(
            "{text}: the library looks when it runs, and stays idle if it is not OpenSSL {}",
            series_names()
        )),
        _ => Reason::against(only_known(format_args!("{text}"))).fix(fix),
    }
}

/// Reads `HASTEN_TLS_BREAK_EVEN`, such as `rsa-2048-sign:3,p-256-sign:2`; the error says what is wrong and what to do.
pub(crate) fn check_break_even(list: &str) -> Result<(), (String, String)> {
    let form =
        || "write OPERATION:LANES, such as rsa-2048-sign:3, lanes from 1 to 9 (9 means never)".to_owned();
    let mut seen = Vec::new();
    for pair in list.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (operation, lanes) =
            pair.split_once(':').ok_or_else(|| (format!("`{pair}` has no lanes"), form()))?;
        if !Algorithm::NAMES.contains(&operation) {
            let fix = suggestion(operation, &Algorithm::NAMES);
            return Err((format!("unknown operation `{operation}`"), fix));
        }
        if !lanes.parse().is_ok_and(|lanes: usize| (1..=NEVER).contains(&lanes)) {
            return Err((format!("`{lanes}` is no number of lanes for {operation}"), form()));
        }
        if seen.contains(&operation) {
            return Err((format!("`{operation}` is given twice"), "keep one of the two".into()));
        }
        seen.push(operation);
    }
    Ok(())
}
