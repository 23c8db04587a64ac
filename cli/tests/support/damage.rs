//! Damage to a core file, told by bytes: the fuzzer's, or those of a test.

use hasten_corefile::{Core, CoreError, Options, Program, Report};

/// One step of damage takes so many bytes.
pub(crate) const STEP: usize = 8;
/// The headers and notes of a core file are within so many bytes.
const HEAD: usize = 16 << 10;
/// Sizes, numbers and addresses that nobody has.
const ABSURD: [u64; 12] = [
    0,
    1,
    7,
    u64::MAX,
    u64::MAX - 7,
    u64::MAX << 32,
    1 << 32,
    0x7fff_ffff << 32,
    1 << 62,
    0xffff_ffff,
    0x8000_0000,
    1 << 40,
];

/// A whole core file, which is damaged and mended again and again.
pub(crate) struct Patient {
    bytes: Vec<u8>,
    /// The words that are not zero.
    words: Vec<u32>,
    program: Program,
}

impl Patient {
    pub(crate) fn new(bytes: Vec<u8>, program: Program) -> Self {
        let words = bytes.chunks_exact(8).enumerate().filter(|(_, word)| **word != [0; 8]);
        let words = words.map(|(index, _)| index as u32).collect();
        Self { words, bytes, program }
    }

    /// What is told of the file after such damage; then it is whole again.
    pub(crate) fn suffer(&mut self, steps: &[u8], options: &Options<'_>) -> Result<Report, CoreError> {
        let mut length = self.bytes.len();
        let mut before = Vec::new();
        for step in steps.chunks_exact(STEP) {
            let at = self.place(step[0], u32::from_le_bytes([step[1], step[2], step[3], 0]));
            let other = u32::from_le_bytes([step[4], step[5], step[6], 0]);
            let old = word(&self.bytes, at);
            let new = match step[0] & 7 {
                0..=2 => old ^ (1 << (step[7] & 63)),
                3 => ABSURD[step[7] as usize % ABSURD.len()],
                // Circles: what is elsewhere is here, too.
                4 | 5 => word(&self.bytes, self.place(step[7], other)),
                6 => old.wrapping_add_signed(i64::from(step[7].cast_signed()) * 8),
                _ if step[7] < 64 => {
                    length = at;
                    continue;
                }
                _ => at as u64,
            };
            before.push((at, old));
            self.bytes[at..at + 8].copy_from_slice(&new.to_le_bytes());
        }
        let report = Core::report_bytes(&self.bytes[..length], &self.program, options);
        for (at, old) in before.into_iter().rev() {
            self.bytes[at..at + 8].copy_from_slice(&old.to_le_bytes());
        }
        report
    }

    /// A word that is not zero: of a quarter of all steps, one of the headers.
    fn place(&self, how: u8, number: u32) -> usize {
        let words = match how >> 6 {
            0 => &self.words[..self.words.partition_point(|&word| (word as usize) < HEAD / 8)],
            _ => &self.words[..],
        };
        // 24 bits reach every word, of 2^32 at most.
        words[((u64::from(number) * words.len() as u64) >> 24) as usize] as usize * 8
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// What holds of every report, whatever the file.
pub(crate) fn check(report: &Report) {
    assert!((0.0..=1.0).contains(&report.walked_share), "{}", report.walked_share);
    let heap = &report.heap;
    assert!(heap.live_objects <= heap.objects, "{heap:?}");
    let (count, bytes) = report
        .histogram
        .iter()
        .fold((0, 0), |(count, bytes), entry| (count + entry.count, bytes + entry.shallow_bytes));
    assert_eq!((count, bytes), (heap.live_objects, heap.live_bytes));
    for entry in &report.histogram {
        assert_eq!(entry.retained_bytes.is_none(), report.refused.is_some());
        assert!(entry.retained_bytes.is_none_or(|bytes| bytes <= heap.live_bytes));
        assert!(!entry.name.contains(char::is_control), "{:?}", entry.name);
    }
    assert!(report.refused.is_none() || report.retainers.is_empty());
    for frame in report.threads.iter().flat_map(|thread| &thread.frames) {
        assert!(!frame.function.contains(char::is_control) && !frame.script.contains(char::is_control));
    }
}
