//! Makes metric families from totals. Everything comes from one look at the pages, so that families agree with each
//! other.

use hasten_names::ORIGINAL;
use hasten_telemetry::{
    Algorithm, AlgorithmCounters, BreakerState, Counters, Doubt, Engine, EngineCounters, Event, Reason, Tiers,
};

use crate::catalogue::{self as metric, Description};
use crate::collector::{DeviceState, Look};
use crate::encode::{Family, Sample, Value};
use crate::totals::{Key, Program};

/// The label of programs in containers, where these are told apart.
const CONTAINER: &str = "container_id";
/// Used if the page does not say which algorithm it was.
const PUBLIC_KEY: &str = "public-key";
const DEFLATE: &str = "deflate";
const INFLATE: &str = "inflate";
const MULTIBUFFER: &str = Engine::Multibuffer.as_str();
const GRAVIOLA: &str = Engine::Graviola.as_str();

/// Uncompressed bytes by direction and engine, and whether they are the engine's input or its output.
const BYTES: [(&str, &str, &str, Event); 8] = [
    (DEFLATE, Engine::Isal.as_str(), "in", Event::DeflateIsal),
    (DEFLATE, Engine::Libdeflate.as_str(), "in", Event::DeflateLibdeflate),
    (DEFLATE, Engine::Bucket.as_str(), "in", Event::DeflateBucket),
    (DEFLATE, "hasten", "in", Event::DeflateHasten),
    (DEFLATE, Engine::ZlibRs.as_str(), "in", Event::DeflateZlibRs),
    (DEFLATE, ORIGINAL, "in", Event::DeflateOriginal),
    (INFLATE, "hasten", "out", Event::InflateHasten),
    (INFLATE, ORIGINAL, "out", Event::InflateOriginal),
];

/// Streams, bytes in, bytes out, and nanoseconds saved, by direction.
const STREAMS: [(&str, Event, Event, Event, Event); 2] = [
    (DEFLATE, Event::DeflateStreams, Event::DeflateBytesIn, Event::DeflateBytesOut, Event::DeflateSavedNs),
    (INFLATE, Event::InflateStreams, Event::InflateBytesIn, Event::InflateBytesOut, Event::InflateSavedNs),
];

/// Bytes of the read cache.
const READ_CACHE: [(&str, Event); 3] = [
    ("hit", Event::ReadCacheHitBytes),
    ("miss", Event::ReadCacheMissBytes),
    ("kept", Event::ReadCacheKeptBytes),
];

/// Why suspended handshakes had to continue at once.
const CALLED_IN: [(&str, Event); 3] =
    [("blocking", Event::CalledIn), ("overdue", Event::Overdue), ("foreign-thread", Event::ForeignCall)];

/// Everything in the catalogue, in its order. Families without a series are omitted.
#[must_use]
pub fn families(look: &Look) -> Vec<Family> {
    let mut all = Families(vec![Vec::new(); metric::CATALOGUE.len()]);
    all.host(look);
    all.devices(&look.devices);
    for (key, program) in &look.programs {
        Series { key, all: &mut all }.program(program);
    }
    let families = metric::CATALOGUE.iter().zip(all.0);
    let filled = families.filter(|(_, samples)| !samples.is_empty());
    filled.map(|(about, samples)| Family { about, samples }).collect()
}

/// Series by their metric's position in the catalogue.
struct Families(Vec<Vec<Sample>>);

/// The series of one program.
struct Series<'a> {
    key: &'a Key,
    all: &'a mut Families,
}

impl Families {
    fn add(&mut self, about: &'static Description, labels: &[&str], value: Value) {
        self.add_of(about, labels, "", value);
    }

    /// Adds a sample of a container, if it is one's: a label without a value is none.
    fn add_of(&mut self, about: &'static Description, labels: &[&str], container: &str, value: Value) {
        assert_eq!(labels.len(), about.labels.len(), "labels of {}", about.name);
        let place = metric::CATALOGUE.iter().position(|one| one.name == about.name);
        let labels = about.labels.iter().copied().zip(labels.iter().map(|text| (*text).to_owned()));
        let container = (!container.is_empty()).then(|| (CONTAINER, container.to_owned()));
        let labels = labels.chain(container).collect();
        self.0[place.expect("every metric is in the catalogue")].push(Sample { labels, value });
    }

    fn devices(&mut self, devices: &[DeviceState]) {
        for DeviceState { device, health, traffic } in devices {
            let kind = device.kind.label().to_lowercase();
            // The kernel says -1 if there is only one node, or it does not know.
            let numa = device.numa_node.filter(|node| *node >= 0).map(|node| node.to_string());
            let labels = [device.address.as_str(), &kind, numa.as_deref().unwrap_or_default()];
            self.add(&metric::DEVICE_UP, &labels, Value::Count(health.up.into()));
            for part in &health.utilization {
                let labels = [device.address.as_str(), &part.part];
                self.add(&metric::DEVICE_UTILIZATION, &labels, Value::Number(part.ratio));
            }
            if let Some(traffic) = traffic {
                let device = device.address.as_str();
                self.add(&metric::DEVICE_DESCRIPTORS, &[device], Value::Count(traffic.descriptors));
                self.add(&metric::DEVICE_BYTES, &[device, "in"], Value::Count(traffic.bytes_read));
                self.add(&metric::DEVICE_BYTES, &[device, "out"], Value::Count(traffic.bytes_written));
            }
        }
    }

    fn host(&mut self, look: &Look) {
        self.add(&metric::BUILD, &[env!("CARGO_PKG_VERSION")], Value::Count(1));
        self.add(&metric::PROCESSES_DENIED, &[], Value::Count(look.denied as u64));
        self.add(&metric::PROCESSES_STANDBY, &[], Value::Count(look.standing_by as u64));
        for (reason, count) in look.unreadable_by_reason() {
            self.add(&metric::PAGES_UNREADABLE, &[reason.as_str()], Value::Count(count));
        }
        self.add(&metric::SCAN, &[], Value::Number(look.took.as_secs_f64()));
    }
}

impl Series<'_> {
    fn program(&mut self, program: &Program) {
        let processes =
            program.live.iter().fold(0, |sum: u64, page| sum.saturating_add(page.processes as u64));
        self.count(&metric::PROCESSES, &[], processes);
        // A program that counts nothing of a kind has no series of it, but an accelerator that has just started has
        // zeros.
        match self.key.accelerator.as_str() {
            "readcache" => self.read_cache(&program.counters),
            "wal" => self.logs(&program.counters),
            "tier" => self.tiers(program),
            accelerator => {
                if accelerator != "gzip" {
                    self.public_key(program);
                }
                if accelerator != "tls" {
                    self.compression(&program.counters);
                }
            }
        }
        self.reasons(&program.counters);
        self.engines(program);
    }

    fn read_cache(&mut self, counters: &Counters) {
        for (what, event) in READ_CACHE {
            self.count(&metric::READ_CACHE_BYTES, &[what], counters[event]);
        }
        self.count(&metric::READ_CACHE_DAMAGED, &[], counters[Event::ReadCacheDamaged]);
        self.count(&metric::READ_CACHE_RESTS, &[], counters[Event::ReadCacheRests]);
    }

    fn logs(&mut self, counters: &Counters) {
        self.count(&metric::WAL_LOGS, &["fast"], counters[Event::WalMade]);
        self.count(&metric::WAL_LOGS, &["home"], counters[Event::WalAtHome]);
    }

    fn tiers(&mut self, program: &Program) {
        let live = || program.live.iter().flat_map(|page| &page.tiers);
        let sum = |bytes: fn(&Tiers) -> u64| live().map(bytes).fold(0, u64::saturating_add);
        self.count(&metric::TIER_BYTES, &["near"], sum(|tiers| tiers.near));
        self.count(&metric::TIER_BYTES, &["far"], sum(|tiers| tiers.far));
        if let Some(target) = live().map(|tiers| tiers.target).max() {
            self.add(&metric::TIER_TARGET, &[], Value::Number(target as f64 / 65536.0));
        }
        self.count(&metric::TIER_FULL, &[], program.counters[Event::TierFull]);
    }

    fn public_key(&mut self, program: &Program) {
        let counters = &program.counters;
        for algorithm in Algorithm::ALL {
            let one = counters[algorithm];
            if one != AlgorithmCounters::default() {
                self.algorithm(algorithm.as_str(), &one, program.good[algorithm.index()]);
            }
        }
        self.count(&metric::OPS, &[PUBLIC_KEY, ORIGINAL, "bypassed"], counters.bypassed());
        self.count(&metric::HANDSHAKES, &["finished"], counters[Event::HandshakeFinished]);
        self.count(&metric::HANDSHAKES, &["failed"], counters[Event::HandshakeFailed]);
        self.count(&metric::VERIFY_FAILURES, &[PUBLIC_KEY], counters[Event::VerifyFailed]);
        self.suspension(program);
    }

    fn suspension(&mut self, program: &Program) {
        for (cause, event) in CALLED_IN {
            self.count(&metric::CALLED_IN, &[cause], program.counters[event]);
        }
        for ((state, doubt), processes) in program.suspension() {
            let doubt = doubt.map_or("", Doubt::as_str);
            self.count(&metric::SUSPENSION, &[state.as_str(), doubt], processes);
        }
    }

    fn algorithm(&mut self, op: &str, one: &AlgorithmCounters, good: u64) {
        self.count(&metric::OPS, &[op, MULTIBUFFER, "ok"], good);
        self.count(&metric::OPS, &[op, MULTIBUFFER, "failed"], one.failed);
        self.count(&metric::OPS, &[op, GRAVIOLA, "ok"], one.single);
        self.count(&metric::OPS, &[op, ORIGINAL, "ok"], one.scalar.saturating_add(one.failed));
        self.seconds(op, one.saved_ns);
        if one.batches > 0 {
            self.lanes(op, one);
        }
    }

    fn lanes(&mut self, op: &str, one: &AlgorithmCounters) {
        let lanes = (1_u32..).zip(one.lanes);
        let sum = lanes
            .clone()
            .fold(0, |sum: u64, (lane, batches)| sum.saturating_add(batches.saturating_mul(lane.into())));
        let buckets = lanes.map(|(lane, batches)| (f64::from(lane), batches)).collect();
        self.add(&metric::BATCH_LANES, &[op], Value::Histogram { buckets, sum });
    }

    fn compression(&mut self, counters: &Counters) {
        for (op, streams, bytes_in, bytes_out, saved) in STREAMS {
            self.count(&metric::STREAMS, &[op], counters[streams]);
            self.count(&metric::STREAM_BYTES, &[op, "in"], counters[bytes_in]);
            self.count(&metric::STREAM_BYTES, &[op, "out"], counters[bytes_out]);
            self.seconds(op, counters[saved]);
        }
        for (op, engine, direction, event) in BYTES {
            if counters[event] > 0 {
                self.count(&metric::BYTES, &[op, engine, direction], counters[event]);
            }
        }
        self.count(&metric::VERIFY_FAILURES, &[DEFLATE], counters[Event::DeflateMismatch]);
    }

    fn reasons(&mut self, counters: &Counters) {
        let op = if self.key.accelerator == "gzip" { DEFLATE } else { PUBLIC_KEY };
        for reason in Reason::ALL.into_iter().filter(|reason| counters[*reason] > 0) {
            self.count(&metric::FALLBACK, &[op, reason.as_str()], counters[reason]);
        }
    }

    /// Each engine's work, unless reported above in more detail.
    fn engines(&mut self, program: &Program) {
        for engine in Engine::ALL {
            let one = program.counters[engine];
            if one == EngineCounters::default() && !program.engines.contains(&engine) {
                continue;
            }
            let name = engine.as_str();
            if !matches!(engine, Engine::Multibuffer | Engine::Graviola) {
                let op = op_of(engine);
                self.count(&metric::OPS, &[op, name, "ok"], one.ok);
                self.count(&metric::OPS, &[op, name, "failed"], one.failed);
                // For these engines the page has always counted what they took in elsewhere as well.
                let is_told = BYTES.iter().any(|(_, engine, ..)| *engine == name);
                if !is_told && one.bytes_in > 0 {
                    self.count(&metric::BYTES, &[op, name, "in"], one.bytes_in);
                }
                if one.bytes_out > 0 {
                    self.count(&metric::BYTES, &[op, name, "out"], one.bytes_out);
                }
            }
            self.add(&metric::ENGINE_BUSY, &[name], Value::Number(one.busy_ns as f64 / 1e9));
            self.count(&metric::BREAKER_OPENED, &[name], one.opened);
            if let Some(state) = program.engine(engine) {
                self.count(
                    &metric::BREAKER_STATE,
                    &[name, &state.device],
                    value_of(state.state().unwrap_or(BreakerState::Closed)),
                );
            }
        }
    }

    fn seconds(&mut self, op: &str, ns: u64) {
        self.add(&metric::CPU_SAVED, &[op], Value::Number(ns as f64 / 1e9));
    }

    fn count(&mut self, about: &'static Description, labels: &[&str], count: u64) {
        self.add(about, labels, Value::Count(count));
    }

    /// Adds a sample with the labels that every series of a program has.
    fn add(&mut self, about: &'static Description, labels: &[&str], value: Value) {
        let own = [self.key.program.as_str(), self.key.accelerator.as_str()];
        self.all.add_of(about, &[&own, labels].concat(), &self.key.container, value);
    }
}

/// An engine's purpose, if the page does not say what it did.
const fn op_of(engine: Engine) -> &'static str {
    match engine {
        Engine::Multibuffer | Engine::Graviola | Engine::Qat => PUBLIC_KEY,
        Engine::Isal | Engine::Libdeflate | Engine::Bucket | Engine::ZlibRs => DEFLATE,
        Engine::Qatzip | Engine::Qpl => "compression",
        Engine::Dml => "copy",
        Engine::Dlb => "hand-out",
    }
}

/// In the order in which a breaker returns to service, which differs from the page's.
const fn value_of(state: BreakerState) -> u64 {
    match state {
        BreakerState::Closed => 0,
        BreakerState::HalfOpen => 1,
        BreakerState::Open => 2,
        BreakerState::Disabled => 3,
    }
}

#[cfg(test)]
#[path = "families_tests.rs"]
mod tests;
