//! Reports of plausible sessions.

use hasten_tune::measure::{self, Counter, Disqualified, Latency, Measurement, Outcome};
use hasten_tune::report::{
    Budget, Bytes, Commands, Effect, Fate, Kept, Noise, NotTried, Objective, Pair, Rejected, Report,
    Screened, Setting, Suggestion, Trial, VERSION, Verdict, Winner,
};

pub(crate) fn better() -> Report {
    let kept = |knob: &str, level: &str, about: &str, change: f64| Kept {
        setting: setting(knob, level),
        about: about.to_owned(),
        risk: "No risk: it is off again with the next start. Costs 12 MB on disk.".to_owned(),
        carries: Some(effect(change)),
        pairs: pairs(12, change),
    };
    let settings = vec![
        kept("node-cache", "on", "Keeps compiled code between starts", -0.052),
        kept("semi-space", "64", "Size of V8's young generation, in MB", -0.119),
    ];
    Report {
        verdict: Verdict::Better,
        winner: Some(Winner {
            settings,
            effect: effect(-0.164),
            bytes: Some(Effect { change: 0.002, low: 0.001, high: 0.003 }),
            pairs: pairs(20, -0.164),
        }),
        commands: Commands {
            tune: "hasten tune --load 'wrk -t1 -c64 -d5s http://127.0.0.1:3000/' -- node app.js".to_owned(),
            load: "wrk -t1 -c64 -d5s http://127.0.0.1:3000/".to_owned(),
            run: Some("hasten run --config hasten-tune/hasten.toml -- node app.js".to_owned()),
            resume: None,
        },
        ..without_winner(Verdict::NoDifference)
    }
}

pub(crate) fn without_winner(verdict: Verdict) -> Report {
    let kept = verdict == Verdict::NoDifference;
    let screened = |knob: &str, level: &str, change: f64, fate: Fate| Screened {
        setting: setting(knob, level),
        effect: (fate != Fate::Disqualified && fate != Fate::Untried).then(|| effect(change)),
        bytes: (fate != Fate::Untried).then_some(Effect { change: 0.002, low: 0.001, high: 0.003 }),
        pairs: pairs(6, change),
        fate,
    };
    let noisy = verdict == Verdict::TooNoisy;
    Report {
        version: VERSION,
        hasten: "0.1.0".to_owned(),
        started: "2026-11-22T12:00:00Z".to_owned(),
        objective: Objective { name: "CPU per request".to_owned(), unit: "µs".to_owned(), less_is_better: true },
        constraints: vec!["p99 ≤ 20 ms".to_owned()],
        verdict,
        stopped: None,
        winner: None,
        bytes: Some(Bytes { per_request: 812.0, counted_by: Counter::Load, limit: Some(0.01) }),
        screened: vec![
            screened("semi-space", "64", -0.125, if kept { Fate::Kept } else { Fate::NoGain }),
            screened("node-cache", "on", -0.05, Fate::NotNeeded),
            screened("allocator", "jemalloc", 0.004, Fate::NoGain),
            screened("threadpool", "16", -0.021, Fate::NotProven),
            screened("malloc-trim", "16M", -0.002, Fate::Undecided),
            screened("thp", "always", 0.081, Fate::Harmful),
            screened("malloc-arenas-with-a-name-that-is-as-long-as-names-get", "1", 0.0, Fate::Disqualified),
            screened("uv-threads", "8", 0.0, Fate::Untried),
        ],
        noise: Noise {
            pairs: pairs(8, 0.0),
            effect: Some(effect(0.002)),
            smallest_effect: Some(if noisy { 0.064 } else { 0.018 }),
            wanted_effect: 0.03,
            advice: if noisy { vec!["let the load run longer, such as `wrk -d10s`".to_owned()] } else { Vec::new() },
        },
        trials: trials(),
        disqualified: vec![Rejected {
            candidate: "malloc-arenas=1".to_owned(),
            reason: "it answers something else: http://127.0.0.1:3000/: another body: at byte 17 \"worle\", was \"world\"".to_owned(),
        }],
        not_tried: vec![NotTried { knob: "tls".to_owned(), why: "the program does not link OpenSSL".to_owned() }],
        suggestions: vec![Suggestion {
            text: "Keep connections to the upstream open".to_owned(),
            why: "without keepalive each request pays for a new connection".to_owned(),
            file: "/etc/nginx/conf.d/app.conf:12".to_owned(),
            line: "keepalive 64;".to_owned(),
        }],
        budget: Budget { seconds: 900.0, used: 871.0 },
        environment: vec![
            ("CPU".to_owned(), "a processor with a rather long name and 2 cores".to_owned()),
            ("Node.js".to_owned(), "v20.19.5".to_owned()),
        ],
        commands: Commands { tune: "hasten tune -- node app.js".to_owned(), load: "wrk".to_owned(), ..Commands::default() },
        warnings: vec!["the load tool shares the CPUs with the service".to_owned()],
    }
}

/// Ended before the first measurement.
pub(crate) fn empty() -> Report {
    let mut report = without_winner(Verdict::Unfinished);
    report.screened.clear();
    report.trials.clear();
    report.disqualified.clear();
    report.noise = Noise { pairs: Vec::new(), effect: None, smallest_effect: None, ..report.noise };
    report
}

/// Every text tries to be more than text.
pub(crate) fn hostile() -> Report {
    let evil =
        "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1><!--\u{2028}\"'&{{7*7}}";
    let mut report = better();
    report.objective.name = evil.to_owned();
    report.objective.unit = evil.to_owned();
    report.trials[3].candidate = evil.to_owned();
    report.trials[4].phase = evil.to_owned();
    report.disqualified[0].reason = evil.to_owned();
    report.suggestions[0].line = evil.to_owned();
    report.environment[0].1 = evil.to_owned();
    report.commands.tune = evil.to_owned();
    if let Some(winner) = &mut report.winner {
        winner.settings[0].setting.knob = evil.to_owned();
    }
    report
}

fn setting(knob: &str, level: &str) -> Setting {
    Setting { knob: knob.to_owned(), level: level.to_owned() }
}

fn effect(change: f64) -> Effect {
    Effect { change, low: round(change - 0.013), high: round(change + 0.015) }
}

/// As precise as a few digits of JSON.
fn round(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

/// A wave in place of randomness, so that pictures stay the same.
fn wave(at: usize) -> f64 {
    (at as f64 * 2.3).sin() * 0.01 + (at as f64 * 0.7).cos() * 0.006
}

fn pairs(count: usize, change: f64) -> Vec<Pair> {
    let pair = |at| Pair {
        baseline: round(212.0 * (1.0 + wave(at))),
        candidate: round(212.0 * (1.0 + change) * (1.0 + wave(at + 5))),
    };
    (0..count).map(pair).collect()
}

fn trials() -> Vec<Trial> {
    let phases = [
        ("noise", 8, "stock", 0.0),
        ("screen", 14, "semi-space=64", -0.12),
        ("search", 10, "semi-space=64 node-cache=on", -0.16),
        ("recheck", 16, "semi-space=64 node-cache=on", -0.164),
        ("ablate", 12, "node-cache=on", -0.05),
    ];
    let mut trials = Vec::new();
    for (phase, count, candidate, change) in phases {
        for at in 0..count {
            let number = trials.len() + 1;
            let stock = at % 2 == 0;
            let value = round(212.0 * (1.0 + if stock { 0.0 } else { change }) * (1.0 + wave(number)));
            let measured = Measurement {
                requests: 51_000.0,
                seconds: 5.0,
                cpu_seconds: round(value * 0.051),
                peak_rss_bytes: 92_000_000 + number as u64 * 40_000,
                latency: Some(Latency { p99: Some(round(6.1 + wave(number) * 20.0)), ..Latency::default() }),
                metric: None,
                bytes: Some(measure::Bytes { per_request: 812.0, rounding: 0.0, by: Counter::Load }),
            };
            let failed = Disqualified::ChangedAnswer { what: "another body: at byte 17".to_owned() };
            let is_failed = phase == "screen" && at == 3;
            trials.push(Trial {
                number,
                phase: phase.to_owned(),
                candidate: if stock { "stock".to_owned() } else { candidate.to_owned() },
                at: round(number as f64 * 12.4),
                outcome: if is_failed { Outcome::Disqualified(failed) } else { Outcome::Measured(measured) },
                value: (!is_failed).then_some(value),
            });
        }
    }
    trials
}
