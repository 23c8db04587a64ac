//! Asks every device engine its known question, and gives it work for a moment, checked by software.

#[cfg(feature = "unused-engines")]
pub(crate) mod unused;

use std::sync::Arc;
use std::time::Duration;

use crate::BreakerState;
use crate::answers;
use crate::discovery::{DeviceKind, Discovery};
use crate::engines::crypto::Operation;
use crate::engines::deflate::{Deflate, DeflateDevice, Inflate, Plan};
use crate::engines::qat::{self, Crypto};
use crate::engines::{ENGINES, Entry, Folder};
use crate::guard::{Limits, Refusal};
use crate::library::Library;
use crate::root::Root;
use hasten_guard::breaker::{Breaker, Settings, View};
use hasten_guard::clock::boot_ns;

/// The findings about one engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub engine: &'static str,
    pub kind: DeviceKind,
    /// The library that was opened.
    pub library: Option<&'static str>,
    /// The library says that there is no device behind it.
    pub simulated: bool,
    /// Devices of its kind, by their PCI addresses.
    pub devices: Vec<String>,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// How much work was done.
    Passed(String),
    Failed(String),
    /// Nothing to test, and why.
    NotHere(String),
}

/// Only a person is waiting for these.
const LIMITS: Limits = Limits { operation: Duration::from_secs(5), start: Duration::from_secs(20) };

const LARGEST: usize = 1 << 20;

/// What an engine is tested with.
pub(crate) struct Bench<'a> {
    root: &'a Root,
    folder: &'a Folder,
    inflate: Inflate,
}

/// All engines of this build, with the devices below `root` and the libraries in `folder`.
pub fn run(root: &Root, inflate: Inflate, folder: &Folder) -> Vec<Report> {
    let found = Discovery::read(root);
    let bench = Bench { root, folder, inflate };
    ENGINES.iter().map(|entry| report(entry, &found, &bench)).collect()
}

fn report(entry: &Entry, found: &Discovery, bench: &Bench<'_>) -> Report {
    let devices = found.devices.iter().filter(|device| device.kind == entry.kind);
    let devices: Vec<_> = devices.map(|device| device.address.clone()).collect();
    let look = (entry.look)(bench.folder);
    let simulated = look.as_ref().is_ok_and(Library::is_simulated);
    let outcome = match &look {
        Err(error) => Outcome::NotHere(error.to_string()),
        Ok(_) if devices.is_empty() && !simulated => {
            Outcome::NotHere(format!("no {} device", entry.kind.label()))
        }
        Ok(_) => (entry.test)(bench).map_or_else(Outcome::Failed, Outcome::Passed),
    };
    Report {
        engine: entry.engine.as_str(),
        kind: entry.kind,
        library: look.ok().map(|library| library.name()),
        simulated,
        devices,
        outcome,
    }
}

fn breaker() -> Arc<Breaker> {
    Arc::new(Breaker::new(Settings { good: 1, ..Settings::DEFAULT }, 0))
}

/// Waits until the known question has been answered.
fn started(mut is_ready: impl FnMut() -> (bool, View)) -> Result<(), String> {
    let deadline = boot_ns() + LIMITS.start.as_nanos() as u64;
    loop {
        let (ready, view) = is_ready();
        if ready {
            return Ok(());
        }
        if let (BreakerState::Open, Some(fault)) = (view.state, view.fault) {
            return Err(format!("the known answer was not given: {fault}"));
        }
        if boot_ns() > deadline {
            return Err("it did not start in time".to_owned());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn deflate<D: DeflateDevice>(bench: &Bench<'_>) -> Result<String, String> {
    let inflate = bench.inflate;
    let plan = Plan { folder: bench.folder.clone(), root: bench.root.clone(), inflate };
    let mut engine = Deflate::<D>::new(plan, breaker(), LIMITS, LARGEST);
    started(|| (engine.is_ready(), engine.view()))?;
    let text: Vec<u8> = answers::text().repeat(64);
    let (mut packed, mut unpacked) = (vec![0; LARGEST], vec![0; LARGEST]);
    let sizes = (0..=18).map(|power| 1_usize << power);
    for size in sizes.clone() {
        let input = &text[..size];
        let length = engine.compress(1, input, &mut packed).map_err(|refusal| refused(size, refusal))?;
        let unpacked_length = inflate(&packed[..length], &mut unpacked);
        if unpacked_length.is_none_or(|length| unpacked[..length] != *input) {
            return Err(format!("{size} bytes came back different"));
        }
        match engine.decompress(&packed[..length], &mut unpacked) {
            Ok(length) if unpacked[..length] == *input => {}
            // It does not unpack such streams; software does.
            Err(Refusal::Declined) => {}
            Ok(_) => return Err(format!("{size} bytes were unpacked wrongly")),
            Err(refusal) => return Err(refused(size, refusal)),
        }
    }
    Ok(format!("known stream, and {} sizes there and back", sizes.count()))
}

fn refused(size: usize, refusal: Refusal) -> String {
    match refusal {
        Refusal::Fault(fault) => format!("{size} bytes: {fault}"),
        Refusal::NotNow | Refusal::Declined => format!("{size} bytes were not accepted"),
    }
}

pub(crate) fn crypto(bench: &Bench<'_>) -> Result<String, String> {
    let (folder, root) = (bench.folder.clone(), bench.root.clone());
    let plan = qat::Plan { folder, root, limits: LIMITS, monitor: Arc::default() };
    let mut engine = Crypto::new(plan, breaker());
    started(|| (engine.is_ready(), engine.view()))?;
    let operation = Operation::X25519 { scalar: &answers::X25519[0], point: Some(&answers::X25519[2]) };
    const OPERATIONS: u64 = 64;
    let (mut good, mut bad) = (0, None);
    for ticket in 0..OPERATIONS {
        engine.submit(&operation, ticket).map_err(|refusal| format!("operation {ticket}: {refusal:?}"))?;
    }
    while engine.in_flight() > 0 {
        engine.poll(&mut |ticket, result| match result {
            Ok(secret) if *secret == answers::X25519[3] => good += 1,
            Ok(_) => bad = Some(format!("operation {ticket} had a wrong result")),
            Err(fault) => bad = Some(format!("operation {ticket}: {fault}")),
        });
        std::thread::sleep(Duration::from_micros(50));
    }
    match bad {
        Some(bad) => Err(bad),
        None => Ok(format!("RSA-2048, P-256, P-384, X25519, and {good} operations at once")),
    }
}
