//! The one DER structure of a handshake: `SEQUENCE { INTEGER r, INTEGER s }`.

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;

/// Writes r and s, unsigned and big-endian; returns the length, or `None` if `out` is too short or the numbers too
/// long.
pub fn ecdsa_signature(r: &[u8], s: &[u8], out: &mut [u8]) -> Option<usize> {
    let (r, s) = (Integer::new(r), Integer::new(s));
    let content = r.encoded_len() + s.encoded_len();
    // One length byte is enough up to 127 bytes of content: for P-384 and all smaller curves.
    if content > 127 {
        return None;
    }
    let out = out.get_mut(..2 + content)?;
    out[0] = SEQUENCE;
    out[1] = content as u8;
    let (first, second) = out[2..].split_at_mut(r.encoded_len());
    r.write(first);
    s.write(second);
    Some(2 + content)
}

/// An unsigned number without leading zero bytes, except the one that keeps DER from reading it as negative.
struct Integer<'a> {
    sign: bool,
    magnitude: &'a [u8],
}

impl<'a> Integer<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        let magnitude = &bytes[zeros..];
        // Zero itself is one zero byte.
        Self { sign: magnitude.first().is_none_or(|&top| top >= 0x80), magnitude }
    }

    fn content_len(&self) -> usize {
        usize::from(self.sign) + self.magnitude.len()
    }

    fn encoded_len(&self) -> usize {
        2 + self.content_len()
    }

    fn write(&self, out: &mut [u8]) {
        out[0] = INTEGER;
        out[1] = self.content_len() as u8;
        out[2] = 0;
        out[2 + usize::from(self.sign)..].copy_from_slice(self.magnitude);
    }
}
