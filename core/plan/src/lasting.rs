//! A plan for a place that outlives today's program: the unit of a service, which an upgrade gives another one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use hasten_probe::Program;

use crate::accelerator::{Carrier, carried_by};
use crate::config::Config;
use crate::library;
use crate::plan::{Plan, Reason};
use crate::preload;
use crate::surroundings::{DISABLE, Surroundings};

/// The variables that accelerate a program whoever starts it, and whichever it is by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lasting {
    pub variables: Vec<(String, OsString)>,
    /// The shim, which looks at the process that it is loaded into and decides there; `None` if only Node.js is
    /// accelerated.
    pub shim: Option<PathBuf>,
    /// Settings of the configuration file that no variable carries.
    pub left_out: Vec<String>,
}

impl Plan {
    /// The same plan as variables alone, with the shim in place of the libraries chosen for today's program.
    pub fn lasting(
        &self,
        program: &Program,
        config: &Config,
        surroundings: &Surroundings,
    ) -> Result<Lasting, Reason> {
        let shim = if self.preload.is_empty() { None } else { Some(library::find_shim(surroundings)?) };
        let libraries: Vec<_> = self.settings.preload.iter().chain(&shim).cloned().collect();
        let preload = preload::compose(surroundings.ld_preload.as_deref(), &libraries);
        let unwanted = unwanted(config).filter(|_| shim.is_some());
        let mut variables = BTreeMap::from([("LD_PRELOAD".to_owned(), preload)]);
        // The place may have been planned before: what is unchanged since then stays.
        variables
            .extend(surroundings.node_options.clone().map(|options| ("NODE_OPTIONS".to_owned(), options)));
        variables.extend(unwanted.map(|names| (DISABLE.to_owned(), OsString::from(names))));
        let others = self.launch(program, &[]).env.into_iter();
        // The shim chooses for itself, because the program may be another one by then.
        let others = others.filter(|(name, _)| name != "LD_PRELOAD" && name != preload::CHOSEN);
        variables.extend(others.map(|(name, value)| (name, value.unwrap_or_default())));
        variables.retain(|_, value| !value.is_empty());
        Ok(Lasting { variables: variables.into_iter().collect(), shim, left_out: self.without_a_variable() })
    }

    fn without_a_variable(&self) -> Vec<String> {
        let settings = &self.settings;
        let cpus = settings.cpus.as_ref().map(|_| "[process] cpus: set CPUAffinity= in the unit");
        let thp = settings.no_thp.then_some("[process] transparent-huge-pages: set it for the whole system");
        let arguments = (!settings.arguments.is_empty())
            .then_some("options of Node.js that only a command line may have: add them to ExecStart=");
        [cpus, thp, arguments].into_iter().flatten().map(str::to_owned).collect()
    }
}

/// What the shim would load although the configuration leaves it out.
fn unwanted(config: &Config) -> Option<String> {
    let names = carried_by(Carrier::LdPreload).map(|accelerator| accelerator.name());
    let unwanted: Vec<_> = names.filter(|name| config.refuses(name)).collect();
    (!unwanted.is_empty()).then(|| unwanted.join(","))
}
