//! `hasten tune`: which settings make a service cheaper under its own load, with proof for each that is kept.
//!
//! A [`Space`](space::Space) contains the possible settings, a [`Candidate`](space::Candidate) is one choice among
//! them, a [`Measurement`](measure::Measurement) what the service cost with it. A [`Subject`](measure::Subject)
//! measures; everything that decides knows nothing about services, so that its error rate can be shown on simulated
//! ones.

#![forbid(unsafe_code)]

pub mod balance;
pub mod guard;
mod http;
pub mod journal;
pub mod keeper;
pub mod knob;
pub mod load;
pub mod measure;
pub mod objective;
pub mod profile;
pub mod report;
pub mod service;
pub mod session;
pub mod space;
pub mod statistics;
pub mod summary;
pub mod trial;
