//! Traps for symbols that crypto_mb refers to but never reaches on the paths we call (see `build.rs`).
//!
//! The symbols are hidden, so they are neither exported from a shared library nor mistaken for libcrypto's own. The one
//! for `malloc` also enforces a promise: the engine never allocates if it is given its buffers.

std::arch::global_asm!(
    ".pushsection .text.hasten_unreachable,\"ax\",@progbits",
    ".irp name, BN_bin2bn, BN_bn2lebinpad, BN_is_word, BN_num_bits, ECDSA_SIG_get0, malloc, free",
    ".globl hasten_unreachable_\\name",
    ".hidden hasten_unreachable_\\name",
    ".type hasten_unreachable_\\name, @function",
    "hasten_unreachable_\\name:",
    ".endr",
    "ud2",
    ".popsection",
);
