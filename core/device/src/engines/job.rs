//! A job as in QPL and DML: filled in, submitted, and polled until it ends.
//!
//! Until then the device may write to the job and to what it points to. A job that does not end keeps its memory.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{CStr, c_int};
use std::time::Duration;

use crate::Fault;
use crate::library::{Library, LibraryError};
use crate::pause::Pause;

/// How long a job may take. The caller's own limit is usually shorter.
const LONGEST: Duration = Duration::from_secs(1);

const OK: u32 = 0;

/// The functions of a library with the job structure `J`, in the shape that both libraries share.
pub(super) struct Functions<J> {
    size: unsafe extern "C" fn(u32, *mut u32) -> c_int,
    init: unsafe extern "C" fn(u32, *mut J) -> c_int,
    submit: unsafe extern "C" fn(*mut J) -> c_int,
    check: unsafe extern "C" fn(*mut J) -> c_int,
    finish: unsafe extern "C" fn(*mut J) -> c_int,
}

/// The names of these functions in a library, and the meaning of its numbers.
pub(super) struct Dialect {
    pub(super) size: &'static CStr,
    pub(super) init: &'static CStr,
    pub(super) submit: &'static CStr,
    pub(super) check: &'static CStr,
    pub(super) finish: &'static CStr,
    /// The path that uses the device and nothing else.
    pub(super) hardware: u32,
    pub(super) being_processed: u32,
    pub(super) queue_full: u32,
}

impl<J> Functions<J> {
    /// # Safety
    /// The functions with these names must have the types above, with `J` matching the beginning of the
    /// library's structure.
    pub(super) unsafe fn of(library: &Library, dialect: &Dialect) -> Result<Self, LibraryError> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            Ok(Self {
                size: library.function(dialect.size)?,
                init: library.function(dialect.init)?,
                submit: library.function(dialect.submit)?,
                check: library.function(dialect.check)?,
                finish: library.function(dialect.finish)?,
            })
        }
    }
}

/// One job, used repeatedly.
pub(super) struct Job<J> {
    functions: Functions<J>,
    dialect: &'static Dialect,
    memory: *mut J,
    layout: Layout,
    in_flight: bool,
}

impl<J> Job<J> {
    /// Allocates as much memory as the library asks for. The error is the library's status.
    pub(super) fn new(functions: Functions<J>, dialect: &'static Dialect) -> Result<Self, u32> {
        let mut size = 0;
        // SAFETY: `size` is writable.
        started(unsafe { (functions.size)(dialect.hardware, &raw mut size) })?;
        // The libraries do not state the alignment they need; their own structures have that of a cache line.
        let layout =
            Layout::from_size_align((size as usize).max(size_of::<J>()), 64).map_err(|_| u32::MAX)?;
        // SAFETY: the size is not zero.
        let memory: *mut J = unsafe { alloc_zeroed(layout) }.cast();
        if memory.is_null() {
            return Err(u32::MAX);
        }
        let job = Self { functions, dialect, memory, layout, in_flight: false };
        // SAFETY: as large as the library asked for, and aligned.
        started(unsafe { (job.functions.init)(dialect.hardware, memory) })?;
        Ok(job)
    }

    /// The structure, unless the device may be working on it.
    pub(super) fn fields(&mut self) -> Option<&mut J> {
        // SAFETY: at least as large as `J`, initialised by the library on top of zeros, and nobody else has access.
        (!self.in_flight).then(|| unsafe { &mut *self.memory })
    }

    /// Whether it has been submitted and has not ended.
    #[cfg(feature = "unused-engines")]
    pub(super) fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    /// Submits it and waits until it has ended; returns the library's status.
    ///
    /// # Safety
    /// What its fields point to must stay valid until then: if it does not end, for ever.
    pub(super) unsafe fn run(&mut self) -> Result<u32, Fault> {
        let status = self.submit()?;
        if status != OK {
            return Ok(status);
        }
        let mut pause = Pause::new(LONGEST);
        loop {
            // SAFETY: it was submitted.
            let status = unsafe { (self.functions.check)(self.memory) } as u32;
            if status != self.dialect.being_processed {
                self.in_flight = false;
                return Ok(status);
            }
            if !pause.wait() {
                return Err(Fault::TimedOut);
            }
        }
    }

    fn submit(&mut self) -> Result<u32, Fault> {
        if self.in_flight {
            return Err(Fault::Crashed);
        }
        let mut pause = Pause::new(LONGEST / 20);
        loop {
            // SAFETY: it is filled in and not in flight.
            let status = unsafe { (self.functions.submit)(self.memory) } as u32;
            self.in_flight = status == OK;
            if status != self.dialect.queue_full || !pause.wait() {
                return Ok(status);
            }
        }
    }
}

impl<J> Drop for Job<J> {
    fn drop(&mut self) {
        if self.in_flight {
            // The device still owns the memory.
            return;
        }
        // SAFETY: initialised or zeros, not in flight, and not used afterwards.
        unsafe {
            (self.functions.finish)(self.memory);
            dealloc(self.memory.cast(), self.layout);
        }
    }
}

fn started(status: c_int) -> Result<(), u32> {
    if status as u32 == OK { Ok(()) } else { Err(status as u32) }
}
