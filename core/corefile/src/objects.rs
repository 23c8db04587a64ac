//! What an object is to a person: its text, its name, its properties.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::bytes::{int, word};
use crate::image::Image;
use crate::layout::{FIRST_NON_STRING, Layout};
use crate::maps::{self, Map, Maps};
use crate::pages::Pages;

/// Strings in strings, in a heap that may be damaged.
const DEPTH: u32 = 64;
/// As far as a chain of maps leads to a constructor.
const CHAIN: usize = 4096;
const PROPERTIES: u64 = 1020;
/// Scopes with more variables keep their names in a table of their own.
const INLINE_NAMES: u64 = 75;

pub(crate) struct View<'a> {
    pub(crate) image: &'a Image<'a>,
    pub(crate) pages: &'a Pages,
    pub(crate) layout: &'a Layout,
    pub(crate) maps: &'a Maps,
    /// The start of each line of a script's source.
    lines: RefCell<HashMap<u64, Vec<u32>>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(image: &'a Image<'a>, pages: &'a Pages, layout: &'a Layout, maps: &'a Maps) -> Self {
        Self { image, pages, layout, maps, lines: RefCell::default() }
    }

    /// The word of an object at an offset.
    pub(crate) fn field(&self, tagged: u64, offset: u64) -> u64 {
        self.image.word((tagged & !3).wrapping_add(offset))
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

    fn is(&self, tagged: u64, name: &str) -> bool {
        self.map(tagged).is_some_and(|map| self.layout.name(map.kind) == name)
    }

    /// Up to so many characters of a string.
    pub(crate) fn text(&self, tagged: u64, limit: usize) -> Option<String> {
        self.text_within(tagged, limit, DEPTH)
    }

    fn text_within(&self, tagged: u64, limit: usize, depth: u32) -> Option<String> {
        let map = self.map(tagged).filter(|map| map.kind < FIRST_NON_STRING && depth > 0)?;
        let at = tagged - 1;
        let length = (int(self.image.at(at + 12, 4), 0) as usize).min(limit);
        let narrow = map.kind & 8 != 0;
        match map.kind & 7 {
            0 => Some(self.characters(at + 16, length, narrow)),
            1 => {
                let mut text = self.text_within(self.field(tagged, 16), length, depth - 1)?;
                let rest = length.saturating_sub(text.chars().count());
                if rest > 0 {
                    text += &self.text_within(self.field(tagged, 24), rest, depth - 1)?;
                }
                Some(text)
            }
            2 if map.size > 24 => Some(self.characters(self.field(tagged, 24), length, narrow)),
            2 => Some("(external)".to_owned()),
            3 => {
                let skip = (self.field(tagged, 24) >> 32) as usize;
                let parent =
                    self.text_within(self.field(tagged, 16), skip.checked_add(length)?, depth - 1)?;
                Some(parent.chars().skip(skip).collect())
            }
            5 => self.text_within(self.field(tagged, 16), limit, depth - 1),
            _ => None,
        }
    }

    fn characters(&self, at: u64, length: usize, narrow: bool) -> String {
        if narrow {
            return self.image.at(at, length).iter().map(|&byte| char::from(byte)).collect();
        }
        let units = self.image.at(at, length * 2).chunks_exact(2);
        String::from_utf16_lossy(
            &units.map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect::<Vec<_>>(),
        )
    }

    /// The name of a function by its shared part.
    pub(crate) fn function_name(&self, shared: u64) -> String {
        let named = self.field(shared, self.layout.shared_name);
        if let Some(text) = self.text(named, 200) {
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
        words.take_while(|&word| !self.is(word, "SCOPE_INFO")).find_map(|word| self.text(word, 200))
    }

    /// Where a function begins in its script.
    fn start(&self, shared: u64) -> Option<u32> {
        let scope = self.field(shared, self.layout.shared_name);
        if !self.is(scope, "SCOPE_INFO") {
            return None;
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

    /// Script, line and column of a position, or of a function's start.
    pub(crate) fn place(&self, shared: u64, position: Option<u32>) -> Option<(String, u32, u32)> {
        let script = self.field(shared, self.layout.shared_script);
        if !self.is(script, "SCRIPT") {
            return None;
        }
        let name = self.text(self.field(script, 16), 4096).unwrap_or_default();
        let Some(position) = position.or_else(|| self.start(shared)) else { return Some((name, 0, 0)) };
        let mut lines = self.lines.borrow_mut();
        let lines = lines.entry(script).or_insert_with(|| {
            let source = self.text(self.field(script, 8), 64 << 20).unwrap_or_default();
            let breaks = source.chars().zip(1..).filter(|(character, _)| *character == '\n');
            std::iter::once(0).chain(breaks.map(|(_, next)| next)).collect()
        });
        let line = lines.partition_point(|&start| start <= position);
        Some((name, line as u32, position - lines[line - 1] + 1))
    }

    /// The name of objects with a map: their constructor, or V8's own in brackets.
    pub(crate) fn class(&self, map: &Map) -> String {
        if map.kind < FIRST_NON_STRING {
            return "(string)".to_owned();
        }
        if self.layout.is_function(map.kind) {
            return "(closure)".to_owned();
        }
        if !self.layout.is_receiver(map.kind) {
            let name = self.layout.name(map.kind);
            return if name.is_empty() {
                format!("(type {})", map.kind)
            } else {
                format!("({})", name.to_lowercase())
            };
        }
        self.constructor(map).unwrap_or_else(|| format!("({})", self.layout.name(map.kind).to_lowercase()))
    }

    fn constructor(&self, map: &Map) -> Option<String> {
        let mut at = map.address;
        for _ in 0..CHAIN {
            let next = self.field(at, self.layout.map.constructor);
            let found = self.map(next)?;
            if found.kind == self.layout.map_type {
                at = next;
                continue;
            }
            if !self.layout.is_function(found.kind) {
                return None;
            }
            let name = self.function_name(self.field(next, self.layout.function_shared));
            return Some(if name.is_empty() { "(anonymous)".to_owned() } else { name });
        }
        None
    }

    /// Named properties that are fields: the name, and the offset in the object or else in its property array.
    pub(crate) fn fields(&self, map: &Map) -> Vec<(String, Result<u64, u64>)> {
        if map.bits3 >> self.layout.map.dictionary_shift & 1 == 1 {
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
                let name = self.text(self.field(descriptors, entry), 200)?;
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
        if map.bits3 >> self.layout.map.dictionary_shift & 1 == 1 {
            return self.dictionary(outside);
        }
        let value = |place| match place {
            Ok(offset) => self.field(tagged, offset),
            Err(offset) => self.field(outside, offset),
        };
        self.fields(&map).into_iter().map(|(name, place)| (name, value(place))).collect()
    }

    fn dictionary(&self, table: u64) -> Vec<(String, u64)> {
        let length = (self.field(table, 8) >> 32).min(1 << 20);
        let bits = &self.layout.property;
        let entries =
            (bits.dictionary_start..length.saturating_sub(2)).step_by(bits.dictionary_entry.max(1) as usize);
        let at = |index: u64| self.field(table, 16 + 8 * index);
        entries.filter_map(|index| Some((self.text(at(index), 200)?, at(index + 1)))).collect()
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
            "ODDBALL" => self.text(self.field(value, 16), 20).unwrap_or_default(),
            _ if self.layout.is_function(map.kind) => {
                let name = self.function_name(self.field(value, self.layout.function_shared));
                format!("function {}", if name.is_empty() { "(anonymous)" } else { &name })
            }
            _ => format!("{} @{value:x}", self.class(&map)),
        }
    }

    /// The last source position at or before an offset of bytecode.
    /// Node 26 encodes them in another way, which is not read yet.
    pub(crate) fn position(&self, bytecode: u64, offset: u64) -> Option<u32> {
        if self.layout.major >= 26 {
            return None;
        }
        [24, 32, 40, 48, 56].into_iter().find_map(|field| {
            let table = self.field(bytecode, field);
            if !self.is(table, "BYTE_ARRAY") && !self.is(table, "TRUSTED_BYTE_ARRAY") {
                return None;
            }
            let length = (self.field(table, 8) >> 32) as usize;
            last_position(self.image.at(table + 15, length), offset)
        })
    }

    pub(crate) fn is_bytecode(&self, tagged: u64) -> bool {
        self.is(tagged, "BYTECODE_ARRAY")
    }

    /// The bytes that an array buffer holds outside the heap.
    pub(crate) fn buffer(&self, map: &Map, bytes: &[u8]) -> u64 {
        match self.layout.name(map.kind) {
            "JS_ARRAY_BUFFER" => word(bytes, self.layout.buffer_length as usize),
            _ => 0,
        }
    }
}

/// Pairs of differences, in zigzag code: an offset, whose sign tells statements from
/// expressions, and a position times two, plus two.
fn last_position(table: &[u8], offset: u64) -> Option<u32> {
    let mut numbers = Vec::new();
    let (mut number, mut shift) = (0_u64, 0);
    for &byte in table {
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            numbers.push((number >> 1).cast_signed() ^ -(number & 1).cast_signed());
            (number, shift) = (0, 0);
        }
    }
    if numbers.len() % 2 != 0 {
        return None;
    }
    let (mut at, mut position, mut last) = (0_i64, 0_i64, None);
    for pair in numbers.chunks_exact(2) {
        let step = if pair[0] < 0 { !pair[0] } else { pair[0] };
        at = at.checked_add(step)?;
        position = position.checked_add(pair[1])?;
        if position < 0 || position & 1 != 0 {
            return None;
        }
        if at <= offset.cast_signed() {
            last = u32::try_from((position >> 1) - 1).ok();
        }
    }
    last
}
