//! RSA private operations, each verified before it is released.

use std::array;
use std::ptr;

use hasten_names::LANES;

use super::{CacheLine, Scratch, bits, ffi, lanes_done};
use crate::Ifma;
use crate::lanes::{LaneStatus, RsaLane};
use crate::memory::{constant_time_eq, wipe};
use crate::rsa::RsaSize;

pub(super) fn rsa_private(_: Ifma, scratch: &mut Scratch, lanes: &mut [RsaLane<'_>]) -> LaneStatus {
    lanes.iter_mut().for_each(|lane| wipe(lane.signature));
    let Some(size) = common_size(lanes) else {
        return LaneStatus::NONE;
    };
    let mut status = private(scratch, size, lanes);
    status = status.and(public(scratch, size, lanes));
    let [signatures, recovered] = &scratch.staging.bytes;
    for (i, lane) in lanes.iter_mut().enumerate() {
        if constant_time_eq(&recovered[i][..size.bytes()], lane.padded) && status.is_ok(i) {
            lane.signature.copy_from_slice(&signatures[i][..size.bytes()]);
        } else {
            status.clear(i);
        }
    }
    (lanes.len()..LANES).for_each(|unused| status.clear(unused));
    scratch.wipe_rsa(size);
    status
}

pub(super) fn rsa_check(_: Ifma, scratch: &mut Scratch, lanes: &mut [RsaLane<'_>]) -> LaneStatus {
    let Some(size) = common_size(lanes) else {
        lanes.iter_mut().for_each(|lane| wipe(lane.signature));
        return LaneStatus::NONE;
    };
    for (i, staged) in scratch.staging.bytes[0].iter_mut().enumerate() {
        // Unused lanes repeat the first one.
        let lane = &lanes[if i < lanes.len() { i } else { 0 }];
        staged[..size.bytes()].copy_from_slice(lane.signature);
    }
    let mut status = public(scratch, size, lanes);
    let recovered = &scratch.staging.bytes[1];
    for (i, lane) in lanes.iter_mut().enumerate() {
        let is_good = status.is_ok(i)
            && lane.key.is_reduced(lane.signature)
            && constant_time_eq(&recovered[i][..size.bytes()], lane.padded);
        if !is_good {
            status.clear(i);
            wipe(lane.signature);
        }
    }
    (lanes.len()..LANES).for_each(|unused| status.clear(unused));
    scratch.wipe_rsa(size);
    status
}

fn common_size(lanes: &[RsaLane<'_>]) -> Option<RsaSize> {
    let size = lanes.first()?.key.size();
    let fits = |lane: &RsaLane<'_>| {
        lane.key.size() == size && lane.padded.len() == size.bytes() && lane.signature.len() == size.bytes()
    };
    (lanes.len() <= LANES && lanes.iter().all(fits)).then_some(size)
}

fn private(scratch: &mut Scratch, size: RsaSize, lanes: &[RsaLane<'_>]) -> LaneStatus {
    let padded = inputs(lanes, |lane| lane.padded.as_ptr());
    let signatures: ffi::Outputs<u8> = scratch.staging.bytes[0].each_mut().map(|lane| lane.as_mut_ptr());
    let p = inputs(lanes, |lane| lane.key.p.as_ptr());
    let q = inputs(lanes, |lane| lane.key.q.as_ptr());
    let dp = inputs(lanes, |lane| lane.key.dp.as_ptr());
    let dq = inputs(lanes, |lane| lane.key.dq.as_ptr());
    let qinv = inputs(lanes, |lane| lane.key.qinv.as_ptr());
    // SAFETY: see the module's soundness section; `common_size` checked the lengths of the inputs, and `Scratch::new`
    // made the buffer large enough for this method.
    lanes_done(unsafe {
        let method = ffi::k1_mbx_RSA_private_crt_Method(bits(size));
        let buffer = scratch.rsa_buffer.as_mut_ptr().cast();
        ffi::k1_mbx_rsa_private_crt_mb8(
            &padded,
            &signatures,
            &p,
            &q,
            &dp,
            &dq,
            &qinv,
            bits(size),
            method,
            buffer,
        )
    })
}

/// Applies the public operation to the signatures in the first staging array, into the second.
fn public(scratch: &mut Scratch, size: RsaSize, lanes: &[RsaLane<'_>]) -> LaneStatus {
    let [signatures, recovered] = &mut scratch.staging.bytes;
    let signatures: ffi::Inputs<u8> = signatures.each_ref().map(|lane| lane.as_ptr());
    let recovered: ffi::Outputs<u8> = recovered.each_mut().map(|lane| lane.as_mut_ptr());
    let n = inputs(lanes, |lane| lane.key.n.as_ptr());
    // SAFETY: as in `private`.
    lanes_done(unsafe {
        let method = ffi::k1_mbx_RSA_pub65537_Method(bits(size));
        let buffer = scratch.rsa_buffer.as_mut_ptr().cast();
        ffi::k1_mbx_rsa_public_mb8(&signatures, &recovered, &n, bits(size), method, buffer)
    })
}

/// A pointer for each lane; unused lanes get that of the first one.
fn inputs<T>(lanes: &[RsaLane<'_>], pointer: impl Fn(&RsaLane<'_>) -> *const T) -> ffi::Inputs<T> {
    array::from_fn(|i| lanes.get(i).or(lanes.first()).map_or(ptr::null(), &pointer))
}

/// Bytes of working memory that the engine needs at this size. The caller holds an [`Ifma`].
pub(super) fn buffer_bytes(size: RsaSize) -> usize {
    // SAFETY: the methods are constants of the engine, and the functions that return them and their sizes take no other
    // argument.
    let bytes = unsafe {
        let private = ffi::k1_mbx_RSA_Method_BufSize(ffi::k1_mbx_RSA_private_crt_Method(bits(size)));
        let public = ffi::k1_mbx_RSA_Method_BufSize(ffi::k1_mbx_RSA_pub65537_Method(bits(size)));
        private.max(public)
    };
    usize::try_from(bytes).unwrap_or_default()
}

impl Scratch {
    fn wipe_rsa(&mut self, size: RsaSize) {
        self.staging.wipe_bytes(size.bytes());
        let used = buffer_bytes(size).div_ceil(size_of::<CacheLine>());
        CacheLine::wipe(&mut self.rsa_buffer[..used]);
    }
}
