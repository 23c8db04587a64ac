//! The symbols of a loaded object, as its own tables have them.

use core::ffi::{CStr, c_char, c_void};

use crate::names;

/// Of a symbol's version: callers that name no version do not get it.
const HIDDEN: u16 = 0x8000;

/// The tables of an object that stays loaded as long as they are used.
#[derive(Clone, Copy)]
pub(crate) struct Symbols {
    pub(crate) base: usize,
    pub(crate) table: *const libc::Elf64_Sym,
    pub(crate) strings: *const c_char,
    /// `DT_GNU_HASH`, or null.
    pub(crate) gnu_hash: *const u32,
    /// `DT_HASH`, or null.
    pub(crate) hash: *const u32,
    /// `DT_VERSYM`, or null.
    pub(crate) versions: *const u16,
}

impl Symbols {
    /// Where the object's definition of a name is, in the default version.
    #[cfg_attr(
        not(any(target_env = "musl", test)),
        expect(dead_code, reason = "glibc's dlsym knows its own rules")
    )]
    pub(crate) fn find(&self, name: &CStr) -> Option<*mut c_void> {
        let symbol = self.definition(name, names::hash(name.to_bytes()), |at| self.is_default(at))?;
        Some((self.base + symbol.st_value as usize) as *mut c_void)
    }

    /// Whether the object defines a symbol of this name and hash, in any version.
    pub(crate) fn defines(&self, name: &CStr, hash: u32) -> bool {
        self.definition(name, hash, |_| true).is_some()
    }

    fn definition(&self, name: &CStr, hash: u32, fits: impl Fn(usize) -> bool) -> Option<&libc::Elf64_Sym> {
        if self.gnu_hash.is_null() {
            return self.search(name, fits);
        }
        // SAFETY: the hash table of a loaded object, as its linker built it: four numbers, a filter of 64-bit words,
        // the first symbol of each bucket, and a hash for each symbol from `first` on; the lowest bit of a hash marks
        // the end of its bucket.
        unsafe {
            let [buckets, first, words, shift] = self.gnu_hash.cast::<[u32; 4]>().read();
            let filter = self.gnu_hash.add(4);
            let word = filter.add((hash / 64 % words.max(1)) as usize * 2).cast::<u64>().read_unaligned();
            let bits = 1 << (hash % 64) | 1 << (hash.checked_shr(shift).unwrap_or(0) % 64);
            if buckets == 0 || words == 0 || word & bits != bits {
                return None;
            }
            let starts = filter.add(words as usize * 2);
            let chains = starts.add(buckets as usize);
            let mut symbol = starts.add((hash % buckets) as usize).read();
            while symbol >= first {
                let other = chains.add((symbol - first) as usize).read();
                if other | 1 == hash | 1 && fits(symbol as usize) && self.is_definition(symbol as usize, name)
                {
                    return Some(&*self.table.add(symbol as usize));
                }
                if other & 1 != 0 {
                    return None;
                }
                symbol += 1;
            }
            None
        }
    }

    /// One after the other, in an object of a linker that knew only `DT_HASH`, whose second number is that of the symbols.
    fn search(&self, name: &CStr, fits: impl Fn(usize) -> bool) -> Option<&libc::Elf64_Sym> {
        // SAFETY: null, or a table of the object, which begins with two numbers.
        let count = if self.hash.is_null() { 0 } else { unsafe { self.hash.add(1).read() as usize } };
        // SAFETY: as many symbols as the object has.
        (1..count)
            .find(|at| fits(*at) && unsafe { self.is_definition(*at, name) })
            .map(|at| unsafe { &*self.table.add(at) })
    }

    /// # Safety
    ///
    /// The object has a symbol of this number.
    unsafe fn is_definition(&self, at: usize, name: &CStr) -> bool {
        // SAFETY: as the contract says; its name is a C string among the object's.
        unsafe {
            let symbol = &*self.table.add(at);
            symbol.st_shndx != 0 && CStr::from_ptr(self.strings.add(symbol.st_name as usize)) == name
        }
    }

    fn is_default(&self, at: usize) -> bool {
        // SAFETY: null, or a table with a number for each symbol.
        self.versions.is_null() || unsafe { self.versions.add(at).read() } & HIDDEN == 0
    }
}
