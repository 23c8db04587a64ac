//! Whether an RSA operation takes the same way through the code whatever the key and the input: the processor stops after each
//! instruction, and the addresses of all instructions are compared.
//!
//! That takes a minute or more for each size. In the code that is shipped:
//! `cargo test --release -p hasten-crypto --test constant_time -- --ignored`

mod support;

use std::arch::asm;
use std::ffi::{c_int, c_void};
use std::mem::zeroed;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hasten_crypto::{Ifma, LaneEngine, RsaKey, RsaLane, RsaSize, Scratch};
use openssl::bn::BigNum;

use crate::support::{engine, rsa_keys};

/// The instructions of a run: how many, and a hash of their addresses in order.
#[derive(Debug, PartialEq, Eq)]
struct Trace {
    steps: u64,
    hash: u64,
}

static STEPS: AtomicU64 = AtomicU64::new(0);
static HASH: AtomicU64 = AtomicU64::new(0);

extern "C" fn step(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's third argument is the context of the interrupted code.
    let address =
        unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] as u64 };
    STEPS.store(STEPS.load(Relaxed) + 1, Relaxed);
    let hash = (HASH.load(Relaxed) ^ address).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    HASH.store(hash.rotate_left(29), Relaxed);
}

fn traced(body: impl FnOnce()) -> Trace {
    STEPS.store(0, Relaxed);
    HASH.store(0, Relaxed);
    // SAFETY: the flag makes the processor trap after each instruction, which the handler that `main` has installed counts;
    // nothing else of the program is changed.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    body();
    // SAFETY: as above.
    unsafe { asm!("pushfq", "and qword ptr [rsp], ~0x100", "popfq") };
    Trace { steps: STEPS.load(Relaxed), hash: HASH.load(Relaxed) }
}

fn sign(ifma: Ifma, scratch: &mut Scratch, key: &RsaKey, padded: &[u8]) -> Trace {
    let mut signature = vec![0; padded.len()];
    let mut is_done = false;
    let mut lane = RsaLane { key, padded, signature: &mut signature };
    let trace = traced(|| is_done = ifma.rsa_alone(scratch, &mut lane));
    assert!(is_done);
    trace
}

/// Traces of operations that have nothing in common but the size.
fn is_the_same_way(sizes: &[RsaSize], keys: usize) {
    let Some((ifma, mut scratch)) = engine::<Ifma>() else { return };
    // SAFETY: the handler only touches atomics.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = step as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGTRAP, &raw const action, std::ptr::null_mut()), 0);
    }
    for &size in sizes {
        let mut traces = Vec::new();
        for (turn, (host, key)) in rsa_keys(size).take(keys).enumerate() {
            let last = host.n() - &BigNum::from_u32(1).unwrap();
            let mut inputs = [vec![0x5a; size.bytes()], vec![0; size.bytes()], last.to_vec()];
            inputs[0][0] = 0;
            inputs.rotate_left(turn % 3);
            for padded in &inputs[..keys.div_ceil(2)] {
                traces.push(sign(ifma, &mut scratch, &key, padded));
            }
        }
        println!("{size:?}: {:?}", traces[0]);
        assert!(traces[0].steps > 100_000, "the processor has stopped after each instruction");
        assert!(traces.iter().all(|trace| *trace == traces[0]), "{size:?}: {traces:?}");
    }
}

#[test]
#[ignore = "takes minutes"]
fn another_key_and_input_take_the_same_way() {
    is_the_same_way(&RsaSize::ALL, 2);
}

#[test]
#[ignore = "takes many minutes"]
fn every_key_and_input_takes_the_same_way() {
    is_the_same_way(&RsaSize::ALL, 5);
}
