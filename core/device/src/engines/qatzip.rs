//! QATzip: deflate by QAT. Its calls block until the device is done, hence a worker makes them.

use std::ffi::{c_int, c_long, c_uint, c_ulong, c_void};

use hasten_names::Engine;

use super::deflate::DeflateDevice;
use super::{Failure, Folder};
use crate::Fault;
use crate::discovery::DeviceKind;
use crate::library::{Known, Library, LibraryError};

pub const LIBRARY: Known = Known {
    names: &["libqatzip.so.3"],
    source: "QATzip 1.2 or newer (Debian: libqatzip3; github.com/intel/QATzip)",
};

/// `QzSession_T`.
#[repr(C)]
struct RawSession {
    hardware_status: c_long,
    thread_status: c_int,
    internal: *mut c_void,
    total_in: c_ulong,
    total_out: c_ulong,
}

/// `QzSessionParamsDeflate_T`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Parameters {
    direction: c_uint,
    level: c_uint,
    algorithm: u8,
    forks: c_uint,
    software: u8,
    hardware_buffer: c_uint,
    stream_buffer: c_uint,
    input_threshold: c_uint,
    request_threshold: c_uint,
    wait_threshold: c_uint,
    polling: c_uint,
    sensitive: c_uint,
    huffman: c_uint,
    format: c_uint,
}

const _: () = {
    assert!(size_of::<RawSession>() == 40);
    assert!(size_of::<Parameters>() == 56);
    assert!(std::mem::offset_of!(Parameters, hardware_buffer) == 20);
    assert!(std::mem::offset_of!(Parameters, format) == 52);
};

/// A later minor version may append fields.
#[repr(C)]
struct Room {
    parameters: Parameters,
    more: [u8; 200],
}

const BOTH_DIRECTIONS: c_uint = 2;
const DEFLATE: u8 = 8;
const DEFLATE_RAW: c_uint = 3;
const PERIODICAL_POLLING: c_uint = 0;
/// The smallest input that is not sent to software.
const THRESHOLD_MINIMUM: c_uint = 128;

const OK: c_int = 0;
const DUPLICATE: c_int = 1;
const BUFFER_ERROR: c_int = -3;
const DATA_ERROR: c_int = -4;
const TIMEOUT: c_int = -5;
const INTEGRITY: c_int = -100;
const NO_HARDWARE: c_int = -101;
const LOW_MEMORY: c_int = -104;
const NO_SOFTWARE: c_int = -105;
const UNSUPPORTED_FORMAT: c_int = -116;
const NOT_SUPPORTED: c_int = -200;

type Session = *mut RawSession;

#[derive(Clone, Copy)]
struct Functions {
    init: unsafe extern "C" fn(Session, u8) -> c_int,
    defaults: unsafe extern "C" fn(*mut Parameters) -> c_int,
    setup: unsafe extern "C" fn(Session, *mut Parameters) -> c_int,
    compress: unsafe extern "C" fn(Session, *const u8, *mut c_uint, *mut u8, *mut c_uint, c_uint) -> c_int,
    decompress: unsafe extern "C" fn(Session, *const u8, *mut c_uint, *mut u8, *mut c_uint) -> c_int,
    teardown: unsafe extern "C" fn(Session) -> c_int,
    close: unsafe extern "C" fn(Session) -> c_int,
}

impl Functions {
    fn of(library: &Library) -> Result<Self, LibraryError> {
        // SAFETY: the types are those of QATzip's public header since version 1.1.
        unsafe {
            Ok(Self {
                init: library.function(c"qzInit")?,
                defaults: library.function(c"qzGetDefaultsDeflate")?,
                setup: library.function(c"qzSetupSessionDeflate")?,
                compress: library.function(c"qzCompress")?,
                decompress: library.function(c"qzDecompress")?,
                teardown: library.function(c"qzTeardownSession")?,
                close: library.function(c"qzClose")?,
            })
        }
    }

    /// The library's own defaults. If they are not where we expect them, its structure is not the one we know.
    fn parameters(&self, library: &Library) -> Result<Parameters, LibraryError> {
        let mut room = Room {
            // SAFETY: all of it is plain numbers.
            parameters: unsafe { std::mem::zeroed() },
            more: [0; 200],
        };
        // SAFETY: the buffer is larger than the structure of any known version.
        let status = unsafe { (self.defaults)((&raw mut room).cast()) };
        let found = room.parameters;
        let is_known = status == OK
            && found.direction == BOTH_DIRECTIONS
            && (1..=12).contains(&found.level)
            && found.algorithm == DEFLATE
            && found.hardware_buffer.is_power_of_two()
            && found.hardware_buffer >= 1024
            && found.huffman <= 1
            && found.format <= DEFLATE_RAW;
        if is_known {
            return Ok(found);
        }
        Err(LibraryError::Version {
            library: library.name(),
            found: "of another layout".to_owned(),
            needed: "QATzip 1.2 and 1.3",
        })
    }
}

/// Whether the library is present, in a known version.
pub fn look(folder: &Folder) -> Result<Library, LibraryError> {
    let library = super::open(&LIBRARY, folder)?;
    Functions::of(&library)?.parameters(&library)?;
    Ok(library)
}

/// A session of this thread.
pub struct QatZip {
    functions: Functions,
    parameters: Parameters,
    session: Box<RawSession>,
    /// The level the session was set up for.
    level: u8,
}

impl DeflateDevice for QatZip {
    const NAME: &'static str = Engine::Qatzip.as_str();
    const KIND: DeviceKind = DeviceKind::Qat;

    fn open(folder: &Folder) -> Result<Self, Fault> {
        let library = super::open(&LIBRARY, folder).map_err(|_| Fault::Init)?;
        let functions = Functions::of(&library).map_err(|_| Fault::Init)?;
        let parameters = functions.parameters(&library).map_err(|_| Fault::Init)?;
        let mut qatzip = Self { functions, parameters, session: empty(), level: 0 };
        // SAFETY: an all-zero session is an unused one, and it does not move.
        started(unsafe { (functions.init)(&raw mut *qatzip.session, 0) })?;
        qatzip.set_up(1)?;
        Ok(qatzip)
    }

    fn compress(&mut self, level: u8, input: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        self.set_up(level.clamp(1, 9))?;
        let Lengths { mut consumed, mut written } = Lengths::of(input, out)?;
        // SAFETY: the session is set up; both buffers are as long as stated and outlive the call, which is synchronous.
        let status = unsafe {
            let out = out.as_mut_ptr();
            (self.functions.compress)(
                &raw mut *self.session,
                input.as_ptr(),
                &raw mut consumed,
                out,
                &raw mut written,
                1,
            )
        };
        match status {
            OK => complete(input, out, consumed, written),
            BUFFER_ERROR => Err(Failure::Declined),
            other => Err(fault(other).into()),
        }
    }

    fn decompress(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        let Lengths { mut consumed, mut written } = Lengths::of(input, out)?;
        // SAFETY: as above.
        let status = unsafe {
            let out = out.as_mut_ptr();
            (self.functions.decompress)(
                &raw mut *self.session,
                input.as_ptr(),
                &raw mut consumed,
                out,
                &raw mut written,
            )
        };
        match status {
            OK => complete(input, out, consumed, written),
            // Older devices do not unpack raw streams.
            BUFFER_ERROR | DATA_ERROR | NO_SOFTWARE | UNSUPPORTED_FORMAT | NOT_SUPPORTED => {
                Err(Failure::Declined)
            }
            other => Err(fault(other).into()),
        }
    }
}

impl QatZip {
    /// The level belongs to the session.
    fn set_up(&mut self, level: u8) -> Result<(), Fault> {
        if self.level == level {
            return Ok(());
        }
        if self.level != 0 {
            self.level = 0;
            // SAFETY: it was set up.
            started(unsafe { (self.functions.teardown)(&raw mut *self.session) })?;
        }
        let parameters = Parameters {
            direction: BOTH_DIRECTIONS,
            level: c_uint::from(level),
            // Never QATzip's own software: ours is faster, and knows that it is software.
            software: 0,
            input_threshold: THRESHOLD_MINIMUM,
            polling: PERIODICAL_POLLING,
            format: DEFLATE_RAW,
            ..self.parameters
        };
        let mut room = Room { parameters, more: [0; 200] };
        // SAFETY: the session was started, and the buffer is larger than the structure of any known version.
        started(unsafe { (self.functions.setup)(&raw mut *self.session, (&raw mut room).cast()) })?;
        self.level = level;
        Ok(())
    }
}

impl Drop for QatZip {
    fn drop(&mut self) {
        // SAFETY: the session is not used afterwards; both functions accept it in any state.
        unsafe {
            (self.functions.teardown)(&raw mut *self.session);
            (self.functions.close)(&raw mut *self.session);
        }
    }
}

struct Lengths {
    consumed: c_uint,
    written: c_uint,
}

impl Lengths {
    fn of(input: &[u8], out: &[u8]) -> Result<Self, Failure> {
        let consumed = c_uint::try_from(input.len()).map_err(|_| Failure::Declined)?;
        Ok(Self { consumed, written: c_uint::try_from(out.len()).unwrap_or(c_uint::MAX) })
    }
}

fn empty() -> Box<RawSession> {
    Box::new(RawSession {
        hardware_status: 0,
        thread_status: 0,
        internal: std::ptr::null_mut(),
        total_in: 0,
        total_out: 0,
    })
}

/// Requires that all input has been read and no more than the output written.
fn complete(input: &[u8], out: &[u8], consumed: c_uint, written: c_uint) -> Result<usize, Failure> {
    let is_whole = consumed as usize == input.len() && written as usize <= out.len();
    if is_whole { Ok(written as usize) } else { Err(Fault::BadOutput.into()) }
}

fn started(status: c_int) -> Result<(), Fault> {
    match status {
        OK | DUPLICATE => Ok(()),
        NO_HARDWARE => Err(Fault::Gone),
        TIMEOUT => Err(Fault::TimedOut),
        _ => Err(Fault::Init),
    }
}

fn fault(status: c_int) -> Fault {
    match status {
        TIMEOUT => Fault::TimedOut,
        INTEGRITY => Fault::BadOutput,
        LOW_MEMORY..=NO_HARDWARE => Fault::Gone,
        // It used software although it should not have, and says so.
        1.. => Fault::Gone,
        _ => Fault::Error,
    }
}
