//! Any padded input and any length: the private operation for one, the lanes and OpenSSL give the same result, or none.

#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use hasten_crypto::{Ifma, LaneEngine, RsaKey, RsaLane, RsaParts, RsaSize};
use libfuzzer_sys::fuzz_target;
use openssl::bn::BigNumRef;
use openssl::pkey::Private;
use openssl::rsa::{Padding, Rsa};

#[derive(Arbitrary, Debug)]
struct Input {
    size: u8,
    /// The lowest bytes.
    padded: Vec<u8>,
    /// Those above.
    fill: u8,
    /// How much the length is wrong.
    excess: i8,
}

static KEYS: LazyLock<[(Rsa<Private>, Box<RsaKey>); 3]> = LazyLock::new(|| RsaSize::ALL.map(keys));

fuzz_target!(|input: Input| {
    let Some(ifma) = Ifma::detect() else { return };
    let mut scratch = ifma.scratch();
    let (host, key) = &KEYS[usize::from(input.size) % 3];
    let bytes = key.size().bytes();
    let len = bytes.saturating_add_signed(input.excess.into());
    let mut padded = vec![input.fill; len];
    let given = &input.padded[..input.padded.len().min(len)];
    padded[len - given.len()..].copy_from_slice(given);

    let [mut one, mut lane] = [vec![0xee; len], vec![0xee; len]];
    let is_done = ifma.rsa_alone(&mut scratch, &mut RsaLane { key, padded: &padded, signature: &mut one });
    let status =
        ifma.rsa_private(&mut scratch, &mut [RsaLane { key, padded: &padded, signature: &mut lane }]);
    assert!(scratch.is_zero());
    assert_eq!((is_done, &one), (status.is_ok(0), &lane));

    let mut expected = vec![0; bytes];
    let theirs = len == bytes && host.private_encrypt(&padded, &mut expected, Padding::NONE).is_ok();
    assert_eq!(is_done, theirs);
    assert_eq!(one, if theirs { expected } else { vec![0; len] });
});

fn keys(size: RsaSize) -> (Rsa<Private>, Box<RsaKey>) {
    let host = Rsa::generate(size.bits() as u32).unwrap();
    let part = |number: Option<&BigNumRef>| number.unwrap().to_vec().into_iter().rev().collect::<Vec<_>>();
    let [n, e] = [host.n(), host.e()].map(|number| part(Some(number)));
    let [p, q, dp, dq, qinv] = [host.p(), host.q(), host.dmp1(), host.dmq1(), host.iqmp()].map(part);
    let parts = RsaParts { n: &n, e: &e, p: &p, q: &q, dp: &dp, dq: &dq, qinv: &qinv };
    let key = RsaKey::new(&parts).unwrap();
    (host, key)
}
