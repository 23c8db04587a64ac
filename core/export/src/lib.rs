//! The work of accelerated processes, for monitoring: Prometheus, OpenMetrics, JSON, and a live page.
//!
//! [`Collector`] looks at the counter pages of this host and adds up what they say ([`Totals`]): counters never go
//! backwards, whichever process ends. [`families`] turns totals into metrics, and [`encode()`] metrics into text. The
//! observed processes are not changed and notice nothing.
//!
//! `docs/metrics.md` lists every metric.

#![forbid(unsafe_code)]

mod accept;
mod answer;
mod catalogue;
mod collector;
mod container;
mod encode;
mod families;
mod history;
mod host;
mod page;
mod recent;
mod server;
mod status;
mod tally;
mod totals;
mod warning;
mod watch;

pub use catalogue::{CATALOGUE, Description, Kind};
pub use collector::{Collector, DeviceState, Look, Reason, Unreadable};
pub use encode::{Family, Format, Sample, Value, encode};
pub use families::families;
pub use server::serve;
pub use totals::{Key, Live, PageId, Program, Programs, Reading, Totals};
pub use warning::{Warning, warnings};
