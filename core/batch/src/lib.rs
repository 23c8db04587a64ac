//! Operations of many connections, collected and answered together.
//!
//! A connection that needs a signature or a shared secret places its [`Request`] where it can wait, submits it to the
//! [`Batch`] of its thread, and does something else. Eight of a kind are computed for little more than the price of
//! one: as soon as the eighth is there, or fewer when the event loop has nothing else to do. A device may do the work
//! instead. Then each [`Waker`] is called, and the owner of the operation fetches its [`Verdict`]: either the result is
//! there, or the original function has to run.
//!
//! The crate knows neither OpenSSL nor an event loop, starts no thread, and allocates nothing for an operation. The
//! services it needs from the surrounding program are in [`Host`].

mod batch;
pub mod device;
mod engine;
mod host;
mod lanes;
mod offload;
mod operation;
mod queue;

pub use batch::Batch;
pub use engine::{Engine, SINGLE, Settings};
pub use host::Host;
pub use lanes::{ENGINE, Lanes};
pub use operation::{Buffers, MAX_SIGNATURE, Operation, Request, Verdict, Waker};
