//! The parts of an ELF file that decide what the dynamic loader does with it.
//!
//! Loader facts come from the program headers, as in the loader itself; symbols come from the section headers
//! and are simply absent if those were stripped. Nothing here trusts the file: it is a fuzz target.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym, SymbolTable};
use object::read::{ReadCache, ReadRef, SymbolIndex};
use object::{Endianness, StringTable};
use serde::Serialize;
use thiserror::Error;

type Header = FileHeader64<Endianness>;

#[derive(Debug, Error)]
pub enum ElfError {
    #[error("cannot read it: {0}")]
    Read(#[from] std::io::Error),
    #[error("it is neither an ELF program nor a script")]
    NotElf,
    #[error("it is a damaged ELF file: {0}")]
    Damaged(#[from] object::read::Error),
}

/// What the loader, and a preload library, need to know of one ELF file.
#[derive(Debug, Clone, Default)]
pub struct Elf {
    pub machine: Machine,
    /// `PT_INTERP`: without it there is no dynamic loader and no preloading.
    pub interpreter: Option<PathBuf>,
    pub needed: Vec<String>,
    /// `DT_RPATH`, ignored by the loader if there is a `runpath`.
    pub rpath: Option<String>,
    pub runpath: Option<String>,
    /// Linked with `-z nodefaultlib`: neither the cache nor the system directories are searched.
    pub no_default_libraries: bool,
}

/// An undefined dynamic symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    pub symbol: String,
    /// The library that its symbol version names, such as `libssl.so.3`.
    pub library: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Machine {
    #[serde(rename = "x86-64")]
    X86_64,
    /// 32-bit x86, or x86-64 code with 32-bit pointers (x32).
    X86,
    Aarch64,
    Other,
    #[default]
    Unknown,
}

impl Machine {
    /// Whose programs run here without an emulator.
    pub const HOST: Self = if cfg!(target_arch = "aarch64") { Self::Aarch64 } else { Self::X86_64 };

    /// Its name.
    pub const HOST_NAME: &'static str = if cfg!(target_arch = "aarch64") { "arm64" } else { "x86-64" };

    /// What distributions call a build for [`Self::HOST`].
    pub const HOST_BUILD: &'static str = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };

    /// Whether it is known to be another than [`Self::HOST`].
    pub fn is_foreign(self) -> bool {
        !matches!(self, Self::HOST | Self::Unknown)
    }

    /// The name by which people know it.
    pub fn label(self) -> &'static str {
        match self {
            Self::X86_64 => "an x86-64",
            Self::X86 => "a 32-bit x86",
            Self::Aarch64 => "an aarch64",
            Self::Other | Self::Unknown => "another machine's",
        }
    }
}

impl Elf {
    /// Reads only the parts of the file that are needed, so that a 100 MB executable costs no more than a small one.
    pub fn open(path: &Path) -> Result<Self, ElfError> {
        with(path, |data| Self::parse(data))
    }

    pub fn parse<'data, R: ReadRef<'data>>(data: R) -> Result<Self, ElfError> {
        let machine = machine(data).ok_or(ElfError::NotElf)?;
        if machine != Machine::HOST {
            let interpreter = Some(PathBuf::new());
            return Ok(Self { machine, interpreter, ..Self::default() });
        }
        let header = Header::parse(data)?;
        let mut elf = Self { machine, ..Self::default() };
        elf.read_segments(header, data)?;
        Ok(elf)
    }

    fn read_segments<'data, R: ReadRef<'data>>(
        &mut self,
        header: &Header,
        data: R,
    ) -> object::read::Result<()> {
        let endian = header.endian()?;
        let segments = header.program_headers(endian, data)?;
        for segment in segments {
            if let Some(interpreter) = segment.interpreter(endian, data)? {
                self.interpreter = Some(PathBuf::from(OsStr::from_bytes(interpreter)));
            }
            if let Some(dynamic) = segment.dynamic(endian, data)? {
                self.read_dynamic(endian, dynamic, segments, data);
            }
        }
        Ok(())
    }

    fn read_dynamic<'data, R: ReadRef<'data>>(
        &mut self,
        endian: Endianness,
        dynamic: &[elf::Dyn64<Endianness>],
        segments: &[elf::ProgramHeader64<Endianness>],
        data: R,
    ) {
        let entries = || dynamic.iter().take_while(|entry| entry.tag(endian) != elf::DT_NULL);
        let value = |tag| entries().find(|entry| entry.tag(endian) == tag).map(|entry| entry.val(endian));
        let strings = dynamic_strings(endian, value(elf::DT_STRTAB), value(elf::DT_STRSZ), segments, data);
        for entry in entries() {
            let string = || text(entry.string(endian, strings).ok()?);
            match entry.tag(endian) {
                elf::DT_NEEDED => self.needed.extend(string()),
                elf::DT_RPATH => self.rpath = string(),
                elf::DT_RUNPATH => self.runpath = string(),
                elf::DT_FLAGS_1 => {
                    self.no_default_libraries = entry.val(endian) & elf::DF_1_NODEFLIB.0 != 0;
                }
                _ => {}
            }
        }
    }
}

/// How a file that begins like an ELF program falls short of what its headers say, if it does: such a program cannot
/// run.
pub fn shortfall<'data, R: ReadRef<'data>>(data: R) -> Option<String> {
    let size = data.len().ok()?;
    let magic = data.read_bytes_at(0, 4).is_ok_and(|head| head == elf::ELFMAG);
    if !magic || machine(data).is_some_and(|machine| machine != Machine::HOST) {
        return None;
    }
    let ends = |needed: u64| Some(format!("it is cut off: it has {size} bytes of {needed}, or more"));
    let Ok(header) = Header::parse(data) else { return ends(size_of::<Header>() as u64) };
    let endian = header.endian().ok()?;
    let table = header.e_phoff(endian).saturating_add(
        u64::from(header.e_phnum(endian)) * size_of::<elf::ProgramHeader64<Endianness>>() as u64,
    );
    let Ok(segments) = header.program_headers(endian, data) else { return ends(table) };
    let mapped = segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
    let needed = mapped.map(|segment| {
        let (offset, length) = segment.file_range(endian);
        offset.saturating_add(length)
    });
    // The last page of a file can be read to its end.
    let readable = size.checked_next_multiple_of(4096)?;
    needed.max().filter(|needed| *needed > readable).and_then(ends)
}

/// The undefined dynamic symbols of a file.
pub fn imports<'data, R: ReadRef<'data>>(data: R) -> Result<Vec<Import>, ElfError> {
    let symbols = DynamicSymbols::read(data)?;
    let versions = symbols.sections.versions(symbols.endian, data)?.unwrap_or_default();
    let import = |(index, symbol): (usize, &elf::Sym64<Endianness>)| {
        let name = symbols.name(symbol).and_then(text)?;
        let version = versions.version(versions.version_index(symbols.endian, SymbolIndex(index)).index());
        let library = version.ok().flatten().and_then(|version| text(version.file()?));
        Some(Import { symbol: name, library })
    };
    // The first symbol is always undefined and has no name.
    let undefined = symbols.table.iter().enumerate().skip(1);
    Ok(undefined.filter(|(_, symbol)| symbol.is_undefined(symbols.endian)).filter_map(import).collect())
}

/// Whether a file defines a dynamic symbol of this name.
pub fn exports<'data, R: ReadRef<'data>>(data: R, name: &str) -> Result<bool, ElfError> {
    let symbols = DynamicSymbols::read(data)?;
    let mut defined = symbols.table.iter().filter(|symbol| !symbol.is_undefined(symbols.endian));
    Ok(defined.any(|symbol| symbols.name(symbol) == Some(name.as_bytes())))
}

/// Calls `read` with the contents of a file, of which only the parts that it touches are read.
pub(crate) fn with<T>(
    path: &Path,
    read: impl FnOnce(&ReadCache<File>) -> Result<T, ElfError>,
) -> Result<T, ElfError> {
    read(&ReadCache::new(File::open(path)?))
}

/// The dynamic symbol table by its section header: without section headers its length is unknown.
struct DynamicSymbols<'data, R: ReadRef<'data>> {
    endian: Endianness,
    sections: SectionTable<'data, Header, R>,
    table: SymbolTable<'data, Header, R>,
    names: StringTable<'data>,
}

impl<'data, R: ReadRef<'data>> DynamicSymbols<'data, R> {
    fn read(data: R) -> Result<Self, ElfError> {
        let header = Header::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let table = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
        // One read for all names rather than one for each.
        let names = sections.section(table.string_section())?.data(endian, data)?;
        Ok(Self { endian, sections, table, names: StringTable::new(names, 0, names.len() as u64) })
    }

    fn name(&self, symbol: &elf::Sym64<Endianness>) -> Option<&'data [u8]> {
        symbol.name(self.endian, self.names).ok()
    }
}

/// The linker's note that identifies a build, in hexadecimal digits; `None` if there is none.
pub fn build_id<'data, R: ReadRef<'data>>(data: R) -> Result<Option<String>, ElfError> {
    let header = Header::parse(data)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, data)? {
        let Some(mut notes) = segment.notes(endian, data)? else { continue };
        while let Some(note) = notes.next()? {
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
                return Ok(Some(note.desc().iter().map(|byte| format!("{byte:02x}")).collect()));
            }
        }
    }
    Ok(None)
}

/// The contents of a named section, for the data inside hasten's own libraries.
pub fn section(path: &Path, name: &str) -> Result<Option<Vec<u8>>, ElfError> {
    with(path, |data| {
        let header = Header::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let Some((_, section)) = sections.section_by_name(endian, name.as_bytes()) else { return Ok(None) };
        Ok(Some(section.data(endian, data)?.to_vec()))
    })
}

/// Whether a file has a section of this name.
pub fn has_section(path: &Path, name: &str) -> Result<bool, ElfError> {
    with(path, |data| {
        let header = Header::parse(data)?;
        let endian = header.endian()?;
        Ok(header.sections(endian, data)?.section_by_name(endian, name.as_bytes()).is_some())
    })
}

/// `None` if it is not an ELF file.
fn machine<'data, R: ReadRef<'data>>(data: R) -> Option<Machine> {
    let head = data.read_bytes_at(0, 20).ok()?;
    if !head.starts_with(&elf::ELFMAG) {
        return None;
    }
    let little_endian = head[5] == 1;
    let machine = if little_endian { u16::from_le_bytes([head[18], head[19]]) } else { 0 };
    Some(match (head[4], machine) {
        (2, 62) => Machine::X86_64,
        (1, 3 | 62) => Machine::X86,
        (2, 183) => Machine::Aarch64,
        _ => Machine::Other,
    })
}

/// The dynamic string table by its address, as the loader finds it.
fn dynamic_strings<'data, R: ReadRef<'data>>(
    endian: Endianness,
    address: Option<u64>,
    size: Option<u64>,
    segments: &[elf::ProgramHeader64<Endianness>],
    data: R,
) -> StringTable<'data, R> {
    let (Some(address), Some(size)) = (address, size) else { return StringTable::default() };
    let loaded = segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
    for segment in loaded {
        let (file_offset, file_size) = segment.file_range(endian);
        let within = address.checked_sub(segment.p_vaddr(endian)).filter(|&within| within < file_size);
        if let Some(start) = within.and_then(|within| file_offset.checked_add(within)) {
            return StringTable::new(data, start, start.saturating_add(size));
        }
    }
    StringTable::default()
}

fn text(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}
