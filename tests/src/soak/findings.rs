//! A run's findings about a server, and what is held against it.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use hasten_telemetry::{Counters, Engine};

use super::Record;
use super::ledger::Verdict;
use super::samples::{Holding, Sample};
use super::schedule::{Engines, Phases};
use super::slope::Slope;
use super::station::Station;
use crate::Side;
use crate::subject::{alarms, batched};

/// A real leak loses at least one allocation of OpenSSL's or zlib's for some kind of request. Slower growth per
/// request cannot be distinguished from a heap that is still approaching its largest size, nor allocations from
/// clients that come and go.
const BYTES_PER_ANSWER: f64 = 64.0;

/// Of a hundred clients 14 misbehave, which makes some 18 in a thousand answers: a server that leaked a descriptor for each
/// would exceed this many times over.
const DESCRIPTORS_PER_ANSWER: f64 = 0.002;

/// What the master may retain after each reload, beyond what the stock one retains.
const BYTES_PER_RELOAD: f64 = 32.0 * 1024.0;
const DESCRIPTORS_PER_RELOAD: f64 = 0.2;

/// Clients come and go, so the total of all descriptors is less certain.
const ALL_DESCRIPTORS_PER_RELOAD: f64 = 2.0;

/// How many more descriptors than before an idle server may have, beyond the stock one's increase.
const IDLE_DESCRIPTORS: i64 = 2;

/// The beginning of the steady part is left out: old workers are still ending, new ones reaching their size.
const SETTLING: f64 = 0.25;

/// Growth in one part of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Growth {
    pub kib_per_minute: Option<Slope>,
    pub descriptors_per_minute: Option<Slope>,
    /// Per answered request, or per reload.
    pub bytes_per_step: Option<Slope>,
    pub descriptors_per_step: Option<Slope>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    pub answers: u64,
    pub packed: u64,
    pub bytes: u64,
    pub full: u64,
    pub resumed: u64,
    pub rude: u64,
    pub reloads: usize,
    pub kills: usize,
    /// Requests lost to a killed worker, requests while there was no worker, and repeated ones.
    pub killed: usize,
    pub nobody: usize,
    /// How long there was no worker.
    pub without_worker: Duration,
    pub repeated: usize,
    /// Failures without an excuse.
    pub failures: Vec<String>,
    /// The workers of the steady part.
    pub workers: Growth,
    /// Their allocated memory, where their heaps could be read.
    pub allocated: Growth,
    /// The master during reloads.
    pub master: Growth,
    /// The whole tree during reloads, which includes workers that do not end.
    pub tree: Growth,
    pub peak_kib: u64,
    pub idle_descriptors: (u64, u64),
    pub left_over: usize,
    pub alarms: Vec<String>,
    pub batched: u64,
    pub compressed: u64,
}

/// A limit: its name, its value in the findings, and how much it may exceed the stock server's.
type Limit = (&'static str, fn(&Findings) -> Option<Slope>, f64);

impl Findings {
    #[must_use]
    pub fn of(station: &Station, record: &Record, phases: Phases) -> Self {
        let (history, losses) = station.losses();
        let verdicts: Vec<_> = losses.iter().map(|loss| history.judge(loss)).collect();
        let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
        let failed = losses.iter().zip(&verdicts).filter(|(_, verdict)| **verdict == Verdict::Failed);
        let failures = failed.map(|(loss, _)| {
            let worker = loss.worker.map_or("unknown".to_owned(), |worker| worker.to_string());
            format!("{:.3} s, worker {worker}: {}", loss.noticed.as_secs_f64(), loss.what)
        });
        let counters = station.counters();
        let log = station.log();
        let tally = &station.tally;
        let reloading = part(&record.samples, phases.warm.as_secs_f64(), phases.reloads.as_secs_f64());
        let resident = |holding: &Holding| holding.resident_kib;
        let descriptors = |holding: &Holding| holding.descriptors;
        Self {
            answers: tally.answers.load(Relaxed),
            packed: tally.packed.load(Relaxed),
            bytes: tally.bytes.load(Relaxed),
            full: tally.full.load(Relaxed),
            resumed: tally.resumed.load(Relaxed),
            rude: tally.rude.load(Relaxed),
            reloads: history.reloads.len(),
            kills: history.kills.len(),
            killed: count(Verdict::Killed),
            nobody: count(Verdict::Nobody),
            without_worker: history
                .kills
                .iter()
                .filter(|kill| kill.was_alone)
                .map(|kill| kill.until - kill.at)
                .sum(),
            repeated: count(Verdict::Repeated),
            failures: failures.collect(),
            workers: workers(&record.samples, phases, station.usual_workers()),
            allocated: allocated(&record.samples, phases, station.usual_workers()),
            master: Growth::of(
                masters(&reloading),
                |sample| f64::from(sample.generation),
                |sample| resident(sample.master()),
                |sample| descriptors(sample.master()),
            ),
            tree: Growth::of(
                &reloading,
                |sample| f64::from(sample.generation),
                |sample| sample.sum(|holding| holding.proportional_kib),
                Sample::descriptors,
            ),
            peak_kib: record.samples.iter().map(|s| s.sum(|h| h.proportional_kib)).max().unwrap_or(0),
            idle_descriptors: (record.before.descriptors(), record.after.descriptors()),
            left_over: super::left_over(&record.after, station),
            alarms: alarms(&log)
                .into_iter()
                .filter(|alarm| is_unprovoked(alarm))
                .chain(crashes(&log))
                .collect(),
            batched: batched(&counters),
            compressed: compressed(&counters),
        }
    }

    /// What counts against a server, compared with the stock one if there is one.
    #[must_use]
    pub fn complaints(&self, side: Side, stock: Option<&Self>, engines: Engines) -> Vec<String> {
        let mut complaints = self.failures.clone();
        let mut complain = |is_bad: bool, what: String| complaints.extend(is_bad.then_some(what));
        complain(self.answers == 0, "nobody was answered".to_owned());
        complain(self.left_over > 0, format!("{} old workers did not end", self.left_over));
        if side == Side::Accelerated {
            self.complain_of_growth(stock.unwrap_or(&Self::default()), &mut complain);
            let batches = engines.handshakes.is_some();
            complain(batches && self.batched == 0, "no handshake went through a batch".to_owned());
            let compresses = !engines.bodies.is_empty();
            complain(compresses && self.compressed == 0, "no engine compressed anything".to_owned());
            for alarm in &self.alarms {
                let is_new = stock.is_none_or(|stock| !stock.alarms.contains(alarm));
                complain(is_new, format!("the stock server does not say {alarm:?}"));
            }
        }
        complaints
    }

    /// Growth counts against a server if it is certain and exceeds what the stock one may have.
    fn complain_of_growth(&self, stock: &Self, complain: &mut impl FnMut(bool, String)) {
        let limits: [Limit; 6] = [
            ("memory of workers, bytes per answer", |of| of.workers.bytes_per_step, BYTES_PER_ANSWER),
            ("allocations of workers, bytes per answer", |of| of.allocated.bytes_per_step, BYTES_PER_ANSWER),
            (
                "descriptors of workers per answer",
                |of| of.workers.descriptors_per_step,
                DESCRIPTORS_PER_ANSWER,
            ),
            ("memory of the master, bytes per reload", |of| of.master.bytes_per_step, BYTES_PER_RELOAD),
            (
                "descriptors of the master per reload",
                |of| of.master.descriptors_per_step,
                DESCRIPTORS_PER_RELOAD,
            ),
            (
                "descriptors of all processes per reload",
                |of| of.tree.descriptors_per_step,
                ALL_DESCRIPTORS_PER_RELOAD,
            ),
        ];
        for (what, growth, limit) in limits {
            let limit = limit + growth(stock).map_or(0.0, |slope| slope.high.max(0.0));
            let is_above = growth(self).is_some_and(|slope| slope.low > limit);
            complain(is_above, format!("{what}: {}, limit {limit:.3}", text(growth(self))));
        }
        let more = |of: &Self| of.idle_descriptors.1.cast_signed() - of.idle_descriptors.0.cast_signed();
        let (ours, usual) = (more(self), more(stock).max(0));
        complain(
            ours > usual + IDLE_DESCRIPTORS,
            format!("{ours} descriptors more when idle, stock {usual}"),
        );
    }
}

impl Growth {
    fn of(
        samples: &[&Sample],
        step: impl Fn(&Sample) -> f64,
        kib: impl Fn(&Sample) -> u64,
        descriptors: impl Fn(&Sample) -> u64,
    ) -> Self {
        let slope = |x: &dyn Fn(&Sample) -> f64, y: &dyn Fn(&Sample) -> f64| {
            Slope::of(&samples.iter().map(|sample| (x(sample), y(sample))).collect::<Vec<_>>())
        };
        let minutes = |sample: &Sample| sample.at.as_secs_f64() / 60.0;
        let kib = |sample: &Sample| kib(sample) as f64;
        let descriptors = |sample: &Sample| descriptors(sample) as f64;
        Self {
            kib_per_minute: slope(&minutes, &kib),
            descriptors_per_minute: slope(&minutes, &descriptors),
            bytes_per_step: slope(&step, &|sample| kib(sample) * 1024.0),
            descriptors_per_step: slope(&step, &descriptors),
        }
    }
}

/// The growth of workers in the steady part.
fn workers(samples: &[Sample], phases: Phases, usual: usize) -> Growth {
    let sum = |sample: &Sample, of: fn(&Holding) -> u64| sample.workers().iter().map(of).sum();
    Growth::of(
        &of_the_last_workers(samples, phases, usual),
        |sample| sample.answers as f64,
        |sample| sum(sample, |holding| holding.resident_kib),
        |sample| sum(sample, |holding| holding.descriptors),
    )
}

/// The growth of their allocated memory.
fn allocated(samples: &[Sample], phases: Phases, usual: usize) -> Growth {
    let sum = |sample: &Sample| -> Option<u64> {
        sample.workers().iter().map(|worker| worker.allocated).sum::<Option<u64>>()
    };
    let mut readable = of_the_last_workers(samples, phases, usual);
    readable.retain(|sample| sum(sample).is_some());
    let kib = |sample: &Sample| sum(sample).unwrap_or(0) / 1024;
    Growth::of(&readable, |sample| sample.answers as f64, kib, |_| 0)
}

/// The samples of the steady part whose workers are those of its end.
fn of_the_last_workers(samples: &[Sample], phases: Phases, usual: usize) -> Vec<&Sample> {
    let (from, to) = (phases.reloads.as_secs_f64(), phases.steady.as_secs_f64());
    let steady = part(samples, from + (to - from) * SETTLING, to);
    let pids = |sample: &Sample| sample.workers().iter().map(|worker| worker.pid).collect::<Vec<_>>();
    let last = steady.last().map(|sample| pids(sample)).unwrap_or_default();
    steady.into_iter().filter(|sample| pids(sample) == last && last.len() == usual).collect()
}

/// What a master does while its workers come and go. One that is its own worker has none: it is judged as a worker, in the
/// steady part, since each life in the other is hardly longer than its growth to its usual size.
fn masters<'samples, 'sample>(samples: &'samples [&'sample Sample]) -> &'samples [&'sample Sample] {
    if samples.iter().any(|sample| sample.is_single) { &[] } else { one_master(samples) }
}

/// A restarted master starts afresh: its longest life counts.
fn one_master<'samples, 'sample>(samples: &'samples [&'sample Sample]) -> &'samples [&'sample Sample] {
    let lives = samples.chunk_by(|one, next| one.master().pid == next.master().pid);
    lives.max_by_key(|life| life.len()).unwrap_or(&[])
}

fn part(samples: &[Sample], from: f64, to: f64) -> Vec<&Sample> {
    samples.iter().filter(|sample| (from..to).contains(&sample.at.as_secs_f64())).collect()
}

/// A server's messages about nonsense depend on the nonsense. `tests/edges` checks that they are the same as ever.
fn is_unprovoked(alarm: &str) -> bool {
    !alarm.contains("SSL_do_handshake() failed") && !alarm.contains("while SSL handshaking")
}

/// Alarms have their numbers removed, but here the signal's number matters: those killed by 9 are our own doing.
fn crashes(log: &str) -> impl Iterator<Item = String> {
    let ends = log.lines().filter_map(|line| Some(line.split_once("exited on signal ")?.1));
    ends.filter(|signal| *signal != "9").map(|signal| format!("a worker exited on signal {signal}"))
}

fn compressed(counters: &Counters) -> u64 {
    [Engine::Isal, Engine::Libdeflate, Engine::Bucket, Engine::ZlibRs]
        .map(|engine| counters[engine].ok)
        .iter()
        .sum()
}

#[must_use]
pub fn text(slope: Option<Slope>) -> String {
    slope.map_or("–".to_owned(), |Slope { value, low, high }| format!("{value:.3} [{low:.3}, {high:.3}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten minutes with two workers that grow by this much per answer and a master that grows with every reload.
    fn samples(bytes_per_answer: u64, answers_per_descriptor: u64, kib_per_reload: u64) -> Vec<Sample> {
        samples_of(bytes_per_answer, 0, answers_per_descriptor, kib_per_reload)
    }

    /// As above, with workers that lose this many bytes of their heaps per answer, which cannot always be read.
    fn samples_of(
        bytes_per_answer: u64,
        lost_bytes: u64,
        answers_per_descriptor: u64,
        kib_per_reload: u64,
    ) -> Vec<Sample> {
        (0..600)
            .map(|second| {
                let answers = second * 300;
                let generation = (second / 10).min(30);
                // Something that fluctuates.
                let noise = second * 7919 % 64;
                let holding = |pid, kib, descriptors| Holding {
                    pid,
                    resident_kib: kib,
                    proportional_kib: kib / 2,
                    descriptors,
                    allocated: (pid != 1 && second % 7 > 0).then_some(lost_bytes * answers + noise),
                };
                let worker = |pid| {
                    let grown = answers * bytes_per_answer / 2048;
                    let lost = answers.checked_div(answers_per_descriptor).unwrap_or(0);
                    holding(pid, 20_000 + grown + noise, 30 + lost + noise / 8)
                };
                let master = holding(1, 6_000 + kib_per_reload * generation, 12);
                let generation = generation as u32;
                let processes = vec![master, worker(2), worker(3)];
                Sample { at: Duration::from_secs(second), answers, generation, processes, is_single: false }
            })
            .collect()
    }

    fn findings(samples: &[Sample]) -> Findings {
        let phases = Phases::of(Duration::from_secs(600));
        let reloading = part(samples, 60.0, phases.reloads.as_secs_f64());
        Findings {
            answers: 1,
            batched: 1,
            compressed: 1,
            workers: workers(samples, phases, 2),
            allocated: allocated(samples, phases, 2),
            master: Growth::of(
                one_master(&reloading),
                |sample| f64::from(sample.generation),
                |sample| sample.master().resident_kib,
                |sample| sample.master().descriptors,
            ),
            ..Findings::default()
        }
    }

    const ALL: Engines = Engines { handshakes: Some("multibuffer"), bodies: &["isal"] };

    fn complaints(findings: &Findings) -> Vec<String> {
        findings.complaints(Side::Accelerated, None, ALL)
    }

    #[test]
    fn what_grows_is_found_and_what_does_not_is_left_alone() {
        assert_eq!(complaints(&findings(&samples(0, 0, 0))), [""; 0]);
        let about = |samples: Vec<Sample>, what: &str| {
            let found = complaints(&findings(&samples));
            assert!(found.len() == 1 && found[0].starts_with(what), "{what}: {found:#?}");
        };
        about(samples(200, 0, 0), "memory of workers, bytes per answer: 20");
        about(samples_of(0, 40, 0, 0), "allocations of workers, bytes per answer: 8");
        about(samples(0, 200, 0), "descriptors of workers per answer: 0.01");
        about(samples(0, 0, 100), "memory of the master, bytes per reload: 10");
    }

    #[test]
    fn what_the_stock_server_does_is_not_held_against_us() {
        let (usual, ours) = (findings(&samples(0, 0, 100)), findings(&samples(0, 0, 120)));
        assert_eq!(ours.complaints(Side::Accelerated, Some(&usual), ALL), [""; 0]);
    }

    #[test]
    fn everything_else_that_must_not_be() {
        let good = findings(&samples(0, 0, 0));
        let text = || "it".to_owned();
        for (bad, what) in [
            (Findings { failures: vec![text()], ..good.clone() }, "it"),
            (Findings { answers: 0, ..good.clone() }, "nobody was answered"),
            (Findings { left_over: 1, ..good.clone() }, "1 old workers did not end"),
            (
                Findings { idle_descriptors: (10, 13), ..good.clone() },
                "3 descriptors more when idle, stock 0",
            ),
            (Findings { batched: 0, ..good.clone() }, "no handshake went through a batch"),
            (Findings { compressed: 0, ..good.clone() }, "no engine compressed anything"),
            (Findings { alarms: vec![text()], ..good }, "the stock server does not say \"it\""),
        ] {
            assert_eq!(complaints(&bad), [what]);
        }
    }

    #[test]
    fn a_crash_is_told_from_a_kill() {
        let log = "1#1: worker process 7 exited on signal 9\n1#1: worker process 8 exited on signal 11 (core dumped)";
        assert_eq!(crashes(log).collect::<Vec<_>>(), ["a worker exited on signal 11 (core dumped)"]);
    }

    #[test]
    fn a_master_that_is_its_own_worker_is_judged_as_a_worker() {
        let mut samples = samples(200, 0, 100);
        for sample in &mut samples {
            sample.processes.truncate(1);
            sample.processes[0].resident_kib += sample.answers * 200 / 1024;
            sample.is_single = true;
        }
        let all: Vec<_> = samples.iter().collect();
        assert!(masters(&all).is_empty());
        let growth = workers(&samples, Phases::of(Duration::from_secs(600)), 1).bytes_per_step;
        assert!(growth.is_some_and(|slope| slope.low > 150.0), "{growth:?}");
    }

    #[test]
    fn a_worker_that_has_just_come_says_nothing_about_growth() {
        let mut samples = samples(0, 0, 0);
        samples.last_mut().expect("samples").processes[1].pid = 9;
        assert_eq!(findings(&samples).workers, Growth::default());
    }
}
