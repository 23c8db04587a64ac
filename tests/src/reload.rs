//! Reloading a server, as its administrator does.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use hasten_bench::server::{Server, ServerKind};
use rustix::process::Signal;

use crate::wait;

/// Lines of HAProxy's `global` section, with which it can be reloaded without losing connections: new processes take the
/// listening sockets over, while even stock HAProxy loses some if it rebinds its port.
#[must_use]
pub fn haproxy_master(directory: &Path) -> String {
    let socket = directory.join("stats");
    format!("master-worker\n    stats socket {} level admin expose-fd listeners", socket.display())
}

/// Reloads nginx, or HAProxy with [`haproxy_master`]; returns when the old workers have ended.
pub fn reload(server: &Server) {
    let signal = match server.kind() {
        ServerKind::Haproxy => Signal::USR2,
        _ => Signal::HUP,
    };
    let old = workers(server);
    // Workers serve before HAProxy's master is ready: until then even a stock one ignores the signal.
    wait::until("the master to be ready", || catches(server.pid(), signal));
    server.signal(signal).unwrap();
    wait::until("the old workers to end", || {
        let now = workers(server);
        !now.is_empty() && now.is_disjoint(&old)
    });
}

fn workers(server: &Server) -> BTreeSet<u32> {
    server.workers().into_iter().collect()
}

/// Whether a process has a handler for a signal.
fn catches(process: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
    u64::from_str_radix(caught, 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}
