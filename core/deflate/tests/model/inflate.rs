//! Two streams, ours and the original's, that are treated alike and must look alike.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

use hasten_deflate::abi::{Z_FINISH, ZStream};
use hasten_deflate::inflate::refuse_masks;

use super::streams::{Choices, Header, Stream, stream};
use super::zlib::{Inflate, OURS, VERSION, original};

/// Makes the calls that `data` chooses; returns the results of `inflate`.
pub(crate) fn check(data: &[u8]) -> Vec<c_int> {
    let mut choices = Choices(data);
    let stream = stream(&mut choices);
    let bits = if choices.one_in(4) {
        choices.of(&[47, 0, 32, 15, 31, -15, -8, 8, 40, 48, 7, -16, 16])
    } else {
        stream.window_bits
    };
    let allocations = if choices.one_in(8) { u32::from(choices.byte() % 4) } else { u32::MAX };
    let counters = [Counter::new(allocations), Counter::new(allocations)];
    let mut pair = Pair::new(&stream, &counters, bits);
    let mut results = vec![];
    for _ in 0..400 {
        if let Some(result) = pair.step(&mut choices) {
            results.push(result);
        }
        if choices.is_empty() && pair.sides[0].at_end() {
            break;
        }
    }
    drop(pair);
    for counter in &counters {
        assert_eq!(counter.live.get(), 0, "memory was not given back");
    }
    results
}

struct Pair<'a> {
    stream: &'a Stream,
    sides: [Side<'a>; 2],
}

impl<'a> Pair<'a> {
    fn new(stream: &'a Stream, counters: &'a [Counter; 2], bits: c_int) -> Self {
        let side = |zlib, counter| Side::new(zlib, stream, counter, bits);
        let pair = Self { stream, sides: [side(&original().0, &counters[0]), side(&OURS, &counters[1])] };
        pair.compare("inflateInit2");
        pair
    }

    fn step(&mut self, choices: &mut Choices) -> Option<c_int> {
        if choices.one_in(6) {
            self.other_call(choices);
            return None;
        }
        let input = choices.of(&[1 << 20, 1 << 20, 1000, 100, 20, 8, 6, 1, 0]);
        let room = choices.of(&[1 << 16, 1 << 16, 5000, 1000, 300, 258, 40, 2, 0]);
        let flush = choices.of(&[0, 0, 0, 2, Z_FINISH, Z_FINISH, 5, 6, 1, 3, 9, -1]);
        let (input, room) = (input - choices.below(input / 2 + 1), room - choices.below(room / 2 + 1));
        Some(self.both(&format!("inflate {input} {room} {flush}"), |side| side.inflate(input, room, flush)))
    }

    fn other_call(&mut self, choices: &mut Choices) {
        match choices.byte() % 16 {
            0 => self.both("inflateSync", |side| side.call(side.zlib.sync)),
            1 => self.both("inflateReset", |side| side.call(side.zlib.reset)),
            2 => self.both("inflateResetKeep", |side| side.call(side.zlib.reset_keep)),
            3 => {
                let bits = choices.of(&[15, 31, 47, -15, 9, 0, -9, 25, 3]);
                self.both("inflateReset2", |side| side.call_with(side.zlib.reset2, bits))
            }
            4 => {
                let (bits, value) = (choices.of(&[0, 1, 3, 7, -1, 17]), c_int::from(choices.byte()));
                self.both("inflatePrime", |side| side.prime(bits, value))
            }
            5 => self.both("inflateCopy", Side::go_on_in_copy),
            6 => {
                let check = c_int::from(choices.byte() & 1);
                self.both("inflateValidate", |side| side.call_with(side.zlib.validate, check))
            }
            7 => self.both("inflateUndermine", |side| side.call_with(side.zlib.undermine, 1)),
            8 | 9 => {
                self.sides[0].header = Some(Header::new(&mut Choices(choices.0)));
                self.sides[1].header = Some(Header::new(choices));
                self.both("inflateGetHeader", Side::get_header)
            }
            10 => self.both("a copied stream", Side::use_as_copied),
            11 => {
                let at = choices.below(self.stream.bytes.len() + 1);
                self.both("going on elsewhere", |side| side.go_on_at(at))
            }
            _ => {
                let whole = &self.stream.dictionary[..];
                let from = if choices.one_in(3) { choices.below(whole.len() + 1) } else { 0 };
                self.both("inflateSetDictionary", |side| side.set_dictionary(&whole[from..]))
            }
        };
    }

    fn both(&mut self, what: &str, mut call: impl FnMut(&mut Side<'a>) -> c_int) -> c_int {
        let [theirs, ours] = &mut self.sides;
        let results = (call(theirs), call(ours));
        assert_eq!(results.1, results.0, "result of {what}");
        self.compare(what);
        results.0
    }

    fn compare(&self, what: &str) {
        let [theirs, ours] = &self.sides;
        assert_eq!(ours.look(), theirs.look(), "after {what}");
    }
}

/// The visible state of a stream.
#[derive(Debug, PartialEq)]
struct Look {
    fields: [u64; 9],
    message: Option<&'static CStr>,
    mark: i64,
    sync_point: c_int,
    codes_used: u64,
    dictionary: (c_int, Vec<u8>),
    header: Option<[Vec<u8>; 4]>,
    out: Vec<u8>,
}

struct Side<'a> {
    zlib: &'static Inflate,
    counter: &'a Counter,
    strm: Box<ZStream>,
    input: &'a [u8],
    at: usize,
    out: Vec<u8>,
    /// How much of `out` the last call has written.
    written: usize,
    header: Option<Header>,
}

impl<'a> Side<'a> {
    fn new(zlib: &'static Inflate, stream: &'a Stream, counter: &'a Counter, bits: c_int) -> Self {
        let mut strm = Box::new(ZStream::new());
        strm.zalloc = Some(count_alloc);
        strm.zfree = Some(count_free);
        strm.opaque = (&raw const *counter).cast_mut().cast();
        // SAFETY: a fresh stream with an allocator.
        unsafe { (zlib.init2)(&mut *strm, bits, VERSION.as_ptr(), size_of::<ZStream>() as c_int) };
        Self { zlib, counter, strm, input: &stream.bytes, at: 0, out: vec![], written: 0, header: None }
    }

    fn at_end(&self) -> bool {
        self.at == self.input.len() && self.written == 0
    }

    fn inflate(&mut self, input: usize, room: usize, flush: c_int) -> c_int {
        const GUARD: u8 = 0xa5;
        // Both ways to copy, in turn.
        static TURN: AtomicU32 = AtomicU32::new(0);
        refuse_masks(TURN.fetch_add(1, Ordering::Relaxed).is_multiple_of(2));
        let input = &self.input[self.at..][..input.min(self.input.len() - self.at)];
        self.out.clear();
        self.out.resize(room + 64, GUARD);
        (self.strm.next_in, self.strm.avail_in) = (input.as_ptr(), input.len() as c_uint);
        (self.strm.next_out, self.strm.avail_out) = (self.out.as_mut_ptr(), room as c_uint);
        // SAFETY: the buffers are as the stream says.
        let result = unsafe { (self.zlib.inflate)(&mut *self.strm, flush) };
        self.at += input.len() - self.strm.avail_in as usize;
        self.written = room - self.strm.avail_out as usize;
        let rest = &self.out[self.written..];
        assert!(rest.iter().all(|byte| *byte == GUARD), "{room} bytes of room, written behind the output");
        self.out.truncate(self.written);
        result
    }

    fn call(&mut self, function: unsafe extern "C" fn(*mut ZStream) -> c_int) -> c_int {
        // SAFETY: the stream is initialized, or was refused and has no state.
        unsafe { function(&mut *self.strm) }
    }

    fn call_with(
        &mut self,
        function: unsafe extern "C" fn(*mut ZStream, c_int) -> c_int,
        value: c_int,
    ) -> c_int {
        // SAFETY: as in `call`.
        unsafe { function(&mut *self.strm, value) }
    }

    fn go_on_at(&mut self, at: usize) -> c_int {
        self.at = at;
        0
    }

    fn set_dictionary(&mut self, dictionary: &[u8]) -> c_int {
        // SAFETY: as in `call`.
        unsafe {
            (self.zlib.set_dictionary)(&mut *self.strm, dictionary.as_ptr(), dictionary.len() as c_uint)
        }
    }

    /// Primed bits are kept apart from the input: a call could give back some of them as input that
    /// it was never given.
    fn prime(&mut self, bits: c_int, value: c_int) -> c_int {
        // SAFETY: a stream of ours.
        unsafe {
            if self.strm.data_type & 63 != 0 {
                return (self.zlib.prime)(&mut *self.strm, -1, 0);
            }
            (self.zlib.prime)(&mut *self.strm, bits, value)
        }
    }

    fn get_header(&mut self) -> c_int {
        let Some(header) = &mut self.header else { return 0 };
        // SAFETY: the header lives as long as the stream, or until the next one is set.
        unsafe { (self.zlib.get_header)(&mut *self.strm, &mut *header.fields) }
    }

    fn go_on_in_copy(&mut self) -> c_int {
        let mut copy = Box::new(ZStream::new());
        // SAFETY: streams of ours.
        unsafe {
            let result = (self.zlib.copy)(&mut *copy, &mut *self.strm);
            if result == 0 {
                (self.zlib.end)(&mut *self.strm);
                self.strm = copy;
            }
            result
        }
    }

    /// A bytewise copy of a stream is not a stream.
    fn use_as_copied(&mut self) -> c_int {
        // SAFETY: the copy is used only for calls that refuse it.
        unsafe {
            let mut copy = core::ptr::read(&*self.strm);
            let results =
                [(self.zlib.inflate)(&mut copy, 0), (self.zlib.reset)(&mut copy), (self.zlib.end)(&mut copy)];
            assert_eq!(results, [-2; 3]);
            (self.zlib.mark)(&mut copy) as c_int
        }
    }

    fn look(&self) -> Look {
        let strm = (&raw const *self.strm).cast_mut();
        let strm_fields = &self.strm;
        let mut dictionary = vec![0; 32768];
        let mut len = 77_777;
        // SAFETY: these calls do not change the stream.
        let (result, mark, sync_point, codes_used) = unsafe {
            (
                (self.zlib.get_dictionary)(strm, dictionary.as_mut_ptr(), &mut len),
                (self.zlib.mark)(strm),
                (self.zlib.sync_point)(strm),
                (self.zlib.codes_used)(strm),
            )
        };
        dictionary.truncate(len as usize);
        Look {
            fields: [
                self.at as u64,
                strm_fields.avail_in.into(),
                strm_fields.total_in,
                strm_fields.avail_out.into(),
                strm_fields.total_out,
                strm_fields.adler,
                strm_fields.data_type as u64,
                u64::from(strm_fields.state.is_null()),
                self.counter.live.get() as u64,
            ],
            message: message(strm_fields.msg),
            mark,
            sync_point,
            codes_used,
            dictionary: (result, dictionary),
            header: self.header.as_ref().map(look_at_header),
            out: self.out.clone(),
        }
    }
}

fn message(msg: *const c_char) -> Option<&'static CStr> {
    // SAFETY: zlib's messages are constants.
    (!msg.is_null()).then(|| unsafe { CStr::from_ptr(msg) })
}

fn look_at_header(header: &Header) -> [Vec<u8>; 4] {
    let fields = &header.fields;
    let numbers = format!(
        "{} {} {} {} {} {} {} {} {} {}",
        fields.text,
        fields.time,
        fields.xflags,
        fields.os,
        fields.extra_len,
        fields.hcrc,
        fields.done,
        fields.extra.is_null(),
        fields.name.is_null(),
        fields.comment.is_null(),
    );
    [numbers.into_bytes(), header.extra.clone(), header.name.clone(), header.comment.clone()]
}

impl Drop for Side<'_> {
    fn drop(&mut self) {
        // SAFETY: the stream is not used afterwards.
        unsafe { (self.zlib.end)(&mut *self.strm) };
    }
}

/// What an allocator has given out and not got back.
struct Counter {
    live: Cell<i64>,
    /// How many more allocations succeed.
    left: Cell<u32>,
}

impl Counter {
    fn new(allocations: u32) -> Self {
        Self { live: Cell::new(0), left: Cell::new(allocations) }
    }
}

/// # Safety
///
/// `opaque` is a [`Counter`].
unsafe extern "C" fn count_alloc(opaque: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void {
    // SAFETY: the tests' streams have a counter as opaque.
    let counter = unsafe { &*opaque.cast::<Counter>() };
    let Some(left) = counter.left.get().checked_sub(1) else { return core::ptr::null_mut() };
    counter.left.set(left);
    counter.live.set(counter.live.get() + 1);
    // SAFETY: any size may be asked for.
    let memory = unsafe { libc::malloc(items as usize * size as usize) };
    if !memory.is_null() {
        // Nothing may depend on memory being zeroed.
        // SAFETY: that much was allocated.
        unsafe { memory.cast::<u8>().write_bytes(0x5a, items as usize * size as usize) };
    }
    memory
}

/// # Safety
///
/// As for [`count_alloc`], which has returned the address; nobody uses it any more.
unsafe extern "C" fn count_free(opaque: *mut c_void, address: *mut c_void) {
    // SAFETY: as in `count_alloc`.
    let counter = unsafe { &*opaque.cast::<Counter>() };
    counter.live.set(counter.live.get() - 1);
    // SAFETY: from `count_alloc`.
    unsafe { libc::free(address) };
}
