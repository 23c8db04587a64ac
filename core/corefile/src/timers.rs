//! Timers of JavaScript that wait for their time. Node.js keeps them in lists of its own, behind one timer of libuv.

use std::collections::HashMap;

use serde::Serialize;

use crate::objects::View;

/// Timers that are read one by one.
const READ: u64 = 200_000;
/// Different ones that are told.
const MOST: usize = 100;
const GROUPS: usize = 10_000;

#[derive(Debug, Default, Serialize)]
pub struct Timers {
    /// Of `setTimeout` and `setInterval`.
    pub timeouts: u64,
    /// Of `setImmediate`.
    pub immediates: u64,
    /// Too many to look at each: whether these wait is not known.
    pub unread: u64,
    /// By their function and time, the commonest first.
    pub groups: Vec<TimerGroup>,
}

#[derive(Debug, Serialize)]
pub struct TimerGroup {
    pub count: u64,
    pub after_ms: u64,
    pub repeats: bool,
    /// Whether it keeps the process running.
    pub referenced: bool,
    pub function: String,
    pub script: String,
    pub line: u32,
    pub column: u32,
}

/// What timers have in common: function, time, whether they repeat, whether they keep the process running.
type Key = (u64, u64, bool, bool);

#[derive(Debug, Default)]
pub(crate) struct Collector {
    timers: Timers,
    groups: HashMap<Key, u64>,
    read: u64,
}

impl Collector {
    /// Takes an object of the class that Node.js's own timers are of, if it is one that waits.
    pub(crate) fn add(&mut self, view: &View<'_>, class: &str, tagged: u64) {
        self.read += 1;
        if self.read > READ {
            self.timers.unread += 1;
            return;
        }
        let properties: HashMap<String, u64> = view.properties(tagged).into_iter().collect();
        let value = |name: &str| properties.get(name).copied();
        let is = |name: &str, oddball: &str| {
            value(name).is_some_and(|value| view.is(value, "ODDBALL") && view.show(value, false) == oddball)
        };
        let is_listed =
            !is("_idleNext", "null") && properties.contains_key("_idleNext") && is("_destroyed", "false");
        let function = |name: &str| {
            let function = value(name)?;
            let is_function = view.map(function).is_some_and(|map| view.layout.is_function(map.kind));
            is_function.then(|| view.field(function, view.layout.function_shared))
        };
        match class {
            "Immediate" if function("_onImmediate").is_some() && is("_destroyed", "false") => {
                self.timers.immediates += 1;
            }
            "Timeout" if is_listed => {
                let (Some(shared), Some(after)) = (function("_onTimeout"), value("_idleTimeout")) else {
                    return;
                };
                self.timers.timeouts += 1;
                let after =
                    if after as u32 == 0 { after >> 32 } else { f64::from_bits(view.field(after, 8)) as u64 };
                let key = (shared, after, !is("_repeat", "null"), !is("[refed]", "false"));
                if self.groups.len() < GROUPS || self.groups.contains_key(&key) {
                    *self.groups.entry(key).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    pub(crate) fn finish(mut self, view: &View<'_>) -> Timers {
        let mut groups: Vec<(Key, u64)> = self.groups.into_iter().collect();
        groups
            .sort_unstable_by_key(|&((shared, after, ..), count)| (std::cmp::Reverse(count), after, shared));
        let told = groups.into_iter().take(MOST).map(|((shared, after_ms, repeats, referenced), count)| {
            let (script, line, column) = view.place(shared, None).unwrap_or_default();
            let name = view.function_name(shared);
            let function = if name.is_empty() { "(anonymous)".to_owned() } else { name };
            TimerGroup { count, after_ms, repeats, referenced, function, script, line, column }
        });
        self.timers.groups = told.collect();
        self.timers
    }
}
