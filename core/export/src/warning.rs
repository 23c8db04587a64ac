//! What deserves attention on this host: each warning says what is wrong and what to do. Warnings about a single
//! program come from `hasten-telemetry`, here and in `hasten top`.

use hasten_device::discovery::Heartbeat;
use hasten_telemetry::{Severity, Warning as Finding};
use serde::{Serialize, Serializer};

use crate::collector::{DeviceState, Look};
use crate::totals::{Key, Program};

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    #[serde(serialize_with = "by_name")]
    pub severity: Severity,
    /// Stable, for scripts.
    pub code: &'static str,
    /// What it is about: a program, a device, or nothing in particular.
    pub subject: String,
    pub message: String,
    pub fix: String,
}

/// All warnings, gravest first.
#[must_use]
pub fn warnings(look: &Look) -> Vec<Warning> {
    let mut all = Vec::new();
    for page in &look.unreadable {
        let subject = format!("{} ({})", page.program, page.pid);
        all.push(Warning::about(&subject, Finding::unreadable(&page.message, &page.fix)));
    }
    for (key, program) in &look.programs {
        all.extend(of_program(key, program));
    }
    all.extend(look.devices.iter().flat_map(of_device));
    all.extend(denied(look.denied));
    all.sort_by_key(|warning| warning.severity);
    all
}

impl Warning {
    fn about(subject: &str, finding: Finding) -> Self {
        let Finding { severity, code, message, fix } = finding;
        Self { severity, code, subject: subject.to_owned(), message, fix }
    }

    fn new(
        severity: Severity,
        code: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { severity, code, subject: subject.into(), message: message.into(), fix: fix.into() }
    }
}

fn of_program(key: &Key, program: &Program) -> Vec<Warning> {
    let subject = format!("{} ({})", key.program, key.accelerator);
    let engines = || program.live.iter().flat_map(|page| &page.engines);
    let of_engines = engines().filter_map(|engine| Finding::of_engine(engine, None));
    let knows_engines = engines().next().is_some();
    let of_counters = Finding::of_counters(&program.counters, program.recent.as_ref(), knows_engines);
    let break_even = |algorithm| program.break_even(algorithm);
    let of_batches = program.recent.iter().flat_map(|recent| Finding::of_batches(break_even, recent));
    let of_suspension =
        program.live.iter().flat_map(|page| &page.suspension).filter_map(Finding::of_suspension);
    let all = of_engines.chain(of_suspension).chain(of_counters).chain(of_batches);
    all.map(|finding| Warning::about(&subject, finding)).collect()
}

fn of_device(state: &DeviceState) -> Vec<Warning> {
    let DeviceState { device, health, .. } = state;
    let subject = format!("{} {}", device.kind.label(), device.address);
    let check = "`hasten check` says what it lacks, and the command that puts it right.";
    let mut all = Vec::new();
    if health.heartbeat == Some(Heartbeat::Lost) {
        let message = "the device's firmware gives no sign of life";
        all.push(Warning::new(Severity::Critical, "heartbeat-lost", &subject, message, check));
    } else if !health.up {
        all.push(Warning::new(
            Severity::Note,
            "device-down",
            &subject,
            "the device is not in service",
            check,
        ));
    }
    if let Some((what, fix)) = health.hint.as_deref().and_then(|hint| hint.split_once(": ")) {
        all.push(Warning::new(Severity::Note, "no-telemetry", &subject, what, format!("As root: `{fix}`.")));
    }
    all
}

fn denied(count: usize) -> Option<Warning> {
    let who = if count == 1 { "1 process".to_owned() } else { format!("{count} processes") };
    let message = format!("{who} may not be inspected, and would be missing here if accelerated");
    let fix = "Run the exporter as root, or with the capabilities that packaging/systemd/hasten-export.service gives it.";
    (count > 0).then(|| Warning::new(Severity::Note, "denied", "this host", message, fix))
}

fn by_name<S: Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(severity.as_str())
}

#[cfg(test)]
#[path = "warning_tests.rs"]
mod tests;
