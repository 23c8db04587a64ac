//! Opening streams of our own, and duplicating them.

use core::ffi::{CStr, c_char, c_int};
use core::ptr::{self, null};

use hasten_compress::config;
use hasten_compress::engines::{self, ENGINES};
use hasten_deflate::abi::{Z_DEFLATED, Z_MEM_ERROR, Z_OK, Z_STREAM_ERROR, Z_UNKNOWN, ZStream};
use hasten_deflate::engine::{Settings, Strategy};
use hasten_deflate::header::Wrapper;
use hasten_deflate::store::Store;
use hasten_deflate::stream::Deflate;
use hasten_telemetry::{Event, Reason, slot};

use super::{MARK, State, end, ours};
use crate::allocation::{self, Pattern};
use crate::hooks::original;
use crate::start;

type Init = unsafe extern "C" fn(*mut ZStream, c_int, *const c_char, c_int) -> c_int;
type Init2 =
    unsafe extern "C" fn(*mut ZStream, c_int, c_int, c_int, c_int, c_int, *const c_char, c_int) -> c_int;

/// # Safety
///
/// As for `deflateInit_`, with the conditions of [`init2`].
pub(crate) unsafe fn init(
    _: Init,
    strm: *mut ZStream,
    level: c_int,
    version: *const c_char,
    size: c_int,
) -> c_int {
    // SAFETY: zlib defines it so.
    unsafe { init2(original::deflateInit2_.get(), strm, level, Z_DEFLATED, 15, 8, 0, version, size) }
}

/// # Safety
///
/// As for `deflateInit2_`: `strm` is null or valid for `size` bytes, its allocator is null or one as zlib.h defines it,
/// and `version` is null or a C string.
#[allow(clippy::too_many_arguments)] // zlib's prototype
pub(crate) unsafe fn init2(
    original: Init2,
    strm: *mut ZStream,
    level: c_int,
    method: c_int,
    window: c_int,
    mem_level: c_int,
    strategy: c_int,
    version: *const c_char,
    size: c_int,
) -> c_int {
    // SAFETY: the original gets what its caller passed; `open` gets a valid stream and version.
    unsafe {
        let asked = if is_known(strm, method, version, size) {
            parameters(level, window, mem_level, strategy)
        } else {
            None
        };
        if let Some((settings, wrapper)) = asked
            && let Some(pattern) = suits(&settings)
        {
            return open(strm, settings, wrapper, pattern);
        }
        original(strm, level, method, window, mem_level, strategy, version, size)
    }
}

/// Whether zlib would accept the arguments; what it refuses is left to it.
///
/// # Safety
///
/// `version` is null or a C string.
unsafe fn is_known(strm: *mut ZStream, method: c_int, version: *const c_char, size: c_int) -> bool {
    // SAFETY: a version is null or a C string.
    let is_version_1 = !version.is_null() && unsafe { *version } == b'1' as c_char;
    !strm.is_null() && method == Z_DEFLATED && is_version_1 && size == size_of::<ZStream>() as c_int
}

/// Settings that zlib accepts.
pub(super) fn parameters(
    level: c_int,
    window: c_int,
    mem_level: c_int,
    strategy: c_int,
) -> Option<(Settings, Wrapper)> {
    let (wrapper, window) = match window {
        -15..=-9 => (Wrapper::Raw, -window),
        // zlib turns a window of 256 bytes into one of 512, too.
        8 => (Wrapper::Zlib, 9),
        9..=15 => (Wrapper::Zlib, window),
        25..=31 => (Wrapper::Gzip, window - 16),
        _ => return None,
    };
    let settings = Settings {
        level: if level == -1 { 6 } else { u8::try_from(level).ok().filter(|level| *level <= 9)? },
        window_bits: window as u8,
        mem_level: u8::try_from(mem_level).ok().filter(|level| (1..=9).contains(level))?,
        strategy: Strategy::from_number(strategy)?,
        tuning: None,
        narrow: None,
    };
    Some((settings, wrapper))
}

/// The part of the first region that a [`State`] takes.
const HEAD: usize = size_of::<State>().next_multiple_of(64);

/// With less memory than this, chunks would be so short that the size of their block headers matters.
const LEAST_MEM_LEVEL: u8 = 4;

/// Whether an engine may do better than the original, and if so, the memory that the original would ask for.
fn suits(settings: &Settings) -> Option<&'static Pattern> {
    let reason = match settings {
        Settings { level: 0, .. } => Reason::StoredLevel,
        Settings { strategy, .. } if *strategy != Strategy::Default => Reason::UnusualStrategy,
        Settings { mem_level: ..LEAST_MEM_LEVEL, .. } => Reason::UnusualStrategy,
        _ if !ENGINES.has_any() && !ENGINES.devices.is_asked_for() => {
            engines::report(slot());
            Reason::EngineDisabled
        }
        _ if !start::is_sound() => Reason::UnknownLibrary,
        _ => match Pattern::of(settings) {
            Some(pattern) if pattern.room(HEAD) >= Deflate::least_memory(settings) && ENGINES.reserve() => {
                hasten_telemetry::start();
                start::make_original_known();
                return Some(pattern);
            }
            _ => Reason::UnknownAllocation,
        },
    };
    slot().bypass(reason);
    None
}

/// Opens a stream of our own.
///
/// # Safety
///
/// `strm` is valid, and its allocator, if it has one, is as zlib.h defines it.
unsafe fn open(strm: *mut ZStream, settings: Settings, wrapper: Wrapper, pattern: &Pattern) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let strm = &mut *strm;
        let mut pattern = *pattern;
        if strm.zalloc.is_none() {
            strm.zalloc = Some(allocation::default_alloc);
            strm.opaque = ptr::null_mut();
            // The calls are not observed, and one block of memory is handier than five.
            pattern = pattern.merged();
        }
        strm.zfree.get_or_insert(allocation::default_free);
        let opened = settle(strm, pattern, |store| {
            Deflate::new(settings, wrapper, store, config::get().verify, &ENGINES)
        });
        match opened {
            Ok(state) => {
                restart(strm, state);
                Z_OK
            }
            Err(why) => {
                strm.msg = if why.is_empty() { null() } else { why.as_ptr() };
                Z_MEM_ERROR
            }
        }
    }
}

/// Allocates a stream's memory and puts a state into it.
///
/// # Safety
///
/// As [`open`].
unsafe fn settle(
    strm: &mut ZStream,
    pattern: Pattern,
    make: impl FnOnce(Store) -> Deflate,
) -> Result<&'static mut State, &'static CStr> {
    let alloc = strm.zalloc.unwrap_or(allocation::default_alloc);
    let free = strm.zfree.unwrap_or(allocation::default_free);
    // SAFETY: the regions have the requested sizes, and no other user.
    unsafe {
        let regions = pattern.allocate(alloc, free, strm.opaque)?;
        let (first, pieces) = pattern.pieces(&regions, HEAD).ok_or(c"insufficient memory")?;
        let stream = make(Store::new(pieces.iter()));
        let mark = &raw const MARK;
        let state =
            State { mark, strm, header: null(), pattern, regions, stream, nested: None, stays: false };
        let state = allocation::put(first, state);
        strm.state = state.cast();
        Ok(&mut *state)
    }
}

/// Sets the public fields to those of a stream at its beginning.
pub(super) fn restart(strm: &mut ZStream, state: &mut State) {
    strm.total_in = 0;
    strm.total_out = 0;
    strm.msg = null();
    strm.data_type = Z_UNKNOWN;
    strm.adler = state.stream.check().into();
    slot().event(Event::DeflateStreams);
}

/// # Safety
///
/// As for `deflateCopy`: `source` is as [`ours`] takes it. `dest` is null or valid, and a different stream from
/// `source`, whose allocator serves both.
pub(crate) unsafe fn copy(
    original: unsafe extern "C" fn(*mut ZStream, *mut ZStream) -> c_int,
    dest: *mut ZStream,
    source: *mut ZStream,
) -> c_int {
    // SAFETY: as `ours`; the copy gets its own regions from the same allocator.
    unsafe {
        let Some(state) = ours(source) else { return original(dest, source) };
        if dest.is_null() {
            return Z_STREAM_ERROR;
        }
        ptr::copy_nonoverlapping(source, dest, 1);
        let strm = &mut *dest;
        strm.state = ptr::null_mut();
        let copied = settle(strm, state.pattern, |store| state.stream.copy_to(store));
        let Ok(copy) = copied else { return Z_MEM_ERROR };
        (copy.header, copy.stays) = (state.header, state.stays);
        if let Some(nested) = &mut state.nested {
            copy.nested = nested.copy_into(&mut copy.stream);
            if copy.nested.is_none() {
                end(original::deflateEnd.get(), dest);
                return Z_MEM_ERROR;
            }
        }
        slot().event(Event::DeflateStreams);
        Z_OK
    }
}
