//! Numbers for monitoring.

use crate::devices::DeviceEngine;
use crate::engine::EngineKind;

/// What a call did, in numbers, for the process's counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// By engine.
    pub engines: [Work; EngineKind::ALL.len()],
    /// By device engine.
    pub devices: [Work; DeviceEngine::ALL.len()],
    /// Bytes that no engine made shorter.
    pub plain: u64,
    pub verified: u64,
    pub mismatches: u64,
    /// Bytes that were copied to wait for more.
    pub buffered: u64,
    /// Estimated nanoseconds saved.
    pub saved_ns: u64,
}

/// What one engine did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Chunks whose result was used.
    pub chunks: u64,
    /// Results that were wrong.
    pub wrong: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Time at work, including that for unused results.
    pub busy_ns: u64,
    /// How often its breaker opened.
    pub opened: u64,
}

impl Work {
    /// Counts a chunk whose result was used.
    pub fn used(&mut self, bytes_in: usize, bytes_out: usize) {
        self.chunks += 1;
        self.bytes_in += bytes_in as u64;
        self.bytes_out += bytes_out as u64;
    }
}
