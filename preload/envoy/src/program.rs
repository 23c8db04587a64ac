//! The program in this process: where it is, and what can be read of it.

use core::ffi::{CStr, c_int, c_void};
use core::ops::Range;
use core::{ptr, slice};

use libc::{PF_R, PF_W, PF_X, PT_GNU_RELRO, PT_LOAD, PT_NOTE, dl_phdr_info};

/// A segment, in memory.
#[derive(Clone, Debug)]
struct Segment {
    kind: u32,
    flags: u32,
    range: Range<usize>,
}

/// The program that the process runs, as opposed to its libraries.
#[derive(Debug)]
pub(crate) struct Program {
    /// What the addresses in the file count from.
    base: usize,
    segments: Vec<Segment>,
}

impl Program {
    pub(crate) fn find() -> Option<Self> {
        let mut found: Option<Self> = None;
        // SAFETY: the callback gets the pointer passed here, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut found).cast()) };
        found
    }

    /// The address in memory of an address in the file.
    pub(crate) fn at(&self, address: u64) -> usize {
        self.base.wrapping_add(address as usize)
    }

    /// The linker's note, in hexadecimal digits.
    pub(crate) fn build_id(&self) -> Option<String> {
        let notes = self.segments.iter().filter(|segment| segment.kind == PT_NOTE);
        let id = notes.filter_map(|segment| build_id(self.bytes(segment.range.clone())?)).next()?;
        Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Memory of the program that nobody writes.
    pub(crate) fn bytes(&self, range: Range<usize>) -> Option<&[u8]> {
        let is_constant = self.is_within(&range, PF_R, PF_W) || self.is_protected(&range);
        // SAFETY: the loader mapped the segment for reading, never unmaps the program, and nobody writes here any more.
        is_constant
            .then(|| unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(range.start), range.len()) })
    }

    pub(crate) fn word(&self, address: usize) -> Option<usize> {
        let bytes = self.bytes(address..address.checked_add(8)?)?;
        Some(usize::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Code of the program.
    pub(crate) fn code(&self, range: Range<usize>) -> Option<&[u8]> {
        self.is_within(&range, PF_R | PF_X, PF_W).then(|| self.bytes(range)).flatten()
    }

    /// Whether a segment with these flags, and without those, contains the range.
    fn is_within(&self, range: &Range<usize>, with: u32, without: u32) -> bool {
        self.segments.iter().any(|segment| {
            segment.kind == PT_LOAD
                && segment.flags & with == with
                && segment.flags & without == 0
                && contains(&segment.range, range)
        })
    }

    /// Whether the loader made the range read-only, after it had written the program's addresses there.
    pub(crate) fn is_protected(&self, range: &Range<usize>) -> bool {
        let mut protected = self.segments.iter().filter(|segment| segment.kind == PT_GNU_RELRO);
        protected.any(|segment| contains(&segment.range, range))
    }
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    inner.start <= inner.end && outer.start <= inner.start && inner.end <= outer.end
}

/// The program is the first of the objects.
///
/// # Safety
///
/// As `dl_iterate_phdr` calls it, with a pointer to an `Option<Program>`.
unsafe extern "C" fn first(info: *mut dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader's description, valid during the call, and the caller's variable.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Option<Program>>()) };
    let base = info.dlpi_addr as usize;
    let headers = match info.dlpi_phdr.is_null() {
        true => &[],
        // SAFETY: as the loader says.
        false => unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) },
    };
    let segments = headers.iter().map(|header| {
        let start = base.wrapping_add(header.p_vaddr as usize);
        Segment {
            kind: header.p_type,
            flags: header.p_flags,
            range: start..start.saturating_add(header.p_memsz as usize),
        }
    });
    *found = Some(Program { base, segments: segments.collect() });
    1
}

/// The build-id in a segment of notes.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: u32 = 3;
    loop {
        let (head, rest) = notes.split_at_checked(12)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (name, rest) = rest.split_at_checked((word(0) as usize).next_multiple_of(4))?;
        let (description, rest) = rest.split_at_checked((word(4) as usize).next_multiple_of(4))?;
        if word(8) == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return description.get(..word(4) as usize);
        }
        notes = rest;
    }
}

/// The name under which the program was started, without its directory.
pub(crate) fn name() -> Vec<u8> {
    // SAFETY: no precondition.
    let path = unsafe { libc::getauxval(libc::AT_EXECFN) } as usize;
    if path == 0 {
        return Vec::new();
    }
    // SAFETY: the kernel put a C string there, above the stack.
    let path = unsafe { CStr::from_ptr(ptr::with_exposed_provenance(path)) }.to_bytes();
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, name: &[u8], description: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [name.len() as u32, description.len() as u32, kind] {
            note.extend(word.to_le_bytes());
        }
        for part in [name, description] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn build_id_is_found_among_other_notes() {
        let other = note(1, b"GNU\0", &[9; 16]);
        let id = note(3, b"GNU\0", b"twenty bytes of hash");
        assert_eq!(build_id(&[other.clone(), id.clone()].concat()), Some(&b"twenty bytes of hash"[..]));
        assert_eq!(build_id(&other), None);
        assert_eq!(build_id(&id[..id.len() - 4]), None, "cut off");
        assert_eq!(build_id(&note(3, b"Go\0\0", b"twenty bytes of hash")), None);
        assert_eq!(build_id(&note(u32::MAX, b"GNU\0", b"")[..13]), None);
    }

    #[test]
    fn own_program_can_be_read_and_nothing_else() {
        let program = Program::find().expect("a program");
        let code = own_program_can_be_read_and_nothing_else as fn() as usize;
        assert_eq!(program.code(code..code + 4).map(<[u8]>::len), Some(4));
        let mut local = 0_u64;
        let on_the_stack = (&raw mut local).addr();
        assert_eq!(program.word(on_the_stack), None);
        assert_eq!(program.word(usize::MAX - 3), None);
        assert_eq!(program.code(0..8), None);
    }
}
