//! Maps: V8's word for the shape and the type of an object.

use std::collections::HashMap;

use crate::bytes::{half, int};
use crate::image::Image;
use crate::layout::{InstanceType, Layout};
use crate::pages::{Multiply, Pages};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Map {
    /// Tagged.
    pub(crate) address: u64,
    pub(crate) kind: InstanceType,
    /// In bytes; 0 where it varies.
    pub(crate) size: u32,
    /// The word at which properties begin.
    pub(crate) properties: u32,
    /// Objects with it were made by the constructor itself, not by that of a derived class.
    pub(crate) is_base: bool,
    pub(crate) bits3: u32,
}

/// Every map that was asked for, numbered.
#[derive(Debug, Default)]
pub(crate) struct Maps {
    pub(crate) list: Vec<Map>,
    known: HashMap<u64, u32, Multiply>,
    /// Those that were asked for last: a few maps have most of the objects.
    recent: Vec<(u64, u32)>,
}

pub(crate) const NONE: u32 = u32::MAX;
const REMEMBERED: usize = 1 << 20;
const RECENT: usize = 256;

impl Maps {
    /// The number of the map that a word points to, or [`NONE`].
    pub(crate) fn number(&mut self, image: &Image<'_>, pages: &Pages, layout: &Layout, tagged: u64) -> u32 {
        if tagged & 7 != 1 {
            return NONE;
        }
        if self.recent.is_empty() {
            self.recent = vec![(0, NONE); RECENT];
        }
        let place = (tagged >> 3 ^ tagged >> 12) as usize % RECENT;
        if self.recent[place].0 == tagged {
            return self.recent[place].1;
        }
        let number = self.look_up(image, pages, layout, tagged);
        self.recent[place] = (tagged, number);
        number
    }

    fn look_up(&mut self, image: &Image<'_>, pages: &Pages, layout: &Layout, tagged: u64) -> u32 {
        if let Some(&number) = self.known.get(&tagged) {
            return number;
        }
        if pages.of(tagged).is_none() {
            return NONE;
        }
        let map = read(image, pages, layout, tagged);
        let number = map.map_or(NONE, |_| self.list.len() as u32);
        self.list.extend(map);
        // Rubbish in a hostile file would fill the memory.
        if number != NONE || self.known.len() < REMEMBERED {
            self.known.insert(tagged, number);
        }
        number
    }

    /// As above, for a map that is known already.
    pub(crate) fn known(&self, tagged: u64) -> Option<&Map> {
        let number = *self.known.get(&tagged)?;
        self.list.get(number as usize)
    }
}

/// A map's own map is a map of maps, whose map is itself.
pub(crate) fn read(image: &Image<'_>, pages: &Pages, layout: &Layout, tagged: u64) -> Option<Map> {
    let bytes = image.at(tagged - 1, 80);
    let of_maps = crate::bytes::word(bytes, 0);
    if bytes.len() < 72 || of_maps & 7 != 1 || pages.of(of_maps).is_none() {
        return None;
    }
    let of_map = image.at(of_maps - 1, 24);
    if half(of_map, 12) != layout.map_type {
        return None;
    }
    // The map of all maps; a native context has one of its own since Node 22, whose map is that one.
    let top = crate::bytes::word(of_map, 0);
    if top != of_maps && (top & 7 != 1 || image.word(top - 1) != top) {
        return None;
    }
    Some(Map {
        address: tagged,
        kind: half(bytes, 12),
        size: u32::from(bytes[8]) * 8,
        properties: u32::from(bytes[9]),
        is_base: bytes[15] & 1 == 1,
        bits3: int(bytes, 16),
    })
}
