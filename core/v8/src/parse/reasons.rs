//! V8's reasons, each kept once.

use std::sync::Arc;

use crate::event::Reason;

/// Far more than V8 has; a trace that names more is not V8's.
const MOST: usize = 64;
const LONGEST: usize = 64;

pub(super) struct Reasons(Vec<Reason>);

impl Reasons {
    pub(super) fn new() -> Self {
        Self(vec![Reason(Arc::from(""))])
    }

    pub(super) fn intern(&mut self, reason: &[u8]) -> Reason {
        let reason = &reason[..reason.len().min(LONGEST)];
        if let Some(known) = self.0.iter().find(|known| known.0.as_bytes() == reason) {
            return known.clone();
        }
        let readable: String = String::from_utf8_lossy(reason)
            .chars()
            .map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter })
            .collect();
        let known = self.0.iter().find(|known| *known.0 == *readable);
        match known {
            Some(known) => known.clone(),
            None if self.0.len() > MOST => Reason(Arc::from("other")),
            None => {
                self.0.push(Reason(Arc::from(readable)));
                self.0.last().cloned().unwrap_or(Reason(Arc::from("")))
            }
        }
    }
}

/// Whether the program did not reach the collection by itself.
pub(super) fn is_last_resort(reason: &[u8]) -> bool {
    const REASONS: [&[u8]; 8] = [
        b"last resort",
        b"low memory notification",
        b"memory pressure",
        b"MemoryPressure",
        b"testing",
        b"heap profiler",
        b"debugger",
        b"measure memory",
    ];
    REASONS.contains(&reason)
}
