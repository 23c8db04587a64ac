//! The encodings around the arithmetic of a signature: padding before it, DER
//! after it.

pub mod der;
pub mod pkcs1;
pub mod pss;
