//! The software engines.

use hasten_crypto::{
    DeriveLane, Group, Ifma, LANES, LaneEngine, RsaKey, RsaLane, RsaParts, RsaSize, Scratch, Single,
};
use hasten_deflate::engine::{Bits, Chunk, EngineKind, Settings};
use hasten_deflate::{pool, verify};
use hasten_device::answers;
use hasten_device::engines::crypto::Curve;
use hasten_device::engines::qat::base_point;
use hasten_names::Engine;

use super::{Row, Verdict};

const SINGLE: &str = if cfg!(target_arch = "aarch64") { "AES" } else { "ADX or AVX2" };

pub(super) fn run() -> Vec<Row> {
    let engines = [EngineKind::Isal, EngineKind::Libdeflate, EngineKind::Bucket, EngineKind::ZlibRs];
    let deflate = engines.map(|kind| row(kind.as_str(), compression(kind)));
    [multibuffer(), graviola()].into_iter().chain(deflate).collect()
}

fn row(engine: &'static str, outcome: Result<String, String>) -> Row {
    let (result, detail) = match outcome {
        Ok(detail) => (Verdict::Passed, detail),
        Err(detail) => (Verdict::Failed, detail),
    };
    Row { engine, class: "software", result, detail, library: None, simulated: false, devices: Vec::new() }
}

#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(unreachable_code, unused_variables, unused_mut, reason = "there is no proof")
)]
fn multibuffer() -> Row {
    let name = Engine::Multibuffer.as_str();
    let Some(ifma) = Ifma::detect() else {
        return not_here(name, "this CPU has no AVX-512 IFMA (`hasten check` lists what is missing)");
    };
    let mut scratch = ifma.scratch();
    let outcome = derives(ifma, &mut scratch).and_then(|()| signs(ifma, &mut scratch));
    row(name, outcome.map(|()| format!("X25519, P-256, P-384 and RSA-2048 in batches of {LANES}")))
}

fn graviola() -> Row {
    let name = Engine::Graviola.as_str();
    let Some(single) = Single::detect() else {
        return not_here(name, &format!("this CPU has no {SINGLE} (`hasten check` lists what is missing)"));
    };
    row(name, derives(single, &mut ()).map(|()| "X25519, P-256 and P-384 one at a time".to_owned()))
}

fn not_here(engine: &'static str, why: &str) -> Row {
    Row { result: Verdict::NotHere, detail: why.to_owned(), ..row(engine, Err(String::new())) }
}

fn derives<E: LaneEngine>(engine: E, scratch: &mut E::Scratch) -> Result<(), String> {
    let [private, _, peer, secret] = answers::X25519;
    agrees(engine, scratch, Group::X25519, &private, &peer, &secret)?;
    for (group, curve, point) in
        [(Group::P256, Curve::P256, &answers::P256[..]), (Group::P384, Curve::P384, &answers::P384)]
    {
        let (x, y) = base_point(curve);
        let peer = [&[4], x, y].concat();
        agrees(engine, scratch, group, &answers::SCALAR[..x.len()], &peer, &point[..x.len()])?;
    }
    Ok(())
}

fn agrees<E: LaneEngine>(
    engine: E,
    scratch: &mut E::Scratch,
    group: Group,
    private: &[u8],
    peer: &[u8],
    expected: &[u8],
) -> Result<(), String> {
    let mut shared = vec![vec![0; group.shared_len()]; LANES];
    let lane = |shared| DeriveLane { private, peer, shared };
    let mut lanes: Vec<_> = shared.iter_mut().map(|shared| lane(shared.as_mut_slice())).collect();
    let status = engine.derive(scratch, group, &mut lanes);
    let is_right = status.all_ok(LANES) && shared.iter().all(|shared| shared == expected);
    if is_right { Ok(()) } else { Err(format!("{group:?}: the shared secret is wrong")) }
}

fn signs(ifma: Ifma, scratch: &mut Scratch) -> Result<(), String> {
    let answers::Rsa { p, q, dp, dq, qinv, input, output, n } = answers::RSA;
    // The engine takes numbers in OpenSSL's form.
    let [n, p, q, dp, dq, qinv] =
        [n, p, q, dp, dq, qinv].map(|number| number.iter().rev().copied().collect::<Vec<_>>());
    let parts = RsaParts { n: &n, e: &[1, 0, 1], p: &p, q: &q, dp: &dp, dq: &dq, qinv: &qinv };
    let key = RsaKey::new(&parts).map_err(|_| "RSA-2048: the known key was refused".to_owned())?;
    let mut signatures = vec![vec![0; RsaSize::Rsa2048.bytes()]; LANES];
    let mut lanes: Vec<_> = signatures
        .iter_mut()
        .map(|signature| RsaLane { key: &key, padded: input, signature: signature.as_mut_slice() })
        .collect();
    let is_alone_right = ifma.rsa_alone(scratch, &mut lanes[0]) && *lanes[0].signature == output[..];
    let status = ifma.rsa_private(scratch, &mut lanes);
    let is_right = status.all_ok(LANES) && signatures.iter().all(|signature| *signature == output);
    if is_alone_right && is_right { Ok(()) } else { Err("RSA-2048: the signature is wrong".to_owned()) }
}

/// Round trips over levels and sizes, unpacked by another implementation than the one that packed, if there is one.
fn compression(kind: EngineKind) -> Result<String, String> {
    let mut plain = vec![0; answers::TEXT_LENGTH];
    if verify::unpack(answers::STREAM, &mut plain) != Some(plain.len()) || plain != answers::text() {
        return Err("the known stream was unpacked wrongly".to_owned());
    }
    let text = answers::text().repeat(32);
    let sizes: Vec<_> = (0..=17).step_by(2).map(|power| 1_usize << power).collect();
    let levels = [1, 6, 9];
    for level in levels {
        let settings = Settings { level, ..Settings::default() };
        for &size in &sizes {
            let chunk = Chunk { before: Bits::NONE, history: &[], input: &text[..size], last: true };
            let mut packed = vec![0; pool::bound(size)];
            let written = pool::compress(kind, &settings, &chunk, &mut packed);
            let written =
                written.ok_or_else(|| format!("{size} bytes at level {level} were not compressed"))?;
            if !verify::matches(&settings, &chunk, &packed, &written) {
                return Err(format!("{size} bytes at level {level} came back different"));
            }
        }
    }
    Ok(format!("known stream, and {} sizes at {} levels there and back", sizes.len(), levels.len()))
}
