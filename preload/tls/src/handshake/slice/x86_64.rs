//! What the suspension of a function needs of the CPU: its registers, and the moves between two depths of one stack.
//!
//! Another CPU needs a file beside this one with the same functions.

use core::arch::naked_asm;
use core::mem::offset_of;
use core::ops::Range;

use super::{Slice, restore, save, uncover};

/// The C library's call of rt_sigreturn(2), to which a signal handler returns: `mov rax, 15; syscall`. Debuggers and
/// unwinders also look for it.
const RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

/// How many words of a signal's frame [`is_signal_frame`] looks at.
pub(super) const FRAME_WORDS: usize = 3;

/// Whether the words from `at` on begin the frame that the kernel puts on the stack for a handler: the address of the C
/// library's call of rt_sigreturn(2), which is somewhere in `code`, flags, of which there are three, and a null pointer.
pub(super) fn is_signal_frame(
    word: impl Fn(usize) -> usize,
    at: usize,
    _: &Range<usize>,
    code: &Range<usize>,
) -> bool {
    let address = word(at);
    let is_frame = code.contains(&address)
        && code.end - address > RETURN.len()
        && word(at + 1) & !7 == 0
        && word(at + 2) == 0;
    // SAFETY: code of the C library, which is never unloaded.
    is_frame && unsafe { *(address as *const [u8; RETURN.len()]) } == RETURN
}

/// The current depth of the stack.
#[inline(always)]
pub(crate) fn here() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    sp
}

/// Whether the CPU keeps a second stack of return addresses, which cannot be copied.
pub(super) fn has_shadow_stack() -> bool {
    let mut pointer = 0_u64;
    // SAFETY: a no-op that leaves the register alone where there is no shadow stack.
    unsafe { core::arch::asm!("rdsspq {}", inout(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer != 0
}

/// The unwinding rules of `enter` rely on this.
const _: () = assert!(offset_of!(Slice, base) == 0);

/// Saves the server's state at `base`, and calls `body(argument)` at `top`.
///
/// A C++ exception thrown by a callback must find its way: the caller's frame is 64 bytes above the address stored in
/// the word at rbx, `base`, wherever the function was resumed from.
///
/// # Safety
///
/// `top` is a multiple of 16 on the current stack. It is below everything in use there, and there is room below it for
/// `body`, which takes `argument`. The slice stays alive until `body` has returned or was abandoned.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn enter(
    slice: &Slice,
    body: unsafe extern "C" fn(usize),
    argument: usize,
) {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        ".cfi_def_cfa_offset 64",
        ".cfi_offset rbp, -16",
        ".cfi_offset rbx, -24",
        ".cfi_offset r12, -32",
        ".cfi_offset r13, -40",
        ".cfi_offset r14, -48",
        ".cfi_offset r15, -56",
        "stmxcsr [rsp]",
        "fnstcw [rsp + 4]",
        "mov [rdi + {base}], rsp",
        "mov rbx, rdi",
        // DW_CFA_def_cfa_expression, 5 bytes: DW_OP_breg3 (rbx) + 0, DW_OP_deref, DW_OP_plus_uconst 64.
        ".cfi_escape 0x0f, 5, 0x73, 0, 0x06, 0x23, 64",
        "mov rsp, [rdi + {top}]",
        // Twice, for the alignment.
        "push qword ptr [rdi + {mark}]",
        "push qword ptr [rdi + {mark}]",
        // Where a frame-pointer walk stops.
        "xor ebp, ebp",
        "mov rdi, rdx",
        "call rsi",
        "mov rdi, rbx",
        "jmp {finish}",
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
pub(super) unsafe extern "sysv64" fn leave(slice: &Slice) {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "stmxcsr [rsp]",
        "fnstcw [rsp + 4]",
        "mov [rdi + {sp}], rsp",
        "mov rbx, rdi",
        "sub rsp, 64",
        "and rsp, -16",
        "call {save}",
        "mov rdi, rbx",
        "jmp {finish}",
        sp = const offset_of!(Slice, sp),
        save = sym save,
        finish = sym finish,
    )
}

/// # Safety
///
/// As [`leave`]; nothing on the frames of the slice needs to be dropped, and nothing refers to them.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn abandon(slice: &Slice) -> ! {
    naked_asm!("jmp {finish}", finish = sym finish)
}

/// Continues with the server at `base`, whose frames are restored by then.
///
/// # Safety
///
/// [`enter`], [`leave`] and [`abandon`] jump to it, and nothing calls it; the slice is the one that ran. `base` is what
/// `enter` or `resume` saved on the current stack, and the frames that were there then are still there or have been put
/// aside.
#[unsafe(naked)]
unsafe extern "sysv64" fn finish(slice: &Slice) {
    naked_asm!(
        "mov rbx, rdi",
        // Below everything that is moved.
        "mov rax, rsp",
        "cmp rax, [rdi + {base}]",
        "cmova rax, [rdi + {base}]",
        "lea rsp, [rax - 512]",
        "and rsp, -16",
        "call {uncover}",
        "mov rsp, [rbx + {base}]",
        "ldmxcsr [rsp]",
        "fldcw [rsp + 4]",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
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
pub(super) unsafe extern "sysv64" fn resume(slice: &Slice) {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "stmxcsr [rsp]",
        "fnstcw [rsp + 4]",
        "mov [rdi + {base}], rsp",
        "mov rbx, rdi",
        "mov rax, rsp",
        "cmp rax, [rdi + {sp}]",
        "cmova rax, [rdi + {sp}]",
        "lea rsp, [rax - 512]",
        "and rsp, -16",
        "call {restore}",
        "mov rsp, [rbx + {sp}]",
        "ldmxcsr [rsp]",
        "fldcw [rsp + 4]",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
        base = const offset_of!(Slice, base),
        sp = const offset_of!(Slice, sp),
        restore = sym restore,
    )
}
