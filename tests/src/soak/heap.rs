//! What a process has allocated and not freed, read from its heap while it runs.
//!
//! A process's memory says little about leaks: a heap stays as large as it ever was, with holes in it. glibc keeps the
//! first thread's heap as a chain of chunks, each preceded by its length, whose lowest bit says whether the previous
//! chunk is in use. Blocks of 128 KiB and more may have separate mappings, which are not examined; the contents of the
//! caches for small blocks count as in use.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// The chain may change while it is read; a busy process rarely does that for long.
const ATTEMPTS: usize = 5;

const IN_USE: u64 = 1;
const FLAGS: u64 = 7;
/// The previous length and its own.
const HEAD: usize = 16;

/// Bytes; `None` if there is no such heap, it may not be read, or it never held still.
#[must_use]
pub fn allocated(pid: u32) -> Option<u64> {
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    (0..ATTEMPTS).find_map(|_| {
        let range = heap(&fs::read_to_string(format!("/proc/{pid}/maps")).ok()?)?;
        let mut bytes = vec![0; usize::try_from(range.end - range.start).ok()?];
        memory.read_exact_at(&mut bytes, range.start).ok()?;
        in_use(&bytes)
    })
}

/// The kernel reports parts of it on separate lines.
fn heap(maps: &str) -> Option<Range<u64>> {
    let parts = maps.lines().filter(|line| line.ends_with("[heap]")).filter_map(|line| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
    });
    parts.reduce(|all, part| all.start.min(part.start)..all.end.max(part.end))
}

/// The sum of the chunks in use, if the chain leads to the end.
fn in_use(heap: &[u8]) -> Option<u64> {
    let word = |at: usize| Some(u64::from_le_bytes(heap.get(at..at + 8)?.try_into().ok()?));
    let possible = HEAD..=heap.len();
    let length =
        |at: usize| Some((word(at + 8)? & !FLAGS) as usize).filter(|length| possible.contains(length));
    let (mut at, mut sum) = (0, 0);
    loop {
        let next = at + length(at)?;
        // The last one is what the heap has not handed out yet.
        if next == heap.len() {
            return Some(sum);
        }
        if word(next + 8)? & IN_USE != 0 {
            sum += (next - at) as u64;
        }
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    /// Chunks of these lengths, each with whether it is in use, followed by a rest.
    fn chain(chunks: &[(u64, bool)], rest: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut before = true;
        for (length, used) in chunks.iter().copied().chain([(rest, false)]) {
            let from = bytes.len();
            bytes.resize(from + length as usize, 0xee);
            bytes[from + 8..from + 16].copy_from_slice(&(length | u64::from(before)).to_le_bytes());
            before = used;
        }
        bytes
    }

    #[test]
    fn chunks_in_use_are_added_up() {
        assert_eq!(in_use(&chain(&[(0x290, true), (48, false), (64, true)], 4096)), Some(0x290 + 64));
        assert_eq!(in_use(&chain(&[], 4096)), Some(0));
    }

    #[test]
    fn a_chain_that_does_not_hold_is_nothing() {
        let good = chain(&[(48, true), (64, true)], 128);
        for (at, value) in [(8, 0), (8, 56), (48 + 8, u64::MAX), (112 + 8, 256)] {
            let mut bad = good.clone();
            bad[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
            assert_eq!(in_use(&bad), None, "{value} at {at}");
        }
        assert_eq!(in_use(&[]), None);
    }

    #[test]
    fn parts_of_the_heap_are_one() {
        let maps = "1000-3000 r--p 0 0 /bin/cat\n4000-6000 rw-p 0 0 [heap]\n6000-a000 rw-p 0 0 [heap]\n";
        assert_eq!(heap(maps), Some(0x4000..0xa000));
        assert_eq!(heap("1000-3000 r--p 0 0 /bin/cat\n"), None);
    }

    #[test]
    fn what_a_process_allocates_and_frees_is_seen() {
        let script = "use strict; $| = 1; my @all; while (<STDIN>) { /more/ ? push(@all, map { 'x' x 5000 } 1..400) : (@all = ()); print \"done\\n\" }";
        let mut perl = Command::new("perl");
        let mut perl =
            perl.args(["-e", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut ask, mut answers) = (perl.stdin.take().unwrap(), perl.stdout.take().unwrap());
        let mut after = |what: &str| {
            writeln!(ask, "{what}").unwrap();
            std::io::Read::read_exact(&mut answers, &mut [0; 5]).unwrap();
            allocated(perl.id()).expect("a heap at rest")
        };
        let (empty, full, again) = (after("less"), after("more"), after("less"));
        assert!(full > empty + 1_900_000 && again < empty + 200_000, "{empty}, {full}, {again}");
        drop(ask);
        perl.wait().unwrap();
    }
}
