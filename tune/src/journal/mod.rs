//! Changes outside this process, recorded before they are made, so that they are undone whatever happens.
//!
//! Each process that changes anything has its own file. It exists only while there is something to undo; the next
//! hasten that finds one whose process is gone undoes its changes, last one first. Anything that somebody else has
//! changed since is left alone.

mod change;
mod file;
mod held;
mod place;
mod replay;
mod system;

pub use self::change::{Change, Undone};
pub use self::file::{Entry, Journal};
pub use self::held::Held;
pub use self::replay::{Replayed, replay, replay_within};
pub use self::system::System;
