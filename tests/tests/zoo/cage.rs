//! What every server of the zoo gets: a directory, a certificate, a port, something behind it, and clients.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_telemetry::{Counters, Event};
use hasten_tests::client::Client;
use hasten_tests::parallel::repeat;
use hasten_tests::pki::Pki;
use hasten_tests::program::{EAGER, EVERY_BATCH, preload, without_library};
use hasten_tests::{Side, tools, wait};
use rustix::process::{Pid, Signal, kill_process_group};
use rustls::version::{TLS12, TLS13};

const PATIENCE: Duration = Duration::from_secs(60);
/// For a server that is starting: it may accept a connection and never answer it because it was not ready yet (BIND,
/// stock).
const SHORT_PATIENCE: Duration = Duration::from_secs(5);
const CLIENTS: usize = 8;
pub(crate) const PYTHON: &str = "/usr/bin/python3";
pub(crate) const PHP: &str = "php";

/// A server, how to start it and what to ask it.
///
/// In texts, `{dir}`, `{port}`, `{back}`, `{chain}`, `{key}`, `{bundle}` and `{root}` are replaced by the cage's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Animal {
    pub(crate) name: &'static str,
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
    pub(crate) arguments: &'static [&'static str],
    /// Files by their names, written before it starts.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// A shell command that must be run first.
    pub(crate) prepare: &'static str,
    /// Environment variables.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// What is said before TLS begins, and the server's answers.
    pub(crate) preamble: &'static [Exchange],
    pub(crate) question: &'static [u8],
    /// A part of the answer.
    pub(crate) answer: &'static [u8],
    pub(crate) visits: usize,
}

/// Bytes for the server, and what its answer contains; the first are empty if the server speaks first, the second if
/// the handshake is the answer.
pub(crate) type Exchange = (&'static [u8], &'static [u8]);

pub(crate) const HTTP: (&[u8], &[u8]) =
    (b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"hello from the zoo");

/// How a visit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    Answered(rustls::ProtocolVersion),
    Left,
    Failed(String),
}

/// Shared by both sides.
pub(crate) struct Cage {
    pki: Pki,
    certificate: Certificate,
    back: SocketAddr,
}

/// A running server; dropping it ends all its processes.
pub(crate) struct Caged {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// Stock and accelerated, with both kinds of keys.
pub(crate) fn compare(animal: &Animal) {
    for kind in [KeyKind::Rsa2048, KeyKind::P256] {
        let _ = Cage::new(kind).compare(animal);
    }
}

impl Cage {
    pub(crate) fn new(kind: KeyKind) -> Self {
        let pki = Pki::new();
        let certificate = pki.certificate(kind);
        pki.write("hello.txt", "hello from the zoo\n");
        Self { certificate, pki, back: listen_behind() }
    }

    /// The same visits to both, with the same outcome; prints how many handshakes were suspended, and returns all
    /// counters.
    pub(crate) fn compare(&self, animal: &Animal) -> Counters {
        let (expected, _) = self.observe(animal, Side::Stock);
        let (visits, counters) = self.observe(animal, Side::Accelerated);
        let failed = expected.iter().filter(|visit| matches!(visit, Visit::Failed(_))).count();
        assert_eq!(failed, 0, "{}: stock fails: {expected:?}", animal.name);
        let differing: Vec<_> =
            visits.iter().zip(&expected).filter(|(visit, expected)| visit != expected).collect();
        assert!(
            differing.is_empty(),
            "{}: {} of {} visits differ (accelerated, stock): {:?}",
            animal.name,
            differing.len(),
            visits.len(),
            &differing[..differing.len().min(6)]
        );
        let [finished, suspended] = [Event::HandshakeFinished, Event::Suspended].map(|event| counters[event]);
        eprintln!("{}: {finished} handshakes finished, {suspended} suspensions", animal.name);
        counters
    }

    fn observe(&self, animal: &Animal, side: Side) -> (Vec<Visit>, Counters) {
        let caged = self.start(animal, side);
        let visits = self.visit(animal, &caged);
        let counters = match side {
            Side::Stock => Counters::default(),
            Side::Accelerated => caged.counters(),
        };
        (visits, counters)
    }

    /// All clients, several at a time.
    pub(crate) fn visit(&self, animal: &Animal, caged: &Caged) -> Vec<Visit> {
        let clients: Vec<_> = (0..2 * CLIENTS).map(|index| self.client(index % 2 == 0)).collect();
        repeat(CLIENTS, animal.visits / CLIENTS, |index| {
            let thread = index / (animal.visits / CLIENTS);
            // Every second one in the older version; all but every third resume what they can.
            visit(animal, caged, &clients[2 * thread + index % 2], index, PATIENCE)
        })
    }

    fn client(&self, is_old: bool) -> Client {
        let builder = Client::trusting(&self.certificate.root).resuming();
        builder.only(if is_old { &TLS12 } else { &TLS13 }).build()
    }

    /// A server that answers.
    pub(crate) fn start(&self, animal: &Animal, side: Side) -> Caged {
        let mut caged = self.launch(animal, side);
        let scout = self.client(false);
        wait::until(animal.name, || {
            caged.lives(&self.pki)
                && matches!(visit(animal, &caged, &scout, 0, SHORT_PATIENCE), Visit::Answered(_))
        });
        caged
    }

    /// A server that may not listen yet.
    pub(crate) fn launch(&self, animal: &Animal, side: Side) -> Caged {
        let address = free_address();
        let fill = |text: &str| self.fill(text, address);
        for (name, text) in animal.files {
            self.pki.write(name, &fill(text));
        }
        if !animal.prepare.is_empty() {
            tools::run(Command::new("sh").args(["-ec", &fill(animal.prepare)]).current_dir(self.pki.dir()));
        }
        let mut command = Command::new(program(animal));
        command.args(animal.arguments.iter().map(|argument| fill(argument))).current_dir(self.pki.dir());
        match side {
            Side::Stock => without_library(&mut command),
            Side::Accelerated => preload(&mut command, &[EAGER, EVERY_BATCH]),
        }
        command.envs(animal.variables.iter().map(|(name, value)| (name, fill(value))));
        let log = fs::File::create(self.pki.dir().join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).process_group(0);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Caged { child, address }
    }

    pub(crate) fn fill(&self, text: &str, address: SocketAddr) -> String {
        let Certificate { chain, key, bundle, root, .. } = &self.certificate;
        let mut text = text
            .replace("{dir}", &self.pki.dir().display().to_string())
            .replace("{port}", &address.port().to_string())
            .replace("{back}", &self.back.port().to_string());
        for (name, path) in [("{chain}", chain), ("{key}", key), ("{bundle}", bundle), ("{root}", root)] {
            text = text.replace(name, &path.display().to_string());
        }
        text
    }
}

/// A port for a server that may take seconds to start: below 32768, where ports are not assigned to other connections
/// meanwhile.
fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(37);
    let ports = std::iter::repeat_with(|| first.wrapping_add(NEXT.fetch_add(1, Relaxed)) % 12_000 + 20_000);
    let mut listeners = ports.filter_map(|port| {
        TcpListener::bind((Ipv4Addr::LOCALHOST, u16::try_from(port).expect("below 32000"))).ok()
    });
    listeners.next().and_then(|listener| listener.local_addr().ok()).expect("a free port")
}

/// What it is started with: for servers written in Python or PHP, another interpreter may be specified.
fn program(animal: &Animal) -> PathBuf {
    let variable = match animal.program {
        PYTHON => "ZOO_PYTHON",
        PHP => "ZOO_PHP",
        _ => "",
    };
    let other = Some(variable).filter(|name| !name.is_empty()).and_then(env::var_os);
    other.map_or_else(|| tools::tool(animal.program, animal.package), PathBuf::from)
}

impl Caged {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Zero if the server has left the library alone, or put it into a child that has ended.
    pub(crate) fn counters(&self) -> Counters {
        let mut total = Counters::default();
        for page in hasten_telemetry::pages_of(self.child.id()).unwrap_or_default() {
            if let Ok(page) = page.read() {
                total += &page.total();
            }
        }
        total
    }

    /// A server that has ended fails the test with its output.
    fn lives(&mut self, pki: &Pki) -> bool {
        if let Some(status) = self.child.try_wait().unwrap() {
            let log = fs::read(pki.dir().join("log")).unwrap_or_default();
            panic!("it ended with {status}\n{}", String::from_utf8_lossy(&log));
        }
        true
    }
}

impl Drop for Caged {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::TERM);
        for _ in 0..100 {
            if self.child.try_wait().is_ok_and(|status| status.is_some()) {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The backend of terminating proxies: it answers every question with the same text.
fn listen_behind() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut question = [0; 4096];
                if socket.read(&mut question).is_ok_and(|length| length > 0) {
                    let _ = socket.write_all(b"HTTP/1.0 200 OK\r\n\r\nhello from the zoo\n");
                }
            });
        }
    });
    address
}

/// One in ten leaves after its first message, one in ten after the server's answer, one in ten is slow.
fn visit(animal: &Animal, caged: &Caged, client: &Client, index: usize, patience: Duration) -> Visit {
    let talk = || -> std::io::Result<Visit> {
        let mut socket = TcpStream::connect(caged.address)?;
        socket.set_read_timeout(Some(patience))?;
        socket.set_nodelay(true)?;
        for (question, answer) in animal.preamble {
            socket.write_all(question)?;
            read_until(&mut socket, answer)?;
        }
        let mut tls = client.connection();
        if matches!(index % 10, 3 | 4) {
            tls.write_tls(&mut socket)?;
            if index % 10 == 4 {
                let _ = socket.read(&mut [0; 512])?;
            }
            let _ = socket.shutdown(Shutdown::Both);
            return Ok(Visit::Left);
        }
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
            if index % 10 == 7 {
                thread::sleep(Duration::from_millis(5));
            }
        }
        let version = tls.protocol_version().expect("the handshake is over");
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        stream.write_all(animal.question)?;
        read_until(&mut stream, animal.answer)?;
        tls.send_close_notify();
        let _ = tls.write_tls(&mut socket);
        Ok(Visit::Answered(version))
    };
    talk().unwrap_or_else(|error| Visit::Failed(error.to_string()))
}

fn read_until(stream: &mut impl Read, answer: &[u8]) -> std::io::Result<()> {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    while !answer.is_empty() && !all.windows(answer.len()).any(|window| window == answer) {
        let length = stream.read(&mut part)?;
        if length == 0 {
            let mut said = String::new();
            let _ = write!(said, "it ends after {:?}", String::from_utf8_lossy(&all));
            return Err(std::io::Error::other(said));
        }
        all.extend_from_slice(&part[..length]);
    }
    Ok(())
}
