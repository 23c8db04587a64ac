//! Core files of Node.js: who died and where, what the heap held and who held it.

#![deny(unsafe_code)]

mod binary;
mod bits;
mod bytes;
mod chains;
mod collection;
mod compare;
mod dominators;
mod environment;
mod error;
mod exits;
mod graph;
mod holders;
mod image;
mod inlined;
mod layout;
mod lists;
mod live;
mod loops;
#[allow(unsafe_code, reason = "maps the file; xtask's layering knows it")]
mod map;
mod maps;
mod native;
mod objects;
mod packed;
mod page;
mod pages;
mod paths;
mod promises;
mod references;
mod report;
mod roots;
mod rule;
mod snapshot;
mod spaces;
mod stack;
mod thrown;
mod timers;
mod walk;

pub use collection::Collectors;
pub use compare::{Comparison, Grown, Growth};
pub use environment::MASKED;
pub use error::CoreError;
pub use holders::{Suspect, TreeBox};
pub use live::{Live, Standing};
pub use loops::{EventLoop, Handle};
pub use page::{PageError, page};
pub use paths::Step;
pub use promises::{AsyncFrame, AsyncStack, Promises};
pub use report::{Core, Entry, Frame, Heap, HeldPath, Options, Program, Report, Retainer, Thread};
pub use spaces::{IsolateHeap, Space};
pub use thrown::Thrown;
pub use timers::{TimerGroup, Timers};
