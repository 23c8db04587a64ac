//! What `hasten` reads of a program before it starts it: `#!` lines, ELF files, the loader's cache, hook tables,
//! and the configuration file. All of it may be written by somebody else.

#![no_main]

use std::path::Path;

use hasten_plan::{Config, hooks};
use hasten_probe::program::elf::{self, Elf, Machine};
use hasten_probe::program::ldcache::Cache;
use hasten_probe::program::script::{self, Interpreter};
use libfuzzer_sys::fuzz_target;

/// A 64-bit little-endian x86 header with its program headers directly behind it: without these an input
/// would hardly ever get beyond the first checks.
const HEADER: [u8; 64] = {
    let mut header = [0; 64];
    let start = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0";
    let mut i = 0;
    while i < start.len() {
        header[i] = start[i];
        i += 1;
    }
    header[32] = 64; // e_phoff
    header[52] = 64; // e_ehsize
    header[54] = 56; // e_phentsize
    header[56] = 4; // e_phnum
    header[58] = 64; // e_shentsize
    header
};

const CACHE: &[u8] = b"glibc-ld.so.cache1.1";

fuzz_target!(|data: &[u8]| {
    program(data);
    program(&[&HEADER[..], data].concat());
    shebang(data);
    shebang(&[b"#!", data].concat());
    cache(data);
    cache(&[CACHE, data].concat());
    for hook in hooks::parse(data) {
        assert!(!hook.symbol.contains(['\t', '\n']));
    }
    if let Ok(text) = str::from_utf8(data)
        && let Err(error) = Config::parse(text, Path::new("hasten.toml"))
    {
        assert!(!error.fix().is_empty() && error.to_string().starts_with("hasten.toml:"), "{error}");
    }
});

fn program(bytes: &[u8]) {
    let Ok(elf) = Elf::parse(bytes) else { return };
    assert!(bytes.starts_with(b"\x7fELF"));
    assert!(elf.machine != Machine::Unknown);
    let names = elf.needed.iter().chain(&elf.rpath).chain(&elf.runpath);
    assert!(names.into_iter().all(|name| !name.is_empty()));
    let imports = elf::imports(bytes).unwrap_or_default();
    assert!(imports.iter().all(|import| !import.symbol.is_empty()));
    let _ = elf::exports(bytes, "SSL_do_handshake");
}

fn shebang(head: &[u8]) {
    match script::interpreter(head) {
        None => {}
        Some(Interpreter::Path(path)) => assert!(!path.as_os_str().is_empty()),
        Some(Interpreter::Searched(name)) => assert!(!name.is_empty()),
    }
}

fn cache(bytes: &[u8]) {
    let cache = Cache::parse(bytes);
    assert!(cache.paths("libssl.so.3").count() <= bytes.len() / 24);
}
