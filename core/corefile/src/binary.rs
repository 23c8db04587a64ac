//! The program that died: what it is, and what it says about V8's objects.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};

use crate::bytes::int;
use crate::error::CoreError;
use crate::image::Image;
use crate::map::Mapped;

/// A program or shared library that V8 is in.
#[derive(Debug)]
pub(crate) struct Binary {
    pub(crate) path: PathBuf,
    /// The release, such as 24.21.0, where the program tells.
    pub(crate) node: Option<String>,
    /// The release of its V8, such as 13.6.233.17-node.53.
    pub(crate) v8: Option<String>,
    /// `v8dbg_` constants, without the prefix.
    pub(crate) constants: HashMap<String, i64>,
    /// Where in a heap its state is, for a program that tells.
    pub(crate) heap_state: Option<u64>,
}

impl Binary {
    /// The program the user named, or the first of those that were mapped which knows V8.
    pub(crate) fn find(image: &Image<'_>, named: Option<&Path>) -> Result<Self, CoreError> {
        if let Some(path) = named {
            return Self::read(Some(image), path, mapped_at(image, path));
        }
        let mut problem = None;
        for file in image.files.iter().filter(|file| may_hold_v8(&file.path)) {
            let path = Path::new(&file.path);
            match Self::read(Some(image), path, Some(file.start)) {
                Ok(binary) => return Ok(binary),
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        let of_others = || match image.files.first() {
            Some(file) => {
                CoreError::NotNode { program: file.path.chars().filter(|one| !one.is_control()).collect() }
            }
            None => CoreError::NoBinary { why: "the core file names no programs".to_owned() },
        };
        Err(problem.unwrap_or_else(of_others))
    }

    /// A program, whatever it is that died.
    pub(crate) fn alone(path: &Path) -> Result<Self, CoreError> {
        Self::read(None, path, None)
    }

    pub(crate) fn read(image: Option<&Image<'_>>, path: &Path, base: Option<u64>) -> Result<Self, CoreError> {
        let read = |error| CoreError::Read { path: path.to_owned(), error };
        let other = |why: &str| CoreError::OtherBinary { path: path.to_owned(), why: why.to_owned() };
        let file = std::fs::File::open(path).map_err(read)?;
        let bytes = Mapped::of(&file).map_err(read)?;
        let elf = object::File::parse(&*bytes).map_err(|_| other("it is no ELF file"))?;
        if let Some(image) = image {
            same_build(image, &elf, base).map_err(other)?;
        }
        let (constants, heap_state) = symbols(&elf);
        if !constants.contains_key("class_HeapObject__map__Map") {
            return Err(CoreError::NoSymbols { path: path.to_owned() });
        }
        let texts = elf.section_by_name(".rodata").and_then(|section| section.data().ok()).unwrap_or(&[]);
        Ok(Self {
            path: path.to_owned(),
            node: release(texts),
            v8: release_of_v8(texts),
            constants,
            heap_state,
        })
    }
}

fn may_hold_v8(path: &str) -> bool {
    let name = path.trim_end_matches(" (deleted)").rsplit('/').next().unwrap_or_default();
    name.starts_with("node") || name.starts_with("libnode.so") || name.starts_with("electron")
}

fn mapped_at(image: &Image<'_>, path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let same = |mapped: &str| mapped.rsplit('/').next() == Some(&*name);
    image.files.iter().find(|file| same(&file.path)).map(|file| file.start)
}

/// The core keeps the first page of each program, and with it the build-id.
fn same_build(image: &Image<'_>, elf: &object::File<'_>, base: Option<u64>) -> Result<(), &'static str> {
    let (Ok(Some(expected)), Some(base)) = (elf.build_id(), base) else { return Ok(()) };
    let lowest = elf.segments().map(|segment| segment.address()).min().unwrap_or(0) & !0xfff;
    let bias = base.wrapping_sub(lowest);
    let Some(note) = elf.section_by_name(".note.gnu.build-id") else { return Ok(()) };
    let there = image.at(note.address().wrapping_add(bias), 16 + expected.len());
    // Not kept: nothing to compare with.
    if there.len() < 16 + expected.len() || int(there, 8) != 3 {
        return Ok(());
    }
    if there[16..] == *expected { Ok(()) } else { Err("its build-id differs from the one in the core file") }
}

/// The constants, and where a heap keeps its state. A program has some hundred thousand symbols, which are looked through once.
fn symbols(elf: &object::File<'_>) -> (HashMap<String, i64>, Option<u64>) {
    let (mut constants, mut heap_state) = (HashMap::new(), None);
    for symbol in elf.dynamic_symbols().chain(elf.symbols()) {
        let Ok(name) = symbol.name() else { continue };
        let bytes = |length| {
            let section = symbol.section_index().and_then(|index| elf.section_by_index(index).ok());
            section.and_then(|section| section.data_range(symbol.address(), length).ok().flatten())
        };
        if name == SETTER && symbol.is_definition() {
            heap_state = heap_state.or_else(|| stored_at(bytes(SETTER_SIZE)?));
        }
        let Some(name) = name.strip_prefix("v8dbg_") else { continue };
        if constants.contains_key(name) || !symbol.is_definition() {
            continue;
        }
        // Zeros are in .bss, which has no bytes.
        constants.insert(name.to_owned(), bytes(4).map_or(0, |bytes| i64::from(int(bytes, 0).cast_signed())));
    }
    (constants, heap_state)
}

/// No `v8dbg_` symbol tells where a heap keeps whether it is being collected. The function that sets it does nothing else.
const SETTER: &str = "_ZN2v88internal4Heap10SetGCStateENS1_9HeapStateE";
const SETTER_SIZE: u64 = 20;

/// Of `mov [rdi + offset], esi` and a return: the offset. Builds differ in what is around it.
fn stored_at(code: &[u8]) -> Option<u64> {
    const LANDING: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const FRAME: &[u8] = &[0x55, 0x48, 0x89, 0xe5];
    let code = code.strip_prefix(LANDING).unwrap_or(code);
    let (code, end): (_, &[u8]) = match code.strip_prefix(FRAME) {
        Some(body) => (body, &[0x5d, 0xc3]),
        None => (code, &[0xc3]),
    };
    let (offset, rest) = code.strip_prefix(&[0x89, 0xb7])?.split_first_chunk()?;
    rest.starts_with(end).then(|| u64::from(u32::from_le_bytes(*offset)))
}

/// Each release carries the address that its headers are downloaded from.
fn release(texts: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = b"/download/release/v";
    let version = &texts[memchr::memmem::find(texts, BEFORE)? + BEFORE.len()..];
    let length = version.iter().take(12).take_while(|&&byte| is_version(byte)).count();
    let version = str::from_utf8(&version[..length]).ok()?;
    (version.split('.').count() == 3).then(|| version.to_owned())
}

/// Four numbers, what Node.js calls its variant, and how many changes that has.
fn release_of_v8(texts: &[u8]) -> Option<String> {
    const VARIANT: &[u8] = b"-node.";
    memchr::memmem::find_iter(texts, VARIANT).find_map(|at| {
        let before = texts[..at].iter().rev().take(20).take_while(|&&byte| is_version(byte)).count();
        let changes =
            texts[at + VARIANT.len()..].iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
        let version = str::from_utf8(&texts[at - before..at + VARIANT.len() + changes]).ok()?;
        let is_whole = changes > 0 && version.split('.').filter(|part| !part.is_empty()).count() == 5;
        is_whole.then(|| version.to_owned())
    })
}

fn is_version(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'.'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_found_among_other_texts() {
        let texts =
            b"my-node.js\0https://nodejs.org/download/release/v24.21.0/headers\x0013.6.233.17-node.53\0";
        assert_eq!(release(texts).as_deref(), Some("24.21.0"));
        assert_eq!(release_of_v8(texts).as_deref(), Some("13.6.233.17-node.53"));
        assert_eq!((release(b"/download/release/v24"), release_of_v8(b"-node.1")), (None, None));
    }

    #[test]
    fn the_state_is_where_its_setter_stores_it() {
        let store = [0x89, 0xb7, 0x28, 0x02, 0, 0];
        let code = |before: &[u8], after: &[u8]| [before, &store, after].concat();
        // Node 24, 26, and a build with landing pads.
        assert_eq!(stored_at(&code(&[], &[0xc3, 0x66])), Some(0x228));
        assert_eq!(stored_at(&code(&[0x55, 0x48, 0x89, 0xe5], &[0x5d, 0xc3])), Some(0x228));
        assert_eq!(stored_at(&code(&[0xf3, 0x0f, 0x1e, 0xfa], &[0xc3])), Some(0x228));
        // It does something else as well.
        assert_eq!(stored_at(&code(&[], &[0x31, 0xc0, 0xc3])), None);
        assert_eq!(stored_at(&code(&[0x55, 0x48, 0x89, 0xe5], &[0xc3])), None);
        assert_eq!(stored_at(&store), None);
    }
}
