//! The services of OpenSSL that a batch uses.

use hasten_batch::Host;
use hasten_crypto::Ifma;

use crate::openssl::{digest, random};
use crate::stack;

pub(crate) struct OpenSsl;

impl Host for OpenSsl {
    type Lanes = Ifma;
    type Sha512 = digest::Sha512;

    fn private_random(bytes: &mut [u8]) -> bool {
        random::private(bytes)
    }

    fn public_random(bytes: &mut [u8]) -> bool {
        random::public(bytes)
    }

    fn has_stack(bytes: usize) -> bool {
        stack::has_room(bytes)
    }
}
