//! What a process holds: descriptors, memory, mappings.

use std::fs;
use std::net::SocketAddr;
use std::ops::Range;

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

/// Stacks of the library on which handshakes wait: 256 KiB above a guard page.
#[must_use]
pub fn stacks(pid: u32) -> usize {
    const STACK: Range<u64> = 256 << 10..1 << 20;
    const GUARD: u64 = 4 << 10;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mappings: Vec<_> = maps.lines().filter_map(mapping).collect();
    let is_stack = |pair: &&[(Range<u64>, &str)]| {
        let [(below, nothing), (above, writable)] = pair else { return false };
        let length = |range: &Range<u64>| range.end - range.start;
        (*nothing, *writable) == ("---p", "rw-p")
            && below.end == above.start
            && length(below) == GUARD
            && STACK.contains(&length(above))
    };
    mappings.windows(2).filter(is_stack).count()
}

/// The addresses and permissions of a line of `/proc/PID/maps`.
fn mapping(line: &str) -> Option<(Range<u64>, &str)> {
    let (addresses, rest) = line.split_once(' ')?;
    let (start, end) = addresses.split_once('-')?;
    let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).ok());
    Some((start?..end?, rest.split_once(' ')?.0))
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
