//! The eleven tunings of the reference white paper, for one Node.js binary on this host: what is in effect, what can be
//! applied, what needs another build, and what makes no difference, with the measurement behind each answer.

mod measurements;

use hasten_probe::program::node::NodeBuild;
use hasten_probe::{Feature, Host};
use serde::Serialize;

use self::measurements::Measured;
pub use self::measurements::Measurements;
use crate::plan::{Decision, Plan, Side, Verdict};
use crate::surroundings::Surroundings;
use crate::{accelerator, node_options};

const MIB: u64 = 1 << 20;
/// V8 does not move built-in code for heaps below this.
const SHORT_CALLS_OLD_SPACE: u64 = 2 << 30;
/// The first release without `--use-largepages`.
const NO_LARGE_PAGES: u32 = 26;
/// Byte by byte, swapping reaches a tenth of the speed of a copy; with vector instructions, a third or more.
const VECTORISED: f64 = 0.2;

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tuning {
    /// Stable, such as `semi-space`.
    pub id: &'static str,
    pub name: &'static str,
    pub state: TuningState,
    /// What was found out about this binary and this host.
    pub detail: String,
    /// The measurements; the figures are CPU without the tuning, divided by CPU with it.
    pub measured: String,
    /// Where they are kept, or how to make them.
    pub source: String,
    /// How to get it, if anything can be done.
    pub how: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuningState {
    InEffect,
    /// hasten, or the command named, can apply it.
    Applicable,
    NeedsBuild,
    NoEffect,
    /// It could be applied; whether it helps has not been measured on this release.
    Unmeasured,
}

impl TuningState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InEffect => "in effect",
            Self::Applicable => "hasten can apply it",
            Self::NeedsBuild => "needs a different build",
            Self::NoEffect => "no measurable effect here",
            Self::Unmeasured => "not measured on this release",
        }
    }
}

/// Everything that an answer may depend on.
#[derive(Debug)]
pub struct Subject<'a> {
    pub build: &'a NodeBuild,
    pub host: &'a Host,
    pub plan: &'a Plan,
    pub surroundings: &'a Surroundings,
    /// How many CPUs the process may run on.
    pub cpus_allowed: Option<usize>,
    pub measurements: &'a Measurements,
}

/// The table, in the order of the white paper.
pub fn tunings(subject: &Subject<'_>) -> Vec<Tuning> {
    vec![
        subject.async_tls(),
        subject.buffer_swap(),
        subject.huge_pages(),
        subject.semi_space(),
        subject.pointer_compression(),
        subject.short_builtin_calls(),
        subject.pgo(),
        subject.bolt(),
        subject.cpuset(),
        subject.main_thread_affinity(),
        subject.bytecode_cache(),
    ]
}

impl Subject<'_> {
    fn async_tls(&self) -> Tuning {
        let tuning = Tuning::new("async-tls", "Asynchronous TLS");
        let rows = self.measurements.handshakes();
        let tuning = tuning.kept("CPU per handshake, stock ÷ hasten: ", &rows);
        let obstacle = self.verdict("tls").and_then(|verdict| {
            let has = |features: &[Feature]| features.iter().all(|feature| self.host.cpu.has(*feature));
            let host = has(&Feature::MULTIBUFFER) || has(&Feature::SINGLE);
            verdict.reasons(Side::Against).find(|_| !host).map(|reason| reason.text.clone())
        });
        // nginx's OpenSSL counts, not that of Node.js.
        let library = self.surroundings.libssl.as_ref().and_then(Option::as_ref);
        if let (None, Some(why)) = (&obstacle, library.and_then(accelerator::tls::no_use)) {
            return tuning
                .state(
                    TuningState::NoEffect,
                    format!("an nginx of this host in front of it could not be accelerated: this host's {why}"),
                )
                .how("let an nginx that uses OpenSSL 3 end TLS in front of it, such as that of Debian or of its \
                      container image, and start that with `hasten run -- nginx`");
        }
        match obstacle {
            Some(why) => tuning.state(TuningState::NoEffect, why),
            None => tuning
                .state(
                    TuningState::Applicable,
                    "Node.js hands OpenSSL buffers, not sockets, so its own handshakes cannot be suspended; those of an nginx in front of it can",
                )
                .how("let nginx end TLS in front of it, and start that with `hasten run -- nginx`"),
        }
    }

    fn buffer_swap(&self) -> Tuning {
        let NodeBuild { swap16_gb_s, swap32_gb_s, swap64_gb_s, copy_gb_s, .. } = self.build;
        let slowest = swap16_gb_s.min(*swap32_gb_s).min(*swap64_gb_s);
        let tuning = Tuning::new("buffer-swap", "Buffer.swap with SIMD").measured(
            format!(
                "just now: swap16 {swap16_gb_s:.0}, swap32 {swap32_gb_s:.0}, swap64 {swap64_gb_s:.0} GB/s; a copy {copy_gb_s:.0} GB/s (64 KiB)"
            ),
            "this run of `hasten check`",
        );
        if slowest >= VECTORISED * copy_gb_s {
            tuning.state(TuningState::InEffect, "its compiler has made vector code of the loops")
        } else {
            tuning
                .state(TuningState::NeedsBuild, "swapping goes byte by byte")
                .how("use the official build, whose compiler makes vector code of the loops")
        }
    }

    fn huge_pages(&self) -> Tuning {
        let tuning = self.measured_tuning("huge-pages", "Code on huge pages", &["huge-pages"]);
        if self.build.major() >= NO_LARGE_PAGES {
            return tuning
                .state(
                    TuningState::NoEffect,
                    "--use-largepages is accepted and does nothing since Node.js 26",
                )
                .how_not();
        }
        let thp = self.host.memory.transparent_huge_pages.as_ref().map(|thp| thp.enabled.as_str());
        if !matches!(thp, Some("always" | "madvise")) {
            let detail = "this kernel has no transparent huge pages, or has them switched off";
            let fix = "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled";
            return tuning.state(TuningState::NoEffect, detail).how(fix);
        }
        if self.option(&["--use-largepages"]) {
            return tuning.state(TuningState::InEffect, "NODE_OPTIONS asks for it").how_not();
        }
        tuning
            .detail("--use-largepages is compiled in, and this kernel has the pages")
            .how("NODE_OPTIONS=--use-largepages=on hasten run -- node app.js")
    }

    fn semi_space(&self) -> Tuning {
        let tuning = self.measured_tuning("semi-space", "Semi-space size", &["semi-space", "semi-space-64"]);
        let default = self.build.semi_space_bytes / MIB;
        let limit = match self.host.kernel.cgroup.memory_limit_bytes {
            Some(bytes) => format!(" under the memory limit of {} MiB", bytes / MIB),
            None => String::new(),
        };
        if self.option(&["--max-semi-space-size"]) {
            let detail = format!("NODE_OPTIONS sets it; the default here is {default} MiB{limit}");
            return tuning.state(TuningState::InEffect, detail).how_not();
        }
        let measured = "what is best depends on the application";
        tuning
            .state(TuningState::Applicable, format!("{default} MiB by default{limit}; {measured}"))
            .how("hasten gc record PID --for 180s, hasten gc FILE --json >ADVICE, hasten run --apply-gc-advice ADVICE -- …")
    }

    fn pointer_compression(&self) -> Tuning {
        let tuning = Tuning::new("pointer-compression", "Pointer compression");
        self.built_in(tuning, self.build.pointer_compression, "v8_enable_pointer_compression")
            .measured("not by hasten: no build of the registry has it", BY_HAND)
    }

    fn short_builtin_calls(&self) -> Tuning {
        let tuning = self.measured_tuning(
            "short-builtin-calls",
            "Short calls of built-in code",
            &["short-builtin-calls"],
        );
        let old_space = self.build.old_space_bytes();
        if !self.build.short_builtin_calls {
            return self.built_in(tuning, false, "v8_enable_short_builtin_calls");
        }
        if old_space < SHORT_CALLS_OLD_SPACE {
            let detail = format!(
                "compiled in, but V8 leaves it off for an old generation of less than 2048 MiB; here it is {} MiB",
                old_space / MIB
            );
            return tuning
                .state(TuningState::NoEffect, detail)
                .how("--max-old-space-size=2048, if the memory is there");
        }
        tuning
            .state(TuningState::InEffect, "compiled in, and the heap is large enough for V8 to use it")
            .how_not()
    }

    fn pgo(&self) -> Tuning {
        let tuning = Tuning::new("pgo", "Profile-guided optimisation");
        let lto = if self.build.lto {
            "; link-time optimisation is in"
        } else {
            "; neither is link-time optimisation"
        };
        let mut tuning = self
            .built_in(tuning, self.build.pgo, "enable_pgo_use")
            .measured("not by hasten: no build of the registry has it", BY_HAND);
        tuning.detail.push_str(if self.build.pgo { "" } else { lto });
        tuning
    }

    fn bolt(&self) -> Tuning {
        let tuning =
            Tuning::new("bolt", "BOLT").measured("BOLT 19 on the official 20.20.2: within ±1 %", BY_HAND);
        match (self.build.bolt, self.build.relocations) {
            (true, _) => tuning.state(TuningState::InEffect, "BOLT has been over this file"),
            (false, true) => {
                tuning.state(TuningState::Applicable, "the file has kept its relocations").how("perf record, perf2bolt, llvm-bolt -skip-funcs=Builtins_.*")
            }
            (false, false) => tuning.state(
                TuningState::NoEffect,
                "without relocations BOLT cannot move functions, and most time is spent in code that V8 makes",
            ),
        }
    }

    fn cpuset(&self) -> Tuning {
        let tuning = self.measured_tuning("cpuset", "Own CPUs (cpuset)", &["cpuset"]);
        let all = self.host.cpu.threads;
        match self.cpus_allowed {
            Some(allowed) if allowed < all => {
                tuning.state(TuningState::InEffect, format!("{allowed} of {all} CPUs are allowed")).how_not()
            }
            _ if all < 2 => tuning.state(TuningState::NoEffect, "there is one CPU").how_not(),
            _ => tuning
                .detail(format!("all of {all} CPUs are allowed"))
                .how("taskset -c 0 hasten run -- node app.js"),
        }
    }

    fn main_thread_affinity(&self) -> Tuning {
        let tuning =
            self.measured_tuning("main-thread-affinity", "Main thread on one CPU", &["main-thread-affinity"]);
        if self.host.cpu.threads < 2 {
            return tuning.state(TuningState::NoEffect, "there is one CPU").how_not();
        }
        tuning
            .detail("the scheduler moves it as it sees fit")
            .how("taskset -p -c 0 PID, which leaves V8's threads free")
    }

    fn bytecode_cache(&self) -> Tuning {
        let tuning = self.measured_tuning("bytecode-cache", "Bytecode cache", &["bytecode-cache"]);
        let verdict = self.verdict(accelerator::node::NAME);
        let plugin = verdict.and_then(|verdict| verdict.library.as_deref());
        let present = self.surroundings.node_options.as_deref().unwrap_or_default();
        let loaded = node_options::compose(Some(present), None, &[]) != present;
        if loaded && plugin.is_some() {
            return tuning.state(TuningState::InEffect, "NODE_OPTIONS loads the plugin of hasten").how_not();
        }
        if self.surroundings.node_compile_cache.is_some() && self.build.compile_cache {
            let detail = "Node's own compile cache is on; hasten's saves looking for files, too";
            return tuning.state(TuningState::InEffect, detail).how("hasten run -- node app.js");
        }
        if self.build.ignores_node_options {
            return tuning.state(TuningState::NeedsBuild, "it was built to ignore NODE_OPTIONS").how_not();
        }
        let detail = "resolved paths, sources and compiled code in one file";
        let off = verdict.filter(|verdict| verdict.decision == Decision::Skip);
        let Some(reason) = off.and_then(|verdict| verdict.reasons(Side::Against).next()) else {
            return tuning.state(TuningState::Applicable, detail).how("hasten run -- node app.js");
        };
        let tuning = tuning.state(TuningState::Applicable, format!("{detail}; off now: {}", reason.text));
        match &reason.fix {
            Some(fix) => tuning.how(fix.clone()),
            None => tuning,
        }
    }

    /// A row whose state follows from the measurements on this release, unless something else is known.
    fn measured_tuning(&self, id: &'static str, name: &'static str, tunings: &[&str]) -> Tuning {
        let tuning = Tuning::new(id, name);
        let major = self.build.major();
        let rows = self.measurements.of(tunings, major, true);
        if rows.is_empty() {
            let elsewhere = self.measurements.of(tunings, major, false);
            let text = format!("not measured yet on Node.js {major}; ");
            return tuning.state(TuningState::Unmeasured, "").kept(&text, &elsewhere);
        }
        let faster = rows.iter().any(|measured| measured.is_faster());
        let state = if faster { TuningState::Applicable } else { TuningState::NoEffect };
        tuning.state(state, "").kept("CPU without ÷ with: ", &rows)
    }

    fn built_in(&self, tuning: Tuning, is_in: bool, variable: &str) -> Tuning {
        if is_in {
            tuning.state(TuningState::InEffect, format!("built with {variable}")).how_not()
        } else {
            tuning.state(TuningState::NeedsBuild, format!("built without {variable}")).how_not()
        }
    }

    fn verdict(&self, name: &str) -> Option<&Verdict> {
        self.plan.accelerators.iter().find(|verdict| verdict.name == name)
    }

    /// Whether `NODE_OPTIONS` already has one of these.
    fn option(&self, names: &[&str]) -> bool {
        let present = self.surroundings.node_options.as_deref().unwrap_or_default();
        node_options::texts(present).iter().any(|word| node_options::sets(word, names))
    }
}

/// The description of measurements that no bench repeats.
const BY_HAND: &str = "docs/node-tunings.md";

impl Tuning {
    fn new(id: &'static str, name: &'static str) -> Self {
        Self {
            id,
            name,
            state: TuningState::Unmeasured,
            detail: String::new(),
            measured: String::new(),
            source: String::new(),
            how: None,
        }
    }

    fn state(mut self, state: TuningState, detail: impl Into<String>) -> Self {
        self.state = state;
        self.detail = detail.into();
        self
    }

    fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    fn how(mut self, how: impl Into<String>) -> Self {
        self.how = Some(how.into());
        self
    }

    fn how_not(mut self) -> Self {
        self.how = None;
        self
    }

    fn measured(mut self, measured: impl Into<String>, source: impl Into<String>) -> Self {
        self.measured = measured.into();
        self.source = source.into();
        self
    }

    /// Quotes rows of a kept report, or says how to make one.
    fn kept(self, before: &str, rows: &[&Measured]) -> Self {
        let Some(first) = rows.first() else {
            let before = before.trim_end_matches("; ").trim_end_matches(": ");
            return self.measured(before, "`hasten bench node --tunings` measures it");
        };
        let texts: Vec<_> = rows.iter().map(|measured| measured.text()).collect();
        let source = first.source.clone();
        self.measured(format!("{before}{}", texts.join("; ")), source)
    }
}
