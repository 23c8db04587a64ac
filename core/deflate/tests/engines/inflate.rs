//! RFC 1951, one bit at a time.

use hasten_deflate::engine::Bits;

/// What part of a stream decodes to.
#[derive(Debug)]
pub(crate) struct Inflated {
    pub(crate) plain: Vec<u8>,
    /// Where the last complete block ends, in bits from the beginning of the bytes.
    pub(crate) end: usize,
    /// Whether that block was marked as the last.
    pub(crate) is_final: bool,
    /// The longest distance of a match.
    pub(crate) reach: usize,
}

/// Inflates all blocks between the bits `start` and `end` of `bytes`. Panics with a reason if anything is wrong.
pub(crate) fn inflate(bytes: &[u8], start: usize, end: usize, history: &[u8]) -> Inflated {
    let mut reader = Reader { bytes, position: start, end };
    let mut window = Window { bytes: history.to_vec(), reach: 0 };
    let mut is_final = false;
    while !is_final && reader.position < end {
        is_final = reader.take(1) == 1;
        block(&mut reader, &mut window);
    }
    Inflated {
        plain: window.bytes.split_off(history.len()),
        end: reader.position,
        is_final,
        reach: window.reach,
    }
}

/// Joins bytes and the bits behind them.
pub(crate) fn join(mut bytes: Vec<u8>, after: Bits) -> (Vec<u8>, usize) {
    let end = 8 * bytes.len() + usize::from(after.count());
    if !after.is_empty() {
        bytes.push(after.value());
    }
    (bytes, end)
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    end: usize,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> usize {
        assert!(self.position + count <= self.end, "the stream ends within a block");
        let bit = |at: usize| usize::from(self.bytes[at / 8] >> (at % 8) & 1);
        let value = (0..count).map(|i| bit(self.position + i) << i).sum();
        self.position += count;
        value
    }

    fn align(&mut self) {
        self.take((8 - self.position % 8) % 8);
    }
}

struct Window {
    bytes: Vec<u8>,
    reach: usize,
}

impl Window {
    fn repeat(&mut self, length: usize, distance: usize) {
        assert!(distance <= self.bytes.len(), "a match from before the beginning");
        self.reach = self.reach.max(distance);
        for _ in 0..length {
            self.bytes.push(self.bytes[self.bytes.len() - distance]);
        }
    }
}

/// A canonical Huffman code: how many codes there are of each length, and their symbols in order.
struct Code {
    counts: [usize; 16],
    symbols: Vec<usize>,
}

impl Code {
    fn new(lengths: &[usize]) -> Self {
        let mut counts = [0; 16];
        lengths.iter().for_each(|length| counts[*length] += 1);
        counts[0] = 0;
        let used = (1..16).map(|length| counts[length] << (15 - length)).sum::<usize>();
        assert!(used <= 1 << 15, "more codes than there is room for");
        let symbols =
            (1..16).flat_map(|length| (0..lengths.len()).filter(move |symbol| lengths[*symbol] == length));
        Self { counts, symbols: symbols.collect() }
    }

    fn read(&self, reader: &mut Reader) -> usize {
        let (mut code, mut first, mut index) = (0, 0, 0);
        for length in 1..16 {
            code |= reader.take(1);
            let count = self.counts[length];
            if code < first + count {
                return self.symbols[index + code - first];
            }
            (index, first, code) = (index + count, (first + count) << 1, code << 1);
        }
        panic!("bits that are no code");
    }
}

fn block(reader: &mut Reader, window: &mut Window) {
    match reader.take(2) {
        0 => stored(reader, window),
        1 => {
            let lengths = (0..288).map(|symbol| match symbol {
                0..144 => 8,
                144..256 => 9,
                256..280 => 7,
                _ => 8,
            });
            let literals = Code::new(&lengths.collect::<Vec<_>>());
            compressed(reader, window, &literals, &Code::new(&[5; 30]));
        }
        2 => {
            let (literals, distances) = codes(reader);
            compressed(reader, window, &literals, &distances);
        }
        _ => panic!("a block of no known type"),
    }
}

fn stored(reader: &mut Reader, window: &mut Window) {
    reader.align();
    let (length, complement) = (reader.take(16), reader.take(16));
    assert_eq!(length ^ complement, 0xffff, "the length of a stored block");
    for _ in 0..length {
        let byte = reader.take(8) as u8;
        window.bytes.push(byte);
    }
}

fn codes(reader: &mut Reader) -> (Code, Code) {
    const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    let (literals, distances) = (reader.take(5) + 257, reader.take(5) + 1);
    let mut lengths = [0; 19];
    for symbol in &ORDER[..reader.take(4) + 4] {
        lengths[*symbol] = reader.take(3);
    }
    let code = Code::new(&lengths);
    let mut lengths = Vec::new();
    while lengths.len() < literals + distances {
        let (length, times) = match code.read(reader) {
            16 => (*lengths.last().expect("a length to repeat"), 3 + reader.take(2)),
            17 => (0, 3 + reader.take(3)),
            18 => (0, 11 + reader.take(7)),
            length => (length, 1),
        };
        lengths.extend(std::iter::repeat_n(length, times));
    }
    assert_eq!(lengths.len(), literals + distances, "more lengths than codes");
    assert_ne!(lengths[256], 0, "a block that cannot end");
    (Code::new(&lengths[..literals]), Code::new(&lengths[literals..]))
}

fn compressed(reader: &mut Reader, window: &mut Window, literals: &Code, distances: &Code) {
    loop {
        match literals.read(reader) {
            literal @ 0..256 => window.bytes.push(literal as u8),
            256 => return,
            symbol => {
                let length = length(symbol, reader);
                let symbol = distances.read(reader);
                assert!(symbol < 30, "a distance that does not exist");
                let distance = match symbol {
                    0..4 => symbol + 1,
                    _ => (((symbol & 1) + 2) << (symbol / 2 - 1)) + 1 + reader.take(symbol / 2 - 1),
                };
                window.repeat(length, distance);
            }
        }
    }
}

fn length(symbol: usize, reader: &mut Reader) -> usize {
    match symbol {
        257..265 => symbol - 254,
        265..285 => {
            let extra = (symbol - 261) / 4;
            ((4 + (symbol - 261) % 4) << extra) + 3 + reader.take(extra)
        }
        285 => 258,
        _ => panic!("a length that does not exist"),
    }
}
