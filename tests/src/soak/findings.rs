//! What a run says of a server, and what is held against it.

use std::sync::atomic::Ordering::Relaxed;

use hasten_telemetry::{Counters, Engine};

use super::Record;
use super::ledger::Verdict;
use super::samples::{Holding, Sample};
use super::schedule::Phases;
use super::slope::Slope;
use super::station::Station;
use crate::Side;
use crate::subject::{alarms, batched};

/// A leak worth the name loses at least an allocation of OpenSSL's or zlib's for some kind of request. Memory that
/// grows more slowly than this with every request cannot be told from a heap that still finds its largest size.
const BYTES_PER_ANSWER: f64 = 64.0;

/// One request in ten is of a client that goes away too early. Who forgets its descriptor forgets fifty in a thousand.
const DESCRIPTORS_PER_ANSWER: f64 = 0.002;

/// What the master may keep of each reload, beyond what the stock one keeps.
const KIB_PER_RELOAD: f64 = 32.0;
const DESCRIPTORS_PER_RELOAD: f64 = 0.2;

/// Descriptors that an idle server may have more than before, beyond those that the stock one has more.
const IDLE_DESCRIPTORS: i64 = 2;

/// The beginning of the steady part is left out: old workers still end, new ones find their size.
const SETTLING: f64 = 0.25;

/// How something grows in a part of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Growth {
    pub kib_per_minute: Option<Slope>,
    pub descriptors_per_minute: Option<Slope>,
    /// For every request that was answered, or for every reload.
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
    /// Requests that a killed worker had, that came while there was no worker, that were repeated.
    pub killed: usize,
    pub nobody: usize,
    pub repeated: usize,
    /// What nothing excuses.
    pub failures: Vec<String>,
    /// The workers of the steady part.
    pub workers: Growth,
    /// The master while reloads come.
    pub master: Growth,
    /// The whole tree while reloads come, which also has workers that do not end.
    pub tree: Growth,
    pub peak_kib: u64,
    pub idle_descriptors: (u64, u64),
    pub left_over: usize,
    pub alarms: Vec<String>,
    pub batched: u64,
    pub compressed: u64,
}

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
            repeated: count(Verdict::Repeated),
            failures: failures.collect(),
            workers: workers(&record.samples, phases, station.usual_workers()),
            master: Growth::of(
                one_master(&reloading),
                |sample| f64::from(sample.generation),
                |sample| resident(sample.master()),
                |sample| descriptors(sample.master()),
            ),
            tree: Growth::of(
                &reloading,
                |sample| f64::from(sample.generation),
                |sample| sample.sum(|holding| holding.proportional_kib),
                |sample| sample.sum(descriptors),
            ),
            peak_kib: record.samples.iter().map(|s| s.sum(|h| h.proportional_kib)).max().unwrap_or(0),
            idle_descriptors: (record.before.sum(descriptors), record.after.sum(descriptors)),
            left_over: record.left_over,
            alarms: alarms(&station.log()).into_iter().collect(),
            batched: batched(&counters),
            compressed: compressed(&counters),
        }
    }

    /// What speaks against a server, beside the stock one if there is one.
    #[must_use]
    pub fn complaints(&self, side: Side, stock: Option<&Self>, compresses: bool) -> Vec<String> {
        let mut complaints = self.failures.clone();
        let mut complain = |is_bad: bool, what: String| complaints.extend(is_bad.then_some(what));
        complain(self.answers == 0, "nobody was answered".to_owned());
        complain(self.left_over > 0, format!("{} old workers did not end", self.left_over));
        let none = Self::default();
        let stock = stock.unwrap_or(&none);
        let limits = [
            (
                "memory of workers, bytes per answer",
                self.workers.bytes_per_step,
                stock.workers.bytes_per_step,
                BYTES_PER_ANSWER,
            ),
            (
                "descriptors of workers per answer",
                self.workers.descriptors_per_step,
                stock.workers.descriptors_per_step,
                DESCRIPTORS_PER_ANSWER,
            ),
            (
                "memory of the master, bytes per reload",
                self.master.bytes_per_step,
                stock.master.bytes_per_step,
                KIB_PER_RELOAD * 1024.0,
            ),
            (
                "descriptors of the master per reload",
                self.master.descriptors_per_step,
                stock.master.descriptors_per_step,
                DESCRIPTORS_PER_RELOAD,
            ),
            (
                "descriptors of all processes per reload",
                self.tree.descriptors_per_step,
                stock.tree.descriptors_per_step,
                DESCRIPTORS_PER_RELOAD * 10.0,
            ),
        ];
        for (what, growth, usual, limit) in limits {
            let limit = limit + usual.map_or(0.0, |slope| slope.value.max(0.0));
            complain(
                growth.is_some_and(|slope| slope.low > limit),
                format!("{what}: {}, limit {limit:.3}", text(growth)),
            );
        }
        if side == Side::Accelerated {
            let more = |(before, after): (u64, u64)| after.cast_signed() - before.cast_signed();
            let more = (more(self.idle_descriptors), more(stock.idle_descriptors).max(0));
            complain(
                more.0 > more.1 + IDLE_DESCRIPTORS,
                format!("{} descriptors more when idle, stock {}", more.0, more.1),
            );
            complain(self.batched == 0, "no handshake went through a batch".to_owned());
            complain(compresses && self.compressed == 0, "no engine compressed anything".to_owned());
            let new = self
                .alarms
                .iter()
                .filter(|alarm| !stock.alarms.contains(alarm) && !alarm.contains("exited on signal 0"));
            complaints.extend(new.map(|alarm| format!("the stock server does not say {alarm:?}")));
        }
        complaints
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

/// The samples of the steady part in which the workers are those of its end.
fn workers(samples: &[Sample], phases: Phases, usual: usize) -> Growth {
    let (from, to) = (phases.reloads.as_secs_f64(), phases.steady.as_secs_f64());
    let steady = part(samples, from + (to - from) * SETTLING, to);
    let pids = |sample: &Sample| sample.workers().iter().map(|worker| worker.pid).collect::<Vec<_>>();
    let last = steady.last().map(|sample| pids(sample)).unwrap_or_default();
    let same: Vec<_> =
        steady.into_iter().filter(|sample| pids(sample) == last && last.len() == usual).collect();
    let sum = |sample: &Sample, of: fn(&Holding) -> u64| sample.workers().iter().map(of).sum();
    Growth::of(
        &same,
        |sample| sample.answers as f64,
        |sample| sum(sample, |holding| holding.resident_kib),
        |sample| sum(sample, |holding| holding.descriptors),
    )
}

/// A master that was started anew begins anew: its longest life counts.
fn one_master<'samples, 'sample>(samples: &'samples [&'sample Sample]) -> &'samples [&'sample Sample] {
    let lives = samples.chunk_by(|one, next| one.master().pid == next.master().pid);
    lives.max_by_key(|life| life.len()).unwrap_or(&[])
}

fn part(samples: &[Sample], from: f64, to: f64) -> Vec<&Sample> {
    samples.iter().filter(|sample| (from..to).contains(&sample.at.as_secs_f64())).collect()
}

fn compressed(counters: &Counters) -> u64 {
    [Engine::Isal, Engine::Libdeflate, Engine::ZlibRs].map(|engine| counters[engine].ok).iter().sum()
}

#[must_use]
pub fn text(slope: Option<Slope>) -> String {
    slope.map_or("–".to_owned(), |Slope { value, low, high }| format!("{value:.3} [{low:.3}, {high:.3}]"))
}
