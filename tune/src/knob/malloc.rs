//! What malloc's knobs have in common.

use super::Facts;

/// Allocators that programs bring along.
const OTHERS: [&str; 4] = ["libjemalloc", "libmimalloc", "libtcmalloc", "libsnmalloc"];

/// Whether the service uses glibc's malloc.
pub(super) fn is_of_glibc(facts: &Facts) -> Result<(), String> {
    let name = facts.program.name();
    if let Some(library) = OTHERS.iter().find_map(|stem| facts.program.library(stem)) {
        return Err(format!("{name} is linked with {}", library.name));
    }
    let preloaded = facts.environment.get(std::ffi::OsStr::new("LD_PRELOAD"));
    let preloaded = preloaded.map(|list| list.to_string_lossy().into_owned()).unwrap_or_default();
    match OTHERS.iter().find(|stem| preloaded.contains(**stem)) {
        Some(stem) => Err(format!("LD_PRELOAD has {stem} already")),
        None => Ok(()),
    }
}
