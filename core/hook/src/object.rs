//! A loaded object: its name, its code, and the slots through which it calls others.

use core::ffi::{CStr, c_char, c_void};
use core::ops::Range;
use core::ptr::null;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::arch::{ABSOLUTE, GLOB_DAT, JUMP_SLOT};
use crate::linker::{self, Hold};
use crate::names::{self, Names};
use crate::slots::{self, Found, Hook};
use crate::symbols::Symbols;

const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_VERSYM: u64 = 0x6fff_fff0;
const DT_RELACOUNT: u64 = 0x6fff_fff9;
const DT_SONAME: u64 = 14;
const DT_PLTRELSZ: u64 = 2;
const DT_JMPREL: u64 = 23;

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
#[derive(Clone, Copy)]
pub(crate) struct Relocation {
    pub(crate) hook: &'static Hook,
    pub(crate) slot: *mut c_void,
    /// It may be bound only at the first call.
    pub(crate) is_lazy: bool,
}

/// An object that stays loaded as long as this value exists.
pub(crate) struct Object {
    hold: Hold,
    is_of_hasten: bool,
    is_left_alone: bool,
    code: Vec<Range<usize>>,
    read_only: Range<usize>,
    soname: &'static CStr,
    symbols: Symbols,
    tables: [&'static [Rela]; 2],
}

impl Object {
    /// Takes a reference so that the object stays loaded; `None` if it is gone or makes no calls to others.
    pub(crate) fn open(found: &Found) -> Option<Object> {
        let mut object = Object {
            hold: Hold::take(found)?,
            is_of_hasten: is_of_hasten(&found.name),
            is_left_alone: false,
            code: Vec::new(),
            read_only: 0..0,
            soname: c"",
            symbols: Symbols {
                base: found.base,
                table: null(),
                strings: null(),
                gnu_hash: null(),
                hash: null(),
                versions: null(),
            },
            tables: [&[], &[]],
        };
        // SAFETY: the object stays loaded from here on. If it was unloaded and loaded again in between, either its
        // headers have moved or it is the same object.
        let is_read = unsafe { slots::is_loaded(found) && object.read(found) };
        object.is_left_alone = linker::is_left_alone(&found.name, object.soname());
        is_read.then_some(object)
    }

    /// Reads the program headers and the dynamic section.
    ///
    /// # Safety
    ///
    /// The object is loaded and relocated, its headers are where `found` says, and it stays loaded as long as `self`.
    unsafe fn read(&mut self, found: &Found) -> bool {
        // SAFETY: headers of a loaded object.
        let headers = unsafe {
            core::slice::from_raw_parts(found.headers as *const libc::Elf64_Phdr, found.header_count)
        };
        let mut dynamic: *const Dynamic = null();
        for header in headers {
            let start = self.symbols.base + header.p_vaddr as usize;
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

    /// # Safety
    ///
    /// `entry` is the start of the object's dynamic section, and the conditions of [`Object::read`] hold.
    unsafe fn read_dynamic(&mut self, mut entry: *const Dynamic) -> bool {
        let (mut soname, mut sizes, mut starts, mut without_name) = (0, [0; 2], [0; 2], 0);
        // SAFETY: the section ends with a null tag; the tables it names are mapped with the object.
        unsafe {
            while (*entry).tag != 0 {
                let Dynamic { tag, value } = *entry;
                match tag {
                    DT_STRTAB => self.symbols.strings = self.address(value) as *const c_char,
                    DT_SYMTAB => self.symbols.table = self.address(value) as *const libc::Elf64_Sym,
                    DT_SONAME => soname = value as usize,
                    DT_JMPREL => starts[0] = self.address(value),
                    DT_PLTRELSZ => sizes[0] = value as usize,
                    DT_RELA => starts[1] = self.address(value),
                    DT_RELASZ => sizes[1] = value as usize,
                    DT_RELACOUNT => without_name = value as usize,
                    DT_GNU_HASH => self.symbols.gnu_hash = self.address(value) as *const u32,
                    DT_HASH => self.symbols.hash = self.address(value) as *const u32,
                    DT_VERSYM => self.symbols.versions = self.address(value) as *const u16,
                    _ => {}
                }
                entry = entry.add(1);
            }
            if self.symbols.strings.is_null() || self.symbols.table.is_null() {
                return false;
            }
            if soname != 0 {
                self.soname = CStr::from_ptr(self.symbols.strings.add(soname));
            }
            for ((table, start), size) in self.tables.iter_mut().zip(starts).zip(sizes) {
                if start != 0 {
                    *table = core::slice::from_raw_parts(start as *const Rela, size / size_of::<Rela>());
                }
            }
            // The linker sorts entries that only add the base to the front, and gives their number.
            self.tables[1] = self.tables[1].get(without_name..).unwrap_or(self.tables[1]);
        }
        true
    }

    /// glibc has already added the base to the values it uses itself, but not to the others.
    fn address(&self, value: u64) -> usize {
        let value = value as usize;
        if value < self.symbols.base { self.symbols.base + value } else { value }
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

    /// Whether the object is the library this code is in.
    pub(crate) fn is_own(&self) -> bool {
        self.has_code_at(crate::original::Library::is as *const () as usize)
    }

    /// Whether it is one of the preload libraries, whose own calls stay untouched: they look up the functions they
    /// hook, for example.
    pub(crate) fn is_of_hasten(&self) -> bool {
        self.is_of_hasten || self.is_own()
    }

    /// Whether its own calls are left alone, as those of the C library are.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.is_left_alone
    }

    /// The object's own definition of a name, or null.
    pub(crate) fn find(&self, name: &CStr) -> *mut c_void {
        self.hold.find(&self.symbols, name)
    }

    /// Pins the object for the life of the process; returns it as `linker::find` takes it.
    pub(crate) fn pin(&self) -> *mut c_void {
        self.hold.pin(&self.symbols)
    }

    /// Visits every slot that holds the address of a hooked function.
    pub(crate) fn each_relocation(&self, names: &Names, mut visit: impl FnMut(Relocation)) {
        let count: usize = self.tables.iter().map(|table| table.len()).sum();
        // Most relocations of a large object refer to its own symbols; asking once for the few hooked names is quicker.
        let defines_any =
            count < WORTH_ASKING || names.hooks().any(|(hash, hook)| self.symbols.defines(hook.name, hash));
        for rela in self.tables.iter().copied().flatten() {
            let kind = rela.symbol_and_kind as u32;
            let is_slot = match kind {
                JUMP_SLOT | GLOB_DAT => true,
                ABSOLUTE => rela.addend == 0,
                _ => false,
            };
            let symbol = (rela.symbol_and_kind >> 32) as usize;
            if !is_slot || symbol == 0 {
                continue;
            }
            // SAFETY: the symbol is in a table of the object, which stays loaded.
            let symbol = unsafe { &*self.symbols.table.add(symbol) };
            if !defines_any && symbol.st_shndx != 0 {
                continue;
            }
            // SAFETY: as is its name.
            let hook = unsafe { names.find(self.symbols.strings.add(symbol.st_name as usize)) };
            if let Some(hook) = hook {
                let slot = (self.symbols.base + rela.offset as usize) as *mut c_void;
                visit(Relocation { hook, slot, is_lazy: kind == JUMP_SLOT });
            }
        }
    }

    /// Whether the object defines a symbol of this name, in any version.
    pub(crate) fn defines(&self, name: &CStr) -> bool {
        self.symbols.defines(name, names::hash(name.to_bytes()))
    }

    /// Writes to slots; returns whether all could be written. Pages that the linker has made read-only are read-only
    /// again afterwards.
    ///
    /// # Safety
    ///
    /// The slots belong to this object, and every caller through a slot can call the value it receives.
    pub(crate) unsafe fn write(&self, values: &[(*mut c_void, *mut c_void)]) -> bool {
        let (sealed, open): (Vec<_>, Vec<_>) =
            values.iter().copied().partition(|(slot, _)| self.is_sealed(*slot));
        // SAFETY: aligned, writable words of the object; other threads see either the old or the new address.
        let store = |(slot, value): (*mut c_void, *mut c_void)| unsafe {
            (*slot.cast::<AtomicPtr<c_void>>()).store(value, Ordering::Release);
        };
        open.into_iter().for_each(store);
        // One call per run of pages instead of two per slot: a program may have hundreds of slots in a few pages.
        let mut sealed = sealed;
        sealed.sort_unstable_by_key(|(slot, _)| *slot as usize);
        let mut is_complete = true;
        for run in sealed.chunk_by(|(slot, _), (next, _)| page(*next) <= page(*slot) + PAGE) {
            let (start, end) = (page(run[0].0), page(run[run.len() - 1].0) + PAGE);
            let protect = |protection| {
                // SAFETY: pages of the object's own data, all of them sealed: nothing relies on a write to them
                // failing.
                unsafe { libc::mprotect(start as *mut c_void, end - start, protection) == 0 }
            };
            if protect(libc::PROT_READ | libc::PROT_WRITE) {
                run.iter().copied().for_each(store);
                protect(libc::PROT_READ);
            } else {
                is_complete = false;
            }
        }
        is_complete
    }

    /// Whether the linker has made the slot read-only; the linker rounds the end of the region down.
    fn is_sealed(&self, slot: *mut c_void) -> bool {
        (self.read_only.start..self.read_only.end & !(PAGE - 1)).contains(&(slot as usize))
    }
}

const PAGE: usize = 4096;

/// From this many relocations on, it pays to ask first what the object defines.
const WORTH_ASKING: usize = 512;

fn page(slot: *mut c_void) -> usize {
    slot as usize & !(PAGE - 1)
}

/// Whether a file is a preload library or the loader for them.
pub(crate) fn is_of_hasten(path: &CStr) -> bool {
    let path = path.to_bytes();
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path).starts_with(b"libhasten")
}

#[cfg(test)]
mod tests {
    use core::ptr::null_mut;

    use super::*;
    use crate::original::Library;
    use crate::slots::By;

    static UNKNOWN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

    const fn hook(name: &'static CStr) -> Hook {
        let (library, by, function) = (Library::C, By::Everyone, null());
        Hook { name, library, by, required: false, function, original: &UNKNOWN }
    }

    /// A mix of names that the C library and this program call or do not call; this program defines most of its symbols
    /// itself.
    static HOOKS: [Hook; 6] = [
        hook(c"malloc"),
        hook(c"write"),
        hook(c"_Unwind_Resume"),
        hook(c"__cxa_finalize"),
        hook(c"crosscall2"),
        hook(c"dl_iterate_phdr"),
    ];

    fn objects() -> Vec<Object> {
        slots::loaded().0.iter().filter_map(Object::open).collect()
    }

    /// The slots without shortcuts: every relocation, looked up by name.
    fn slots_of(object: &Object) -> Vec<(usize, &'static CStr)> {
        let mut found = Vec::new();
        for rela in object.tables.iter().copied().flatten() {
            let (kind, symbol) = (rela.symbol_and_kind as u32, (rela.symbol_and_kind >> 32) as usize);
            let is_slot = matches!(kind, JUMP_SLOT | GLOB_DAT) || kind == ABSOLUTE && rela.addend == 0;
            if is_slot && symbol != 0 {
                // SAFETY: tables of an object that stays loaded.
                let name = unsafe {
                    CStr::from_ptr(
                        object.symbols.strings.add((*object.symbols.table.add(symbol)).st_name as usize),
                    )
                };
                let hook = HOOKS.iter().find(|hook| hook.name == name);
                found.extend(hook.map(|hook| (object.symbols.base + rela.offset as usize, hook.name)));
            }
        }
        found
    }

    #[test]
    fn no_shortcut_misses_a_slot() {
        let names = Names::of(&[&HOOKS]);
        let mut count = 0;
        for object in objects() {
            let mut found = Vec::new();
            object.each_relocation(&names, |at| found.push((at.slot as usize, at.hook.name)));
            assert_eq!(found, slots_of(&object), "{:?}", object.soname);
            count += found.len();
        }
        assert!(count > 3, "{count} slots");
    }

    #[test]
    fn what_an_object_defines_is_what_dlsym_finds_in_it() {
        let objects = objects();
        let of = |soname: &[u8]| objects.iter().find(|object| object.soname() == soname);
        let libc = of(b"libc.so.6").expect("a C library");
        for name in [c"malloc", c"write", c"__cxa_finalize", c"environ", c"dl_iterate_phdr"] {
            assert!(libc.defines(name), "{name:?}");
        }
        for name in [c"crosscall2", c"", c"mallo", c"malloc2", c"_Unwind_Resume"] {
            assert!(!libc.defines(name), "{name:?}");
        }
        assert!(!objects[0].defines(c"malloc"), "it is only called there");
    }

    #[test]
    fn tables_give_the_address_that_dlsym_gives() {
        let objects = objects();
        let libc = objects.iter().find(|object| object.soname() == b"libc.so.6").expect("a C library");
        let tables = libc.symbols;
        let without_hashes = Symbols { gnu_hash: null(), ..tables };
        // `realpath` and `pthread_cond_wait` have older versions, too.
        for name in [c"malloc", c"write", c"environ", c"realpath", c"pthread_cond_wait"] {
            let expected = libc.find(name);
            assert!(!expected.is_null(), "{name:?}");
            assert_eq!(tables.find(name), Some(expected), "{name:?}");
            let is_searched = !without_hashes.hash.is_null();
            assert_eq!(without_hashes.find(name), is_searched.then_some(expected), "{name:?} one by one");
        }
        assert_eq!(tables.find(c"crosscall2"), None);
    }

    #[test]
    fn slots_are_written_and_sealed_again() {
        let objects = objects();
        let program = &objects[0];
        let mut slots = Vec::new();
        program.each_relocation(&Names::of(&[&HOOKS]), |at| slots.push(at.slot));
        // SAFETY: slots of a relocated object.
        let held = |slot: &*mut c_void| unsafe { *slot.cast::<*mut c_void>() };
        let same: Vec<_> = slots.iter().map(|slot| (*slot, held(slot))).collect();
        assert!(!same.is_empty());
        // SAFETY: writes the values that are already there.
        assert!(unsafe { program.write(&same) });
        assert_eq!(
            slots.iter().map(held).collect::<Vec<_>>(),
            same.iter().map(|(_, held)| *held).collect::<Vec<_>>()
        );
        let maps = std::fs::read_to_string("/proc/self/maps").expect("proc");
        let protection = |slot: usize| {
            maps.lines().find_map(|line| {
                let (range, rest) = line.split_once(' ')?;
                let (start, end) = range.split_once('-')?;
                let number = |text| usize::from_str_radix(text, 16).ok();
                (number(start)?..number(end)?).contains(&slot).then(|| rest[..2].to_owned())
            })
        };
        for slot in slots.into_iter().filter(|slot| program.is_sealed(*slot)) {
            assert_eq!(protection(slot as usize).as_deref(), Some("r-"));
        }
    }
}
