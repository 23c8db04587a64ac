//! `.heapsnapshot`, as Chrome DevTools and memlab read it, written as it is made.

use std::fs::{File, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{Result, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::bits::Ranks;
use crate::bytes::int;
use crate::graph::{Graph, in_a_table};
use crate::layout::FIRST_NON_STRING;
use crate::maps::{Map, NONE};
use crate::objects::View;
use crate::references::{Name, References};
use crate::roots::Holder;
use crate::walk::Objects;

const META: &str = r#"{"snapshot":{"meta":{"node_fields":["type","name","id","self_size","edge_count","detachedness"],"node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic","concatenated string","sliced string","symbol","bigint","object shape"],"string","number","number","number","number"],"edge_fields":["type","name_or_index","to_node"],"edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"string_or_number","node"],"trace_function_info_fields":[],"trace_node_fields":[],"sample_fields":[],"location_fields":[]}"#;
const FIELDS: u64 = 6;
const TEXT: usize = 1024;
const PIECE: usize = 1 << 20;
/// After so many objects the pages of the file are given back.
const RELIEF: u32 = 1 << 20;
const ROOTS: &str = "(GC roots)";

/// What is known of a heap that is written.
pub(crate) struct Export<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) objects: &'a Objects,
    pub(crate) graph: &'a Graph,
    /// Of the objects of each map.
    pub(crate) names: &'a [String],
    pub(crate) redact: bool,
}

impl Export<'_> {
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        // One that was there before may be open to others.
        if file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        let holders = self.holders();
        let layout = self.view.layout;
        let writer = Writer {
            export: self,
            out: Out::new(file),
            strings: Strings::default(),
            first: 1 + holders.len() as u64,
            ranks: self.graph.alive.ranks(),
            is_receiver: self.view.maps.list.iter().map(|map| layout.is_receiver(map.kind)).collect(),
            named: References::new(self.view, self.objects, self.graph),
            properties: Vec::new(),
            internal: Vec::new(),
        };
        writer.all(&holders)
    }

    /// Who holds roots, and those.
    fn holders(&self) -> Vec<(Holder, Vec<u32>)> {
        let mut holders: Vec<(Holder, Vec<u32>)> = Vec::new();
        for &(object, holder) in &self.graph.roots {
            match holders.last_mut() {
                Some((last, held)) if *last == holder => held.push(object),
                _ => holders.push((holder, vec![object])),
            }
        }
        let in_table: Vec<bool> = self.view.maps.list.iter().map(|map| in_a_table(map.kind)).collect();
        let in_tables = self.living().filter(|&object| in_table[self.objects.maps[object as usize] as usize]);
        holders.push((Holder::Strings, in_tables.collect()));
        holders
    }

    fn map(&self, object: u32) -> &Map {
        &self.view.maps.list[self.objects.maps[object as usize] as usize]
    }

    /// In the order of their addresses, in which the file is read fastest; its pages are given back from time to time.
    fn living(&self) -> impl Iterator<Item = u32> {
        (0..self.objects.len() as u32).filter(|&object| {
            if object % RELIEF == 0 {
                self.view.image.relieve();
            }
            self.graph.alive.has(object)
        })
    }
}

/// What the nodes of all objects of a map are.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Its kind, and the name's number.
    Same(u32, u32),
    /// Characters follow one another, a byte for each.
    Characters,
    Own,
}

struct Writer<'a> {
    export: &'a Export<'a>,
    out: Out,
    strings: Strings,
    /// The node of the first object: before them come the root of all, and one node for each kind of holder.
    first: u64,
    ranks: Ranks<'a>,
    /// Of the objects of each map: whether JavaScript sees them.
    is_receiver: Vec<bool>,
    named: References<'a>,
    /// Strings' numbers of names of properties, as far as they were asked for; 0 is that of the root.
    properties: Vec<u32>,
    /// The same of other names, of which there are a few.
    internal: Vec<(&'static str, u32)>,
}

impl Writer<'_> {
    fn all(mut self, holders: &[(Holder, Vec<u32>)]) -> Result<()> {
        let of_holders: usize = holders.iter().map(|(_, held)| 1 + held.len()).sum();
        let export = self.export;
        let counts: Vec<u32> = export.living().map(|object| self.count(object)).collect();
        let edges = of_holders + counts.iter().map(|&count| count as usize).sum::<usize>();
        let nodes = self.first + counts.len() as u64;
        self.out.text(META)?;
        self.out
            .text(&format!(",\"node_count\":{nodes},\"edge_count\":{edges},\"trace_function_count\":0}}"))?;
        self.nodes(holders, &counts)?;
        self.edges(holders)?;
        self.out.text(
            "],\n\"trace_function_infos\":[],\"trace_tree\":[],\"samples\":[],\"locations\":[],\n\"strings\":[",
        )?;
        for number in 0..self.strings.ends.len() {
            self.out.text(if number > 0 { ",\n" } else { "" })?;
            self.out.quoted(self.strings.get(number))?;
        }
        self.out.text("]}")?;
        self.out.flush()
    }

    /// What JavaScript sees is counted one by one: there are more references than edges. Most objects have nothing of it.
    fn count(&mut self, object: u32) -> u32 {
        let export = self.export;
        if !self.is_receiver[export.objects.maps[object as usize] as usize] {
            return export.graph.degree(object);
        }
        let mut count = export.graph.pairs_of(object).len() as u32;
        self.named.each(object, |_, _| count += 1);
        count
    }

    /// The node of an object.
    fn node(&self, object: u32) -> u64 {
        u64::from(self.ranks.of(object)) + self.first
    }

    fn nodes(&mut self, holders: &[(Holder, Vec<u32>)], counts: &[u32]) -> Result<()> {
        let root = self.strings.number(ROOTS);
        self.out.text(&format!(",\n\"nodes\":[9,{root},1,0,{},0", holders.len()))?;
        for (node, (holder, held)) in (1..).zip(holders) {
            let name = self.strings.number(holder.name());
            self.out.text(&format!(",\n9,{name},{},0,{},0", id(node), held.len()))?;
        }
        let export = self.export;
        let maps = &export.view.maps.list;
        let shapes: Vec<Shape> = (0..maps.len()).map(|number| self.shape(number)).collect();
        for ((object, &count), node) in export.living().zip(counts).zip(self.first..) {
            let (kind, name) = match shapes[export.objects.maps[object as usize] as usize] {
                Shape::Same(kind, name) => (kind, name),
                Shape::Characters if let Some(text) = export.characters(object) => {
                    (2, self.strings.number(text))
                }
                _ => {
                    let (kind, name) = export.kind_and_name(object);
                    (kind, self.strings.number(&name))
                }
            };
            let size = export.objects.sizes[object as usize];
            self.out.node([kind.into(), name.into(), id(node), size.into(), count.into()])?;
        }
        Ok(())
    }

    fn shape(&mut self, number: usize) -> Shape {
        let (export, map) = (self.export, &self.export.view.maps.list[number]);
        if map.kind < FIRST_NON_STRING {
            return if map.kind & 15 == 8 && !export.redact { Shape::Characters } else { Shape::Own };
        }
        if export.view.layout.is_function(map.kind) {
            return Shape::Own;
        }
        let (kind, name) = export.of_map(number);
        Shape::Same(kind, self.strings.number(&name))
    }

    fn edges(&mut self, holders: &[(Holder, Vec<u32>)]) -> Result<()> {
        self.out.text("],\n\"edges\":[")?;
        for index in 0..holders.len() as u64 {
            let comma = if index > 0 { "," } else { "" };
            self.out.text(&format!("{comma}1,{index},{}", (index + 1) * FIELDS))?;
        }
        for (index, &object) in holders.iter().flat_map(|(_, held)| held.iter().enumerate()) {
            self.out.edge(1, index as u64, self.node(object) * FIELDS);
            self.out.spill()?;
        }
        let export = self.export;
        for object in export.living() {
            self.edges_of(object)?;
        }
        Ok(())
    }

    fn edges_of(&mut self, object: u32) -> Result<()> {
        let Self { export, out, strings, first, ranks, named, properties, internal, .. } = self;
        // Names that are new are known by their numbers only while this runs.
        let mut unnamed = Vec::new();
        named.each(object, |name, to| {
            let to = (u64::from(ranks.of(to)) + *first) * FIELDS;
            match name {
                Name::Index(index) => out.edge(1, index, to),
                Name::Hidden(index) => out.edge(4, index as u64, to),
                Name::Internal(name) => {
                    let known = internal.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
                    let number = known.unwrap_or_else(|| {
                        internal.push((name, strings.number(name)));
                        internal[internal.len() - 1].1
                    });
                    out.edge(3, number.into(), to);
                }
                Name::Property(name) => match properties.get(name as usize) {
                    Some(&number) if number != 0 => out.edge(2, number.into(), to),
                    _ => unnamed.push((name, to)),
                },
            }
        });
        for (name, to) in unnamed {
            let number = strings.number(&named.names[name as usize]);
            if properties.len() <= name as usize {
                properties.resize(name as usize + 1, 0);
            }
            properties[name as usize] = number;
            out.edge(2, number.into(), to);
        }
        for pair in export.graph.pairs_of(object) {
            // DevTools knows the value of a weak map by this sentence.
            let node = |object| u64::from(ranks.of(object)) + *first;
            let [key, value, table] = [pair.key, pair.value, pair.table].map(|object| id(node(object)));
            let name = format!("part of key (@{key}) -> value (@{value}) pair in WeakMap (table @{table})");
            out.edge(3, strings.number(&name).into(), node(pair.value) * FIELDS);
        }
        out.spill()
    }
}

/// DevTools takes odd numbers for objects of the heap.
fn id(node: u64) -> u64 {
    2 * node + 1
}

/// Strings, numbered: one after another, and a table of their numbers by hash, with one seed for each run.
#[derive(Default)]
struct Strings {
    bytes: String,
    ends: Vec<usize>,
    /// A power of two of places; [`NONE`] where there is none.
    table: Vec<u32>,
    hasher: RandomState,
}

impl Strings {
    fn get(&self, number: usize) -> &str {
        let start = if number > 0 { self.ends[number - 1] } else { 0 };
        &self.bytes[start..self.ends[number]]
    }

    fn number(&mut self, text: &str) -> u32 {
        if self.ends.len() * 2 >= self.table.len() {
            self.table = vec![NONE; (self.table.len() * 2).max(1024)];
            for number in 0..self.ends.len() {
                let place = self.place(self.get(number));
                self.table[place] = number as u32;
            }
        }
        let place = self.place(text);
        if self.table[place] == NONE {
            self.table[place] = self.ends.len() as u32;
            self.bytes.push_str(text);
            self.ends.push(self.bytes.len());
        }
        self.table[place]
    }

    /// Where a string is, or else would be.
    fn place(&self, text: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut at = self.hasher.hash_one(text) as usize & mask;
        while self.table[at] != NONE && self.get(self.table[at] as usize) != text {
            at = (at + 1) & mask;
        }
        at
    }
}

/// Two digits at a time.
const PAIRS: [[u8; 2]; 100] = {
    let (mut pairs, mut number) = ([[0; 2]; 100], 0);
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The file, written in large pieces.
struct Out {
    file: File,
    buffer: Vec<u8>,
}

impl Out {
    fn new(file: File) -> Self {
        Self { file, buffer: Vec::with_capacity(PIECE * 2) }
    }

    fn spill(&mut self) -> Result<()> {
        if self.buffer.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.buffer.extend_from_slice(text.as_bytes());
        self.spill()
    }

    fn node(&mut self, fields: [u64; 5]) -> Result<()> {
        self.buffer.extend_from_slice(b",\n");
        for field in fields {
            self.number(field);
            self.buffer.push(b',');
        }
        self.buffer.push(b'0');
        self.spill()
    }

    fn edge(&mut self, kind: u8, name: u64, to: u64) {
        self.buffer.extend_from_slice(&[b',', b'0' + kind, b',']);
        self.number(name);
        self.buffer.push(b',');
        self.number(to);
    }

    fn number(&mut self, mut number: u64) {
        let (mut digits, mut at) = ([0; 20], 20);
        while number >= 100 {
            at -= 2;
            digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
            number /= 100;
        }
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[number as usize]);
        self.buffer.extend_from_slice(&digits[at + usize::from(number < 10)..]);
    }

    fn quoted(&mut self, text: &str) -> Result<()> {
        quote(&mut self.buffer, text)?;
        self.spill()
    }
}

impl Export<'_> {
    /// Of a string that has them in itself, if they need no other code.
    fn characters(&self, object: u32) -> Option<&str> {
        let (offset, end) = self.view.pages.offset(self.objects.words[object as usize]);
        let bytes = self.view.image.bytes.get(offset..end)?;
        let length = (int(bytes, 12) as usize).min(TEXT);
        let text = bytes.get(16..)?.get(..length)?;
        str::from_utf8(text).ok().filter(|text| text.is_ascii())
    }

    /// The kind of a node, and its name, in V8's own words.
    fn kind_and_name(&self, object: u32) -> (u32, String) {
        let (view, map) = (self.view, self.map(object));
        let tagged = view.pages.address(self.objects.words[object as usize]) + 1;
        if map.kind < FIRST_NON_STRING {
            let kind = match map.kind & 7 {
                1 => 10,
                3 => 11,
                _ => 2,
            };
            let text = if self.redact { None } else { view.text(tagged, TEXT) };
            return (kind, text.unwrap_or_default());
        }
        if view.layout.is_function(map.kind) {
            return (5, view.function_name(view.field(tagged, view.layout.function_shared)));
        }
        self.of_map(self.objects.maps[object as usize] as usize)
    }

    /// The same of what is neither a string nor a function.
    fn of_map(&self, number: usize) -> (u32, String) {
        let (view, map) = (self.view, &self.view.maps.list[number]);
        let class = || self.names[number].clone();
        let system = |name: &str| format!("system / {name}");
        match view.layout.name(map.kind) {
            "JS_REG_EXP" => (6, class()),
            // As V8 writes them: DevTools loses all functions if an object is named like their group.
            "JS_BOUND_FUNCTION" => (5, "native_bind".to_owned()),
            _ if view.layout.is_receiver(map.kind) => (3, class()),
            "NATIVE_CONTEXT" => (0, system("NativeContext")),
            _ if view.layout.is_context(map.kind) => (3, system("Context")),
            "HEAP_NUMBER" => (7, "heap number".to_owned()),
            "SYMBOL" => (12, "symbol".to_owned()),
            "BIG_INT_BASE" => (13, "bigint".to_owned()),
            "MAP" => (14, system("Map")),
            "DESCRIPTOR_ARRAY" | "STRONG_DESCRIPTOR_ARRAY" | "TRANSITION_ARRAY" | "PROTOTYPE_INFO" => {
                (14, system(&class()))
            }
            name if name.contains("FIXED_ARRAY")
                || matches!(name, "" | "PROPERTY_ARRAY" | "FIXED_DOUBLE_ARRAY") =>
            {
                (1, class())
            }
            name if name.contains("CODE")
                || matches!(name, "SHARED_FUNCTION_INFO" | "SCRIPT" | "SCOPE_INFO") =>
            {
                (4, class())
            }
            _ => (0, system(&class())),
        }
    }
}

fn quote(out: &mut impl Write, text: &str) -> Result<()> {
    out.write_all(b"\"")?;
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.write_all(&text.as_bytes()[from..at])?;
        from = at + 1;
        match byte {
            b'"' => out.write_all(b"\\\"")?,
            b'\\' => out.write_all(b"\\\\")?,
            control => write!(out, "\\u{control:04x}")?,
        }
    }
    out.write_all(&text.as_bytes()[from..])?;
    out.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::*;

    #[test]
    fn numbers_are_written_as_they_are_read() {
        let numbers = [0, 7, 9, 10, 42, 99, 100, 101, 999, 1000, 123_456, 10_000_000, u64::MAX];
        let mut file = tempfile::tempfile().unwrap();
        let mut out = Out::new(file.try_clone().unwrap());
        for number in numbers {
            out.number(number);
            out.text(" ").unwrap();
        }
        out.flush().unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, numbers.map(|number| format!("{number} ")).concat());
    }
}
