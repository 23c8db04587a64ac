//! OpenSSL's hash functions behind the crate's trait.

use hasten_crypto::Hash;
use openssl::sha;

macro_rules! host_hash {
    ($name:ident, $output:literal, $block:literal) => {
        #[derive(Clone)]
        pub(crate) struct $name(sha::$name);

        impl Hash for $name {
            const OUTPUT: usize = $output;
            const BLOCK: usize = $block;

            fn new() -> Self {
                Self(sha::$name::new())
            }

            fn update(&mut self, bytes: &[u8]) {
                self.0.update(bytes);
            }

            fn finish(self, out: &mut [u8]) {
                out.copy_from_slice(&self.0.finish());
            }
        }
    };
}

host_hash!(Sha1, 20, 64);
host_hash!(Sha224, 28, 64);
host_hash!(Sha256, 32, 64);
host_hash!(Sha384, 48, 128);
host_hash!(Sha512, 64, 128);

pub(crate) fn digest<H: Hash>(message: &[u8]) -> Vec<u8> {
    let mut state = H::new();
    state.update(message);
    let mut out = vec![0; H::OUTPUT];
    state.finish(&mut out);
    out
}
