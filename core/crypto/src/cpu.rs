//! What the CPU must offer before the engine may run.

use std::env;

use hasten_names::Feature;

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
        (!denied && Feature::MULTIBUFFER.into_iter().all(Feature::is_usable)).then_some(Self(()))
    }
}
