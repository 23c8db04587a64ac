//! The hooks by name. A process has up to a hundred thousand relocations, of which a few dozen are for a hook, so a
//! miss must be cheap.

use core::ffi::{CStr, c_char};

use crate::slots::Hook;

/// Finds the hook for a name: if there are several, the first.
#[derive(Debug)]
pub(crate) struct Names {
    /// A bit for each pair of bytes that starts a name. No C++ name starts like one of ours.
    beginnings: [u64; Names::BEGINNINGS / 64],
    /// Ordered by hash, then by position in the tables.
    hooks: Vec<(u32, &'static Hook)>,
}

impl Names {
    const BEGINNINGS: usize = 4096;

    pub(crate) fn of(tables: &[&'static [Hook]]) -> Self {
        let mut names = Self { beginnings: [0; Self::BEGINNINGS / 64], hooks: Vec::new() };
        for hook in tables.iter().flat_map(|table| table.iter()) {
            let name = hook.name.to_bytes();
            if let [first, second, ..] = *hook.name.to_bytes_with_nul() {
                let bit = Self::beginning(first, second);
                names.beginnings[bit / 64] |= 1 << (bit % 64);
            }
            names.hooks.push((hash(name), hook));
        }
        names.hooks.sort_by_key(|(hash, _)| *hash);
        names
    }

    /// All hooks, with the hashes of their names.
    pub(crate) fn hooks(&self) -> impl Iterator<Item = (u32, &'static Hook)> {
        self.hooks.iter().copied()
    }

    const fn beginning(first: u8, second: u8) -> usize {
        ((first as usize) << 6 ^ second as usize) % Self::BEGINNINGS
    }

    /// The hook for a name.
    ///
    /// # Safety
    ///
    /// `name` is a C string.
    pub(crate) unsafe fn find(&self, name: *const c_char) -> Option<&'static Hook> {
        let bytes = name.cast::<u8>();
        // SAFETY: the second byte exists if the first is not the end.
        let bit = unsafe {
            match *bytes {
                0 => return None,
                first => Self::beginning(first, *bytes.add(1)),
            }
        };
        if self.beginnings[bit / 64] & (1 << (bit % 64)) == 0 {
            return None;
        }
        // SAFETY: as the contract says.
        let name = unsafe { CStr::from_ptr(name) };
        let hash = hash(name.to_bytes());
        let at = self.hooks.partition_point(|(other, _)| *other < hash);
        let same = self.hooks[at..].iter().take_while(|(other, _)| *other == hash);
        same.map(|(_, hook)| *hook).find(|hook| hook.name == name)
    }
}

/// The hash function of `DT_GNU_HASH`.
pub(crate) fn hash(name: &[u8]) -> u32 {
    name.iter().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use core::ffi::c_void;
    use core::ptr::{null, null_mut};
    use core::sync::atomic::AtomicPtr;

    use super::*;
    use crate::original::Library;
    use crate::slots::By;

    static NOWHERE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

    const fn hook(name: &'static CStr, by: By) -> Hook {
        let function = null();
        Hook { name, library: Library::C, by, required: false, function, original: &NOWHERE }
    }

    static FIRST: [Hook; 3] =
        [hook(c"read", By::Everyone), hook(c"write", By::Everyone), hook(c"SSL_read", By::Everyone)];
    static SECOND: [Hook; 2] = [hook(c"read", By::Ssl), hook(c"x", By::Ssl)];

    #[test]
    fn the_first_hook_of_a_name_is_found_and_nothing_for_any_other() {
        let names = Names::of(&[&FIRST, &SECOND]);
        // SAFETY: C strings.
        let find = |name: &CStr| unsafe { names.find(name.as_ptr()) };
        for hook in FIRST.iter().chain(&SECOND[1..]) {
            assert!(find(hook.name).is_some_and(|found| core::ptr::eq(found, hook)), "{:?}", hook.name);
        }
        for other in
            [c"", c"r", c"re", c"rea", c"reads", c"SSL_rea", c"_ZN4readEv", c"xx", c"read64", c"write2"]
        {
            assert!(find(other).is_none(), "{other:?}");
        }
        // SAFETY: a C string.
        assert!(unsafe { Names::of(&[]).find(c"read".as_ptr()) }.is_none());
    }

    #[test]
    fn the_hash_is_that_of_the_tables_in_objects() {
        assert_eq!((hash(b""), hash(b"printf"), hash(b"exit")), (0x1505, 0x156b_2bb8, 0x7c96_7e3f));
    }
}
