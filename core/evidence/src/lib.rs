//! Evidence for or against a gain: paired measurements, how sure they are, and how to show them.
//!
//! A [`Pair`](paired::Pair) holds the cost of the same work on both sides, measured one right after the other.
//! [`paired::ratio`] makes an [`Estimate`](paired::Estimate) with an interval, [`Verdict`](verdict::Verdict) says
//! what may be claimed, [`StopRule`](stop::StopRule) when to stop measuring, and [`Report`](report::Report) is
//! the result: JSON first, the terminal table and the HTML page are views of it.

#![forbid(unsafe_code)]

pub mod bootstrap;
pub mod paired;
pub mod report;
pub mod statistics;
pub mod stop;
pub mod verdict;
pub mod warning;
