//! Where logs are kept on the fast device: `DIRECTORY/hasten-logs/NAME.PID.NUMBER`.
//!
//! The names on the device mean nothing. A log that its program renames keeps its place, because only the link is renamed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The directory below the one that the user named: what is in it is ours.
pub const BELOW: &str = "hasten-logs";

/// The directory for logs below the one that the user named.
#[must_use]
pub fn directory(named: &Path) -> PathBuf {
    named.join(BELOW)
}

/// A place for a log of this name; the numbers make it nobody else's.
#[must_use]
pub fn of(directory: &Path, name: &[u8], pid: u32, number: u64) -> PathBuf {
    let mut file = name.to_vec();
    file.extend_from_slice(format!(".{pid}.{number}").as_bytes());
    directory.join(OsStr::from_bytes(&file))
}

/// Whether a link leads to a place of ours, wherever the device is mounted.
#[must_use]
pub fn is_ours(target: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(target));
    path.is_absolute()
        && path.parent().and_then(Path::file_name) == Some(OsStr::new(BELOW))
        && path.file_name().is_some_and(|name| is_place(name.as_bytes()))
}

/// `NAME.PID.NUMBER`
fn is_place(name: &[u8]) -> bool {
    let mut parts = name.rsplitn(3, |byte| *byte == b'.');
    let is_number = |part: Option<&[u8]>| {
        part.is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
    };
    is_number(parts.next()) && is_number(parts.next()) && parts.next().is_some_and(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_by_its_path() {
        let place = of(&directory(Path::new("/mnt/fast")), b"000012.log", 7, 3);
        assert_eq!(place, Path::new("/mnt/fast/hasten-logs/000012.log.7.3"));
        assert!(is_ours(place.as_os_str().as_bytes()));
        for other in [
            "hasten-logs/a.1.2",
            "/mnt/fast/a.1.2",
            "/hasten-logs/a.1",
            "/hasten-logs/.1.2",
            "/hasten-logs/a.b.2",
        ] {
            assert!(!is_ours(other.as_bytes()), "{other}");
        }
    }
}
