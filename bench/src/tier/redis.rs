//! A Redis that keeps nothing on disk, stock or under `hasten run --tier`.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::affinity::Pinned;
use crate::cpu::CpuTimes;
use crate::error::BenchError;
use crate::keeper::Keeper;
use crate::port::Port;

/// What `hasten top` says of its memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tiers {
    pub(super) share: f64,
    pub(super) target: f64,
}

pub(super) struct Redis {
    child: Child,
    port: Port,
    // Dropped before the folder, which it would remove.
    _keeper: Keeper,
    _folder: TempDir,
}

/// Where the program is.
pub(super) fn program() -> Result<PathBuf, BenchError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join("redis-server")).find(|file| file.is_file());
    found.ok_or(BenchError::Redis)
}

/// `Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=…`: version and allocator.
pub(super) fn versions() -> Result<(String, String), BenchError> {
    let output = Command::new(program()?).arg("--version").output().map_err(BenchError::RedisRun)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let after = |mark| text.split_whitespace().find_map(|word| word.strip_prefix(mark));
    Ok((after("v=").unwrap_or("unknown").to_owned(), after("malloc=").unwrap_or("unknown").to_owned()))
}

impl Redis {
    pub(super) fn start(tier: Option<(&Path, &str)>, cpu: Option<usize>) -> Result<Self, BenchError> {
        let program = program()?;
        let folder = tempfile::tempdir().map_err(BenchError::RedisRun)?;
        let port = Port::reserve().map_err(BenchError::RedisRun)?;
        let mut command = match tier {
            Some((hasten, tier)) => {
                let mut command = Command::new(hasten);
                command.args(["run", "--quiet", "--tier", tier, "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.args(["--bind", "127.0.0.1", "--port", &port.address().port().to_string()]);
        command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(folder.path());
        command.env_remove("LD_PRELOAD").env_remove("HASTEN_TIER").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut keeper = Keeper::of(folder.path());
        let pinned = cpu.map(Pinned::to).transpose();
        let child = pinned.and_then(|_pinned| command.spawn()).map_err(BenchError::RedisRun)?;
        keeper.watch(child.id());
        let mut redis = Self { child, port, _keeper: keeper, _folder: folder };
        redis.wait_until_ready()?;
        Ok(redis)
    }

    fn wait_until_ready(&mut self) -> Result<(), BenchError> {
        const LIMIT: Duration = Duration::from_secs(30);
        let deadline = Instant::now() + LIMIT;
        let is_there = |address: SocketAddr| {
            let mut stream = TcpStream::connect(address).ok()?;
            stream.write_all(b"PING\r\n").ok()?;
            let mut answer = [0; 7];
            stream.read_exact(&mut answer).ok().filter(|()| answer == *b"+PONG\r\n")
        };
        while is_there(self.address()).is_none() {
            if let Some(status) = self.child.try_wait().map_err(BenchError::RedisRun)? {
                return Err(BenchError::RedisAnswer(format!("it ended at once with {status}")));
            }
            if Instant::now() > deadline {
                return Err(BenchError::RedisAnswer(format!("nothing for {} s", LIMIT.as_secs())));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.port.address()
    }

    pub(super) fn cpu(&self) -> CpuTimes {
        CpuTimes::of_tree(self.child.id())
    }

    /// Until the scheduler's accounts are complete.
    pub(super) fn settle(&self) {
        thread::sleep(Duration::from_millis(20));
    }

    /// Resident memory in millions of bytes.
    pub(super) fn resident(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kib.unwrap_or_default() * 1024.0 / 1e6
    }

    /// Where its memory is; an error if the library is not in use, since two equal sides would be compared.
    pub(super) fn tiers(&self, hasten: &Path) -> Result<Tiers, BenchError> {
        let output = Command::new(hasten).args(["top", "--once", "--json"]).output();
        let output = output.map_err(BenchError::RedisRun)?;
        tiers_of(&output.stdout, self.child.id()).ok_or(BenchError::NotTiered)
    }
}

/// Of a process in `hasten top`'s document.
fn tiers_of(document: &[u8], pid: u32) -> Option<Tiers> {
    let document: Value = serde_json::from_slice(document).ok()?;
    let programs = document["programs"].as_array()?;
    let mut processes = programs.iter().filter_map(|program| program["processes"].as_array()).flatten();
    let tier = processes.find(|one| one["pid"] == pid && one["tier"].is_object()).map(|one| &one["tier"])?;
    Some(Tiers { share: tier["share"].as_f64()?, target: tier["target_share"].as_f64()? })
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_the_process() {
        let document = br#"{"programs": [
            {"processes": [{"pid": 6}, {"pid": 7}]},
            {"processes": [{"pid": 7, "tier": {"share": 0.74, "target_share": 0.75, "near_bytes": 1}}]}
        ]}"#;
        assert_eq!(tiers_of(document, 7), Some(Tiers { share: 0.74, target: 0.75 }));
        assert_eq!(tiers_of(document, 6), None);
        assert_eq!(tiers_of(b"{}", 7), None);
    }
}
