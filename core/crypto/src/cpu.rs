//! The CPU features that the engine requires.

#[cfg(target_arch = "x86_64")]
use std::env;

#[cfg(target_arch = "x86_64")]
use hasten_names::Feature;

/// Proof that this CPU and operating system run AVX-512 IFMA code.
///
/// Every function of the engine takes one, so none can be called on a machine where it would fault.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Ifma(());

/// What no CPU but x86-64 has: there is no value, and no proof.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub enum Ifma {}

impl Ifma {
    /// Set to `1`, this variable denies the proof on any machine, so that tests can exercise the other path.
    pub const DISABLE: &'static str = "HASTEN_CPU_DISABLE_IFMA";

    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) const fn prove() -> Option<Self> {
        None
    }

    /// Checks the CPU and the registers that the kernel saves on a context switch.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn prove() -> Option<Self> {
        let denied = env::var_os(Self::DISABLE).is_some_and(|value| value == "1");
        (!denied && Feature::MULTIBUFFER.into_iter().all(Feature::is_usable)).then_some(Self(()))
    }
}
