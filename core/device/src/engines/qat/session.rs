//! One instance of a QAT device in this process.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::crypto::{CryptoDevice, Curve, Done, Operation, Point, RsaKey};
use super::super::{Failure, Folder};
use super::abi::{
    self, Flat, Functions, Instance, MontgomeryData, MultiplyData, PrivateKey, RsaData, Status,
};
use super::slot::{ROOM, Slot, multiply_done, rsa_done};
use super::{NOT_MULTIPLIED, curves};
use crate::Fault;
use crate::answers;
use crate::discovery::DeviceKind;
use crate::health::heartbeat_of;
use crate::library::{Library, LibraryError};
use crate::pause::Pause;
use crate::root::Root;
use hasten_guard::clock::{boot_ns, thread_cpu_ns};

/// Pending operations at a time. Rings hold at least 64.
const SLOTS: usize = 64;

/// The instance's section in the device's configuration; qatlib gives each process its own.
const SECTION: &std::ffi::CStr = c"SSL";

/// Whether the libraries are present.
pub fn look(folder: &Folder) -> Result<Library, LibraryError> {
    let qat = super::super::open(&abi::LIBRARY, folder)?;
    let memory = super::super::open(&abi::MEMORY, folder)?;
    Functions::of(&qat, &memory)?;
    Ok(qat)
}

/// A started instance and its slots.
pub struct Qat {
    functions: Functions,
    instance: Instance,
    memory: *mut c_void,
    slots: Box<[Slot]>,
    limit: Duration,
    /// Longest result: RSA-4096.
    result: [u8; 512],
    question_ns: u64,
}

// SAFETY: an instance may be used by any one thread at a time, and everything it points to belongs to it.
unsafe impl Send for Qat {}

impl Qat {
    /// Starts the library and one of the instances available to this process. May take long.
    pub fn open(folder: &Folder, root: &Root, limit: Duration) -> Result<Self, Fault> {
        heartbeat_of(root, DeviceKind::Qat)?;
        let qat = super::super::open(&abi::LIBRARY, folder).map_err(|_| Fault::Init)?;
        let memory = super::super::open(&abi::MEMORY, folder).map_err(|_| Fault::Init)?;
        let functions = Functions::of(&qat, &memory).map_err(|_| Fault::Init)?;
        // SAFETY: a terminated string.
        started(unsafe { (functions.start)(SECTION.as_ptr()) })?;
        let opened = Self::start(functions, limit);
        if opened.is_err() {
            // SAFETY: it was started, and no instance is in use.
            unsafe { (functions.stop)() };
        }
        opened
    }

    fn start(functions: Functions, limit: Duration) -> Result<Self, Fault> {
        let instance = instance(&functions)?;
        // SAFETY: the instance is the library's own; the address translation is libusdm's.
        unsafe {
            started((functions.translate)(instance, functions.physical))?;
            started((functions.start_instance)(instance))?;
        }
        // SAFETY: plain numbers.
        let memory = unsafe { (functions.allocate)(SLOTS * ROOM, 0, 64) };
        if memory.is_null() {
            // SAFETY: it was started above.
            unsafe { (functions.stop_instance)(instance) };
            return Err(Fault::Init);
        }
        // SAFETY: the memory is as large as all slots.
        let slot = |at: usize| Slot::new(unsafe { memory.cast::<u8>().add(at * ROOM) });
        let slots = (0..SLOTS).map(slot).collect();
        Ok(Self { functions, instance, memory, slots, limit, result: [0; 512], question_ns: 0 })
    }

    /// Asks for operations with known results, and waits for the results.
    pub fn known_answers(&mut self) -> Result<(), Fault> {
        let start = thread_cpu_ns();
        self.ask(RSA, RSA as u64)?;
        let asked = thread_cpu_ns() - start;
        // Looks that found nothing come from the haste of this start and are not part of the cost.
        self.question_ns = asked + self.answers(1)?;
        for known in RSA + 1..KNOWN {
            self.ask(known, known as u64)?;
        }
        self.answers(KNOWN - 1).map(|_| ())
    }

    /// Waits for `count` answers. Returns the CPU time of the last look.
    fn answers(&mut self, count: usize) -> Result<u64, Fault> {
        let mut good = 0;
        let mut pause = Pause::new(self.limit * 4);
        loop {
            let (start, mut wrong) = (thread_cpu_ns(), None);
            self.poll(&mut |ticket, result| match result {
                Ok(result) if is_known(ticket as usize, result) => good += 1,
                Ok(_) => wrong = Some(Fault::BadOutput),
                Err(fault) => wrong = Some(fault),
            })?;
            if let Some(fault) = wrong {
                return Err(fault);
            }
            if good == count {
                return Ok(thread_cpu_ns() - start);
            }
            if !pause.wait() {
                return Err(Fault::TimedOut);
            }
        }
    }

    /// CPU time that the known RSA operation cost this process.
    pub fn question_ns(&self) -> u64 {
        self.question_ns
    }

    /// One of the operations with a known result.
    pub fn ask(&mut self, known: usize, ticket: u64) -> Result<(), Fault> {
        let scalar = &answers::SCALAR;
        let answers::Rsa { p, q, dp, dq, qinv, input, .. } = answers::RSA;
        let operation = match known % KNOWN {
            0 => Operation::RsaPrivate { key: RsaKey { p, q, dp, dq, qinv }, input },
            1 => Operation::Multiply { curve: Curve::P256, scalar: &scalar[..32], point: Point::Base },
            2 => Operation::Multiply { curve: Curve::P384, scalar, point: Point::Base },
            3 => Operation::X25519 { scalar: &answers::X25519[0], point: None },
            _ => Operation::X25519 { scalar: &answers::X25519[0], point: Some(&answers::X25519[2]) },
        };
        match self.submit(&operation, ticket) {
            Ok(()) => Ok(()),
            Err(Failure::Fault(fault)) => Err(fault),
            Err(Failure::Declined) => Err(Fault::Error),
        }
    }

    fn fill(&mut self, at: usize, operation: &Operation) -> Option<()> {
        let slot = &mut self.slots[at];
        slot.is_reversed = false;
        match *operation {
            Operation::RsaPrivate { key, input } => {
                let half = key.p.len();
                let is_sound = (64..=256).contains(&half)
                    && [key.q, key.dp, key.dq, key.qinv].iter().all(|part| part.len() == half)
                    && input.len() == 2 * half;
                if !is_sound {
                    return None;
                }
                slot.key = PrivateKey {
                    version: abi::TWO_PRIMES,
                    representation: abi::BY_PRIMES,
                    modulus: Flat::NONE,
                    exponent: Flat::NONE,
                    p: slot.put(key.p)?,
                    q: slot.put(key.q)?,
                    dp: slot.put(key.dp)?,
                    dq: slot.put(key.dq)?,
                    qinv: slot.put(key.qinv)?,
                };
                slot.rsa = RsaData { key: &raw mut slot.key, input: slot.put(input)? };
                slot.out = [slot.reserve(input.len())?, Flat::NONE];
                slot.parts = 1;
            }
            Operation::Multiply { curve, scalar, point } => {
                let parameters = match curve {
                    Curve::P256 => curves::P256,
                    Curve::P384 => curves::P384,
                };
                let (x, y) = match point {
                    Point::Base => curves::base_point(curve),
                    Point::At(x, y) => (x, y),
                };
                let length = curve.bytes();
                if [scalar, x, y].iter().any(|number| number.len() != length) {
                    return None;
                }
                slot.multiply = MultiplyData {
                    scalar: slot.put(scalar)?,
                    x: slot.put(x)?,
                    y: slot.put(y)?,
                    a: slot.put(parameters.a)?,
                    b: slot.put(parameters.b)?,
                    prime: slot.put(parameters.prime)?,
                    cofactor: Flat::NONE,
                    field: abi::PRIME_FIELD,
                };
                slot.out = [slot.reserve(length)?, slot.reserve(length)?];
                slot.parts = 2;
            }
            Operation::X25519 { scalar, point } => {
                let x = match point {
                    Some(point) => slot.put_reversed(point)?,
                    None => Flat::NONE,
                };
                slot.montgomery = MontgomeryData {
                    curve: abi::CURVE25519,
                    is_base: u32::from(point.is_none()),
                    scalar: slot.put_reversed(scalar)?,
                    x,
                    y: Flat::NONE,
                };
                // Only u is written, but the library asks for room for both.
                slot.out = [slot.reserve(32)?, slot.reserve(32)?];
                slot.parts = 1;
                slot.is_reversed = true;
            }
        }
        Some(())
    }

    fn hand_over(&mut self, at: usize, operation: &Operation) -> Status {
        let (functions, instance) = (self.functions, self.instance);
        let slot = &mut self.slots[at];
        let tag = slot.tag();
        let [x, y] = &mut slot.out;
        // SAFETY: the instance is started. All pointers lead into the slot or its memory, neither of which moves or is
        // otherwise used before the callback.
        unsafe {
            match operation {
                Operation::RsaPrivate { .. } => {
                    (functions.rsa)(instance, rsa_done, tag, &raw const slot.rsa, x)
                }
                Operation::Multiply { .. } => (functions.multiply)(
                    instance,
                    multiply_done,
                    tag,
                    &raw const slot.multiply,
                    &raw mut slot.multiplied,
                    x,
                    y,
                ),
                Operation::X25519 { .. } => (functions.montgomery)(
                    instance,
                    multiply_done,
                    tag,
                    &raw const slot.montgomery,
                    &raw mut slot.multiplied,
                    x,
                    y,
                ),
            }
        }
    }
}

impl CryptoDevice for Qat {
    fn submit(&mut self, operation: &Operation, ticket: u64) -> Result<(), Failure> {
        let Some(at) = self.slots.iter().position(Slot::is_free) else { return Err(Fault::QueueFull.into()) };
        if self.fill(at, operation).is_none() {
            self.slots[at].release();
            return Err(Failure::Declined);
        }
        self.slots[at].begin(ticket, boot_ns());
        let status = self.hand_over(at, operation);
        if status == abi::SUCCESS {
            return Ok(());
        }
        self.slots[at].release();
        match status {
            abi::INVALID | abi::UNSUPPORTED => Err(Failure::Declined),
            other => Err(fault(other).into()),
        }
    }

    fn poll(&mut self, done: &mut Done) -> Result<(), Fault> {
        // SAFETY: the instance is started. Callbacks run inside and touch slots through their atomics only.
        let status = unsafe { (self.functions.poll)(self.instance, 0) };
        if !matches!(status, abi::SUCCESS | abi::RETRY) {
            return Err(fault(status));
        }
        let mut late = false;
        let now = boot_ns();
        for at in 0..self.slots.len() {
            let slot = &mut self.slots[at];
            let Some(status) = slot.outcome() else {
                let waits = now.saturating_sub(slot.since_ns);
                late |= slot.is_in_flight() && waits > self.limit.as_nanos() as u64;
                continue;
            };
            let ticket = slot.ticket;
            let length = slot.result(&mut self.result);
            slot.release();
            match (status, length) {
                (abi::SUCCESS, Some(length)) => done(ticket, Ok(&self.result[..length])),
                (NOT_MULTIPLIED, _) | (_, None) => done(ticket, Err(Fault::BadOutput)),
                (other, _) => done(ticket, Err(fault(other))),
            }
        }
        self.result.fill(0);
        if late { Err(Fault::TimedOut) } else { Ok(()) }
    }

    fn in_flight(&self) -> usize {
        self.slots.iter().filter(|slot| !slot.is_free()).count()
    }
}

impl Qat {
    fn is_in_use(&self) -> bool {
        self.slots.iter().any(Slot::is_in_flight)
    }

    /// Passes the operations that have not ended to `lost`, for their owners.
    pub fn abandon(&self, lost: &mut dyn FnMut(u64)) {
        for slot in self.slots.iter().filter(|slot| !slot.is_free()) {
            lost(slot.ticket);
        }
    }
}

/// How long an ending session waits for late operations.
const PATIENCE: Duration = Duration::from_millis(500);

impl Drop for Qat {
    fn drop(&mut self) {
        let mut pause = Pause::new(PATIENCE.min(self.limit * 4));
        while self.is_in_use()
            // SAFETY: the instance is started; as in `poll`.
            && matches!(unsafe { (self.functions.poll)(self.instance, 0) }, abi::SUCCESS | abi::RETRY)
            && pause.wait()
        {}
        let is_idle = !self.is_in_use();
        // SAFETY: the instance was started and is not used afterwards.
        unsafe {
            (self.functions.stop_instance)(self.instance);
            (self.functions.stop)();
        }
        // The rings are gone, and with them everything the device could still read.
        for slot in &mut self.slots {
            slot.wipe();
        }
        if is_idle {
            // SAFETY: allocated by the same library, and no operation is pending.
            unsafe { (self.functions.free)(&raw mut self.memory) };
        } else {
            // A callback, or the device itself, may still write here.
            std::mem::forget(std::mem::take(&mut self.slots));
        }
    }
}

const KNOWN: usize = 5;
/// The index of RSA among them.
const RSA: usize = 0;

/// Whether `result` is that of the known operation.
pub(super) fn is_known(known: usize, result: &[u8]) -> bool {
    match known % KNOWN {
        0 => *result == *answers::RSA.output,
        1 => *result == answers::P256,
        2 => *result == answers::P384,
        3 => *result == answers::X25519[1],
        _ => *result == answers::X25519[3],
    }
}

/// Assigns instances to sessions in turn, so that threads have different ones and a broken one does not serve them all.
fn instance(functions: &Functions) -> Result<Instance, Fault> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let mut count = 0;
    // SAFETY: writable.
    started(unsafe { (functions.count)(&raw mut count) })?;
    if count == 0 {
        return Err(Fault::Init);
    }
    let mut instances = vec![std::ptr::null_mut(); usize::from(count)];
    // SAFETY: the array has room for as many as stated.
    started(unsafe { (functions.instances)(count, instances.as_mut_ptr()) })?;
    instances.retain(|instance| !instance.is_null());
    let turn = NEXT.fetch_add(1, Ordering::Relaxed).checked_rem(instances.len());
    turn.map(|turn| instances[turn]).ok_or(Fault::Init)
}

fn started(status: Status) -> Result<(), Fault> {
    match status {
        abi::SUCCESS => Ok(()),
        abi::RESTARTING => Err(Fault::Gone),
        _ => Err(Fault::Init),
    }
}

fn fault(status: Status) -> Fault {
    match status {
        abi::RETRY => Fault::QueueFull,
        abi::RESOURCE => Fault::Error,
        abi::RESTARTING => Fault::Gone,
        _ => Fault::Error,
    }
}
