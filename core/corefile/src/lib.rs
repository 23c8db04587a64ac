//! Core files of Node.js: who died and where, what the heap held and who held it.

#![deny(unsafe_code)]

mod binary;
mod bytes;
mod chains;
mod dominators;
mod error;
mod graph;
mod image;
mod layout;
#[allow(unsafe_code, reason = "maps the file; xtask's layering knows it")]
mod map;
mod maps;
mod objects;
mod packed;
mod pages;
mod report;
mod roots;
mod rule;
mod snapshot;
mod stack;
mod walk;

pub use error::CoreError;
pub use report::{Core, Entry, Frame, Heap, Options, Program, Report, Retainer, Thread};
