//! The room on the stack that the system gave a thread. Any other stack is a coroutine's or a signal's, of which neither the
//! size is known nor how much of it the program has set aside.

use core::cell::Cell;
use core::ops::Range;

thread_local! {
    static OWN: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Notes which stack is the thread's own.
pub(crate) fn note(own: &Range<usize>) {
    OWN.set((own.start, own.end));
}

/// Whether this is the thread's own stack, with room for a function that needs so many bytes, and for a signal.
pub(crate) fn has_room(bytes: usize) -> bool {
    const SIGNAL: usize = 16 << 10;
    let local = 0_u8;
    let here = (&raw const local).addr();
    let (start, end) = OWN.get();
    (start..end).contains(&here) && here - start >= bytes + SIGNAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_the_room_that_is_left() {
        assert!(!has_room(0), "not noted yet");
        let local = 0_u8;
        let here = (&raw const local).addr();
        note(&(here - (64 << 10)..here + 4096));
        assert!(has_room(32 << 10) && !has_room(64 << 10));
        note(&(here + 4096..here + 8192));
        assert!(!has_room(0), "another stack");
    }

    /// How many bytes of its stack a thread uses for this work, beyond those for its start.
    fn depth_of(mut work: impl FnMut()) -> usize {
        const STACK: usize = 1 << 20;
        const PAINT: u8 = 0xa7;

        extern "C" fn body<F: FnMut()>(work: *mut libc::c_void) -> *mut libc::c_void {
            // SAFETY: `used` passes a function that lives until the thread has ended.
            unsafe { (*work.cast::<F>())() };
            core::ptr::null_mut()
        }

        fn used<F: FnMut()>(work: &mut F) -> usize {
            let mut stack = vec![[PAINT; 4096]; STACK / 4096 + 1];
            let start = stack.as_mut_ptr().cast::<u8>();
            // SAFETY: the stack outlives the thread, which is joined before it is read.
            unsafe {
                let mut attributes = core::mem::zeroed();
                assert_eq!(libc::pthread_attr_init(&raw mut attributes), 0);
                let aligned = start.add(start.align_offset(4096));
                assert_eq!(libc::pthread_attr_setstack(&raw mut attributes, aligned.cast(), STACK), 0);
                let mut thread = core::mem::zeroed();
                let argument = core::ptr::from_mut(work).cast();
                assert_eq!(
                    libc::pthread_create(&raw mut thread, &raw const attributes, body::<F>, argument),
                    0
                );
                assert_eq!(libc::pthread_join(thread, core::ptr::null_mut()), 0);
                let untouched = (0..STACK).take_while(|&at| aligned.add(at).read_volatile() == PAINT).count();
                STACK - untouched
            }
        }
        used(&mut work) - used(&mut || ())
    }

    /// What is deeper than they name would not be wiped.
    #[test]
    fn single_operations_keep_to_the_stack_they_name() {
        use hasten_crypto::{
            DeriveLane, Group, KeyPair, LaneEngine, ML_KEM_CIPHERTEXT, ML_KEM_SEED, Single, wipe,
        };

        // Frames of this test, and of the wiping itself.
        const OWN: usize = 1 << 10;
        let Some(engine) = Single::detect() else {
            return eprintln!("skipped: this CPU does not have what the engine for single operations needs");
        };
        let mut random = |bytes: &mut [u8]| {
            bytes.fill(0x5a);
            true
        };
        for group in Group::ALL {
            let mut made: Option<KeyPair> = None;
            let depth = depth_of(|| {
                engine.keygen(&mut (), group, 1, &mut random, |pair| made = Some(pair));
            });
            assert!((1..=Single::SHALLOW_STACK + OWN).contains(&depth), "{group:?}, a key: {depth}");
            let pair = made.expect("a key pair");
            let mut shared = [0; Group::MAX_PRIVATE];
            let shared = &mut shared[..group.shared_len()];
            let depth = depth_of(|| {
                let mut lane = [DeriveLane { private: pair.private(), peer: pair.public(), shared }];
                assert!(engine.derive(&mut (), group, &mut lane).all_ok(1));
            });
            let named = if group == Group::X25519 { Single::SHALLOW_STACK } else { Single::STACK };
            assert!((1..=named + OWN).contains(&depth), "{group:?}, a secret: {depth}");
        }
        let mut pair = None;
        let depth = depth_of(|| pair = Some(engine.ml_kem_key_pair(&mut [7; ML_KEM_SEED])));
        assert!((1..=Single::ML_KEM_STACK + OWN).contains(&depth), "ML-KEM, a key: {depth}");
        let pair = pair.expect("a key pair");
        let (key, mut ciphertext, mut secrets) = (pair.public(), [0; ML_KEM_CIPHERTEXT], [[0; 32]; 2]);
        let depth = depth_of(|| {
            assert!(engine.ml_kem_encapsulate(&key, &mut [9; 32], &mut ciphertext, &mut secrets[0]));
        });
        assert!((1..=Single::ML_KEM_STACK + OWN).contains(&depth), "ML-KEM, a ciphertext: {depth}");
        let depth = depth_of(|| pair.decapsulate(&ciphertext, &mut secrets[1]));
        assert!((1..=Single::ML_KEM_STACK + OWN).contains(&depth), "ML-KEM, a secret: {depth}");
        assert_eq!(secrets[0], secrets[1]);
        wipe(secrets.as_flattened_mut());
    }
}
