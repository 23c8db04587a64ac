//! Compression code inside a program, where no preload reaches it: recognised by the texts that such code contains.

use std::path::Path;

use memchr::memmem;

use super::{elf, version};

/// Code that compresses, linked into the executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    /// zlib, or one of its forks under zlib's name.
    Zlib { version: String },
    /// libslz: a different interface, and streams without a window.
    Slz,
}

/// Reads all constants of the executable, which takes some milliseconds for the largest of them.
pub(super) fn carried(executable: &Path) -> Option<Carried> {
    find(&elf::section(executable, ".rodata").ok()??)
}

fn find(constants: &[u8]) -> Option<Carried> {
    if let Some(version) = zlib(constants) {
        return Some(Carried::Zlib { version });
    }
    // HAProxy's own words with `-vv`.
    memmem::find(constants, b"Built with libslz").map(|_| Carried::Slz)
}

/// The licence requires the text, so every copy has it: ` deflate 1.2.13 Copyright 1995-2022 …`.
fn zlib(constants: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = b" deflate ";
    memmem::find_iter(constants, BEFORE).find_map(|at| {
        let text = &constants[at + BEFORE.len()..];
        let version = version::number(text, 1)?;
        text[version.len()..].starts_with(b" Copyright ").then_some(version)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zlib_is_known_by_its_copyright_and_not_by_its_name() {
        let inside = |text: &str| find(format!("\0before\0{text}\0after\0").as_bytes());
        let zlib = |version: &str| Some(Carried::Zlib { version: version.to_owned() });
        assert_eq!(inside(" deflate 1.2.13 Copyright 1995-2022 Jean-loup Gailly"), zlib("1.2.13"));
        assert_eq!(inside(" deflate 1.3.0.1-motley Copyright 1995-2024 X"), zlib("1.3.0.1-motley"));
        assert_eq!(inside("speaks deflate 1.1 over HTTP"), None);
        assert_eq!(inside("the deflate stream"), None);
        assert_eq!(inside("Built with libslz for stateless compression."), Some(Carried::Slz));
        assert_eq!(find(b" deflate 1.2"), None);
    }
}
