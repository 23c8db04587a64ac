//! Garbage collection of V8: traces in, a summary, a model and advice out.
//!
//! [`event`] describes one collection, whatever recorded it; [`summary`] describes a whole trace, in bounded memory.

#![forbid(unsafe_code)]

pub mod advice;
pub mod compare;
pub mod event;
pub mod export;
pub mod model;
pub mod page;
pub mod parse;
pub mod profile;
mod summarize;
pub mod summary;
pub mod units;
pub mod verdict;
pub mod words;
