//! The heap by space, and what limits it.

use serde::Serialize;

use crate::bytes::{int, word};
use crate::image::Image;
use crate::layout::Layout;
use crate::maps::NONE;
use crate::pages::{Page, Pages};
use crate::walk::Objects;

/// The fields of a heap that say how large it may become are within this distance of its start.
const FIELDS: usize = 32 << 10;
/// Those of the young generation are before.
const YOUNG: usize = 256;
const LEAST: u64 = 1 << 20;
const MOST: u64 = 1 << 46;
const UNIT: u64 = 1 << 18;
/// A process has one isolate, and one for each worker.
const ISOLATES: usize = 1024;

/// V8's numbers of spaces mean other spaces in other releases. `v8.getHeapSpaceStatistics()` lists them in this order.
const OF_18: &[&str] = &["read-only", "old", "code", "map", "large", "large code", "large new", "new"];
const OF_20: &[&str] =
    &["read-only", "new", "old", "code", "shared", "large new", "large", "large code", "large shared"];
const OF_22: &[&str] = &[
    "read-only",
    "new",
    "old",
    "code",
    "shared",
    "trusted",
    "large new",
    "large",
    "large code",
    "large shared",
    "large trusted",
];
const OF_24: &[&str] = &[
    "read-only",
    "new",
    "old",
    "code",
    "shared",
    "trusted",
    "shared trusted",
    "large new",
    "large",
    "large code",
    "large shared",
    "large shared trusted",
    "large trusted",
];

/// The heap of one isolate: of the main thread, or of a worker.
#[derive(Debug, Serialize)]
pub struct IsolateHeap {
    /// What the old generation may grow to before V8 ends the process.
    pub limit_bytes: Option<u64>,
    /// What one half of the young generation may grow to.
    pub semi_space_limit_bytes: Option<u64>,
    /// What counts towards the limit: pages of all spaces but the young and the read-only ones.
    pub old_generation_bytes: u64,
    pub spaces: Vec<Space>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Space {
    pub name: String,
    pub pages: u64,
    /// The parts of its pages where objects may be.
    pub size_bytes: u64,
    /// Objects, those that the next collection frees included.
    pub used_bytes: u64,
    pub live_bytes: u64,
}

/// By the address of the heap. Pages that are only read belong to all isolates, and are told with the first.
pub(crate) fn of(
    image: &Image<'_>,
    pages: &Pages,
    layout: &Layout,
    objects: &Objects,
    is_used: impl Fn(u32) -> bool,
    is_alive: impl Fn(u32) -> bool,
) -> Vec<IsolateHeap> {
    let mut heaps = pages.heaps();
    heaps.truncate(ISOLATES);
    let mut found: Vec<Vec<(u32, Space)>> = vec![Vec::new(); heaps.len().max(1)];
    let mut next = 0;
    for page in &pages.list {
        let isolate = heaps.binary_search(&page.heap).unwrap_or(0);
        let number = number(image, page);
        let spaces = &mut found[isolate];
        let place = spaces.iter().position(|(known, _)| *known == number).unwrap_or_else(|| {
            spaces.push((number, Space::new(name(layout, number))));
            spaces.len() - 1
        });
        let space = &mut spaces[place].1;
        space.pages += 1;
        space.size_bytes += page.end - page.start;
        let last = page.first_word + ((page.end - page.start) / 8) as u32;
        while objects.words.get(next).is_some_and(|&word| word < last) {
            let (object, size) = (next as u32, u64::from(objects.sizes[next]));
            space.used_bytes += if is_used(objects.maps[next]) { size } else { 0 };
            space.live_bytes += if is_alive(object) { size } else { 0 };
            next += 1;
        }
    }
    found
        .into_iter()
        .enumerate()
        .map(|(index, mut spaces)| {
            spaces.sort_by_key(|(number, _)| *number);
            let spaces: Vec<Space> = spaces.into_iter().map(|(_, space)| space).collect();
            let limits =
                heaps.get(index).map_or_else(Limits::default, |&heap| Limits::of(image, layout, heap));
            IsolateHeap {
                limit_bytes: limits.old,
                semi_space_limit_bytes: limits.semi_space,
                old_generation_bytes: spaces
                    .iter()
                    .filter(|space| space.is_old())
                    .map(|space| space.size_bytes)
                    .sum(),
                spaces,
            }
        })
        .collect()
}

/// V8's object for a space: its own type, the heap, and the number.
fn number(image: &Image<'_>, page: &Page) -> u32 {
    let space = image.at(page.owner, 24);
    match page.owner {
        0 => 0,
        _ if word(space, 8) == page.heap => int(space, 16),
        _ => NONE,
    }
}

fn name(layout: &Layout, number: u32) -> String {
    let names = match layout.major {
        ..=19 => OF_18,
        20 | 21 => OF_20,
        22 | 23 => OF_22,
        _ => OF_24,
    };
    names.get(number as usize).map_or_else(|| "(unknown)".to_owned(), |&name| name.to_owned())
}

impl Space {
    fn new(name: String) -> Self {
        Self { name, pages: 0, size_bytes: 0, used_bytes: 0, live_bytes: 0 }
    }

    fn is_old(&self) -> bool {
        !["read-only", "new", "large new"].contains(&&*self.name)
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Limits {
    old: Option<u64>,
    semi_space: Option<u64>,
}

impl Limits {
    /// No symbol says where they are. Four numbers are known by what is true of them: the least and the most that the old
    /// generation may have, and twice as much of both for all memory.
    fn of(image: &Image<'_>, layout: &Layout, heap: u64) -> Self {
        let bytes = image.at(heap, FIELDS);
        let at = |index: usize| word(bytes, 8 * index);
        let found = (0..bytes.len() / 8).find(|&index| {
            let (least, most) = (at(index), at(index + 1));
            (LEAST..MOST).contains(&most)
                && most % LEAST == 0
                && least <= most
                && at(index + 2) == 2 * least
                && at(index + 3) == 2 * most
        });
        let half = |size: u64| (UNIT..MOST).contains(&size) && size.is_multiple_of(UNIT);
        let semi_space = match layout.major {
            // The most, and with what it begins, right before.
            ..=23 => found.and_then(|index| {
                let (most, first) = (at(index.checked_sub(2)?), at(index - 1));
                (half(most) && half(first) && first <= most).then_some(most)
            }),
            // The most, the least, and with what it begins.
            _ => (0..YOUNG / 8).find_map(|index| {
                let (most, least, first) = (at(index), at(index + 1), at(index + 2));
                let ordered = least <= first && first <= most;
                (half(most) && half(least) && half(first) && ordered).then_some(most)
            }),
        };
        Self { old: found.map(|index| at(index + 1)), semi_space }
    }
}
