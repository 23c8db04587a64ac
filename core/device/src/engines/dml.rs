//! Intel's Data Mover Library: large copies by DSA.
//!
//! The device writes into the caller's memory, so a copy that does not end must not let go of it. That is why source and
//! target are handed over and come back: those of a copy that hangs never do, and the caller takes others.

use std::alloc::{Layout, alloc_zeroed};
use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

use super::{Failure, Folder};
use crate::break_even::{BreakEven, Side};
use crate::breaker::{Breaker, View};
use crate::clock::now_ns;
use crate::discovery::DeviceKind;
use crate::fault::Fault;
use crate::guard::{Engine, Guard, Limits, Refusal};
use crate::library::{Known, Library, LibraryError};
use crate::pause::Pause;
use crate::worker::Serve;

pub const LIBRARY: Known = Known {
    names: &["libdml.so.1", "libdml.so"],
    source: "Intel DML 1.x, built as a shared library (github.com/intel/DML)",
};

/// Nothing smaller is worth a submission, whatever is measured.
pub const SMALLEST: usize = 64 << 10;

const LONGEST: Duration = Duration::from_secs(1);
const PAGE: usize = 4096;

/// `dml_job_t`.
#[repr(C)]
struct Job {
    source: *const u8,
    source_2: *const u8,
    target: *mut u8,
    target_2: *mut u8,
    crc: *mut u32,
    source_length: u32,
    target_length: u32,
    offset: u32,
    pattern: [u8; 8],
    operation: u32,
    result: u32,
    expected_result: u32,
    flags: u64,
    dif: [u32; 6],
    numa_id: u32,
    internal: *mut u8,
}

const _: () = {
    assert!(size_of::<Job>() == 120);
    assert!(std::mem::offset_of!(Job, source_length) == 40);
    assert!(std::mem::offset_of!(Job, operation) == 60);
    assert!(std::mem::offset_of!(Job, flags) == 72);
    assert!(std::mem::offset_of!(Job, internal) == 112);
};

const HARDWARE: u32 = 2;
const MEMORY_MOVE: u32 = 3;

const OK: u32 = 0;
const BEING_PROCESSED: u32 = 2;
const LIMITS_ERROR: u32 = 5;
const QUEUE_OVERFLOW: u32 = 24;
const PAGE_FAULT: u32 = 25;

/// The end of `dml_library_version_t`: numbers behind 123 bytes of text.
#[repr(C)]
struct Version {
    text: [u8; 123],
    major: u32,
    minor: u32,
    patch: u32,
}

const _: () = assert!(std::mem::offset_of!(Version, major) == 124);

#[derive(Clone, Copy)]
struct Functions {
    version: unsafe extern "C" fn() -> *const Version,
    job_size: unsafe extern "C" fn(u32, *mut u32) -> c_int,
    init: unsafe extern "C" fn(u32, *mut Job) -> c_int,
    submit: unsafe extern "C" fn(*mut Job) -> c_int,
    check: unsafe extern "C" fn(*mut Job) -> c_int,
    finish: unsafe extern "C" fn(*mut Job) -> c_int,
}

impl Functions {
    fn of(library: &Library) -> Result<Self, LibraryError> {
        // SAFETY: the types are those of DML's public C header since version 1.0.
        unsafe {
            Ok(Self {
                version: library.function(c"dml_get_library_version")?,
                job_size: library.function(c"dml_get_job_size")?,
                init: library.function(c"dml_init_job")?,
                submit: library.function(c"dml_submit_job")?,
                check: library.function(c"dml_check_job")?,
                finish: library.function(c"dml_finalize_job")?,
            })
        }
    }

    fn check_version(&self, library: &Library) -> Result<(), LibraryError> {
        // SAFETY: the function takes nothing and returns a constant structure, or null.
        let version = unsafe { (self.version)().as_ref() };
        match version {
            Some(Version { major: 1, .. }) => Ok(()),
            other => {
                let found =
                    other.map_or("unknown".into(), |v| format!("{}.{}.{}", v.major, v.minor, v.patch));
                Err(LibraryError::Version { library: library.name(), found, needed: "1.x" })
            }
        }
    }
}

/// Whether the library is there and of a version that is known.
pub fn look(folder: &Folder) -> Result<Library, LibraryError> {
    let library = super::open(&LIBRARY, folder)?;
    Functions::of(&library)?.check_version(&library)?;
    Ok(library)
}

/// Copies of one thread, behind a breaker.
pub struct Copier {
    guard: Guard<Dml>,
    /// Whether every byte is compared, and not only some of each page.
    pub verify: bool,
    /// Whether the device copies also where it has been found not to pay.
    pub always: bool,
    costs: BreakEven,
}

impl Copier {
    pub fn new(folder: Folder, breaker: Arc<Breaker>, limits: Limits) -> Self {
        Self {
            guard: Guard::new(folder, breaker, limits),
            verify: false,
            always: false,
            costs: BreakEven::new(),
        }
    }

    /// What a copy in software took, of a size that this was asked for. The device copies where that is more.
    pub fn software_took(&self, length: usize, ns: u64) {
        self.costs.record(Side::Software, length, ns);
    }

    /// The size from which on the device has been faster.
    pub fn break_even(&self) -> Option<usize> {
        self.costs.from()
    }

    /// Copies all of `source` into `target`, which must be as long, and gives it back. Otherwise the caller copies in software,
    /// into `target` if it is given back, else into a new one.
    pub fn copy(
        &mut self,
        source: &Arc<[u8]>,
        target: Vec<u8>,
    ) -> Result<Vec<u8>, (Refusal, Option<Vec<u8>>)> {
        if source.len() < SMALLEST || source.len() != target.len() || u32::try_from(source.len()).is_err() {
            return Err((Refusal::Declined, Some(target)));
        }
        if !self.always && self.costs.choose(source.len()) == Side::Software {
            return Err((Refusal::Declined, Some(target)));
        }
        let permit = match self.guard.admit() {
            Ok(permit) => permit,
            Err(refusal) => return Err((refusal, Some(target))),
        };
        let start = now_ns();
        let reply = self.guard.call(permit, (Arc::clone(source), target));
        let (outcome, target) = reply.map_err(|fault| (Refusal::Fault(fault), None))?;
        match (outcome, target) {
            (Ok(()), Some(target)) if self.is_copy(source, &target) => {
                self.guard.succeeded(permit);
                self.costs.record(Side::Device, target.len(), now_ns().saturating_sub(start));
                Ok(target)
            }
            (Ok(()), target) => Err((Refusal::Fault(self.guard.fail(permit, Fault::BadOutput)), target)),
            (Err(Failure::Declined), target) => {
                self.guard.succeeded(permit);
                Err((Refusal::Declined, target))
            }
            (Err(Failure::Fault(fault)), target) => {
                Err((Refusal::Fault(self.guard.fail(permit, fault)), target))
            }
        }
    }

    pub fn is_ready(&mut self) -> bool {
        self.guard.is_ready()
    }

    pub fn view(&self) -> View {
        self.guard.view()
    }

    fn is_copy(&self, source: &[u8], target: &[u8]) -> bool {
        if self.verify {
            return source == target;
        }
        // A line of each page, and the end, which a copy that was cut short has not reached.
        let line = |bytes: &[u8]| bytes.len().min(64);
        let mut pages = source.chunks(PAGE).zip(target.chunks(PAGE));
        pages.all(|(a, b)| a[..line(a)] == b[..line(b)]) && source.ends_with(&target[target.len() - 64..])
    }
}

/// One job on the worker's thread.
pub struct Dml {
    functions: Functions,
    job: *mut Job,
    layout: Layout,
    in_flight: bool,
}

impl Serve for Dml {
    type Request = (Arc<[u8]>, Vec<u8>);
    /// The target, unless the device may still write to it.
    type Reply = (Result<(), Failure>, Option<Vec<u8>>);

    fn serve(&mut self, (source, mut target): Self::Request) -> Self::Reply {
        let outcome = self.copy(&source, &mut target);
        if self.in_flight {
            std::mem::forget((source, target));
            return (outcome, None);
        }
        (outcome, Some(target))
    }
}

impl Engine for Dml {
    const NAME: &'static str = "dml";
    const KIND: DeviceKind = DeviceKind::Dsa;
    type Plan = Folder;

    fn open(folder: &Folder) -> Result<Self, Fault> {
        let library = look(folder).map_err(|_| Fault::Init)?;
        let functions = Functions::of(&library).map_err(|_| Fault::Init)?;
        let mut size = 0;
        // SAFETY: `size` is writable.
        started(unsafe { (functions.job_size)(HARDWARE, &raw mut size) })?;
        let layout =
            Layout::from_size_align((size as usize).max(size_of::<Job>()), 64).map_err(|_| Fault::Init)?;
        // SAFETY: the size is not zero.
        let job: *mut Job = unsafe { alloc_zeroed(layout) }.cast();
        if job.is_null() {
            return Err(Fault::Init);
        }
        let dml = Self { functions, job, layout, in_flight: false };
        // SAFETY: as large as the library wants, and aligned.
        started(unsafe { (functions.init)(HARDWARE, job) })?;
        Ok(dml)
    }

    fn known_answer(&mut self) -> Result<(), Fault> {
        let source: Arc<[u8]> =
            (0..SMALLEST as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        match self.serve((Arc::clone(&source), vec![0; SMALLEST])) {
            (Ok(()), Some(target)) if target[..] == source[..] => Ok(()),
            (Ok(()), _) => Err(Fault::BadOutput),
            (Err(Failure::Declined), _) => Err(Fault::Error),
            (Err(Failure::Fault(fault)), _) => Err(fault),
        }
    }
}

impl Dml {
    fn copy(&mut self, source: &[u8], target: &mut [u8]) -> Result<(), Failure> {
        touch(source, target);
        let length = u32::try_from(source.len()).map_err(|_| Failure::Declined)?;
        // SAFETY: the job was initialised and is not in flight. Both buffers are as long as is said, and outlive it: if it does
        // not end, they are leaked.
        unsafe {
            let job = &mut *self.job;
            job.operation = MEMORY_MOVE;
            job.source = source.as_ptr();
            job.target = target.as_mut_ptr();
            job.source_length = length;
            job.target_length = length;
            job.flags = 0;
        }
        self.submit()?;
        let mut pause = Pause::new(LONGEST);
        loop {
            // SAFETY: the job was submitted.
            let status = unsafe { (self.functions.check)(self.job) } as u32;
            if status != BEING_PROCESSED {
                self.in_flight = false;
            }
            match status {
                OK => return Ok(()),
                BEING_PROCESSED if pause.wait() => {}
                BEING_PROCESSED => return Err(Fault::TimedOut.into()),
                PAGE_FAULT | LIMITS_ERROR => return Err(Failure::Declined),
                other => return Err(fault(other).into()),
            }
        }
    }

    fn submit(&mut self) -> Result<(), Failure> {
        let mut pause = Pause::new(LONGEST / 20);
        loop {
            // SAFETY: the job is filled in.
            match unsafe { (self.functions.submit)(self.job) } as u32 {
                OK => {
                    self.in_flight = true;
                    return Ok(());
                }
                QUEUE_OVERFLOW if pause.wait() => {}
                LIMITS_ERROR => return Err(Failure::Declined),
                other => return Err(fault(other).into()),
            }
        }
    }
}

impl Drop for Dml {
    fn drop(&mut self) {
        if self.in_flight {
            return;
        }
        // SAFETY: initialised or zeros, not in flight, and not used afterwards.
        unsafe {
            (self.functions.finish)(self.job);
            std::alloc::dealloc(self.job.cast(), self.layout);
        }
    }
}

/// The device stops at pages that are not there.
fn touch(source: &[u8], target: &mut [u8]) {
    for page in source.chunks(PAGE) {
        std::hint::black_box(page[0]);
    }
    for page in target.chunks_mut(PAGE) {
        page[0] = std::hint::black_box(0);
    }
}

fn started(status: c_int) -> Result<(), Fault> {
    match status as u32 {
        OK => Ok(()),
        102 => Err(Fault::Gone),
        _ => Err(Fault::Init),
    }
}

fn fault(status: u32) -> Fault {
    match status {
        QUEUE_OVERFLOW => Fault::QueueFull,
        43 | 44 => Fault::TimedOut,
        100..=102 => Fault::Gone,
        _ => Fault::Error,
    }
}
