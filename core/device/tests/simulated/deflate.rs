//! QATzip and QPL.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use hasten_device::engines::deflate::{Deflate, DeflateDevice, Plan};
use hasten_device::engines::qatzip::{self, QatZip};
use hasten_device::engines::qpl::{self, Qpl};
use hasten_device::watch::Watch;
use hasten_device::{BreakerState, DeviceKind, Fault, Limits, Refusal, Root};

use crate::control::{Control, Injected, Simulated, libraries};
use crate::{PATIENT, SHORT, breaker, limits, wait_for};

const LARGEST: usize = 1 << 16;

pub(crate) fn inflate(packed: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut unpacked = Vec::new();
    let reader = flate2::read::DeflateDecoder::new(packed);
    reader.take(out.len() as u64 + 1).read_to_end(&mut unpacked).ok()?;
    out.get_mut(..unpacked.len())?.copy_from_slice(&unpacked);
    Some(unpacked.len())
}

fn plan(root: Root) -> Plan {
    Plan { folder: Some(libraries()), root, inflate }
}

fn engine<D: DeflateDevice>(limits: Limits) -> Deflate<D> {
    Deflate::new(plan(Root::new("/none")), breaker(), limits, LARGEST)
}

fn ready<D: DeflateDevice>(limits: Limits) -> Deflate<D> {
    let mut engine = engine(limits);
    wait_for("the engine is ready", || engine.is_ready());
    engine
}

fn text() -> Vec<u8> {
    (0..20_000_u32)
        .flat_map(|number| (number * 7919 % 10_007).to_string().into_bytes())
        .take(40_000)
        .collect()
}

/// Acts as a careful caller: compresses, unpacks in software, and blames the engine for wrong output.
fn compress<D: DeflateDevice>(engine: &mut Deflate<D>) -> Result<(), Refusal> {
    let (input, mut packed, mut unpacked) = (text(), vec![0; LARGEST], vec![0; LARGEST]);
    let length = engine.compress(1, &input, &mut packed)?;
    let good = inflate(&packed[..length], &mut unpacked).is_some_and(|length| unpacked[..length] == input);
    if !good {
        engine.blame(Fault::BadOutput);
        return Err(Refusal::Fault(Fault::BadOutput));
    }
    Ok(())
}

/// The faults of operations, and the engine's name for each.
fn meets<D: DeflateDevice>(control: &Control, faults: &[(Injected, Fault)]) {
    for &(injected, expected) in faults {
        let mut engine = ready::<D>(limits(injected));
        match injected {
            Injected::Slow => control.slow(60_000),
            other => control.inject(other),
        }
        assert_eq!(compress(&mut engine), Err(Refusal::Fault(expected)), "{injected:?}");
        assert_eq!(engine.view().fault, Some(expected), "{injected:?}");
        // As long as it lasts, operations are refused at once and probes fail.
        let failed = engine.view();
        wait_for("a probe has failed", || {
            let _ = engine.is_ready();
            engine.view().probe_ns > failed.probe_ns && engine.view().state == BreakerState::Open
        });
        assert!(matches!(compress(&mut engine), Err(Refusal::NotNow | Refusal::Fault(_))), "{injected:?}");
        if !matches!(injected, Injected::Hang | Injected::Slow) {
            assert!(control.faulted() > 0, "{injected:?} was injected");
        }
        control.inject(Injected::None);
        let before = control.operations();
        wait_for("the engine is back", || compress(&mut engine).is_ok());
        assert!(
            control.operations() > before + 2,
            "{injected:?}: the question was asked, and the device used"
        );
    }
}

fn does_not_start<D: DeflateDevice>(control: &Control, faults: &[(Injected, Fault)]) {
    for &(injected, expected) in faults {
        control.inject(injected);
        let mut engine = engine::<D>(PATIENT);
        wait_for("it has been tried twice", || {
            assert!(!engine.is_ready());
            engine.view().fault == Some(expected) && engine.view().state != BreakerState::Closed
        });
        assert_eq!(compress(&mut engine).map_err(|refusal| refusal != Refusal::Declined), Err(true));
        control.inject(Injected::None);
        wait_for("the engine is back", || engine.is_ready());
        compress(&mut engine).unwrap();
    }
}

fn survives_a_reset<D: DeflateDevice>(control: &Control) {
    let mut engine = ready::<D>(PATIENT);
    compress(&mut engine).unwrap();
    let opened = control.opened();
    control.reset();
    assert_eq!(compress(&mut engine), Err(Refusal::Fault(Fault::Gone)));
    wait_for("the engine is back", || engine.is_ready());
    compress(&mut engine).unwrap();
    assert!(control.opened() > opened);
}

fn works<D: DeflateDevice>(control: &Control) {
    let mut engine = ready::<D>(PATIENT);
    let (input, mut packed, mut unpacked) = (text(), vec![0; LARGEST], vec![0; LARGEST]);
    for length in [1, 2, 100, 4096, 40_000] {
        let before = control.operations();
        let written = engine.compress(6, &input[..length], &mut packed).unwrap();
        assert!(
            inflate(&packed[..written], &mut unpacked) == Some(length)
                && unpacked[..length] == input[..length]
        );
        unpacked.fill(0);
        assert_eq!(engine.decompress(&packed[..written], &mut unpacked), Ok(length));
        assert!(unpacked[..length] == input[..length]);
        assert_eq!(control.operations(), before + 2);
    }
    assert_eq!(engine.view().state, BreakerState::Closed);
}

/// A client may send what it likes: no breaker opens.
fn declines_what_is_not_its_fault<D: DeflateDevice>() {
    let mut engine = ready::<D>(PATIENT);
    let mut out = vec![0; LARGEST];
    assert_eq!(engine.decompress(&[0xff; 300], &mut out), Err(Refusal::Declined));
    assert_eq!(engine.compress(1, &text(), &mut out[..100]), Err(Refusal::Declined));
    assert_eq!(engine.compress(1, &vec![0; LARGEST + 1], &mut out), Err(Refusal::Declined));
    assert_eq!(engine.compress(1, &[], &mut out), Err(Refusal::Declined));
    let state = engine.view().state;
    assert_eq!(state, BreakerState::Closed);
    compress(&mut engine).unwrap();
}

#[test]
fn qatzip_compresses_and_decompresses() {
    works::<QatZip>(&Control::of(Simulated::QatZip));
}

#[test]
fn qpl_compresses_and_decompresses() {
    works::<Qpl>(&Control::of(Simulated::Qpl));
}

#[test]
fn qatzip_comes_through_every_fault() {
    let control = Control::of(Simulated::QatZip);
    let faults = [
        (Injected::Hang, Fault::TimedOut),
        (Injected::WrongBytes, Fault::BadOutput),
        (Injected::Abort, Fault::Error),
        (Injected::Gone, Fault::Gone),
        (Injected::Partial, Fault::BadOutput),
        (Injected::TooLong, Fault::BadOutput),
        (Injected::QueueFull, Fault::TimedOut),
        (Injected::Restarting, Fault::TimedOut),
    ];
    meets::<QatZip>(&control, &faults);
}

#[test]
fn qpl_comes_through_every_fault() {
    let control = Control::of(Simulated::Qpl);
    let faults = [
        (Injected::Hang, Fault::TimedOut),
        (Injected::Slow, Fault::TimedOut),
        (Injected::WrongBytes, Fault::BadOutput),
        (Injected::Abort, Fault::Error),
        (Injected::Gone, Fault::Gone),
        (Injected::Partial, Fault::BadOutput),
        (Injected::TooLong, Fault::BadOutput),
        (Injected::QueueFull, Fault::QueueFull),
        (Injected::Restarting, Fault::Error),
    ];
    meets::<Qpl>(&control, &faults);
}

#[test]
fn a_device_that_is_a_little_slow_is_waited_for() {
    let control = Control::of(Simulated::Qpl);
    let mut engine = ready::<Qpl>(PATIENT);
    control.slow(2);
    compress(&mut engine).unwrap();
}

#[test]
fn engines_that_cannot_start_do_so_later() {
    let control = Control::of(Simulated::QatZip);
    let faults = [
        (Injected::InitFailure, Fault::Init),
        (Injected::NoInstance, Fault::Init),
        (Injected::Gone, Fault::Gone),
        (Injected::WrongBytes, Fault::BadOutput),
    ];
    does_not_start::<QatZip>(&control, &faults);
    drop(control);
    let control = Control::of(Simulated::Qpl);
    let faults = [
        (Injected::InitFailure, Fault::Gone),
        (Injected::NoInstance, Fault::Gone),
        (Injected::WrongBytes, Fault::BadOutput),
        (Injected::Partial, Fault::BadOutput),
    ];
    does_not_start::<Qpl>(&control, &faults);
}

#[test]
fn a_start_that_hangs_keeps_nobody_waiting() {
    let control = Control::of(Simulated::QatZip);
    control.inject(Injected::HangInit);
    let mut engine = engine::<QatZip>(SHORT);
    wait_for("the start is given up", || {
        assert!(!engine.is_ready());
        engine.view().fault == Some(Fault::TimedOut)
    });
    control.inject(Injected::None);
    wait_for("the engine is back", || compress(&mut engine).is_ok());
}

#[test]
fn a_reset_costs_one_operation() {
    survives_a_reset::<QatZip>(&Control::of(Simulated::QatZip));
    survives_a_reset::<Qpl>(&Control::of(Simulated::Qpl));
}

#[test]
fn data_opens_no_breaker() {
    let _turns = (Control::of(Simulated::QatZip), Control::of(Simulated::Qpl));
    declines_what_is_not_its_fault::<QatZip>();
    declines_what_is_not_its_fault::<Qpl>();
}

/// A machine with one working device: the root of its tree, and the device's folder.
pub(crate) fn machine(kind: DeviceKind) -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let device = root.path().join("sys/bus/pci/devices/0000:6b:00.0");
    let (id, driver, state) = match kind {
        DeviceKind::Qat => ("0x4940", "4xxx", "qat/state"),
        _ => ("0x0cfe", "idxd", "iax1/state"),
    };
    fs::create_dir_all(device.join(state).parent().unwrap()).unwrap();
    fs::write(device.join("vendor"), "0x8086").unwrap();
    fs::write(device.join("device"), id).unwrap();
    fs::write(device.join(state), "up").unwrap();
    symlink(format!("../drivers/{driver}"), device.join("driver")).unwrap();
    (root, device)
}

/// Nobody asks the engine anything while its device fails: the thread that has the session finds out.
fn notices<D: DeflateDevice>(control: &Control, fails: &[(Fault, &str, &str, &str)]) {
    let (root, _device) = machine(D::KIND);
    for &(fault, file, bad, good) in fails {
        let file = root.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, good).unwrap();
        let mut engine = Deflate::<D>::new(plan(Root::new(root.path())), breaker(), PATIENT, LARGEST);
        wait_for("the engine is ready", || engine.is_ready());
        compress(&mut engine).unwrap();
        fs::write(&file, bad).unwrap();
        // The state changes first: another thread may look before the opening is counted.
        wait_for("the opening is counted", || engine.view().opened == 1);
        assert_eq!((engine.view().state, engine.view().fault), (BreakerState::Open, Some(fault)));

        let (opened, operations) = (control.opened(), control.operations());
        let failed = engine.view();
        wait_for("a probe has failed", || {
            assert!(!engine.is_ready());
            engine.view().probe_ns > failed.probe_ns && engine.view().state == BreakerState::Open
        });
        assert_eq!(engine.view().fault, Some(fault));
        assert_eq!(
            (control.opened(), control.operations()),
            (opened, operations),
            "the device was left alone"
        );
        fs::write(&file, good).unwrap();
        wait_for("the engine is back", || engine.is_ready());
        compress(&mut engine).unwrap();
    }
}

pub(crate) const QAT: &str = "sys/bus/pci/devices/0000:6b:00.0/qat/state";
pub(crate) const HEARTBEAT: &str = "sys/kernel/debug/qat_4xxx_0000:6b:00.0/heartbeat/status";
const IAA: &str = "sys/bus/pci/devices/0000:6b:00.0/iax1/state";

#[test]
fn a_device_that_fails_while_nobody_asks_is_noticed() {
    let fails = [(Fault::HeartbeatLost, HEARTBEAT, "-1", "0"), (Fault::Gone, QAT, "down", "up")];
    notices::<QatZip>(&Control::of(Simulated::QatZip), &fails);
    notices::<Qpl>(&Control::of(Simulated::Qpl), &[(Fault::Gone, IAA, "disabled", "enabled")]);
}

#[test]
fn a_device_that_is_unplugged_is_noticed() {
    let _turn = Control::of(Simulated::QatZip);
    let (root, device) = machine(DeviceKind::Qat);
    let mut engine = Deflate::<QatZip>::new(plan(Root::new(root.path())), breaker(), PATIENT, LARGEST);
    wait_for("the engine is ready", || engine.is_ready());
    fs::remove_dir_all(device).unwrap();
    wait_for("the breaker is open", || engine.view().state == BreakerState::Open);
    assert_eq!(engine.view().fault, Some(Fault::Gone));
}

#[test]
fn one_device_that_works_is_enough() {
    let (root, device) = machine(DeviceKind::Qat);
    let watch = Watch::new(&Root::new(root.path()), DeviceKind::Qat);
    let second = root.path().join("sys/bus/pci/devices/0000:70:00.0");
    assert!(std::process::Command::new("cp").arg("-a").args([&device, &second]).status().unwrap().success());
    let both = Watch::new(&Root::new(root.path()), DeviceKind::Qat);
    fs::write(device.join("qat/state"), "down").unwrap();
    assert_eq!((watch.look(), both.look()), (Err(Fault::Gone), Ok(())));
    fs::write(second.join("qat/state"), "down").unwrap();
    assert_eq!(both.look(), Err(Fault::Gone));
    // Devices without a driver are used by nobody; an unknown state counts as good.
    let nothing = Watch::new(&Root::new(root.path().join("none")), DeviceKind::Qat);
    assert!(nothing.is_empty() && nothing.look().is_ok());
}

#[test]
fn an_engine_that_is_disabled_is_not_used() {
    let control = Control::of(Simulated::QatZip);
    let breaker = breaker();
    let plan = plan(Root::new("/none"));
    let mut engine = Deflate::<QatZip>::new(plan, breaker.clone(), PATIENT, LARGEST);
    wait_for("the engine is ready", || engine.is_ready());
    breaker.disable();
    let before = control.operations();
    assert_eq!(compress(&mut engine), Err(Refusal::NotNow));
    assert_eq!((control.operations(), engine.view().state), (before, BreakerState::Disabled));
    breaker.enable();
    compress(&mut engine).unwrap();
}

#[test]
fn libraries_say_that_they_are_simulated() {
    let folder = Some(libraries());
    assert!(qatzip::look(&folder).unwrap().is_simulated());
    assert!(qpl::look(&folder).unwrap().is_simulated());
    let nowhere = Some(std::env::temp_dir().join("no-such-folder"));
    assert!(qatzip::look(&nowhere).unwrap_err().to_string().contains("libqatzip.so.3 is not installed"));
}
