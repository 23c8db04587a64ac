//! The conditions of the TLS library: one table, by which the plan judges a program before it starts, and the library the
//! process in which it finds itself.

#![forbid(unsafe_code)]

/// The series whose libssl was read and is tested, as people write it.
pub const SERIES: &str = "3.0";

/// The shared library that has the handshakes of that series, and some later ones.
pub const LIBSSL: &str = "libssl.so.3";

/// How a server begins a handshake that can be put aside.
pub const HANDSHAKES: [&str; 2] = ["SSL_do_handshake", "SSL_accept"];

/// How a thread waits for its connections, where it can be told of one that goes on.
pub const LOOPS: [&str; 2] = ["epoll_wait", "epoll_pwait"];

/// How OpenSSL is given a socket to read from. A program that has none of them moves the bytes itself.
pub const SOCKETS: [&str; 5] =
    ["SSL_set_fd", "SSL_set_rfd", "BIO_new_socket", "BIO_s_socket", "BIO_s_accept"];

/// How a program makes a kind of BIO, which may read from a socket or from memory.
pub const OWN_BIO: &str = "BIO_meth_new";

/// Servers, by the names of their executables, that hasten's tests and public suites run: their event loops come back for
/// every handshake, and their callbacks do not mind where they are called.
pub const PROVEN: [&str; 2] = ["haproxy", "nginx"];

/// Whether `OpenSSL_version_num()` names a release of [`SERIES`].
pub const fn is_known_number(number: u64) -> bool {
    number >> 20 == 0x300
}

/// The same of a version's text, such as `OpenSSL 3.0.19`.
pub fn is_known_text(text: &str) -> bool {
    let number = text.strip_prefix("OpenSSL ").unwrap_or(text);
    number.strip_prefix(SERIES).is_some_and(|rest| rest.starts_with('.'))
}

/// The newest release of [`SERIES`] that the tests have run with.
pub const NEWEST_TESTED: u64 = 22;

/// Whether a release of [`SERIES`] is no newer than that. In another one libssl may call libcrypto in another order, so
/// what relies on the order is left to OpenSSL.
pub const fn is_tested_number(number: u64) -> bool {
    is_known_number(number) && number >> 4 & 0xff <= NEWEST_TESTED
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number is MNN00PPS: major, minor, patch, status.
    #[test]
    fn number_and_text_name_the_same_releases() {
        for (number, text, known) in [
            (0x3000_0000, "OpenSSL 3.0.0", true),
            (0x3000_0130, "OpenSSL 3.0.19", true),
            (0x3000_00a0, "3.0.10", true),
            (0x3010_0000, "OpenSSL 3.1.0", false),
            (0x3050_0040, "OpenSSL 3.5.4", false),
            (0x1010_117f, "OpenSSL 1.1.1w", false),
            (0x4000_0000, "OpenSSL 4.0.0", false),
        ] {
            assert_eq!((is_known_number(number), is_known_text(text)), (known, known), "{text}");
        }
        assert!(is_tested_number(0x3000_0130) && is_tested_number(0x3000_0160));
        assert!(
            !is_tested_number(0x3000_0170) && !is_tested_number(0x3010_0000),
            "a release nobody has tried"
        );
        assert!(!is_known_text("OpenSSL 3.01.2") && !is_known_text("OpenSSL 3.0"));
    }
}
