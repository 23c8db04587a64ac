//! A set of small numbers, one bit for each.

#[derive(Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

/// How many smaller numbers there are in a set.
pub(crate) struct Ranks<'a> {
    bits: &'a Bits,
    before: Vec<u32>,
}

impl Ranks<'_> {
    pub(crate) fn of(&self, number: u32) -> u32 {
        let block = number as usize / 64;
        self.before[block] + (self.bits.0[block] & ((1 << (number % 64)) - 1)).count_ones()
    }
}

impl Bits {
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    pub(crate) fn has(&self, number: u32) -> bool {
        self.0[number as usize / 64] >> (number % 64) & 1 == 1
    }

    /// For each 64 numbers, how many smaller ones there are.
    pub(crate) fn ranks(&self) -> Ranks<'_> {
        let mut before = 0;
        let rank = |word: &u64| {
            let rank = before;
            before += word.count_ones();
            rank
        };
        Ranks { before: self.0.iter().map(rank).collect(), bits: self }
    }

    /// Whether the number was new.
    pub(crate) fn add(&mut self, number: u32) -> bool {
        let word = &mut self.0[number as usize / 64];
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}
