//! The interface of `part.c`.

use core::ffi::c_void;

/// Opaque: libdeflate's tables.
#[repr(C)]
pub(super) struct Compressor {
    _private: [u8; 0],
}

/// Each function of `part.c` exists twice, with tables of two sizes.
macro_rules! api {
    ($($field:ident = $large:ident | $small:ident: fn($($name:ident: $type:ty),*) $(-> $result:ty)?;)+) => {
        /// The functions of one of the linked compressors.
        #[derive(Debug)]
        pub(super) struct Api {
            $(pub(super) $field: unsafe extern "C" fn($($name: $type),*) $(-> $result)?,)+
        }

        unsafe extern "C" {
            $(
                fn $large($($name: $type),*) $(-> $result)?;
                fn $small($($name: $type),*) $(-> $result)?;
            )+
        }

        /// libdeflate's own tables.
        pub(super) static LARGE: Api = Api { $($field: $large),+ };
        /// Tables for a few kilobytes of input.
        pub(super) static SMALL: Api = Api { $($field: $small),+ };
    };
}

api! {
    new = hasten_libdeflate_new | hasten_libdeflate_small_new:
        fn(
            chains: bool,
            take: unsafe extern "C" fn(usize) -> *mut c_void,
            give_back: unsafe extern "C" fn(*mut c_void)
        ) -> *mut Compressor;
    free = hasten_libdeflate_free | hasten_libdeflate_small_free: fn(compressor: *mut Compressor);
    tune = hasten_libdeflate_tune | hasten_libdeflate_small_tune:
        fn(compressor: *mut Compressor, parsing: u32, depth: u32, nice_length: u32, window: u32);
    compress = hasten_libdeflate_compress | hasten_libdeflate_small_compress:
        fn(
            compressor: *mut Compressor,
            input: *const u8,
            history: usize,
            length: usize,
            last: bool,
            out: *mut u8,
            room: usize,
            value: *mut u8,
            count: *mut u8
        ) -> usize;
}
