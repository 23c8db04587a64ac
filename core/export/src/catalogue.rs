//! Every metric: its name, its meaning, its labels.

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Never decreases while the exporter runs.
    Counter,
    Gauge,
    Histogram,
    /// Always 1; the labels are the message.
    Info,
}

/// A metric, without its values.
#[derive(Debug, PartialEq)]
pub struct Description {
    /// Without a suffix: `_total`, `_bucket`, `_info`.
    pub name: &'static str,
    pub kind: Kind,
    /// The unit at the end of the name, if there is one.
    pub unit: Option<&'static str>,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

impl Kind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

impl Description {
    /// The metric's name in a query; for a histogram, the prefix of its series.
    #[must_use]
    pub fn metric(&self) -> String {
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        };
        format!("{}{suffix}", self.name)
    }
}

macro_rules! catalogue {
    (@unit) => { None };
    (@unit $unit:literal) => { Some($unit) };
    ($($NAME:ident = $kind:ident $name:literal $(in $unit:literal)? by [$($label:literal),*]: $help:literal;)+) => {
        $(pub(crate) static $NAME: Description = Description {
            name: $name,
            kind: Kind::$kind,
            unit: catalogue!(@unit $($unit)?),
            labels: &[$($label),*],
            help: $help,
        };)+

        /// In the order in which they are printed.
        pub static CATALOGUE: &[&Description] = &[$(&$NAME),+];
    };
}

catalogue! {
    BUILD = Info "hasten_build" by ["version"]: "The exporter.";
    PROCESSES = Gauge "hasten_processes" by ["program", "accelerator"]:
        "Processes that are accelerated at this moment, as far as the exporter may look.";
    PROCESSES_DENIED = Gauge "hasten_processes_denied" by []:
        "Processes that the exporter may not look into; they may be accelerated, too.";
    PROCESSES_STANDBY = Gauge "hasten_processes_standby" by []:
        "Processes that have loaded hasten and have had nothing to accelerate so far.";
    PAGES_UNREADABLE = Gauge "hasten_pages_unreadable" by ["reason"]:
        "Counter pages that are of no use: written by another version of hasten, damaged, refused by the system, more \
         than the exporter keeps, or missing, as the process could not make its own.";
    SCAN = Gauge "hasten_scan_duration_seconds" in "seconds" by []:
        "How long the last look at all processes of the host took.";
    OPS = Counter "hasten_ops" by ["program", "accelerator", "op", "engine", "result"]:
        "Operations by the engine that did them. ok: done. failed: refused or wrong, and done again by another engine, \
         which counts it, too. bypassed: never offered to an engine; hasten_fallback_total says why.";
    BATCH_LANES = Histogram "hasten_batch_lanes" by ["program", "accelerator", "op"]:
        "Batches by how many operations went through them at once; the sum is operations, the count batches.";
    BYTES = Counter "hasten_bytes" in "bytes" by ["program", "accelerator", "op", "engine", "direction"]:
        "Bytes that an engine took in or gave out, as far as the direction is counted for the engine.";
    STREAMS = Counter "hasten_streams" by ["program", "accelerator", "op"]:
        "Streams of a compression library that were opened, or opened again.";
    STREAM_BYTES = Counter "hasten_stream_bytes" in "bytes" by ["program", "accelerator", "op", "direction"]:
        "Bytes that the program put into its streams and got out of them, whichever engine worked on them.";
    READ_CACHE_BYTES = Counter "hasten_read_cache_bytes" in "bytes" by ["program", "accelerator", "what"]:
        "Bytes of files that may be cached. hit: read from the cache. miss: read from the disk. kept: written into the cache.";
    READ_CACHE_DAMAGED = Counter "hasten_read_cache_damaged" by ["program", "accelerator"]:
        "Blocks of the read cache with a wrong checksum; each was read from the disk.";
    READ_CACHE_RESTS = Counter "hasten_read_cache_rests" by ["program", "accelerator"]:
        "Trials that found the read cache's device no faster than the disk.";
    WAL_LOGS = Counter "hasten_wal_logs" by ["program", "accelerator", "place"]:
        "Logs that were made. fast: on the fast device. home: where the program wants them, because the fast device could \
         not take them.";
    TIER_BYTES = Gauge "hasten_tier_bytes" in "bytes" by ["program", "accelerator", "place"]:
        "Bytes of the objects on the heap. near: near the processors. far: on the other NUMA node.";
    TIER_TARGET = Gauge "hasten_tier_target_ratio" by ["program", "accelerator"]:
        "The wanted far part of all bytes.";
    TIER_FULL = Counter "hasten_tier_full" by ["program", "accelerator"]:
        "How often far memory could not be had for an object, and was not tried again for a moment.";
    HANDSHAKES = Counter "hasten_handshakes" by ["program", "accelerator", "result"]:
        "TLS handshakes that ended, by either side's doing.";
    SUSPENSION = Gauge "hasten_suspension_processes" by ["program", "accelerator", "state", "doubt"]:
        "Processes by whether they suspend handshakes. proven, expected: they do. shadowing: their first handshakes are \
         observed. off: no longer, until they are restarted; the doubt says why.";
    CALLED_IN = Counter "hasten_handshakes_called_in" by ["program", "accelerator", "cause"]:
        "Suspended handshakes that had to run on at once. blocking: their thread was about to block elsewhere. overdue: \
         the program did not resume them. foreign-thread: another thread called.";
    FALLBACK = Counter "hasten_fallback" by ["program", "accelerator", "op", "reason"]:
        "Why work took the original path: operations of TLS, or streams and chunks of compression.";
    VERIFY_FAILURES = Counter "hasten_verify_failures" by ["program", "accelerator", "op"]:
        "Results of an engine that were found wrong before they left; each was done again by the original. Never normal.";
    ENGINE_BUSY = Counter "hasten_engine_busy_seconds" in "seconds" by ["program", "accelerator", "engine"]:
        "How long an engine was at work, by the clock; on a device this includes waiting for it.";
    BREAKER_STATE = Gauge "hasten_breaker_state" by ["program", "accelerator", "engine", "device"]:
        "Whether an engine is asked: 0 closed, it is; 1 half-open, it is being tried again; 2 open, it is not, after a \
         fault; 3 disabled by hand. Of several processes, the one that most wants to be looked at.";
    BREAKER_OPENED = Counter "hasten_breaker_opened" by ["program", "accelerator", "engine"]:
        "How often the breaker of an engine opened, over all processes.";
    DEVICE_UP = Gauge "hasten_device_up" by ["device", "kind", "numa"]:
        "Whether an accelerator device of this host has a driver and works, as the kernel tells it.";
    DEVICE_UTILIZATION = Gauge "hasten_device_utilization_ratio" in "ratio" by ["device", "slice"]:
        "How busy a part of a device is, or how full a queue of it, from 0 to 1, where the kernel tells.";
    DEVICE_DESCRIPTORS = Counter "hasten_device_descriptors" by ["device"]:
        "Descriptors that a DSA or IAA device has accepted, whoever submitted them, since the exporter began.";
    DEVICE_BYTES = Counter "hasten_device_bytes" in "bytes" by ["device", "direction"]:
        "Bytes that a DSA or IAA device has read (in) and written (out), for whomever, since the exporter began.";
    CPU_SAVED = Counter "hasten_cpu_saved_seconds" in "seconds" by ["program", "accelerator", "op"]:
        "CPU time saved, an estimate. Public-key operations: what the original costs one by one, as measured in the \
         process, times the operations of a batch, less what the batch costs, as measured; never below 0. Compression: \
         bytes times the difference of two fixed speeds, the original's and the engine's, at the stream's level.";
}
