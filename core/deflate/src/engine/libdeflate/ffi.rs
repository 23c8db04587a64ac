//! The interface of `part.c`.

/// Opaque: libdeflate's tables.
#[repr(C)]
pub(super) struct Compressor {
    _private: [u8; 0],
}

type New = unsafe extern "C" fn(chains: bool) -> *mut Compressor;
type Free = unsafe extern "C" fn(compressor: *mut Compressor);
type Tune = unsafe extern "C" fn(compressor: *mut Compressor, parsing: u32, depth: u32, nice_length: u32);
type Compress = unsafe extern "C" fn(
    compressor: *mut Compressor,
    input: *const u8,
    history: usize,
    length: usize,
    last: bool,
    out: *mut u8,
    room: usize,
    value: *mut u8,
    count: *mut u8,
) -> usize;

/// One of the compressors that are linked.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) new: New,
    pub(super) free: Free,
    pub(super) tune: Tune,
    pub(super) compress: Compress,
}

macro_rules! api {
    ($(#[$doc:meta])* $NAME:ident: $new:ident $free:ident $tune:ident $compress:ident) => {
        unsafe extern "C" {
            fn $new(chains: bool) -> *mut Compressor;
            fn $free(compressor: *mut Compressor);
            fn $tune(compressor: *mut Compressor, parsing: u32, depth: u32, nice_length: u32);
            fn $compress(
                compressor: *mut Compressor,
                input: *const u8,
                history: usize,
                length: usize,
                last: bool,
                out: *mut u8,
                room: usize,
                value: *mut u8,
                count: *mut u8,
            ) -> usize;
        }
        $(#[$doc])*
        pub(super) static $NAME: Api = Api { new: $new, free: $free, tune: $tune, compress: $compress };
    };
}

api! {
    /// libdeflate's own tables.
    LARGE: hasten_libdeflate_new hasten_libdeflate_free hasten_libdeflate_tune hasten_libdeflate_compress
}
api! {
    /// Tables for a few kilobytes of input.
    SMALL: hasten_libdeflate_small_new hasten_libdeflate_small_free hasten_libdeflate_small_tune hasten_libdeflate_small_compress
}
