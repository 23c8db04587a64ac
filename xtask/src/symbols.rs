//! What a preload library exposes to its process: exported symbols, and the libraries it needs. The command, too, loads
//! wherever the libraries do.
//!
//! Hooks are not exported: a superfluous symbol would take precedence over one of the program's. And everything the
//! library requires of glibc must exist in the oldest supported version: otherwise no program of that image starts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use object::elf::{DT_NEEDED, FileHeader64, SHT_DYNSYM, STB_WEAK};
use object::read::elf::{Dyn, ElfFile64, FileHeader, Sym};
use object::{Endianness, Object, ObjectSymbol};

use crate::error::Error;
use crate::workspace::{COMMAND, LIBRARIES, MUSL_LIBRARIES, SHIM, Workspace};

const BLESS: &str = "cargo xtask symbols --bless";

/// The newest version of a glibc symbol that may be required, as in scripts/floor.sh.
const FLOOR: [u32; 2] = [2, 17];

/// What `hasten bench gzip` measures, like any program linked with libz. Every libz.so.1 has them, without a version.
const OF_LIBZ: [&str; 6] =
    ["deflate", "deflateEnd", "deflateInit2_", "inflate", "inflateEnd", "inflateInit2_"];

pub(crate) fn run(workspace: &Workspace, bless: bool) -> Result<(), Error> {
    workspace.build_libraries()?;
    for file in LIBRARIES.into_iter().chain([SHIM, COMMAND]) {
        check_floor(workspace, file)?;
        compare(workspace, file, bless)?;
    }
    // They are linked with all that musl has, so what it lacks is an error of the linker.
    let for_musl = MUSL_LIBRARIES.into_iter().filter(|file| workspace.built(file).is_file());
    for_musl.into_iter().try_for_each(|file| compare(workspace, file, bless))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::File { path: path.into(), source })
}

fn content(path: &Path) -> impl Fn(object::Error) -> Error {
    move |error| Error::Content { path: path.into(), why: error.to_string() }
}

fn check_floor(workspace: &Workspace, file: &str) -> Result<(), Error> {
    let path = workspace.built(file);
    let mut above = above_floor(&read(&path)?).map_err(content(&path))?;
    if file == COMMAND {
        above.retain(|line| !OF_LIBZ.iter().any(|name| *line == format!("{name} without a version\n")));
    }
    if !above.is_empty() {
        return Err(Error::Symbols(format!(
            "{file} does not load on glibc {}.{}, which has none of this:\n{}\
             Call what that has, or add a function of the same name to preload/floor/newer.c.",
            FLOOR[0],
            FLOOR[1],
            above.concat()
        )));
    }
    Ok(())
}

fn compare(workspace: &Workspace, file: &str, bless: bool) -> Result<(), Error> {
    let golden_file = format!("xtask/golden/{}.symbols", file.trim_end_matches(".so"));
    let path = workspace.built(file);
    let found = lines(&read(&path)?).map_err(content(&path))?;
    if bless {
        return workspace.generate(&golden_file, &found.into_iter().collect::<String>(), false, BLESS);
    }
    let golden = workspace.read(&golden_file)?;
    let golden: BTreeSet<String> = golden.lines().map(|line| format!("{line}\n")).collect();
    match difference(&golden, &found) {
        difference if difference.is_empty() => Ok(()),
        difference => Err(Error::Symbols(format!(
            "{file} is not what {golden_file} says:\n{difference}\
             If that is meant, run `{BLESS}` and commit the result."
        ))),
    }
}

/// `export NAME` and `needs LIBRARY`, sorted.
fn lines(bytes: &[u8]) -> object::Result<BTreeSet<String>> {
    let file = ElfFile64::<Endianness>::parse(bytes)?;
    let exports = file.dynamic_symbols().filter(|symbol| symbol.is_definition() && symbol.is_global());
    let mut lines = BTreeSet::new();
    for symbol in exports {
        lines.insert(format!("export {}\n", symbol.name()?));
    }
    for library in needed(bytes)? {
        lines.insert(format!("needs {library}\n"));
    }
    Ok(lines)
}

fn needed(bytes: &[u8]) -> object::Result<Vec<String>> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let Some((dynamic, strings)) = sections.dynamic(endian, bytes)? else { return Ok(Vec::new()) };
    let strings = sections.strings(endian, bytes, strings)?;
    let entries = dynamic.iter().filter(|entry| entry.tag(endian) == DT_NEEDED);
    entries.map(|entry| Ok(String::from_utf8_lossy(entry.string(endian, strings)?).into_owned())).collect()
}

/// Symbols missing from the oldest supported glibc, as the loader sees it: those of a newer version, and those required
/// without any version, unless they may be missing. Even a weak reference must not name a newer version: the loader
/// complains on every start.
fn above_floor(bytes: &[u8]) -> object::Result<Vec<String>> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let symbols = sections.symbols(endian, bytes, SHT_DYNSYM)?;
    let versions = sections.versions(endian, bytes)?;
    let mut lines = Vec::new();
    for (index, symbol) in symbols.enumerate().skip(1).filter(|(_, symbol)| symbol.is_undefined(endian)) {
        let name = String::from_utf8_lossy(symbol.name(endian, symbols.strings())?);
        let version = match &versions {
            Some(versions) => versions.version(versions.version_index(endian, index).into())?,
            None => None,
        };
        let version = version.map(|version| String::from_utf8_lossy(version.name()).into_owned());
        if !is_in_floor(version.as_deref(), symbol.st_bind() == STB_WEAK) {
            lines.push(format!("{name} {}\n", version.as_deref().unwrap_or("without a version")));
        }
    }
    Ok(lines)
}

fn is_in_floor(version: Option<&str>, is_weak: bool) -> bool {
    let Some(version) = version else { return is_weak };
    let numbers = version.strip_prefix("GLIBC_").map(|numbers| numbers.split('.').map(str::parse).collect());
    matches!(numbers, Some(Ok::<Vec<u32>, _>(numbers)) if numbers[..] <= FLOOR[..] || numbers.starts_with(&FLOOR))
}

fn difference(golden: &BTreeSet<String>, found: &BTreeSet<String>) -> String {
    let missing = golden.difference(found).map(|line| format!("- {line}"));
    let new = found.difference(golden).map(|line| format!("+ {line}"));
    missing.chain(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_exports_and_needs_of_a_real_library() {
        let program = fs::read("/proc/self/exe").unwrap();
        let lines = lines(&program).unwrap();
        assert!(lines.contains("needs libc.so.6\n"), "{lines:?}");
    }

    #[test]
    fn a_newer_version_or_none_is_above_the_floor() {
        for version in ["GLIBC_2.2.5", "GLIBC_2.3", "GLIBC_2.17"] {
            assert!(is_in_floor(Some(version), false), "{version}");
        }
        for version in
            ["GLIBC_2.18", "GLIBC_2.34", "GLIBC_3.0", "GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR", "GCC_3.0"]
        {
            assert!(!is_in_floor(Some(version), false), "{version}");
            assert!(!is_in_floor(Some(version), true), "{version}");
        }
        assert!(is_in_floor(None, true));
        assert!(!is_in_floor(None, false));
    }

    /// This program is built without the floor, so it shows what a library without it would.
    #[test]
    fn a_program_of_this_machine_is_above_the_floor() {
        let program = fs::read("/proc/self/exe").unwrap();
        let above = above_floor(&program).unwrap();
        assert!(above.iter().any(|line| line.contains("GLIBC_2.3")), "{above:?}");
        assert!(above.iter().any(|line| line.starts_with("_Unwind_Resume GCC_")), "{above:?}");
        assert!(!above.iter().any(|line| line.starts_with("memcpy ")), "{above:?}");
    }

    #[test]
    fn the_floor_is_that_of_the_link() {
        let script = include_str!("../../scripts/floor.sh");
        assert!(script.contains(&format!("\nfloor={}.{}\n", FLOOR[0], FLOOR[1])));
    }

    #[test]
    fn a_difference_names_both_directions() {
        let set = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect();
        let (golden, found) = (set(&["export a", "export b"]), set(&["export b", "export c"]));
        assert_eq!(difference(&golden, &found), "- export a\n+ export c\n");
        assert_eq!(difference(&golden, &golden), "");
    }
}
