//! Logs on a faster device, with symbolic links in their place.
//!
//! The preload library makes them, and the command brings them home; this is what both need to know.

#![forbid(unsafe_code)]

pub mod home;
pub mod names;
pub mod place;
