//! A preload library's own hook table, and the part of it that a program would use.
//!
//! The table is the section `.hasten.hooks`: a line for each hook, `symbol \t library \t need \t purpose`.

use std::path::Path;

use hasten_probe::program::Imports;
use hasten_probe::program::elf::{self, ElfError};
use serde::Serialize;

const SECTION: &str = ".hasten.hooks";

/// One interposed function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hook {
    pub symbol: String,
    /// The library whose function it replaces.
    pub library: String,
    /// Whether the accelerator is useless without it.
    pub required: bool,
    pub purpose: String,
}

/// A hook and the objects of a program whose calls it would receive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Binding {
    #[serde(flatten)]
    pub hook: Hook,
    /// Empty if nothing loaded at start calls the function.
    pub bound_in: Vec<String>,
}

/// The hooks of a preload library; none if it has no table.
pub fn read(library: &Path) -> Result<Vec<Hook>, ElfError> {
    Ok(parse(&elf::section(library, SECTION)?.unwrap_or_default()))
}

/// Lines that do not have the table's form are skipped.
pub fn parse(table: &[u8]) -> Vec<Hook> {
    String::from_utf8_lossy(table).lines().filter_map(hook).collect()
}

/// Which objects of a program each hook would serve.
pub fn bindings(hooks: Vec<Hook>, imports: &Imports) -> Vec<Binding> {
    hooks.into_iter().map(|hook| Binding { bound_in: imports.importers(&hook.symbol), hook }).collect()
}

fn hook(line: &str) -> Option<Hook> {
    let mut fields = line.splitn(4, '\t').map(str::trim);
    let (symbol, library, need, purpose) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    Some(Hook {
        symbol: symbol.to_owned(),
        library: soname(library).to_owned(),
        required: need == "required",
        purpose: purpose.to_owned(),
    })
}

/// Tables name libraries by role.
fn soname(library: &str) -> &str {
    match library {
        "Ssl" => "libssl.so.3",
        "Crypto" => "libcrypto.so.3",
        "C" => "libc.so.6",
        "Z" => "libz.so.1",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines_and_ignores_the_rest() {
        let hooks = parse(
            b"SSL_free\tSsl\trequired\t Cancels a handshake.\n\nnonsense\nread\tC\toptional\tx\ty\n\
              deflate\tZ\trequired\tCompresses.\n\0\0",
        );
        assert_eq!(hooks.len(), 3);
        assert_eq!(hooks[2].library, "libz.so.1");
        assert_eq!(hooks[0].library, "libssl.so.3");
        assert!(hooks[0].required);
        assert_eq!(hooks[0].purpose, "Cancels a handshake.");
        assert_eq!((hooks[1].symbol.as_str(), hooks[1].required), ("read", false));
        assert_eq!(hooks[1].purpose, "x\ty");
    }
}
