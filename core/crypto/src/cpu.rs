//! What the CPU must offer before the engine may run.

use std::env;

/// Proof that this CPU and operating system run AVX-512 IFMA code.
///
/// Every function of the engine takes one, so none can be reached on a machine where it would fault.
#[derive(Clone, Copy, Debug)]
pub struct Ifma(());

/// The features by the names that the standard library has for them: a list, and a look at all of them.
macro_rules! features {
    ($($name:tt)*) => {
        const FEATURES: &[&str] = &[$($name),*];

        fn all_detected() -> bool {
            true $(&& is_x86_feature_detected!($name))*
        }
    };
}

// What the engine's object code contains, found by disassembly. That is more than crypto_mb itself asks for
// (`MBX_AVX512_GENERAL_ISA`): its compiler also used CD, VBMI and GFNI, which a hypervisor may hide one by one.
features! {
    "bmi1" "bmi2" "fma" "gfni"
    "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl" "avx512ifma" "avx512vbmi" "avx512vbmi2"
}

impl Ifma {
    /// What the CPU must have, all of it.
    pub const FEATURES: &'static [&'static str] = FEATURES;

    /// Set to `1`, this variable denies the proof on any machine: the way to run the other path in tests.
    pub const DISABLE: &'static str = "HASTEN_CPU_DISABLE_IFMA";

    /// Looks at the CPU and at what the kernel saves on a context switch.
    pub fn detect() -> Option<Self> {
        let denied = env::var_os(Self::DISABLE).is_some_and(|value| value == "1");
        (!denied && all_detected()).then_some(Self(()))
    }
}
