//! The slot of one operation: what the device reads, where it writes, and how the operation ended.
//!
//! A slot belongs to the device from submission to callback. An operation that takes too long is reported to its owner,
//! but its slot is not reused before the callback has come.

use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use super::abi::{Flat, MontgomeryData, MultiplyData, PrivateKey, RsaData, SUCCESS, Status, TRUE};

/// A slot's memory that is visible to the device. An RSA-4096 operation needs 2,304 bytes of it.
pub(super) const ROOM: usize = 4096;

const FREE: u32 = 0;
const IN_FLIGHT: u32 = 1;
const DONE: u32 = 2;

pub(super) struct Slot {
    state: AtomicU32,
    status: AtomicI32,
    pub(super) ticket: u64,
    pub(super) since_ns: u64,
    memory: *mut u8,
    used: usize,
    /// The result: one part, or two.
    pub(super) out: [Flat; 2],
    pub(super) parts: usize,
    /// Whether the result must be reversed, as X25519's must.
    pub(super) is_reversed: bool,
    pub(super) multiplied: u32,
    pub(super) key: PrivateKey,
    pub(super) rsa: RsaData,
    pub(super) multiply: MultiplyData,
    pub(super) montgomery: MontgomeryData,
}

impl Slot {
    /// `memory` must be [`ROOM`] bytes that nobody else uses.
    pub(super) fn new(memory: *mut u8) -> Self {
        let none = Flat::NONE;
        Self {
            state: AtomicU32::new(FREE),
            status: AtomicI32::new(SUCCESS),
            ticket: 0,
            since_ns: 0,
            memory,
            used: 0,
            out: [none; 2],
            parts: 1,
            is_reversed: false,
            multiplied: 0,
            key: PrivateKey {
                version: 0,
                representation: 0,
                modulus: none,
                exponent: none,
                p: none,
                q: none,
                dp: none,
                dq: none,
                qinv: none,
            },
            rsa: RsaData { key: std::ptr::null_mut(), input: none },
            multiply: MultiplyData {
                scalar: none,
                x: none,
                y: none,
                a: none,
                b: none,
                prime: none,
                cofactor: none,
                field: 0,
            },
            montgomery: MontgomeryData { curve: 0, is_base: 0, scalar: none, x: none, y: none },
        }
    }

    pub(super) fn is_free(&self) -> bool {
        self.state.load(Ordering::Acquire) == FREE
    }

    pub(super) fn is_in_flight(&self) -> bool {
        self.state.load(Ordering::Acquire) == IN_FLIGHT
    }

    /// `Some` once the callback has come.
    pub(super) fn outcome(&self) -> Option<Status> {
        (self.state.load(Ordering::Acquire) == DONE).then(|| self.status.load(Ordering::Relaxed))
    }

    pub(super) fn begin(&mut self, ticket: u64, since_ns: u64) {
        self.ticket = ticket;
        self.since_ns = since_ns;
        self.multiplied = 0;
        self.state.store(IN_FLIGHT, Ordering::Release);
    }

    /// Copies data for the device to read. `None` if there is no room.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Option<Flat> {
        let flat = self.reserve(bytes.len())?;
        // SAFETY: `reserve` has returned that many bytes of our own memory.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), flat.data, bytes.len()) };
        Some(flat)
    }

    pub(super) fn put_reversed(&mut self, bytes: &[u8]) -> Option<Flat> {
        let flat = self.put(bytes)?;
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(flat.data, bytes.len()) }.reverse();
        Some(flat)
    }

    /// Reserves room for a result.
    pub(super) fn reserve(&mut self, length: usize) -> Option<Flat> {
        // The device prefers numbers at multiples of eight.
        let end = self.used.checked_add(length.next_multiple_of(8))?;
        if end > ROOM {
            return None;
        }
        // SAFETY: within the slot's memory.
        let data = unsafe { self.memory.add(self.used) };
        self.used = end;
        Some(Flat { length: u32::try_from(length).ok()?, data })
    }

    /// Writes the result into `out` and returns its length. `None` if it is not where it should be.
    pub(super) fn result(&self, out: &mut [u8]) -> Option<usize> {
        let mut length = 0;
        for part in &self.out[..self.parts] {
            let part_length = part.length as usize;
            // The library was free to write here, too.
            let offset = (part.data as usize).checked_sub(self.memory as usize)?;
            if offset.checked_add(part_length)? > self.used {
                return None;
            }
            let target = out.get_mut(length..length + part_length)?;
            // SAFETY: within the reserved part of the slot's memory, as just checked, and the device is done with it.
            target.copy_from_slice(unsafe { std::slice::from_raw_parts(part.data, part_length) });
            length += part_length;
        }
        if self.is_reversed {
            out[..length].reverse();
        }
        Some(length)
    }

    /// Wipes keys and results, and gives the slot back.
    pub(super) fn release(&mut self) {
        self.wipe();
        self.used = 0;
        self.state.store(FREE, Ordering::Release);
    }

    /// Wipes keys and results. This spoils an operation that the device is still working on, but nobody wants its
    /// result.
    pub(super) fn wipe(&mut self) {
        for at in 0..self.used {
            // SAFETY: within the slot's memory, to which no references exist.
            unsafe { self.memory.add(at).write_volatile(0) };
        }
    }

    /// The value by which a callback finds the slot again.
    pub(super) fn tag(&mut self) -> *mut c_void {
        (&raw mut *self).cast()
    }
}

/// # Safety
/// `tag` must be that of a slot in flight.
unsafe fn done(tag: *mut c_void, status: Status) {
    let slot: *const Slot = tag.cast();
    // SAFETY: slots are leaked rather than freed while they are in flight, and these fields are atomic.
    unsafe {
        (*slot).status.store(status, Ordering::Relaxed);
        (*slot).state.store(DONE, Ordering::Release);
    }
}

/// # Safety
///
/// As [`done`]: `tag` must be what the library was given with an operation that has not been answered yet.
pub(super) unsafe extern "C" fn rsa_done(tag: *mut c_void, status: Status, _: *mut c_void, _: *mut Flat) {
    // SAFETY: the library returns the tag that it was given.
    unsafe { done(tag, status) };
}

/// # Safety
///
/// As [`rsa_done`].
pub(super) unsafe extern "C" fn multiply_done(
    tag: *mut c_void,
    status: Status,
    _: *mut c_void,
    multiplied: u32,
    _: *mut Flat,
    _: *mut Flat,
) {
    // The result is the point at infinity, or the device failed to compute it.
    let status = if status == SUCCESS && multiplied != TRUE { super::NOT_MULTIPLIED } else { status };
    // SAFETY: as above.
    unsafe { done(tag, status) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_operation_is_left_behind() {
        let mut memory = vec![0; ROOM];
        let mut slot = Slot::new(memory.as_mut_ptr());
        for ends in [true, false] {
            let flat = slot.put(b"a secret prime").unwrap();
            slot.put_reversed(&[7; 32]).unwrap();
            // SAFETY: we play the device's part and put a result in its place.
            unsafe { slot.reserve(8).unwrap().data.write(9) };
            slot.begin(1, 1);
            assert_eq!(flat.length, 14);
            if ends {
                // SAFETY: the tag of a slot that is in flight.
                unsafe { done(slot.tag(), SUCCESS) };
                slot.release();
                assert!(slot.is_free());
            } else {
                slot.wipe();
                assert!(slot.is_in_flight(), "it is the device's still");
            }
            // SAFETY: the memory is alive, and the slot is idle.
            let left = unsafe { std::slice::from_raw_parts(memory.as_ptr(), ROOM) };
            assert!(left.iter().all(|&byte| byte == 0));
        }
        assert!(slot.reserve(ROOM + 1).is_none());
    }

    #[test]
    fn a_result_is_read_from_where_it_was_to_be_and_no_further() {
        let mut memory = vec![0; ROOM];
        let mut slot = Slot::new(memory.as_mut_ptr());
        let whole = slot.put(b"12345678").unwrap();
        let mut out = [0; ROOM];
        let mut read = |part: Flat| {
            slot.out[0] = part;
            slot.result(&mut out)
        };
        assert_eq!(read(whole), Some(8));
        assert_eq!(read(Flat { length: 9, ..whole }), None, "a library that says there is more");
        assert_eq!(read(Flat { length: u32::MAX, ..whole }), None);
        assert_eq!(read(Flat { length: 8, data: whole.data.wrapping_sub(8) }), None);
        assert_eq!(read(Flat { length: 8, data: whole.data.wrapping_add(8) }), None);
    }
}
