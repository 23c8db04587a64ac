//! What an optimised frame stands for: the functions that the compiler has put into one another.
//!
//! For each call from optimised code V8 keeps how the frame would be taken apart: which functions of JavaScript are in it, and
//! where each of them stands. Whatever does not fit is no proof, and then nothing is told.

use std::cell::Cell;

use crate::bytes::int;
use crate::layout::CodeFields;
use crate::objects::View;

/// Of all threads, in a file that may be damaged: words and bytes that are looked at.
const STEPS: u64 = 1 << 26;
/// The code of one function is smaller than this.
const CODE: u64 = 4 << 20;
/// Between the object and its first instruction.
const HEADER: u64 = 128;
const MOST: usize = 256;
/// Before the first exit of a function's data: its inlining positions, where exits begin, and how many of both kinds there are.
const BEFORE_EXITS: u64 = 4;
/// An exit: where in the bytecode, where in the translation, and the return address.
const EXIT: u64 = 3;
/// The head of Maglev's table of return addresses: stack slots, entries, the sizes of what each has, and tagged slots.
const TABLE: usize = 16;
const OPERANDS: usize = 6;

/// How a release writes its translations.
#[derive(Debug)]
pub(crate) struct Opcodes {
    /// The number of operands of each. The last one says that so many are the same as in an earlier translation.
    operands: &'static [u8],
    begin: [u8; 2],
    /// The first of four that begin a frame of JavaScript: two of the interpreter, and two of builtins that go on later.
    javascript: u8,
    /// The others that begin a frame.
    others: &'static [u8],
    /// A function of WebAssembly, which is not followed.
    wasm: Option<u8>,
}

const OF_20: Opcodes = Opcodes {
    operands: &[
        1, 0, 3, 3, 1, 1, 3, 1, 3, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 5, 3, 3, 3, 4, 0, 1, 1, 1, 1, 1,
        2, 1,
    ],
    begin: [2, 3],
    javascript: 23,
    others: &[6, 8, 14, 27],
    wasm: None,
};
const OF_22: Opcodes = Opcodes {
    operands: &[
        5, 3, 3, 3, 2, 1, 3, 4, 3, 2, 1, 0, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1,
        1, 1, 1, 1, 2, 1,
    ],
    begin: [12, 13],
    javascript: 0,
    others: &[4, 5, 6, 7, 8, 9],
    wasm: Some(8),
};
const OF_24: Opcodes = Opcodes {
    operands: &[
        6, 4, 3, 3, 2, 1, 3, 4, 3, 3, 3, 1, 0, 0, 3, 3, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 0, 1, 1, 1, 1, 1, 2, 1,
    ],
    begin: [14, 15],
    javascript: 0,
    others: &[4, 5, 6, 7, 8, 9, 10],
    wasm: Some(8),
};

impl Opcodes {
    /// Of the releases whose opcodes are known.
    pub(crate) fn of(major: u32) -> Option<&'static Self> {
        match major {
            20 => Some(&OF_20),
            22 => Some(&OF_22),
            24 | 26 => Some(&OF_24),
            _ => None,
        }
    }

    fn is_match(&self, opcode: u8) -> bool {
        usize::from(opcode) + 1 >= self.operands.len()
    }
}

/// A function that is part of an optimised frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Nothing for a builtin that is not named: Maglev notes its caller in its place.
    pub(crate) shared: Option<u64>,
    /// Where in its bytecode it stands; nothing at its entry, and in a builtin.
    pub(crate) offset: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Maglev,
    TurboFan,
}

/// Code that calls another function.
struct Code {
    object: u64,
    /// Where it goes on, counted from its first instruction.
    pc: u64,
    /// The end of its instructions.
    table: u64,
    /// Of optimised code.
    kind: Option<Kind>,
}

/// Takes optimised frames apart.
pub(crate) struct Frames<'a> {
    view: &'a View<'a>,
    left: Cell<u64>,
}

impl<'a> Frames<'a> {
    pub(crate) fn of(view: &'a View<'a>) -> Self {
        Self { view, left: Cell::new(STEPS) }
    }

    /// The functions in the frame of a call, the innermost first, if it is one of optimised code that calls another function.
    pub(crate) fn parts(&self, fp: u64, below: u64, shared: u64) -> Option<Vec<Part>> {
        let fields = self.view.layout.code.as_ref()?;
        let code = self.callee(fields, fp, below)?;
        let data = self.view.field(code.object, fields.data);
        let translation = self.exit(fields, &code, data)?;
        let literals = self.view.field(data, element(fields.literals));
        let frames = self.translated(fields, self.view.field(data, element(0)), translation)?;
        let mut parts = frames.iter().map(|frame| self.part(frame, literals)).collect::<Option<Vec<_>>>()?;
        // The outermost one is the function that was called.
        if parts.first()?.shared != Some(shared) {
            return None;
        }
        parts.reverse();
        Some(parts)
    }

    fn steps(&self, count: u64) -> Option<()> {
        self.left.set(self.left.get().checked_sub(count)?);
        Some(())
    }

    /// The code that a frame belongs to, and where it has called another function: by the highest frame below that leads to this
    /// one. What is above that has been written by this frame, so that none of an earlier call can be there.
    fn callee(&self, fields: &CodeFields, fp: u64, below: u64) -> Option<Code> {
        let mut at = fp;
        while at > below {
            at -= 8;
            self.steps(1)?;
            if self.view.image.word(at) != fp {
                continue;
            }
            if let Some(code) = self.code(fields, self.view.image.word(at + 8)) {
                return code.kind.is_some().then_some(code);
            }
        }
        None
    }

    /// The code of a function that an address is in.
    fn code(&self, fields: &CodeFields, address: u64) -> Option<Code> {
        let view = self.view;
        // Not by V8's pages: those of code begin otherwise in Node 20 and 22.
        let segment = view.image.segment(address).filter(|_| view.image.file_at(address).is_none())?;
        let first = segment.start.max(address.saturating_sub(CODE));
        let mut at = address & !7;
        while !view.is(at | 1, "INSTRUCTION_STREAM") {
            self.steps(1)?;
            at = at.checked_sub(8).filter(|&at| at >= first)?;
        }
        let object = view.field(at, 8);
        if !view.is(object, "CODE") || view.field(object, fields.stream) != at | 1 {
            return None;
        }
        let half = |offset: u64| view.field(object, offset) as u32;
        let (start, size) = (view.field(object, fields.start), u64::from(half(fields.size)));
        let begins = at < start && start - at <= HEADER;
        let pc = address.checked_sub(start).filter(|&pc| begins && (1..=size).contains(&pc))?;
        let kind = match (half(fields.flags) & fields.kind_mask).checked_sub(fields.baseline) {
            Some(1) => Some(Kind::Maglev),
            Some(2) => Some(Kind::TurboFan),
            _ => None,
        };
        Some(Code { object, pc, table: start.saturating_add(size), kind })
    }

    /// Where the translation of the exit at a return address is.
    fn exit(&self, fields: &CodeFields, code: &Code, data: u64) -> Option<usize> {
        let view = self.view;
        if !["FIXED_ARRAY", "TRUSTED_FIXED_ARRAY", "PROTECTED_FIXED_ARRAY"].contains(&self.name(data)) {
            return None;
        }
        let smi = |index: u64| small(view.field(data, element(index)));
        let first = fields.inlining_positions + BEFORE_EXITS;
        let exits = view.length(data).checked_sub(first).filter(|length| length % EXIT == 0)? / EXIT;
        if smi(first - 2)?.checked_add(smi(first - 1)?)? != i32::try_from(exits).ok()? {
            return None;
        }
        self.steps(exits)?;
        let with = |address: u64| {
            let address = i32::try_from(address).ok();
            let mut found = (0..exits).filter(|exit| smi(first + EXIT * exit + 2) == address);
            found.next().filter(|_| address.is_some() && found.next().is_none())
        };
        let exit = match code.kind? {
            Kind::TurboFan => with(code.pc)?,
            Kind::Maglev => {
                let (exit, begins) = self.exit_of_maglev(fields, code)?;
                with(begins).filter(|&found| found == exit)?
            }
        };
        usize::try_from(smi(first + EXIT * exit + 1)?).ok()
    }

    /// Maglev's exits name no return address, but where they begin. Behind the instructions is a table of return addresses, with
    /// the number of the exit and where that begins.
    fn exit_of_maglev(&self, fields: &CodeFields, code: &Code) -> Option<(u64, u64)> {
        let head =
            self.view.image.at(code.table, TABLE).first_chunk::<TABLE>().filter(|_| fields.has_table)?;
        let (count, sizes) = (int(head, 4), int(head, 8));
        let [registers, address, exit] = [1, 4, 7].map(|shift| (sizes >> shift & 7) as usize);
        // A bit says whether there are exits at all; a byte counts registers that were pushed.
        let size = 2 * address + exit + registers + 1;
        if sizes & 1 == 0 || [address, exit].iter().any(|bytes| !(1..=4).contains(bytes)) {
            return None;
        }
        self.steps(count.into())?;
        let entries = self.view.image.at(code.table.saturating_add(TABLE as u64), count as usize * size);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let entry = entries.chunks_exact(size).find(|entry| number(&entry[..address]) == code.pc)?;
        let (exit, rest) = entry[address..].split_at(exit);
        // Both are stored plus one: 0 is none.
        Some((number(exit).checked_sub(1)?, number(&rest[..address]).checked_sub(1)?))
    }

    fn translated(&self, fields: &CodeFields, bytes: u64, at: usize) -> Option<Vec<Frame>> {
        if !["BYTE_ARRAY", "TRUSTED_BYTE_ARRAY"].contains(&self.name(bytes)) {
            return None;
        }
        let length = self.view.length(bytes);
        self.steps(length)?;
        translated(
            fields.opcodes,
            self.view.image.at(bytes.wrapping_add(15), usize::try_from(length).ok()?),
            at,
        )
    }

    fn part(&self, frame: &Frame, literals: u64) -> Option<Part> {
        let index = u64::try_from(frame.literal).ok().filter(|&index| index < self.view.length(literals))?;
        if !["WEAK_FIXED_ARRAY", "TRUSTED_WEAK_FIXED_ARRAY"].contains(&self.name(literals)) {
            return None;
        }
        // The reference may be a weak one.
        let shared = self.view.field(literals, element(index)) & !2;
        if !self.view.is(shared, "SHARED_FUNCTION_INFO") {
            return None;
        }
        let is_known = frame.offset.is_some() || self.view.place(shared, None).is_none();
        let offset = frame.offset.and_then(|offset| u64::try_from(offset).ok());
        Some(Part { shared: is_known.then_some(shared), offset })
    }

    fn name(&self, tagged: u64) -> &str {
        self.view.map(tagged).map_or("", |map| self.view.layout.name(map.kind))
    }
}

fn small(word: u64) -> Option<i32> {
    (word as u32 == 0).then_some(((word >> 32) as u32).cast_signed())
}

/// The offset of an element of an array.
fn element(index: u64) -> u64 {
    16 + 8 * index
}

/// A frame of JavaScript in a translation.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    /// In bytecode; -1 at the entry. A builtin has none.
    offset: Option<i32>,
    literal: i32,
}

/// The frames of a translation, the outermost first. It ends where the next one begins.
fn translated(opcodes: &Opcodes, bytes: &[u8], at: usize) -> Option<Vec<Frame>> {
    let mut translation =
        Translation { opcodes, own: Numbers { bytes, at }, earlier: None, same: 0, since: 0 };
    let begin = translation.begin()?;
    let (mut frames, mut others) = (Vec::new(), 0);
    while !translation.is_at_end() {
        let Instruction { opcode, operands } = translation.next()?;
        if opcodes.wasm == Some(opcode) {
            return None;
        }
        others += u32::from(opcodes.others.contains(&opcode));
        match opcode.wrapping_sub(opcodes.javascript) {
            0 | 1 => frames.push(Frame { offset: Some(signed(operands[0])), literal: signed(operands[1]) }),
            2 | 3 => frames.push(Frame { offset: None, literal: signed(operands[1]) }),
            _ => {}
        }
        if frames.len() > MOST {
            return None;
        }
    }
    let javascript = frames.len() as u32;
    // As many as it says: otherwise these are not the opcodes of this release.
    (begin == [javascript + others, javascript]).then_some(frames)
}

#[derive(Debug)]
struct Instruction {
    opcode: u8,
    operands: [u32; OPERANDS],
}

struct Translation<'a> {
    opcodes: &'a Opcodes,
    own: Numbers<'a>,
    /// Another one, of which parts are repeated.
    earlier: Option<Numbers<'a>>,
    /// Instructions that are still to be taken from there.
    same: u32,
    /// Instructions of its own since then, in place of those there.
    since: u32,
}

impl Translation<'_> {
    /// How many frames it says it has, and how many of these are of JavaScript.
    fn begin(&mut self) -> Option<[u32; 2]> {
        let start = self.own.at;
        let Instruction { opcode, operands: [distance, all, javascript, ..] } = self.instruction()?;
        if !self.opcodes.begin.contains(&opcode) {
            return None;
        }
        if distance > 0 {
            let at = start.checked_sub(distance as usize)?;
            let earlier = Numbers { bytes: self.own.bytes, at };
            let is_begin = earlier.peek().is_some_and(|opcode| self.opcodes.begin.contains(&opcode));
            self.earlier = Some(earlier).filter(|_| is_begin);
        }
        self.since = 1;
        let count = |number: u32| u32::try_from(signed(number)).ok();
        Some([count(all)?, count(javascript)?])
    }

    fn is_at_end(&self) -> bool {
        self.same == 0 && self.own.peek().is_none_or(|opcode| self.opcodes.begin.contains(&opcode))
    }

    fn next(&mut self) -> Option<Instruction> {
        if self.same > 0 {
            self.same -= 1;
            return self.repeated();
        }
        let opcode = self.own.peek()?;
        if !self.opcodes.is_match(opcode) {
            self.since += 1;
            return self.instruction();
        }
        self.own.at += 1;
        // A short number is in the opcode itself.
        let same = match (opcode as usize).checked_sub(self.opcodes.operands.len()) {
            Some(short) => short as u32,
            None => self.own.number()?,
        };
        for _ in 0..std::mem::take(&mut self.since) {
            self.repeated()?;
        }
        self.same = same.checked_sub(1)?;
        self.repeated()
    }

    fn instruction(&mut self) -> Option<Instruction> {
        self.own.instruction(self.opcodes)
    }

    fn repeated(&mut self) -> Option<Instruction> {
        self.earlier.as_mut()?.instruction(self.opcodes)
    }
}

/// Numbers of seven bits for each byte, the lowest first.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Numbers<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn number(&mut self) -> Option<u32> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let byte = self.peek().filter(|_| shift < 35)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return u32::try_from(number).ok();
            }
        }
    }

    fn instruction(&mut self, opcodes: &Opcodes) -> Option<Instruction> {
        let opcode = self.peek().filter(|&opcode| !opcodes.is_match(opcode))?;
        self.at += 1;
        let mut operands = [0; OPERANDS];
        for operand in operands.iter_mut().take(usize::from(opcodes.operands[usize::from(opcode)])) {
            *operand = self.number()?;
        }
        Some(Instruction { opcode, operands })
    }
}

/// The sign is the lowest bit.
fn signed(number: u32) -> i32 {
    let size = (number >> 1).cast_signed();
    if number & 1 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(offset: i32, literal: i32) -> Frame {
        Frame { offset: Some(offset), literal }
    }

    /// `outer`, which has `hot`, which has `middle`, which has `innermost`, as Node 22 keeps two translations. The second one repeats
    /// parts of the first.
    const TWO: &[u8] = &[
        0x0c, 0x00, 0x08, 0x08, 0x01, 0x5e, 0x0e, 0x0e, 0x23, 0x06, 0x20, 0x01, 0x0c, 0x00, 0x06, 0x21, 0x14,
        0x01, 0x06, 0x02, 0x02, 0x21, 0x1a, 0x01, 0x08, 0x04, 0x08, 0x21, 0x1e, //
        0x0c, 0x1d, 0x08, 0x08, 0x00, 0x5e, 0x0e, 0x0e, 0x00, 0x02, 0x2a, 0x01, 0x10, 0x00, 0x06, 0x2b, 0x01,
        0x2c, 0x04, 0x08, 0x29, //
    ];

    #[test]
    fn a_translation_is_read_with_what_it_repeats() {
        let [outer, hot, middle] = [frame(47, 7), frame(6, 0), frame(3, 1)];
        let first = vec![outer, hot, middle, frame(4, 2)];
        assert_eq!(translated(&OF_22, TWO, 0), Some(first));
        let [outer, hot, middle] = [frame(47, 7), frame(8, 0), frame(3, 1)];
        let second = vec![outer, hot, middle, frame(22, 2)];
        assert_eq!(translated(&OF_22, TWO, 29), Some(second));
    }

    #[test]
    fn other_bytes_are_no_translation() {
        // Not at the beginning of one; that of another release; behind the end.
        assert_eq!(translated(&OF_22, TWO, 1), None);
        assert_eq!(translated(&OF_24, TWO, 0), None);
        assert_eq!(translated(&OF_22, TWO, usize::MAX), None);
        // Cut off: nothing, or all of the frames.
        for (at, end) in [(0, 29), (29, TWO.len())] {
            let whole = translated(&OF_22, &TWO[..end], at);
            let cut: Vec<_> = (at..end).map(|end| translated(&OF_22, &TWO[..end], at)).collect();
            assert!(cut.iter().all(|frames| frames.is_none() || *frames == whole));
            assert!(cut[..20].iter().all(Option::is_none));
        }
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as usize
        };
        for round in 0..20_000 {
            let mut bytes = TWO.to_vec();
            for _ in 0..1 + round % 8 {
                bytes[random() % TWO.len()] = random() as u8;
            }
            for opcodes in [&OF_20, &OF_22, &OF_24] {
                let frames = translated(opcodes, &bytes, random() % TWO.len()).unwrap_or_default();
                assert!(frames.len() <= MOST);
            }
        }
    }
}
