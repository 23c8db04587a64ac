//! What the suspension of a function needs of the CPU: its registers, and the moves between two depths of one stack.

use core::arch::naked_asm;
use core::mem::offset_of;
use core::ops::Range;

use super::{Slice, restore, save, uncover};

/// How many words of a signal's frame [`is_signal_frame`] looks at.
pub(super) const FRAME_WORDS: usize = 59;

/// Whether the words from `at` on are the `ucontext` that the kernel puts on the stack for a handler: flags, of which
/// there are none, a null pointer, further on the interrupted stack pointer, which is above them, and the head of the
/// first record of further registers, which is always that of the vector registers.
pub(super) fn is_signal_frame(
    word: impl Fn(usize) -> usize,
    at: usize,
    stack: &Range<usize>,
    _: &Range<usize>,
) -> bool {
    const STACK_POINTER: usize = 54;
    /// FPSIMD_MAGIC, and the record's size.
    const HEAD: usize = 0x210 << 32 | 0x4650_8001;
    word(at) == 0
        && word(at + 1) == 0
        && word(at + FRAME_WORDS - 1) == HEAD
        && (here()..=stack.end).contains(&word(at + STACK_POINTER))
}

/// The current depth of the stack.
#[inline(always)]
pub(crate) fn here() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    sp
}

/// Whether the CPU keeps a second stack of return addresses, which cannot be copied.
pub(super) fn has_shadow_stack() -> bool {
    let mut features = 1_u64;
    // SAFETY: `chkfeat x16` clears the bits of features that are in use; before it existed, it was a no-op.
    unsafe {
        core::arch::asm!("hint #40", inout("x16") features, options(nomem, nostack, preserves_flags));
    }
    features == 0
}

/// The unwinding rules of `enter` rely on this.
const _: () = assert!(offset_of!(Slice, base) == 0);

/// Puts the registers that a function must preserve on the stack: 176 bytes.
macro_rules! push {
    () => {
        "
        stp x29, x30, [sp, #-176]!
        stp x19, x20, [sp, #16]
        stp x21, x22, [sp, #32]
        stp x23, x24, [sp, #48]
        stp x25, x26, [sp, #64]
        stp x27, x28, [sp, #80]
        stp d8, d9, [sp, #96]
        stp d10, d11, [sp, #112]
        stp d12, d13, [sp, #128]
        stp d14, d15, [sp, #144]
        mrs x9, fpcr
        str x9, [sp, #160]
        "
    };
}

/// Takes them back, and returns to who called the function that put them there.
macro_rules! pop {
    () => {
        "
        ldr x9, [sp, #160]
        msr fpcr, x9
        ldp d14, d15, [sp, #144]
        ldp d12, d13, [sp, #128]
        ldp d10, d11, [sp, #112]
        ldp d8, d9, [sp, #96]
        ldp x27, x28, [sp, #80]
        ldp x25, x26, [sp, #64]
        ldp x23, x24, [sp, #48]
        ldp x21, x22, [sp, #32]
        ldp x19, x20, [sp, #16]
        ldp x29, x30, [sp], #176
        ret
        "
    };
}

/// Saves the server's state at `base`, and calls `body(argument)` at `top`.
///
/// A C++ exception thrown by a callback must find its way: the caller's frame is 176 bytes above the address stored in
/// the word at x19, `base`, wherever the function was resumed from.
///
/// # Safety
///
/// `top` is a multiple of 16 on the current stack. It is below everything in use there, and there is room below it for
/// `body`, which takes `argument`. The slice stays alive until `body` has returned or was abandoned.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn enter(slice: &Slice, body: unsafe extern "C" fn(usize), argument: usize) {
    naked_asm!(
        ".cfi_startproc",
        push!(),
        ".cfi_def_cfa_offset 176",
        ".cfi_offset x29, -176",
        ".cfi_offset x30, -168",
        ".cfi_offset x19, -160",
        ".cfi_offset x20, -152",
        ".cfi_offset x21, -144",
        ".cfi_offset x22, -136",
        ".cfi_offset x23, -128",
        ".cfi_offset x24, -120",
        ".cfi_offset x25, -112",
        ".cfi_offset x26, -104",
        ".cfi_offset x27, -96",
        ".cfi_offset x28, -88",
        ".cfi_offset d8, -80",
        ".cfi_offset d9, -72",
        ".cfi_offset d10, -64",
        ".cfi_offset d11, -56",
        ".cfi_offset d12, -48",
        ".cfi_offset d13, -40",
        ".cfi_offset d14, -32",
        ".cfi_offset d15, -24",
        "mov x9, sp",
        "str x9, [x0, {base}]",
        "mov x19, x0",
        // DW_CFA_def_cfa_expression, 6 bytes: DW_OP_breg19 (x19) + 0, DW_OP_deref, DW_OP_plus_uconst 176.
        ".cfi_escape 0x0f, 6, 0x83, 0, 0x06, 0x23, 0xb0, 0x01",
        "ldr x9, [x0, {top}]",
        "ldr x10, [x0, {mark}]",
        "mov sp, x9",
        // Twice, for the alignment.
        "stp x10, x10, [sp, #-16]!",
        // Where a frame-pointer walk stops.
        "mov x29, #0",
        "mov x0, x2",
        "blr x1",
        "mov x0, x19",
        "b {finish}",
        ".cfi_endproc",
        base = const offset_of!(Slice, base),
        top = const offset_of!(Slice, top),
        mark = const offset_of!(Slice, mark),
        finish = sym finish,
    )
}

/// Saves the function's state at `sp` and its frames, and continues with the server.
///
/// # Safety
///
/// The caller runs in the slice, on the stack where the slice was last entered or resumed.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn leave(slice: &Slice) {
    naked_asm!(
        push!(),
        "mov x9, sp",
        "str x9, [x0, {sp}]",
        "mov x19, x0",
        "sub sp, sp, #64",
        "bl {save}",
        "mov x0, x19",
        "b {finish}",
        sp = const offset_of!(Slice, sp),
        save = sym save,
        finish = sym finish,
    )
}

/// # Safety
///
/// As [`leave`]; nothing on the frames of the slice needs to be dropped, and nothing refers to them.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn abandon(slice: &Slice) -> ! {
    naked_asm!("b {finish}", finish = sym finish)
}

/// Continues with the server at `base`, whose frames are restored by then.
///
/// # Safety
///
/// [`enter`], [`leave`] and [`abandon`] jump to it, and nothing calls it; the slice is the one that ran. `base` is what
/// `enter` or `resume` saved on the current stack, and the frames that were there then are still there or have been put
/// aside.
#[unsafe(naked)]
unsafe extern "C" fn finish(slice: &Slice) {
    naked_asm!(
        "mov x19, x0",
        // Below everything that is moved.
        "mov x9, sp",
        "ldr x10, [x0, {base}]",
        "cmp x9, x10",
        "csel x9, x10, x9, hi",
        "sub x9, x9, #512",
        "and sp, x9, #-16",
        "bl {uncover}",
        "ldr x9, [x19, {base}]",
        "mov sp, x9",
        pop!(),
        base = const offset_of!(Slice, base),
        uncover = sym uncover,
    )
}

/// Saves the server's state at `base`, and continues with the function at `sp`.
///
/// # Safety
///
/// The slice was left by [`leave`], and not resumed since, on the current stack. The stack between its `sp` and its
/// `top` is not used by other threads while it runs.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn resume(slice: &Slice) {
    naked_asm!(
        push!(),
        "mov x9, sp",
        "str x9, [x0, {base}]",
        "mov x19, x0",
        // Below everything that is moved.
        "ldr x10, [x0, {sp}]",
        "cmp x9, x10",
        "csel x9, x10, x9, hi",
        "sub x9, x9, #512",
        "and sp, x9, #-16",
        "bl {restore}",
        "ldr x9, [x19, {sp}]",
        "mov sp, x9",
        pop!(),
        base = const offset_of!(Slice, base),
        sp = const offset_of!(Slice, sp),
        restore = sym restore,
    )
}
