//! Whether V8 is in the middle of a collection: its objects are in two places then, or are being moved.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::bytes::int;
use crate::image::Image;
use crate::layout::Layout;
use crate::pages::Pages;
use crate::roots::isolates;

/// The collectors of a process that runs, one for each isolate.
#[derive(Debug)]
pub struct Collectors {
    memory: File,
    states: Vec<u64>,
}

impl Collectors {
    pub(crate) fn of(memory: File, image: &Image<'_>, pages: &Pages, layout: &Layout) -> Self {
        Self { memory, states: states(image, pages, layout) }
    }

    /// What one of them is doing now, if one of them is doing anything.
    #[must_use]
    pub fn running(&self) -> Option<&'static str> {
        self.states.iter().find_map(|&at| {
            let mut state = [0; 4];
            self.memory.read_exact_at(&mut state, at).ok()?;
            collection(u32::from_le_bytes(state))
        })
    }
}

/// What to say of a core file that was made then.
pub(crate) fn note(image: &Image<'_>, pages: &Pages, layout: &Layout) -> Option<String> {
    let collection =
        states(image, pages, layout).into_iter().find_map(|at| collection(int(image.at(at, 4), 0)))?;
    Some(format!("V8 was in the middle of {collection}: objects may be in two places, or half moved"))
}

/// Where the state of each heap is.
fn states(image: &Image<'_>, pages: &Pages, layout: &Layout) -> Vec<u64> {
    let Some(offset) = layout.heap_state else { return Vec::new() };
    isolates(image, pages).into_iter().map(|isolate| isolate.heap.saturating_add(offset)).collect()
}

/// V8 marks and sweeps between these, too, but moves nothing then. The last of its states is that of an isolate that ends.
fn collection(state: u32) -> Option<&'static str> {
    match state {
        1 => Some("a collection of the young generation"),
        2 => Some("a full collection"),
        3 => Some("a collection that marks the young generation"),
        _ => None,
    }
}
