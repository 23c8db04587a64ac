//! A library's version, found in its bytes: running it to ask would be running foreign code.

use std::path::Path;

use memchr::memmem;

use super::elf;

/// The projects whose libcrypto may be behind one of these names, as their version texts begin. Only AWS-LC's names
/// another.
const PROJECTS: [&str; 3] = ["AWS-LC", "AWS-LC FIPS", "OpenSSL"];

/// The version text of libssl, libcrypto and libz; `None` for other libraries.
pub(super) fn of(name: &str, path: &Path) -> Option<String> {
    if is_named(name, "libcrypto.so") || is_named(name, "libssl.so") {
        // Only libcrypto carries the full text; the library beside libssl is the one that it loads.
        let crypto = path.with_file_name(name.replace("libssl", "libcrypto"));
        return of_libcrypto(&constants(&crypto)?);
    }
    if name.starts_with("libz.so") {
        return Some(format!("zlib {}", after(&constants(path)?, b" deflate ", 1)?));
    }
    None
}

/// Whether a library's name starts with `stem`. AWS-LC's packages mark theirs, to be installed beside OpenSSL.
pub(super) fn is_named(name: &str, stem: &str) -> bool {
    name.replacen("-awslc", "", 1).starts_with(stem)
}

fn of_libcrypto(constants: &[u8]) -> Option<String> {
    PROJECTS.iter().find_map(|project| {
        let number = after(constants, format!("{project} ").as_bytes(), 2)?;
        Some(format!("{project} {number}"))
    })
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
    use super::{after, is_named, of_libcrypto};

    #[test]
    fn finds_the_version_and_not_its_look_alikes() {
        let bytes = b"\0OpenSSL default\0OpenSSL 3 provider\0OpenSSL OpenSSL 3.0.22 1 Sep 2026\0";
        assert_eq!(after(bytes, b"OpenSSL ", 2).as_deref(), Some("3.0.22"));
        assert_eq!(after(b" deflate 1.2.13 Copyright", b" deflate ", 1).as_deref(), Some("1.2.13"));
        assert_eq!(after(b"OpenSSL 1.1.1w  11 Sep", b"OpenSSL ", 2).as_deref(), Some("1.1.1w"));
        assert_eq!(after(b"OpenSSL 3.0.22", b"OpenSSL ", 2), None, "an unterminated text is no text");
        assert_eq!(after(b"", b"OpenSSL ", 2), None);
    }

    #[test]
    fn tells_aws_lc_from_the_openssl_that_it_is_compatible_with() {
        let version = |text: &str| of_libcrypto(format!("\0AWS-LC failure\0{text}\0").as_bytes());
        for text in ["AWS-LC 5.12.0", "AWS-LC FIPS 3.2.0", "OpenSSL 3.0.22"] {
            assert_eq!(version(text).as_deref(), Some(text));
        }
        assert_eq!(version("OpenSSL 1.1.1 (compatible; AWS-LC 5.12.0)\0").as_deref(), Some("AWS-LC 5.12.0"));
        assert_eq!(version("BoringSSL"), None);
    }

    #[test]
    fn aws_lcs_packages_mark_their_names() {
        for name in ["libssl.so", "libssl.so.3", "libssl-awslc.so.1"] {
            assert!(is_named(name, "libssl.so"), "{name}");
        }
        assert!(!is_named("libssl3.so", "libssl.so") && !is_named("libcrypto-awslc.so.1", "libssl.so"));
    }
}
