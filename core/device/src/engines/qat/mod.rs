//! qatlib: public-key operations by QAT, submitted and polled later.
//!
//! Nothing here blocks: the server's own event loop polls. Other threads do what could hang (starting, stopping).

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

/// Not one of the library's statuses: the multiplication gave no point.
const NOT_MULTIPLIED: abi::Status = -1000;
