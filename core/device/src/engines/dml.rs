//! Intel's Data Mover Library: large copies by DSA.
//!
//! The device writes into the caller's memory, so a copy that does not finish must keep it. That is why source and
//! target are handed over and handed back: a copy that hangs never returns them, and the caller uses other buffers.

use std::sync::Arc;

use super::job::{Dialect, Functions, Job};
use super::{Failure, Folder};
use crate::Fault;
use crate::break_even::{BreakEven, Side};
use crate::discovery::DeviceKind;
use crate::guard::{Engine, Guard, Limits, Refusal};
use crate::library::{Known, Library, LibraryError};
use crate::worker::Serve;
use hasten_guard::breaker::{Breaker, View};
use hasten_guard::clock::boot_ns;

pub const LIBRARY: Known = Known {
    names: &["libdml.so.1", "libdml.so"],
    source: "Intel DML 1.x, built as a shared library (github.com/intel/DML)",
};

/// Nothing smaller is worth a submission, whatever the measurements say.
pub const SMALLEST: usize = 64 << 10;

const PAGE: usize = 4096;

/// `dml_job_t`.
#[repr(C)]
struct Fields {
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
    assert!(size_of::<Fields>() == 120);
    assert!(std::mem::offset_of!(Fields, source_length) == 40);
    assert!(std::mem::offset_of!(Fields, operation) == 60);
    assert!(std::mem::offset_of!(Fields, flags) == 72);
    assert!(std::mem::offset_of!(Fields, internal) == 112);
};

const MEMORY_MOVE: u32 = 3;

const OK: u32 = 0;
const LIMITS_ERROR: u32 = 5;
const QUEUE_OVERFLOW: u32 = 24;
const NO_QUEUES: u32 = 102;
const PAGE_FAULT: u32 = 25;
const PAGE_FAULT_ON_TRANSLATION: u32 = 37;

/// The tail of `dml_library_version_t`: numbers behind 123 bytes of text.
#[repr(C)]
struct Version {
    text: [u8; 123],
    major: u32,
    minor: u32,
    patch: u32,
}

const _: () = assert!(std::mem::offset_of!(Version, major) == 124);

static DIALECT: Dialect = Dialect {
    size: c"dml_get_job_size",
    init: c"dml_init_job",
    submit: c"dml_submit_job",
    check: c"dml_check_job",
    finish: c"dml_finalize_job",
    hardware: 2,
    being_processed: 2,
    queue_full: QUEUE_OVERFLOW,
};

fn functions(library: &Library) -> Result<Functions<Fields>, LibraryError> {
    // SAFETY: the types are those of DML's public C header since version 1.0; the version is constant, or null.
    let (functions, version) = unsafe {
        let version: unsafe extern "C" fn() -> *const Version =
            library.function(c"dml_get_library_version")?;
        (Functions::of(library, &DIALECT)?, version().as_ref())
    };
    match version {
        Some(Version { major: 1, .. }) => Ok(functions),
        other => {
            let found = other.map_or("unknown".into(), |v| format!("{}.{}.{}", v.major, v.minor, v.patch));
            Err(LibraryError::Version { library: library.name(), found, needed: "1.x" })
        }
    }
}

/// Whether the library is present, in a known version.
pub fn look(folder: &Folder) -> Result<Library, LibraryError> {
    let library = super::open(&LIBRARY, folder)?;
    functions(&library)?;
    Ok(library)
}

/// One thread's copies, behind a breaker.
pub struct Copier {
    guard: Guard<Dml>,
    /// Whether every byte is compared, rather than some of each page.
    pub verify: bool,
    /// Whether the device copies even where it has been found not to pay.
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

    /// Records how long a software copy took, for a size that this was asked for. The device copies where software is
    /// slower.
    pub fn software_took(&self, length: usize, ns: u64) {
        self.costs.record(Side::Software, length, ns);
    }

    /// The size from which the device has been faster.
    pub fn break_even(&self) -> Option<usize> {
        self.costs.from()
    }

    /// Copies all of `source` into `target`, which must be as long, and gives it back. On failure the caller copies in
    /// software, into `target` if it is given back, else into a new buffer.
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
        let start = boot_ns();
        let reply = self.guard.call(permit, (Arc::clone(source), target));
        let (outcome, target) = reply.map_err(|fault| (Refusal::Fault(fault), None))?;
        match (outcome, target) {
            (Ok(()), Some(target)) if self.is_copy(source, &target) => {
                self.guard.succeeded(permit);
                self.costs.record(Side::Device, target.len(), boot_ns().saturating_sub(start));
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
        // A line of each page, and the end, which a truncated copy has not reached.
        let line = |bytes: &[u8]| bytes.len().min(64);
        let mut pages = source.chunks(PAGE).zip(target.chunks(PAGE));
        pages.all(|(a, b)| a[..line(a)] == b[..line(b)]) && source.ends_with(&target[target.len() - 64..])
    }
}

/// One job on the worker's thread.
pub struct Dml(Job<Fields>);

impl Serve for Dml {
    type Request = (Arc<[u8]>, Vec<u8>);
    /// The target, unless the device may still write to it.
    type Reply = (Result<(), Failure>, Option<Vec<u8>>);

    fn serve(&mut self, (source, mut target): Self::Request) -> Self::Reply {
        let outcome = self.copy(&source, &mut target);
        if self.0.is_in_flight() {
            std::mem::forget((source, target));
            return (outcome, None);
        }
        (outcome, Some(target))
    }
}

impl Engine for Dml {
    const NAME: &'static str = hasten_names::Engine::Dml.as_str();
    const KIND: DeviceKind = DeviceKind::Dsa;
    type Plan = Folder;

    fn open(folder: &Folder) -> Result<Self, Fault> {
        let library = super::open(&LIBRARY, folder).map_err(|_| Fault::Init)?;
        let functions = functions(&library).map_err(|_| Fault::Init)?;
        let job = Job::new(functions, &DIALECT).map_err(|status| match status {
            NO_QUEUES => Fault::Gone,
            _ => Fault::Init,
        })?;
        Ok(Self(job))
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
        let Some(fields) = self.0.fields() else { return Err(Fault::Crashed.into()) };
        fields.operation = MEMORY_MOVE;
        fields.source = source.as_ptr();
        fields.target = target.as_mut_ptr();
        fields.source_length = length;
        fields.target_length = length;
        fields.flags = 0;
        // SAFETY: both buffers are as long as stated and outlive the job: if it does not finish, they are leaked.
        match unsafe { self.0.run() }? {
            OK => Ok(()),
            PAGE_FAULT | PAGE_FAULT_ON_TRANSLATION | LIMITS_ERROR => Err(Failure::Declined),
            other => Err(fault(other).into()),
        }
    }
}

/// Touches every page: the device stops at pages that are not present.
fn touch(source: &[u8], target: &mut [u8]) {
    for page in source.chunks(PAGE) {
        std::hint::black_box(page[0]);
    }
    for page in target.chunks_mut(PAGE) {
        page[0] = std::hint::black_box(0);
    }
}

fn fault(status: u32) -> Fault {
    match status {
        QUEUE_OVERFLOW => Fault::QueueFull,
        43 | 44 => Fault::TimedOut,
        100..=NO_QUEUES => Fault::Gone,
        _ => Fault::Error,
    }
}
