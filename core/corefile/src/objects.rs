//! What an object is to a person: its text, its name, its properties.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use crate::bytes::{int, word};
use crate::image::Image;
use crate::layout::{FIRST_NON_STRING, Layout};
use crate::maps::{self, Map, Maps};
use crate::pages::Pages;

/// Strings in strings, in a heap that may be damaged: so deep, and so many.
const DEPTH: u32 = 64;
const PARTS: u32 = 4096;
/// A hundred sources of scripts, with the starts of their lines, is what frames need.
const SOURCES: usize = 100;
const SOURCE: usize = 16 << 20;
/// As far as a chain of maps leads to a constructor.
const CHAIN: usize = 4096;
const PROPERTIES: u64 = 1020;
const PROTOTYPES: usize = 64;
const TAG: &str = "[Symbol.toStringTag]";
/// Scopes with more variables keep their names in a table of their own.
const INLINE_NAMES: u64 = 75;

pub(crate) struct View<'a> {
    pub(crate) image: &'a Image<'a>,
    pub(crate) pages: &'a Pages,
    pub(crate) layout: &'a Layout,
    pub(crate) maps: &'a Maps,
    /// The start of each line of a script's source.
    lines: RefCell<HashMap<u64, Vec<u32>>>,
    /// Of prototypes, the properties that name what inherits from them.
    names: RefCell<HashMap<u64, Vec<(String, u64)>>>,
    /// Entries of tables and arrays that may still be read. Each is in one object, unless the file is damaged.
    entries: Cell<u64>,
}

impl<'a> View<'a> {
    pub(crate) fn new(image: &'a Image<'a>, pages: &'a Pages, layout: &'a Layout, maps: &'a Maps) -> Self {
        let (lines, names) = (RefCell::default(), RefCell::default());
        let entries = Cell::new(8 * u64::from(pages.words) + (1 << 24));
        Self { image, pages, layout, maps, lines, names, entries }
    }

    /// As many entries as are left, up to a number.
    pub(crate) fn entries(&self, count: u64) -> u64 {
        let count = count.min(self.entries.get());
        self.entries.set(self.entries.get() - count);
        count
    }

    /// The word of an object at an offset.
    pub(crate) fn field(&self, tagged: u64, offset: u64) -> u64 {
        self.image.word((tagged & !3).wrapping_add(offset))
    }

    /// The length of an array.
    pub(crate) fn length(&self, array: u64) -> u64 {
        self.field(array, 8) >> 32
    }

    pub(crate) fn map(&self, tagged: u64) -> Option<Map> {
        if tagged & 7 != 1 {
            return None;
        }
        let map = self.field(tagged, 0);
        if map & 7 != 1 {
            return None;
        }
        self.maps.known(map).copied().or_else(|| {
            self.pages.of(map)?;
            maps::read(self.image, self.pages, self.layout, map)
        })
    }

    pub(crate) fn is(&self, tagged: u64, name: &str) -> bool {
        self.map(tagged).is_some_and(|map| self.layout.name(map.kind) == name)
    }

    /// Up to so many characters of a string.
    pub(crate) fn text(&self, tagged: u64, limit: usize) -> Option<String> {
        let mut units = Units { list: Vec::new(), parts: PARTS };
        self.units(tagged, 0, limit, DEPTH, &mut units)?;
        Some(String::from_utf16_lossy(&units.list))
    }

    /// A string that goes to a terminal: it may hold anything, and what controls one is escaped.
    pub(crate) fn name(&self, tagged: u64, limit: usize) -> Option<String> {
        let text = self.text(tagged, limit)?;
        if !text.contains(char::is_control) {
            return Some(text);
        }
        let escape = |one: char| match one.is_control() {
            true => one.escape_default().to_string(),
            false => one.to_string(),
        };
        Some(text.chars().map(escape).collect())
    }

    /// Appends up to `limit` code units, from `skip` on.
    fn units(&self, tagged: u64, skip: usize, limit: usize, depth: u32, to: &mut Units) -> Option<()> {
        let map = self.map(tagged).filter(|map| map.kind < FIRST_NON_STRING && depth > 0 && to.parts > 0)?;
        to.parts -= 1;
        let at = tagged - 1;
        let length = (int(self.image.at(at + 12, 4), 0) as usize).saturating_sub(skip).min(limit);
        let narrow = map.kind & 8 != 0;
        match map.kind & 7 {
            0 => self.characters(at + 16, skip, length, narrow, to),
            1 => {
                let before = to.list.len();
                let first = self.field(tagged, 16);
                self.units(first, skip, length, depth - 1, to)?;
                let rest = length.saturating_sub(to.list.len() - before);
                if rest > 0 {
                    let in_first = int(self.image.at((first & !3).wrapping_add(12), 4), 0) as usize;
                    let skip = skip.saturating_sub(in_first);
                    self.units(self.field(tagged, 24), skip, rest, depth - 1, to)?;
                }
            }
            2 if map.size > 24 => self.characters(self.field(tagged, 24), skip, length, narrow, to),
            2 => to.list.extend("(external)".encode_utf16()),
            3 => {
                let skip = ((self.field(tagged, 24) >> 32) as usize).checked_add(skip)?;
                self.units(self.field(tagged, 16), skip, length, depth - 1, to)?;
            }
            5 => self.units(self.field(tagged, 16), skip, limit, depth - 1, to)?,
            _ => return None,
        }
        Some(())
    }

    fn characters(&self, at: u64, skip: usize, length: usize, narrow: bool, to: &mut Units) {
        if narrow {
            let bytes = self.image.at(at.wrapping_add(skip as u64), length);
            to.list.extend(bytes.iter().map(|&byte| u16::from(byte)));
            return;
        }
        let bytes = self.image.at(at.wrapping_add(2 * skip as u64), length * 2).chunks_exact(2);
        to.list.extend(bytes.map(|unit| u16::from_le_bytes([unit[0], unit[1]])));
    }

    /// The name of a function by its shared part.
    pub(crate) fn function_name(&self, shared: u64) -> String {
        let named = self.field(shared, self.layout.shared_name);
        if let Some(text) = self.name(named, 200) {
            return text;
        }
        match self.is(named, "SCOPE_INFO") {
            true => self.scope_name(named).unwrap_or_default(),
            false => String::new(),
        }
    }

    fn scope_rest(&self, scope: u64) -> u64 {
        let locals = self.field(scope, 24) >> 32;
        self.layout.scope_first + if locals < INLINE_NAMES { 2 * locals } else { 1 + locals }
    }

    fn scope_name(&self, scope: u64) -> Option<String> {
        let first = self.scope_rest(scope);
        let words = (first..first + 4).map(|index| self.field(scope, 8 + 8 * index));
        words.take_while(|&word| !self.is(word, "SCOPE_INFO")).find_map(|word| self.name(word, 200))
    }

    /// Where a function begins in its script.
    fn start(&self, shared: u64) -> Option<u32> {
        let scope = self.field(shared, self.layout.shared_name);
        if !self.is(scope, "SCOPE_INFO") {
            return self.start_of_uncompiled(shared);
        }
        let smi = |word: u64| (word as u32 == 0).then_some((word >> 32) as u32);
        if self.layout.scope_first == 5 {
            return smi(self.field(scope, 8 + 24));
        }
        let first = self.scope_rest(scope);
        (first..first + 8).find_map(|index| {
            let start = smi(self.field(scope, 8 + 8 * index))?;
            let end = smi(self.field(scope, 16 + 8 * index))?;
            (start < end).then_some(start)
        })
    }

    /// A function that was never called has no scope yet, and data that names its place.
    fn start_of_uncompiled(&self, shared: u64) -> Option<u32> {
        let data = (8..40).step_by(8).map(|at| self.field(shared, at));
        let is_data = |tagged: &u64| {
            self.map(*tagged).is_some_and(|map| self.layout.name(map.kind).starts_with("UNCOMPILED_DATA"))
        };
        let data = data.into_iter().find(is_data)?;
        Some(int(self.image.at(data - 1 + 16, 4), 0))
    }

    /// Script, line and column of a position, or of a function's start.
    pub(crate) fn place(&self, shared: u64, position: Option<u32>) -> Option<(String, u32, u32)> {
        let script = self.field(shared, self.layout.shared_script);
        if !self.is(script, "SCRIPT") {
            return None;
        }
        let name = self.name(self.field(script, 16), 4096).unwrap_or_default();
        let Some(position) = position.or_else(|| self.start(shared)) else { return Some((name, 0, 0)) };
        let mut lines = self.lines.borrow_mut();
        if lines.len() >= SOURCES {
            lines.clear();
        }
        let lines = lines.entry(script).or_insert_with(|| {
            let source = self.text(self.field(script, 8), SOURCE).unwrap_or_default();
            let breaks = source.chars().zip(1..).filter(|(character, _)| *character == '\n');
            std::iter::once(0).chain(breaks.map(|(_, next)| next)).collect()
        });
        let line = lines.partition_point(|&start| start <= position);
        Some((name, line as u32, position - lines[line - 1] + 1))
    }

    /// The name of an object with a map: its constructor, or V8's own in brackets.
    pub(crate) fn class(&self, map: &Map, tagged: u64) -> String {
        if map.kind < FIRST_NON_STRING {
            return "(string)".to_owned();
        }
        if self.layout.is_function(map.kind) {
            return "(closure)".to_owned();
        }
        if !self.layout.is_receiver(map.kind) {
            return self.internal(map);
        }
        self.made_by(map).or_else(|| self.inherited(map, tagged)).unwrap_or_else(|| "Object".to_owned())
    }

    fn internal(&self, map: &Map) -> String {
        match self.layout.name(map.kind) {
            "" => format!("(type {})", map.kind),
            name => format!("({})", name.to_lowercase()),
        }
    }

    /// By the constructor, unless that is Object or the constructor of a base class.
    fn made_by(&self, map: &Map) -> Option<String> {
        if !map.is_base || self.layout.is_prototype(map.bits3) {
            return None;
        }
        let function = self.constructor(map)?;
        self.constructor_name(function)
    }

    fn constructor_name(&self, function: u64) -> Option<String> {
        let is_function = self.map(function).is_some_and(|map| self.layout.is_function(map.kind));
        let name =
            is_function.then(|| self.function_name(self.field(function, self.layout.function_shared)))?;
        Some(name).filter(|name| !name.is_empty() && name != "Object")
    }

    /// By the first tag or constructor among what it inherits. A tag of its own counts where the map belongs to it, or tells of it.
    fn inherited(&self, map: &Map, tagged: u64) -> Option<String> {
        let own = self.layout.is_prototype(map.bits3) || !self.layout.is_dictionary(map.bits3);
        let own = own.then_some(tagged);
        if let Some(tag) = own.and_then(|own| self.named_by(own, TAG)) {
            return self.name(tag, 200);
        }
        let mut at = self.field(map.address, self.layout.map.prototype);
        for _ in 0..PROTOTYPES {
            let of = self.map(at).filter(|map| self.layout.is_receiver(map.kind))?;
            let tag = self.named_by(at, TAG).and_then(|tag| self.name(tag, 200));
            let maker = || self.named_by(at, "constructor").and_then(|maker| self.constructor_name(maker));
            if let Some(name) = tag.or_else(maker) {
                return Some(name);
            }
            at = self.field(of.address, self.layout.map.prototype);
        }
        None
    }

    fn named_by(&self, tagged: u64, name: &str) -> Option<u64> {
        let mut memory = self.names.borrow_mut();
        let known = memory.entry(tagged).or_insert_with(|| {
            let wanted = |(name, _): &(String, u64)| [TAG, "constructor"].contains(&&**name);
            self.properties(tagged).into_iter().filter(wanted).collect()
        });
        known.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    fn constructor(&self, map: &Map) -> Option<u64> {
        let mut at = map.address;
        for _ in 0..CHAIN {
            let next = self.field(at, self.layout.map.constructor);
            let found = self.map(next)?;
            if found.kind != self.layout.map_type {
                return Some(next);
            }
            at = next;
        }
        None
    }

    /// The name of a property: a string, or a symbol in brackets.
    fn key(&self, tagged: u64) -> Option<String> {
        if self.is(tagged, "SYMBOL") {
            return Some(format!("[{}]", self.name(self.field(tagged, 16), 200)?));
        }
        self.name(tagged, 200)
    }

    /// Named properties that are fields: the name, and the offset in the object or else in its property array.
    pub(crate) fn fields(&self, map: &Map) -> Vec<(String, Result<u64, u64>)> {
        if self.layout.is_dictionary(map.bits3) {
            return Vec::new();
        }
        let own =
            u64::from((map.bits3 & self.layout.map.own_mask) >> self.layout.map.own_shift).min(PROPERTIES);
        let descriptors = self.field(map.address, self.layout.map.descriptors);
        let within = u64::from(map.size / 8).saturating_sub(u64::from(map.properties));
        let bits = &self.layout.property;
        (0..own)
            .filter_map(|index| {
                let entry = self.layout.descriptors_header + 24 * index;
                let details = (self.field(descriptors, entry + 8) >> 32) as u32;
                if details & bits.location_mask != 0 {
                    return None;
                }
                let name = self.key(self.field(descriptors, entry))?;
                let number = u64::from((details & bits.index_mask) >> bits.index_shift);
                Some((
                    name,
                    match number < within {
                        true => Ok(8 * (u64::from(map.properties) + number)),
                        false => Err(16 + 8 * (number - within)),
                    },
                ))
            })
            .collect()
    }

    /// Names and values of an object, those of a dictionary included.
    pub(crate) fn properties(&self, tagged: u64) -> Vec<(String, u64)> {
        let Some(map) = self.map(tagged) else { return Vec::new() };
        let outside = self.field(tagged, 8);
        if self.layout.is_dictionary(map.bits3) {
            return self.dictionary(outside);
        }
        let value = |place| match place {
            Ok(offset) => self.field(tagged, offset),
            Err(offset) => self.field(outside, offset),
        };
        self.fields(&map).into_iter().map(|(name, place)| (name, value(place))).collect()
    }

    /// Elements that are tagged values: those of an array, or of a hash table of numbers.
    pub(crate) fn elements(&self, tagged: u64) -> Vec<(u64, u64)> {
        let array = self.field(tagged, 16);
        let Some(map) = self.map(array) else { return Vec::new() };
        let length = self.entries((self.field(array, 8) >> 32).min(1 << 26));
        let at = |index: u64| self.field(array, 16 + 8 * index);
        if self.layout.name(map.kind) == "FIXED_ARRAY" {
            let bytes = self.image.at(array.wrapping_add(15), length as usize * 8);
            return (0..).zip(bytes.chunks_exact(8).map(|bytes| word(bytes, 0))).collect();
        }
        // A number of entries, of deleted ones, the capacity and the largest key; then key, value and details.
        let is_table =
            self.layout.name(map.kind).is_empty() || self.layout.name(map.kind) == "NUMBER_DICTIONARY";
        let entries = (4..length.saturating_sub(2)).step_by(3).filter(|_| is_table);
        entries.filter(|&index| at(index) as u32 == 0).map(|index| (at(index) >> 32, at(index + 1))).collect()
    }

    /// Entries of a hash table of names: name and value, or a cell with both in that of a global object.
    fn dictionary(&self, table: u64) -> Vec<(String, u64)> {
        let length = self.entries((self.field(table, 8) >> 32).min(1 << 24));
        let at = |index: u64| self.field(table, 16 + 8 * index);
        let start = self.layout.property.dictionary_start;
        let cells =
            (start..length).map(at).find(|&word| self.is(word, "PROPERTY_CELL") || self.is_name(word));
        if cells.is_some_and(|cell| self.is(cell, "PROPERTY_CELL")) {
            let cells = (start..length).map(at).filter(|&cell| self.is(cell, "PROPERTY_CELL"));
            return cells
                .filter_map(|cell| Some((self.key(self.field(cell, 8))?, self.field(cell, 24))))
                .collect();
        }
        let step = self.layout.property.dictionary_entry.max(1) as usize;
        let entries = (start..length.saturating_sub(2)).step_by(step);
        entries.filter_map(|index| Some((self.key(at(index))?, at(index + 1)))).collect()
    }

    fn is_name(&self, tagged: u64) -> bool {
        self.is(tagged, "SYMBOL") || self.map(tagged).is_some_and(|map| map.kind < FIRST_NON_STRING)
    }

    /// A value in a few words.
    pub(crate) fn show(&self, value: u64, redact: bool) -> String {
        if value & 1 == 0 {
            let smi = ((value >> 32) as u32).cast_signed();
            return if redact { "(number)".to_owned() } else { smi.to_string() };
        }
        let Some(map) = self.map(value) else { return "(unknown)".to_owned() };
        match self.layout.name(map.kind) {
            _ if map.kind < FIRST_NON_STRING && redact => "(string)".to_owned(),
            _ if map.kind < FIRST_NON_STRING => format!("{:?}", self.text(value, 80).unwrap_or_default()),
            "HEAP_NUMBER" if redact => "(number)".to_owned(),
            "HEAP_NUMBER" => f64::from_bits(self.field(value, 8)).to_string(),
            "ODDBALL" => self.name(self.field(value, 16), 20).unwrap_or_default(),
            _ if self.layout.is_function(map.kind) => {
                let name = self.function_name(self.field(value, self.layout.function_shared));
                format!("function {}", if name.is_empty() { "(anonymous)" } else { &name })
            }
            _ => format!("{} @{value:x}", self.class(&map, value)),
        }
    }

    /// The last source position at or before an offset of bytecode.
    pub(crate) fn position(&self, bytecode: u64, offset: u64) -> Option<u32> {
        let steps = if self.layout.major >= 26 { Steps::Flagged } else { Steps::Signed };
        [24, 32, 40, 48, 56].into_iter().find_map(|field| {
            let table = self.field(bytecode, field);
            if !self.is(table, "BYTE_ARRAY") && !self.is(table, "TRUSTED_BYTE_ARRAY") {
                return None;
            }
            let length = (self.field(table, 8) >> 32) as usize;
            last_position(self.image.at(table + 15, length), steps, offset)
        })
    }

    /// The bytecode of a function, by its shared part; baseline and interpreter data lead to it.
    pub(crate) fn bytecode(&self, shared: u64) -> Option<u64> {
        let within = |tagged: u64| {
            let words = (8..64).step_by(8).map(|at| self.field(tagged, at));
            words.into_iter().find(|&word| self.is_bytecode(word))
        };
        let data: Vec<u64> = (8..40).step_by(8).map(|at| self.field(shared, at)).collect();
        let direct = data.iter().copied().find(|&word| self.is_bytecode(word));
        direct.or_else(|| {
            let of_code = |&word: &u64| self.is(word, "INTERPRETER_DATA") || self.is(word, "CODE");
            data.iter().copied().filter(|word| of_code(word)).find_map(within)
        })
    }

    pub(crate) fn is_bytecode(&self, tagged: u64) -> bool {
        self.is(tagged, "BYTECODE_ARRAY")
    }

    /// The bytes that an array buffer holds outside the heap.
    pub(crate) fn buffer(&self, at: u64) -> u64 {
        self.image.word(at.wrapping_add(self.layout.buffer_length))
    }

    pub(crate) fn is_buffer(&self, map: &Map) -> bool {
        self.layout.name(map.kind) == "JS_ARRAY_BUFFER"
    }
}

/// The characters of a string, and how many more parts it may have.
struct Units {
    list: Vec<u16>,
    parts: u32,
}

/// How a table of positions tells a step from one offset of bytecode to the next, and a statement from an expression.
#[derive(Debug, Clone, Copy)]
enum Steps {
    /// Above one bit, the sign, which tells.
    Signed,
    /// Since V8 14: above two bits, of which the lower one tells.
    Flagged,
}

impl Steps {
    fn of(self, number: u64) -> u64 {
        match self {
            Self::Flagged => number >> 2,
            Self::Signed => number >> 1,
        }
    }
}

/// Pairs of differences: of an offset, and of a position times two, plus two, in zigzag code.
fn last_position(table: &[u8], steps: Steps, offset: u64) -> Option<u32> {
    let mut numbers = Vec::new();
    let (mut number, mut shift) = (0_u64, 0);
    for &byte in table {
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    if numbers.len() % 2 != 0 {
        return None;
    }
    // The first offset is that of the function's entry, which comes before all bytecode.
    let (mut at, mut position, mut last) = (0_u64, 0_i64, None);
    let offset = offset.saturating_add(1);
    for pair in numbers.chunks_exact(2) {
        at = at.checked_add(steps.of(pair[0]))?;
        position = position.checked_add((pair[1] >> 1).cast_signed() ^ -(pair[1] & 1).cast_signed())?;
        if position < 0 || position & 1 != 0 {
            return None;
        }
        if at <= offset {
            last = u32::try_from((position >> 1) - 1).ok();
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of one function, as Node 24 and Node 26 keep it.
    #[test]
    fn positions_are_told_by_both_kinds_of_steps() {
        let signed = [1, 0xc8, 0x29, 2, 0x54, 25, 0, 12, 0x98, 1];
        let flagged = [2, 0xc8, 0x29, 7, 0x54, 50, 0, 27, 0x98, 1];
        for (table, steps) in [(signed, Steps::Signed), (flagged, Steps::Flagged)] {
            let at = |offset| last_position(&table, steps, offset);
            assert_eq!(
                [at(0), at(1), at(12), at(17), at(18)].map(Option::unwrap),
                [1350, 1350, 1350, 1350, 1388]
            );
        }
        assert_eq!(last_position(&[1], Steps::Signed, 0), None);
        assert_eq!(last_position(&[0x80; 12], Steps::Signed, 0), None);
    }
}
