//! What a batch needs of the program around it. Envoy's BoringSSL draws from the kernel, and so does what is here.

use std::cell::RefCell;

use hasten_batch::Host;
use hasten_crypto::{Hash, Ifma, RandomPool, wipe};
use hasten_guard::clock::time_of_day;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::Digest;

pub(super) struct Kernel;

impl Host for Kernel {
    type Lanes = Ifma;
    type Sha512 = Sha512;

    fn private_random(bytes: &mut [u8]) -> bool {
        PRIVATE.with_borrow_mut(|pool| match pool {
            Some(pool) => pool.fill(time_of_day(), bytes, &mut random),
            None => random(bytes),
        })
    }

    fn public_random(bytes: &mut [u8]) -> bool {
        random(bytes)
    }

    /// Envoy runs handshakes on threads with the system's usual stack, and on nothing else.
    fn has_stack(_: usize) -> bool {
        true
    }
}

thread_local! {
    /// Keys are made eight at a time, and each draws for itself.
    static PRIVATE: RefCell<Option<RandomPool>> = RefCell::new(RandomPool::new());
}

fn random(mut bytes: &mut [u8]) -> bool {
    while !bytes.is_empty() {
        match getrandom(&mut *bytes, GetRandomFlags::empty()) {
            Ok(0) => return false,
            Ok(count) => bytes = &mut bytes[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

macro_rules! hash {
    ($Name:ident, $output:literal, $block:literal) => {
        #[derive(Clone)]
        pub(super) struct $Name(sha2::$Name);

        impl Hash for $Name {
            const OUTPUT: usize = $output;
            const BLOCK: usize = $block;

            fn new() -> Self {
                Self(sha2::$Name::new())
            }

            fn update(&mut self, bytes: &[u8]) {
                self.0.update(bytes);
            }

            fn finish(mut self, out: &mut [u8]) {
                self.0.finalize_into_reset(sha2::digest::generic_array::GenericArray::from_mut_slice(out));
            }
        }

        impl Drop for $Name {
            /// It may have absorbed a key.
            fn drop(&mut self) {
                const { assert!(!core::mem::needs_drop::<sha2::$Name>()) };
                // SAFETY: the bytes of a state that is not used any more, and needs no drop.
                wipe(unsafe {
                    core::slice::from_raw_parts_mut((&raw mut self.0).cast(), size_of::<sha2::$Name>())
                });
            }
        }
    };
}

hash!(Sha256, 32, 64);
hash!(Sha384, 48, 128);
hash!(Sha512, 64, 128);
