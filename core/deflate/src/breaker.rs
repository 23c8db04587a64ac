//! Which engines have been caught with wrong output. Nobody asks them again in this process.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::engine::EngineKind;

static OPEN: AtomicU8 = AtomicU8::new(0);

/// Takes an engine out of service. Returns whether it was in service until now.
pub fn open(kind: EngineKind) -> bool {
    OPEN.fetch_or(bit(kind), Ordering::Relaxed) & bit(kind) == 0
}

pub fn is_open(kind: EngineKind) -> bool {
    OPEN.load(Ordering::Relaxed) & bit(kind) != 0
}

/// Puts all engines back into service.
pub fn reset() {
    OPEN.store(0, Ordering::Relaxed);
}

const fn bit(kind: EngineKind) -> u8 {
    1 << kind as u8
}
