//! zlib's deflate functions on our own streams.
//!
//! Each determines whether the stream is ours, turns C's arguments into slices, and leaves the rest to
//! `hasten_deflate::stream`, or to the original that the stream has been handed to (`nested.rs`).

mod buffers;
mod open;

use core::ffi::{CStr, c_int, c_uint, c_ulong};
use core::ptr;

use hasten_compress::engines;
use hasten_deflate::abi::{
    GzHeader, Z_BUF_ERROR, Z_DATA_ERROR, Z_OK, Z_STREAM_END, Z_STREAM_ERROR, Z_UNKNOWN, ZStream,
};
use hasten_deflate::engine::{EngineKind, Settings, Tuning};
use hasten_deflate::header::{GzipHeader, Wrapper};
use hasten_deflate::stream::{Deflate, Flush, Io, Outcome, Tally};

use self::buffers::{gzip_header, has_buffers};
use self::open::{parameters, restart};
use crate::allocation::{self, Pattern, Regions};
use crate::nested::Nested;

pub(crate) use self::buffers::{advance, input, output};
pub(crate) use self::open::{copy, init, init2};

type OfStream = unsafe extern "C" fn(*mut ZStream) -> c_int;

/// Marks our streams: `z_stream.state` points to a [`State`], which starts with the address of this. zlib's own states
/// start with the address of their `z_stream`.
static MARK: u8 = 0;

/// The target of `z_stream.state` in our streams, at the start of the stream's first region.
#[repr(C)]
pub(crate) struct State {
    mark: *const u8,
    /// Detects copies of a `z_stream` made without `deflateCopy`, which zlib does not serve either.
    strm: *mut ZStream,
    header: *const GzHeader,
    pattern: Pattern,
    regions: Regions,
    pub(crate) stream: Deflate,
    pub(crate) nested: Option<Nested>,
    /// Whether a takeover by the original was tried, and found no room.
    pub(crate) stays: bool,
}

/// The state, if the stream is one of ours.
///
/// # Safety
///
/// `strm` is null or valid; its `state` is null, ours, or from some zlib.
unsafe fn ours<'a>(strm: *mut ZStream) -> Option<&'a mut State> {
    // SAFETY: the caller's promise; a state of zlib starts with a pointer, too.
    unsafe {
        let stream = strm.as_ref()?;
        let state = stream.state.cast::<State>();
        // zlib does not accept a stream without an allocator either.
        if stream.zalloc.is_none() || stream.zfree.is_none() {
            return None;
        }
        if state.is_null() || (*state).mark != &raw const MARK || (*state).strm != strm {
            return None;
        }
        Some(&mut *state)
    }
}

/// # Safety
///
/// As for `deflateEnd`, with the conditions of [`ours`]. The stream's `zfree` and `opaque` belong to the allocator it
/// was opened with.
pub(crate) unsafe fn end(original: OfStream, strm: *mut ZStream) -> c_int {
    // SAFETY: our streams have an allocator, and its regions have no users after this.
    unsafe {
        let Some(state) = ours(strm) else { return original(strm) };
        let unfinished = match &state.nested {
            Some(nested) => nested.is_unfinished(),
            None => state.stream.is_unfinished(),
        };
        let (regions, strm) = (state.regions, &mut *strm);
        regions.free(strm.zfree.unwrap_or(allocation::default_free), strm.opaque);
        strm.state = ptr::null_mut();
        if unfinished { Z_DATA_ERROR } else { Z_OK }
    }
}

/// # Safety
///
/// As for `deflateReset`, with the conditions of [`ours`].
pub(crate) unsafe fn reset(original: OfStream, strm: *mut ZStream) -> c_int {
    // SAFETY: as `ours`.
    unsafe {
        let Some(state) = ours(strm) else { return original(strm) };
        state.nested = None;
        state.stream.reset();
        restart(&mut *strm, state);
        Z_OK
    }
}

/// # Safety
///
/// As for `deflateResetKeep`, with the conditions of [`ours`].
pub(crate) unsafe fn reset_keep(original: OfStream, strm: *mut ZStream) -> c_int {
    // SAFETY: as `ours`.
    unsafe {
        let Some(state) = ours(strm) else { return original(strm) };
        if let Some(mut nested) = state.nested.take() {
            nested.give_back(&mut state.stream);
        }
        state.stream.reset_keep();
        restart(&mut *strm, state);
        Z_OK
    }
}

/// # Safety
///
/// As for `deflate` of zlib, with the conditions of [`ours`]. The stream's buffers are null or valid for the lengths in
/// it and do not overlap, and its header, if one was set, is as [`set_header`] takes it until it has been written.
pub(crate) unsafe fn deflate(
    original: unsafe extern "C" fn(*mut ZStream, c_int) -> c_int,
    strm: *mut ZStream,
    flush: c_int,
) -> c_int {
    // SAFETY: as `ours`; the buffers are checked before they are used.
    unsafe {
        let Some(state) = ours(strm) else { return original(strm, flush) };
        let Some(flush) = Flush::from_number(flush) else { return Z_STREAM_ERROR };
        let strm = &mut *strm;
        if !has_buffers(strm) {
            return fail(strm, Z_STREAM_ERROR);
        }
        let mut tally = Tally::default();
        let before = (strm.total_in, strm.total_out);
        let code = compress(state, strm, flush, &mut tally);
        count(&tally, strm, before);
        if state.nested.is_none() && !state.stays && code == Z_OK && state.stream.wants_original() {
            state.nested = Nested::take_over(&mut state.stream);
            state.stays = state.nested.is_none();
        }
        code
    }
}

/// Compresses the contents of the buffers, with the original if the stream was handed to it.
///
/// # Safety
///
/// `strm` is the stream of `state`, with the conditions of [`deflate`].
unsafe fn compress(state: &mut State, strm: &mut ZStream, flush: Flush, tally: &mut Tally) -> c_int {
    // SAFETY: as the contract says.
    unsafe {
        let Some(nested) = &mut state.nested else {
            let header = (!state.header.is_null()).then(|| gzip_header(&*state.header));
            return own(strm, header, &mut state.stream, |stream, io| stream.deflate(io, flush, tally));
        };
        let before = strm.total_in;
        let code = nested.deflate(&mut state.stream, strm, flush);
        if code < 0 {
            fail(strm, code);
        }
        tally.engines[EngineKind::Original as usize].bytes_in += strm.total_in.wrapping_sub(before);
        code
    }
}

/// Lets a stream of our own work on the buffers of its `z_stream`.
///
/// # Safety
///
/// The buffers are valid.
unsafe fn own(
    strm: &mut ZStream,
    header: Option<GzipHeader<'_>>,
    stream: &mut Deflate,
    work: impl FnOnce(&mut Deflate, &mut Io) -> Outcome,
) -> c_int {
    // SAFETY: the caller's promise; an empty buffer may be null.
    let (input, output) =
        unsafe { (input(strm.next_in, strm.avail_in), output(strm.next_out, strm.avail_out)) };
    let mut io = Io { input, output, header, complaint: None };
    let outcome = work(stream, &mut io);
    let complaint = io.complaint;
    let (left, room) = (io.input.len() as c_uint, io.output.len() as c_uint);
    advance(strm, strm.avail_in - left, strm.avail_out - room);
    if stream.wrapper() != Wrapper::Raw {
        strm.adler = stream.check().into();
    }
    if let Some(is_text) = stream.is_text().filter(|_| strm.data_type == Z_UNKNOWN) {
        strm.data_type = is_text.into();
    }
    if let Some(complaint) = complaint {
        fail(strm, code(complaint));
    }
    code(outcome)
}

fn code(outcome: Outcome) -> c_int {
    match outcome {
        Outcome::Ok => Z_OK,
        Outcome::StreamEnd => Z_STREAM_END,
        Outcome::StreamError => Z_STREAM_ERROR,
        Outcome::BufError => Z_BUF_ERROR,
    }
}

/// Reports an error, with its text in the stream.
fn fail(strm: &mut ZStream, code: c_int) -> c_int {
    strm.msg = message(code).as_ptr();
    code
}

fn message(code: c_int) -> &'static CStr {
    match code {
        Z_STREAM_ERROR => c"stream error",
        Z_BUF_ERROR => c"buffer error",
        _ => c"insufficient memory",
    }
}

/// Adds the work of a call to this thread's counters.
fn count(tally: &Tally, strm: &ZStream, (total_in, total_out): (c_ulong, c_ulong)) {
    engines::count(tally, strm.total_in.wrapping_sub(total_in), strm.total_out.wrapping_sub(total_out));
}

/// # Safety
///
/// As for `deflateParams`, with the conditions of [`deflate`].
pub(crate) unsafe fn params(
    original: unsafe extern "C" fn(*mut ZStream, c_int, c_int) -> c_int,
    strm: *mut ZStream,
    level: c_int,
    strategy: c_int,
) -> c_int {
    // SAFETY: as `ours`; the buffers are checked before they are used.
    unsafe {
        let Some(state) = ours(strm) else { return original(strm, level, strategy) };
        let asked = parameters(level, 15, 8, strategy);
        let Some((Settings { level, strategy, .. }, _)) = asked else { return Z_STREAM_ERROR };
        let strm = &mut *strm;
        let settings = Settings { level, strategy, ..*state.stream.settings() };
        if let Some(nested) = &mut state.nested {
            return nested.params(&mut state.stream, strm, settings);
        }
        if !state.stream.must_flush_for(&settings) {
            state.stream.note_settings(settings);
            return Z_OK;
        }
        if !has_buffers(strm) {
            return fail(strm, Z_STREAM_ERROR);
        }
        let mut tally = Tally::default();
        let before = (strm.total_in, strm.total_out);
        let header = (!state.header.is_null()).then(|| gzip_header(&*state.header));
        let code =
            own(strm, header, &mut state.stream, |stream, io| stream.set_params(settings, io, &mut tally));
        count(&tally, strm, before);
        code
    }
}

/// # Safety
///
/// As for `deflateTune`, with the conditions of [`ours`].
pub(crate) unsafe fn tune(
    original: unsafe extern "C" fn(*mut ZStream, c_int, c_int, c_int, c_int) -> c_int,
    strm: *mut ZStream,
    good: c_int,
    lazy: c_int,
    nice: c_int,
    chain: c_int,
) -> c_int {
    // SAFETY: as `ours`.
    unsafe {
        let Some(state) = ours(strm) else { return original(strm, good, lazy, nice, chain) };
        if let Some(nested) = &mut state.nested {
            return original(nested.stream(), good, lazy, nice, chain);
        }
        let tuning = Tuning { good_length: good, max_lazy: lazy, nice_length: nice, max_chain: chain };
        state.stream.set_tuning(tuning);
        Z_OK
    }
}

/// # Safety
///
/// As for `deflateBound`, with the conditions of [`ours`]. The header of a gzip stream, if one was set, is as
/// [`set_header`] takes it.
pub(crate) unsafe fn bound(
    original: unsafe extern "C" fn(*mut ZStream, c_ulong) -> c_ulong,
    strm: *mut ZStream,
    len: c_ulong,
) -> c_ulong {
    // SAFETY: as `ours`; the header's texts are C strings.
    unsafe {
        let Some(state) = ours(strm) else { return original(strm, len) };
        let wrapping = match state.stream.wrapper() {
            Wrapper::Raw => 0,
            Wrapper::Zlib => 6 + if state.stream.has_filled_its_window() { 4 } else { 0 },
            Wrapper::Gzip if state.header.is_null() => 18,
            Wrapper::Gzip => 18 + gzip_header(&*state.header).optional_len() as c_ulong,
        };
        // zlib's own formulas, which leave room for stored blocks whatever their size.
        let Settings { window_bits, mem_level, .. } = *state.stream.settings();
        let blocks = match (window_bits, mem_level + 7) {
            (15, 15) => len + (len >> 12) + (len >> 14) + (len >> 25) + 7,
            (window, hash) if window <= hash => len + (len >> 3) + (len >> 8) + (len >> 9) + 4,
            _ => len + (len >> 5) + (len >> 7) + (len >> 11) + 7,
        };
        blocks + wrapping
    }
}

/// # Safety
///
/// As for `deflatePending`, with the conditions of [`ours`]. `pending` and `bits` are null or valid for writes.
pub(crate) unsafe fn pending(
    original: unsafe extern "C" fn(*mut ZStream, *mut c_uint, *mut c_int) -> c_int,
    strm: *mut ZStream,
    pending: *mut c_uint,
    bits: *mut c_int,
) -> c_int {
    // SAFETY: as `ours`; either result may be null.
    unsafe {
        let Some(state) = ours(strm) else { return original(strm, pending, bits) };
        let (bytes, count) = match &mut state.nested {
            Some(nested) => nested.pending(),
            None => state.stream.pending(),
        };
        if let Some(pending) = pending.as_mut() {
            *pending = bytes as c_uint;
        }
        if let Some(bits) = bits.as_mut() {
            *bits = count.into();
        }
        Z_OK
    }
}

/// # Safety
///
/// As for `deflatePrime`, with the conditions of [`ours`].
pub(crate) unsafe fn prime(
    original: unsafe extern "C" fn(*mut ZStream, c_int, c_int) -> c_int,
    strm: *mut ZStream,
    bits: c_int,
    value: c_int,
) -> c_int {
    // SAFETY: as `ours`.
    unsafe {
        let Some(state) = ours(strm) else { return original(strm, bits, value) };
        if let Some(nested) = &mut state.nested {
            return original(nested.stream(), bits, value);
        }
        match u32::try_from(bits) {
            Ok(bits) => code(state.stream.prime(value.cast_unsigned(), bits)),
            Err(_) => Z_BUF_ERROR,
        }
    }
}

type SetDictionary = unsafe extern "C" fn(*mut ZStream, *const u8, c_uint) -> c_int;

/// # Safety
///
/// As for `deflateSetDictionary`, with the conditions of [`ours`]. `dictionary` is null or valid for reads of `len`
/// bytes.
pub(crate) unsafe fn set_dictionary(
    original: SetDictionary,
    strm: *mut ZStream,
    dictionary: *const u8,
    len: c_uint,
) -> c_int {
    // SAFETY: as `ours`; the dictionary is valid for its length.
    unsafe {
        let Some(state) = ours(strm) else { return original(strm, dictionary, len) };
        if dictionary.is_null() {
            return Z_STREAM_ERROR;
        }
        if let Some(nested) = &mut state.nested {
            if state.stream.wrapper() != Wrapper::Raw && nested.is_unfinished() {
                return Z_STREAM_ERROR;
            }
            return set_inner_dictionary(original, &mut *strm, nested.stream(), dictionary, len);
        }
        let strm = &mut *strm;
        let outcome = state.stream.set_dictionary(input(dictionary, len));
        if outcome == Outcome::Ok {
            // zlib absorbs the dictionary as if it were input, and counts what it keeps of it.
            let window = state.stream.settings().window() as c_uint;
            strm.total_in = strm.total_in.wrapping_add(len.min(window).into());
        }
        if state.stream.wrapper() == Wrapper::Zlib {
            strm.adler = state.stream.check().into();
        }
        code(outcome)
    }
}

/// Sets the dictionary of a stream handed to the original, which counts what it keeps of it.
///
/// # Safety
///
/// As for `deflateSetDictionary`, for `inner`, which is nested in `strm`.
unsafe fn set_inner_dictionary(
    original: SetDictionary,
    strm: &mut ZStream,
    inner: *mut ZStream,
    dictionary: *const u8,
    len: c_uint,
) -> c_int {
    // SAFETY: as the contract says.
    unsafe {
        let before = (*inner).total_in;
        let code = original(inner, dictionary, len);
        strm.total_in = strm.total_in.wrapping_add((*inner).total_in.wrapping_sub(before));
        code
    }
}

/// # Safety
///
/// As for `deflateGetDictionary`, with the conditions of [`ours`]. `dictionary` is null or valid for writes of the
/// dictionary's length, at most a window, and `len` is null or valid for a write.
pub(crate) unsafe fn get_dictionary(
    original: unsafe extern "C" fn(*mut ZStream, *mut u8, *mut c_uint) -> c_int,
    strm: *mut ZStream,
    dictionary: *mut u8,
    len: *mut c_uint,
) -> c_int {
    // SAFETY: as `ours`; the caller's buffer has room for a window.
    unsafe {
        let Some(state) = ours(strm) else { return original(strm, dictionary, len) };
        if let Some(nested) = &mut state.nested {
            return original(nested.stream(), dictionary, len);
        }
        let size = state.stream.dictionary(None);
        if !dictionary.is_null() {
            state.stream.dictionary(Some(output(dictionary, size as c_uint)));
        }
        if let Some(len) = len.as_mut() {
            *len = size as c_uint;
        }
        Z_OK
    }
}

/// # Safety
///
/// As for `deflateSetHeader`, with the conditions of [`ours`]. `header` is null, or valid with all that it points to,
/// as [`gzip_header`] takes it, until the header has been written or the stream ends.
pub(crate) unsafe fn set_header(
    original: unsafe extern "C" fn(*mut ZStream, *mut GzHeader) -> c_int,
    strm: *mut ZStream,
    header: *mut GzHeader,
) -> c_int {
    // SAFETY: as `ours`. The header stays valid until it is written, which zlib demands as well.
    unsafe {
        let Some(state) = ours(strm) else { return original(strm, header) };
        let has_ended = match &state.nested {
            Some(nested) => !nested.is_unfinished(),
            None => state.stream.has_ended(),
        };
        if state.stream.wrapper() != Wrapper::Gzip || has_ended {
            return Z_STREAM_ERROR;
        }
        state.header = header;
        Z_OK
    }
}
