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
use hasten_envoy_builds::{
    BOMB_PROTECTION, BUFFER, COMPRESSOR, COMPRESSOR_FACTORY, CONNECTION, DECOMPRESSOR, DECOMPRESSOR_FACTORY,
    EC, HANDSHAKER, HYBRID, IO_HANDLE, SOCKET, SOCKET_CALLBACKS, X25519, ZLIB_DECOMPRESSOR, fingerprint,
};
use memchr::memmem;
use object::elf::R_X86_64_RELATIVE;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget};

use self::shapes::{Number, Shape};
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

use crate::{Boring, Build, Class, Code, Function, Gzip, Tls};

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
    let mut lines = Lines::default();
    lines.add(1, "Build {");
    lines.add(2, &format!("release: \"{release}\","));
    lines.add(2, &format!("build_id: \"{}\",", program.build_id));
    lines.gzip(&program)?;
    lines.tls(&program)?;
    lines.add(1, "},");
    Ok(lines.text)
}

/// The lines of the table.
#[derive(Default)]
struct Lines {
    text: String,
}

impl Lines {
    fn add(&mut self, depth: usize, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", depth * 4);
    }

    /// A class, from `base` on; returns the code of its functions.
    fn class<'data>(
        &mut self,
        depth: usize,
        program: &Program<'data>,
        field: &str,
        name: &str,
        base: u64,
        shapes: &[Shape],
    ) -> Result<Vec<Vec<Piece<'data>>>, String> {
        let table = program.table(name, base)?;
        self.add(depth, &format!("{field}: Class {{"));
        self.add(depth + 1, &format!("table: {table:#x},"));
        self.add(depth + 1, &format!("base: {base},"));
        self.add(depth + 1, "functions: &[");
        let mut functions = Vec::new();
        for shape in shapes {
            let (slot, pieces) = program.function(table, shape)?;
            let code = pieces.iter().map(code).collect::<Vec<_>>().join(", ");
            self.add(depth + 2, &format!("Function {{ slot: {slot}, code: &[{code}] }},"));
            functions.push(pieces);
        }
        self.add(depth + 1, "],");
        self.add(depth, "},");
        Ok(functions)
    }

    fn gzip(&mut self, program: &Program<'_>) -> Result<(), String> {
        self.add(2, "gzip: Gzip {");
        self.class(3, program, "compressors", COMPRESSOR_FACTORY, 0, &shapes::COMPRESSORS)?;
        self.class(3, program, "decompressors", DECOMPRESSOR_FACTORY, 0, &shapes::DECOMPRESSORS)?;
        let shape = &shapes::ZLIB_DECOMPRESSOR;
        let functions = self.class(3, program, "zlib_decompressor", ZLIB_DECOMPRESSOR, 0, shape)?;
        let number = |letter| number(&shape[0], &functions[0], letter);
        let relative = |letter| number(letter).map(|distance| distance.target(start(&functions[0])));
        let bomb_protection = relative('J')?;
        if !program.addresses_of(BOMB_PROTECTION)?.contains(&bomb_protection) {
            return Err("decompress asks for another feature".to_owned());
        }
        for (field, value) in [
            ("data_errors", number('G')?.value().into()),
            ("increment", number('H')?.value().into()),
            ("feature_enabled", relative('I')?),
            ("bomb_protection", bomb_protection),
        ] {
            self.add(3, &format!("{field}: {value:#x},"));
        }
        self.class(3, program, "buffer", BUFFER, 0, &shapes::BUFFER)?;
        for (field, name) in [("compressor", COMPRESSOR), ("decompressor", DECOMPRESSOR)] {
            self.add(3, &format!("{field}: {:#x},", program.type_information(name)?));
        }
        self.add(2, "},");
        Ok(())
    }

    fn tls(&mut self, program: &Program<'_>) -> Result<(), String> {
        self.add(2, "tls: Tls {");
        let base = *program.bases(HANDSHAKER)?.last().ok_or("its handshaker has one base")?;
        let handshaker = self.class(3, program, "handshaker", HANDSHAKER, 0, &shapes::HANDSHAKER)?;
        self.class(3, program, "handshaker_base", HANDSHAKER, base, &shapes::HANDSHAKER)?;
        self.class(3, program, "socket", SOCKET, 0, &shapes::SOCKET)?;
        let base = SOCKET_CALLBACKS as u64;
        self.class(3, program, "callbacks", SOCKET, base, &shapes::HANDSHAKE_CALLBACKS)?;
        let base = program.base_with(CONNECTION, &shapes::CONNECTION[1])?;
        let connection = self.class(3, program, "connection", CONNECTION, base, &shapes::CONNECTION)?;
        let read_disabled = number(&shapes::CONNECTION[1], &connection[1], 'G')?.value();
        self.add(3, &format!("read_disabled: {read_disabled:#x},"));
        self.class(3, program, "io_handle", IO_HANDLE, 0, &shapes::IO_HANDLE)?;
        let x25519 = self.class(3, program, "x25519", X25519, 0, &shapes::X25519)?;
        self.class(3, program, "ec", EC, 0, &shapes::EC)?;
        let hybrid = self.class(3, program, "hybrid", HYBRID, 0, &shapes::HYBRID)?;
        self.boring(program, &handshaker[0], &x25519, &hybrid[0])?;
        let slots = program.slots("epoll_wait")?;
        let slots = slots.iter().map(|slot| format!("{slot:#x}")).collect::<Vec<_>>().join(", ");
        self.add(3, &format!("epoll_wait: &[{slots}],"));
        self.add(2, "},");
        Ok(())
    }

    fn boring(
        &mut self,
        program: &Program<'_>,
        handshaker: &[Piece<'_>],
        x25519: &[Vec<Piece<'_>>],
        hybrid: &[Piece<'_>],
    ) -> Result<(), String> {
        self.add(3, "boring: Boring {");
        let called = |shape: &Shape, pieces: &[Piece<'_>], letter| {
            number(shape, pieces, letter).map(|distance| distance.target(start(pieces)))
        };
        let do_handshake = called(&shapes::HANDSHAKER[0], handshaker, 'G')?;
        let do_handshake = program.code(do_handshake).filter(|(_, code)| shapes::DO_HANDSHAKE.fits(code));
        let do_handshake =
            do_handshake.ok_or("doHandshake calls something else than SSL_do_handshake first")?;
        self.add(4, &format!("do_handshake: {},", code(&do_handshake)));
        for (field, shape, offset) in [
            ("sign", &shapes::SIGN, Some("credential")),
            ("get_rsa", &shapes::GET_RSA, None),
            ("get_ec", &shapes::GET_EC, None),
            ("rsa", &shapes::RSA, Some("rsa_numbers")),
            ("ecdsa", &shapes::ECDSA, Some("ec_private")),
        ] {
            let piece = program.only(shape)?;
            self.add(4, &format!("{field}: {},", code(&piece)));
            if let Some(field) = offset {
                self.add(4, &format!("{field}: {:#x},", number(shape, &[piece], 'G')?.value()));
            }
        }
        let [generate, _, decap] = &shapes::X25519;
        let addresses = [
            ("allocate", called(decap, &x25519[2], 'H')?),
            ("free", called(decap, &x25519[2], 'G')?),
            ("add_bytes", called(generate, &x25519[0], 'G')?),
            ("parse_mlkem", called(&shapes::HYBRID[0], hybrid, 'G')?),
            ("encap_mlkem", called(&shapes::HYBRID[0], hybrid, 'H')?),
        ];
        for (field, address) in addresses {
            self.add(4, &format!("{field}: {address:#x},"));
        }
        self.add(3, "},");
        Ok(())
    }
}

fn code((address, code): &Piece<'_>) -> String {
    let (length, fingerprint) = (code.len(), fingerprint(code));
    format!("Code {{ address: {address:#x}, length: {length}, fingerprint: {fingerprint:#x} }}")
}

/// Where the last of these pieces begins.
fn start(pieces: &[Piece<'_>]) -> u64 {
    pieces.last().map_or(0, |(start, _)| *start)
}

/// The number that a letter stands for in the last of these pieces, which fits.
fn number(shape: &Shape, pieces: &[Piece<'_>], letter: char) -> Result<Number, String> {
    let number = pieces.last().and_then(|(_, code)| shape.number(code, letter));
    number.ok_or_else(|| format!("{} has no number {letter}", shape.name))
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
    /// All code.
    text: Piece<'data>,
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
        let code = file.section_by_name(".text").ok_or("it has no .text")?;
        let text = (code.address(), code.data().map_err(|error| error.to_string())?);
        Ok(Self { file, build_id, pointers, places, starts, text })
    }

    /// The address of a class's table of virtual functions, for what begins at `base` in an object.
    fn table(&self, name: &str, base: u64) -> Result<u64, String> {
        match self.tables(name)?.iter().filter(|(other, _)| *other == base).collect::<Vec<_>>()[..] {
            [(_, table)] => Ok(*table),
            ref tables => Err(format!("it has {} tables of {name} at {base}", tables.len())),
        }
    }

    /// The tables of a class, and where in an object what has each of them begins.
    fn tables(&self, name: &str) -> Result<Vec<(u64, u64)>, String> {
        let information = self.type_information(name)?;
        // In front of a table are the way to the whole object, which is 0 in the main one, and the information.
        let tables = self.places_of(information).filter_map(|place| {
            let base = self.word(place - 8)?.wrapping_neg();
            (base < 1 << 16 && self.code_at(place + 8).is_some()).then_some((base, place + 8))
        });
        Ok(tables.collect())
    }

    /// Where in an object its bases begin, in ascending order.
    fn bases(&self, name: &str) -> Result<Vec<u64>, String> {
        let mut bases: Vec<_> = self.tables(name)?.into_iter().map(|(base, _)| base).collect();
        bases.sort_unstable();
        bases.dedup();
        Ok(bases)
    }

    /// The base of a class that has a function of this shape.
    fn base_with(&self, name: &str, shape: &Shape) -> Result<u64, String> {
        let tables = self.tables(name)?;
        let found: Vec<_> = tables.iter().filter(|(_, table)| self.function(*table, shape).is_ok()).collect();
        match found[..] {
            [(base, _)] => Ok(*base),
            _ => Err(format!("{} of the bases of {name} have {}", found.len(), shape.name)),
        }
    }

    /// Where the loader puts the address of a function of another library.
    fn slots(&self, name: &str) -> Result<Vec<u64>, String> {
        let symbols = self.file.dynamic_symbols();
        let symbol = symbols.into_iter().find(|symbol| symbol.is_undefined() && symbol.name() == Ok(name));
        let index = symbol.ok_or_else(|| format!("it does not use {name}"))?.index();
        let relocations = self.file.dynamic_relocations().ok_or("it has no relocations")?;
        let slots = relocations.filter(|(_, relocation)| {
            relocation.target() == RelocationTarget::Symbol(index) && relocation.addend() == 0
        });
        let mut slots: Vec<_> = slots.map(|(place, _)| place).collect();
        slots.sort_unstable();
        Ok(slots)
    }

    /// The one function of this shape.
    fn only(&self, shape: &Shape) -> Result<Piece<'data>, String> {
        let all = self.starts.iter().filter_map(|start| self.code(*start));
        let found: Vec<_> = all.filter(|(_, code)| shape.fits(code)).collect();
        match found[..] {
            [piece] => Ok(piece),
            _ => Err(format!(
                "{} functions look like {}: read them, and see shapes.rs",
                found.len(),
                shape.name
            )),
        }
    }

    /// The address of a class's type information, which begins with a pointer to its own table. Its name comes second.
    fn type_information(&self, name: &str) -> Result<u64, String> {
        let places: Vec<_> = self.addresses_of(name)?.into_iter().flat_map(|at| self.places_of(at)).collect();
        match places[..] {
            [place] => Ok(place - 8),
            _ => Err(format!("it has {} types with the name {name}", places.len())),
        }
    }

    fn places_of(&self, address: u64) -> impl Iterator<Item = u64> + '_ {
        self.places.get(&address).into_iter().flatten().copied()
    }

    /// Where this string ends with a zero.
    fn addresses_of(&self, name: &str) -> Result<Vec<u64>, String> {
        let constants = self.file.section_by_name(".rodata").ok_or("it has no .rodata")?;
        let data = constants.data().map_err(|error| error.to_string())?;
        let needle = [name.as_bytes(), b"\0"].concat();
        Ok(memmem::find_iter(data, &needle).map(|at| constants.address() + at as u64).collect())
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
        let (start, code) = self.text;
        let from = usize::try_from(address.checked_sub(start)?).ok()?;
        Some((address, code.get(from..from + usize::try_from(end - address).ok()?)?))
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
            count if count == shape.overloads => found.into_iter().next().ok_or_else(String::new),
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
