//! `.heapsnapshot`, as Chrome DevTools and memlab read it, written as it is made.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufWriter, Result, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::dominators::Dominators;
use crate::graph::{Graph, in_a_table};
use crate::layout::FIRST_NON_STRING;
use crate::maps::Map;
use crate::objects::View;
use crate::references::{Name, References};
use crate::roots::Holder;
use crate::walk::Objects;

const META: &str = r#"{"snapshot":{"meta":{"node_fields":["type","name","id","self_size","edge_count","detachedness"],"node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic","concatenated string","sliced string","symbol","bigint","object shape"],"string","number","number","number","number"],"edge_fields":["type","name_or_index","to_node"],"edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"string_or_number","node"],"trace_function_info_fields":[],"trace_node_fields":[],"sample_fields":[],"location_fields":[]}"#;
const FIELDS: u64 = 6;
const TEXT: usize = 1024;
const ROOTS: &str = "(GC roots)";

/// What is known of a heap that is written.
pub(crate) struct Export<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) objects: &'a Objects,
    pub(crate) graph: &'a Graph,
    pub(crate) live: &'a Dominators,
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
        let writer = Writer {
            export: self,
            out: BufWriter::with_capacity(1 << 20, file),
            strings: Strings::default(),
            first: 1 + holders.len() as u64,
            references: Vec::new(),
            named: References::new(self.view, self.objects, self.graph, &self.live.numbers),
        };
        writer.all(&holders)
    }

    /// Who holds roots, and the numbers of those.
    fn holders(&self) -> Vec<(Holder, Vec<u32>)> {
        let mut holders: Vec<(Holder, Vec<u32>)> = Vec::new();
        for &(object, holder) in &self.graph.roots {
            let number = self.live.numbers[object as usize];
            match holders.last_mut() {
                Some((last, held)) if *last == holder => held.push(number),
                _ => holders.push((holder, vec![number])),
            }
        }
        let numbers = 1..self.live.objects.len() as u32;
        let in_tables =
            numbers.filter(|&number| in_a_table(self.map(self.live.objects[number as usize]).kind));
        holders.push((Holder::Strings, in_tables.collect()));
        holders
    }

    fn map(&self, object: u32) -> &Map {
        &self.view.maps.list[self.objects.maps[object as usize] as usize]
    }
}

struct Writer<'a> {
    export: &'a Export<'a>,
    out: BufWriter<File>,
    strings: Strings,
    /// The node of the first object: before them come the root of all, and one node for each kind of holder.
    first: u64,
    /// Of the object that is written.
    references: Vec<(Name, u32)>,
    named: References<'a>,
}

impl Writer<'_> {
    fn all(mut self, holders: &[(Holder, Vec<u32>)]) -> Result<()> {
        let live = self.export.live;
        let of_holders: usize = holders.iter().map(|(_, held)| 1 + held.len()).sum();
        let counts: Vec<u32> = live.objects[1..].iter().map(|&object| self.count(object)).collect();
        let edges = of_holders + counts.iter().map(|&count| count as usize).sum::<usize>();
        let nodes = self.first + live.objects.len() as u64 - 1;
        write!(
            self.out,
            "{META},\"node_count\":{nodes},\"edge_count\":{edges},\"trace_function_count\":0}}"
        )?;
        self.nodes(holders, &counts)?;
        self.edges(holders)?;
        self.out.write_all(
            b"],\n\"trace_function_infos\":[],\"trace_tree\":[],\"samples\":[],\"locations\":[],\n\"strings\":[",
        )?;
        for (index, text) in self.strings.list.iter().enumerate() {
            self.out.write_all(if index > 0 { b",\n" } else { b"" })?;
            quote(&mut self.out, text)?;
        }
        self.out.write_all(b"]}")?;
        self.out.flush()
    }

    fn count(&mut self, object: u32) -> u32 {
        self.named.of(object, &mut self.references);
        let count = self.references.drain(..).count() + self.export.graph.pairs_of(object).len();
        count as u32
    }

    /// The node of an object.
    fn node(&self, object: u32) -> u64 {
        u64::from(self.export.live.numbers[object as usize]) - 1 + self.first
    }

    fn nodes(&mut self, holders: &[(Holder, Vec<u32>)], counts: &[u32]) -> Result<()> {
        let root = self.strings.number(ROOTS);
        write!(self.out, ",\n\"nodes\":[9,{root},1,0,{},0", holders.len())?;
        for (node, (holder, held)) in (1..).zip(holders) {
            let name = self.strings.number(holder.name());
            write!(self.out, ",\n9,{name},{},0,{},0", id(node), held.len())?;
        }
        for (&object, count) in self.export.live.objects[1..].iter().zip(counts) {
            let (kind, name) = self.export.kind_and_name(object);
            let name = self.strings.number(&name);
            let size = self.export.objects.sizes[object as usize];
            write!(self.out, ",\n{kind},{name},{},{size},{count},0", id(self.node(object)))?;
        }
        Ok(())
    }

    fn edges(&mut self, holders: &[(Holder, Vec<u32>)]) -> Result<()> {
        self.out.write_all(b"],\n\"edges\":[")?;
        for index in 0..holders.len() as u64 {
            let comma = if index > 0 { "," } else { "" };
            write!(self.out, "{comma}1,{index},{}", (index + 1) * FIELDS)?;
        }
        for (index, &number) in holders.iter().flat_map(|(_, held)| held.iter().enumerate()) {
            write!(self.out, ",1,{index},{}", (u64::from(number) - 1 + self.first) * FIELDS)?;
        }
        for &object in &self.export.live.objects[1..] {
            self.edges_of(object)?;
        }
        Ok(())
    }

    fn edges_of(&mut self, object: u32) -> Result<()> {
        let export = self.export;
        let mut references = std::mem::take(&mut self.references);
        self.named.of(object, &mut references);
        for (name, to) in references.drain(..) {
            let to = self.node(to) * FIELDS;
            match name {
                Name::Index(index) => write!(self.out, ",1,{index},{to}")?,
                Name::Hidden(index) => write!(self.out, ",4,{index},{to}")?,
                Name::Internal(name) => write!(self.out, ",3,{},{to}", self.strings.number(name))?,
                Name::Property(name) => write!(self.out, ",2,{},{to}", self.strings.number(&name))?,
            }
        }
        self.references = references;
        for pair in export.graph.pairs_of(object) {
            // DevTools knows the value of a weak map by this sentence.
            let [key, value, table] = [pair.key, pair.value, pair.table].map(|object| id(self.node(object)));
            let name = format!("part of key (@{key}) -> value (@{value}) pair in WeakMap (table @{table})");
            let (name, to) = (self.strings.number(&name), self.node(pair.value) * FIELDS);
            write!(self.out, ",3,{name},{to}")?;
        }
        Ok(())
    }
}

/// DevTools takes odd numbers for objects of the heap.
fn id(node: u64) -> u64 {
    2 * node + 1
}

/// Strings, numbered.
#[derive(Default)]
struct Strings {
    numbers: HashMap<String, u32>,
    list: Vec<String>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.list.len() as u32;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

impl Export<'_> {
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
        let class = || self.names[self.objects.maps[object as usize] as usize].clone();
        let system = |name: &str| format!("system / {name}");
        match view.layout.name(map.kind) {
            "JS_REG_EXP" => (6, class()),
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
