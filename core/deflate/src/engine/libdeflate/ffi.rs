//! The interface of `part.c`.

/// Opaque: libdeflate's tables.
#[repr(C)]
pub(super) struct Compressor {
    _private: [u8; 0],
}

unsafe extern "C" {
    pub(super) fn hasten_libdeflate_new(chains: bool) -> *mut Compressor;
    pub(super) fn hasten_libdeflate_free(compressor: *mut Compressor);
    pub(super) fn hasten_libdeflate_tune(
        compressor: *mut Compressor,
        parsing: u32,
        depth: u32,
        nice_length: u32,
    );
    pub(super) fn hasten_libdeflate_compress(
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
