//! The instructions that the process forks itself with.
//!
//! They depend on nobody: if the tracer dies at any moment, they run to their end and bring back every register, and the copy that
//! nobody holds ends itself. Only the code below and words on the stack below its end are used, and vector registers are not.

/// What the code is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// Where its data will be: in memory of the stack that is not in use.
    pub(crate) data: u64,
    /// What V8 keeps from forks: starts and lengths.
    pub(crate) kept: &'a [(u64, u64)],
    /// As ptrace orders them.
    pub(crate) registers: &'a [u64; 27],
}

/// The code's bytes, for any place, and where it ends.
pub(crate) fn code(plan: &Plan<'_>) -> Vec<u8> {
    let mut code = Code(Vec::new());
    // All signals wait: mask(SIG_SETMASK, all, saved, 8).
    code.mask(plan.data + ALL, plan.data + SAVED);
    code.advise(plan.data + TABLE, DOFORK);
    // A helper in the same memory, so that its own child, the copy, becomes an orphan whom init buries.
    code.call(CLONE, &[VFORK | VM, 0, 0, 0]);
    code.bytes(&[0x48, 0x85, 0xc0]); // test rax, rax
    let parent = code.jump_if_not_zero();
    code.call(CLONE, &[0, 0, 0, 0]);
    // Whoever runs here ends: the helper, and a copy without a tracer.
    code.call(EXIT_GROUP, &[0]);
    code.land(parent);
    // No helper, no wait: a negative number would mean other children.
    let none = code.jump_if_negative();
    code.bytes(&[0x48, 0x89, 0xc7]); // mov rdi, rax
    code.call_with_first(WAIT4, &[0, ALL_KINDS, 0]);
    code.land(none);
    code.advise(plan.data + TABLE, DONTFORK);
    code.mask(plan.data + SAVED, 0);
    code.restore(plan);
    code.bytes(&(code.0.len() as u32).to_le_bytes());
    code.bytes(MARK);
    code.0
}

/// Behind the code and its length: the end of a page that has it is free again.
const MARK: &[u8] = b"hasten-snapshot\0";

/// How many bytes at the end of a page are code of an earlier run.
pub(crate) fn left(page: &[u8]) -> usize {
    let Some((code, length)) = page.strip_suffix(MARK).and_then(|rest| rest.split_last_chunk()) else {
        return 0;
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > code.len() { 0 } else { length + 4 + MARK.len() }
}

/// Data, from its start: the saved mask, all signals, and the table.
pub(crate) fn data(plan: &Plan<'_>) -> Vec<u8> {
    let mut words = vec![0, u64::MAX];
    for &(start, length) in plan.kept {
        words.extend([start, length]);
    }
    words.extend([0, 0]);
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

const SAVED: u64 = 0;
const ALL: u64 = 8;
const TABLE: u64 = 16;

const RT_SIGPROCMASK: u32 = 14;
const MADVISE: u32 = 28;
const CLONE: u32 = 56;
const WAIT4: u32 = 61;
const EXIT_GROUP: u32 = 231;
const RESTART: u64 = 219;
const DONTFORK: u32 = 10;
const DOFORK: u32 = 11;
const VM: u64 = 0x100;
const VFORK: u64 = 0x4000;
const ALL_KINDS: u64 = 0x4000_0000;

/// Where a call of the kernel that was interrupted goes on, and with which number: what the kernel itself does on its way back.
fn restarted(registers: &[u64; 27]) -> (u64, u64) {
    let (ax, ip, call) = (registers[10], registers[16], registers[15]);
    match ax.cast_signed() {
        -514..=-512 if call.cast_signed() >= 0 => (ip - 2, call),
        -516 if call.cast_signed() >= 0 => (ip - 2, RESTART),
        _ => (ip, ax),
    }
}

struct Code(Vec<u8>);

/// The opcodes of `mov r64, imm64`, in the order of ptrace's registers.
const MOVES: [(usize, [u8; 2]); 14] = [
    (0, [0x49, 0xbf]),
    (1, [0x49, 0xbe]),
    (2, [0x49, 0xbd]),
    (3, [0x49, 0xbc]),
    (4, [0x48, 0xbd]),
    (5, [0x48, 0xbb]),
    (6, [0x49, 0xbb]),
    (7, [0x49, 0xba]),
    (8, [0x49, 0xb9]),
    (9, [0x49, 0xb8]),
    (11, [0x48, 0xb9]),
    (12, [0x48, 0xba]),
    (13, [0x48, 0xbe]),
    (14, [0x48, 0xbf]),
];
/// rdi, rsi, rdx and r10: the arguments of calls.
const ARGUMENTS: [[u8; 2]; 4] = [[0x48, 0xbf], [0x48, 0xbe], [0x48, 0xba], [0x49, 0xba]];

impl Code {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn load(&mut self, opcode: [u8; 2], value: u64) {
        self.bytes(&opcode);
        self.bytes(&value.to_le_bytes());
    }

    fn call(&mut self, number: u32, arguments: &[u64]) {
        for (opcode, &value) in ARGUMENTS.into_iter().zip(arguments) {
            self.load(opcode, value);
        }
        self.syscall(number);
    }

    /// The first argument is in its register.
    fn call_with_first(&mut self, number: u32, others: &[u64]) {
        for (opcode, &value) in ARGUMENTS.into_iter().skip(1).zip(others) {
            self.load(opcode, value);
        }
        self.syscall(number);
    }

    fn syscall(&mut self, number: u32) {
        // A fifth argument of clone is zero as well.
        self.bytes(&[0x4d, 0x31, 0xc0]); // xor r8, r8
        self.bytes(&[0xb8]); // mov eax, number
        self.bytes(&number.to_le_bytes());
        self.bytes(&[0x0f, 0x05]);
    }

    fn mask(&mut self, new: u64, old: u64) {
        self.call(RT_SIGPROCMASK, &[2, new, old, 8]);
    }

    /// For each pair of the table: madvise(start, length, advice).
    fn advise(&mut self, table: u64, advice: u32) {
        self.load([0x48, 0xbb], table); // mov rbx, table
        let again = self.0.len();
        self.bytes(&[0x48, 0x8b, 0x3b]); // mov rdi, [rbx]
        self.bytes(&[0x48, 0x85, 0xff]); // test rdi, rdi
        self.bytes(&[0x74, 0]); // je done
        let done = self.0.len();
        self.bytes(&[0x48, 0x8b, 0x73, 0x08]); // mov rsi, [rbx + 8]
        self.bytes(&[0xba]); // mov edx, advice
        self.bytes(&advice.to_le_bytes());
        self.syscall(MADVISE);
        self.bytes(&[0x48, 0x83, 0xc3, 0x10]); // add rbx, 16
        self.bytes(&[0xeb, 0]); // jmp again
        let end = self.0.len();
        self.0[end - 1] = (again as i64 - end as i64) as u8;
        self.0[done - 1] = (end - done) as u8;
    }

    fn jump_if_not_zero(&mut self) -> usize {
        self.bytes(&[0x75, 0]);
        self.0.len()
    }

    fn jump_if_negative(&mut self) -> usize {
        self.bytes(&[0x78, 0]);
        self.0.len()
    }

    fn land(&mut self, from: usize) {
        self.0[from - 1] = (self.0.len() - from) as u8;
    }

    /// Flags through the stack below the data, then every register, and back.
    fn restore(&mut self, plan: &Plan<'_>) {
        let registers = plan.registers;
        self.load([0x48, 0xb8], registers[18]); // mov rax, flags
        self.bytes(&[0x50]); // push rax
        for (index, opcode) in MOVES {
            self.load(opcode, registers[index]);
        }
        self.load([0x48, 0xb8], restarted(registers).1);
        self.bytes(&[0x9d]); // popfq
        // What follows changes no flags.
        self.load([0x48, 0xbc], registers[19]); // mov rsp, the stack's end
        // jmp [rip + 0], with the address behind it.
        self.bytes(&[0xff, 0x25, 0, 0, 0, 0]);
        self.bytes(&restarted(registers).0.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: u64 = 0x1000;

    fn registers(ax: i64, call: u64) -> [u64; 27] {
        let mut registers = [7; 27];
        (registers[10], registers[15], registers[16]) = (ax.cast_unsigned(), call, IP);
        registers
    }

    #[test]
    fn calls_that_the_stop_interrupted_are_done_again() {
        let epoll_pwait = 281;
        assert_eq!(restarted(&registers(-512, epoll_pwait)), (IP - 2, epoll_pwait));
        assert_eq!(restarted(&registers(-516, 202)), (IP - 2, RESTART));
        // A result, EINTR, and code that calls nothing, in which such a number is only a number.
        for (ax, call) in [(3, epoll_pwait), (-4, epoll_pwait), (-512, u64::MAX)] {
            assert_eq!(restarted(&registers(ax, call)), (IP, ax.cast_unsigned()));
        }
    }

    #[test]
    fn the_code_returns_where_it_came_from_and_is_short() {
        let registers = registers(1, u64::MAX);
        let plan = Plan { data: 0x7fff_0000, kept: &[(0x10_0000, 0x4_0000)], registers: &registers };
        let code = code(&plan);
        let (jump, mark) = code.split_at(code.len() - 4 - MARK.len());
        assert!(
            jump.ends_with(&IP.to_le_bytes()) && mark.ends_with(MARK) && code.len() < 640,
            "{}",
            code.len()
        );
        let mut page = vec![0x90; 4096];
        assert_eq!(left(&page), 0);
        page[4096 - code.len()..].copy_from_slice(&code);
        assert_eq!(left(&page), code.len());
        let data = data(&plan);
        assert_eq!(data.len() as u64, TABLE + 16 * 2);
        assert!(data.ends_with(&[0; 16]));
    }
}
