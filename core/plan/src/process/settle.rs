//! Turns configured settings into applied ones.

use std::ffi::OsString;

use hasten_probe::Program;
use hasten_probe::program::Libc;
use hasten_probe::program::kind::Kind;

use super::{NodeOption, Setting, Settings, is_set};
use crate::accelerator::node;
use crate::config::Config;
use crate::plan::Side;
use crate::preload;
use crate::surroundings::Surroundings;

const MIB: u64 = 1 << 20;
const THREADPOOL: &str = "UV_THREADPOOL_SIZE";
const COMPILE_CACHE: &str = "NODE_COMPILE_CACHE";
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Applies the configuration to this program.
pub(crate) fn settle(program: &Program, config: &Config, surroundings: &Surroundings) -> Settings {
    let mut work = Work { program, config, surroundings, settings: Settings::default() };
    work.cpus();
    work.huge_pages();
    work.malloc();
    work.node();
    work.environment();
    work.settings
}

struct Work<'a> {
    program: &'a Program,
    config: &'a Config,
    surroundings: &'a Surroundings,
    settings: Settings,
}

impl Work<'_> {
    fn cpus(&mut self) {
        let Some(cpus) = self.config.process.cpus.clone() else { return };
        let missing = self.surroundings.cpus.as_ref().and_then(|allowed| {
            let missing = cpus.0.iter().find(|cpu| !allowed.0.contains(cpu))?;
            Some(format!("CPU {missing} is not one of those that may be used here ({allowed})"))
        });
        if self.decide("[process] cpus", &cpus.to_string(), missing) {
            self.settings.cpus = Some(cpus);
        }
    }

    fn huge_pages(&mut self) {
        if self.config.process.no_thp && self.decide("[process] thp", "never", None) {
            self.settings.no_thp = true;
        }
    }

    fn malloc(&mut self) {
        let process = &self.config.process;
        let accepts = preload::accepts(self.program);
        let is_musl = self.program.libc() == Some(Libc::Musl);
        // These are settings of glibc's malloc, and allocators built for it.
        let refuses = is_musl.then(|| "it is for glibc, and this program is linked with musl".to_owned());
        let refuses = refuses.or((accepts.side == Side::Against).then_some(accepts.text));
        if let Some(allocator) = process.allocator {
            let library = allocator.library();
            let missing = || {
                library.is_none().then(|| format!("it is not installed (Debian: {})", allocator.package()))
            };
            let why = refuses.clone().or_else(missing);
            if self.decide("[process] allocator", allocator.name(), why) {
                self.settings.preload.extend(library);
            }
        }
        if let Some(arenas) = process.malloc_arenas {
            self.variable(
                "[process] malloc_arenas",
                "MALLOC_ARENA_MAX",
                arenas.to_string(),
                refuses.as_ref(),
            );
        }
        if process.malloc_hugepages {
            let value = "glibc.malloc.hugetlb=1".to_owned();
            self.variable("[process] malloc_hugepages", TUNABLES, value, refuses.as_ref());
        }
        if let Some(mib) = process.malloc_keep {
            let bytes = (mib * MIB).to_string();
            for name in ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"] {
                // malloc never takes blocks of more than 32 MiB from the heap.
                let bytes =
                    if name.contains("MMAP") { (mib.min(32) * MIB).to_string() } else { bytes.clone() };
                self.variable("[process] malloc_keep", name, bytes, refuses.as_ref());
            }
        }
    }

    fn node(&mut self) {
        let config = &self.config.node;
        let heeds = node::heeds(self.program);
        let refuses = (heeds.side == Side::Against).then_some(heeds.text);
        let refuses = self.surroundings.kill_switch(node::NAME).map(|reason| reason.text).or(refuses);
        for option in &config.options {
            let why = refuses.clone().or_else(|| self.against(option));
            if !self.decide("[node] options", &option.text, why) {
                continue;
            }
            if option.is_for_variable() {
                self.settings.node_options.push(option.text.clone());
            } else {
                self.settings.arguments.push(option.text.clone());
            }
        }
        if let Some(threads) = config.threadpool {
            self.variable("[node] threadpool", THREADPOOL, threads.to_string(), refuses.as_ref());
        }
        if config.compile_cache {
            match &self.surroundings.cache_directory {
                Some(folder) => {
                    let folder = folder.join("node-compile").into_os_string();
                    self.variable("[node] compile_cache", COMPILE_CACHE, folder, refuses.as_ref());
                }
                None => {
                    let why = "HASTEN_CACHE_DIR, XDG_CACHE_HOME and HOME are unset".to_owned();
                    self.decide("[node] compile_cache", "true", Some(why));
                }
            }
        }
    }

    fn against(&self, option: &NodeOption) -> Option<String> {
        let variable = self.surroundings.node_options.as_deref();
        let arguments = self.surroundings.arguments.iter().map(AsRef::as_ref);
        let advised = self.config.gc_advice.as_ref().is_some_and(|advice| {
            let name = |text: &str| text.split('=').next().map(ToOwned::to_owned);
            advice.settings.iter().any(|setting| name(&setting.option) == name(&option.text))
        });
        let is_node = self.program.kind == Kind::Node && self.program.scripts.is_empty();
        option
            // Everything after `--` is for the application.
            .decided(variable, arguments.take_while(|word| *word != "--"))
            .or_else(|| advised.then(|| "the GC advice sets it".to_owned()))
            .or_else(|| option.does_not_fit(self.surroundings.memory_limit))
            .or_else(|| {
                (!option.is_for_variable() && !is_node).then(|| {
                    let name = self.program.command.clone();
                    format!("NODE_OPTIONS may not hold it, and {name} is not node itself")
                })
            })
    }

    fn environment(&mut self) {
        for (name, value) in &self.config.environment {
            // A user who can write to a working directory must not choose what runs there.
            let unnamed =
                (!self.config.named).then(|| "it counts only in a file that --config names".to_owned());
            self.variable("[environment]", name, value.clone(), unnamed.as_ref());
        }
    }

    /// Sets a variable that the user has not set.
    fn variable(&mut self, key: &str, name: &str, value: impl Into<OsString>, refuses: Option<&String>) {
        let value = value.into();
        let why = refuses.cloned().or_else(|| is_set(&self.surroundings.environment, name));
        if self.decide(key, &format!("{name}={}", value.to_string_lossy()), why) {
            self.settings.variables.insert(name.to_owned(), value);
        }
    }

    /// Records a setting; returns whether it is applied.
    fn decide(&mut self, key: &str, value: &str, left_out: Option<String>) -> bool {
        // No accelerator has the empty name: this asks whether everything is switched off.
        let switched_off = self.surroundings.kill_switch("").map(|reason| reason.text);
        let left_out = switched_off.or(left_out);
        let applies = left_out.is_none();
        self.settings.list.push(Setting { key: key.to_owned(), value: value.to_owned(), left_out });
        applies
    }
}
