//! What deserves attention: each warning says what is wrong and what to do.

use hasten_telemetry::{Algorithm, BreakerState, Counters, Event, Fault, LANES, PageError, Reason, Snapshot};

use super::{EngineStatus, Window};
use crate::cmd::top::format::duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cmd::top) struct Warning {
    pub(in crate::cmd::top) severity: Severity,
    /// Stable, for scripts.
    pub(in crate::cmd::top) code: &'static str,
    pub(in crate::cmd::top) message: String,
    pub(in crate::cmd::top) fix: String,
}

/// Gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cmd::top) enum Severity {
    /// Something is broken.
    Critical,
    /// CPU is being lost.
    Warning,
    /// Worth knowing.
    Note,
}

/// Below this rate a share of operations says nothing: a server at rest runs
/// them one by one, as it should.
const BUSY: f64 = 100.0;
/// Fewer operations than this are no statistics.
const ENOUGH: u64 = 20;

impl Warning {
    pub(super) fn unreadable(error: &PageError) -> Self {
        let fix = error.fix();
        let (first, rest) = fix.split_at(1);
        let fix = format!("{}{rest}.", first.to_uppercase());
        Self::new(Severity::Critical, "unreadable", error.to_string(), fix)
    }

    pub(super) fn all(snapshot: &Snapshot, total: &Counters, recent: Option<&Window>) -> Vec<Self> {
        let mut warnings = Vec::new();
        warnings.extend(verify_failed(total));
        warnings.extend(wrong_results(total));
        warnings.extend(breaker_opened(total));
        warnings.extend(failed(total));
        if let Some(recent) = recent {
            warnings.extend(Reason::ALL.into_iter().filter_map(|reason| bypassed(recent, reason)));
            warnings.extend(larger_output(recent));
            warnings.extend(Algorithm::ALL.into_iter().filter_map(|a| thin_batches(snapshot, recent, a)));
            warnings.extend(pool_misses(recent));
            warnings.extend(failing_handshakes(recent));
        }
        warnings.sort_by_key(|warning| warning.severity);
        warnings
    }

    /// What is not in service, and why. `pid` is a process of the program.
    pub(super) fn of_engines(snapshot: &Snapshot, engines: &[EngineStatus], pid: u32) -> Vec<Self> {
        if snapshot.engines.is_empty() && snapshot.control.is_none() {
            return vec![older_page()];
        }
        engines.iter().filter_map(|engine| out_of_service(engine, pid)).collect()
    }

    fn new(severity: Severity, code: &'static str, message: String, fix: impl Into<String>) -> Self {
        Self { severity, code, message, fix: fix.into() }
    }
}

impl Severity {
    pub(in crate::cmd::top) const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

fn out_of_service(engine: &EngineStatus, pid: u32) -> Option<Warning> {
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
            let fix = format!("Put it back with `hasten engine enable {} {pid}`.", engine.engine);
            Some(Warning::new(Severity::Warning, "engine-disabled", message, fix))
        }
    }
}

fn older_page() -> Warning {
    let message =
        "this program was started by an older hasten, which does not tell of its engines".to_owned();
    let fix =
        "Restart it with this hasten when it suits you: its engines are listed then, and can be switched.";
    Warning::new(Severity::Note, "older-page", message, fix)
}

/// Never normal, so it stays for the life of the server.
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

/// Never normal, either.
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

/// What opened it has a warning of its own where results are verified.
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
    // Those that failed verification have a warning of their own.
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
        | Reason::UnsupportedKey
        | Reason::NotExportable
        | Reason::UnsupportedParameters => (0.1, Severity::Warning, false),
        Reason::Alone | Reason::BelowBreakEven => (0.5, Severity::Note, true),
        Reason::BreakerOpen | Reason::UnknownAllocation => (0.0, Severity::Warning, false),
        // It has a warning of its own, by engine.
        Reason::EngineDisabled => return None,
        Reason::SmallFlushes => (0.5, Severity::Note, true),
        // What a client or the program itself does is none of our business.
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

/// More bytes out than in: what is compressed already should not be compressed again.
fn larger_output(recent: &Window) -> Option<Warning> {
    const ENOUGH_BYTES: u64 = 1 << 20;
    let (before, after) = (recent.counted[Event::DeflateBytesIn], recent.counted[Event::DeflateBytesOut]);
    let message = "compression makes this data no smaller".to_owned();
    let fix = "Leave out types that are compressed already, such as images, video and archives (nginx: `gzip_types`), \
               and bodies of a few bytes (nginx: `gzip_min_length`).";
    (before >= ENOUGH_BYTES && after >= before / 100 * 98)
        .then(|| Warning::new(Severity::Note, "incompressible", message, fix))
}

fn thin_batches(snapshot: &Snapshot, recent: &Window, algorithm: Algorithm) -> Option<Warning> {
    let needed = snapshot.break_even(algorithm)?.lanes;
    let average = recent.counted[algorithm].average_lanes()?;
    let message = format!(
        "batches of {algorithm} fill {average:.1} lanes on average, and only {needed} or more pay off"
    );
    let never = format!("batches of {algorithm} are run although none pays off on this CPU");
    let message = if needed > LANES as u64 { never } else { message };
    let fix = "Remove HASTEN_TLS_BREAK_EVEN from the environment or [tls] break_even from hasten.toml, so that the \
               measured break-even applies; with several workers, fewer of them fill more lanes.";
    (average < needed as f64).then(|| Warning::new(Severity::Warning, "lanes-below-break-even", message, fix))
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cmd::top::fixture;

    /// Codes of the warnings after ten seconds of these counters.
    fn codes(counters: &Counters) -> Vec<&'static str> {
        let snapshot = fixture::idle(1).snapshot.unwrap();
        let recent = Window { elapsed: Duration::from_secs(10), counted: counters.clone() };
        let warnings = Warning::all(&snapshot, counters, Some(&recent));
        assert!(warnings.iter().all(|w| w.fix.ends_with('.') && !w.fix.contains("  ")), "{warnings:?}");
        assert!(warnings.is_sorted_by_key(|w| w.severity));
        warnings.iter().map(|warning| warning.code).collect()
    }

    fn counters(change: impl FnOnce(&mut Counters)) -> Counters {
        let mut counters = Counters::default();
        change(&mut counters);
        counters
    }

    fn busy(change: impl FnOnce(&mut Counters)) -> Counters {
        counters(|counters| {
            let one = &mut counters[Algorithm::Rsa2048Sign];
            (one.batched, one.batches) = (8000, 1000);
            change(counters);
        })
    }

    #[test]
    fn a_healthy_server_has_none_busy_or_not() {
        assert!(codes(&Counters::default()).is_empty());
        assert!(codes(&busy(|_| {})).is_empty());
        let quiet = counters(|c| {
            c[Algorithm::Rsa2048Sign].scalar = 50;
            c[Reason::Alone] = 50;
        });
        assert!(codes(&quiet).is_empty(), "one at a time is right at low load");
    }

    #[test]
    fn a_failed_verification_is_critical_and_comes_first() {
        let broken = busy(|c| {
            c[Event::VerifyFailed] = 1;
            c[Algorithm::Rsa2048Sign].failed = 3;
            c[Reason::NotPolled] = 5000;
        });
        assert_eq!(codes(&broken), ["verify-failed", "not-polled", "failed-operations"]);
    }

    #[test]
    fn a_wrong_result_of_an_engine_is_critical_and_named_once() {
        let wrong = counters(|c| {
            c[Event::DeflateStreams] = 1000;
            (c[Event::DeflateMismatch], c[Event::BreakerOpened]) = (1, 1);
            c[Reason::BreakerOpen] = 400;
        });
        assert_eq!(codes(&wrong), ["deflate-mismatch", "breaker-open"]);
        assert_eq!(codes(&counters(|c| c[Event::BreakerOpened] = 1)), ["breaker-opened"]);
    }

    #[test]
    fn engines_out_of_service_say_why_and_how_long() {
        let state = fixture::troubled();
        let warnings = state.programs()[0].warnings();
        let of = |code| {
            warnings.iter().find(|warning| warning.code == code).unwrap_or_else(|| panic!("{warnings:?}"))
        };
        let open = of("engine-open");
        assert_eq!(open.severity, Severity::Critical);
        assert_eq!(
            open.message,
            "libdeflate is out of service after bad-output, for 3m 10s; tried again in 12s"
        );
        let disabled = of("engine-disabled");
        assert_eq!(disabled.message, "isal was disabled by hand, 3m 10s ago: others do its work");
        assert!(disabled.fix.contains("hasten engine enable isal 4242"), "{}", disabled.fix);
        assert!(warnings.is_sorted_by_key(|warning| warning.severity));
        assert_eq!(warnings.len(), 2);
    }

    #[test]
    fn a_page_that_tells_nothing_of_engines_is_an_older_ones() {
        let mut older = fixture::idle(1).snapshot.unwrap();
        assert!(Warning::of_engines(&older, &[], 1).is_empty(), "no engine on this CPU");
        older.control = None;
        let warnings = Warning::of_engines(&older, &[], 1);
        assert_eq!((warnings[0].code, warnings[0].severity), ("older-page", Severity::Note));
    }

    #[test]
    fn streams_that_gain_nothing_are_pointed_out() {
        let stream = |change: fn(&mut Counters)| {
            codes(&counters(|c| {
                c[Event::DeflateStreams] = 2000;
                (c[Event::DeflateBytesIn], c[Event::DeflateBytesOut]) = (100 << 20, 25 << 20);
                change(c);
            }))
        };
        assert!(stream(|_| {}).is_empty());
        assert_eq!(stream(|c| c[Event::DeflateBytesOut] = 100 << 20), ["incompressible"]);
        assert_eq!(stream(|c| c[Reason::SmallFlushes] = 1500), ["small-flushes"]);
        assert!(stream(|c| c[Reason::SmallFlushes] = 200).is_empty());
        assert!(stream(|c| c[Reason::StoredLevel] = 2000).is_empty(), "nothing to do about level 0");
        assert_eq!(stream(|c| c[Reason::UnknownAllocation] = 2000), ["unknown-allocation"]);
    }

    #[test]
    fn each_reason_has_its_own_threshold() {
        assert_eq!(codes(&busy(|c| c[Reason::NoIfma] = 1)), ["no-ifma"]);
        assert!(codes(&busy(|c| c[Reason::UnsupportedKey] = 400)).is_empty());
        assert_eq!(codes(&busy(|c| c[Reason::UnsupportedKey] = 1600)), ["unsupported-key"]);
        assert!(codes(&busy(|c| c[Reason::ServerNotHandshaking] = 100_000)).is_empty());
        let spread_thin = busy(|c| {
            c[Algorithm::Rsa2048Sign].scalar = 12_000;
            c[Reason::BelowBreakEven] = 12_000;
        });
        assert_eq!(codes(&spread_thin), ["below-break-even"]);
    }

    #[test]
    fn batches_thinner_than_break_even_are_named() {
        let thin = counters(|c| {
            let one = &mut c[Algorithm::Rsa2048Sign];
            (one.batched, one.batches) = (200, 100);
        });
        assert_eq!(codes(&thin), ["lanes-below-break-even"]);
    }

    #[test]
    fn pool_and_handshakes_need_a_share_of_enough() {
        assert_eq!(codes(&busy(|c| (c[Event::PoolHit], c[Event::PoolMiss]) = (70, 30))), ["pool-misses"]);
        assert!(codes(&busy(|c| (c[Event::PoolHit], c[Event::PoolMiss]) = (0, 8))).is_empty());
        let failing = busy(|c| (c[Event::HandshakeFinished], c[Event::HandshakeFailed]) = (80, 20));
        assert_eq!(codes(&failing), ["handshakes-fail"]);
    }
}
