//! A server run by Node.js: started, measured, and stopped when dropped.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::thread::{CpuSet, sched_setaffinity};
use tempfile::TempDir;

use super::error::NodeError;
use super::recipe::Recipe;
use crate::cpu::CpuTimes;
use crate::duel::Resident;

const STOP_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// What to start, and how to tell that it is ready.
pub(super) struct Start<'a> {
    pub(super) what: &'a str,
    pub(super) directory: &'a Path,
    pub(super) script: &'a str,
    pub(super) limit: Duration,
    /// The address once it answers; the file is where one of our workloads writes its port.
    pub(super) ready: &'a dyn Fn(&Path) -> Option<SocketAddr>,
}

#[derive(Debug)]
pub(super) struct NodeServer {
    child: Child,
    address: SocketAddr,
    scratch: TempDir,
}

impl NodeServer {
    pub(super) fn start(
        recipe: &Recipe,
        start: &Start<'_>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self, NodeError> {
        let failed = |error: io::Error| NodeError::Start {
            what: start.what.to_owned(),
            why: error.to_string(),
            log: String::new(),
        };
        let scratch = tempfile::Builder::new().prefix("hasten-node-").tempdir().map_err(failed)?;
        let output = File::create(log_path(&scratch)).map_err(failed)?;
        let errors = output.try_clone().map_err(failed)?;
        let port = scratch.path().join("port");
        let script: [&OsStr; 2] = [start.script.as_ref(), port.as_os_str()];
        let child = recipe.spawn(start.directory, &script, Stdio::from(output), Stdio::from(errors))?;
        let mut server = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)), scratch };
        server.address = server.wait_until_ready(start, &port, stopped)?;
        Ok(server)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn cpu_times(&self) -> CpuTimes {
        CpuTimes::of_tree(self.child.id())
    }

    /// Everything it has written to standard output and error.
    pub(super) fn log(&self) -> PathBuf {
        log_path(&self.scratch)
    }

    pub(super) fn resident(&self) -> Option<Resident> {
        parse_status(&fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?)
    }

    /// Whether this process was given the plugin.
    pub(super) fn has_plugin(&self) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", self.child.id())).unwrap_or_default();
        let mut variables = environment.split(|&byte| byte == 0);
        variables.any(|variable| {
            let text = String::from_utf8_lossy(variable);
            text.starts_with("NODE_OPTIONS=") && text.contains("register.js")
        })
    }

    /// Pins the main thread, and only that, to one CPU.
    pub(super) fn pin_main_thread(&self, cpu: usize) -> io::Result<()> {
        let mut only = CpuSet::new();
        only.set(cpu);
        Ok(sched_setaffinity(Some(self.pid()), &only)?)
    }

    /// Asks it to end, and waits, so that its log is complete.
    pub(super) fn stop(&mut self) {
        let _ = kill_process(self.pid(), Signal::TERM);
        let deadline = Instant::now() + STOP_LIMIT;
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(POLL);
        }
    }

    fn wait_until_ready(
        &mut self,
        start: &Start<'_>,
        port: &Path,
        stopped: &dyn Fn() -> bool,
    ) -> Result<SocketAddr, NodeError> {
        let deadline = Instant::now() + start.limit;
        let why = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break format!("it ended at once with {status}"),
                Ok(None) => {}
                Err(error) => break error.to_string(),
            }
            if let Some(address) = (start.ready)(port) {
                return Ok(address);
            }
            if stopped() {
                return Err(NodeError::Stopped);
            }
            if Instant::now() > deadline {
                break format!("it does not answer after {} s", start.limit.as_secs());
            }
            thread::sleep(POLL);
        };
        let log = fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log[log.len().saturating_sub(2000)..]).into_owned();
        Err(NodeError::Start { what: start.what.to_owned(), why, log })
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for NodeServer {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
        // Whatever is left of the group.
        let _ = kill_process_group(self.pid(), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// For one of our workloads: it writes its port once it listens.
pub(super) fn written_port(file: &Path) -> Option<SocketAddr> {
    let port = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    Some(SocketAddr::from(([127, 0, 0, 1], port)))
}

fn log_path(scratch: &TempDir) -> PathBuf {
    scratch.path().join("output.log")
}

/// `VmHWM` and `VmRSS` of `/proc/PID/status`, which are in KiB.
fn parse_status(status: &str) -> Option<Resident> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    Some(Resident { peak: field("VmHWM:")? * 1024, now: field("VmRSS:")? * 1024 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_kernels_table() {
        let status = "Name:\tnode\nVmPeak:\t  999 kB\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n";
        assert_eq!(parse_status(status), Some(Resident { peak: 2 << 20, now: 1 << 20 }));
        assert_eq!(parse_status("Name:\tkthread\n"), None);
    }
}
