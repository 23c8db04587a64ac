//! One scheduling domain: a queue, a sending port, and a port for each receiver.

use std::ffi::c_int;

use super::super::Folder;
use super::abi::{
    ANY_CLASS, COMBINED_CREDITS, DomainArguments, EVENT_ERROR, Event, Functions, Handle, LIBRARY,
    PortArguments, QueueArguments, UNORDERED,
};
use crate::Fault;
use crate::library::{Library, LibraryError};
use crate::pause::Pause;

/// Capacity of a receiver's queue in the device.
const DEPTH: u32 = 16;
const CREDITS: u32 = 256;

/// Whether the library is present.
pub fn look(folder: &Folder) -> Result<Library, LibraryError> {
    let library = super::super::open(&LIBRARY, folder)?;
    Functions::of(&library)?;
    Ok(library)
}

pub(super) struct Session {
    functions: Functions,
    device: Handle,
    domain_number: c_int,
    domain: Handle,
    queue: u8,
    /// The last one is the sender's.
    ports: Vec<Handle>,
}

// SAFETY: the library allows its handles in any thread; sender and receivers ensure that each port is used by one
// thread at a time.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Session {
    pub(super) fn open(folder: &Folder, receivers: usize) -> Result<Self, Fault> {
        let library = super::super::open(&LIBRARY, folder).map_err(|_| Fault::Init)?;
        let functions = Functions::of(&library).map_err(|_| Fault::Init)?;
        let mut session = Self {
            functions,
            device: std::ptr::null_mut(),
            domain_number: -1,
            domain: std::ptr::null_mut(),
            queue: 0,
            ports: Vec::new(),
        };
        // If an error occurs, dropping the session undoes what has been made.
        session.set_up(receivers as u32)?;
        Ok(session)
    }

    fn set_up(&mut self, receivers: u32) -> Result<(), Fault> {
        let call = self.functions;
        let ports = receivers + 1;
        let mut capabilities = 0;
        // SAFETY: the handles came from the library and are used in the order it requires; all arguments are writable.
        unsafe {
            good((call.open)(0, &raw mut self.device))?;
            good((call.capabilities)(self.device, &raw mut capabilities))?;
            let is_combined = capabilities & COMBINED_CREDITS != 0;
            let mut domain = DomainArguments {
                queues: 1,
                ports,
                event_states: ports * 2 * DEPTH,
                credits: if is_combined { [CREDITS, 1, 0, 0] } else { [CREDITS, 0, 1, 1] },
                ..DomainArguments::default()
            };
            self.domain_number = good((call.create_domain)(self.device, &raw mut domain))?;
            self.domain = pointer((call.attach_domain)(self.device, self.domain_number))?;
            let pools = if is_combined {
                [good((call.create_pool)(self.domain, CREDITS as c_int))?, 0]
            } else {
                let balanced = good((call.create_balanced_pool)(self.domain, CREDITS as c_int))?;
                [balanced, good((call.create_directed_pool)(self.domain, 0))?]
            };
            let mut arguments = QueueArguments::default();
            let queue = good((call.create_queue)(self.domain, &raw mut arguments))?;
            self.queue = u8::try_from(queue).map_err(|_| Fault::Init)?;
            for _ in 0..ports {
                let mut arguments = PortArguments {
                    pools: pools.map(|pool| pool as u32),
                    depth: DEPTH as u16,
                    event_states: 2 * DEPTH,
                    class: ANY_CLASS,
                };
                let number = good((call.create_port)(self.domain, &raw mut arguments))?;
                self.ports.push(pointer((call.attach_port)(self.domain, number))?);
            }
            for &port in &self.ports[..receivers as usize] {
                good((call.link)(port, queue, 0))?;
            }
            good((call.launch_alerts)(self.domain, std::ptr::null_mut(), std::ptr::null_mut()))?;
            good((call.start)(self.domain))?;
        }
        Ok(())
    }

    /// Sends to whichever receiver has room.
    pub(super) fn send(&self, data: u64) -> Result<(), Fault> {
        let mut event = Event { data, queue: self.queue, schedule: UNORDERED, ..Event::default() };
        let Some(&port) = self.ports.last() else { return Err(Fault::Init) };
        // SAFETY: a started port, used by the one sender.
        match unsafe { (self.functions.send)(port, 1, &raw mut event) } {
            1 => Ok(()),
            0 => Err(Fault::QueueFull),
            _ => Err(Fault::Gone),
        }
    }

    /// Checks once.
    pub(super) fn receive(&self, receiver: usize) -> Result<Option<u64>, Fault> {
        let mut event = Event::default();
        // SAFETY: a started port, used only by the receiver of this number; room for one event.
        unsafe {
            match (self.functions.receive)(self.ports[receiver], 1, false, &raw mut event) {
                0 => Ok(None),
                1 => {
                    (self.functions.release)(self.ports[receiver], 1);
                    if event.flags[1] & EVENT_ERROR != 0 {
                        return Err(Fault::BadOutput);
                    }
                    Ok(Some(event.data))
                }
                2.. => Err(Fault::BadOutput),
                _ => Err(Fault::Gone),
            }
        }
    }

    /// Checks that every message sent arrives, once, at any of the ports.
    pub(super) fn known_answer(&self, limit: std::time::Duration) -> Result<(), Fault> {
        const MESSAGES: u64 = 8;
        for message in 0..MESSAGES {
            self.send(u64::MAX - message)?;
        }
        let mut seen = 0_u64;
        let mut pause = Pause::new(limit);
        while seen != (1 << MESSAGES) - 1 {
            for receiver in 0..self.ports.len() - 1 {
                let Some(message) = self.receive(receiver)? else { continue };
                let bit = u64::MAX - message;
                if bit >= MESSAGES || seen >> bit & 1 == 1 {
                    return Err(Fault::BadOutput);
                }
                seen |= 1 << bit;
            }
            if !pause.wait() {
                return Err(Fault::TimedOut);
            }
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let call = self.functions;
        // SAFETY: everything is undone in reverse order and not used afterwards.
        unsafe {
            for &port in &self.ports {
                (call.detach_port)(port);
            }
            if !self.domain.is_null() {
                (call.detach_domain)(self.domain);
            }
            if self.domain_number >= 0 {
                (call.reset_domain)(self.device, self.domain_number);
            }
            if !self.device.is_null() {
                (call.close)(self.device);
            }
        }
    }
}

fn good(status: c_int) -> Result<c_int, Fault> {
    if status >= 0 { Ok(status) } else { Err(Fault::Init) }
}

fn pointer(handle: Handle) -> Result<Handle, Fault> {
    if handle.is_null() { Err(Fault::Init) } else { Ok(handle) }
}
