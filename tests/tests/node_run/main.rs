//! Node.js behind `hasten run`: however it is started, its user sees what a start without hasten shows.

mod app;
mod ends;
mod environment;
mod starts;
