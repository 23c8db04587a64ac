//! One server with one key on one class of CPU: handshakes by each protocol and group.

use std::path::Path;
use std::time::Duration;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::drive::{self, Group, Load, Outcome, Protocol};
use hasten_bench::tls::HIDDEN_AVX512;
use hasten_probe::Feature;
use hasten_telemetry::{Algorithm, Counters, Event};
use hasten_tests::Side;
use hasten_tests::client::Client;
use hasten_tests::hello::{Reaction, react};
use hasten_tests::pki::Pki;
use hasten_tests::reload::{haproxy_master, reload};
use hasten_tests::subject::{alarms, crowd};
use hasten_tests::traffic::Traffic;
use rustls::HandshakeKind::{Full, Resumed};
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::version::{TLS12, TLS13};

use crate::running::Running;
use crate::system::{Check, Kind, System, Variables};

/// Handshakes by each protocol and group, at least.
const ENOUGH: u64 = 128;
const RELOADS: u64 = 3;
const EXCHANGES: [Algorithm; 3] = [Algorithm::X25519Derive, Algorithm::P256Derive, Algorithm::P384Derive];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuClass {
    Avx512,
    /// The same CPU with AVX-512 hidden.
    Avx2,
}

impl CpuClass {
    pub(crate) const BOTH: [Self; 2] = [Self::Avx512, Self::Avx2];

    /// Those that this CPU can be.
    pub(crate) fn here() -> impl Iterator<Item = Self> {
        let has_ifma = Feature::MULTIBUFFER.into_iter().all(Feature::is_usable);
        Self::BOTH.into_iter().filter(move |class| has_ifma || *class == Self::Avx2)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
        }
    }

    fn variables(self) -> Variables<'static> {
        match self {
            Self::Avx512 => &[],
            Self::Avx2 => &HIDDEN_AVX512,
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) system: &'a System,
    pub(crate) server: Kind,
    pub(crate) kind: KeyKind,
    pub(crate) certificate: &'a Certificate,
    pub(crate) cpu: CpuClass,
}

/// What was seen.
pub(crate) struct Findings {
    pub(crate) check: Check,
    pub(crate) cells: Vec<Cell>,
    /// Of signatures.
    pub(crate) signatures: Work,
    /// The library's own remark, which names the shortcuts that did not pass the trial.
    pub(crate) note: String,
    /// Handshakes while it was reloaded, and failures.
    pub(crate) reloaded: Option<(u64, u64)>,
    /// What is wrong.
    pub(crate) complaints: Vec<String>,
}

/// One protocol and group.
pub(crate) struct Cell {
    pub(crate) protocol: Protocol,
    pub(crate) group: Group,
    /// By the stock server, with an alert.
    pub(crate) is_refused: bool,
    pub(crate) handshakes: u64,
    pub(crate) failures: u64,
    pub(crate) is_resumed: bool,
    /// Of key exchanges.
    pub(crate) exchanges: Work,
    pub(crate) hybrids: u64,
}

/// Operations that were not the host library's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) batched: u64,
    pub(crate) single: u64,
}

/// Where operations are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Batched,
    Single,
    Openssl,
}

impl Work {
    fn way(self) -> Way {
        match self {
            Self { batched: 0, single: 0 } => Way::Openssl,
            Self { batched: 0, .. } => Way::Single,
            Self { .. } => Way::Batched,
        }
    }

    fn of(counters: &Counters, algorithms: &[Algorithm]) -> Self {
        let sum = |of: fn(&Counters, Algorithm) -> u64| algorithms.iter().map(|one| of(counters, *one)).sum();
        Self { batched: sum(|all, one| all[one].batched), single: sum(|all, one| all[one].single) }
    }
}

impl Case<'_> {
    pub(crate) fn run(&self, pki: &Pki) -> Findings {
        eprintln!("{self}");
        let check = self.system.check(self.server, self.cpu.variables());
        let mut findings = Findings::new(check);
        if !self.is_judged_rightly(&findings.check) {
            let Check { decision, reasons, .. } = &findings.check;
            findings.complain(format!("hasten check says {decision:?}: {reasons:?}"));
        }
        if let Err(error) = self.drive(&mut findings) {
            findings.complain(error);
        }
        if self.system.is_reloaded() && self.kind == KeyKind::P256 {
            findings.reloaded = self.reload(pki, &mut findings.complaints);
        }
        findings
    }

    /// Whether the advance verdict is true, and names the release that the server links, which is the one under test.
    fn is_judged_rightly(&self, check: &Check) -> bool {
        let decision = match self.server {
            _ if !self.system.is_known() => "skip",
            Kind::Apache => "standby",
            Kind::Nginx | Kind::Haproxy => "apply",
        };
        let release = format!("OpenSSL {}", check.openssl);
        let is_named = check.reasons.iter().any(|reason| reason.contains(&release));
        let is_right = check.decision == decision && self.system.has_release(&check.openssl);
        is_right && (is_named || self.server == Kind::Apache)
    }

    fn drive(&self, findings: &mut Findings) -> Result<(), String> {
        let stock = self.start(Side::Stock)?;
        let react = |server: &Running, group| reaction(server, &self.certificate.root, group);
        let refused: Vec<_> =
            Group::ALL.into_iter().filter(|group| react(&stock, *group) != Reaction::Handshake).collect();
        let server = self.start(Side::Accelerated)?;
        for group in Group::ALL {
            if refused.contains(&group) {
                findings.refused(group, &react(&stock, group), &react(&server, group));
                continue;
            }
            for protocol in [Protocol::Tls12, Protocol::Tls13] {
                if protocol == Protocol::Tls13 || !group.is_hybrid() {
                    self.cell(&server, protocol, group, findings)?;
                }
            }
        }
        findings.signatures = Work::of(&server.counters(), &[self.signature()]);
        findings.note = server.note();
        findings.complaints.extend(alarms(&server.log()));
        findings.judge(self);
        Ok(())
    }

    fn start(&self, side: Side) -> Result<Running, String> {
        self.system.start(side, self.server, self.certificate, self.cpu.variables())
    }

    fn signature(&self) -> Algorithm {
        match self.kind {
            KeyKind::P256 => Algorithm::P256Sign,
            KeyKind::P384 => Algorithm::P384Sign,
            _ => Algorithm::Rsa2048Sign,
        }
    }

    /// Where signatures and key exchanges may be done.
    fn expected(&self) -> (&[Way], &[Way]) {
        use Way::{Batched, Openssl, Single};
        match (self.cpu, self.kind, self.server) {
            _ if !self.system.is_known() => (&[Openssl], &[Openssl]),
            // Its threads wait for their own connections: a handshake is suspended only if that turns out to be sound.
            (CpuClass::Avx512, KeyKind::Rsa2048, Kind::Apache) => (&[Batched, Openssl], &[Batched, Single]),
            (CpuClass::Avx512, _, Kind::Apache) => (&[Batched], &[Batched, Single]),
            (CpuClass::Avx512, ..) => (&[Batched], &[Batched]),
            (CpuClass::Avx2, KeyKind::Rsa2048, _) => (&[Openssl], &[Single]),
            (CpuClass::Avx2, ..) => (&[Single], &[Single]),
        }
    }

    fn cell(
        &self,
        server: &Running,
        protocol: Protocol,
        group: Group,
        findings: &mut Findings,
    ) -> Result<(), String> {
        let load = Load { duration: Duration::from_millis(300), group, protocol, ..crowd() };
        let before = server.counters();
        let mut outcome = Outcome::default();
        while outcome.ops < ENOUGH && outcome.failures.total() == 0 {
            let more = drive::run(server.target(), &load).map_err(|error| error.to_string())?;
            if more.ops == 0 {
                return Err(format!(
                    "{protocol} by {group}: nobody is served: {}\n{}",
                    more.failures,
                    server.log()
                ));
            }
            outcome.append(&more);
        }
        let visits = self.visits(server, protocol, group);
        let new = server.counters().since(&before);
        let cell = Cell {
            protocol,
            group,
            is_refused: false,
            handshakes: outcome.ops,
            failures: outcome.failures.total(),
            is_resumed: visits.iter().eq(&[Ok(Full), Ok(Resumed), Ok(Resumed)]),
            exchanges: Work::of(&new, &EXCHANGES),
            hybrids: new[Event::HybridExchange],
        };
        if cell.failures > 0 || !cell.is_resumed {
            findings.complain(format!("{protocol} by {group}: {}; visits {visits:?}", outcome.failures));
        }
        let is_direct = new[Event::HkdfDirect] > 0 && new[Event::MacDirect] > 0;
        if protocol == Protocol::Tls13 && is_direct != self.system.is_known() {
            findings.complain(format!("{protocol}: key schedule and Finished without OpenSSL: {is_direct}"));
        }
        findings.cells.push(cell);
        Ok(())
    }

    /// A client that comes back.
    fn visits(
        &self,
        server: &Running,
        protocol: Protocol,
        group: Group,
    ) -> [Result<rustls::HandshakeKind, String>; 3] {
        let (version, others): (_, &[Group]) = match protocol {
            // There the list of groups also names the curves of keys.
            Protocol::Tls12 => (&TLS12, &[Group::P256, Group::P384]),
            Protocol::Tls13 => (&TLS13, &[]),
        };
        let others = others.iter().copied().filter(|other| *other != group);
        let groups: Vec<_> = [group].into_iter().chain(others).map(key_exchange).collect();
        let client =
            Client::trusting(&self.certificate.root).only(version).groups(&groups).resuming().build();
        [(); 3].map(|()| client.get(server.target().address).map(|answer| answer.handshake))
    }

    /// Reloads a server under load, if it is one that can be.
    fn reload(&self, pki: &Pki, complaints: &mut Vec<String>) -> Option<(u64, u64)> {
        let spec =
            self.system.spec(Side::Accelerated, self.server, self.certificate, self.cpu.variables())?;
        let spec = match self.server {
            Kind::Haproxy => spec.main_lines(&haproxy_master(pki.dir())),
            _ => spec,
        };
        let server = spec.workers(2).start().unwrap_or_else(|error| panic!("{self}: {error}"));
        let traffic = Traffic::start(server.target(), &crowd());
        for _ in 0..RELOADS {
            reload(&server);
        }
        let outcome = traffic.stop();
        if outcome.failures.total() > 0 || outcome.ops == 0 {
            complaints.push(format!("while it was reloaded: {} of {}", outcome.failures, outcome.ops));
        }
        complaints.extend(alarms(&server.log()));
        Some((outcome.ops, outcome.failures.total()))
    }
}

impl std::fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { system, server, kind, cpu, .. } = self;
        write!(f, "{}, {} with {kind}, {}", system.name, server.name(), cpu.name())
    }
}

impl Findings {
    fn new(check: Check) -> Self {
        let note = String::new();
        let signatures = Work::default();
        Self { check, cells: Vec::new(), signatures, note, reloaded: None, complaints: Vec::new() }
    }

    fn complain(&mut self, what: String) {
        self.complaints.push(what);
    }

    /// A group that the stock server does not have.
    fn refused(&mut self, group: Group, stock: &Reaction, reaction: &Reaction) {
        if reaction != stock || !matches!(stock, Reaction::Alert(_)) {
            self.complain(format!(
                "{group} is refused with {reaction:?}, and by the stock server with {stock:?}"
            ));
        }
        self.cells.push(Cell {
            protocol: Protocol::Tls13,
            group,
            is_refused: true,
            handshakes: 0,
            failures: 0,
            is_resumed: false,
            exchanges: Work::default(),
            hybrids: 0,
        });
    }

    /// Whether operations were done where they should be, and whether OpenSSL has the groups that its series promises.
    fn judge(&mut self, case: &Case) {
        let has_hybrids = case.system.has_hybrids(&self.check.openssl);
        let (signatures, exchanges) = case.expected();
        let mut wrong = Vec::new();
        for cell in &self.cells {
            let Cell { protocol, group, .. } = cell;
            if cell.is_refused != (group.is_hybrid() && !has_hybrids) {
                wrong.push(format!("{group}, refused: {}", cell.is_refused));
            }
            if !cell.is_refused && !exchanges.contains(&cell.exchanges.way()) {
                wrong.push(format!("{protocol} by {group}: {:?}", cell.exchanges));
            }
            let is_accelerated = !cell.is_refused && case.system.is_known();
            if is_accelerated && group.is_hybrid() && cell.hybrids == 0 {
                wrong.push(format!("{group}: left to OpenSSL"));
            }
        }
        if !signatures.contains(&self.signatures.way()) {
            wrong.push(format!("signatures: {:?}", self.signatures));
        }
        if self.note.contains("trial") {
            wrong.push(self.note.clone());
        }
        self.complaints.append(&mut wrong);
    }
}

/// A server's reaction to a client that has this group alone.
fn reaction(server: &Running, root: &Path, group: Group) -> Reaction {
    let client = Client::trusting(root).only(&TLS13).groups(&[key_exchange(group)]).build();
    react(server.target().address, &client.hello())
}

fn key_exchange(group: Group) -> &'static dyn SupportedKxGroup {
    match group {
        Group::X25519 => kx_group::X25519,
        Group::P256 => kx_group::SECP256R1,
        Group::P384 => kx_group::SECP384R1,
        Group::X25519MlKem768 => kx_group::X25519MLKEM768,
    }
}
