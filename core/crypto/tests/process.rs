//! The engine's effects on a server: its stack, its allocations, its behaviour after fork and on other CPUs.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::process::Command;

use hasten_crypto::{
    Curve, DeriveLane, EcdsaLane, EcdsaSignature, Group, Ifma, KeyPair, KeyPool, LANES, LaneEngine, RsaLane,
    RsaSize, Single,
};

use openssl::bn::{BigNum, BigNumContext};

use crate::support::hash::Sha512;
use crate::support::{Tested, ec_key, engine, random, rsa_key, with_each_engine};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    /// # Safety
    ///
    /// As for [`GlobalAlloc::alloc`]: `layout` is not of size 0.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    /// # Safety
    ///
    /// As for [`GlobalAlloc::dealloc`]: `pointer` was allocated here with `layout`, and nothing uses it any more.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// All the work a server can ask of the engine, on objects created in advance.
struct Work<E: Tested> {
    engine: E,
    scratch: E::Scratch,
    rsa: [Box<hasten_crypto::RsaKey>; 3],
    signing: [hasten_crypto::EcKey; 2],
    keys: Vec<KeyPool>,
    pairs: Vec<Vec<KeyPair>>,
}

impl<E: Tested> Work<E> {
    fn new() -> Option<Self> {
        let (engine, mut scratch) = engine::<E>()?;
        let mut pairs = Vec::new();
        for group in Group::ALL {
            let mut made = Vec::new();
            engine.keygen(&mut scratch, group, LANES, &mut random, |pair| made.push(pair));
            pairs.push(made);
        }
        Some(Self {
            engine,
            scratch,
            rsa: RsaSize::ALL.map(|size| rsa_key(size).1),
            signing: [Curve::P256, Curve::P384].map(|curve| ec_key(curve).1),
            keys: Group::ALL.map(|group| KeyPool::new(group).unwrap()).into(),
            pairs,
        })
    }

    fn run(&mut self) {
        let Self { engine, scratch, rsa, signing, keys, pairs } = self;
        // A random source of its own, because OpenSSL's allocations would count as well.
        let mut byte = 0;
        let mut random = |bytes: &mut [u8]| {
            byte += 1;
            bytes.fill(byte % 100 + 1);
            true
        };
        for key in rsa {
            let mut padded = [0x5a; 512];
            padded[0] = 0;
            let mut signatures = [[0; 512]; LANES];
            let bytes = key.size().bytes();
            let mut lanes = signatures.each_mut().map(|signature| RsaLane {
                key,
                padded: &padded[..bytes],
                signature: &mut signature[..bytes],
            });
            assert_eq!(engine.rsa_private(scratch, &mut lanes).all_ok(LANES), E::SIGNS_RSA);
            assert_eq!(engine.rsa_alone(scratch, &mut lanes[0]), E::SIGNS_ALONE);
        }
        for key in signing {
            let mut signatures = [None; LANES];
            let mut lanes =
                signatures.each_mut().map(|signature| EcdsaLane { key, digest: &[7; 48], signature });
            let status = engine.ecdsa_sign::<Sha512>(scratch, key.curve(), &mut lanes, &mut random);
            assert!(status.all_ok(LANES));
            for signature in signatures {
                assert!(signature.unwrap().to_der(&mut [0; EcdsaSignature::MAX_DER]).is_some());
            }
        }
        for pool in keys {
            assert_eq!(pool.refill(0, *engine, scratch, &mut random), LANES);
            while pool.take(0).is_some() {}
        }
        for (group, pairs) in Group::ALL.into_iter().zip(pairs) {
            derive_all(*engine, scratch, group, pairs);
        }
    }
}

fn derive_all<E: Tested>(engine: E, scratch: &mut E::Scratch, group: Group, pairs: &[KeyPair]) {
    let mut secrets = [[0; 48]; LANES];
    let mut secret = secrets.iter_mut();
    let mut lanes: [DeriveLane<'_>; LANES] = std::array::from_fn(|i| DeriveLane {
        private: pairs[i].private(),
        peer: pairs[(i + 1) % LANES].public(),
        shared: &mut secret.next().unwrap()[..group.shared_len()],
    });
    assert!(engine.derive(scratch, group, &mut lanes).all_ok(LANES));
}

fn nothing_is_allocated<E: Tested>() {
    let Some(mut work) = Work::<E>::new() else { return };
    let before = ALLOCATIONS.get();
    work.run();
    assert_eq!(ALLOCATIONS.get() - before, 0);
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(ALLOCATIONS.get() - before, 1, "the counter counts");
}

/// What the engines promise of their stack. The work runs on a painted stack; wherever the paint is gone, it was
/// used.
fn the_stack_suffices<E: Tested>() {
    const STACK: usize = 1 << 20;
    const PAINT: u8 = 0xa7;

    extern "C" fn body<E: Tested>(work: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the test passes its own `Work` and waits for this thread.
        unsafe { (*work.cast::<Work<E>>()).run() };
        std::ptr::null_mut()
    }

    let Some(mut work) = Work::<E>::new() else { return };
    let layout = Layout::from_size_align(STACK, 4096).unwrap();
    // SAFETY: the stack outlives the thread, which is joined before it is read and freed.
    let used = unsafe {
        let stack = System.alloc(layout);
        stack.write_bytes(PAINT, STACK);
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        assert_eq!(libc::pthread_attr_init(&mut attributes), 0);
        assert_eq!(libc::pthread_attr_setstack(&mut attributes, stack.cast(), STACK), 0);
        let mut thread = std::mem::zeroed();
        let argument = (&raw mut work).cast();
        assert_eq!(libc::pthread_create(&mut thread, &attributes, body::<E>, argument), 0);
        assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
        let untouched =
            std::slice::from_raw_parts(stack, STACK).iter().take_while(|&&byte| byte == PAINT).count();
        System.dealloc(stack, layout);
        STACK - untouched
    };
    println!("{used} bytes of stack, thread start included");
    // The test's own arrays, and what a thread keeps on its stack.
    const OWN: usize = 12 << 10;
    assert!((8 << 10..E::STACK + OWN).contains(&used), "{used} bytes");
}

/// The result modulo one prime, by which anybody could factor the modulus, is nowhere on the stack afterwards, neither in words nor
/// in limbs of 52 bits.
#[test]
fn no_half_of_an_rsa_operation_is_left_on_the_stack() {
    const STACK: usize = 1 << 20;

    struct Call {
        ifma: Ifma,
        scratch: hasten_crypto::Scratch,
        key: Box<hasten_crypto::RsaKey>,
        padded: Vec<u8>,
        signature: Vec<u8>,
    }
    extern "C" fn body(call: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the test passes its own `Call` and waits for this thread.
        let Call { ifma, scratch, key, padded, signature } = unsafe { &mut *call.cast::<Call>() };
        assert!(ifma.rsa_alone(scratch, &mut RsaLane { key, padded, signature }));
        std::ptr::null_mut()
    }

    let Some((ifma, scratch)) = engine::<Ifma>() else { return };
    for size in RsaSize::ALL {
        let (host, key) = rsa_key(size);
        let mut padded = vec![0x5a; size.bytes()];
        padded[0] = 0;
        let signature = vec![0; size.bytes()];
        let mut call = Call { ifma, scratch: ifma.scratch(), key, padded, signature };
        let stack = on_a_stack_of(STACK, body, (&raw mut call).cast());
        let signature = BigNum::from_slice(&call.signature).unwrap();
        for prime in [host.p(), host.q()] {
            let mut half = BigNum::new().unwrap();
            half.nnmod(&signature, prime.unwrap(), &mut BigNumContext::new().unwrap()).unwrap();
            for bits in [64, 52] {
                let mut upper = BigNum::new().unwrap();
                // The lowest limb may also be the signature's.
                for at in 1..size.bits() as i32 / 2 / bits {
                    upper.rshift(&half, at * bits).unwrap();
                    upper.mask_bits(bits).unwrap_or_default();
                    let limb = u64::from_be_bytes(upper.to_vec_padded(8).unwrap().try_into().unwrap());
                    let is_there = stack.chunks_exact(8).any(|chunk| chunk == limb.to_ne_bytes());
                    assert!(!is_there, "{size:?}: limb {at} of {bits} bits");
                }
            }
        }
        assert!(call.scratch.is_zero());
    }
    drop(scratch);
}

/// Runs a thread on a stack of its own, and returns what it has left there.
fn on_a_stack_of(
    bytes: usize,
    body: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
    argument: *mut libc::c_void,
) -> Vec<u8> {
    let layout = Layout::from_size_align(bytes, 4096).unwrap();
    // SAFETY: the stack outlives the thread, which is joined before it is read and freed.
    unsafe {
        let stack = System.alloc_zeroed(layout);
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        assert_eq!(libc::pthread_attr_init(&mut attributes), 0);
        assert_eq!(libc::pthread_attr_setstack(&mut attributes, stack.cast(), bytes), 0);
        let mut thread = std::mem::zeroed();
        assert_eq!(libc::pthread_create(&mut thread, &attributes, body, argument), 0);
        assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
        let left = std::slice::from_raw_parts(stack, bytes).to_vec();
        System.dealloc(stack, layout);
        left
    }
}

with_each_engine! {
    nothing_is_allocated,
    the_stack_suffices,
}

#[test]
fn pools_of_a_forked_child_are_empty() {
    let Some((ifma, mut scratch)) = engine::<Ifma>() else { return };
    let mut keys = KeyPool::new(Group::X25519).unwrap();
    keys.refill(0, ifma, &mut scratch, &mut random);
    // SAFETY: the child uses only what is its own and exits without clean-up.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let empty = keys.available(0) == 0 && keys.take(0).is_none();
        let mut fixed = |bytes: &mut [u8]| {
            bytes.fill(3);
            true
        };
        let usable = keys.refill(0, ifma, &mut scratch, &mut fixed) == LANES && keys.take(0).is_some();
        // SAFETY: as above.
        unsafe { libc::_exit(if empty && usable { 42 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42, "status {status:#x}");
    assert_eq!(keys.available(0), LANES);
}

#[test]
fn engines_can_be_denied() {
    can_be_denied::<Ifma>();
    can_be_denied::<Single>();
}

fn can_be_denied<E: Tested>() {
    // The test runs itself with the variable set, because all threads of a process share one environment.
    const CHILD: &str = "HASTEN_TEST_DENIED";
    if let Ok(expected) = std::env::var(CHILD) {
        let (variable, expected) = expected.split_once(' ').unwrap();
        if variable == E::NEEDS[1] {
            assert_eq!(E::detect().is_some().to_string(), expected);
        }
        return;
    }
    let run = |value: &str, expected: bool| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "engines_can_be_denied"])
            .env(E::NEEDS[1], value)
            .env(CHILD, format!("{} {expected}", E::NEEDS[1]))
            .output()
            .unwrap()
            .status
            .success()
    };
    assert!(run("1", false));
    if E::detect().is_some() {
        assert!(run("0", true), "only 1 denies");
        assert!(!run("1", true), "the child's verdict arrives");
    }
}
