//! The TLS workload: full handshakes, one request each, against a stock and an accelerated server.
//!
//! Both servers run all the time, on the same CPU, and each is idle while the other is driven. Rounds go A B B A …, so
//! that a slow change of the machine affects both sides alike.

mod servers;

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use hasten_evidence::report::{Case, Report, Saved, Text};
use hasten_evidence::warning::Warning;
use serde::{Serialize, Serializer};

use crate::affinity::Placement;
use crate::baseline::Baseline;
use crate::certificates::{Certificate, KeyKind};
use crate::drive::{Group, Protocol};
use crate::host;
use crate::keeper::Keeper;
use crate::rows;
use crate::server::ServerKind;

pub use crate::{BenchError, Pace};

use self::servers::Servers;

/// Variables that hide AVX-512. For OpenSSL, what CPUID says of it in leaf 7, and of the AES and carry-less products that came
/// with it; for hasten, a switch of its own.
pub const HIDDEN_AVX512: [(&str, &str); 2] =
    [("OPENSSL_ia32cap", ":~0x00005e42d0230000"), ("HASTEN_CPU_DISABLE_IFMA", "1")];

/// One row of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TlsCase {
    #[serde(serialize_with = "name")]
    pub server: ServerKind,
    #[serde(serialize_with = "name")]
    pub cert: KeyKind,
    #[serde(serialize_with = "name")]
    pub protocol: Protocol,
    /// Of the key exchange.
    #[serde(serialize_with = "name")]
    pub group: Group,
    /// Whether the server sends session tickets, as it does by default in TLS 1.3; these clients request none in TLS
    /// 1.2.
    #[serde(serialize_with = "name")]
    pub tickets: Tickets,
    pub concurrency: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tickets {
    On,
    Off,
}

impl Display for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::On => "on",
            Self::Off => "off",
        })
    }
}

impl Tickets {
    /// The configuration that keeps each server from sending any.
    const fn server_lines(self, server: ServerKind) -> &'static str {
        match (self, server) {
            (Self::On, _) => "",
            (Self::Off, ServerKind::Nginx) => "ssl_session_tickets off;",
            (Self::Off, ServerKind::Haproxy | ServerKind::HaproxyAwsLc) => "no-tls-tickets",
            (Self::Off, ServerKind::Envoy) => r#""disable_stateless_session_resumption": true"#,
        }
    }
}

impl Case for TlsCase {
    const COLUMNS: &'static [&'static str] =
        &["server", "certificate", "protocol", "group", "tickets", "conn."];

    fn cells(&self) -> Vec<String> {
        let Self { server, cert, protocol, group, tickets, concurrency } = self;
        vec![
            server.to_string(),
            cert.to_string(),
            protocol.to_string(),
            group.to_string(),
            tickets.to_string(),
            concurrency.to_string(),
        ]
    }

    fn title(&self) -> String {
        let Self { server, cert, protocol, group, tickets, concurrency } = self;
        let tickets = if *tickets == Tickets::On { "" } else { " · no tickets" };
        format!("{server} · {cert} · {protocol} · {group}{tickets} · {concurrency} conn.")
    }
}

fn name<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// The values whose product is the list of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    pub servers: Vec<ServerKind>,
    pub certs: Vec<KeyKind>,
    pub protocols: Vec<Protocol>,
    pub groups: Vec<Group>,
    /// For TLS 1.3.
    pub tickets: Vec<Tickets>,
    pub concurrencies: Vec<usize>,
}

impl Matrix {
    /// nginx on TLS 1.3, alone and under load.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            servers: vec![ServerKind::Nginx],
            protocols: vec![Protocol::Tls13],
            tickets: vec![Tickets::On],
            concurrencies: vec![1, 256],
            ..Self::full()
        }
    }

    #[must_use]
    pub fn full() -> Self {
        Self {
            servers: ServerKind::ALL.to_vec(),
            certs: vec![KeyKind::Rsa2048, KeyKind::P256, KeyKind::P384],
            protocols: vec![Protocol::Tls13, Protocol::Tls12],
            groups: vec![Group::X25519],
            tickets: vec![Tickets::On, Tickets::Off],
            concurrencies: vec![1, 16, 256],
        }
    }

    /// The servers that will be started.
    fn programs(&self) -> Vec<ServerKind> {
        let mut programs = Vec::new();
        for program in self.servers.iter().flat_map(|server| [server.accelerated(), *server]) {
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
        programs
    }

    fn has_peer(&self) -> bool {
        self.servers.contains(&ServerKind::HaproxyAwsLc)
    }

    /// Rows that share servers are adjacent. A case of HAProxy on AWS-LC includes that on OpenSSL.
    #[must_use]
    pub fn cases(&self) -> Vec<TlsCase> {
        let mut cases = Vec::new();
        let is_included = |server| server == ServerKind::Haproxy && self.has_peer();
        for &server in self.servers.iter().filter(|server| !is_included(**server)) {
            for &cert in &self.certs {
                for (protocol, tickets) in self.kinds() {
                    for group in self.groups_of(protocol) {
                        let case =
                            |concurrency| TlsCase { server, cert, protocol, group, tickets, concurrency };
                        cases.extend(self.concurrencies.iter().copied().map(case));
                    }
                }
            }
        }
        cases
    }

    fn groups_of(&self, protocol: Protocol) -> impl Iterator<Item = Group> {
        let groups = self.groups.iter().copied();
        groups.filter(move |group| protocol == Protocol::Tls13 || !group.is_hybrid())
    }

    /// Rows that a server with tickets can serve in both protocols come first.
    fn kinds(&self) -> impl Iterator<Item = (Protocol, Tickets)> {
        let default = self.protocols.iter().map(|&protocol| (protocol, Tickets::On));
        let default = default
            .filter(|(protocol, tickets)| *protocol == Protocol::Tls12 || self.tickets.contains(tickets));
        let without = self.protocols.contains(&Protocol::Tls13) && self.tickets.contains(&Tickets::Off);
        default.chain(without.then_some((Protocol::Tls13, Tickets::Off)))
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    pub matrix: Matrix,
    pub pace: Pace,
    /// The `hasten` command that starts the accelerated side.
    pub hasten: PathBuf,
    /// What it is compared with.
    pub baseline: Baseline,
    /// OpenSSL and hasten do without AVX-512.
    pub hide_avx512: bool,
    /// Where the report goes.
    pub out: PathBuf,
    /// The command line that repeats this run.
    pub command: String,
}

/// Runs all rows, or as many as finish before `interrupted`; the report is saved after each.
pub fn run(options: &Options, interrupted: &AtomicBool) -> Result<(Report<TlsCase>, Saved), BenchError> {
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
            None => {
                let certificate = Certificate::create(certificates.path(), case.cert)?;
                Servers::start(case, &certificate, options, &placement)?
            }
        };
        let current = servers.insert(current);
        let rows = current.rows(case, &options.pace, progress, stopped)?;
        Ok((rows, current.warning()))
    })
}

fn empty_report(options: &Options, placement: &Placement) -> Report<TlsCase> {
    let method = "Full handshakes without resumption, one HTTP/1.1 request on each connection, which follows \
                  the client's Finished in a flight of its own; closed loop \
                  with a fixed number of connections. Stock and accelerated server run side by side with one worker \
                  on one CPU; rounds alternate A B B A. CPU is the scheduler's time of all server processes, kernel \
                  included, divided by operations that were right in every respect. The interval is a BCa bootstrap \
                  of the trimmed mean of the pairs' logarithmic ratios.";
    let next = [
        ("hasten run -- nginx", "Start your own server accelerated; nothing else changes"),
        ("hasten check -- nginx", "See what applies to a program on this machine, and why"),
        ("hasten top", "Watch it work: lanes filled, operations batched, CPU saved"),
    ];
    let mut host = host::facts(&options.matrix.programs(), placement);
    let releases = [ServerKind::Haproxy, ServerKind::HaproxyAwsLc].map(|server| host.fact(server.as_str()));
    let warnings = [placement.shared_core.then_some(Warning::SharedCore), different_releases(releases)];
    if options.hide_avx512 {
        host.0.push(("hidden", "AVX-512".to_owned()));
    }
    let peer = if options.matrix.has_peer() { PEER } else { "" };
    Report {
        host,
        workload: "tls",
        text: Text {
            title: "TLS handshakes".to_owned(),
            unit: "handshake".to_owned(),
            method: method.to_owned() + peer + &options.baseline.sentence(),
            reproduce: vec![options.command.clone()],
            next: next.map(|(command, why)| (command.to_owned(), why.to_owned())).to_vec(),
        },
        complete: false,
        rows: Vec::new(),
        warnings: warnings.into_iter().flatten().collect(),
    }
}

/// What the reader of rows with another TLS library has to know.
const PEER: &str = " In a row of haproxy-aws-lc, HAProxy on AWS-LC takes the place of the stock server; the other side is \
                    HAProxy on OpenSSL under hasten, in the very rounds of the haproxy row before it: the three take \
                    turns, A B C C B A.";

/// Otherwise their difference would be put down to their TLS libraries.
fn different_releases(releases: [Option<&str>; 2]) -> Option<Warning> {
    let [Some(openssl), Some(aws_lc)] = releases else { return None };
    let programs = [format!("haproxy {openssl}"), format!("haproxy-aws-lc {aws_lc}")];
    (openssl != aws_lc).then_some(Warning::Releases { programs })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn quick_is_six_rows_within_a_minute_and_a_half() {
        let cases = Matrix::quick().cases();
        assert_eq!(cases.len(), 6);
        assert!(
            cases.iter().all(|case| case.server == ServerKind::Nginx && case.protocol == Protocol::Tls13)
        );
        assert!(Pace::quick().estimate() * 6 < Duration::from_secs(80));
    }

    #[test]
    fn full_is_every_combination() {
        let cases = Matrix::full().cases();
        assert_eq!(cases.len(), 2 * 3 * 3 * 3);
        assert!(cases.iter().all(|case| case.protocol == Protocol::Tls13 || case.tickets == Tickets::On));
    }

    #[test]
    fn haproxy_is_measured_once_beside_its_peer() {
        let servers = vec![ServerKind::Haproxy, ServerKind::HaproxyAwsLc];
        let matrix = Matrix { servers, ..Matrix::quick() };
        assert!(matrix.cases().iter().all(|case| case.server == ServerKind::HaproxyAwsLc));
        assert_eq!(matrix.cases().len(), Matrix::quick().cases().len());
        let alone = Matrix { servers: vec![ServerKind::HaproxyAwsLc], ..matrix.clone() };
        assert_eq!(alone.cases(), matrix.cases());
        assert_eq!((alone.programs(), matrix.programs()), (matrix.servers.clone(), matrix.servers));
    }

    #[test]
    fn another_release_of_haproxy_is_not_taken_for_another_library() {
        let warning = different_releases([Some("2.6.12"), Some("3.0.11")]).expect("they differ");
        assert!(warning.to_string().contains("2.6.12") && warning.to_string().contains("3.0.11"));
        assert_eq!(different_releases([Some("3.0.11"), Some("3.0.11")]), None);
        assert_eq!(different_releases([Some("2.6.12"), None]), None);
    }

    #[test]
    fn hybrid_groups_are_for_tls_1_3() {
        let matrix = Matrix { groups: Group::ALL.to_vec(), ..Matrix::full() };
        assert!(
            matrix.cases().iter().all(|case| case.protocol == Protocol::Tls13 || !case.group.is_hybrid())
        );
        assert!(matrix.cases().iter().any(|case| case.group.is_hybrid()));
    }

    #[test]
    fn a_case_has_the_names_of_the_data_format() {
        let case = TlsCase {
            server: ServerKind::Haproxy,
            cert: KeyKind::Rsa2048,
            protocol: Protocol::Tls12,
            group: Group::X25519,
            tickets: Tickets::On,
            concurrency: 256,
        };
        assert_eq!(
            serde_json::to_value(case).unwrap(),
            serde_json::json!({
                "server": "haproxy", "cert": "rsa-2048", "protocol": "tls1.2", "group": "x25519",
                "tickets": "on", "concurrency": 256
            })
        );
    }
}
