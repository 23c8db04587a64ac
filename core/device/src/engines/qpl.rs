//! Intel's Query Processing Library: deflate by IAA.
//!
//! A job is submitted and then polled.

use std::ffi::{CStr, c_char};

use hasten_names::Engine;

use super::deflate::DeflateDevice;
use super::job::{Dialect, Functions, Job};
use super::{Failure, Folder};
use crate::Fault;
use crate::discovery::DeviceKind;
use crate::library::{Known, Library, LibraryError};

pub const LIBRARY: Known = Known {
    names: &["libqpl.so.1"],
    source: "Intel QPL 1.x, built as a shared library (github.com/intel/qpl)",
};

/// The beginning of `qpl_job`, which is all we need.
#[repr(C)]
struct Fields {
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
    assert!(std::mem::offset_of!(Fields, next_out) == 16);
    assert!(std::mem::offset_of!(Fields, operation) == 32);
    assert!(std::mem::offset_of!(Fields, level) == 52);
    assert!(std::mem::offset_of!(Fields, huffman_table) == 64);
    assert!(std::mem::offset_of!(Fields, decompression_end) == 104);
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

/// Missing pages: paged out meanwhile, on reading or on writing.
const PAGE_FAULTS: [u32; 6] = [303, 304, 326, 431, 432, 454];

static DIALECT: Dialect = Dialect {
    size: c"qpl_get_job_size",
    init: c"qpl_init_job",
    submit: c"qpl_submit_job",
    check: c"qpl_check_job",
    finish: c"qpl_fini_job",
    hardware: HARDWARE,
    being_processed: BEING_PROCESSED,
    queue_full: QUEUES_ARE_BUSY,
};

fn functions(library: &Library) -> Result<Functions<Fields>, LibraryError> {
    // SAFETY: the types are those of QPL's public headers since version 1.0.
    let (functions, version) = unsafe {
        let version: unsafe extern "C" fn() -> *const c_char =
            library.function(c"qpl_get_library_version")?;
        (Functions::of(library, &DIALECT)?, version())
    };
    let found = if version.is_null() {
        "unknown".to_owned()
    } else {
        // SAFETY: terminated, and constant.
        unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
    };
    if found.trim_start_matches('v').starts_with("1.") {
        return Ok(functions);
    }
    Err(LibraryError::Version { library: library.name(), found, needed: "1.x" })
}

/// Whether the library is present, in a known version.
pub fn look(folder: &Folder) -> Result<Library, LibraryError> {
    let library = super::open(&LIBRARY, folder)?;
    functions(&library)?;
    Ok(library)
}

/// One thread's job.
pub struct Qpl(Job<Fields>);

impl DeflateDevice for Qpl {
    const NAME: &'static str = Engine::Qpl.as_str();
    const KIND: DeviceKind = DeviceKind::Iaa;

    fn open(folder: &Folder) -> Result<Self, Fault> {
        let library = super::open(&LIBRARY, folder).map_err(|_| Fault::Init)?;
        let functions = functions(&library).map_err(|_| Fault::Init)?;
        let job = Job::new(functions, &DIALECT).map_err(|status| match fault(status) {
            Fault::Gone => Fault::Gone,
            _ => Fault::Init,
        })?;
        Ok(Self(job))
    }

    fn compress(&mut self, _: u8, input: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        let status = self.run(COMPRESS, FIRST | LAST | DYNAMIC_HUFFMAN, input, out)?;
        match status {
            OK => self.complete(input, out, true),
            MORE_OUTPUT_NEEDED | DESTINATION_IS_SHORT | OUTPUT_OVERFLOW | BUFFER_TOO_LARGE => {
                Err(Failure::Declined)
            }
            other => Err(failure(other)),
        }
    }

    fn decompress(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        let status = self.run(DECOMPRESS, FIRST | LAST, input, out)?;
        match status {
            OK => self.complete(input, out, false),
            DEVICE_TIMEOUT => Err(Fault::TimedOut.into()),
            // The device's answers to streams that it cannot read: damaged, or with a window larger than its own.
            MORE_OUTPUT_NEEDED | MORE_INPUT_NEEDED | BUFFER_TOO_LARGE | 201..=236 => Err(Failure::Declined),
            other => Err(failure(other)),
        }
    }
}

impl Qpl {
    fn run(&mut self, operation: u32, flags: u32, input: &[u8], out: &mut [u8]) -> Result<u32, Failure> {
        let available_in = u32::try_from(input.len()).map_err(|_| Failure::Declined)?;
        let Some(fields) = self.0.fields() else { return Err(Fault::Crashed.into()) };
        fields.next_in = input.as_ptr();
        fields.available_in = available_in;
        fields.total_in = 0;
        fields.next_out = out.as_mut_ptr();
        fields.available_out = u32::try_from(out.len()).unwrap_or(u32::MAX);
        fields.total_out = 0;
        fields.operation = operation;
        fields.flags = flags;
        fields.level = DEFAULT_LEVEL;
        // SAFETY: the buffers outlive the job: either it ends here, or the worker that owns them is abandoned along
        // with it.
        Ok(unsafe { self.0.run() }?)
    }

    fn complete(&mut self, input: &[u8], out: &[u8], whole: bool) -> Result<usize, Failure> {
        let Some(fields) = self.0.fields() else { return Err(Fault::Crashed.into()) };
        let (read, written) = (fields.total_in as usize, fields.total_out as usize);
        let is_read = if whole { read == input.len() } else { read <= input.len() };
        if is_read && written <= out.len() { Ok(written) } else { Err(Fault::BadOutput.into()) }
    }
}

fn failure(status: u32) -> Failure {
    if PAGE_FAULTS.contains(&status) { Failure::Declined } else { fault(status).into() }
}

fn fault(status: u32) -> Fault {
    match status {
        QUEUES_ARE_BUSY => Fault::QueueFull,
        DEVICE_TIMEOUT => Fault::TimedOut,
        500..=503 => Fault::Gone,
        _ => Fault::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_not_there_are_no_fault_of_the_device() {
        for status in PAGE_FAULTS {
            assert_eq!(failure(status), Failure::Declined);
        }
        for (status, expected) in
            [(5, Fault::QueueFull), (219, Fault::TimedOut), (503, Fault::Gone), (6, Fault::Error)]
        {
            assert_eq!(failure(status), Failure::Fault(expected));
        }
    }
}
