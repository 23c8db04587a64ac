//! Which process listens where, from the kernel's tables.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// `TCP_LISTEN`
const LISTENING: &str = "0A";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Listener {
    inode: u64,
    address: SocketAddr,
}

/// Where these processes accept connections, lowest port first, as addresses reachable from this machine.
pub fn addresses(pids: impl IntoIterator<Item = u32>) -> Vec<SocketAddr> {
    let mut listeners = Vec::new();
    let mut inodes = BTreeSet::new();
    for pid in pids {
        inodes.extend(sockets(pid));
        listeners.extend(table(pid));
    }
    let mut found: Vec<_> = listeners
        .into_iter()
        .filter(|listener| inodes.contains(&listener.inode))
        .map(|listener| reachable(listener.address))
        .collect();
    found.sort_by_key(|address| (address.port(), address.is_ipv6()));
    found.dedup();
    found
}

/// Where anybody accepts connections in the network namespace of a process, likewise.
pub fn in_namespace_of(pid: u32) -> Vec<SocketAddr> {
    let mut found: Vec<_> = table(pid).into_iter().map(|listener| reachable(listener.address)).collect();
    found.sort_by_key(|address| (address.port(), address.is_ipv6()));
    found.dedup();
    found
}

/// The process that listens on a port, if it may be seen.
pub fn owner(port: u16) -> Option<(u32, String)> {
    let inodes: BTreeSet<_> = table(std::process::id())
        .into_iter()
        .filter(|listener| listener.address.port() == port)
        .map(|listener| listener.inode)
        .collect();
    let pids =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pid = pids.into_iter().find(|&pid: &u32| sockets(pid).iter().any(|inode| inodes.contains(inode)))?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some((pid, name.trim().to_owned()))
}

/// An address bound to all interfaces is reached through loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        // A socket of both families; if it is IPv6 only, nobody will answer.
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn sockets(pid: u32) -> Vec<u64> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| inode(&fs::read_link(file.path()).ok()?)).collect()
}

/// `socket:[12345]`
fn inode(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// All listening sockets in the network namespace of a process.
fn table(pid: u32) -> Vec<Listener> {
    let read = |name| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    [read("tcp"), read("tcp6")].iter().flat_map(|table| table.lines().filter_map(listener)).collect()
}

fn listener(line: &str) -> Option<Listener> {
    let fields: Vec<_> = line.split_ascii_whitespace().collect();
    if *fields.get(3)? != LISTENING {
        return None;
    }
    Some(Listener { address: address(fields.get(1)?)?, inode: fields.get(9)?.parse().ok()? })
}

/// `0100007F:1F90`: words in host byte order, the port in network order.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_le_bytes());
    let ip = match ip.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let bytes = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            let ip = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
            ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4)
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn addresses_are_read_in_the_kernels_notation() {
        let read = |text| address(text).map(|address| address.to_string());
        assert_eq!(read("0100007F:1F90").as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(read("00000000000000000000000001000000:0050").as_deref(), Some("[::1]:80"));
        assert_eq!(read("0000000000000000FFFF00000100007F:0050").as_deref(), Some("127.0.0.1:80"));
        assert_eq!((read("0100007F"), read("01:50"), read("zzzzzzzz:0050")), (None, None, None));
    }

    #[test]
    fn a_listener_of_this_process_is_found_with_its_owner() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let own = std::process::id();
        assert!(addresses([own]).contains(&address) && in_namespace_of(own).contains(&address));
        assert_eq!(owner(address.port()).map(|(pid, _)| pid), Some(own));
        drop(listener);
        assert!(!addresses([own]).contains(&address));
    }
}
