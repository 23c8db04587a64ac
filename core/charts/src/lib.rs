//! The chart library of hasten's pages, to be written into a page that needs nothing else.

#![forbid(unsafe_code)]

/// uPlot: defines the global `uPlot`.
pub const SCRIPT: &str = include_str!("../vendor/uPlot.iife.min.js");

/// The style sheet that uPlot needs.
pub const STYLE: &str = include_str!("../vendor/uPlot.min.css");
