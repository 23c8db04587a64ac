//! What preload libraries that compress have in common: their settings from the environment, the engines of the process,
//! and how both appear on the counter page.

#![forbid(unsafe_code)]

pub mod config;
pub mod engines;
