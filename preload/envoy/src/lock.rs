//! Whether this process is a build of Envoy that is known: by its build-id, and by the code that shows how the objects
//! are laid out.

use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};

use hasten_envoy_builds::{BOMB_PROTECTION, Build, Class, Code, fingerprint};

use crate::program::Program;

/// Why nothing is replaced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No build with this build-id is known.
    Unknown { build_id: Option<String> },
    /// It has the build-id of a known build, but this class, or a function of it, differs.
    Differs { class: &'static str },
    /// The kernel refused to make the table writable.
    Protected,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { build_id } => {
                write!(
                    f,
                    "this build of Envoy is not known: build-id {}",
                    build_id.as_deref().unwrap_or("missing")
                )
            }
            Self::Differs { class } => write!(f, "Envoy has a known build-id but other code: {class}"),
            Self::Protected => f.write_str("the kernel does not permit a change of Envoy's tables"),
        }
    }
}

/// The known build that this process is, verified.
pub(crate) fn open(program: &Program) -> Result<&'static Build, Refusal> {
    let build_id = program.build_id();
    let build = build_id.as_deref().and_then(Build::of).ok_or(Refusal::Unknown { build_id })?;
    for (name, class) in classes(build) {
        if !is_class(program, name, class) {
            return Err(Refusal::Differs { class: name });
        }
    }
    for (name, code) in build.tls.boring.functions() {
        if !is_same(program, code) {
            return Err(Refusal::Differs { class: name });
        }
    }
    for (name, information) in build.gzip.interfaces() {
        if !has_name(program, program.at(information), name) {
            return Err(Refusal::Differs { class: name });
        }
    }
    if !has_text(program, program.at(build.gzip.bomb_protection), BOMB_PROTECTION) {
        return Err(Refusal::Differs { class: BOMB_PROTECTION });
    }
    Ok(build)
}

fn classes(build: &Build) -> impl Iterator<Item = (&'static str, &Class)> {
    build.gzip.classes().into_iter().chain(build.tls.classes())
}

/// Whether the class is where the table has it, with the code that it has.
fn is_class(program: &Program, name: &str, class: &Class) -> bool {
    let table = program.at(class.table);
    // In front of the functions are the way to the whole object, and the type information.
    let is_there = program.word(table - 16) == Some(class.base.wrapping_neg());
    let is_its = program.word(table - 8).is_some_and(|information| has_name(program, information, name));
    let has_code = class.functions.iter().all(|function| {
        let entry = program.word(table + function.slot * 8);
        let is_first = entry == function.code.first().map(|code| program.at(code.address));
        is_first && function.code.iter().all(|code| is_same(program, code))
    });
    is_there && is_its && has_code
}

fn is_same(program: &Program, code: &Code) -> bool {
    let start = program.at(code.address);
    let bytes = program.code(start..start.saturating_add(code.length));
    bytes.is_some_and(|bytes| fingerprint(bytes) == code.fingerprint)
}

/// Whether this is type information of that name, which is its second word.
fn has_name(program: &Program, information: usize, name: &str) -> bool {
    let address = || program.word(information.checked_add(8)?);
    address().is_some_and(|address| has_text(program, address, name))
}

/// Whether this text is there, with a zero at its end.
fn has_text(program: &Program, address: usize, text: &str) -> bool {
    let bytes = || program.bytes(address..address.checked_add(text.len() + 1)?);
    bytes().is_some_and(|bytes| bytes.strip_suffix(b"\0") == Some(text.as_bytes()))
}

/// The entry of a class's table for one of its functions.
pub(crate) fn entry(program: &Program, class: &Class, index: usize) -> usize {
    program.at(class.table) + class.functions[index].slot * 8
}

/// Replaces an entry of a table of virtual functions, and returns what was there.
///
/// # Safety
///
/// `entry` is the address of such an entry in `program`, and `function` can be called in place of what is there. No other
/// thread of the process is running yet.
pub(crate) unsafe fn replace(program: &Program, entry: usize, function: usize) -> Result<usize, Refusal> {
    const PAGE: usize = 4096;
    let page = entry & !(PAGE - 1);
    let pages: *mut libc::c_void = core::ptr::with_exposed_provenance_mut(page);
    let is_protected = program.is_protected(&(entry..entry + 8));
    // SAFETY: the page belongs to the program's data, which stays readable throughout, and an entry does not cross it.
    unsafe {
        if is_protected && libc::mprotect(pages, PAGE, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            return Err(Refusal::Protected);
        }
        let slot = AtomicUsize::from_ptr(core::ptr::with_exposed_provenance_mut(entry));
        let original = slot.swap(function, Ordering::Relaxed);
        if is_protected {
            libc::mprotect(pages, PAGE, libc::PROT_READ);
        }
        Ok(original)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_program_is_not_known() {
        let program = Program::find().expect("a program");
        let refusal = open(&program).expect_err("these tests are no Envoy");
        assert!(matches!(refusal, Refusal::Unknown { .. }), "{refusal}");
        for build in hasten_envoy_builds::BUILDS {
            for (name, class) in classes(build) {
                assert!(!is_class(&program, name, class), "{}", build.release);
            }
        }
    }
}
