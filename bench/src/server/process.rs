//! A running server: its process tree, its log, and its end.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use super::{ServerError, ServerKind};
use crate::affinity::Pinned;
use crate::cpu::{self, CpuTimes};
use crate::drive::Target;
use crate::keeper::Keeper;
use crate::port::Port;

const START_LIMIT: Duration = Duration::from_secs(15);
const STOP_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

/// A server that accepts connections. Dropping it ends all its processes.
#[derive(Debug)]
pub struct Server {
    kind: ServerKind,
    child: Child,
    target: Target,
    _port: Port,
    // Dropped before the folder, which it would remove.
    _keeper: Keeper,
    dir: TempDir,
}

impl Server {
    pub(super) fn spawn(
        kind: ServerKind,
        mut command: Command,
        dir: TempDir,
        port: Port,
        target: Target,
        cpu: Option<usize>,
    ) -> Result<Self, ServerError> {
        let prepare = |source| ServerError::Prepare { kind, source };
        let output = File::create(dir.path().join("output.log")).map_err(prepare)?;
        command.stdin(Stdio::null()).stdout(output.try_clone().map_err(prepare)?).stderr(output);
        // Its own group: Ctrl-C at the terminal is ours to handle, and the group can be ended as a whole.
        command.process_group(0);
        let mut keeper = Keeper::of(dir.path());
        let program = command.get_program().to_owned();
        let pinned = cpu.map(Pinned::to).transpose();
        let child = pinned.and_then(|_pinned| command.spawn());
        let child = child.map_err(|source| ServerError::Spawn { program: program.into(), source })?;
        keeper.watch(child.id());
        let mut server = Self { kind, child, target, _port: port, _keeper: keeper, dir };
        server.wait_until_ready()?;
        Ok(server)
    }

    #[must_use]
    pub fn kind(&self) -> ServerKind {
        self.kind
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.target.address
    }

    /// What the driver needs to know: address, first certificate, body.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The process that was started: nginx's master, or HAProxy.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The master's children; empty for HAProxy.
    #[must_use]
    pub fn workers(&self) -> Vec<u32> {
        cpu::children(self.pid())
    }

    #[must_use]
    pub fn cpu_times(&self) -> CpuTimes {
        CpuTimes::of_tree(self.pid())
    }

    /// Directory of the configuration and the logs, for a test's own files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Everything that the server has written: standard output and error, then its log.
    #[must_use]
    pub fn log(&self) -> String {
        let read = |name| fs::read(self.dir.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&[read("output.log"), read("error.log")].concat()).into_owned()
    }

    /// Sends a signal to the first process only.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(pid_of(&self.child), signal)?)
    }

    /// The exit status if the first process has ended.
    pub fn exit_status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    #[must_use]
    pub fn is_alive(&mut self) -> bool {
        matches!(self.exit_status(), Ok(None))
    }

    /// Ends the server as its administrator would and waits for it; `None` if it had to be killed.
    pub fn stop(mut self) -> io::Result<Option<ExitStatus>> {
        self.terminate()
    }

    fn terminate(&mut self) -> io::Result<Option<ExitStatus>> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(Some(status));
        }
        self.signal(Signal::TERM)?;
        let deadline = Instant::now() + STOP_LIMIT;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            thread::sleep(POLL);
        }
        Ok(None)
    }

    fn wait_until_ready(&mut self) -> Result<(), ServerError> {
        let deadline = Instant::now() + START_LIMIT;
        let why = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break format!("it ended at once with {status}"),
                Ok(None) => {}
                Err(error) => break error.to_string(),
            }
            if TcpStream::connect(self.address()).is_ok() {
                return Ok(());
            }
            if Instant::now() > deadline {
                let seconds = START_LIMIT.as_secs();
                break format!("{} accepts no connections after {seconds} s", self.address());
            }
            thread::sleep(POLL);
        };
        Err(ServerError::Start { kind: self.kind, why, log: self.log() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.terminate();
        // Whatever is left of the group: workers of a killed master, a second master after a binary upgrade.
        let _ = kill_process_group(pid_of(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}
