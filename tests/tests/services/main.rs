//! `hasten enable`, `disable` and `status` with real services of a real systemd.

mod fixture;
mod openrc;
mod refused;
mod sandboxed;
mod undone;
