//! What is known about a server's way of making TLS handshakes, beyond what its imports say.

use hasten_openssl::PROVEN;

use super::{Imports, Program};

/// Whether a handshake can be suspended in this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// It starts its handshakes in an event loop that resumes them: hasten's tests run it, and so does a public test
    /// suite.
    Proven,
    /// It has a process or a thread per connection, which blocks until the handshake is done.
    Waits,
    /// It moves the TLS bytes itself, so that OpenSSL never sees a socket.
    Memory,
}

/// The others besides the proven, by the name of the executable or of the script that it runs; a version may follow.
const KNOWN: [(&str, Habit); 10] = [
    ("exim4", Habit::Waits),
    ("mariadbd", Habit::Waits),
    ("mysqld", Habit::Waits),
    ("openvpn", Habit::Memory),
    ("php-fpm", Habit::Waits),
    ("postgres", Habit::Waits),
    ("puma", Habit::Memory),
    ("slapd", Habit::Waits),
    ("stunnel", Habit::Waits),
    ("vsftpd", Habit::Waits),
];

/// Libraries with their own event loop beside the program's.
const HELPERS: [&str; 6] =
    ["libdbus-1.so", "libpcsclite.so", "libpython", "libsystemd.so", "libudev.so", "liburing.so"];

impl Program {
    /// The habit, if known. Proven is only what the TLS library will accept as such: by the exact name of the
    /// executable.
    pub fn habit(&self) -> Option<Habit> {
        if PROVEN.contains(&&*self.name()) {
            return Some(Habit::Proven);
        }
        let scripts = self.scripts.iter().rev().map(|script| super::file_name(script));
        scripts.chain([self.name()]).find_map(|name| of(&name))
    }
}

impl Imports {
    /// As [`importers`](Self::importers) of any of these symbols, excluding libraries that do not serve the program's
    /// connections: those with an event loop of their own, and the C library.
    pub fn workers(&self, symbols: &[&str]) -> Vec<String> {
        let helps =
            |name: &String| HELPERS.iter().chain(&["libc.so."]).any(|helper| name.starts_with(helper));
        let mut names: Vec<_> = symbols.iter().flat_map(|symbol| self.importers(symbol)).collect();
        names.retain(|name| !helps(name));
        names.dedup();
        names
    }
}

fn of(name: &str) -> Option<Habit> {
    let is_version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-');
    let known = KNOWN.iter().find(|(known, _)| name.strip_prefix(known).is_some_and(is_version));
    known.map(|(_, habit)| *habit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_their_names_with_and_without_a_version() {
        assert_eq!((of("php-fpm8.2"), of("stunnel4")), (Some(Habit::Waits), Some(Habit::Waits)));
        assert_eq!(of("puma"), Some(Habit::Memory));
        for name in ["postgresql", "mosquitto", "openresty", ""] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
