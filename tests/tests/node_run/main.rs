//! Node.js under `hasten run`: however it is started, its user sees the same as without hasten.

mod app;
mod ends;
mod environment;
mod starts;
