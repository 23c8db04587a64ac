//! A library's version, found in its bytes: running it to ask would be running foreign code.

use std::path::Path;

use memchr::memmem;

use super::elf;

/// The version text of libssl, libcrypto and libz; `None` for other libraries.
pub(super) fn of(name: &str, path: &Path) -> Option<String> {
    if name.starts_with("libcrypto.so") || name.starts_with("libssl.so") {
        // Only libcrypto carries the full text; the library beside libssl is the one that it loads.
        let crypto = path.with_file_name(name.replace("libssl", "libcrypto"));
        return Some(format!("OpenSSL {}", after(&constants(&crypto)?, b"OpenSSL ", 2)?));
    }
    if name.starts_with("libz.so") {
        return Some(format!("zlib {}", after(&constants(path)?, b" deflate ", 1)?));
    }
    None
}

fn constants(path: &Path) -> Option<Vec<u8>> {
    elf::section(path, ".rodata").ok()?
}

/// The version number that follows `prefix`: it starts with a digit and has at least `dots` dots.
fn after(bytes: &[u8], prefix: &[u8], dots: usize) -> Option<String> {
    memmem::find_iter(bytes, prefix).find_map(|at| number(&bytes[at + prefix.len()..], dots))
}

/// The version number that `tail` begins with.
pub(super) fn number(tail: &[u8], dots: usize) -> Option<String> {
    let end =
        tail.iter().take(32).position(|byte| !byte.is_ascii_alphanumeric() && !b".-+~".contains(byte))?;
    let text = str::from_utf8(&tail[..end]).ok()?;
    let plausible = text.starts_with(|c: char| c.is_ascii_digit()) && text.matches('.').count() >= dots;
    plausible.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::after;

    #[test]
    fn finds_the_version_and_not_its_look_alikes() {
        let bytes = b"\0OpenSSL default\0OpenSSL 3 provider\0OpenSSL OpenSSL 3.0.22 1 Sep 2026\0";
        assert_eq!(after(bytes, b"OpenSSL ", 2).as_deref(), Some("3.0.22"));
        assert_eq!(after(b" deflate 1.2.13 Copyright", b" deflate ", 1).as_deref(), Some("1.2.13"));
        assert_eq!(after(b"OpenSSL 1.1.1w  11 Sep", b"OpenSSL ", 2).as_deref(), Some("1.1.1w"));
        assert_eq!(after(b"OpenSSL 3.0.22", b"OpenSSL ", 2), None, "an unterminated text is no text");
        assert_eq!(after(b"", b"OpenSSL ", 2), None);
    }
}
