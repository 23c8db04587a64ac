//! What hooks need of the CPU: the kinds of its relocations, and a call that preserves every argument.
//!
//! Another CPU needs a file beside this one with the same names.

/// The symbol's address and an addend (`R_X86_64_64`).
pub(crate) const ABSOLUTE: u32 = 1;
/// The symbol's address, in the global offset table (`R_X86_64_GLOB_DAT`).
pub(crate) const GLOB_DAT: u32 = 6;
/// The symbol's address, in the procedure linkage table (`R_X86_64_JUMP_SLOT`).
pub(crate) const JUMP_SLOT: u32 = 7;

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
            ::core::arch::naked_asm!(
                "cmp dword ptr [rip + {counter}], 0",
                "jne 2f",
                "jmp qword ptr [rip + {original}]",
                "2:",
                "push rax",
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "sub rsp, 128",
                "movups [rsp], xmm0",
                "movups [rsp + 16], xmm1",
                "movups [rsp + 32], xmm2",
                "movups [rsp + 48], xmm3",
                "movups [rsp + 64], xmm4",
                "movups [rsp + 80], xmm5",
                "movups [rsp + 96], xmm6",
                "movups [rsp + 112], xmm7",
                "call {before}",
                "movups xmm0, [rsp]",
                "movups xmm1, [rsp + 16]",
                "movups xmm2, [rsp + 32]",
                "movups xmm3, [rsp + 48]",
                "movups xmm4, [rsp + 64]",
                "movups xmm5, [rsp + 80]",
                "movups xmm6, [rsp + 96]",
                "movups xmm7, [rsp + 112]",
                "add rsp, 128",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "pop rax",
                "jmp qword ptr [rip + {original}]",
                counter = sym $counter,
                before = sym $before,
                original = sym $original,
            )
        }
    };
}
