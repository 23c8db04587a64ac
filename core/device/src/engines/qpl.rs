//! Intel's Query Processing Library: deflate by IAA.
//!
//! A job is submitted and looked at from time to time. One that does not end keeps its memory: the device may still write.

use std::alloc::{Layout, alloc_zeroed};
use std::ffi::{CStr, c_char, c_int};
use std::time::Duration;

use super::deflate::DeflateDevice;
use super::{Failure, Folder};
use crate::discovery::DeviceKind;
use crate::fault::Fault;
use crate::library::{Known, Library, LibraryError};
use crate::pause::Pause;

pub const LIBRARY: Known = Known {
    names: &["libqpl.so.1"],
    source: "Intel QPL 1.x, built as a shared library (github.com/intel/qpl)",
};

/// How long one job may take. The caller's own limit is usually shorter.
const LONGEST: Duration = Duration::from_secs(1);

/// The beginning of `qpl_job`, which is all that is needed of it.
#[repr(C)]
struct Job {
    next_in: *const u8,
    available_in: u32,
    total_in: u32,
    next_out: *mut u8,
    available_out: u32,
    total_out: u32,
    operation: u32,
    flags: u32,
    crc: u32,
    xor_checksum: u32,
    last_bit_offset: u32,
    level: u32,
    statistics_mode: u32,
    huffman_table: *const u8,
    dictionary: *const u8,
    mini_block_size: u32,
    idx_array: *const u8,
    idx_max_size: u32,
    idx_num_written: u32,
    decompression_end: u8,
    ignore_start_bits: u8,
    ignore_end_bits: u8,
}

const _: () = {
    assert!(std::mem::offset_of!(Job, next_out) == 16);
    assert!(std::mem::offset_of!(Job, operation) == 32);
    assert!(std::mem::offset_of!(Job, level) == 52);
    assert!(std::mem::offset_of!(Job, huffman_table) == 64);
    assert!(std::mem::offset_of!(Job, decompression_end) == 104);
};

const HARDWARE: u32 = 1;
const DECOMPRESS: u32 = 0;
const COMPRESS: u32 = 1;
const FIRST: u32 = 0x1;
const LAST: u32 = 0x2;
const DYNAMIC_HUFFMAN: u32 = 0x2000;
/// The only level that the hardware has.
const DEFAULT_LEVEL: u32 = 1;

const OK: u32 = 0;
const BEING_PROCESSED: u32 = 1;
const MORE_OUTPUT_NEEDED: u32 = 2;
const MORE_INPUT_NEEDED: u32 = 3;
const QUEUES_ARE_BUSY: u32 = 5;
const BUFFER_TOO_LARGE: u32 = 58;
const DEVICE_TIMEOUT: u32 = 219;
const DESTINATION_IS_SHORT: u32 = 225;
const OUTPUT_OVERFLOW: u32 = 221;

#[derive(Clone, Copy)]
struct Functions {
    version: unsafe extern "C" fn() -> *const c_char,
    job_size: unsafe extern "C" fn(u32, *mut u32) -> c_int,
    init: unsafe extern "C" fn(u32, *mut Job) -> c_int,
    submit: unsafe extern "C" fn(*mut Job) -> c_int,
    check: unsafe extern "C" fn(*mut Job) -> c_int,
    finish: unsafe extern "C" fn(*mut Job) -> c_int,
}

impl Functions {
    fn of(library: &Library) -> Result<Self, LibraryError> {
        // SAFETY: the types are those of QPL's public headers since version 1.0.
        unsafe {
            Ok(Self {
                version: library.function(c"qpl_get_library_version")?,
                job_size: library.function(c"qpl_get_job_size")?,
                init: library.function(c"qpl_init_job")?,
                submit: library.function(c"qpl_submit_job")?,
                check: library.function(c"qpl_check_job")?,
                finish: library.function(c"qpl_fini_job")?,
            })
        }
    }

    fn check_version(&self, library: &Library) -> Result<(), LibraryError> {
        // SAFETY: the function takes nothing and returns a constant string.
        let version = unsafe { (self.version)() };
        let found = if version.is_null() {
            "unknown".to_owned()
        } else {
            // SAFETY: terminated, and constant.
            unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
        };
        if found.trim_start_matches('v').starts_with("1.") {
            return Ok(());
        }
        Err(LibraryError::Version { library: library.name(), found, needed: "1.x" })
    }
}

/// Whether the library is there and of a version that is known.
pub fn look(folder: &Folder) -> Result<Library, LibraryError> {
    let library = super::open(&LIBRARY, folder)?;
    Functions::of(&library)?.check_version(&library)?;
    Ok(library)
}

/// One job, used again and again.
pub struct Qpl {
    functions: Functions,
    job: *mut Job,
    layout: Layout,
    /// The device may still be at work on it.
    in_flight: bool,
}

impl DeflateDevice for Qpl {
    const NAME: &'static str = "qpl";
    const KIND: DeviceKind = DeviceKind::Iaa;

    fn open(folder: &Folder) -> Result<Self, Fault> {
        let library = look(folder).map_err(|_| Fault::Init)?;
        let functions = Functions::of(&library).map_err(|_| Fault::Init)?;
        let mut size = 0;
        // SAFETY: `size` is writable.
        started(unsafe { (functions.job_size)(HARDWARE, &raw mut size) })?;
        let size = (size as usize).max(size_of::<Job>());
        // The library does not say which alignment it wants; a cache line is what its structures have.
        let layout = Layout::from_size_align(size, 64).map_err(|_| Fault::Init)?;
        // SAFETY: the size is not zero.
        let job: *mut Job = unsafe { alloc_zeroed(layout) }.cast();
        if job.is_null() {
            return Err(Fault::Init);
        }
        let qpl = Self { functions, job, layout, in_flight: false };
        // SAFETY: as large as the library wants, and aligned.
        started(unsafe { (functions.init)(HARDWARE, job) })?;
        Ok(qpl)
    }

    fn compress(&mut self, _: u8, input: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        let status = self.run(COMPRESS, FIRST | LAST | DYNAMIC_HUFFMAN, input, out)?;
        match status {
            OK => self.complete(input, out, true),
            MORE_OUTPUT_NEEDED | DESTINATION_IS_SHORT | OUTPUT_OVERFLOW | BUFFER_TOO_LARGE => {
                Err(Failure::Declined)
            }
            other => Err(fault(other).into()),
        }
    }

    fn decompress(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        let status = self.run(DECOMPRESS, FIRST | LAST, input, out)?;
        match status {
            OK => self.complete(input, out, false),
            DEVICE_TIMEOUT => Err(Fault::TimedOut.into()),
            // What the device says of streams that it cannot read: damaged, or with a window larger than its own.
            MORE_OUTPUT_NEEDED | MORE_INPUT_NEEDED | BUFFER_TOO_LARGE | 201..=236 => Err(Failure::Declined),
            other => Err(fault(other).into()),
        }
    }
}

impl Qpl {
    fn run(&mut self, operation: u32, flags: u32, input: &[u8], out: &mut [u8]) -> Result<u32, Failure> {
        let available_in = u32::try_from(input.len()).map_err(|_| Failure::Declined)?;
        // SAFETY: the job was initialised and is not in flight. The buffers outlive it: either it ends here, or the worker
        // that owns them is given up together with it.
        unsafe {
            let job = &mut *self.job;
            job.next_in = input.as_ptr();
            job.available_in = available_in;
            job.total_in = 0;
            job.next_out = out.as_mut_ptr();
            job.available_out = u32::try_from(out.len()).unwrap_or(u32::MAX);
            job.total_out = 0;
            job.operation = operation;
            job.flags = flags;
            job.level = DEFAULT_LEVEL;
        }
        self.submit()?;
        let mut pause = Pause::new(LONGEST);
        loop {
            // SAFETY: the job was submitted.
            let status = unsafe { (self.functions.check)(self.job) } as u32;
            if status != BEING_PROCESSED {
                self.in_flight = false;
                return Ok(status);
            }
            if !pause.wait() {
                return Err(Fault::TimedOut.into());
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
                QUEUES_ARE_BUSY if pause.wait() => {}
                QUEUES_ARE_BUSY => return Err(Fault::QueueFull.into()),
                other => return Err(fault(other).into()),
            }
        }
    }

    fn complete(&self, input: &[u8], out: &[u8], whole: bool) -> Result<usize, Failure> {
        // SAFETY: the job has ended.
        let (read, written) = unsafe { ((*self.job).total_in as usize, (*self.job).total_out as usize) };
        let is_read = if whole { read == input.len() } else { read <= input.len() };
        if is_read && written <= out.len() { Ok(written) } else { Err(Fault::BadOutput.into()) }
    }
}

impl Drop for Qpl {
    fn drop(&mut self) {
        if self.in_flight {
            // Its memory is the device's.
            return;
        }
        // SAFETY: initialised or zeros, not in flight, and not used afterwards.
        unsafe {
            (self.functions.finish)(self.job);
            std::alloc::dealloc(self.job.cast(), self.layout);
        }
    }
}

fn started(status: c_int) -> Result<(), Fault> {
    match status as u32 {
        OK => Ok(()),
        500..=503 => Err(Fault::Gone),
        _ => Err(Fault::Init),
    }
}

fn fault(status: u32) -> Fault {
    match status {
        QUEUES_ARE_BUSY => Fault::QueueFull,
        DEVICE_TIMEOUT => Fault::TimedOut,
        500..=503 => Fault::Gone,
        _ => Fault::Error,
    }
}
