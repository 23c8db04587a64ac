//! `hasten enable`, `disable` and `status` with real services of a real systemd.

mod fixture;
mod refused;
mod sandboxed;
mod undone;
