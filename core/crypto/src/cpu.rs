//! What the CPU must offer before the engine may run.

use std::env;

/// Proof that this CPU and operating system run AVX-512 IFMA code.
///
/// Every function of the engine takes one, so none can be reached on a machine where it would fault.
#[derive(Clone, Copy, Debug)]
pub struct Ifma(());

impl Ifma {
    /// Set to `1`, this variable denies the proof on any machine: the way to run the other path in tests.
    pub const DISABLE: &'static str = "HASTEN_CPU_DISABLE_IFMA";

    /// Looks at the CPU and at what the kernel saves on a context switch.
    pub fn detect() -> Option<Self> {
        let denied = env::var_os(Self::DISABLE).is_some_and(|value| value == "1");
        (!denied && Self::supported()).then_some(Self(()))
    }

    /// What the engine's object code contains, found by disassembly. That is more than crypto_mb itself asks for
    /// (`MBX_AVX512_GENERAL_ISA`): its compiler also used CD, VBMI and GFNI, which a hypervisor may hide one by one.
    fn supported() -> bool {
        is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("gfni")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512ifma")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
    }
}
