//! Switching stacks: a function runs on a stack of its own and can be left
//! in the middle, to be continued later by the same thread.
//!
//! Why not OpenSSL's own ASYNC jobs: their stacks are 32 KiB from malloc
//! with no guard page, and the server's callbacks (certificate, SNI, ALPN)
//! run on them. Here a stack is 256 KiB of lazily committed memory between
//! guard pages, so an overflow faults instead of corrupting the heap.

use core::arch::naked_asm;
use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};

/// Usable bytes of a stack. Committed page by page as it is touched; a
/// handshake with OpenSSL 3.0 touches about 20 KiB.
pub(crate) const STACK_SIZE: usize = 256 << 10;
const GUARD_SIZE: usize = 4 << 10;

/// A mapped stack. Never unmapped while a coroutine is on it: its owner
/// decides, so there is no `Drop`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stack {
    top: NonNull<u8>,
}

impl Stack {
    /// Maps a stack with a guard page below it.
    pub(crate) fn map() -> Option<Stack> {
        let size = STACK_SIZE + GUARD_SIZE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        // SAFETY: a fresh private mapping; on failure of the guard it is returned whole.
        unsafe {
            let base = libc::mmap(null_mut(), size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            if base == libc::MAP_FAILED {
                return None;
            }
            if libc::mprotect(base, GUARD_SIZE, libc::PROT_NONE) != 0 {
                libc::munmap(base, size);
                return None;
            }
            NonNull::new(base.cast::<u8>().add(size)).map(|top| Stack { top })
        }
    }

    /// The highest usable address; 4096-aligned.
    pub(crate) fn top(self) -> *mut u8 {
        self.top.as_ptr()
    }
}

/// Where a suspended flow of execution continues.
pub(crate) type StackPointer = *mut u8;

/// Prepares a coroutine below `top` that will call `entry(argument)` when
/// first switched to. `entry` must never return.
///
/// # Safety
///
/// `top` is 16-aligned, with enough writable stack below it that nobody uses.
pub(crate) unsafe fn prepare(
    top: *mut u8,
    entry: extern "C" fn(*mut c_void) -> !,
    argument: *mut c_void,
) -> StackPointer {
    // The frame that `switch` pops, lowest address first.
    let frame = [
        INITIAL_FLOAT_CONTROL,
        0,                                  // r15
        0,                                  // r14
        entry as usize as u64,              // r13
        argument as usize as u64,           // r12
        0,                                  // rbx
        0,                                  // rbp: ends the chain of frames
        start as *const () as usize as u64, // return address
        0,                                  // keeps `start` at a 16-aligned stack pointer
        0,
    ];
    // SAFETY: the caller promises room below `top`.
    unsafe {
        let at = top.cast::<u64>().sub(frame.len());
        at.copy_from_nonoverlapping(frame.as_ptr(), frame.len());
        at.cast()
    }
}

/// mxcsr (default: all exceptions masked) and the x87 control word.
const INITIAL_FLOAT_CONTROL: u64 = 0x037f_0000_1f80;

/// Saves the callee-saved state of the running flow at `*from` and goes on
/// with the flow saved at `to`. Returns when something switches back.
///
/// # Safety
///
/// `to` was made by [`prepare`] or stored by `switch`, is used once, and
/// belongs to this thread.
#[unsafe(naked)]
pub(crate) unsafe extern "sysv64" fn switch(from: *mut StackPointer, to: StackPointer) {
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
        "mov [rdi], rsp",
        "mov rsp, rsi",
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
    )
}

/// First code on a new stack: `entry(argument)`, from r13 and r12. The words
/// above it are zero, where an unwinder stops.
#[unsafe(naked)]
unsafe extern "sysv64" fn start() {
    naked_asm!("mov rdi, r12", "call r13", "ud2",)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pair {
        main: StackPointer,
        coroutine: StackPointer,
        log: Vec<u32>,
    }

    extern "C" fn body(argument: *mut c_void) -> ! {
        let pair = argument.cast::<Pair>();
        for step in 0.. {
            // SAFETY: the test keeps `pair` alive and only one side runs at a time.
            unsafe {
                (*pair).log.push(step);
                switch(&raw mut (*pair).coroutine, (*pair).main);
            }
        }
        unreachable!()
    }

    #[test]
    fn a_coroutine_goes_on_where_it_left() {
        let stack = Stack::map().unwrap();
        let mut pair = Pair { main: null_mut(), coroutine: null_mut(), log: Vec::new() };
        // SAFETY: the stack is fresh and `pair` outlives every switch.
        unsafe {
            pair.coroutine = prepare(stack.top(), body, (&raw mut pair).cast());
            for _ in 0..3 {
                let to = pair.coroutine;
                switch(&raw mut pair.main, to);
            }
        }
        assert_eq!(pair.log, [0, 1, 2]);
    }

    #[test]
    fn the_page_below_a_stack_is_a_guard() {
        let stack = Stack::map().unwrap();
        // mincore and friends do not tell protection; a write(2) from the page does, without a signal.
        // SAFETY: the address is mapped; the kernel reports EFAULT instead of faulting us.
        let written = unsafe {
            let fds = &mut [0; 2];
            assert_eq!(libc::pipe(fds.as_mut_ptr()), 0);
            libc::write(fds[1], stack.top().sub(STACK_SIZE + 1).cast(), 1)
        };
        assert_eq!(written, -1);
    }
}
