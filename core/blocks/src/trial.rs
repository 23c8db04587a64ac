//! Whether a cache on this device is faster than the disk, found out by short trials in turns.
//!
//! Only reads that the cache could answer take part, and both sides get the same kind of them: some turns are answered
//! by the cache and some by the disk. A disk with a limited rate answers the first reads after a pause at once, so the
//! beginning of a turn with the disk does not count. What was found out is kept with the cache, so that the next process
//! begins with it. The time is an argument.

use crate::sum;

/// Which one answers a read that both could answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Cache,
    Disk,
}

/// What was found out about a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lesson {
    pub pays: bool,
    /// Means of a read, in nanoseconds.
    pub cache_ns: u64,
    pub disk_ns: u64,
    /// How many trials in a row it has lost.
    pub lost: u64,
}

impl Lesson {
    pub(crate) const BYTES: usize = 40;

    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let words = self.words();
        let mut bytes = [0; Self::BYTES];
        let sum = sum::of_words(LESSON, &words);
        let all = words.into_iter().chain([sum]);
        bytes.chunks_exact_mut(8).zip(all).for_each(|(into, word)| into.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let word =
            |i: usize| bytes[8 * i..][..8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let lesson = Self { pays: word(0) == 1, cache_ns: word(1), disk_ns: word(2), lost: word(3) };
        (word(4) == sum::of_words(LESSON, &lesson.words())).then_some(lesson)
    }

    fn words(&self) -> [u64; 4] {
        [u64::from(self.pays), self.cache_ns, self.disk_ns, self.lost]
    }
}

const LESSON: u64 = 0x1e55;

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1000 * MILLISECOND;

/// Turns of each side in a trial.
const PAIRS: usize = 4;
/// What a turn of the disk takes at least, in time of reads; the first half does not count.
const DISK_TURN_NS: u64 = 100 * MILLISECOND;
/// Reads that count in a turn, at least; more do not make a turn of the cache better.
const READS: u64 = 16;
/// The reads of a turn, at most: memory in place of a disk would take long to fill the time.
const MOST_READS: u64 = 4096;
/// A cache must be at least a fifth faster: it costs memory, a device and writes.
const GAIN: (u64, u64) = (4, 5);
/// A check may take one in so many parts of the time of reads: that of a slow disk would otherwise be most of it.
const BETWEEN: u64 = 50;
const LEAST_BETWEEN_NS: u64 = 500 * MILLISECOND;
/// The first rest of a cache that lost; it doubles with every further loss.
const REST_NS: u64 = 60 * SECOND;
const LONGEST_REST: u32 = 6;

#[derive(Debug)]
pub struct Trial {
    phase: Phase,
    /// Of the trial that is going on.
    turns: Turns,
    lost: u64,
}

#[derive(Debug)]
enum Phase {
    /// Turns in alternation; a full trial, or the check of a cache that pays.
    Turns {
        of: usize,
    },
    /// It pays: so much time of reads until it is checked.
    Serving {
        left_ns: u64,
    },
    Resting {
        until_ns: u64,
    },
}

#[derive(Debug, Default)]
struct Turns {
    now: Turn,
    is_disk: bool,
    cache: Means,
    disk: Means,
    disk_ns: u64,
}

/// The means of the turns of one side, without an allocation.
#[derive(Debug, Default)]
struct Means {
    items: [u64; PAIRS],
    len: usize,
}

impl Means {
    fn push(&mut self, item: u64) {
        if let Some(place) = self.items.get_mut(self.len) {
            *place = item;
            self.len += 1;
        }
    }

    fn as_slice(&self) -> &[u64] {
        &self.items[..self.len]
    }

    fn mean(&self) -> u64 {
        self.as_slice().iter().sum::<u64>() / (self.len.max(1)) as u64
    }
}

#[derive(Debug, Default)]
struct Turn {
    reads: u64,
    busy_ns: u64,
    counted: u64,
    counted_ns: u64,
}

impl Trial {
    /// Begins with what is known.
    #[must_use]
    pub fn new(lesson: Option<Lesson>, now_ns: u64) -> Self {
        let lost = lesson.map_or(0, |lesson| lesson.lost);
        let phase = match lesson {
            Some(lesson) if lesson.pays => Phase::Serving { left_ns: LEAST_BETWEEN_NS },
            Some(_) => Phase::Resting { until_ns: now_ns.saturating_add(rest_ns(lost)) },
            None => Phase::Turns { of: PAIRS },
        };
        Self { phase, turns: Turns::default(), lost }
    }

    /// Who answers a read that both could answer; `None` while the cache rests, when not even a look at it would pay.
    #[must_use]
    pub fn side(&self, now_ns: u64) -> Option<Side> {
        match &self.phase {
            Phase::Turns { .. } if self.turns.is_disk => Some(Side::Disk),
            // The trial after a rest begins with a report.
            Phase::Resting { until_ns } if now_ns < *until_ns => None,
            Phase::Turns { .. } | Phase::Serving { .. } | Phase::Resting { .. } => Some(Side::Cache),
        }
    }

    /// Whether blocks are worth keeping.
    #[must_use]
    pub fn keeps(&self) -> bool {
        !matches!(self.phase, Phase::Resting { .. })
    }

    /// Such a read took so long; returns what the trial has found out, if it has just ended.
    pub fn report(&mut self, side: Side, took_ns: u64, now_ns: u64) -> Option<Lesson> {
        match &mut self.phase {
            Phase::Serving { left_ns } => {
                *left_ns = left_ns.saturating_sub(took_ns);
                if *left_ns == 0 {
                    self.phase = Phase::Turns { of: 1 };
                }
                None
            }
            Phase::Resting { until_ns } => {
                if now_ns >= *until_ns {
                    self.phase = Phase::Turns { of: PAIRS };
                }
                None
            }
            Phase::Turns { of } => {
                let of = *of;
                self.turns.report(side, took_ns);
                if self.turns.cache.len < of || self.turns.disk.len < of {
                    return None;
                }
                let turns = std::mem::take(&mut self.turns);
                self.conclude(&turns, of, now_ns)
            }
        }
    }

    fn conclude(&mut self, turns: &Turns, of: usize, now_ns: u64) -> Option<Lesson> {
        let is_better = |(cache, disk): (&u64, &u64)| cache * GAIN.1 < disk * GAIN.0;
        let won =
            turns.cache.as_slice().iter().zip(turns.disk.as_slice()).filter(|pair| is_better(*pair)).count();
        let (cache_ns, disk_ns) = (turns.cache.mean(), turns.disk.mean());
        let pays = won > of / 2 && is_better((&cache_ns, &disk_ns));
        if !pays && of < PAIRS {
            // One pair is no verdict.
            self.phase = Phase::Turns { of: PAIRS };
            return None;
        }
        self.lost = if pays { 0 } else { self.lost + 1 };
        self.phase = if pays {
            Phase::Serving { left_ns: turns.disk_ns.saturating_mul(BETWEEN).max(LEAST_BETWEEN_NS) }
        } else {
            Phase::Resting { until_ns: now_ns.saturating_add(rest_ns(self.lost)) }
        };
        Some(Lesson { pays, cache_ns, disk_ns, lost: self.lost })
    }
}

impl Turns {
    fn report(&mut self, side: Side, took_ns: u64) {
        let is_disk = side == Side::Disk;
        if is_disk != self.is_disk {
            // It began in the turn before.
            return;
        }
        let now = &mut self.now;
        now.reads += 1;
        now.busy_ns += took_ns;
        if is_disk {
            self.disk_ns = self.disk_ns.saturating_add(took_ns);
        }
        if !is_disk || now.busy_ns > DISK_TURN_NS / 2 || now.reads > MOST_READS / 2 {
            now.counted += 1;
            now.counted_ns += took_ns;
        }
        let is_long = !is_disk || now.busy_ns >= DISK_TURN_NS || now.reads >= MOST_READS;
        if now.counted >= READS && is_long {
            let means = if is_disk { &mut self.disk } else { &mut self.cache };
            means.push(now.counted_ns / now.counted);
            self.now = Turn::default();
            self.is_disk = !is_disk;
        }
    }
}

fn rest_ns(lost: u64) -> u64 {
    REST_NS << (lost.saturating_sub(1)).min(u64::from(LONGEST_REST))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache and a disk with a clock of their own.
    struct World {
        trial: Trial,
        now: u64,
        lessons: Vec<Lesson>,
        disk_reads: u64,
        /// Time.
        on_disk: u64,
        reads: u64,
    }

    impl World {
        fn new(lesson: Option<Lesson>) -> Self {
            let trial = Trial::new(lesson, 0);
            Self { trial, now: 0, lessons: Vec::new(), disk_reads: 0, on_disk: 0, reads: 0 }
        }

        fn read(&mut self, cache_ns: u64, disk_ns: impl Fn(u64) -> u64) {
            let side = self.trial.side(self.now);
            let took = if side == Some(Side::Cache) { cache_ns } else { disk_ns(self.now) };
            self.now += took;
            self.reads += 1;
            if side != Some(Side::Cache) {
                self.disk_reads += 1;
                self.on_disk += took;
            }
            let lesson = side.and_then(|side| self.trial.report(side, took, self.now));
            self.lessons.extend(lesson);
        }
    }

    #[test]
    fn a_cache_before_a_slow_disk_serves_almost_every_read() {
        let mut world = World::new(None);
        for _ in 0..1_000_000 {
            world.read(10_000, |_| 1_000_000);
        }
        assert!(world.lessons.iter().all(|lesson| lesson.pays) && !world.lessons.is_empty());
        assert!(world.disk_reads * 200 < world.reads, "{} of {}", world.disk_reads, world.reads);
        // From here on there are only checks.
        let (began, on_disk) = (world.now, world.on_disk);
        for _ in 0..20_000_000 {
            world.read(10_000, |_| 1_000_000);
        }
        let (took, on_disk) = (world.now - began, world.on_disk - on_disk);
        assert!(on_disk > 0 && on_disk * 40 < took, "{on_disk} of {took} ns");
    }

    #[test]
    fn a_slow_cache_is_left_and_tried_again_less_and_less() {
        let mut world = World::new(None);
        let mut cache = 0;
        for _ in 0..2_000_000 {
            cache += u64::from(world.trial.side(world.now) == Some(Side::Cache));
            world.read(1_000_000, |_| 100_000);
        }
        assert!(world.lessons.iter().all(|lesson| !lesson.pays));
        assert!((2..6).contains(&world.lessons.len()), "{:?}", world.lessons);
        assert!(cache < 400, "{cache}");
        assert!(!world.trial.keeps());
    }

    #[test]
    fn bursts_of_a_limited_disk_do_not_deceive() {
        // After a pause it answers eight reads at once.
        let mut world = World::new(None);
        let (mut last, mut burst) = (0, 0);
        for _ in 0..200_000 {
            burst = if world.now - last > 50_000_000 { 8 } else { burst };
            let side = world.trial.side(world.now).expect("it never rests");
            let took = match side {
                Side::Cache => 400_000,
                Side::Disk if burst > 0 => {
                    burst -= 1;
                    50_000
                }
                Side::Disk => 1_000_000,
            };
            world.now += took;
            if side == Side::Disk {
                last = world.now;
            }
            world.lessons.extend(world.trial.report(side, took, world.now));
        }
        assert!(world.lessons.iter().all(|lesson| lesson.pays), "{:?}", world.lessons);
    }

    #[test]
    fn a_disk_that_becomes_fast_is_noticed_and_a_lesson_is_remembered() {
        let mut world = World::new(Some(Lesson { pays: true, cache_ns: 1, disk_ns: 2, lost: 0 }));
        assert_eq!(world.trial.side(0), Some(Side::Cache));
        for _ in 0..100_000 {
            world.read(10_000, |_| 5_000);
        }
        let lesson = *world.lessons.last().expect("a lesson");
        assert!(!lesson.pays && !world.trial.keeps());
        let next = World::new(Lesson::decode(&lesson.encode()));
        assert_eq!(next.trial.side(0), None);
        assert_eq!(next.trial.side(rest_ns(lesson.lost)), Some(Side::Cache));
    }

    #[test]
    fn a_damaged_lesson_is_none() {
        let lesson = Lesson { pays: true, cache_ns: 3, disk_ns: 4, lost: 0 };
        let mut bytes = lesson.encode();
        assert_eq!(Lesson::decode(&bytes), Some(lesson));
        bytes[9] ^= 1;
        assert_eq!(Lesson::decode(&bytes), None);
        assert_eq!(Lesson::decode(&[0; Lesson::BYTES]), None);
    }
}
