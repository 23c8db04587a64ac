//! What a preload library shows to the process it is loaded into: exported symbols, and the libraries it needs.
//!
//! A symbol too many interposes on something of the server's; one too few switches a hook off without a word.

use std::collections::BTreeSet;
use std::fs;

use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn, ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSymbol};

use crate::error::Error;
use crate::workspace::{LIBRARIES, Workspace};

const BLESS: &str = "cargo xtask symbols --bless";

pub(crate) fn run(workspace: &Workspace, bless: bool) -> Result<(), Error> {
    workspace.build_libraries()?;
    LIBRARIES.into_iter().try_for_each(|library| compare(workspace, library, bless))
}

fn compare(workspace: &Workspace, library: &str, bless: bool) -> Result<(), Error> {
    let golden_file = format!("xtask/golden/{}", library.replace(".so", ".symbols"));
    let path = workspace.library(library);
    let bytes = fs::read(&path).map_err(|source| Error::File { path: path.clone(), source })?;
    let found = lines(&bytes).map_err(|error| Error::Content { path, why: error.to_string() })?;
    if bless {
        return workspace.generate(&golden_file, &found.into_iter().collect::<String>(), false, BLESS);
    }
    let golden = workspace.read(&golden_file)?;
    let golden: BTreeSet<String> = golden.lines().map(|line| format!("{line}\n")).collect();
    match difference(&golden, &found) {
        difference if difference.is_empty() => Ok(()),
        difference => Err(Error::Symbols(format!(
            "{library} is not what {golden_file} says:\n{difference}\
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
    fn a_difference_names_both_directions() {
        let set = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect();
        let (golden, found) = (set(&["export a", "export b"]), set(&["export b", "export c"]));
        assert_eq!(difference(&golden, &found), "- export a\n+ export c\n");
        assert_eq!(difference(&golden, &golden), "");
    }
}
