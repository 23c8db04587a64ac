//! Everything that is told of a core file.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::binary::Binary;
use crate::bits::Bits;
use crate::collection;
use crate::dominators::Dominators;
use crate::environment;
use crate::error::CoreError;
use crate::exits::Exits;
use crate::graph::{Graph, Keep, in_a_table};
use crate::holders::{Holders, Suspect, TreeBox};
use crate::image::Image;
use crate::inlined;
use crate::layout::{InstanceType, Layout};
use crate::lists;
use crate::loops::{self, EventLoop};
use crate::maps::NONE;
use crate::native::{self, Names};
use crate::objects::View;
use crate::packed;
use crate::pages::Pages;
use crate::paths::{Paths, Step};
use crate::promises::{self, Promises};
use crate::references::References;
use crate::roots;
use crate::snapshot::Export;
use crate::spaces::{self, IsolateHeap};
use crate::stack;
use crate::thrown::{self, Thrown};
use crate::timers::{self, Timers};
use crate::walk::{Objects, Walker};

/// Below this share of the heap, sizes that depend on all references would be guesses.
const ENOUGH: f64 = 0.99;
/// One word in so many that looks like a pointer and is none: a link that matters may be missing.
const UNKNOWN_SHARE: f64 = 0.001;
const CHAIN: usize = 12;

/// What to do besides the report.
#[derive(Debug, Default)]
pub struct Options<'a> {
    /// The program that died, where it is not where it was.
    pub node: Option<&'a Path>,
    /// Write a `.heapsnapshot` there.
    pub heapsnapshot: Option<&'a Path>,
    /// Describe the object at this address.
    pub object: Option<u64>,
    /// Tell how the object at this address is held.
    pub path: Option<u64>,
    /// Tell the tree of who holds what, and how the largest are held.
    pub tree: bool,
    /// Find strings that hold this text.
    pub grep: Option<&'a str>,
    /// Leave out strings and numbers.
    pub redact: bool,
    /// Stop after the stacks.
    pub stack_only: bool,
}

#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub file: PathBuf,
    pub program: PathBuf,
    pub node: String,
    pub v8: String,
    pub signal: String,
    /// The address that could not be used, of SIGSEGV and SIGBUS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault_address: Option<String>,
    /// What the process was started with; values that may be secrets are masked.
    pub environment: BTreeMap<String, String>,
    /// Exceptions that were on their way.
    pub thrown: Vec<Thrown>,
    pub threads: Vec<Thread>,
    pub loops: Vec<EventLoop>,
    pub timers: Timers,
    pub promises: Promises,
    pub heap: Heap,
    /// By space, the heap of each isolate.
    pub isolates: Vec<IsolateHeap>,
    pub histogram: Vec<Entry>,
    pub retainers: Vec<Retainer>,
    pub suspects: Vec<Suspect>,
    pub walked_share: f64,
    pub unknown_words: u64,
    /// Pages of V8 that others lead to and the file lacks: counts are too low by what was on them.
    pub missing_pages: u64,
    /// Why there are no retained sizes.
    pub refused: Option<String>,
    /// What a reader should know about the file.
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<String>,
    /// From a root to the objects that were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<HeldPath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeBox>,
}

/// How an object is held.
#[derive(Debug, Serialize)]
pub struct HeldPath {
    pub address: String,
    /// From the root on; empty if nothing holds it.
    pub steps: Vec<Step>,
}

#[derive(Debug, Serialize)]
pub struct Thread {
    pub id: i32,
    pub name: String,
    pub frames: Vec<Frame>,
}

#[derive(Debug, Default, Serialize)]
pub struct Frame {
    pub function: String,
    pub script: String,
    pub line: u32,
    pub column: u32,
    pub kind: &'static str,
    /// Whether line and column are those of the call, or of the function's start. A native frame that is not may be a left-over of
    /// an earlier call.
    pub exact: bool,
    pub arguments: Vec<String>,
}

impl Frame {
    /// Of a program or a library, which is in the place of the script then.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.kind == stack::NATIVE
    }

    /// Part of the frame of the next one that is not: its arguments are not known.
    #[must_use]
    pub fn is_inlined(&self) -> bool {
        self.kind == stack::INLINED
    }
}

impl Thread {
    /// Whether it is in JavaScript, or in what that has called.
    #[must_use]
    pub fn is_in_javascript(&self) -> bool {
        self.frames.iter().any(|frame| !frame.is_native())
    }
}

#[derive(Debug, Default, Serialize)]
pub struct Heap {
    pub used_bytes: u64,
    pub live_bytes: u64,
    pub live_objects: u64,
    pub objects: u64,
    pub external_bytes: u64,
    pub stale_bytes: u64,
}

#[derive(Debug, Serialize)]
pub struct Entry {
    pub name: String,
    pub count: u64,
    pub shallow_bytes: u64,
    pub retained_bytes: Option<u64>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Retainer {
    pub address: String,
    pub name: String,
    pub retained_bytes: u64,
    /// Those that hold it alone, from the nearest to the farthest, and the root where there is one.
    pub held_by: Vec<String>,
}

/// The program that a core file is of.
#[derive(Debug)]
pub struct Program(Binary);

impl Program {
    /// Reads what a program says of V8, whatever it is that died.
    ///
    /// # Errors
    ///
    /// It cannot be read, or does not say.
    pub fn read(path: &Path) -> Result<Self, CoreError> {
        Binary::alone(path).map(Self)
    }
}

/// A core file that is read.
#[derive(Debug)]
pub struct Core;

impl Core {
    /// Reads a core file and tells what it shows.
    ///
    /// # Errors
    ///
    /// The file or the program is not what it has to be.
    pub fn report(path: &Path, options: &Options<'_>) -> Result<Report, CoreError> {
        let (bytes, cut) = packed::open(path)?;
        let image = Image::of_file(&bytes).map_err(|why| CoreError::NoCore { path: path.to_owned(), why })?;
        let program = Program(Binary::find(&image, options.node)?);
        Self::of_image(&image, path, cut, &program, options)
    }

    /// Tells what the bytes of a core file show, of a program that is known.
    ///
    /// # Errors
    ///
    /// The bytes are no core file, or not one of that program.
    pub fn report_bytes(bytes: &[u8], program: &Program, options: &Options<'_>) -> Result<Report, CoreError> {
        let path = Path::new("-");
        let image = Image::parse(bytes).map_err(|why| CoreError::NoCore { path: path.to_owned(), why })?;
        Self::of_image(&image, path, false, program, options)
    }

    fn of_image(
        image: &Image<'_>,
        path: &Path,
        cut: bool,
        program: &Program,
        options: &Options<'_>,
    ) -> Result<Report, CoreError> {
        let layout = Layout::of(&program.0)?;
        let pages = Pages::find(image).ok_or(CoreError::TooLarge { what: "words", limit: NONE })?;
        if pages.list.is_empty() {
            return Err(CoreError::NoHeap);
        }
        let mut report = Report::new(path, image, &program.0, cut);
        report.environment = environment::of(image, options.redact).into_iter().collect();
        let mut walker = Walker::new(image, &pages, &layout);
        if options.stack_only {
            report.happened(&View::new(image, &pages, &layout, &walker.maps), options.redact);
            return Ok(report);
        }
        let objects = walker.walk()?;
        report.happened(&View::new(image, &pages, &layout, &walker.maps), options.redact);
        report.notes.extend(collection::note(image, &pages, &layout));
        report.missing_pages = lists::missing(image, &pages);
        report.heap(&walker, &objects, options)?;
        Ok(report)
    }
}

impl Report {
    pub(crate) fn new(path: &Path, image: &Image<'_>, binary: &Binary, cut: bool) -> Self {
        let mut notes = Vec::new();
        if image.missing > 0 || cut {
            notes.push(format!(
                "the file is cut off: {} bytes that its headers promise are missing",
                image.missing
            ));
        }
        if binary.node.is_none() {
            notes.push("the release of Node.js is not told by the program".to_owned());
        }
        Self {
            file: path.to_owned(),
            program: binary.path.clone(),
            node: binary.node.clone().unwrap_or_default(),
            v8: binary.v8.clone().unwrap_or_default(),
            signal: signal(image.threads.first().map_or(0, |thread| thread.signal)),
            fault_address: image.fault.map(|address| format!("{address:x}")),
            notes,
            ..Self::default()
        }
    }

    /// What the process was doing.
    fn happened(&mut self, view: &View<'_>, redact: bool) {
        self.stacks(view, redact);
        self.thrown = thrown::of(view, &roots::isolates(view.image, view.pages), redact);
        self.loops = loops::of(view, redact);
    }

    pub(crate) fn stacks(&mut self, view: &View<'_>, redact: bool) {
        let name = |index| if index == 0 { "main".to_owned() } else { format!("thread {index}") };
        let mut words = stack::WORDS;
        let threads = &view.image.threads;
        let exits = Exits::of(view.image, view.pages);
        let calls: Vec<_> =
            threads.iter().map(|thread| stack::calls(view, &exits, thread, &mut words)).collect();
        let places: Vec<_> = threads.iter().map(|thread| native::places(view.image, thread)).collect();
        let names = Names::of(view.image, &self.program, places.iter().flatten().copied());
        let optimised = inlined::Frames::of(view);
        let stacks = threads.iter().zip(calls).zip(places).enumerate();
        self.threads = stacks
            .map(|(index, ((thread, calls), places))| Thread {
                id: thread.id,
                name: name(index),
                frames: stack::frames(view, &optimised, &calls, &places, &names, redact),
            })
            .collect();
    }

    fn heap(
        &mut self,
        walker: &Walker<'_>,
        objects: &Objects,
        options: &Options<'_>,
    ) -> Result<(), CoreError> {
        let view = View::new(walker.image, walker.pages, walker.layout, &walker.maps);
        let mut graph = Graph::of(walker, objects)?;
        walker.image.relieve();
        let kind = |object: u32| walker.maps.list[objects.maps[object as usize] as usize].kind;
        let parts = Parts::of(&view, objects, &graph);
        let keep = match () {
            () if options.tree || options.path.is_some() => Keep::Edges,
            () if options.heapsnapshot.is_some() => Keep::Degrees,
            () => Keep::Nothing,
        };
        let mut live = Dominators::of(&mut graph, |object| in_a_table(kind(object)), keep);
        live.lift(|object| parts.has(object), |object| parts.is_cell(kind(object)));
        let used = objects.walked + objects.skipped;
        self.walked_share = objects.walked as f64 / used.max(1) as f64;
        self.unknown_words = graph.unknown_words(|object| live.numbers[object as usize] != NONE);

        self.refused = self.refusal(&graph);
        let retained = live.retained(&objects.sizes);
        self.heap = totals(&view, objects, &live, walker.stale);
        self.isolates = Self::by_space(&view, objects, &live);
        let names = names(&view, objects);
        self.waits(&view, objects, &live, &names);
        let told = self.refused.is_none();
        self.histogram = histogram(objects, &live, &names, told.then_some(&*retained));
        if told {
            let holders = Holders {
                graph: &graph,
                pages: walker.pages,
                objects,
                live: &live,
                names: &names,
                retained: &retained,
            };
            self.retainers = holders.largest();
            self.suspects = holders.suspects();
            self.tree = options.tree.then(|| holders.tree());
        }
        self.held(&view, objects, &graph, options);
        if let Some(address) = options.object {
            self.found = describe(&view, objects, &live, told.then_some(&*retained), address, options.redact);
        }
        if let Some(text) = options.grep {
            self.found.extend(grep(&view, objects, &live, text));
        }
        if let Some(path) = options.heapsnapshot {
            let export =
                Export { view: &view, objects, graph: &graph, names: &names, redact: options.redact };
            export.write(path).map_err(|error| CoreError::Write { path: path.to_owned(), error })?;
        }
        Ok(())
    }

    /// What had been begun, and was not at its end: promises and timers.
    fn waits(&mut self, view: &View<'_>, objects: &Objects, live: &Dominators, names: &[String]) {
        let is_alive = |object: u32| live.numbers[object as usize] != NONE;
        self.promises = promises::of(view, objects, is_alive);
        let mut timers = timers::Collector::default();
        let is_timer: Vec<bool> = names.iter().map(|name| name == "Timeout" || name == "Immediate").collect();
        for object in 0..objects.len() {
            let map = objects.maps[object] as usize;
            if is_timer[map] && is_alive(object as u32) {
                timers.add(view, &names[map], view.pages.address(objects.words[object]) + 1);
            }
        }
        self.timers = timers.finish(view);
    }

    fn by_space(view: &View<'_>, objects: &Objects, live: &Dominators) -> Vec<IsolateHeap> {
        let is_used = |map: u32| {
            let name = view.layout.name(view.maps.list[map as usize].kind);
            !["FREE_SPACE", "FREE_SPACE_IN_WORDS", "FILLER"].contains(&name)
        };
        let is_alive = |object: u32| live.numbers[object as usize] != NONE;
        spaces::of(view.image, view.pages, view.layout, objects, is_used, is_alive)
    }

    /// The ways from a root to the object that was asked for, and to the largest for the page.
    fn held(&mut self, view: &View<'_>, objects: &Objects, graph: &Graph, options: &Options<'_>) {
        let largest = self.retainers.iter().map(|retainer| &retainer.address);
        let examples = self.suspects.iter().map(|suspect| &suspect.example);
        let addresses = largest.chain(examples).filter(|_| options.tree);
        let mut wanted: Vec<u64> =
            addresses.filter_map(|address| u64::from_str_radix(address, 16).ok()).collect();
        wanted.extend(options.path.map(|address| address | 1));
        if wanted.is_empty() {
            return;
        }
        let kind = |object: u32| view.maps.list[objects.maps[object as usize] as usize].kind;
        let paths = Paths::of(graph, view.layout.map_type, kind);
        let mut references = References::new(view, objects, graph);
        let tagged = |object: u32| view.pages.address(objects.words[object as usize]) + 1;
        for address in wanted {
            let steps = match objects.of(view.pages, address) {
                NONE => Vec::new(),
                object => paths.steps(object, &mut references, |object| {
                    let told = view.show(tagged(object), options.redact);
                    let name = told.split(" @").next().unwrap_or_default().to_owned();
                    (name, format!("{:x}", tagged(object)))
                }),
            };
            self.paths.push(HeldPath { address: format!("{address:x}"), steps });
        }
    }

    fn refusal(&self, graph: &Graph) -> Option<String> {
        if self.missing_pages > 0 {
            let pages = if self.missing_pages == 1 { "page" } else { "pages" };
            return Some(format!(
                "the file lacks {} {pages} of V8's heap; counts are too low by what was there",
                self.missing_pages
            ));
        }
        if !graph.missing.is_empty() {
            return Some(format!(
                "V8's roots are not complete, there are no {}",
                graph.missing.join(" and no ")
            ));
        }
        if self.walked_share < ENOUGH {
            return Some(format!(
                "only {:.2} % of the used bytes were understood; retained sizes need 99 %",
                self.walked_share * 100.0
            ));
        }
        let share = self.unknown_words as f64 / graph.references().max(1) as f64;
        (share > UNKNOWN_SHARE).then(|| {
            format!("{} references lead to nothing known; retained sizes would be wrong", self.unknown_words)
        })
    }
}

fn totals(view: &View<'_>, objects: &Objects, live: &Dominators, stale: u64) -> Heap {
    let mut heap = Heap {
        used_bytes: objects.walked + objects.skipped,
        live_objects: live.objects.len() as u64 - 1,
        objects: objects.len() as u64,
        stale_bytes: stale,
        ..Heap::default()
    };
    let is_buffer: Vec<bool> = view.maps.list.iter().map(|map| view.is_buffer(map)).collect();
    for object in (0..objects.len()).filter(|&object| live.numbers[object] != NONE) {
        heap.live_bytes += u64::from(objects.sizes[object]);
        if is_buffer[objects.maps[object] as usize] {
            let bytes = view.buffer(view.pages.address(objects.words[object]));
            heap.external_bytes = heap.external_bytes.saturating_add(bytes);
        }
    }
    heap
}

/// The name of the objects of each map, by the first of them.
fn names(view: &View<'_>, objects: &Objects) -> Vec<String> {
    let mut first = vec![NONE; view.maps.list.len()];
    for (object, &map) in objects.maps.iter().enumerate().rev() {
        first[map as usize] = object as u32;
    }
    let tagged =
        |object: u32| objects.words.get(object as usize).map_or(0, |&word| view.pages.address(word) + 1);
    view.maps.list.iter().zip(first).map(|(map, object)| view.class(map, tagged(object))).collect()
}

/// Objects that are parts of others in the eyes of JavaScript: arrays of properties and elements, and the cells of globals.
struct Parts {
    marked: Bits,
    cell: InstanceType,
}

impl Parts {
    fn of(view: &View<'_>, objects: &Objects, graph: &Graph) -> Self {
        let cell = view.layout.names.iter().find(|(_, name)| *name == "PROPERTY_CELL");
        let mut parts = Self { marked: Bits::new(objects.len()), cell: cell.map_or(0, |(&kind, _)| kind) };
        let is_receiver: Vec<bool> =
            view.maps.list.iter().map(|map| view.layout.is_receiver(map.kind)).collect();
        let numbers = 0..objects.len() as u32;
        for object in numbers.filter(|&object| graph.alive.has(object)) {
            let number = objects.maps[object as usize] as usize;
            let map = &view.maps.list[number];
            if map.kind == parts.cell {
                parts.marked.add(object);
            } else if is_receiver[number] {
                for &part in graph.parts_of(object) {
                    parts.marked.add(part);
                }
            }
        }
        parts
    }

    fn has(&self, object: u32) -> bool {
        self.marked.has(object)
    }

    fn is_cell(&self, kind: InstanceType) -> bool {
        kind == self.cell
    }
}

/// By name: how many, how large, and what would be free without all of them.
fn histogram(objects: &Objects, live: &Dominators, names: &[String], retained: Option<&[u64]>) -> Vec<Entry> {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut entries: Vec<Entry> = Vec::new();
    let of_map: Vec<u32> = names
        .iter()
        .map(|name| {
            *numbers.entry(name).or_insert_with(|| {
                entries.push(Entry {
                    name: name.clone(),
                    count: 0,
                    shallow_bytes: 0,
                    retained_bytes: retained.map(|_| 0),
                });
                entries.len() as u32 - 1
            })
        })
        .collect();
    let class = |number: usize| of_map[objects.maps[live.objects[number] as usize] as usize];
    for object in (0..objects.len()).filter(|&object| live.numbers[object] != NONE) {
        let entry = &mut entries[of_map[objects.maps[object] as usize] as usize];
        entry.count += 1;
        entry.shallow_bytes += u64::from(objects.sizes[object]);
    }
    if let Some(retained) = retained {
        outermost(live, class, entries.len(), |number, class| {
            let bytes = &mut entries[class as usize].retained_bytes;
            *bytes = bytes.map(|bytes| bytes + retained[number]);
        });
    }
    entries.retain(|entry| entry.count > 0);
    entries.sort_by(|a, b| {
        let size = |entry: &Entry| entry.retained_bytes.unwrap_or(entry.shallow_bytes);
        size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name))
    });
    entries
}

/// Calls for each object that no other of its class dominates: what is in those is counted once.
fn outermost(
    live: &Dominators,
    class: impl Fn(usize) -> u32,
    classes: usize,
    mut each: impl FnMut(usize, u32),
) {
    // The tree of dominators as lists: the first below each, and the next beside it.
    let mut below = vec![0_u32; live.objects.len()];
    let mut beside = vec![0_u32; live.objects.len()];
    for number in (1..live.objects.len()).rev() {
        let by = live.by[number] as usize;
        beside[number] = std::mem::replace(&mut below[by], number as u32);
    }
    let mut above = vec![0_u32; classes];
    let mut at = below[0];
    while at != 0 {
        let own = class(at as usize);
        if above[own as usize] == 0 {
            each(at as usize, own);
        }
        above[own as usize] += 1;
        let mut next = below[at as usize];
        while next == 0 && at != 0 {
            above[class(at as usize) as usize] -= 1;
            next = beside[at as usize];
            if next == 0 {
                at = live.by[at as usize];
            }
        }
        at = next;
    }
}

/// An object, its properties, and who holds it alone.
fn describe(
    view: &View<'_>,
    objects: &Objects,
    live: &Dominators,
    retained: Option<&[u64]>,
    address: u64,
    redact: bool,
) -> Vec<String> {
    let tagged = address | 1;
    let object = objects.of(view.pages, tagged);
    if object == NONE {
        return vec![format!("no object begins at {address:x}")];
    }
    let mut lines = vec![format!("{} ({} bytes)", view.show(tagged, redact), objects.sizes[object as usize])];
    match live.numbers[object as usize] {
        NONE => lines.push("  nothing holds it: the next collection frees it".to_owned()),
        number => {
            if let Some(retained) = retained {
                lines.push(format!("  retains {} bytes", retained[number as usize]));
            }
            let mut by = live.by[number as usize];
            while by != 0 && lines.len() < CHAIN + 2 {
                let holder = view.pages.address(objects.words[live.objects[by as usize] as usize]) + 1;
                lines.push(format!("  held by {}", view.show(holder, redact)));
                by = live.by[by as usize];
            }
        }
    }
    let is_object = view.map(tagged).is_some_and(|map| view.layout.is_receiver(map.kind));
    if is_object {
        let properties = view.properties(tagged);
        lines.extend(
            properties.iter().map(|(name, value)| format!("  .{name} = {}", view.show(*value, redact))),
        );
    }
    lines
}

const MATCHES: usize = 100;

fn grep(view: &View<'_>, objects: &Objects, live: &Dominators, text: &str) -> Vec<String> {
    let strings = live.objects[1..].iter().filter(|&&object| {
        view.maps.list[objects.maps[object as usize] as usize].kind < crate::layout::FIRST_NON_STRING
    });
    strings
        .filter_map(|&object| {
            let tagged = view.pages.address(objects.words[object as usize]) + 1;
            let found = view.text(tagged, 1 << 20)?;
            found
                .contains(text)
                .then(|| format!("{tagged:x} {:?}", found.chars().take(100).collect::<String>()))
        })
        .take(MATCHES)
        .collect()
}

fn signal(number: u16) -> String {
    match number {
        0 => "none (alive)".to_owned(),
        4 => "SIGILL".to_owned(),
        5 => "SIGTRAP".to_owned(),
        6 => "SIGABRT".to_owned(),
        7 => "SIGBUS".to_owned(),
        8 => "SIGFPE".to_owned(),
        9 => "SIGKILL".to_owned(),
        11 => "SIGSEGV".to_owned(),
        15 => "SIGTERM".to_owned(),
        number => format!("signal {number}"),
    }
}
