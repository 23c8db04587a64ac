//! What was changed outside of this process, noted before it is changed, so that it is undone whatever happens.
//!
//! Each process that changes anything has a file of its own. It is there only as long as something has to be undone; the
//! next hasten that finds one whose process is gone undoes what it says, last change first. What somebody else has
//! changed meanwhile is left as it is.

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
