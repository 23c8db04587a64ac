//! Every device engine is asked what is known, and made to work for a moment, checked by software.

#[cfg(feature = "unused-engines")]
mod unused;

use std::sync::Arc;
use std::time::Duration;

use hasten_names::Engine;

use crate::BreakerState;
use crate::answers;
use crate::discovery::{DeviceKind, Discovery};
use crate::engines::Folder;
use crate::engines::crypto::Operation;
use crate::engines::deflate::{Deflate, DeflateDevice, Inflate, Plan};
use crate::engines::qat::{self, Crypto};
use crate::engines::qatzip::{self, QatZip};
use crate::engines::qpl::{self, Qpl};
#[cfg(feature = "unused-engines")]
use crate::engines::{dlb, dml};
use crate::guard::{Limits, Refusal};
use crate::library::{Library, LibraryError};
use crate::root::Root;
use hasten_guard::breaker::{Breaker, Settings, View};
use hasten_guard::clock::boot_ns;

/// What was found out about one engine.
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
    /// How much was done.
    Passed(String),
    Failed(String),
    /// There is nothing to be tested, and why.
    NotHere(String),
}

/// Nobody waits for these but a person.
const LIMITS: Limits = Limits { operation: Duration::from_secs(5), start: Duration::from_secs(20) };

const LARGEST: usize = 1 << 20;

/// All engines of this build, with the devices below `root` and the libraries in `folder`.
pub fn run(root: &Root, inflate: Inflate, folder: &Folder) -> Vec<Report> {
    let found = Discovery::read(root);
    let report = |engine: Engine,
                  kind,
                  look: Result<Library, LibraryError>,
                  test: &dyn Fn() -> Result<String, String>| {
        let devices = found.devices.iter().filter(|device| device.kind == kind);
        let devices: Vec<_> = devices.map(|device| device.address.clone()).collect();
        let simulated = look.as_ref().is_ok_and(Library::is_simulated);
        let outcome = match &look {
            Err(error) => Outcome::NotHere(error.to_string()),
            Ok(_) if devices.is_empty() && !simulated => {
                Outcome::NotHere(format!("no {} device", kind.label()))
            }
            Ok(_) => test().map_or_else(Outcome::Failed, Outcome::Passed),
        };
        Report {
            engine: engine.as_str(),
            kind,
            library: look.ok().map(|library| library.name()),
            simulated,
            devices,
            outcome,
        }
    };
    let plan = || Plan { folder: folder.clone(), root: root.clone(), inflate };
    vec![
        report(Engine::Qat, DeviceKind::Qat, qat::look(folder), &|| crypto(root, folder)),
        report(Engine::Qatzip, DeviceKind::Qat, qatzip::look(folder), &|| deflate::<QatZip>(plan())),
        report(Engine::Qpl, DeviceKind::Iaa, qpl::look(folder), &|| deflate::<Qpl>(plan())),
        #[cfg(feature = "unused-engines")]
        report(Engine::Dml, DeviceKind::Dsa, dml::look(folder), &|| unused::copies(folder)),
        #[cfg(feature = "unused-engines")]
        report(Engine::Dlb, DeviceKind::Dlb, dlb::look(folder), &|| unused::hand_out(folder)),
    ]
}

fn breaker() -> Arc<Breaker> {
    Arc::new(Breaker::new(Settings { good: 1, ..Settings::DEFAULT }, 0))
}

/// Waits until the question has been answered.
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

fn deflate<D: DeflateDevice>(plan: Plan) -> Result<String, String> {
    let inflate = plan.inflate;
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

fn crypto(root: &Root, folder: &Folder) -> Result<String, String> {
    let plan =
        qat::Plan { folder: folder.clone(), root: root.clone(), limits: LIMITS, monitor: Arc::default() };
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
