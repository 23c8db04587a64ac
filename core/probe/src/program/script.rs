//! `#!` lines, as Linux reads them, plus the one indirection everybody uses: `#!/usr/bin/env NAME`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// What runs a script.
#[derive(Debug, PartialEq, Eq)]
pub enum Interpreter {
    /// The path on the `#!` line.
    Path(PathBuf),
    /// A name that `env` will look up in `PATH`.
    Searched(OsString),
}

/// Reads the first bytes of a file; `None` if they are not a `#!` line with an interpreter.
pub fn interpreter(head: &[u8]) -> Option<Interpreter> {
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    // A carriage return is part of the name, as it is for the kernel.
    let mut words = line.split(|&byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    let path = words.next()?;
    if path.ends_with(b"/env")
        && let Some(name) = env_program(words)
    {
        return Some(Interpreter::Searched(OsStr::from_bytes(name).to_owned()));
    }
    Some(Interpreter::Path(PathBuf::from(OsStr::from_bytes(path))))
}

/// Whether this looks like a script that lacks its `#!` line.
pub fn is_plain_text(head: &[u8]) -> bool {
    !head.is_empty() && !head.starts_with(b"\x7fELF") && !head.contains(&0)
}

/// The program that `env` starts: the first word that is neither an option nor an assignment.
///
/// The kernel passes everything after the interpreter as one argument, so more than one word means `-S`,
/// written `-S`, `--split-string` or glued to its value (`-Snode`).
fn env_program<'a>(words: impl Iterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
    words
        .map(|word| word.strip_prefix(b"-S").filter(|rest| !rest.is_empty()).unwrap_or(word))
        .find(|word| !word.starts_with(b"-") && !word.contains(&b'='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> Option<Interpreter> {
        Some(Interpreter::Path(path.into()))
    }

    fn searched(name: &str) -> Option<Interpreter> {
        Some(Interpreter::Searched(name.into()))
    }

    #[test]
    fn reads_the_path_and_drops_the_argument() {
        assert_eq!(interpreter(b"#!/bin/sh\necho"), path("/bin/sh"));
        assert_eq!(interpreter(b"#! \t/bin/sh -e\n"), path("/bin/sh"));
        assert_eq!(interpreter(b"#!/bin/sh"), path("/bin/sh"));
    }

    #[test]
    fn a_carriage_return_is_part_of_the_name() {
        assert_eq!(interpreter(b"#!/bin/sh\r\n"), path("/bin/sh\r"));
        assert_eq!(interpreter(b"#!/usr/bin/env node\r\n"), searched("node\r"));
    }

    #[test]
    fn follows_env_to_the_name_it_searches() {
        assert_eq!(interpreter(b"#!/usr/bin/env node\n"), searched("node"));
        assert_eq!(interpreter(b"#!/usr/bin/env -S node --max-old-space-size=99\n"), searched("node"));
        assert_eq!(interpreter(b"#!/usr/bin/env -Snode -x\n"), searched("node"));
        assert_eq!(interpreter(b"#!/usr/bin/env -S -i A=1 node\n"), searched("node"));
        assert_eq!(interpreter(b"#!/usr/bin/env\n"), path("/usr/bin/env"));
    }

    #[test]
    fn anything_else_is_no_script() {
        for head in [&b""[..], b"#", b"#!", b"#!\n", b"#! \n/bin/sh", b"\x7fELF", b" #!/bin/sh"] {
            assert_eq!(interpreter(head), None, "{head:?}");
        }
    }
}
