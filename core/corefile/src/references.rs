//! What the references of an object are called.

use std::collections::HashMap;
use std::rc::Rc;

use crate::graph::Graph;
use crate::maps::NONE;
use crate::objects::View;
use crate::walk::Objects;

/// What a reference is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Name {
    Index(u64),
    Hidden(usize),
    Internal(&'static str),
    Property(Rc<str>),
}

/// Names of fields, and where each is: in the object, or else in its array of properties.
type Fields = Rc<[(Rc<str>, Result<u64, u64>)]>;

pub(crate) struct References<'a> {
    view: &'a View<'a>,
    objects: &'a Objects,
    graph: &'a Graph,
    /// [`NONE`] for what is not alive.
    numbers: &'a [u32],
    /// By the number of the map.
    fields: HashMap<u32, Fields>,
    seen: Vec<u64>,
}

impl<'a> References<'a> {
    pub(crate) fn new(
        view: &'a View<'a>,
        objects: &'a Objects,
        graph: &'a Graph,
        numbers: &'a [u32],
    ) -> Self {
        Self { view, objects, graph, numbers, fields: HashMap::new(), seen: Vec::new() }
    }

    /// All references of an object but those of weak maps: what JavaScript sees, wherever the object keeps it, then the rest.
    pub(crate) fn of(&mut self, object: u32, found: &mut Vec<(Name, u32)>) {
        let view = self.view;
        let number = self.objects.maps[object as usize];
        let map = &view.maps.list[number as usize];
        let is_receiver = view.layout.is_receiver(map.kind);
        let tagged = view.pages.address(self.objects.words[object as usize]) + 1;
        self.seen.clear();
        if is_receiver {
            if view.layout.is_dictionary(map.bits3) {
                for (name, value) in view.properties(tagged) {
                    self.property(&name.into(), value, found);
                }
            } else {
                let fields = self.fields.entry(number).or_insert_with(|| {
                    view.fields(map).into_iter().map(|(name, place)| (name.into(), place)).collect()
                });
                let outside = view.field(tagged, 8);
                for (name, place) in Rc::clone(fields).iter() {
                    let value = match *place {
                        Ok(offset) => view.field(tagged, offset),
                        Err(offset) => view.field(outside, offset),
                    };
                    self.property(name, value, found);
                }
            }
            for (index, value) in view.elements(tagged) {
                self.living(value).into_iter().for_each(|to| found.push((Name::Index(index), to)));
            }
        }
        let seen = &self.seen;
        self.graph.each_word(view, self.objects, object, |at, to| match at {
            0 => found.push((Name::Internal("map"), to)),
            8 if is_receiver => found.push((Name::Internal("properties"), to)),
            16 if is_receiver => found.push((Name::Internal("elements"), to)),
            _ if seen.contains(&view.field(tagged, at as u64)) => {}
            _ => found.push((Name::Hidden(at / 8), to)),
        });
    }

    fn property(&mut self, name: &Rc<str>, value: u64, found: &mut Vec<(Name, u32)>) {
        self.living(value).into_iter().for_each(|to| found.push((Name::Property(Rc::clone(name)), to)));
        self.seen.push(value);
    }

    fn living(&self, tagged: u64) -> Option<u32> {
        let object = self.objects.of(self.view.pages, tagged);
        Some(object).filter(|&object| object != NONE && self.numbers[object as usize] != NONE)
    }
}
