//! qatlib: public-key operations by QAT, submitted and looked at later.
//!
//! Nothing here waits: the server's own event loop polls. What could hang (starting, stopping) is done by other threads.

pub mod abi;
mod curves;
mod guard;
mod monitor;
mod session;
mod slot;

pub use self::curves::base_point;
pub use self::guard::{Crypto, Plan};
pub use self::monitor::Monitor;
pub use self::session::{Qat, look};

/// Not a status of the library's: it has said that the multiplication gave no point.
const NOT_MULTIPLIED: abi::Status = -1000;
