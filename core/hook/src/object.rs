//! A loaded object: its name, its code, and the slots through which it calls others.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_void};
use core::ops::Range;
use core::ptr::null;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::slots::Found;

const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_SONAME: u64 = 14;
const DT_PLTRELSZ: u64 = 2;
const DT_JMPREL: u64 = 23;

const R_X86_64_64: u32 = 1;
const R_X86_64_GLOB_DAT: u32 = 6;
const R_X86_64_JUMP_SLOT: u32 = 7;

const PT_GNU_RELRO: u32 = 0x6474_e552;

#[repr(C)]
struct Dynamic {
    tag: u64,
    value: u64,
}

#[repr(C)]
struct Rela {
    offset: u64,
    symbol_and_kind: u64,
    addend: i64,
}

/// A slot, and the function whose address it is for.
pub(crate) struct Relocation<'a> {
    pub(crate) name: &'a CStr,
    pub(crate) slot: *mut c_void,
    /// Bound at the first call, perhaps.
    pub(crate) is_lazy: bool,
}

/// An object that stays loaded while this exists.
pub(crate) struct Object {
    handle: *mut c_void,
    is_of_hasten: bool,
    /// Stays loaded when this is gone.
    is_pinned: Cell<bool>,
    base: usize,
    code: Vec<Range<usize>>,
    read_only: Range<usize>,
    soname: &'static CStr,
    symbols: *const libc::Elf64_Sym,
    strings: *const c_char,
    tables: [&'static [Rela]; 2],
}

impl Drop for Object {
    fn drop(&mut self) {
        if !self.is_pinned.get() {
            // SAFETY: the reference that `open` took.
            unsafe { libc::dlclose(self.handle) };
        }
    }
}

impl Object {
    /// Takes a reference to what was found, so that it stays; `None` if it is gone, or nothing that calls others.
    pub(crate) fn open(found: &Found) -> Option<Object> {
        let name = if found.name.is_empty() { null() } else { found.name.as_ptr() };
        // SAFETY: a C string or null; nothing is loaded by this. It waits for a thread that is in
        // the middle of loading the object, so what is returned is relocated.
        let handle = unsafe { libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            return None;
        }
        let mut object = Object {
            handle,
            is_of_hasten: is_of_hasten(&found.name),
            is_pinned: Cell::new(false),
            base: found.base,
            code: Vec::new(),
            read_only: 0..0,
            soname: c"",
            symbols: null(),
            strings: null(),
            tables: [&[], &[]],
        };
        // SAFETY: the object stays loaded from here on. One that was unloaded and loaded again in between
        // has its headers elsewhere, or is the same.
        unsafe { (is_mapped(found) && object.read(found)).then_some(object) }
    }

    /// Reads the program headers and the dynamic section.
    unsafe fn read(&mut self, found: &Found) -> bool {
        // SAFETY: headers of a loaded object.
        let headers = unsafe {
            core::slice::from_raw_parts(found.headers as *const libc::Elf64_Phdr, found.header_count)
        };
        let mut dynamic: *const Dynamic = null();
        for header in headers {
            let start = self.base + header.p_vaddr as usize;
            let range = start..start + header.p_memsz as usize;
            match header.p_type {
                libc::PT_LOAD if header.p_flags & libc::PF_X != 0 => self.code.push(range),
                libc::PT_DYNAMIC => dynamic = start as *const Dynamic,
                PT_GNU_RELRO => self.read_only = range,
                _ => {}
            }
        }
        // SAFETY: the dynamic section of a loaded object.
        !dynamic.is_null() && unsafe { self.read_dynamic(dynamic) }
    }

    unsafe fn read_dynamic(&mut self, mut entry: *const Dynamic) -> bool {
        let (mut soname, mut sizes, mut starts) = (0, [0; 2], [0; 2]);
        // SAFETY: the section ends with a null tag; the tables it names are mapped with the object.
        unsafe {
            while (*entry).tag != 0 {
                let Dynamic { tag, value } = *entry;
                match tag {
                    DT_STRTAB => self.strings = self.address(value) as *const c_char,
                    DT_SYMTAB => self.symbols = self.address(value) as *const libc::Elf64_Sym,
                    DT_SONAME => soname = value as usize,
                    DT_JMPREL => starts[0] = self.address(value),
                    DT_PLTRELSZ => sizes[0] = value as usize,
                    DT_RELA => starts[1] = self.address(value),
                    DT_RELASZ => sizes[1] = value as usize,
                    _ => {}
                }
                entry = entry.add(1);
            }
            if self.strings.is_null() || self.symbols.is_null() {
                return false;
            }
            if soname != 0 {
                self.soname = CStr::from_ptr(self.strings.add(soname));
            }
            for ((table, start), size) in self.tables.iter_mut().zip(starts).zip(sizes) {
                if start != 0 {
                    *table = core::slice::from_raw_parts(start as *const Rela, size / size_of::<Rela>());
                }
            }
        }
        true
    }

    /// glibc has added the base to what it uses itself; others have not.
    fn address(&self, value: u64) -> usize {
        let value = value as usize;
        if value < self.base { self.base + value } else { value }
    }

    pub(crate) fn soname(&self) -> &[u8] {
        self.soname.to_bytes()
    }

    pub(crate) fn has_code_at(&self, address: usize) -> bool {
        self.code.iter().any(|range| range.contains(&address))
    }

    pub(crate) fn code(&self) -> &[Range<usize>] {
        &self.code
    }

    /// The library that this code is in.
    pub(crate) fn is_own(&self) -> bool {
        self.has_code_at(crate::original::Library::is as *const () as usize)
    }

    /// Whether it is one of the preload libraries, whose calls are nobody's business: that they look for the functions that
    /// they stand in for, say.
    pub(crate) fn is_of_hasten(&self) -> bool {
        self.is_of_hasten || self.is_own()
    }

    /// What `dlsym` takes; valid as long as this is.
    pub(crate) fn handle(&self) -> *mut c_void {
        self.handle
    }

    /// A handle that keeps the object loaded for ever.
    pub(crate) fn pin(&self) -> *mut c_void {
        self.is_pinned.set(true);
        self.handle
    }

    /// Visits every slot that is for a function or an address by name.
    pub(crate) fn each_relocation(&self, mut visit: impl FnMut(Relocation<'_>)) {
        for rela in self.tables.iter().copied().flatten() {
            let kind = rela.symbol_and_kind as u32;
            let is_slot = match kind {
                R_X86_64_JUMP_SLOT | R_X86_64_GLOB_DAT => true,
                R_X86_64_64 => rela.addend == 0,
                _ => false,
            };
            let symbol = (rela.symbol_and_kind >> 32) as usize;
            if !is_slot || symbol == 0 {
                continue;
            }
            // SAFETY: the symbol and its name are in tables of the object, which stays loaded.
            let name =
                unsafe { CStr::from_ptr(self.strings.add((*self.symbols.add(symbol)).st_name as usize)) };
            let slot = (self.base + rela.offset as usize) as *mut c_void;
            visit(Relocation { name, slot, is_lazy: kind == R_X86_64_JUMP_SLOT });
        }
    }

    /// Writes a slot; whether that was possible. What the linker has made read-only is so again afterwards.
    ///
    /// # Safety
    ///
    /// The slot is one of this object, and whoever calls through it can call `value`.
    pub(crate) unsafe fn write(&self, slot: *mut c_void, value: *mut c_void) -> bool {
        const PAGE: usize = 4096;
        let page = (slot as usize & !(PAGE - 1)) as *mut c_void;
        let protect = |protection| {
            // SAFETY: a page of the object's own data, of which nobody expects a write to fail.
            unsafe { libc::mprotect(page, PAGE, protection) == 0 }
        };
        // The linker rounds the end of the region down.
        let sealed =
            self.read_only.start <= slot as usize && (slot as usize) < self.read_only.end & !(PAGE - 1);
        if sealed && !protect(libc::PROT_READ | libc::PROT_WRITE) {
            return false;
        }
        // SAFETY: an aligned word of the object, writable now; other threads see the old or the new address.
        unsafe { (*slot.cast::<AtomicPtr<c_void>>()).store(value, Ordering::Release) };
        if sealed {
            protect(libc::PROT_READ);
        }
        true
    }
}

/// Whether a file is a preload library, or what loads them.
pub(crate) fn is_of_hasten(path: &CStr) -> bool {
    let path = path.to_bytes();
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path).starts_with(b"libhasten")
}

/// Whether the headers are still mapped where they were found.
fn is_mapped(found: &Found) -> bool {
    let (list, _) = crate::slots::loaded();
    list.contains(found)
}
