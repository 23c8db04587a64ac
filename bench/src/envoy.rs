//! The Envoy workload: everything that hasten accelerates in it, each part and the whole.
//!
//! A stock and an accelerated Envoy stand before one origin, which has the pages and checks those that are sent back.

mod case;
mod matrix;
mod origin;
mod servers;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use hasten_evidence::report::{Report, Saved, Text};
use hasten_evidence::warning::Warning;

use crate::affinity::Placement;
use crate::baseline::Baseline;
use crate::error::BenchError;
use crate::gzip::corpus::size_name;
use crate::host;
use crate::keeper::Keeper;
use crate::pace::Pace;
use crate::rows;
use crate::server::ServerKind;

pub use self::case::{EnvoyCase, UnknownWork, Work};
pub use self::matrix::Matrix;

use self::servers::Servers;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    pub matrix: Matrix,
    pub pace: Pace,
    /// The `hasten` command that starts the accelerated side.
    pub hasten: PathBuf,
    /// What it is compared with.
    pub baseline: Baseline,
    /// Where the report goes.
    pub out: PathBuf,
    /// The command line that repeats this run.
    pub command: String,
}

/// Runs all rows, or as many as finish before `interrupted`; the report is saved after each.
pub fn run(options: &Options, interrupted: &AtomicBool) -> Result<(Report<EnvoyCase>, Saved), BenchError> {
    let placement = Placement::of_this_machine();
    let cases = options.matrix.cases();
    let report = empty_report(options, &placement);
    let certificates = tempfile::tempdir().map_err(BenchError::Directory)?;
    // It contains keys. Declared later, the keeper is dropped before the folder, which it would remove.
    let _keeper = Keeper::of(certificates.path());
    let estimate = options.pace.estimate() * u32::try_from(cases.len()).unwrap_or(u32::MAX);
    let mut servers: Option<Servers> = None;
    rows::measure(report, &cases, estimate, &options.out, interrupted, |case, progress, stopped| {
        let current = match servers.take().and_then(|servers| servers.reuse(case)) {
            Some(servers) => servers,
            None => Servers::start(case, certificates.path(), options, &placement)?,
        };
        let current = servers.insert(current);
        let row = current.row(case, &options.pace, progress, stopped)?;
        Ok((row.into_iter().collect(), current.warning()))
    })
}

fn page_path(size: usize) -> String {
    format!("/{}.html", size_name(size))
}

fn empty_report(options: &Options, placement: &Placement) -> Report<EnvoyCase> {
    let method = "plain, gzip and gunzip: an HTTP/1.1 request on an open connection for a page of HTML from an origin \
                  behind Envoy, which Envoy passes on as it is, compresses, or decompresses. Full window: by HASTEN_GZIP_WINDOW, hasten may reach \
                  back 32 KiB, where Envoy's default is 4. handshake: a full TLS 1.3 \
                  handshake with X25519 and one request, answered by Envoy. round-trip: a full handshake, a page fetched \
                  compressed, and the same page sent back compressed, which the origin compares; Envoy and the origin speak \
                  TLS, too. Closed loop with a fixed number of connections. Stock and accelerated Envoy run side by side \
                  with one worker on one CPU; rounds alternate A B B A. CPU is the scheduler's time of the server, kernel \
                  included, divided by operations that were right in every respect. The interval is a BCa bootstrap of the \
                  trimmed mean of the pairs' logarithmic ratios.";
    let next = [
        ("hasten run -- envoy -c envoy.yaml", "Start your own Envoy accelerated; nothing else changes"),
        ("hasten check -- envoy", "See what applies to this build on this machine, and why"),
        ("hasten top", "Watch it work: lanes filled, bytes compressed, CPU saved"),
    ];
    Report {
        host: host::facts(&[ServerKind::Envoy], placement),
        workload: "envoy",
        text: Text {
            title: "Envoy".to_owned(),
            unit: "operation".to_owned(),
            method: method.to_owned() + &options.baseline.sentence(),
            reproduce: vec![options.command.clone()],
            next: next.map(|(command, why)| (command.to_owned(), why.to_owned())).to_vec(),
        },
        complete: false,
        rows: Vec::new(),
        warnings: placement.shared_core.then_some(Warning::SharedCore).into_iter().collect(),
    }
}
