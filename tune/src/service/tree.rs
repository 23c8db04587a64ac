//! All processes of a service, whoever their parents are now.

use std::collections::BTreeSet;

use hasten_bench::cpu::{self, CpuTimes};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::process::{self, Process, Stat};

/// The tree of one service; there is one at a time.
#[derive(Debug)]
pub(super) struct Tree {
    /// What was started.
    root: Process,
    /// This process's session, which a program leaves when it moves to the background.
    own_session: u32,
    /// Everything that was ever seen below the root.
    seen: BTreeSet<Process>,
    /// Children of this process that the tree did not start, so that they are not taken for its own.
    strangers: BTreeSet<Process>,
}

impl Tree {
    /// `before` contains the children that this process had before it started `root`.
    pub(super) fn new(root: u32, before: BTreeSet<Process>) -> Self {
        let own_session = Stat::of(process::own()).map_or(0, |stat| stat.session);
        let root = Process { pid: root, start: Stat::of(root).map_or(0, |stat| stat.start) };
        Self { root, own_session, seen: BTreeSet::from([root]), strangers: before }
    }

    /// The children of this process, whoever started them.
    pub(super) fn children_of_this_process() -> BTreeSet<Process> {
        cpu::children(process::own()).into_iter().filter_map(Process::of).collect()
    }

    /// The present processes, the root first if it is among them; ended ones are reaped.
    pub(super) fn processes(&mut self) -> Vec<Process> {
        let mut pending: Vec<Process> = self.adopted();
        pending.extend(self.seen.iter().copied().filter(|process| process.alive().is_some()));
        let mut found = BTreeSet::new();
        while let Some(process) = pending.pop() {
            if process.alive().is_some() && found.insert(process) {
                pending.extend(cpu::children(process.pid).into_iter().filter_map(Process::of));
            }
        }
        // Processes that are gone are forgotten: their numbers may be reused.
        self.seen.clone_from(&found);
        let mut processes: Vec<_> = found.into_iter().collect();
        processes.sort_by_key(|process| *process != self.root);
        processes
    }

    pub(super) fn cpu_times(&mut self) -> (CpuTimes, u64) {
        let processes = self.processes();
        let ticks = processes.iter().filter_map(|process| process.alive()).map(|stat| stat.ticks).sum();
        let times = processes.iter().map(|process| CpuTimes::of_tree(process.pid));
        (times.fold(CpuTimes::default(), CpuTimes::and), ticks)
    }

    /// Signals every present process.
    pub(super) fn signal_all(&mut self, signal: Signal) {
        for process in self.processes() {
            send(process, signal);
        }
    }

    pub(super) fn signal_root(&self, signal: Signal) {
        send(self.root, signal);
    }

    /// Orphans of the tree that are now children of this process; ended ones are reaped.
    fn adopted(&self) -> Vec<Process> {
        let mut adopted = Vec::new();
        for child in Self::children_of_this_process() {
            let Some(stat) = Stat::of(child.pid) else { continue };
            if child == self.root || !self.is_own(child, &stat) {
                continue;
            }
            if stat.ended {
                let _ = pid(child).map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
            } else {
                adopted.push(child);
            }
        }
        adopted
    }

    /// Whether a child of this process belongs to the tree: it was seen there, is in its group, or has left this
    /// process's session, which our own children do not.
    fn is_own(&self, child: Process, stat: &Stat) -> bool {
        let from_tree = stat.group == self.root.pid || stat.session != self.own_session;
        self.seen.contains(&child) || (from_tree && !self.strangers.contains(&child))
    }
}

fn send(process: Process, signal: Signal) {
    // It may end between the look and the signal; its number is not reused that soon.
    if process.alive().is_some()
        && let Some(pid) = pid(process)
    {
        let _ = kill_process(pid, signal);
    }
}

fn pid(process: Process) -> Option<Pid> {
    Pid::from_raw(i32::try_from(process.pid).ok()?)
}
