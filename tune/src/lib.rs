//! `hasten tune`: which settings make a service cheaper under its own load, with proof for each that is kept.
//!
//! A [`Space`](space::Space) is what may be set, a [`Candidate`](space::Candidate) one way to set it, a
//! [`Measurement`](measure::Measurement) what the service cost with it. A [`Subject`](measure::Subject) measures; all
//! that decides knows nothing of services, so that it can be shown on simulated ones how often it is wrong.

#![forbid(unsafe_code)]

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
