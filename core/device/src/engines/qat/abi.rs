//! The part of the QuickAssist API and of libusdm that we use, declared from their public description.

use std::ffi::{c_char, c_int, c_void};

use crate::library::{Known, Library, LibraryError};

pub const LIBRARY: Known = Known {
    names: &["libqat.so.4"],
    source: "qatlib 22.07 or newer (Debian: libqat4; github.com/intel/qatlib)",
};
pub const MEMORY: Known = Known {
    names: &["libusdm.so.0"],
    source: "qatlib 22.07 or newer (Debian: libusdm0; github.com/intel/qatlib)",
};

pub(super) type Status = c_int;
pub(super) const SUCCESS: Status = 0;
pub(super) const RETRY: Status = -2;
pub(super) const RESOURCE: Status = -3;
pub(super) const INVALID: Status = -4;
pub(super) const UNSUPPORTED: Status = -6;
pub(super) const RESTARTING: Status = -7;

pub(super) const TRUE: u32 = 1;
pub(super) const TWO_PRIMES: u32 = 1;
pub(super) const BY_PRIMES: u32 = 2;
pub(super) const PRIME_FIELD: u32 = 1;
pub(super) const CURVE25519: u32 = 1;

pub(super) type Instance = *mut c_void;

/// `CpaFlatBuffer`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Flat {
    pub(super) length: u32,
    pub(super) data: *mut u8,
}

impl Flat {
    pub(super) const NONE: Self = Self { length: 0, data: std::ptr::null_mut() };
}

/// `CpaCyRsaPrivateKey`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct PrivateKey {
    pub(super) version: u32,
    pub(super) representation: u32,
    pub(super) modulus: Flat,
    pub(super) exponent: Flat,
    pub(super) p: Flat,
    pub(super) q: Flat,
    pub(super) dp: Flat,
    pub(super) dq: Flat,
    pub(super) qinv: Flat,
}

/// `CpaCyRsaDecryptOpData`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RsaData {
    pub(super) key: *mut PrivateKey,
    pub(super) input: Flat,
}

/// `CpaCyEcPointMultiplyOpData`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct MultiplyData {
    pub(super) scalar: Flat,
    pub(super) x: Flat,
    pub(super) y: Flat,
    pub(super) a: Flat,
    pub(super) b: Flat,
    pub(super) prime: Flat,
    pub(super) cofactor: Flat,
    pub(super) field: u32,
}

/// `CpaCyEcMontEdwdsPointMultiplyOpData`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct MontgomeryData {
    pub(super) curve: u32,
    pub(super) is_base: u32,
    pub(super) scalar: Flat,
    pub(super) x: Flat,
    pub(super) y: Flat,
}

const _: () = {
    assert!(size_of::<Flat>() == 16);
    assert!(size_of::<PrivateKey>() == 120);
    assert!(size_of::<RsaData>() == 24);
    assert!(size_of::<MultiplyData>() == 120);
    assert!(size_of::<MontgomeryData>() == 56);
};

pub(super) type RsaDone = unsafe extern "C" fn(*mut c_void, Status, *mut c_void, *mut Flat);
pub(super) type MultiplyDone =
    unsafe extern "C" fn(*mut c_void, Status, *mut c_void, u32, *mut Flat, *mut Flat);

#[derive(Clone, Copy)]
pub(super) struct Functions {
    pub(super) start: unsafe extern "C" fn(*const c_char) -> Status,
    pub(super) stop: unsafe extern "C" fn() -> Status,
    pub(super) count: unsafe extern "C" fn(*mut u16) -> Status,
    pub(super) instances: unsafe extern "C" fn(u16, *mut Instance) -> Status,
    pub(super) translate: unsafe extern "C" fn(Instance, unsafe extern "C" fn(*mut c_void) -> u64) -> Status,
    pub(super) start_instance: unsafe extern "C" fn(Instance) -> Status,
    pub(super) stop_instance: unsafe extern "C" fn(Instance) -> Status,
    pub(super) poll: unsafe extern "C" fn(Instance, u32) -> Status,
    pub(super) rsa: unsafe extern "C" fn(Instance, RsaDone, *mut c_void, *const RsaData, *mut Flat) -> Status,
    pub(super) multiply: unsafe extern "C" fn(
        Instance,
        MultiplyDone,
        *mut c_void,
        *const MultiplyData,
        *mut u32,
        *mut Flat,
        *mut Flat,
    ) -> Status,
    pub(super) montgomery: unsafe extern "C" fn(
        Instance,
        MultiplyDone,
        *mut c_void,
        *const MontgomeryData,
        *mut u32,
        *mut Flat,
        *mut Flat,
    ) -> Status,
    pub(super) allocate: unsafe extern "C" fn(usize, c_int, usize) -> *mut c_void,
    pub(super) free: unsafe extern "C" fn(*mut *mut c_void),
    pub(super) physical: unsafe extern "C" fn(*mut c_void) -> u64,
}

impl Functions {
    pub(super) fn of(qat: &Library, memory: &Library) -> Result<Self, LibraryError> {
        // SAFETY: the types are those of the public headers of qatlib 22.07 to 24.09. The library's file name carries
        // the version of its interface.
        unsafe {
            Ok(Self {
                start: qat.function(c"icp_sal_userStart")?,
                stop: qat.function(c"icp_sal_userStop")?,
                count: qat.function(c"cpaCyGetNumInstances")?,
                instances: qat.function(c"cpaCyGetInstances")?,
                translate: qat.function(c"cpaCySetAddressTranslation")?,
                start_instance: qat.function(c"cpaCyStartInstance")?,
                stop_instance: qat.function(c"cpaCyStopInstance")?,
                poll: qat.function(c"icp_sal_CyPollInstance")?,
                rsa: qat.function(c"cpaCyRsaDecrypt")?,
                multiply: qat.function(c"cpaCyEcPointMultiply")?,
                montgomery: qat.function(c"cpaCyEcMontEdwdsPointMultiply")?,
                allocate: memory.function(c"qaeMemAllocNUMA")?,
                free: memory.function(c"qaeMemFreeNUMA")?,
                physical: memory.function(c"qaeVirtToPhysNUMA")?,
            })
        }
    }
}
