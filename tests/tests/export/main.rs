//! `hasten export` beside real servers: its output is true, other programs can read it, and its page is alive.

#![forbid(unsafe_code)]

mod command;
mod exporter;
mod packaging;
mod page;
mod server;
mod truth;
