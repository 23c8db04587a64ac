//! What a process holds: descriptors, memory, mappings.

use std::fs;
use std::net::SocketAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    pub descriptors: usize,
    pub resident_kib: u64,
    pub mappings: usize,
}

impl Footprint {
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let proc = |file: &str| format!("/proc/{pid}/{file}");
        let status = fs::read_to_string(proc("status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident_kib = resident.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        Self {
            descriptors: fs::read_dir(proc("fd")).map_or(0, Iterator::count),
            resident_kib: resident_kib.unwrap_or(0),
            mappings: fs::read_to_string(proc("maps")).unwrap_or_default().lines().count(),
        }
    }
}

/// Connections to a listening address that the server has not yet accepted.
#[must_use]
pub fn accept_queue(address: SocketAddr) -> usize {
    const LISTEN: &str = "0A";
    let local = format!("0100007F:{:04X}", address.port());
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let listening = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let queues = listening
        .filter(|fields| fields.len() > 4 && fields[1] == local && fields[3] == LISTEN)
        .filter_map(|fields| usize::from_str_radix(fields[4].split_once(':')?.1, 16).ok());
    queues.sum()
}

/// Whether the preload library is mapped into a process.
#[must_use]
pub fn is_preloaded(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default().contains("libhasten_tls.so")
}
