//! `.heapsnapshot`, as Chrome DevTools and memlab read it, written as it is made.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::bytes::word;
use crate::dominators::Dominators;
use crate::graph::Graph;
use crate::layout::FIRST_NON_STRING;
use crate::maps::{Map, NONE};
use crate::objects::View;
use crate::walk::Objects;

const META: &str = r#"{"snapshot":{"meta":{"node_fields":["type","name","id","self_size","edge_count","detachedness"],"node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic","concatenated string","sliced string","symbol","bigint","object shape"],"string","number","number","number","number"],"edge_fields":["type","name_or_index","to_node"],"edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"string_or_number","node"],"trace_function_info_fields":[],"trace_node_fields":[],"sample_fields":[],"location_fields":[]}"#;
const FIELDS: u64 = 6;
const TEXT: usize = 1024;
const ROOTS: &str = "(GC roots)";

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

pub(crate) fn write(
    path: &Path,
    view: &View<'_>,
    objects: &Objects,
    graph: &Graph,
    live: &Dominators,
    names: &[String],
    redact: bool,
) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let of = |number: usize| live.objects[number] as usize;
    let roots: Vec<u32> = roots(graph, live);
    let mut edges = roots.len();
    for number in 1..live.objects.len() {
        edges += graph.of_object(of(number) as u32).len();
    }
    write!(
        out,
        "{META},\"node_count\":{},\"edge_count\":{edges},\"trace_function_count\":0}},\n\"nodes\":[",
        live.objects.len()
    )?;
    let mut strings = Strings::default();
    write!(out, "9,{},1,0,{},0", strings.number(ROOTS), roots.len())?;
    for number in 1..live.objects.len() {
        let object = of(number);
        let map = &view.maps.list[objects.maps[object] as usize];
        let tagged = view.pages.address(objects.words[object]) + 1;
        let (kind, name) = node(view, map, &names[objects.maps[object] as usize], tagged, redact);
        let (count, size) = (graph.of_object(object as u32).len(), objects.sizes[object]);
        write!(out, ",\n{kind},{},{},{size},{count},0", strings.number(&name), 2 * number + 1)?;
    }
    out.write_all(b"],\n\"edges\":[")?;
    for (index, number) in roots.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        write!(out, "{comma}1,{index},{}", u64::from(*number) * FIELDS)?;
    }
    let mut fields = Fields::default();
    for number in 1..live.objects.len() {
        fields.edges(&mut out, view, objects, live, of(number), &mut strings)?;
    }
    out.write_all(
        b"],\n\"trace_function_infos\":[],\"trace_tree\":[],\"samples\":[],\"locations\":[],\n\"strings\":[",
    )?;
    for (index, text) in strings.list.iter().enumerate() {
        out.write_all(if index > 0 { b",\n" } else { b"" })?;
        quote(&mut out, text)?;
    }
    out.write_all(b"]}")?;
    out.flush()
}

fn roots(graph: &Graph, live: &Dominators) -> Vec<u32> {
    graph.roots.iter().map(|&root| live.numbers[root as usize]).collect()
}

/// The kind of a node, and its name.
fn node(view: &View<'_>, map: &Map, class: &str, tagged: u64, redact: bool) -> (u32, String) {
    if map.kind < FIRST_NON_STRING {
        let kind = match map.kind & 7 {
            1 => 10,
            3 => 11,
            _ => 2,
        };
        let text = if redact { None } else { view.text(tagged, TEXT) };
        return (kind, text.unwrap_or_default());
    }
    if view.layout.is_function(map.kind) {
        return (5, view.function_name(view.field(tagged, view.layout.function_shared)));
    }
    let kind = match view.layout.name(map.kind) {
        _ if view.layout.is_receiver(map.kind) => 3,
        "HEAP_NUMBER" => 7,
        "SYMBOL" => 12,
        "BIG_INT_BASE" => 13,
        "MAP" | "DESCRIPTOR_ARRAY" => 14,
        "" | "FIXED_ARRAY" | "PROPERTY_ARRAY" | "FIXED_DOUBLE_ARRAY" => 1,
        name if name.contains("CODE") => 4,
        _ => 0,
    };
    (kind, class.to_owned())
}

/// The names of the words in objects, by map.
#[derive(Default)]
struct Fields(HashMap<u32, HashMap<u64, u32>>);

impl Fields {
    /// The same words in the same order as the graph's edges.
    fn edges(
        &mut self,
        out: &mut impl Write,
        view: &View<'_>,
        objects: &Objects,
        live: &Dominators,
        object: usize,
        strings: &mut Strings,
    ) -> std::io::Result<()> {
        let number = objects.maps[object];
        let map = &view.maps.list[number as usize];
        let Some(weak) = crate::graph::weak_word(view.layout, map.kind) else { return Ok(()) };
        let named = view.layout.is_receiver(map.kind);
        let names = self.0.entry(number).or_insert_with(|| names(view, map, named, strings));
        let address = view.pages.address(objects.words[object]);
        let bytes = view.image.at(address, objects.sizes[object] as usize);
        for at in (8..bytes.len()).step_by(8) {
            let to = match word(bytes, at) {
                tagged if tagged & 7 == 1 && at != weak => objects.of(view.pages, tagged),
                _ => NONE,
            };
            if to == NONE {
                continue;
            }
            let to = u64::from(live.numbers[to as usize]) * FIELDS;
            match names.get(&(at as u64)) {
                Some(name) if at >= 24 => write!(out, ",2,{name},{to}")?,
                Some(name) => write!(out, ",3,{name},{to}")?,
                None if named => write!(out, ",4,{},{to}", at / 8)?,
                None => write!(out, ",1,{},{to}", at / 8)?,
            }
        }
        Ok(())
    }
}

fn names(view: &View<'_>, map: &Map, named: bool, strings: &mut Strings) -> HashMap<u64, u32> {
    let mut names = HashMap::new();
    if named {
        names.insert(8, strings.number("properties"));
        names.insert(16, strings.number("elements"));
        for (name, place) in view.fields(map) {
            if let Ok(offset) = place {
                names.insert(offset, strings.number(&name));
            }
        }
    }
    names
}

fn quote(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    out.write_all(b"\"")?;
    for character in text.chars() {
        match character {
            '"' => out.write_all(b"\\\"")?,
            '\\' => out.write_all(b"\\\\")?,
            control if u32::from(control) < 0x20 => write!(out, "\\u{:04x}", u32::from(control))?,
            other => write!(out, "{other}")?,
        }
    }
    out.write_all(b"\"")
}
