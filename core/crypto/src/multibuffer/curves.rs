//! The two NIST curves behind one interface: which foreign function, which order, how many limbs.

use std::array;
use std::ptr;

use hasten_names::{Curve, LANES};

use super::{ffi, lanes_done};
use crate::ecdsa::{LIMBS, Lanes};
use crate::lanes::LaneStatus;

/// The public points of private scalars, in affine coordinates. Lane i of the result comes from lane `source(i)`.
pub(super) fn public_points(
    curve: Curve,
    private: &Lanes,
    source: impl Fn(usize) -> usize,
    x: &mut Lanes,
    y: &mut Lanes,
) -> LaneStatus {
    let function = match curve {
        Curve::P256 => ffi::k1_mbx_nistp256_ecpublic_key_mb8,
        Curve::P384 => ffi::k1_mbx_nistp384_ecpublic_key_mb8,
    };
    // SAFETY: see the module's soundness section. Omitting the third coordinate asks for affine ones; the last argument
    // is reserved.
    lanes_done(unsafe {
        function(&outputs(x), &outputs(y), ptr::null(), &inputs(private, source), ptr::null_mut())
    })
}

/// The shared secrets of private scalars and affine points. Lane i of the result comes from lane `source(i)`.
pub(super) fn shared_secrets<const B: usize>(
    curve: Curve,
    [private, x, y]: &[Lanes; 3],
    source: impl Fn(usize) -> usize,
    shared: &mut [[u8; B]; LANES],
) -> LaneStatus {
    const { assert!(B >= LIMBS * 8) };
    let function = match curve {
        Curve::P256 => ffi::k1_mbx_nistp256_ecdh_mb8,
        Curve::P384 => ffi::k1_mbx_nistp384_ecdh_mb8,
    };
    let shared: ffi::Outputs<u8> = shared.each_mut().map(|lane| lane.as_mut_ptr());
    // SAFETY: as in `public_points`.
    lanes_done(unsafe {
        function(
            &shared,
            &inputs(private, &source),
            &inputs(x, &source),
            &inputs(y, &source),
            ptr::null(),
            ptr::null_mut(),
        )
    })
}

fn inputs(lanes: &Lanes, source: impl Fn(usize) -> usize) -> ffi::Inputs<u64> {
    array::from_fn(|lane| lanes[source(lane)].as_ptr())
}

fn outputs(lanes: &mut Lanes) -> ffi::Outputs<u64> {
    lanes.each_mut().map(|lane| lane.as_mut_ptr())
}
