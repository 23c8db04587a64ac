//! Prints the cost on this machine of a batch of eight, of one operation by the engine for single operations, and of one by
//! OpenSSL, and the number of lanes from which a batch wins: the figures behind the shipped break-even table.
//!
//! `cargo run --release -p hasten-crypto --example measure`
//!
//! Medians of CPU time, so that other load has little effect. OpenSSL is called the way libssl calls it, with its
//! framework around the arithmetic; a batch includes its random numbers and, for RSA, the verification.

use std::hint::black_box;

use hasten_crypto::{
    Algorithm, BreakEven, Curve, DeriveLane, EcKey, EcdsaLane, Group, Hash, Ifma, KeyPair, KeyPool, LANES,
    LaneEngine, RsaKey, RsaLane, RsaParts, RsaSize, Scratch, Single,
};
use openssl::bn::BigNumRef;
use openssl::derive::Deriver;
use openssl::ec::{EcGroup, EcKey as HostEcKey};
use openssl::nid::Nid;
use openssl::pkey::{Id, PKey, Private};
use openssl::pkey_ctx::PkeyCtx;
use openssl::rsa::{Padding, Rsa};
use openssl::sha::Sha512;

fn main() {
    let Some(ifma) = Ifma::detect() else {
        eprintln!("measure: this CPU has no AVX-512 IFMA, so there is no batch to measure");
        std::process::exit(1);
    };
    let mut scratch = ifma.scratch();
    let single = Single::detect();
    println!("{}\nµs of CPU time, median\n", openssl::version::version());
    println!(
        "{:16}{:>10}{:>10}{:>12}{:>10}{:>8}{:>8}",
        "operation", "OpenSSL", "single", "batch of 8", "per lane", "ratio", "lanes"
    );
    for size in RsaSize::ALL {
        let host = Rsa::generate(size.bits() as u32).expect("OpenSSL makes keys");
        let one = rsa_one(ifma, &mut scratch, &host, size);
        row(size.sign(), rsa_alone(&host, size), Some(one), rsa_batch(ifma, &mut scratch, &host, size));
    }
    println!();
    for size in RsaSize::ALL {
        let host = Rsa::generate(size.bits() as u32).expect("OpenSSL makes keys");
        let [one, batch] = checks(ifma, &mut scratch, &host, size);
        println!("{:16}{one:>10.1}{batch:>12.1}{:>10.1}", format!("{size:?} check"), batch / LANES as f64);
    }
    println!("  (a check of a device's signature: on any CPU, and eight in lanes)\n");
    for curve in [Curve::P256, Curve::P384] {
        let host = HostEcKey::generate(&EcGroup::from_curve_name(nid(curve)).expect("a known curve"))
            .expect("OpenSSL makes keys");
        let one = single.map(|single| ecdsa_lanes(single, &mut (), curve, &host, 1));
        let batch = ecdsa_lanes(ifma, &mut scratch, curve, &host, LANES);
        row(curve.sign(), ecdsa_alone(&host), one, batch);
        let used = (1..LANES).map(|used| ecdsa_lanes(ifma, &mut scratch, curve, &host, used));
        let used: Vec<_> = used.map(|us| format!("{us:.1}")).collect();
        println!("  (1 to 7 lanes in use: {})", used.join(", "));
    }
    for group in Group::ALL {
        let one = single.map(|single| keygen_one(single, group));
        row(group.keygen(), keygen_alone(group), one, keygen_batch(ifma, &mut scratch, group));
    }
    for group in Group::ALL {
        let one = single.map(|single| derive_lanes(single, &mut (), group, 1));
        row(group.derive(), derive_alone(group), one, derive_lanes(ifma, &mut scratch, group, LANES));
    }
}

fn row(algorithm: Algorithm, original: f64, single: Option<f64>, batch: f64) {
    let ratio = original * LANES as f64 / batch;
    let alone = single.map_or(original, |single| single.min(original));
    let lanes = ((batch / alone) as usize + 1).min(BreakEven::NEVER);
    let single = single.map_or_else(|| "-".to_owned(), |us| format!("{us:.1}"));
    let per_lane = batch / LANES as f64;
    println!(
        "{algorithm:16}{original:>10.1}{single:>10}{batch:>12.1}{per_lane:>10.1}{ratio:>7.1}x{lanes:>8}"
    );
}

fn rsa_alone(host: &Rsa<Private>, size: RsaSize) -> f64 {
    let key = PKey::from_rsa(host.clone()).expect("any RSA key");
    let padded = padded(size);
    let mut signature = vec![0; size.bytes()];
    median(60, || {
        let mut context = PkeyCtx::new(&key).expect("OpenSSL has memory");
        context.sign_init().expect("the key can sign");
        context.set_rsa_padding(Padding::NONE).expect("an RSA key");
        context.sign(&padded, Some(&mut signature)).expect("the input is below the modulus");
    })
}

fn rsa_one(ifma: Ifma, scratch: &mut Scratch, host: &Rsa<Private>, size: RsaSize) -> f64 {
    let (key, padded) = (rsa_key(host), padded(size));
    let mut signature = vec![0; size.bytes()];
    median(60, || {
        let mut lane = RsaLane { key: &key, padded: &padded, signature: &mut signature };
        assert!(ifma.rsa_alone(scratch, &mut lane));
    })
}

fn rsa_batch(ifma: Ifma, scratch: &mut Scratch, host: &Rsa<Private>, size: RsaSize) -> f64 {
    let key = rsa_key(host);
    let padded = padded(size);
    let mut signatures = vec![vec![0; size.bytes()]; LANES];
    median(60, || {
        let mut lanes = signatures.iter_mut();
        let mut lanes: [RsaLane<'_>; LANES] = std::array::from_fn(|_| RsaLane {
            key: &key,
            padded: &padded,
            signature: lanes.next().expect("one for each lane"),
        });
        assert!(ifma.rsa_private(scratch, &mut lanes).all_ok(LANES));
    })
}

/// The cost of checking a signature made by a device.
fn checks(ifma: Ifma, scratch: &mut Scratch, host: &Rsa<Private>, size: RsaSize) -> [f64; 2] {
    let (key, padded) = (rsa_key(host), padded(size));
    let mut signature = vec![0; size.bytes()];
    host.private_encrypt(&padded, &mut signature, Padding::NONE).expect("the input is below the modulus");
    let one = median(200, || assert!(key.is_signed(&padded, &signature)));
    let mut signatures = vec![signature; LANES];
    let batch = median(200, || {
        let mut lanes = signatures.iter_mut();
        let mut lanes: [RsaLane<'_>; LANES] = std::array::from_fn(|_| RsaLane {
            key: &key,
            padded: &padded,
            signature: lanes.next().expect("one for each lane"),
        });
        assert!(ifma.rsa_check(scratch, &mut lanes).all_ok(LANES));
    });
    [one, batch]
}

fn padded(size: RsaSize) -> Vec<u8> {
    let mut padded = vec![0x5a; size.bytes()];
    padded[0] = 0;
    padded
}

fn rsa_key(host: &Rsa<Private>) -> Box<RsaKey> {
    let part = |number: Option<&BigNumRef>| little_endian(number.expect("a two-prime key"));
    let (n, e) = (little_endian(host.n()), little_endian(host.e()));
    let (p, q) = (part(host.p()), part(host.q()));
    let (dp, dq, qinv) = (part(host.dmp1()), part(host.dmq1()), part(host.iqmp()));
    let parts = RsaParts { n: &n, e: &e, p: &p, q: &q, dp: &dp, dq: &dq, qinv: &qinv };
    RsaKey::new(&parts).expect("OpenSSL's keys are of the usual kind")
}

fn little_endian(number: &BigNumRef) -> Vec<u8> {
    let mut bytes = number.to_vec();
    bytes.reverse();
    bytes
}

fn ecdsa_alone(host: &HostEcKey<Private>) -> f64 {
    let key = PKey::from_ec_key(host.clone()).expect("any EC key");
    let mut signature = [0; 128];
    median(400, || {
        let mut context = PkeyCtx::new(&key).expect("OpenSSL has memory");
        context.sign_init().expect("the key can sign");
        context.sign(&[7; 32], Some(&mut signature)).expect("OpenSSL signs");
    })
}

fn ecdsa_lanes<E: LaneEngine>(
    engine: E,
    scratch: &mut E::Scratch,
    curve: Curve,
    host: &HostEcKey<Private>,
    used: usize,
) -> f64 {
    let key = EcKey::new(curve, &little_endian(host.private_key())).expect("the scalar is in range");
    let mut signatures = [None; LANES];
    median(400, || {
        let mut lanes =
            signatures.each_mut().map(|signature| EcdsaLane { key: &key, digest: &[7; 32], signature });
        let status = engine.ecdsa_sign::<HostSha512>(scratch, curve, &mut lanes[..used], &mut random);
        assert!(status.all_ok(used));
    })
}

/// The host's SHA-512, as in the preload library.
#[derive(Clone)]
struct HostSha512(Sha512);

impl Hash for HostSha512 {
    const OUTPUT: usize = 64;
    const BLOCK: usize = 128;

    fn new() -> Self {
        Self(Sha512::new())
    }

    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(self, out: &mut [u8]) {
        out.copy_from_slice(&self.0.finish());
    }
}

fn keygen_alone(group: Group) -> f64 {
    median(200, || drop(black_box(host_keygen(group))))
}

fn host_keygen(group: Group) -> PKey<Private> {
    let curve = match group {
        Group::X25519 => return PKey::generate_x25519().expect("OpenSSL makes keys"),
        Group::P256 => Curve::P256,
        Group::P384 => Curve::P384,
    };
    let mut context = PkeyCtx::new_id(Id::EC).expect("OpenSSL has memory");
    context.keygen_init().expect("EC keys can be made");
    context.set_ec_paramgen_curve_nid(nid(curve)).expect("a known curve");
    context.keygen().expect("OpenSSL makes keys")
}

fn keygen_batch(ifma: Ifma, scratch: &mut Scratch, group: Group) -> f64 {
    let mut pool = KeyPool::new(group).expect("the kernel can wipe pages on fork");
    median(400, || {
        pool.refill(0, ifma, scratch, &mut random);
        while let Some(pair) = pool.take(0) {
            black_box(pair);
        }
    })
}

fn keygen_one(single: Single, group: Group) -> f64 {
    median(400, || assert_eq!(single.keygen(&mut (), group, 1, &mut random, |pair| drop(black_box(pair))), 1))
}

fn derive_alone(group: Group) -> f64 {
    let [ours, theirs] = [host_keygen(group), host_keygen(group)];
    median(100, || {
        let mut deriver = Deriver::new(&ours).expect("the key can derive");
        deriver.set_peer(&theirs).expect("both are in the same group");
        black_box(deriver.derive_to_vec().expect("OpenSSL derives"));
    })
}

fn derive_lanes<E: LaneEngine>(engine: E, scratch: &mut E::Scratch, group: Group, used: usize) -> f64 {
    let mut pairs: Vec<KeyPair> = Vec::new();
    engine.keygen(scratch, group, LANES, &mut random, |pair| pairs.push(pair));
    let mut secrets = vec![vec![0; group.shared_len()]; LANES];
    median(400, || {
        let mut inputs = pairs.iter().zip(&mut secrets);
        let mut lanes: [DeriveLane<'_>; LANES] = std::array::from_fn(|_| {
            let (pair, shared) = inputs.next().expect("one for each lane");
            DeriveLane { private: pair.private(), peer: pair.public(), shared }
        });
        assert!(engine.derive(scratch, group, &mut lanes[..used]).all_ok(used));
    })
}

fn nid(curve: Curve) -> Nid {
    match curve {
        Curve::P256 => Nid::X9_62_PRIME256V1,
        Curve::P384 => Nid::SECP384R1,
    }
}

fn random(bytes: &mut [u8]) -> bool {
    openssl::rand::rand_priv_bytes(bytes).is_ok()
}

/// In µs, after as many warm-up runs.
fn median(runs: usize, mut operation: impl FnMut()) -> f64 {
    let mut samples: Vec<u64> = (0..2 * runs)
        .map(|_| {
            let start = cpu_ns();
            operation();
            cpu_ns() - start
        })
        .skip(runs)
        .collect();
    samples.sort_unstable();
    samples[samples.len() / 2] as f64 / 1000.0
}

fn cpu_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on every Linux and writes to a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
