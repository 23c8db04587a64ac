//! Which files are logs: by their names, and by what is beside them.

/// A kind of log: a row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    is_named: fn(&[u8]) -> bool,
    /// The directory is the program's if one of these is in it; relative to the directory.
    witnesses: &'static [&'static str],
}

/// Another kind is another row. Not among them: SQLite's `-wal`, which SQLite refuses to open through a link.
pub const KINDS: [Kind; 3] = [
    Kind { name: "rocksdb", is_named: is_rocksdb, witnesses: &["CURRENT", "IDENTITY", "LOCK"] },
    // The manifest is younger than the first file. The directory has no other purpose, which its parent does not tell.
    Kind { name: "append-only-file", is_named: is_append_only, witnesses: &["."] },
    Kind { name: "postgresql", is_named: is_postgresql, witnesses: &["../PG_VERSION", "../global"] },
];

/// The kind of a file that is about to be made, if it is a log. `exists` tells of a path relative to its directory.
pub fn kind(name: &[u8], exists: impl Fn(&str) -> bool) -> Option<Kind> {
    let mut kinds = KINDS.into_iter().filter(|kind| (kind.is_named)(name));
    kinds.find(|kind| kind.witnesses.iter().any(|witness| exists(witness)))
}

/// Whether a name could be a log's: what a call with any other name costs.
#[must_use]
pub fn is_possible(name: &[u8]) -> bool {
    KINDS.iter().any(|kind| (kind.is_named)(name))
}

/// `000123.log`
fn is_rocksdb(name: &[u8]) -> bool {
    name.strip_suffix(b".log")
        .is_some_and(|number| number.len() >= 6 && number.iter().all(u8::is_ascii_digit))
}

/// `appendonly.aof.12.incr.aof`
fn is_append_only(name: &[u8]) -> bool {
    let Some(rest) = name.strip_suffix(b".incr.aof") else { return false };
    let Some(dot) = rest.iter().rposition(|byte| *byte == b'.') else { return false };
    dot > 0 && dot + 1 < rest.len() && rest[dot + 1..].iter().all(u8::is_ascii_digit)
}

/// `000000010000000000000001`, and the name under which it is made.
fn is_postgresql(name: &[u8]) -> bool {
    let is_segment = name.len() == 24 && name.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
    let is_new = name
        .strip_prefix(b"xlogtemp.")
        .is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit));
    is_segment || is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_told_by_their_names_and_their_neighbours() {
        for (name, beside, expected) in [
            ("000012.log", "LOCK", Some("rocksdb")),
            ("000012.log", "nothing", None),
            ("12.log", "LOCK", None),
            ("LOG", "LOCK", None),
            ("00001x.log", "LOCK", None),
            ("appendonly.aof.1.incr.aof", ".", Some("append-only-file")),
            ("appendonly.aof.1.base.rdb", ".", None),
            (".incr.aof", ".", None),
            ("a..incr.aof", ".", None),
            ("000000010000000000000001", "../PG_VERSION", Some("postgresql")),
            ("xlogtemp.77", "../global", Some("postgresql")),
            ("xlogtemp.", "../global", None),
            ("00000001000000000000000g", "../PG_VERSION", None),
            ("000000010000000000000001", "../other", None),
            ("main.db-wal", ".", None),
        ] {
            let found = kind(name.as_bytes(), |path| path == beside);
            assert_eq!(found.map(|kind| kind.name), expected, "{name} beside {beside}");
        }
    }
}
