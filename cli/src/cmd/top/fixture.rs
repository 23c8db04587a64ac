//! Samples for tests, as a server would leave them.

use std::time::{Duration, Instant};

use hasten_telemetry::{
    Algorithm, BreakEven, BreakerState, Counters, Doubt, Engine, EngineClass, EngineCounters, EngineInfo,
    EngineReport, Event, Fault, PageError, Process, Reason, Snapshot, Suspension, SuspensionReport, Tiers,
    Writer,
};

use super::state::{Sample, State};

/// The worker of [`idle`], as it sees itself.
pub(super) const WORKER: u32 = 4243;

/// A server with one worker that has not counted anything yet.
pub(super) fn idle(inode: u64) -> Sample {
    let same = |pid| Process { pid, namespace_pid: pid };
    let first = 4242 + inode as u32 * 10;
    let counters = Counters::default();
    Sample {
        inode,
        program: "nginx".to_owned(),
        processes: vec![same(first), same(first + 1)],
        uptime: Duration::from_secs(7980),
        boottime: Duration::from_secs(8080),
        disabled: Vec::new(),
        snapshot: Ok(Snapshot {
            creator_pid: first,
            started: Duration::from_secs(1_790_000_000),
            started_boottime: Duration::from_secs(100),
            program: "nginx".to_owned(),
            accelerator: "tls".to_owned(),
            note: "crypto_mb, AVX-512 IFMA".to_owned(),
            writers: vec![Writer {
                slot: 0,
                pid: WORKER,
                tid: WORKER,
                owners: 1,
                counters,
                reports: [None; Engine::COUNT],
                suspension: None,
                tiers: Some(Tiers { near: 1 << 20, far: 3 << 20, threshold: 1024, target: 3 << 14 }),
            }],
            break_even: break_even(),
            engines: Vec::new(),
            control: Some(1),
        }),
    }
}

/// The counters of the worker.
pub(super) fn counters(sample: &mut Sample) -> &mut Counters {
    &mut sample.snapshot.as_mut().expect("a readable sample").writers[0].counters
}

/// The worker's report on suspended handshakes.
pub(super) fn suspension(sample: &mut Sample, state: Suspension, doubt: Option<Doubt>) {
    let writer = &mut sample.snapshot.as_mut().expect("a readable sample").writers[0];
    writer.suspension = Some(SuspensionReport { state, doubt, since: Duration::from_secs(7900) });
}

/// A busy nginx and, if requested, its compression, a HAProxy that cannot batch much and a program whose page
/// was written by another version.
pub(super) fn state(all: bool) -> State {
    let mut state = State::default();
    let start = Instant::now();
    for second in 0..40_u64 {
        let mut samples = vec![nginx(second)];
        if all {
            samples.extend([nginx_gzip(second), haproxy(second), foreign()]);
        }
        state.update(start + Duration::from_secs(second), samples);
    }
    state
}

/// An engine of the worker, with its reported state and its work.
pub(super) fn engine(sample: &mut Sample, engine: Engine, state: BreakerState, ok: u64) {
    let snapshot = sample.snapshot.as_mut().expect("a readable sample");
    let class = if engine == Engine::Qatzip { EngineClass::Device } else { EngineClass::Software };
    let device = if engine == Engine::Qatzip { "0000:6b:00.0" } else { "" }.to_owned();
    snapshot.engines.push(EngineInfo { engine, class, device, timeout: None });
    let fault = (state == BreakerState::Open).then_some(Fault::BadOutput);
    let (since, probe) = (Duration::from_secs(7890), fault.map(|_| Duration::from_secs(8092)));
    let writer = &mut snapshot.writers[0];
    writer.reports[engine.index()] = Some(EngineReport { state, fault, since, probe });
    let opened = u64::from(fault.is_some());
    writer.counters[engine] = EngineCounters { ok, failed: opened, opened, ..EngineCounters::default() };
}

/// An nginx whose compression has one engine in service, one open, one disabled and one unused.
pub(super) fn troubled() -> State {
    let mut state = State::default();
    let start = Instant::now();
    for second in 0..3 {
        let mut sample = nginx_gzip(second);
        let snapshot = sample.snapshot.as_mut().expect("a readable sample");
        snapshot.engines.clear();
        let streams = snapshot.writers[0].counters[Event::DeflateStreams];
        engine(&mut sample, Engine::Isal, BreakerState::Disabled, streams);
        engine(&mut sample, Engine::Libdeflate, BreakerState::Open, 10);
        engine(&mut sample, Engine::ZlibRs, BreakerState::Closed, streams);
        engine(&mut sample, Engine::Qatzip, BreakerState::Closed, 0);
        let snapshot = sample.snapshot.as_mut().expect("a readable sample");
        snapshot.writers[0].reports[Engine::Qatzip.index()] = None;
        state.update(start + Duration::from_secs(second), vec![sample]);
    }
    state
}

fn nginx(second: u64) -> Sample {
    let mut sample = idle(0);
    // A load that rises in steps gives the chart a shape.
    let handshakes = (0..=second).map(|second| 500 + second % 8 * 100).sum::<u64>();
    engine(&mut sample, Engine::Multibuffer, BreakerState::Closed, handshakes * 3);
    suspension(&mut sample, Suspension::Proven, None);
    let counters = counters(&mut sample);
    batch(counters, Algorithm::Rsa2048Sign, handshakes, [1, 1, 1, 2, 3, 8, 10, 74], 976_000, 257_000);
    batch(counters, Algorithm::X25519Keygen, handshakes, [0, 0, 0, 0, 0, 0, 0, 100], 33_000, 41_000);
    batch(counters, Algorithm::X25519Derive, handshakes, [4, 3, 3, 5, 7, 8, 10, 60], 53_000, 37_000);
    counters[Algorithm::Rsa2048Sign].scalar = handshakes / 20;
    counters[Reason::BelowBreakEven] = handshakes / 25;
    counters[Reason::Alone] = handshakes / 100;
    counters[Reason::ServerNotHandshaking] = handshakes / 50;
    for (event, count) in [
        (Event::HandshakeStarted, handshakes + 12),
        (Event::HandshakeFinished, handshakes),
        (Event::HandshakeFailed, handshakes / 200),
        (Event::Suspended, handshakes * 2),
        (Event::Resumed, handshakes * 2 - 9),
        (Event::Cancelled, 3),
    ] {
        counters[event] = count;
    }
    sample
}

fn nginx_gzip(second: u64) -> Sample {
    let mut sample = Sample { inode: 1, processes: idle(0).processes, ..idle(0) };
    let snapshot = sample.snapshot.as_mut().expect("a readable sample");
    snapshot.accelerator = "gzip".to_owned();
    snapshot.note = "isal, libdeflate, zlib-rs".to_owned();
    snapshot.break_even = [None; Algorithm::COUNT];
    let streams = (0..=second).map(|second| 300 + second % 8 * 20).sum::<u64>();
    engine(&mut sample, Engine::Isal, BreakerState::Closed, streams);
    engine(&mut sample, Engine::Libdeflate, BreakerState::Closed, streams / 4);
    engine(&mut sample, Engine::ZlibRs, BreakerState::Closed, streams / 16);
    let counters = counters(&mut sample);
    counters[Reason::StoredLevel] = streams / 50;
    for (event, count) in [
        (Event::DeflateStreams, streams),
        (Event::DeflateBytesIn, streams * 100_000),
        (Event::DeflateBytesOut, streams * 26_000),
        (Event::DeflateIsal, streams * 82_000),
        (Event::DeflateLibdeflate, streams * 12_000),
        (Event::DeflateZlibRs, streams * 5_500),
        (Event::DeflateOriginal, streams * 500),
        (Event::DeflateVerified, streams * 100_000),
        (Event::DeflateBuffered, streams * 40_000),
        (Event::DeflateSavedNs, streams * 450_000),
        (Event::InflateStreams, streams / 10),
        (Event::InflateBytesIn, streams * 1_100),
        (Event::InflateBytesOut, streams * 4_400),
        (Event::InflateHasten, streams * 4_360),
        (Event::InflateOriginal, streams * 40),
        (Event::InflateSavedNs, streams * 5_000),
    ] {
        counters[event] = count;
    }
    sample
}

/// A Redis with its memory on two nodes, and its child, which has not reported anything.
pub(super) fn tiered() -> State {
    let mut state = State::default();
    let start = Instant::now();
    for second in 0..3 {
        let mut sample = Sample { program: "redis-server".to_owned(), ..idle(1) };
        let snapshot = sample.snapshot.as_mut().expect("a readable sample");
        "redis-server".clone_into(&mut snapshot.program);
        "tier".clone_into(&mut snapshot.accelerator);
        snapshot.note.clear();
        snapshot.break_even = [None; Algorithm::COUNT];
        snapshot.writers[0].pid = sample.processes[0].namespace_pid;
        snapshot.writers[0].tiers =
            Some(Tiers { near: 26_000_000, far: 74_000_000, threshold: 1024, target: 3 << 14 });
        counters(&mut sample)[Event::TierFull] = 2;
        state.update(start + Duration::from_secs(second), vec![sample]);
    }
    state
}

fn haproxy(second: u64) -> Sample {
    let mut sample = Sample { program: "haproxy".to_owned(), ..idle(100) };
    suspension(&mut sample, Suspension::Off, Some(Doubt::NestedLoop));
    let snapshot = sample.snapshot.as_mut().expect("a readable sample");
    snapshot.program = "haproxy".to_owned();
    snapshot.writers[0].pid = 5243;
    let counters = &mut snapshot.writers[0].counters;
    counters[Algorithm::P256Sign].scalar = second * 30;
    counters[Reason::NotPolled] = second * 300;
    counters[Event::VerifyFailed] = 2;
    counters[Event::HandshakeFinished] = second * 330;
    (counters[Event::CalledIn], counters[Event::Overdue]) = (14, 1);
    sample
}

fn foreign() -> Sample {
    Sample {
        program: "envoy".to_owned(),
        snapshot: Err(PageError::WrongVersion { found: 2 }),
        uptime: Duration::ZERO,
        ..idle(200)
    }
}

/// Counts `operations` in batches with lanes filled in these proportions.
fn batch(
    counters: &mut Counters,
    algorithm: Algorithm,
    operations: u64,
    lanes: [u64; 8],
    batch_ns: u64,
    scalar_ns: u64,
) {
    let in_proportions: u64 = lanes.iter().zip(1..).map(|(batches, filled)| batches * filled).sum();
    let one = &mut counters[algorithm];
    one.lanes = lanes.map(|batches| batches * operations / in_proportions);
    one.batched = one.lanes.iter().zip(1..).map(|(batches, filled)| batches * filled).sum();
    one.batches = one.lanes.iter().sum();
    one.batch_ns = one.batches * batch_ns;
    one.saved_ns = (one.batched * scalar_ns).saturating_sub(one.batch_ns);
}

fn break_even() -> [Option<BreakEven>; Algorithm::COUNT] {
    let mut table = [None; Algorithm::COUNT];
    for (algorithm, lanes, scalar_ns, batch_ns) in [
        (Algorithm::Rsa2048Sign, 4, 257_000, 976_000),
        (Algorithm::P256Sign, 2, 25_000, 48_000),
        (Algorithm::P384Sign, 1, 794_000, 168_000),
        (Algorithm::X25519Keygen, 1, 41_000, 33_000),
        (Algorithm::X25519Derive, 2, 37_000, 53_000),
        (Algorithm::P256Keygen, 9, 11_000, 99_000),
    ] {
        table[algorithm.index()] = Some(BreakEven { lanes, scalar_ns, batch_ns });
    }
    table
}
