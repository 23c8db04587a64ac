//! `hasten tune` as a whole, on a service whose settings have known effects.

mod effects;
mod endings;
mod tune;
mod units;
mod usage;
