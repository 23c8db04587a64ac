//! Huffman codes of limited length.

/// More symbols than any of deflate's alphabets has.
const MOST: usize = 288;

/// The longest code of any alphabet, and so the length of its counts by length.
const LONGEST: usize = 15;

/// Sets the shortest codes, for symbols that occur so often, with at most `limit` bits each. A symbol that does not
/// occur has none; one that occurs alone has a code of one bit.
///
/// Codes have their first bit lowest, as they are written. Those of symbols that do not occur stay as they are.
pub(super) fn build(frequencies: &[u32], limit: usize, lengths: &mut [u8], codes: &mut [u16]) {
    let (mut keys, mut sorted) = ([0; MOST], [0; MOST]);
    let keys = occurring(frequencies, &mut keys);
    lengths.fill(0);
    let counts = match keys {
        [] => return,
        [only] => {
            lengths[symbol_of(*only)] = 1;
            ONE_OF_ONE_BIT
        }
        _ => {
            let sorted = &mut sorted[..keys.len()];
            sort(keys, sorted);
            let counts = limited(depths(sorted), limit);
            // The rarest get the longest.
            let mut rest = &*sorted;
            for length in (1..=limit).rev() {
                let (now, later) = rest.split_at(counts[length] as usize);
                now.iter().for_each(|key| lengths[symbol_of(*key)] = length as u8);
                rest = later;
            }
            counts
        }
    };
    assign(keys, &counts, lengths, codes);
}

const ONE_OF_ONE_BIT: [u32; DEEPEST] = {
    let mut counts = [0; DEEPEST];
    counts[1] = 1;
    counts
};

/// A symbol with its frequency in front.
const fn key(symbol: usize, frequency: u32) -> u32 {
    frequency << 9 | symbol as u32
}

const fn symbol_of(key: u32) -> usize {
    (key & 511) as usize
}

/// The symbols that occur, in their order.
fn occurring<'k>(frequencies: &[u32], keys: &'k mut [u32; MOST]) -> &'k [u32] {
    let mut used = 0;
    for (symbol, frequency) in frequencies.iter().enumerate() {
        keys[used] = key(symbol, *frequency);
        used += usize::from(*frequency > 0);
    }
    &keys[..used]
}

/// Sorts the rarest first.
fn sort(keys: &[u32], sorted: &mut [u32]) {
    /// Frequencies from here on are rare, so their symbols are compared.
    const OFTEN: usize = 64;
    const FEW: usize = 24;
    if keys.len() <= FEW {
        sorted.copy_from_slice(keys);
        return insertion_sort(sorted);
    }
    let class = |key: &u32| ((key >> 9) as usize).min(OFTEN);
    let mut starts = [0_u16; OFTEN + 2];
    keys.iter().for_each(|key| starts[class(key) + 1] += 1);
    (1..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
    let first_often = usize::from(starts[OFTEN]);
    for key in keys {
        let place = &mut starts[class(key)];
        sorted[usize::from(*place)] = *key;
        *place += 1;
    }
    let often = &mut sorted[first_often..];
    if often.len() <= FEW {
        insertion_sort(often);
    } else {
        often.sort_unstable();
    }
}

fn insertion_sort(keys: &mut [u32]) {
    for i in 1..keys.len() {
        let key = keys[i];
        let mut at = i;
        while at > 0 && keys[at - 1] > key {
            keys[at] = keys[at - 1];
            at -= 1;
        }
        keys[at] = key;
    }
}

/// Deeper than any tree of symbols whose frequencies add up to less than 2^23.
const DEEPEST: usize = 40;

/// How many of at least two symbols, rarest first, are how deep in Huffman's tree.
///
/// Nodes are made in the order of their sums, so both queues, of leaves and of nodes, are sorted. Which two come next is
/// computed rather than branched on: nobody can predict it.
fn depths(sorted: &[u32]) -> [u32; DEEPEST] {
    /// Behind either queue; two of them can be added.
    const NONE: u32 = 1 << 30;
    let (mut leaves, mut sums, mut parents) = ([NONE; MOST + 2], [NONE; MOST + 2], [0_u16; MOST + 2]);
    leaves.iter_mut().zip(sorted).for_each(|(leaf, key)| *leaf = key >> 9);
    let (mut leaf, mut root, last) = (0, 0, sorted.len() - 2);
    for next in 0..=last {
        let (leaf_1, leaf_2) = (leaves[leaf], leaves[leaf + 1]);
        let (node_1, node_2) = (sums[root], sums[root + 1]);
        // What is not taken gets another parent later.
        (parents[root], parents[root + 1]) = (next as u16, next as u16);
        sums[next] = (leaf_1 + node_1).min(leaf_1 + leaf_2).min(node_1 + node_2);
        let nodes = usize::from(leaf_2 > node_1) + usize::from(leaf_1 > node_2);
        (leaf, root) = (leaf + 2 - nodes, root + nodes);
    }
    // At each depth, what is not a node is a leaf.
    let (mut depths, mut nodes) = ([0_u8; MOST], [0_u32; DEEPEST + 1]);
    nodes[0] = 1;
    for i in (0..last).rev() {
        depths[i] = depths[usize::from(parents[i])] + 1;
        nodes[usize::from(depths[i])] += 1;
    }
    let mut counts = [0; DEEPEST];
    for depth in 1..DEEPEST {
        counts[depth] = 2 * nodes[depth - 1] - nodes[depth];
    }
    counts
}

/// Moves what is deeper than `limit` up there, and others down to make room.
fn limited(mut counts: [u32; DEEPEST], limit: usize) -> [u32; DEEPEST] {
    let too_deep: u32 = counts[limit + 1..].iter().sum();
    counts[limit + 1..].fill(0);
    counts[limit] += too_deep;
    if too_deep > 0 {
        let full = 1 << limit;
        let mut taken: u32 = (1..=limit).map(|length| counts[length] << (limit - length)).sum();
        while taken > full {
            // A leaf becomes a node with two, one of which is from the limit.
            let above = (1..limit).rev().find(|length| counts[*length] > 0).unwrap_or(1);
            counts[above] -= 1;
            counts[above + 1] += 2;
            counts[limit] -= 1;
            taken -= 1;
        }
    }
    counts
}

/// Sets the codes that belong to these lengths, of which there are so many each.
fn assign(keys: &[u32], counts: &[u32; DEEPEST], lengths: &[u8], codes: &mut [u16]) {
    let mut next = [0_u16; LONGEST + 1];
    for length in 1..LONGEST {
        next[length + 1] = (next[length] + counts[length] as u16) << 1;
    }
    for symbol in keys.iter().map(|key| symbol_of(*key)) {
        let length = usize::from(lengths[symbol]) & LONGEST;
        codes[symbol] = next[length].reverse_bits() >> (16 - length);
        next[length] = next[length].wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lengths(frequencies: &[u32], limit: usize) -> Vec<u8> {
        let (mut lengths, mut codes) = (vec![0xff; frequencies.len()], vec![0; frequencies.len()]);
        build(frequencies, limit, &mut lengths, &mut codes);
        for (i, code) in codes.iter().enumerate() {
            for (j, other) in codes.iter().enumerate() {
                let shorter = u32::from(lengths[i].min(lengths[j]));
                if i != j && shorter > 0 {
                    assert_ne!((code ^ other).trailing_zeros().min(shorter), shorter, "one begins another");
                }
            }
        }
        lengths
    }

    /// The bits that Huffman's code takes: the sum of all nodes of its tree.
    fn least(frequencies: &[u32]) -> u64 {
        let mut nodes: Vec<u64> = frequencies.iter().filter(|f| **f > 0).map(|f| u64::from(*f)).collect();
        let mut bits = 0;
        while nodes.len() > 1 {
            nodes.sort_unstable_by(|a, b| b.cmp(a));
            let sum = nodes.pop().unwrap() + nodes.pop().unwrap();
            bits += sum;
            nodes.push(sum);
        }
        bits
    }

    #[test]
    fn none_and_one() {
        assert_eq!(lengths(&[0, 0, 0], 15), [0, 0, 0]);
        assert_eq!(lengths(&[0, 7, 0], 15), [0, 1, 0]);
        assert_eq!(lengths(&[1, 1000], 15), [1, 1]);
    }

    #[test]
    fn a_limit_that_matters() {
        let fibonacci: Vec<u32> = (0..19)
            .scan((1, 1), |(a, b), _| {
                let now = *a;
                (*a, *b) = (*b, *a + *b);
                Some(now)
            })
            .collect();
        for limit in [5, 7, 15] {
            let lengths = lengths(&fibonacci, limit);
            assert_eq!(lengths.iter().max().map(|longest| usize::from(*longest)), Some(limit));
            let taken: u32 = lengths.iter().map(|length| 1 << (limit - usize::from(*length))).sum();
            assert_eq!(taken, 1 << limit, "complete, as zlib's inflate wants it");
        }
    }

    proptest! {
        #[test]
        fn codes_are_complete_and_shortest(
            frequencies in proptest::collection::vec(prop_oneof![Just(0_u32), 0_u32..5, 0_u32..300, 0_u32..30_000], 2..286),
        ) {
            let lengths = lengths(&frequencies, 15);
            let used = frequencies.iter().filter(|frequency| **frequency > 0).count();
            for (length, frequency) in lengths.iter().zip(&frequencies) {
                assert_eq!(*length > 0, *frequency > 0);
                assert!(*length <= 15);
            }
            if used > 1 {
                let taken: u32 = lengths.iter().filter(|length| **length > 0).map(|length| 1 << (15 - length)).sum();
                assert_eq!(taken, 1 << 15);
                if lengths.iter().all(|length| *length < 15) {
                    let bits: u64 = lengths.iter().zip(&frequencies).map(|(l, f)| u64::from(*l) * u64::from(*f)).sum();
                    assert_eq!(bits, least(&frequencies));
                }
            }
        }
    }
}
