//! Reading from the front of a line.

/// A petabyte, or thirty thousand years in milliseconds: larger numbers do not come from V8.
pub(super) const MOST: f64 = 1e15;

/// The rest of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// Skips `word` if it comes next.
    pub(super) fn eat(&mut self, word: &[u8]) -> bool {
        match self.0.strip_prefix(word) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// As [`eat`](Self::eat), for required words.
    pub(super) fn expect(&mut self, word: &[u8]) -> Option<()> {
        self.eat(word).then_some(())
    }

    pub(super) fn spaces(&mut self) {
        while let [b' ', rest @ ..] = self.0 {
            self.0 = rest;
        }
    }

    /// A whole number of at most 18 digits.
    pub(super) fn whole(&mut self) -> Option<u64> {
        let (value, digits) = self.digits(0);
        (1..=18).contains(&digits).then_some(value)
    }

    /// A number that is not negative: `12`, `0.83`, `1.5e+06`.
    pub(super) fn number(&mut self) -> Option<f64> {
        self.decimal().map(|decimal| decimal.value)
    }

    /// As [`number`](Self::number), with the precision as written.
    pub(super) fn decimal(&mut self) -> Option<Decimal> {
        let (value, digits) = self.digits(0);
        if digits == 0 {
            return None;
        }
        let (mut value, mut decimals) = (value, 0);
        if let [b'.', b'0'..=b'9', ..] = self.0 {
            self.0 = &self.0[1..];
            (value, decimals) = self.digits(value);
        }
        if digits + decimals > 18 {
            return None;
        }
        let exponent = self.exponent()? - decimals as i32;
        let power = POWERS.get(exponent.unsigned_abs() as usize)?;
        let value = if exponent < 0 { value as f64 / power } else { value as f64 * power };
        Some(Decimal { value, decimals })
    }

    /// Hexadecimal digits, at most sixteen.
    pub(super) fn hex(&mut self) -> Option<u64> {
        let (mut value, mut rest) = (0, self.0);
        while let [byte, tail @ ..] = rest
            && let Some(digit) = hex_digit(*byte)
        {
            value = value << 4 | u64::from(digit);
            rest = tail;
        }
        let length = self.0.len() - rest.len();
        self.0 = rest;
        (1..=16).contains(&length).then_some(value)
    }

    /// Appends digits to `value`, and returns how many: a number that is too long does not matter, because it
    /// is rejected.
    fn digits(&mut self, mut value: u64) -> (u64, usize) {
        let before = self.0.len();
        while let [byte @ b'0'..=b'9', rest @ ..] = self.0 {
            value = value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            self.0 = rest;
        }
        (value, before - self.0.len())
    }

    /// 0 where there is none.
    fn exponent(&mut self) -> Option<i32> {
        let [b'e' | b'E', sign @ (b'+' | b'-' | b'0'..=b'9'), ..] = self.0 else { return Some(0) };
        self.0 = &self.0[if sign.is_ascii_digit() { 1 } else { 2 }..];
        let (exponent, digits) = self.digits(0);
        let exponent = i32::try_from(exponent).ok().filter(|_| (1..=3).contains(&digits))?;
        Some(if *sign == b'-' { -exponent } else { exponent })
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// A number, and its count of digits after the point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decimal {
    pub value: f64,
    pub decimals: usize,
}

const POWERS: [f64; 23] = {
    let mut powers = [1.0; 23];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1] * 10.0;
        i += 1;
    }
    powers
};

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> (Option<f64>, &[u8]) {
        let mut cursor = Cursor(text.as_bytes());
        (cursor.number(), cursor.0)
    }

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        assert_eq!(number("0.83 / 0.00"), (Some(0.83), &b" / 0.00"[..]));
        assert_eq!(number("12)"), (Some(12.0), &b")"[..]));
        assert_eq!(number("3."), (Some(3.0), &b"."[..]));
        assert_eq!(number("0.0clear.join_job"), (Some(0.0), &b"clear.join_job"[..]));
        assert_eq!(number("1.00324e+06,"), (Some(1_003_240.0), &b","[..]));
        assert_eq!(number("5e-3"), (Some(0.005), &b""[..]));
        assert_eq!(number("7epsilon"), (Some(7.0), &b"epsilon"[..]));
    }

    #[test]
    fn what_is_no_number_or_too_long_is_none() {
        for text in ["", ".5", "-1", "x", "1234567890123456789", "1.1234567890123456789", "1e99", "1e+"] {
            assert_eq!(number(text).0, None, "{text}");
        }
        assert_eq!(Cursor(b"00000000000000000").hex(), None);
        assert_eq!(Cursor(b"ffffffffffffffff]").hex(), Some(u64::MAX));
    }
}
