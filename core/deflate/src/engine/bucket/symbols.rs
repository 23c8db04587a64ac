//! Deflate's symbols for lengths and distances, and the fixed codes.

/// Literals, the end of a block, and lengths.
pub(super) const LITERALS_AND_LENGTHS: usize = 286;
pub(super) const DISTANCES: usize = 30;
pub(super) const END_OF_BLOCK: usize = 256;
/// The symbol of the shortest length.
pub(super) const FIRST_LENGTH: usize = 257;
pub(super) const LENGTHS: usize = 29;
pub(super) const SHORTEST: u32 = 3;
pub(super) const LONGEST: u32 = 258;

/// How many bits follow a length's symbol.
pub(super) const LENGTH_EXTRA: [u8; LENGTHS] =
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];

/// Lengths, less the shortest: the first of each symbol, and the end. The longest length has a symbol of its own,
/// although the one before could have reached it.
pub(super) const LENGTH_STARTS: [u16; LENGTHS + 1] = {
    let mut starts = [0; LENGTHS + 1];
    let mut slot = 1;
    while slot < LENGTHS {
        starts[slot] = starts[slot - 1] + (1 << LENGTH_EXTRA[slot - 1]);
        slot += 1;
    }
    starts[LENGTHS - 1] = 255;
    starts[LENGTHS] = 256;
    starts
};

/// How many bits follow a distance's symbol.
pub(super) const DISTANCE_EXTRA: [u8; DISTANCES] = {
    let mut extra = [0; DISTANCES];
    let mut symbol = 4;
    while symbol < DISTANCES {
        extra[symbol] = (symbol / 2 - 1) as u8;
        symbol += 1;
    }
    extra
};

/// The symbols of distances, less one: of those below 256, and of every 128th.
const DISTANCE_SYMBOLS: [u8; 512] = {
    let mut symbols = [0; 512];
    let mut i = 0;
    while i < 512 {
        let distance: u32 = if i < 256 { i as u32 } else { (i as u32 - 256) << 7 };
        symbols[i] = if distance < 4 {
            distance as u8
        } else {
            let log = distance.ilog2();
            (2 * log + (distance >> (log - 1) & 1)) as u8
        };
        i += 1;
    }
    symbols
};

/// The symbol of a distance, less one, of up to 32,768.
#[inline(always)]
pub(super) fn distance_symbol(distance: u32) -> u32 {
    let index = if distance < 256 { distance } else { 256 + (distance >> 7) };
    DISTANCE_SYMBOLS[index as usize & 511].into()
}

/// The lengths of the fixed codes. The last two symbols do not occur.
pub(super) const FIXED_LENGTHS: [u8; LITERALS_AND_LENGTHS] = {
    let mut lengths = [8; LITERALS_AND_LENGTHS];
    let mut symbol = 144;
    while symbol < 280 {
        lengths[symbol] = if symbol < 256 { 9 } else { 7 };
        symbol += 1;
    }
    lengths
};

pub(super) const FIXED_DISTANCE_LENGTHS: [u8; DISTANCES] = [5; DISTANCES];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_those_of_the_format() {
        assert_eq!(LENGTH_STARTS[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 10]);
        assert_eq!(LENGTH_STARTS[26..], [195 - 3, 227 - 3, 258 - 3, 256]);
        let mut bases = vec![];
        for distance in 0..32_768 {
            let symbol = distance_symbol(distance) as usize;
            if bases.len() == symbol {
                bases.push(distance);
            }
            assert_eq!(symbol + 1, bases.len());
            assert!(distance - bases[symbol] < 1 << DISTANCE_EXTRA[symbol]);
            assert!(bases[symbol].is_multiple_of(1 << DISTANCE_EXTRA[symbol]), "extra bits are the lowest");
        }
        assert_eq!(bases.len(), DISTANCES);
        assert_eq!((bases[29], DISTANCE_EXTRA[29]), (24_576, 13));
    }
}
