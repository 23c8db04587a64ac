//! `--trace-gc-verbose`: a table after each collection, and remarks.
//!
//! ```text
//! New space,              used:    182 KB, available:    824 KB, committed:   2048 KB
//! Old space,                  used:   2415 KB, available:*     142 KB, committed:   2608 KB
//! ```

use super::cursor::{Cursor, MOST};
use super::event::Row;

/// V8's remarks that do not concern collections or change any figure: from `--trace-gc-verbose` and
/// `--trace-incremental-marking`, 18 to 26.
const REMARKS: [&[u8]; 21] = [
    b"Memory allocator,",
    b"Unmapper buffering ",
    b"Pool buffering ",
    b"Backing store memory: ",
    b"External memory global",
    b"Total time spent in GC",
    b"(*) Sweeping is still in progress",
    b"Shrinking page ",
    b"Fast promotion mode: ",
    b"Memory reducer: ",
    b"Memory pool: ",
    b"evacuation-summary: ",
    b"[HeapController] ",
    b"[GlobalMemoryController] ",
    b"[MemoryBalancer] ",
    b"[IncrementalMarking] ",
    b"[IncrementalMaring] ",
    b"[Scavenge] ",
    b"[MinorMS] ",
    b"[ConcurrentMarking] ",
    b"[GC in old space requested]",
];

pub(super) fn is_remark(text: &[u8]) -> bool {
    REMARKS.iter().any(|remark| text.starts_with(remark))
}

/// A row of the table; `None` for a row that hasten does not use, and for anything that is not a row.
pub(super) fn row(text: &[u8]) -> Option<Row> {
    if let Some(rest) = text.strip_prefix(b"External memory reported:") {
        return Some(Row::External(kilobytes(&mut Cursor(rest))?));
    }
    let comma = memchr::memchr(b',', &text[..text.len().min(32)])?;
    let name = text[..comma].strip_suffix(b" space").or_else(|| text[..comma].strip_suffix(b" spaces"))?;
    let Columns { used, available, committed } = columns(&text[comma + 1..])?;
    Some(match name {
        b"New" => Row::New { used, capacity: capacity(used + available) },
        b"New large object" => Row::NewLarge(used),
        b"Old" => Row::Old(used),
        b"Code" | b"Code large object" => Row::Code(used),
        b"Map" => Row::Map(used),
        b"Large object" => Row::Large(used),
        b"Read-only" => Row::ReadOnly(used),
        b"All" => Row::Committed(committed),
        _ => Row::Other(used),
    })
}

struct Columns {
    used: u64,
    available: u64,
    committed: u64,
}

fn columns(text: &[u8]) -> Option<Columns> {
    let mut line = Cursor(text);
    line.spaces();
    line.expect(b"used:")?;
    let used = kilobytes(&mut line)?;
    line.expect(b", available:")?;
    // A star marks an inexact figure; it comes before or after it.
    line.eat(b"*");
    let available = kilobytes(&mut line)?;
    line.eat(b"*");
    line.expect(b", committed:")?;
    let committed = kilobytes(&mut line)?;
    Some(Columns { used, available, committed })
}

fn kilobytes(line: &mut Cursor) -> Option<u64> {
    line.spaces();
    let kilobytes = line.whole()?;
    line.expect(b" KB")?;
    kilobytes.checked_mul(1024).filter(|bytes| *bytes <= MOST as u64)
}

/// V8 counts the part of its pages usable by objects, which is up to 2 % less than a semi-space of a power of two.
fn capacity(usable: u64) -> u64 {
    let round = usable.checked_next_power_of_two().unwrap_or(usable);
    if usable > round - round / 50 { round } else { usable.next_multiple_of(256 << 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_every_release_are_read() {
        let new = row(b"New space,              used:    182 KB, available:    824 KB, committed:   2048 KB");
        assert_eq!(new, Some(Row::New { used: 182 << 10, capacity: 1 << 20 }));
        let old =
            row(b"Old space,                  used:   2415 KB, available:*     142 KB, committed:   2608 KB");
        assert_eq!(old, Some(Row::Old(2415 << 10)));
        let old =
            row(b"Trusted space,              used:    801 KB, available:    247 KB*, committed:   1072 KB");
        assert_eq!(old, Some(Row::Other(801 << 10)));
        let all =
            row(b"All spaces,             used:   3767 KB, available: 4239664 KB, committed:   6248 KB");
        assert_eq!(all, Some(Row::Committed(6248 << 10)));
        assert_eq!(row(b"External memory reported:     10 KB"), Some(Row::External(10 << 10)));
    }

    #[test]
    fn a_row_that_was_cut_is_none() {
        let whole = b"New space, used: 182 KB, available: 824 KB, committed: 2048 KB";
        assert!((0..whole.len()).all(|end| row(&whole[..end]).is_none()));
    }

    #[test]
    fn a_semi_space_is_a_power_of_two_if_it_nearly_is() {
        let sizes =
            [1006, 1023, 16_108, 32_765, 65_531, 12_080].map(|kilobytes| capacity(kilobytes << 10) >> 10);
        assert_eq!(sizes, [1024, 1024, 16_384, 32_768, 65_536, 12_288]);
    }
}
