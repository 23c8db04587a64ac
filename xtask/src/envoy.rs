//! The table of known builds of Envoy, read from the builds themselves: `cargo xtask envoy`.
//!
//! A release is stripped, but C++ needs the names of classes at run time: a name leads to its type information, and that
//! to the table of virtual functions. The functions' lengths are in the index of the unwinder.

mod shapes;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use hasten_envoy_builds::{BUFFER, COMPRESSOR, GZIP, fingerprint};
use memchr::memmem;
use object::elf::R_X86_64_RELATIVE;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, RelocationFlags};

use self::shapes::Shape;
use crate::error::Error;
use crate::workspace::Workspace;

const TABLE: &str = "core/envoy-builds/src/builds.rs";

#[derive(Debug, Args)]
pub(crate) struct EnvoyArgs {
    /// A directory with one build per release, as RELEASE/envoy: what `scripts/envoy.sh all` makes
    #[arg(default_value = ".deps/envoy")]
    builds: PathBuf,
    /// Only check that the table is what it would write
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &EnvoyArgs) -> Result<(), Error> {
    let mut releases = releases(&args.builds)?;
    releases.sort_by_key(|(release, _)| Reverse(numbers(release)));
    let mut text = String::from(HEAD);
    for (release, path) in &releases {
        let data = fs::read(path).map_err(|source| Error::File { path: path.clone(), source })?;
        let entry = entry(release, &data);
        text += &entry.map_err(|why| Error::Content { path: path.clone(), why })?;
    }
    text += "];\n";
    let path = workspace.root.join(TABLE);
    if args.check {
        let is_there = fs::read_to_string(&path).is_ok_and(|there| there == text);
        return if is_there { Ok(()) } else { Err(Error::Stale { path, command: "cargo xtask envoy" }) };
    }
    fs::write(&path, text).map_err(|source| Error::File { path, source })
}

const HEAD: &str = "\
//! Written by `cargo xtask envoy`.

use crate::{Build, Class, Code, Function};

/// All known builds, newest first.
#[rustfmt::skip]
pub const BUILDS: &[Build] = &[
";

/// The builds in the directory, with their releases.
fn releases(directory: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let failed = |source| Error::File { path: directory.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let file = entry.path().join("envoy");
        if file.is_file() {
            found.push((entry.file_name().to_string_lossy().into_owned(), file));
        }
    }
    if found.is_empty() {
        let why = "it has no RELEASE/envoy: run `scripts/envoy.sh all`".to_owned();
        return Err(Error::Content { path: directory.to_owned(), why });
    }
    Ok(found)
}

/// `1.40.0` as numbers, to be sorted by.
fn numbers(release: &str) -> Vec<u32> {
    release.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

/// The lines of one build.
fn entry(release: &str, data: &[u8]) -> Result<String, String> {
    let program = Program::parse(data)?;
    let mut text = String::new();
    let mut line = |depth: usize, line: &str| {
        let _ = writeln!(text, "{:1$}{line}", "", depth * 4);
    };
    line(1, "Build {");
    line(2, &format!("release: \"{release}\","));
    line(2, &format!("build_id: \"{}\",", program.build_id));
    for (field, name, shapes) in [("gzip", GZIP, &shapes::GZIP[..]), ("buffer", BUFFER, &shapes::BUFFER[..])]
    {
        let table = program.table(name)?;
        line(2, &format!("{field}: Class {{"));
        line(3, &format!("table: {table:#x},"));
        line(3, "functions: &[");
        for shape in shapes {
            let (slot, pieces) = program.function(table, shape)?;
            let pieces = pieces.iter().map(|(address, code)| {
                let (length, fingerprint) = (code.len(), fingerprint(code));
                format!("Code {{ address: {address:#x}, length: {length}, fingerprint: {fingerprint:#x} }}")
            });
            let code = pieces.collect::<Vec<_>>().join(", ");
            line(4, &format!("Function {{ slot: {slot}, code: &[{code}] }},"));
        }
        line(3, "],");
        line(2, "},");
    }
    line(2, &format!("compressor: {:#x},", program.type_information(COMPRESSOR)?));
    line(1, "},");
    Ok(text)
}

/// A program that can be loaded anywhere.
struct Program<'data> {
    file: ElfFile64<'data>,
    build_id: String,
    /// What the loader will write where: addresses within the program.
    pointers: HashMap<u64, u64>,
    /// Where each address is written.
    places: HashMap<u64, Vec<u64>>,
    /// Where functions begin, in ascending order.
    starts: Vec<u64>,
}

impl<'data> Program<'data> {
    fn parse(data: &'data [u8]) -> Result<Self, String> {
        let file = ElfFile64::parse(data).map_err(|error| error.to_string())?;
        let id = file.build_id().map_err(|error| error.to_string())?.ok_or("it has no build-id")?;
        let build_id = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let relative =
            |flags| matches!(flags, RelocationFlags::Elf { r_type } if r_type == R_X86_64_RELATIVE);
        let relocations = file.dynamic_relocations().ok_or("it has no relocations")?;
        let pointers: HashMap<u64, u64> = relocations
            .filter(|(_, relocation)| relative(relocation.flags()))
            .map(|(place, relocation)| (place, relocation.addend().cast_unsigned()))
            .collect();
        let mut places: HashMap<u64, Vec<u64>> = HashMap::new();
        for (place, address) in &pointers {
            places.entry(*address).or_default().push(*place);
        }
        let starts = starts(&file)?;
        Ok(Self { file, build_id, pointers, places, starts })
    }

    /// The address of a class's table of virtual functions.
    fn table(&self, name: &str) -> Result<u64, String> {
        let information = self.type_information(name)?;
        // In front of a table are the offset to the whole object, which is 0 in the main one, and the information.
        let mains = self.places_of(information).filter(|place| self.word(place - 8) == Some(0));
        let tables: Vec<_> =
            mains.map(|place| place + 8).filter(|table| self.code_at(*table).is_some()).collect();
        match tables[..] {
            [table] => Ok(table),
            _ => Err(format!("it has {} tables of {}", tables.len(), name)),
        }
    }

    /// The address of a class's type information, which begins with a pointer to its own table. Its name comes second.
    fn type_information(&self, name: &str) -> Result<u64, String> {
        let places: Vec<_> = self.places_of(self.address_of(name)?).collect();
        match places[..] {
            [place] => Ok(place - 8),
            _ => Err(format!("it has {} types with the name {name}", places.len())),
        }
    }

    fn places_of(&self, address: u64) -> impl Iterator<Item = u64> + '_ {
        self.places.get(&address).into_iter().flatten().copied()
    }

    /// Where this string is, with the zeros around it.
    fn address_of(&self, name: &str) -> Result<u64, String> {
        let constants = self.file.section_by_name(".rodata").ok_or("it has no .rodata")?;
        let data = constants.data().map_err(|error| error.to_string())?;
        let needle = [b"\0", name.as_bytes(), b"\0"].concat();
        let mut found = memmem::find_iter(data, &needle);
        match (found.next(), found.next()) {
            (Some(at), None) => Ok(constants.address() + at as u64 + 1),
            (None, _) => Err(format!("it has no {name}")),
            _ => Err(format!("it has {name} twice")),
        }
    }

    fn word(&self, address: u64) -> Option<u64> {
        let section = self
            .file
            .sections()
            .find(|section| (section.address()..section.address() + section.size()).contains(&address))?;
        let bytes = section.data_range(address, 8).ok()??;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The code that this pointer leads to.
    fn code_at(&self, place: u64) -> Option<Piece<'data>> {
        self.code(*self.pointers.get(&place)?)
    }

    /// The function at this address.
    fn code(&self, address: u64) -> Option<Piece<'data>> {
        let index = self.starts.binary_search(&address).ok()?;
        let end = *self.starts.get(index + 1)?;
        let text = self.file.section_by_name(".text")?;
        Some((address, text.data_range(address, end - address).ok()??))
    }

    /// The place of the one function in this table that has the shape, and its code: also that of the function to which
    /// it only jumps.
    fn function(&self, table: u64, shape: &Shape) -> Result<(usize, Vec<Piece<'data>>), String> {
        let pieces = |slot: usize| {
            let first = self.code_at(table + slot as u64 * 8)?;
            let second =
                shapes::jump(first.1).and_then(|distance| self.code(first.0.wrapping_add_signed(distance)));
            Some([first].into_iter().chain(second).collect::<Vec<_>>())
        };
        let all = (0..).map_while(pieces).enumerate();
        let found: Vec<_> =
            all.filter(|(_, pieces)| pieces.last().is_some_and(|(_, code)| shape.fits(code))).collect();
        match found.len() {
            1 => found.into_iter().next().ok_or_else(String::new),
            count => Err(format!(
                "{count} of its functions look like {}: read them, and see shapes.rs",
                shape.name
            )),
        }
    }
}

/// An address, and the code there.
type Piece<'data> = (u64, &'data [u8]);

/// Where functions begin: the index that the unwinder searches, in its only form that linkers write.
fn starts(file: &ElfFile64) -> Result<Vec<u64>, String> {
    const RELATIVE_TO_INDEX: u8 = 0x3b;
    let index = file.section_by_name(".eh_frame_hdr").ok_or("it has no .eh_frame_hdr")?;
    let data = index.data().map_err(|error| error.to_string())?;
    let (head, entries) = data.split_at_checked(12).ok_or("its .eh_frame_hdr is too short")?;
    if head[0] != 1 || head[3] != RELATIVE_TO_INDEX {
        return Err("its .eh_frame_hdr has another form".to_owned());
    }
    let starts = entries.chunks_exact(8).map(|entry| {
        let offset = i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
        index.address().wrapping_add_signed(offset.into())
    });
    Ok(starts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_sorted_by_their_numbers() {
        assert!(numbers("1.40.0") > numbers("1.39.3") && numbers("1.9.12") < numbers("1.10.0"));
    }

    #[test]
    fn program_without_the_classes_is_refused() {
        let own = fs::read(std::env::current_exe().expect("a path")).expect("a file");
        let why = entry("0", &own).expect_err("it is no Envoy");
        assert!(why.contains("GzipCompressorFactory") || why.contains("build-id"), "{why}");
        assert!(entry("0", b"no ELF").is_err());
    }
}
