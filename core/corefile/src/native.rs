//! Native frames around those of JavaScript: by the chain of frame pointers, which Node.js and V8 keep, and by symbols.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use crate::bytes::word;
use crate::image::{Image, Thread};
use crate::map::Mapped;

/// As many as a report could show.
const FRAMES: usize = 400;
const STACK: u64 = 8 << 20;
/// Code of the C library keeps no frame pointers: so far above a thread's stack pointer the first frame that has one is looked for.
const FIRST: u64 = 64 << 10;
/// So many callers make a chain.
const PROOF: usize = 1;
/// Programs and libraries that are opened.
const FILES: usize = 256;
const NAME: usize = 300;

/// Where a function was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its frame, or where on the stack its address was found.
    pub(crate) at: u64,
    pub(crate) pc: u64,
    /// Found on the stack, with no frame that says so: it may be a left-over of an earlier call.
    pub(crate) is_guess: bool,
}

/// A thread's places from the innermost on: in all functions, those of JavaScript included.
pub(crate) fn places(image: &Image<'_>, thread: &Thread) -> Vec<Place> {
    if thread.pc == 0 {
        return Vec::new();
    }
    let mut places = vec![Place { at: thread.sp, pc: thread.pc, is_guess: false }];
    let Some(segment) = image.segment(thread.sp) else { return places };
    let top = segment.end.min(thread.sp.saturating_add(STACK));
    let stack = Stack { image, low: thread.sp, top };
    let far = thread.sp.saturating_add(FIRST).min(top);
    let mut near = (thread.sp & !7..far).step_by(8);
    let first = match stack.is_chain(thread.fp, PROOF) {
        true => Some(thread.fp),
        false => near.find(|&fp| stack.is_chain(fp, PROOF)),
    };
    let Some(mut fp) = first else { return places };
    // Callers between that keep no frame pointer have left their return addresses.
    let between = (thread.sp & !7..fp).step_by(8).map(|at| Place { at, pc: image.word(at), is_guess: true });
    places.extend(between.filter(|place| image.file_at(place.pc).is_some()).take(FRAMES / 2));
    while places.len() < FRAMES {
        let caller = image.word(fp);
        // The outermost one has no frame.
        places.push(Place { at: caller.max(fp + 8), pc: image.word(fp + 8), is_guess: false });
        if !stack.leads(fp) {
            break;
        }
        fp = caller;
    }
    places
}

struct Stack<'a> {
    image: &'a Image<'a>,
    low: u64,
    top: u64,
}

impl Stack<'_> {
    /// Whether a frame names the one of its caller.
    fn leads(&self, fp: u64) -> bool {
        let caller = self.image.word(fp);
        caller & 7 == 0 && caller > fp && caller < self.top
    }

    /// Frames, each with a return address into code.
    fn is_chain(&self, fp: u64, callers: usize) -> bool {
        let within = fp & 7 == 0 && fp >= self.low && fp.saturating_add(16) <= self.top;
        within
            && self.leads(fp)
            && self.image.file_at(self.image.word(fp + 8)).is_some()
            && (callers == 0 || self.is_chain(self.image.word(fp), callers - 1))
    }
}

/// What native functions are called, of all files that they are in.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<u64, Function>,
}

/// The function that an address is in.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) file: String,
    /// Whether a call comes right before: what is on a stack and has none is no return address.
    pub(crate) follows_call: bool,
}

impl Names {
    /// Looks up all addresses at once: each file is read once.
    pub(crate) fn of(image: &Image<'_>, program: &Path, places: impl Iterator<Item = Place>) -> Self {
        let mut by_file: HashMap<&str, Vec<u64>> = HashMap::new();
        for place in places {
            if let Some(file) = image.file_at(place.pc) {
                by_file.entry(&file.path).or_default().push(place.pc);
            }
        }
        let mut names = Self::default();
        for (path, mut addresses) in by_file.into_iter().take(FILES) {
            addresses.sort_unstable();
            addresses.dedup();
            let file = path.rsplit('/').next().unwrap_or_default();
            let file: String = file.chars().filter(|one| !one.is_control()).collect();
            // The program may be elsewhere now.
            let is_program = program.file_name().is_some_and(|name| *name == *file);
            let path = if is_program { program.to_owned() } else { PathBuf::from(path) };
            let found = symbols(image, &path, &addresses).unwrap_or_default();
            for pc in addresses {
                let (name, follows_call) =
                    found.get(&pc).cloned().unwrap_or_else(|| (format!("{pc:#x}"), false));
                names.known.insert(pc, Function { name, file: file.clone(), follows_call });
            }
        }
        names
    }

    pub(crate) fn get(&self, pc: u64) -> Option<&Function> {
        self.known.get(&pc)
    }
}

/// Names of the functions that addresses are in, where a file is still the one that was mapped.
fn symbols(image: &Image<'_>, path: &Path, addresses: &[u64]) -> Option<HashMap<u64, (String, bool)>> {
    let file =
        std::fs::File::open(path).ok().filter(|file| file.metadata().is_ok_and(|about| about.is_file()))?;
    let bytes = Mapped::of(&file).ok()?;
    let elf = object::File::parse(&*bytes).ok()?;
    let mapped = image.file_at(*addresses.first()?)?;
    let bias = bias(&elf, mapped.start, mapped.offset)?;
    if !is_same(image, &elf, bias) {
        return None;
    }
    let mut found: HashMap<u64, (u64, String)> = HashMap::new();
    let of_functions = elf
        .symbols()
        .chain(elf.dynamic_symbols())
        .filter(|symbol| symbol.is_definition() && matches!(symbol.kind(), SymbolKind::Text));
    for symbol in of_functions {
        let start = symbol.address().wrapping_add(bias);
        let size = symbol.size().max(1);
        let from = addresses.partition_point(|&address| address < start);
        let inside = addresses[from..].iter().take_while(|&&address| address - start < size);
        for &address in inside {
            let Ok(name) = symbol.name() else { continue };
            // The innermost of those that overlap.
            if found.get(&address).is_none_or(|(known, _)| *known < start) {
                found.insert(address, (start, readable(name)));
            }
        }
    }
    let follows_call = |pc: u64| {
        let mapped = image.file_at(pc)?;
        let at = usize::try_from((pc - mapped.start).checked_add(mapped.offset)?).ok()?;
        bytes.get(at.checked_sub(7)?..at).map(ends_with_call)
    };
    let told = |(pc, (_, name))| (pc, (name, follows_call(pc).unwrap_or_default()));
    Some(found.into_iter().map(told).collect())
}

/// A call of an address, or through a register or memory: with a byte for its registers, and what they need.
fn ends_with_call(bytes: &[u8]) -> bool {
    let indirect = |from_end: usize| {
        let at = bytes.len() - from_end;
        bytes[at] == 0xff && bytes[at + 1] & 0x38 == 0x10
    };
    bytes.len() >= 7 && (bytes[bytes.len() - 5] == 0xe8 || [2, 3, 4, 6, 7].into_iter().any(indirect))
}

fn bias(elf: &object::File<'_>, start: u64, offset: u64) -> Option<u64> {
    let segment = elf.segments().find(|segment| {
        let (from, size) = segment.file_range();
        (from & !0xfff..from.saturating_add(size)).contains(&offset)
    })?;
    let address = segment.address().wrapping_sub(segment.file_range().0).wrapping_add(offset);
    Some(start.wrapping_sub(address))
}

/// By the build-id, which is in the page of a file that a core keeps.
fn is_same(image: &Image<'_>, elf: &object::File<'_>, bias: u64) -> bool {
    let (Ok(Some(expected)), Some(note)) = (elf.build_id(), elf.section_by_name(".note.gnu.build-id")) else {
        return true;
    };
    let there = image.at(note.address().wrapping_add(bias), 16 + expected.len());
    there.len() < 16 + expected.len() || word(there, 8) as u32 != 3 || there[16..] == *expected
}

/// The qualified name of a function of C++, without parameters; other names as they are.
fn readable(name: &str) -> String {
    let name: String = name.chars().filter(|one| !one.is_control()).take(NAME).collect();
    demangled(&name).unwrap_or(name)
}

fn demangled(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix("_Z")?;
    let is_nested = rest.starts_with('N');
    rest = rest.strip_prefix('N').unwrap_or(rest).trim_start_matches(['K', 'V', 'L']);
    let mut parts: Vec<String> = Vec::new();
    if let Some(after) = rest.strip_prefix("St") {
        parts.push("std".to_owned());
        rest = after;
    }
    loop {
        rest = rest.trim_start_matches('L');
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            let length: usize = rest[..digits].parse().ok()?;
            let part = rest.get(digits..digits.checked_add(length)?)?;
            parts.push(if part.starts_with("_GLOBAL__N") {
                "(anonymous namespace)".to_owned()
            } else {
                part.to_owned()
            });
            rest = &rest[digits + length..];
        } else if rest.starts_with('I') {
            // The arguments of templates would need a grammar.
            parts.last_mut()?.push_str("<…>");
            break;
        } else {
            match rest.as_bytes().first() {
                Some(b'C') => parts.push(parts.last()?.clone()),
                Some(b'D') => parts.push(format!("~{}", parts.last()?)),
                _ => break,
            }
            break;
        }
        if !is_nested && !rest.starts_with('I') {
            break;
        }
    }
    (!parts.is_empty()).then(|| parts.join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_address_follows_a_call() {
        let call: [&[u8]; 4] =
            [&[0xe8, 1, 2, 3, 4], &[0xff, 0xd0], &[0x41, 0xff, 0x54, 0x24, 8], &[0xff, 0x15, 1, 2, 3, 4]];
        let padded = |call: &[u8]| [&[0x90; 7][call.len()..], call].concat();
        assert!(call.iter().all(|call| ends_with_call(&padded(call))));
        assert!(!ends_with_call(&[0x90; 7]) && !ends_with_call(&[0xe8; 3]));
    }

    #[test]
    fn names_of_functions_are_made_readable() {
        for (mangled, expected) in [
            (
                "_ZN2v88internal7Isolate20CreateMessageOrAbortENS0_6HandleINS0_6ObjectEEEPNS0_15MessageLocationE",
                "v8::internal::Isolate::CreateMessageOrAbort",
            ),
            ("_ZN12_GLOBAL__N_15crashEv", "(anonymous namespace)::crash"),
            ("_ZN4node9AsyncWrapD2Ev", "node::AsyncWrap::~AsyncWrap"),
            ("_ZN4node9inspector5AgentC1EPNS_11EnvironmentE", "node::inspector::Agent::Agent"),
            ("_ZSt4moveIRiE", "std::move<…>"),
            ("_Z5crashv", "crash"),
            ("uv_run", "uv_run"),
            ("_Z", "_Z"),
            ("_ZN99x", "_ZN99x"),
        ] {
            assert_eq!(readable(mangled), expected);
        }
    }
}
