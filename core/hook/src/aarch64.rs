//! What hooks need of the CPU: the kinds of its relocations, and a call that preserves every argument.

/// The symbol's address and an addend (`R_AARCH64_ABS64`).
pub(crate) const ABSOLUTE: u32 = 257;
/// The symbol's address, in the global offset table (`R_AARCH64_GLOB_DAT`).
pub(crate) const GLOB_DAT: u32 = 1025;
/// The symbol's address, in the procedure linkage table (`R_AARCH64_JUMP_SLOT`).
pub(crate) const JUMP_SLOT: u32 = 1026;

/// Declares a function that runs another one before the original if a counter is not 0, whatever the original's
/// prototype: all argument registers are preserved, and the original sees its caller's return address. The other
/// function gets the same arguments, and may take the first few.
#[macro_export]
macro_rules! before {
    ($name:ident, $counter:ident, $before:path, $original:ident) => {
        /// # Safety
        ///
        /// As for the original: the caller passes what its C prototype asks for, and the original has been found.
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            // x16 and x17 belong to whatever is between a caller and a function, as linkers' veneers are. x8 is where a
            // structure is to be returned.
            ::core::arch::naked_asm!(
                // Callers reach this by a jump through a register (`bti c`, a no-op where it is unknown).
                "hint #34",
                "adrp x16, {counter}",
                "ldr w16, [x16, :lo12:{counter}]",
                "cbz w16, 2f",
                "stp x29, x30, [sp, #-224]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]",
                "stp x6, x7, [sp, #64]",
                "str x8, [sp, #80]",
                "stp q0, q1, [sp, #96]",
                "stp q2, q3, [sp, #128]",
                "stp q4, q5, [sp, #160]",
                "stp q6, q7, [sp, #192]",
                "bl {before}",
                "ldp q6, q7, [sp, #192]",
                "ldp q4, q5, [sp, #160]",
                "ldp q2, q3, [sp, #128]",
                "ldp q0, q1, [sp, #96]",
                "ldr x8, [sp, #80]",
                "ldp x6, x7, [sp, #64]",
                "ldp x4, x5, [sp, #48]",
                "ldp x2, x3, [sp, #32]",
                "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #224",
                "2:",
                "adrp x16, {original}",
                "ldr x16, [x16, :lo12:{original}]",
                "br x16",
                counter = sym $counter,
                before = sym $before,
                original = sym $original,
            )
        }
    };
}
