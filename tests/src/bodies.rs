//! Bodies of any length: the same for each length, on every machine.

/// Text as repetitive as real pages, and an equal amount that does not repeat.
#[must_use]
pub fn page(length: usize) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "<li class=\"item\">",
        "</li>\n",
        "<a href=\"/products/",
        "\">",
        "</a> ",
        "the ",
        "server ",
        "of ",
        "compression ",
        "and ",
        "is ",
        "<span>",
        "</span>",
        "price: ",
        " EUR",
        "&nbsp;",
    ];
    let mut numbers = Numbers::new(length);
    let mut page = b"<!DOCTYPE html>\n".to_vec();
    while page.len() < length {
        let number = numbers.next();
        page.extend_from_slice(WORDS[(number % 16) as usize].as_bytes());
        if number >> 8 & 3 == 0 {
            page.extend_from_slice(format!("{:x}", number >> 40).as_bytes());
        }
    }
    page.truncate(length);
    page
}

/// Bytes that cannot be compressed.
#[must_use]
pub fn noise(length: usize) -> Vec<u8> {
    let mut numbers = Numbers::new(length);
    (0..length).map(|_| (numbers.next() >> 32) as u8).collect()
}

/// A small generator; nothing here has to be unpredictable.
struct Numbers(u64);

impl Numbers {
    fn new(seed: usize) -> Self {
        Self(seed as u64 ^ 0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }
}
