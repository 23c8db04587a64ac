//! The engines that no program's work goes to.

use std::collections::BTreeSet;
use std::sync::Arc;

use hasten_guard::clock::boot_ns;

use super::{Bench, LIMITS, breaker, refused, started};
use crate::answers;
use crate::engines::dlb::{self, Receiver};
use crate::engines::dml::{self, Copier};

pub(crate) fn copies(bench: &Bench<'_>) -> Result<String, String> {
    let mut engine = Copier::new(bench.folder.clone(), breaker(), LIMITS);
    (engine.verify, engine.always) = (true, true);
    started(|| (engine.is_ready(), engine.view()))?;
    let sizes = [dml::SMALLEST, 100_000, 1 << 20, 4 << 20];
    for size in sizes {
        let source: Arc<[u8]> = answers::text().into_iter().cycle().take(size).collect();
        engine.copy(&source, vec![0; size]).map_err(|(refusal, _)| refused(size, refusal))?;
    }
    Ok(format!("{} copies of 64 KiB to 4 MiB", sizes.len() + 1))
}

pub(crate) fn hand_out(bench: &Bench<'_>) -> Result<String, String> {
    const MESSAGES: u64 = 200;
    let (mut sender, mut receivers) = dlb::hand_out(bench.folder.clone(), 2, breaker(), LIMITS);
    started(|| (sender.is_ready(), sender.view()))?;
    let mut seen = BTreeSet::new();
    let deadline = boot_ns() + LIMITS.start.as_nanos() as u64;
    let mut next = 0;
    while (seen.len() as u64) < MESSAGES {
        if next < MESSAGES && sender.send(next).is_ok() {
            next += 1;
        }
        for message in receivers.iter_mut().filter_map(Receiver::receive) {
            if message >= MESSAGES || !seen.insert(message) {
                return Err(format!("message {message} came twice, or out of nowhere"));
            }
        }
        if boot_ns() > deadline {
            return Err(format!("{} of {MESSAGES} messages arrived", seen.len()));
        }
    }
    Ok(format!("{MESSAGES} messages to 2 receivers, each once"))
}
