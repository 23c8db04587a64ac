//! One heap.

use std::collections::BTreeMap;

use super::pauses::Record;
use super::profile::Builder;
use super::timeline::Slices;
use super::trend::AfterFull;
use super::young::Nursery;
use crate::event::{Collection, Isolate, Kind};
use crate::model::ModelInput;
use crate::parse::assemble::Formats;
use crate::parse::event::Releases;
use crate::parse::profile::Part;
use crate::profile::Profile;
use crate::summary::{Format, HeapSummary, IsolateSummary, Process};

/// Times are whole milliseconds in most formats.
const CLOCK_MS: f64 = 1.0;

pub(super) struct Heap {
    pub(super) isolate: Isolate,
    pub(super) process: Option<Process>,
    pub(super) ran_out_of_memory: bool,
    formats: Vec<Format>,
    releases: Releases,
    /// The ends of the first and the last pause, and the length and kind of the first.
    first: Option<(f64, f64, Kind)>,
    last_ms: f64,
    /// How long nothing was observed between the first and the last pause.
    unseen_ms: f64,
    gap: Gap,
    /// In use after the last collection, if known.
    used: Option<u64>,
    pauses: Record,
    nursery: Nursery,
    peak_used: u64,
    peak_committed: u64,
    peak_external: Option<u64>,
    after_full: AfterFull,
    slices: Slices,
    model: ModelInput,
    profile: Option<Box<Builder>>,
    /// Of worker threads, by their numbers.
    workers: BTreeMap<u32, Builder>,
}

/// The time not observed by the recorder since the last pause.
#[derive(Clone, Copy, Default)]
struct Gap {
    is_open: bool,
    unseen_ms: f64,
    end_ms: f64,
}

impl Heap {
    pub(super) fn new(isolate: Isolate) -> Self {
        Self {
            isolate,
            process: None,
            ran_out_of_memory: false,
            formats: Vec::new(),
            releases: Releases::ALL,
            first: None,
            last_ms: 0.0,
            unseen_ms: 0.0,
            gap: Gap::default(),
            used: None,
            pauses: Record::new(),
            nursery: Nursery::default(),
            peak_used: 0,
            peak_committed: 0,
            peak_external: None,
            after_full: AfterFull::default(),
            slices: Slices::default(),
            model: ModelInput::default(),
            profile: None,
            workers: BTreeMap::new(),
        }
    }

    /// Whether `next` belongs to another heap, to which the system gave the same name: its clock is younger. V8 writes
    /// in order of time; the recorder begins a recording with a line of its own, and may report a collection late.
    pub(super) fn is_over(&self, next: &Collection) -> bool {
        self.first.is_some() && next.at_ms + CLOCK_MS < self.last_ms
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
            && self.profile.as_ref().is_none_or(|profile| profile.is_empty())
            && self.workers.values().all(Builder::is_empty)
    }

    pub(super) fn pause_ms(&self) -> f64 {
        self.pauses.total_ms()
    }

    pub(super) fn collections(&self) -> u64 {
        self.pauses.count()
    }

    pub(super) fn narrow(&mut self, releases: Releases) {
        self.releases = self.releases & releases;
    }

    pub(super) fn push(&mut self, collection: &Collection, formats: Formats) {
        self.narrow(formats.releases);
        let table = formats.has_table.then_some(Format::TraceGcVerbose);
        for format in [Some(formats.first), formats.second, table].into_iter().flatten() {
            if !self.formats.contains(&format) {
                self.formats.push(format);
            }
        }
        let Gap { is_open, unseen_ms, .. } = self.gap;
        self.gap = Gap { end_ms: self.gap.end_ms, ..Gap::default() };
        self.unseen_ms += unseen_ms;
        let since = self.first.filter(|_| !is_open).map(|_| self.last_ms);
        self.first.get_or_insert((collection.at_ms, collection.pause_ms, collection.kind));
        self.pauses.push(collection);
        if let Some(profile) = &mut self.profile {
            profile.pause(collection.at_ms, collection.pause_ms);
        }
        let flow = self.nursery.push(collection, since, self.used);
        self.slices.push(collection, since, flow);
        if let (Kind::MarkCompact, Some(used)) = (collection.kind, collection.used_after) {
            self.after_full.push(collection.at_ms, used);
        }
        self.peaks(collection);
        self.model.push(collection);
        self.last_ms = self.last_ms.max(collection.at_ms);
        self.used = collection.used_after;
    }

    /// Nobody knows what happened meanwhile. Like other time, it counts only once a collection follows it.
    pub(super) fn gap(&mut self, from_ms: f64, to_ms: f64) {
        if self.first.is_some() {
            let from_ms = from_ms.max(self.last_ms).max(self.gap.end_ms);
            let unseen_ms = (to_ms - from_ms).max(0.0);
            self.gap.unseen_ms += unseen_ms;
            self.model.gap(unseen_ms);
        }
        self.gap.is_open = true;
        self.gap.end_ms = self.gap.end_ms.max(to_ms);
        self.used = None;
    }

    pub(super) fn sample(&mut self, worker: Option<u32>, part: Part) {
        match worker {
            None => self.profile.get_or_insert_default().push(part),
            Some(number) => self.workers.entry(number).or_default().push(part),
        }
    }

    fn peaks(&mut self, collection: &Collection) {
        let committed = collection.committed_before.max(collection.committed_after);
        let used = collection.used_before.max(collection.used_after);
        self.peak_used = self.peak_used.max(used.unwrap_or(0));
        self.peak_committed = self.peak_committed.max(committed);
        self.peak_external = self.peak_external.max(collection.external_after);
    }

    pub(super) fn finish(self) -> IsolateSummary {
        let (first_ms, first_pause_ms) = self.first.map(|(end, pause, _)| (end, pause)).unwrap_or_default();
        let unseen_ms = self.unseen_ms.min(self.last_ms - first_ms);
        let wall_ms = self.last_ms - first_ms - unseen_ms;
        // The first pause ended when that time began. Rounding may make pauses longer than the time that contains them.
        let share_of = |pauses_ms: f64| (wall_ms > 0.0).then(|| (pauses_ms / wall_ms).clamp(0.0, 1.0));
        let mut by_kind = self.pauses.by_kind();
        for one in &mut by_kind {
            let first_ms =
                self.first.filter(|(.., kind)| *kind == one.kind).map_or(0.0, |(_, pause, _)| pause);
            one.pause_share = share_of(one.pauses.total_ms - first_ms);
        }
        let heap = HeapSummary {
            peak_used: self.peak_used,
            peak_committed: self.peak_committed,
            peak_external: self.peak_external,
            trend: self.after_full.trend(first_ms, self.last_ms),
            after_full: self.after_full.points(),
        };
        let limit = self.process.as_ref().and_then(|process| process.semi_space_max);
        let exact = self.process.as_ref().and_then(|process| process.node.clone());
        IsolateSummary {
            isolate: self.isolate,
            formats: self.formats,
            node: exact.or_else(|| self.releases.names()),
            process: self.process,
            first_ms,
            last_ms: self.last_ms,
            unseen_ms,
            by_kind,
            pauses: self.pauses.all(),
            pause_share: share_of(self.pauses.total_ms() - first_pause_ms),
            longest: self.pauses.longest(),
            young: self.nursery.finish(limit),
            heap,
            ran_out_of_memory: self.ran_out_of_memory,
            timeline: self.slices.finish(),
            profile: self.profile.and_then(|profile| profile.finish()),
            workers: by_busy(self.workers),
            model: self.model,
        }
    }
}

/// Those that did most first.
fn by_busy(workers: BTreeMap<u32, Builder>) -> Vec<Profile> {
    let mut profiles: Vec<_> = workers.into_values().filter_map(Builder::finish).collect();
    profiles.sort_by(|a, b| b.busy_ms().total_cmp(&a.busy_ms()));
    profiles
}
