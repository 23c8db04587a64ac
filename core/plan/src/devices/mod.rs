//! Accelerator devices: which of their engines a process is told to try, and the outlook for each on this host.

mod settings;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hasten_probe::host::device::{Device, DeviceKind, Discovery, ENGINES, Entry};
use serde::Serialize;

use crate::config::Config;
use crate::findings;
use crate::plan::{Plan, Reason, Side, Verdict};
use crate::surroundings::Surroundings;

pub use self::settings::{Asked, LIBRARIES, RETRY, SWITCH, TIMEOUT};
pub(crate) use self::settings::{
    check_engine, check_libraries, check_retry, check_switch, check_timeout, library_folder, retry, timeout,
};

/// Those that an accelerator hands work to, each with that accelerator.
pub(crate) fn engines() -> impl Iterator<Item = (&'static Entry, &'static str)> {
    ENGINES.iter().filter_map(|entry| Some((entry, entry.accelerator?)))
}

/// The answer for one engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outlook {
    pub engine: &'static str,
    /// The accelerator whose work it would do.
    pub accelerator: &'static str,
    pub summary: &'static str,
    pub reasons: Vec<Reason>,
    /// Whether it is requested by name.
    #[serde(skip)]
    pub is_named: bool,
}

/// A device library that could be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    pub name: &'static str,
    /// Whether it only simulates a device.
    pub is_simulated: bool,
}

impl Outlook {
    /// Whether the process will try it. Whether it then works is another matter.
    pub fn is_tried(&self) -> bool {
        self.reasons.iter().all(|reason| reason.side != Side::Against)
    }

    /// Whether the user of the program expects to be told about it: it is tried, or was named in vain.
    pub fn concerns(&self) -> bool {
        self.is_tried() || self.is_named
    }
}

impl Plan {
    /// Adds the outlook for each engine; nothing if no device is configured, in which case `find` is not called.
    pub fn look_at_devices(
        &mut self,
        find: impl FnOnce() -> Discovery,
        config: &Config,
        surroundings: &Surroundings,
    ) {
        let Some((asked, source)) = asked(config, surroundings) else { return };
        let found = find();
        self.outlooks = engines().map(|engine| self.outlook(engine, &asked, &source, &found)).collect();
    }

    /// Adds whether the libraries of the engines to try can be opened, as `open` finds out; one that cannot is a reason
    /// against its engine.
    pub fn look_at_libraries(&mut self, open: impl Fn(&str) -> Option<Result<Opened, String>>) {
        for outlook in self.outlooks.iter_mut().filter(|outlook| outlook.is_tried()) {
            outlook.reasons.extend(open(outlook.engine).map(library));
        }
    }

    fn outlook(
        &self,
        (entry, accelerator): (&Entry, &'static str),
        asked: &Asked,
        source: &str,
        found: &Discovery,
    ) -> Outlook {
        let engine = entry.engine.as_str();
        let choice = choice(engine, asked, source);
        let reasons = if choice.side == Side::Against {
            vec![choice]
        } else {
            let device = device_reasons(entry.kind, found);
            [choice].into_iter().chain(self.carrier(accelerator)).chain(device).collect()
        };
        Outlook { engine, accelerator, summary: entry.summary, reasons, is_named: asked.names(engine) }
    }

    /// The reason against an engine that nobody hands work to.
    fn carrier(&self, accelerator: &str) -> Option<Reason> {
        let is_loaded = self.verdict(accelerator).is_some_and(Verdict::is_loaded);
        (!is_loaded).then(|| Reason::against(format!("{accelerator} is off, whose work it would do")))
    }
}

/// The source that requests this engine, if any: by name, or by requesting whatever is worth using.
pub(crate) fn who_asks_for(engine: &str, config: &Config, surroundings: &Surroundings) -> Option<String> {
    let (asked, source) = asked(config, surroundings)?;
    (asked == Asked::Auto || asked.names(engine)).then_some(source)
}

/// Where libraries are looked for, in place of the system's own places.
pub fn libraries(config: &Config, surroundings: &Surroundings) -> Option<PathBuf> {
    let variable = surroundings.device_libraries.as_deref().map(PathBuf::from);
    variable.or_else(|| config.devices.libraries.clone())
}

/// The variables that configure the process.
pub(crate) fn environment(config: &Config, surroundings: &Surroundings) -> Vec<(&'static str, OsString)> {
    let devices = &config.devices;
    let retry = devices.retry_ms.map(|(first, longest)| format!("{first}-{longest}"));
    let settings: [(_, Option<OsString>, _); 4] = [
        (SWITCH, devices.asked.as_ref().map(|asked| asked.as_variable().into()), &surroundings.devices),
        (TIMEOUT, devices.timeout_ms.map(|ms| ms.to_string().into()), &surroundings.device_timeout),
        (RETRY, retry.map(OsString::from), &surroundings.device_retry),
        (LIBRARIES, devices.libraries.clone().map(PathBuf::into_os_string), &surroundings.device_libraries),
    ];
    let by_file = settings.into_iter().filter(|(_, _, variable)| variable.is_none());
    by_file.filter_map(|(name, value, _)| Some((name, value?))).collect()
}

/// What is requested, and by which source.
fn asked(config: &Config, surroundings: &Surroundings) -> Option<(Asked, String)> {
    if let Some(list) = surroundings.devices.as_deref() {
        let list = list.to_string_lossy();
        return Some((Asked::from_variable(&list), format!("{SWITCH}={list}")));
    }
    let file = config.file.as_deref().unwrap_or(Path::new("hasten.toml")).display();
    config.devices.asked.clone().map(|asked| (asked, format!("[devices] use in {file}")))
}

fn choice(engine: &str, asked: &Asked, source: &str) -> Reason {
    match asked {
        Asked::Off => Reason::against(format!("{source} switches devices off")),
        Asked::Auto => Reason::favour(format!("{source}: where it takes less CPU time than software")),
        Asked::Only(_) if asked.names(engine) => {
            Reason::favour(format!("{source} asks for it, whether or not it pays"))
        }
        Asked::Only(_) => Reason::against(format!("{source} does not name it")),
    }
}

fn device_reasons(kind: DeviceKind, found: &Discovery) -> Vec<Reason> {
    let of_kind = |device: &&Device| device.kind == kind;
    let label = kind.label();
    if !found.devices.iter().any(|device| of_kind(&device)) {
        return vec![Reason::against(format!("there is no {label} device"))];
    }
    let up: Vec<_> = found.devices.iter().filter(of_kind).filter(|device| device.is_up()).collect();
    let addresses = up.iter().map(|device| device.address.as_str()).collect::<Vec<_>>().join(", ");
    let standing = match up.len() {
        0 => Reason::against(format!("no {label} device is up")),
        1 => Reason::favour(format!("the {label} device {addresses} is up")),
        _ => Reason::favour(format!("the {label} devices {addresses} are up")),
    };
    let hindrances = findings::devices::hindrances(kind, &found.devices, &found.caller);
    // One device that nothing hinders is enough.
    let hindered = hindrances.into_iter().collect::<Option<Vec<_>>>().unwrap_or_default();
    let hindered = hindered
        .into_iter()
        .map(|(address, hindrance)| Reason::idle(format!("{address}: {}", hindrance.why)).fix(hindrance.fix));
    [standing].into_iter().chain(hindered).collect()
}

fn library(opened: Result<Opened, String>) -> Reason {
    match opened {
        Ok(Opened { name, is_simulated: true }) => {
            Reason::favour(format!("{name} opens, and is simulated: no device is behind it"))
        }
        Ok(Opened { name, .. }) => Reason::favour(format!("{name} opens")),
        Err(error) => Reason::against(error),
    }
}
