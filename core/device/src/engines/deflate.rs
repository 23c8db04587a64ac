//! Whole deflate streams by devices: the interface, the known question, and the engine behind its guard.

use std::sync::Arc;

use super::{Failure, Folder};
use crate::Fault;
use crate::answers;
use crate::discovery::DeviceKind;
use crate::guard::{Engine, Guard, Limits, Refusal};
use crate::root::Root;
use crate::worker::Serve;
use hasten_guard::breaker::{Breaker, View};

/// Compresses and decompresses whole raw deflate streams.
pub trait DeflateDevice: Sized + 'static {
    const NAME: &'static str;
    /// The devices that it uses.
    const KIND: DeviceKind;

    /// Opens the library and a session.
    fn open(folder: &Folder) -> Result<Self, Fault>;

    /// Writes a complete stream and returns its length.
    fn compress(&mut self, level: u8, input: &[u8], out: &mut [u8]) -> Result<usize, Failure>;

    /// Reads one complete stream and nothing beyond it.
    fn decompress(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, Failure>;
}

/// Software that unpacks a raw deflate stream, used to check the known answer.
pub type Inflate = fn(&[u8], &mut [u8]) -> Option<usize>;

/// What a device is made from.
#[derive(Debug, Clone)]
pub struct Plan {
    pub folder: Folder,
    /// Where drivers report the state of their devices.
    pub root: Root,
    pub inflate: Inflate,
}

/// One thread's engine behind a breaker.
pub struct Deflate<D: DeflateDevice> {
    guard: Guard<Server<D>>,
    buffers: Option<Box<Buffers>>,
    largest: usize,
}

impl<D: DeflateDevice> Deflate<D> {
    /// For inputs and outputs of up to `largest` bytes.
    pub fn new(plan: Plan, breaker: Arc<Breaker>, limits: Limits, largest: usize) -> Self {
        Self { guard: Guard::new(plan, breaker, limits), buffers: None, largest }
    }

    pub fn compress(&mut self, level: u8, input: &[u8], out: &mut [u8]) -> Result<usize, Refusal> {
        self.run(Operation::Compress(level), input, out)
    }

    pub fn decompress(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, Refusal> {
        self.run(Operation::Decompress, input, out)
    }

    /// Reports that the caller has found this engine's output wrong.
    pub fn blame(&mut self, fault: Fault) {
        self.guard.blame(fault);
    }

    /// Advances start and probes, and returns whether an operation would be admitted.
    pub fn is_ready(&mut self) -> bool {
        self.guard.is_ready()
    }

    pub fn view(&self) -> View {
        self.guard.view()
    }

    fn run(&mut self, operation: Operation, input: &[u8], out: &mut [u8]) -> Result<usize, Refusal> {
        if input.is_empty() || input.len() > self.largest {
            return Err(Refusal::Declined);
        }
        let permit = self.guard.admit()?;
        let room = out.len().min(self.largest);
        let mut buffers = self.buffers.take().unwrap_or_else(|| Buffers::new(self.largest));
        buffers.fill(operation, input, room);
        let buffers = self.guard.call(permit, buffers).map_err(Refusal::Fault)?;
        let outcome = buffers.outcome;
        let outcome = match outcome {
            // More than there was room for is not an answer.
            Ok(length) if length > room => Err(Failure::Fault(Fault::BadOutput)),
            other => other,
        };
        let result = match outcome {
            Ok(length) => {
                out[..length].copy_from_slice(&buffers.output[..length]);
                self.guard.succeeded(permit);
                Ok(length)
            }
            Err(Failure::Declined) => {
                self.guard.succeeded(permit);
                Err(Refusal::Declined)
            }
            Err(Failure::Fault(fault)) => Err(Refusal::Fault(self.guard.fail(permit, fault))),
        };
        self.buffers = Some(buffers);
        result
    }
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    Compress(u8),
    Decompress,
}

/// What goes to the worker and comes back. A worker that is abandoned keeps them.
pub struct Buffers {
    operation: Operation,
    input: Vec<u8>,
    output: Vec<u8>,
    outcome: Result<usize, Failure>,
}

impl Buffers {
    fn new(largest: usize) -> Box<Self> {
        Box::new(Self {
            operation: Operation::Decompress,
            input: Vec::with_capacity(largest),
            output: Vec::with_capacity(largest),
            outcome: Err(Failure::Declined),
        })
    }

    fn fill(&mut self, operation: Operation, input: &[u8], room: usize) {
        self.operation = operation;
        self.input.clear();
        self.input.extend_from_slice(input);
        self.output.resize(room, 0);
        self.outcome = Err(Failure::Declined);
    }
}

/// A device on its worker's thread.
pub struct Server<D> {
    device: D,
    inflate: Inflate,
}

impl<D: DeflateDevice> Serve for Server<D> {
    type Request = Box<Buffers>;
    type Reply = Box<Buffers>;

    fn serve(&mut self, mut buffers: Box<Buffers>) -> Box<Buffers> {
        let Buffers { operation, input, output, outcome } = &mut *buffers;
        *outcome = match *operation {
            Operation::Compress(level) => self.device.compress(level, input, output),
            Operation::Decompress => self.device.decompress(input, output),
        };
        if *outcome == Err(Failure::Fault(Fault::TimedOut)) {
            keep(std::mem::take(input), std::mem::take(output));
        }
        buffers
    }
}

impl<D: DeflateDevice> Engine for Server<D> {
    const NAME: &'static str = D::NAME;
    const KIND: DeviceKind = D::KIND;
    type Plan = Plan;

    fn root(plan: &Plan) -> Root {
        plan.root.clone()
    }

    fn open(plan: &Plan) -> Result<Self, Fault> {
        Ok(Self { device: D::open(&plan.folder)?, inflate: plan.inflate })
    }

    fn known_answer(&mut self) -> Result<(), Fault> {
        known_answer(&mut self.device, self.inflate)
    }
}

/// A device that has not answered may still read and write: buffers that it was given are never reused.
fn keep(input: Vec<u8>, output: Vec<u8>) {
    std::mem::forget((input, output));
}

/// Asks both directions. A device that only compresses passes; software unpacks its output.
pub fn known_answer<D: DeflateDevice>(device: &mut D, inflate: Inflate) -> Result<(), Fault> {
    let text = answers::text();
    let mut unpacked = vec![0; answers::TEXT_LENGTH + 64];
    match device.decompress(answers::STREAM, &mut unpacked) {
        Ok(length) if unpacked.get(..length) == Some(&text[..]) => {}
        Ok(_) => return Err(Fault::BadOutput),
        Err(Failure::Declined) => {}
        Err(Failure::Fault(fault)) => return Err(kept_if_late(fault, text, unpacked)),
    }
    let mut packed = vec![0; 2 * answers::TEXT_LENGTH];
    let length = match device.compress(1, &text, &mut packed) {
        Ok(length) => length,
        Err(Failure::Declined) => return Err(Fault::Error),
        Err(Failure::Fault(fault)) => return Err(kept_if_late(fault, text, packed)),
    };
    let packed = packed.get(..length).ok_or(Fault::BadOutput)?;
    let length = inflate(packed, &mut unpacked).ok_or(Fault::BadOutput)?;
    if unpacked.get(..length) == Some(&text[..]) { Ok(()) } else { Err(Fault::BadOutput) }
}

fn kept_if_late(fault: Fault, input: Vec<u8>, output: Vec<u8>) -> Fault {
    if fault == Fault::TimedOut {
        keep(input, output);
    }
    fault
}
