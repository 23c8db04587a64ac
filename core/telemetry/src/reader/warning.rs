//! Conditions in a program that deserve attention: each warning says what is wrong and how to fix it.
//!
//! Every display of counters shows these: `hasten top` and the exporter give the same warnings in the same words.

use super::{BreakEven, Counters, EngineCondition, SuspensionShare, Window};
use crate::{Algorithm, BreakerState, Doubt, Event, Fault, LANES, Reason, Suspension};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub severity: Severity,
    /// Stable, for scripts.
    pub code: &'static str,
    pub message: String,
    pub fix: String,
}

/// Gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something is broken.
    Critical,
    /// CPU is being lost.
    Warning,
    /// Worth knowing.
    Note,
}

/// Below this rate a share of operations means nothing: an idle server runs them one by one, as it should.
const BUSY: f64 = 100.0;
/// Fewer operations than this give no statistics.
const ENOUGH: u64 = 20;

impl Warning {
    /// For a page that cannot be read: its error, and the fix.
    pub fn unreadable(message: impl Into<String>, fix: &str) -> Self {
        Self::new(Severity::Critical, "unreadable", message.into(), sentence(fix))
    }

    /// The warnings from a program's counts, gravest first. If the states of its engines are known, as in
    /// [`Self::of_engine`], they are more precise than counts of past events.
    pub fn of_counters(total: &Counters, recent: Option<&Window>, knows_engines: bool) -> Vec<Self> {
        let mut warnings = Vec::new();
        warnings.extend(verify_failed(total));
        warnings.extend(wrong_results(total));
        warnings.extend(breaker_opened(total).filter(|_| !knows_engines));
        warnings.extend(failed(total));
        if let Some(recent) = recent {
            let reasons = Reason::ALL.into_iter();
            let reasons = reasons.filter(|reason| *reason != Reason::BreakerOpen || !knows_engines);
            warnings.extend(reasons.filter_map(|reason| bypassed(recent, reason)));
            warnings.extend(larger_output(recent));
            warnings.extend(pool_misses(recent));
            warnings.extend(failing_handshakes(recent));
        }
        warnings.sort_by_key(|warning| warning.severity);
        warnings
    }

    /// Batches that run although they do not pay, by the page's break-even.
    pub fn of_batches(break_even: impl Fn(Algorithm) -> Option<BreakEven>, recent: &Window) -> Vec<Self> {
        let thin = |algorithm| thin_batches(break_even(algorithm)?, recent, algorithm);
        Algorithm::ALL.into_iter().filter_map(thin).collect()
    }

    /// For an engine that is out of service: why, and how to put it back. `pid` is a process of the program, for people
    /// who can see only one.
    pub fn of_engine(engine: &EngineCondition, pid: Option<u32>) -> Option<Self> {
        out_of_service(engine, pid)
    }

    /// For processes that no longer suspend handshakes: what they saw, and how to fix it.
    pub fn of_suspension(share: &SuspensionShare) -> Option<Self> {
        suspension_off(share)
    }

    /// For a page that cannot report on its engines.
    pub fn of_older_page() -> Self {
        older_page()
    }

    fn new(severity: Severity, code: &'static str, message: String, fix: impl Into<String>) -> Self {
        Self { severity, code, message, fix: fix.into() }
    }
}

impl Severity {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

fn out_of_service(engine: &EngineCondition, pid: Option<u32>) -> Option<Warning> {
    let report = engine.report?;
    let (name, fault) = (engine.title(), report.fault.map_or("a fault", Fault::as_str));
    let age = duration(engine.age().unwrap_or_default());
    let processes = match engine.processes {
        (some, all) if some < all => format!(" in {some} of {all} processes"),
        _ => String::new(),
    };
    let help = || report.fault.map_or("Nothing: it comes back by itself.", Fault::help);
    let grave = if report.fault == Some(Fault::BadOutput) { Severity::Critical } else { Severity::Warning };
    match report.state {
        BreakerState::Closed => None,
        BreakerState::Open => {
            let again = engine
                .retry()
                .map_or_else(String::new, |left| format!("; tried again in {}", duration(left)));
            let message = format!("{name} is out of service{processes} after {fault}, for {age}{again}");
            Some(Warning::new(grave, "engine-open", message, help()))
        }
        BreakerState::HalfOpen => {
            let message = format!("{name} is being tried again{processes} after {fault}");
            Some(Warning::new(Severity::Note, "engine-half-open", message, help()))
        }
        BreakerState::Disabled => {
            let message = format!("{name} was disabled by hand{processes}, {age} ago: others do its work");
            let pid = pid.map(|pid| format!(" {pid}")).unwrap_or_default();
            let fix = format!("Put it back with `hasten engine enable {}{pid}`.", engine.engine);
            Some(Warning::new(Severity::Warning, "engine-disabled", message, fix))
        }
    }
}

fn suspension_off(share: &SuspensionShare) -> Option<Warning> {
    let doubt = share.report.doubt;
    let of = if share.processes < share.of {
        format!(" in {} of {} processes", share.processes, share.of)
    } else {
        String::new()
    };
    let why = doubt.map_or("no reason was given", Doubt::as_str);
    let age = duration(share.age());
    let message = format!("handshakes have not been suspended{of} for {age}: {why}");
    let fix = doubt.map_or("Restart the program, and report it if it comes back.", Doubt::help);
    (share.report.state == Suspension::Off)
        .then(|| Warning::new(Severity::Warning, "suspension-off", message, fix))
}

fn older_page() -> Warning {
    let message =
        "this program was started by an older hasten, which does not tell of its engines".to_owned();
    let fix =
        "Restart it with this hasten when it suits you: its engines are listed then, and can be switched.";
    Warning::new(Severity::Note, "older-page", message, fix)
}

/// Never normal, so it is shown for the life of the server.
fn verify_failed(total: &Counters) -> Option<Warning> {
    let count = total[Event::VerifyFailed];
    let message = format!(
        "{count} batched signature{} failed verification; none was released, the original function redid them",
        plural(count)
    );
    let fix = "Run memory and CPU diagnostics on this host; HASTEN_DISABLE=tls and a restart stop batching \
               meanwhile; please report it if it happens on more than one host.";
    (count > 0).then(|| Warning::new(Severity::Critical, "verify-failed", message, fix))
}

/// Never normal either.
fn wrong_results(total: &Counters) -> Option<Warning> {
    let count = total[Event::DeflateMismatch];
    let message = format!(
        "{count} compressed result{} failed verification; none was released, the original zlib did {} again",
        plural(count),
        if count == 1 { "it" } else { "them" }
    );
    let fix = "Run memory and CPU diagnostics on this host; the engine is tried again, verified, at growing intervals; \
               please report the CPU model if it happens on more than one host.";
    (count > 0).then(|| Warning::new(Severity::Critical, "deflate-mismatch", message, fix))
}

/// If results are verified, the cause has a warning of its own.
fn breaker_opened(total: &Counters) -> Option<Warning> {
    let count = total[Event::BreakerOpened];
    let message = format!("the breaker of an engine opened {count} time{} since the start", plural(count));
    let fix = "The server goes on with the next best engine meanwhile, and tries this one again by itself; please \
               report it with the CPU model.";
    (count > 0 && total[Event::DeflateMismatch] == 0)
        .then(|| Warning::new(Severity::Warning, "breaker-opened", message, fix))
}

fn failed(total: &Counters) -> Option<Warning> {
    let failed = total.total().failed;
    // Results that failed verification have a warning of their own.
    let count = failed.saturating_sub(total[Event::VerifyFailed]);
    let message =
        format!("{count} batched operation{} failed and went to the original function", plural(count));
    let fix = "Clients that send invalid key shares cause this: a few are normal; many mean a broken client or a \
               scan, so look at the server's error log for the addresses.";
    (count > 0).then(|| Warning::new(Severity::Note, "failed-operations", message, fix))
}

fn bypassed(recent: &Window, reason: Reason) -> Option<Warning> {
    let (threshold, severity, needs_load) = match reason {
        Reason::Disabled | Reason::NoIfma | Reason::UnknownLibrary => (0.0, Severity::Warning, false),
        Reason::NoStack => (0.01, Severity::Warning, false),
        Reason::Cancelled => (0.05, Severity::Note, false),
        Reason::NotPolled
        | Reason::ForeignThread
        | Reason::NotNativeStack
        | Reason::UnsupportedKey
        | Reason::NotExportable
        | Reason::UnsupportedParameters => (0.1, Severity::Warning, false),
        Reason::Alone | Reason::BelowBreakEven => (0.5, Severity::Note, true),
        Reason::BreakerOpen | Reason::UnknownAllocation => (0.0, Severity::Warning, false),
        // These have warnings of their own, by engine and by process.
        Reason::EngineDisabled | Reason::SuspensionOff => return None,
        Reason::SmallFlushes | Reason::Shadowed | Reason::Callback => (0.5, Severity::Note, true),
        // What a client or the program itself does is its own business.
        Reason::ServerNotHandshaking | Reason::StoredLevel | Reason::UnusualStrategy => return None,
    };
    let (all, count) = (recent.operations(), recent.counted[reason]);
    let share = (count as f64 / all.max(1) as f64).min(1.0);
    let load = recent.per_second(all);
    let applies = count > 0 && share >= threshold && all >= ENOUGH && (!needs_load || load >= BUSY);
    let what = if recent.is_of_streams() { "streams" } else { "operations" };
    let message = format!("{:.0}% of {what} take the original path: {reason}", share * 100.0);
    applies.then(|| Warning::new(severity, reason.as_str(), message, reason.help()))
}

/// More bytes out than in: compressed data should not be compressed again.
fn larger_output(recent: &Window) -> Option<Warning> {
    const ENOUGH_BYTES: u64 = 1 << 20;
    let (before, after) = (recent.counted[Event::DeflateBytesIn], recent.counted[Event::DeflateBytesOut]);
    let message = "compression makes this data no smaller".to_owned();
    let fix = "Leave out types that are compressed already, such as images, video and archives (nginx: `gzip_types`), \
               and bodies of a few bytes (nginx: `gzip_min_length`).";
    (before >= ENOUGH_BYTES && after >= before / 100 * 98)
        .then(|| Warning::new(Severity::Note, "incompressible", message, fix))
}

/// Only if the break-even was set by hand. A measured one moves and is tried out, so a few batches are always below it,
/// and nothing can be done about them.
fn thin_batches(known: BreakEven, recent: &Window, algorithm: Algorithm) -> Option<Warning> {
    let average = recent.counted[algorithm].average_lanes()?;
    let set = known.lanes;
    let needed = known.measured_lanes()?;
    let message = format!(
        "batches of {algorithm} fill {average:.1} lanes on average, and {needed} or more pay off: the break-even is set to {set}"
    );
    let never = format!(
        "batches of {algorithm} are run although none pays off on this CPU: the break-even is set to {set}"
    );
    let message = if needed > LANES as u64 { never } else { message };
    let fix = "Remove HASTEN_TLS_BREAK_EVEN from the environment or [tls] break_even from hasten.toml, so that the \
               measured break-even applies.";
    (!known.is_measured() && average < needed as f64)
        .then(|| Warning::new(Severity::Warning, "lanes-below-break-even", message, fix))
}

fn pool_misses(recent: &Window) -> Option<Warning> {
    let (hits, misses) = (recent.counted[Event::PoolHit], recent.counted[Event::PoolMiss]);
    let all = hits.saturating_add(misses);
    let share = misses as f64 / all.max(1) as f64;
    let message = format!("{:.0}% of ephemeral keys were not ready in the pool", share * 100.0);
    let fix = "Expected for a moment after start and after a change of key-exchange group; if it stays, the groups \
               change too often for the pool: narrow the server's list of curves.";
    (all >= ENOUGH && share >= 0.2).then(|| Warning::new(Severity::Note, "pool-misses", message, fix))
}

fn failing_handshakes(recent: &Window) -> Option<Warning> {
    let (failed, finished) =
        (recent.counted[Event::HandshakeFailed], recent.counted[Event::HandshakeFinished]);
    let all = failed.saturating_add(finished);
    let share = failed as f64 / all.max(1) as f64;
    let message = format!("{:.0}% of handshakes fail", share * 100.0);
    let fix = "Look at the server's error log: protocol or certificate mismatches, health checks that close early, \
               or a scan; if they stop with HASTEN_DISABLE=tls, please report it.";
    (all >= ENOUGH && share >= 0.1).then(|| Warning::new(Severity::Note, "handshakes-fail", message, fix))
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A fix from `hasten`, as a sentence.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", characters.as_str())
}

/// A period of time as people read it: the two largest units.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m {}s", seconds % 60),
        3600..86_400 => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

#[cfg(test)]
#[path = "warning_tests.rs"]
mod tests;
