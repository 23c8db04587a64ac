//! What the references of an object are called.

use std::collections::HashMap;
use std::rc::Rc;

use crate::bytes::word;
use crate::graph::{Graph, Pointers};
use crate::maps::NONE;
use crate::objects::View;
use crate::walk::Objects;

/// What a reference is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Index(u64),
    Hidden(usize),
    Internal(&'static str),
    /// By its number among [`References::names`].
    Property(u32),
}

/// What all objects of a map have in common.
struct Shape {
    pointers: Pointers,
    /// The map as an object.
    map: u32,
    is_receiver: bool,
    is_dictionary: bool,
    is_array: bool,
    /// Names of fields, and where each is: in the object, or else in its array of properties.
    fields: Vec<(u32, Result<u64, u64>)>,
}

pub(crate) struct References<'a> {
    view: &'a View<'a>,
    objects: &'a Objects,
    graph: &'a Graph,
    /// By the number of the map.
    shapes: Vec<Option<Rc<Shape>>>,
    /// Names of properties.
    pub(crate) names: Vec<Rc<str>>,
    numbers: HashMap<Rc<str>, u32>,
    seen: Vec<u64>,
}

impl<'a> References<'a> {
    pub(crate) fn new(view: &'a View<'a>, objects: &'a Objects, graph: &'a Graph) -> Self {
        let shapes = vec![None; view.maps.list.len()];
        Self { view, objects, graph, shapes, names: Vec::new(), numbers: HashMap::new(), seen: Vec::new() }
    }

    /// Calls for all references of an object but those of weak maps: what JavaScript sees, wherever the object keeps it, then
    /// the rest.
    pub(crate) fn each(&mut self, object: u32, mut call: impl FnMut(Name, u32)) {
        let (view, objects) = (self.view, self.objects);
        let shape = self.shape(objects.maps[object as usize]);
        let bytes = self.bytes(object);
        self.seen.clear();
        if shape.is_receiver {
            self.properties(object, bytes, &shape, &mut call);
            self.elements(object, word(bytes, 16), &mut call);
        }
        let words = (bytes, &*self.seen);
        self.graph.each_word(view, objects, (shape.pointers, shape.map), words, |at, to| match at {
            0 => call(Name::Internal("map"), to),
            8 if shape.is_receiver => call(Name::Internal("properties"), to),
            16 if shape.is_receiver => call(Name::Internal("elements"), to),
            _ => call(Name::Hidden(at / 8), to),
        });
    }

    fn bytes(&self, object: u32) -> &'a [u8] {
        let (offset, _) = self.view.pages.offset(self.objects.words[object as usize]);
        let size = self.objects.sizes[object as usize] as usize;
        self.view.image.bytes.get(offset..offset + size).unwrap_or(&[])
    }

    fn shape(&mut self, number: u32) -> Rc<Shape> {
        if let Some(shape) = &self.shapes[number as usize] {
            return Rc::clone(shape);
        }
        let (view, map) = (self.view, &self.view.maps.list[number as usize]);
        let is_receiver = view.layout.is_receiver(map.kind);
        let fields = if is_receiver { view.fields(map) } else { Vec::new() };
        let shape = Rc::new(Shape {
            pointers: Pointers::of(map, view.layout, self.graph.pairs_type),
            map: self.objects.of(view.pages, map.address),
            is_receiver,
            is_dictionary: view.layout.is_dictionary(map.bits3),
            is_array: view.layout.name(map.kind) == "FIXED_ARRAY",
            fields: fields.into_iter().map(|(name, place)| (self.number(&name), place)).collect(),
        });
        self.shapes[number as usize] = Some(Rc::clone(&shape));
        shape
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let name: Rc<str> = name.into();
        self.numbers.insert(Rc::clone(&name), self.names.len() as u32);
        self.names.push(name);
        self.names.len() as u32 - 1
    }

    fn properties(&mut self, object: u32, bytes: &[u8], shape: &Shape, call: &mut impl FnMut(Name, u32)) {
        let view = self.view;
        if shape.is_dictionary {
            let tagged = view.pages.address(self.objects.words[object as usize]) + 1;
            for (name, value) in view.properties(tagged) {
                let number = self.number(&name);
                self.property(number, value, call);
            }
            return;
        }
        let outside = word(bytes, 8);
        for &(name, place) in &shape.fields {
            let value = match place {
                Ok(offset) => word(bytes, offset as usize),
                Err(offset) => view.field(outside, offset),
            };
            self.property(name, value, call);
        }
    }

    fn property(&mut self, name: u32, value: u64, call: &mut impl FnMut(Name, u32)) {
        if let Some(to) = self.living(value) {
            call(Name::Property(name), to);
        }
        self.seen.push(value);
    }

    fn elements(&mut self, object: u32, array: u64, call: &mut impl FnMut(Name, u32)) {
        let view = self.view;
        let Some(&map) = self.objects.maps.get(self.objects.of(view.pages, array) as usize) else { return };
        if !self.shape(map).is_array {
            let tagged = view.pages.address(self.objects.words[object as usize]) + 1;
            for (index, value) in view.elements(tagged) {
                self.living(value).into_iter().for_each(|to| call(Name::Index(index), to));
            }
            return;
        }
        let bytes = self.bytes(self.objects.of(view.pages, array));
        let bytes = bytes.get(16..).unwrap_or(&[]);
        let count = view.entries(bytes.len() as u64 / 8) as usize;
        for (index, value) in (0..).zip(bytes.chunks_exact(8).take(count)) {
            self.living(word(value, 0)).into_iter().for_each(|to| call(Name::Index(index), to));
        }
    }

    fn living(&self, tagged: u64) -> Option<u32> {
        let object = self.objects.of(self.view.pages, tagged);
        Some(object).filter(|&object| object != NONE && self.graph.alive.has(object))
    }
}
