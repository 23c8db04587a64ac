//! What deserves attention: each warning says what is wrong and what to do.

use std::time::Duration;

use hasten_device::discovery::Heartbeat;
use hasten_telemetry::{BreakerState, Event, Reason};
use serde::Serialize;

use crate::collector::{DeviceState, Look};
use crate::engines::EngineState;
use crate::recent::Window;
use crate::totals::{Key, Program};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    pub severity: Severity,
    /// Stable, for scripts.
    pub code: &'static str,
    /// What it is about: a program, a device, or nothing in particular.
    pub subject: String,
    pub message: String,
    pub fix: String,
}

/// Gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something is broken.
    Critical,
    /// CPU is being lost.
    Warning,
    /// Worth knowing.
    Note,
}

/// Fewer operations than this in a window are no statistics.
const ENOUGH: u64 = 20;
/// Below this rate, one at a time is as it should be.
const BUSY: f64 = 100.0;

/// Everything there is to say, gravest first.
#[must_use]
pub fn warnings(look: &Look) -> Vec<Warning> {
    let mut all = Vec::new();
    for page in &look.unreadable {
        let subject = format!("{} ({})", page.program, page.pid);
        all.push(Warning::new(
            Severity::Warning,
            "unreadable",
            subject,
            page.message.clone(),
            sentence(&page.fix),
        ));
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
    let mut all: Vec<Warning> = program
        .live
        .iter()
        .flat_map(|page| &page.engines)
        .filter_map(|engine| breaker(&subject, engine))
        .collect();
    all.extend(wrong_results(&subject, program));
    if let Some(recent) = &program.recent {
        // Where breakers are known, they have said it better.
        let knows_breakers = program.live.iter().any(|page| !page.engines.is_empty());
        let reasons =
            Reason::ALL.into_iter().filter(|reason| *reason != Reason::BreakerOpen || !knows_breakers);
        all.extend(reasons.filter_map(|reason| fallback(&subject, recent, reason)));
    }
    all
}

/// Never normal, so it stays as long as the exporter runs.
fn wrong_results(subject: &str, program: &Program) -> Option<Warning> {
    let count =
        program.counters[Event::VerifyFailed].saturating_add(program.counters[Event::DeflateMismatch]);
    let message = match count {
        1 => {
            "a result of an engine was wrong: caught, not released, and done again by the original".to_owned()
        }
        _ => format!(
            "{count} results of engines were wrong: caught, not released, and done again by the original"
        ),
    };
    let fix = "Run memory and CPU diagnostics on this host, and report the CPU model if it happens on more than one host.";
    (count > 0).then(|| Warning::new(Severity::Critical, "verify-failed", subject, message, fix))
}

fn breaker(subject: &str, state: &EngineState) -> Option<Warning> {
    let (engine, (same, of)) = (state.engine, state.processes);
    let where_ = if state.device.is_empty() { String::new() } else { format!(" on {}", state.device) };
    let (severity, code, what) = match state.breaker {
        BreakerState::Closed => return None,
        BreakerState::Open => (Severity::Warning, "breaker-open", "is out of service"),
        BreakerState::HalfOpen => {
            (Severity::Warning, "breaker-half-open", "is being tried again after a fault")
        }
        BreakerState::Disabled => (Severity::Note, "engine-disabled", "was taken out of service by hand"),
    };
    let because = state
        .fault
        .map(|fault| format!(": {fault}"))
        .filter(|_| code != "engine-disabled")
        .unwrap_or_default();
    let again = state.probe.filter(|_| state.breaker == BreakerState::Open).map(again).unwrap_or_default();
    let message = format!("the engine {engine}{where_} {what} in {same} of {of} processes{because}{again}");
    let fix = match (state.breaker, state.fault) {
        (BreakerState::Disabled, _) => format!("`hasten engine enable {engine}` puts it back."),
        (_, Some(fault)) => fault.help().to_owned(),
        (_, None) => "The next best engine does its work meanwhile; look at the kernel log.".to_owned(),
    };
    Some(Warning::new(severity, code, subject, message, fix))
}

fn again(probe: Duration) -> String {
    match probe.as_secs() {
        0 => ", to be tried again at once".to_owned(),
        seconds => format!(", to be tried again in {seconds} s"),
    }
}

/// Work that takes the original path, where it is more than it should be for this reason.
fn fallback(subject: &str, recent: &Window, reason: Reason) -> Option<Warning> {
    let (threshold, severity, needs_load) = match reason {
        Reason::Disabled | Reason::NoIfma | Reason::UnknownLibrary => (0.0, Severity::Warning, false),
        Reason::BreakerOpen | Reason::UnknownAllocation => (0.0, Severity::Warning, false),
        Reason::NoStack => (0.01, Severity::Warning, false),
        Reason::Cancelled => (0.05, Severity::Note, false),
        Reason::NotPolled
        | Reason::ForeignThread
        | Reason::UnsupportedKey
        | Reason::NotExportable
        | Reason::UnsupportedParameters => (0.1, Severity::Warning, false),
        Reason::Alone | Reason::BelowBreakEven | Reason::SmallFlushes => (0.5, Severity::Note, true),
        // What a client, the program itself or an operator does is none of our business.
        Reason::ServerNotHandshaking
        | Reason::StoredLevel
        | Reason::UnusualStrategy
        | Reason::EngineDisabled => return None,
    };
    let (all, count) = (operations(recent), recent.counted[reason]);
    let share = (count as f64 / all.max(1) as f64).min(1.0);
    let is_busy = all as f64 / recent.elapsed.as_secs_f64() >= BUSY;
    let applies = count > 0 && share >= threshold && all >= ENOUGH && (!needs_load || is_busy);
    let message = format!("{:.0} % of its work takes the original path: {reason}", share * 100.0);
    applies.then(|| Warning::new(severity, reason.as_str(), subject, message, reason.help()))
}

/// Operations of TLS, or streams.
fn operations(recent: &Window) -> u64 {
    let counted = &recent.counted;
    match counted[Event::DeflateStreams].saturating_add(counted[Event::InflateStreams]) {
        0 => counted.total().queued().saturating_add(counted.bypassed()),
        streams => streams,
    }
}

fn of_device(state: &DeviceState) -> Vec<Warning> {
    let DeviceState { device, health } = state;
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
    let message = format!("{who} may not be looked into, and would be missing here if accelerated");
    let fix = "Run the exporter as root, or with the capabilities that packaging/systemd/hasten-export.service gives it.";
    (count > 0).then(|| Warning::new(Severity::Note, "denied", "this host", message, fix))
}

fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", characters.as_str())
}

#[cfg(test)]
#[path = "warning_tests.rs"]
mod tests;
