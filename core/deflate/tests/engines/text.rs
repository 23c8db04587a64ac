//! Input to compress, from a seed.

/// Something like text: words from a small vocabulary, now and then a number or a stretch of noise.
pub(crate) fn text(length: usize, seed: u64) -> Vec<u8> {
    const WORDS: [&str; 12] = [
        "the ",
        "server ",
        "<div class=\"",
        "\">",
        "</div>\n",
        "function(",
        "return ",
        "0.25em; ",
        "null, ",
        "e",
        "\n",
        "\"id\": ",
    ];
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(length + 64);
    while bytes.len() < length {
        match random.next() % 64 {
            0 => bytes.extend(noise(random.next() as usize % 40, random.next())),
            1..8 => bytes.extend(random.next().to_string().bytes().take(6)),
            _ => bytes.extend(WORDS[random.next() as usize % WORDS.len()].bytes()),
        }
    }
    bytes.truncate(length);
    bytes
}

/// Bytes that no engine makes smaller.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    (0..length).map(|_| random.next() as u8).collect()
}

/// splitmix64.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    #[allow(clippy::should_implement_trait)]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) >> 8
    }
}
