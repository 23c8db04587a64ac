//! A second process that ends what this one has started, should this one be killed.
//!
//! After `kill -9` nobody cleans up, and the kernel's signal at a parent's death reaches only children: not a server's
//! workers, nor what npm has started. So the keeper is told of every process seen in the service, through a pipe that
//! nobody else holds open. When the pipe ends, the keeper ends the processes that still exist, and undoes what the
//! journal says.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hasten_bench::cpu;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::journal::{Replayed, replay};
use crate::service::process::{self, Process, Stat};

/// The pipe of this process's keeper.
static KEEPER: OnceLock<Mutex<ChildStdin>> = OnceLock::new();

/// How long processes may take to end before they are killed, and killed ones to vanish before they are given up.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
/// Beyond this number, the processes are searched for those that have ended.
const MANY: usize = 1024;

/// Starts this process's keeper, once; `hasten` is the program to call with `tune --keep-watch`.
pub fn start(hasten: &Path) -> io::Result<()> {
    let mut command = Command::new(hasten);
    command.args(["tune", "--keep-watch"]).current_dir("/");
    // Killing this process with its group leaves the keeper alive, and so does Ctrl-C.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn()?;
    if let Some(pipe) = child.stdin.take() {
        let _ = KEEPER.set(Mutex::new(pipe));
    }
    watch(process::own());
    Ok(())
}

/// Tells the keeper about a process, if there is a keeper. The first process is the owner.
pub(crate) fn watch(pid: u32) {
    if let Some(process) = Process::of(pid) {
        watch_process(process);
    }
}

pub(crate) fn watch_process(Process { pid, start }: Process) {
    let Some(keeper) = KEEPER.get() else { return };
    let mut pipe = keeper.lock().unwrap_or_else(PoisonError::into_inner);
    // If the keeper is gone, the next hasten does its work.
    let _ = writeln!(pipe, "{pid} {start}");
}

/// The keeper's work: listens until the pipe ends, and then cleans up. Returns what was done, in words.
pub fn keep(input: impl BufRead) -> Vec<String> {
    let mut records = input.lines().map_while(Result::ok).filter_map(|line| parse(&line));
    let Some(owner) = records.next() else { return Vec::new() };
    let mut known = BTreeSet::new();
    for process in records {
        known.insert(process);
        if known.len() > MANY {
            known.retain(|process| process.alive().is_some());
        }
    }
    // Its files are closed shortly before it is gone, and its journal counts only then.
    wait_until(|| owner.alive().is_none());
    let mut done = end(&known);
    done.extend(replay().iter().map(Replayed::to_string));
    done
}

fn parse(line: &str) -> Option<Process> {
    let (pid, start) = line.split_once(' ')?;
    Some(Process { pid: pid.parse().ok()?, start: start.parse().ok()? })
}

fn end(known: &BTreeSet<Process>) -> Vec<String> {
    let mut all = known.clone();
    if alive(&all).is_empty() {
        return Vec::new();
    }
    send(&mut all, Signal::TERM);
    if !wait_until(|| alive(&all).is_empty()) {
        let deadline = Instant::now() + PATIENCE;
        // Repeatedly, because processes that are just starting are not seen yet.
        while !alive(&all).is_empty() && Instant::now() < deadline {
            send(&mut all, Signal::KILL);
            thread::sleep(POLL);
        }
    }
    vec![match alive(&all).len() {
        0 => "the service of a `hasten tune` that was killed is ended".to_owned(),
        left => format!("{left} processes of a `hasten tune` that was killed are left; see them with ps(1)"),
    }]
}

/// Those that are running, with all their descendants.
fn alive(known: &BTreeSet<Process>) -> BTreeSet<Process> {
    let mut pending: Vec<Process> = known.iter().copied().collect();
    let mut found = BTreeSet::new();
    while let Some(process) = pending.pop() {
        if process.alive().is_some() && found.insert(process) {
            pending.extend(cpu::children(process.pid).into_iter().filter_map(Process::of));
        }
    }
    found
}

/// Signals all of them, their present descendants, and their groups: a group led by a process of the service belongs to
/// the service.
fn send(all: &mut BTreeSet<Process>, signal: Signal) {
    let found = alive(all);
    // An orphan has no link back to them: a process seen once is not forgotten.
    all.extend(&found);
    let led = |stat: &Stat| all.iter().any(|process| process.pid == stat.group);
    let groups: BTreeSet<u32> =
        found.iter().filter_map(|process| process.alive()).filter(led).map(|stat| stat.group).collect();
    let id = |number: u32| i32::try_from(number).ok().and_then(Pid::from_raw);
    for group in groups.into_iter().filter_map(id) {
        let _ = kill_process_group(group, signal);
    }
    for process in found.iter().filter_map(|process| id(process.pid)) {
        let _ = kill_process(process, signal);
    }
}

/// Whether it came true in time.
fn wait_until(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match condition() {
            true => return true,
            false if Instant::now() > deadline => return false,
            false => thread::sleep(POLL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(process: Process) -> String {
        format!("{} {}\n", process.pid, process.start)
    }

    /// A process that has ended, as the keeper's owner.
    fn ended() -> Process {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        process
    }

    #[test]
    fn what_a_killed_owner_has_started_is_ended_with_all_below_it() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; setsid sleep 600 & sleep 600 & wait; wait"]);
        let mut service = command.process_group(0).spawn().unwrap();
        let root = Process::of(service.id()).unwrap();
        let started = Instant::now();
        while cpu::children(root.pid).len() < 2 && started.elapsed() < Duration::from_secs(60) {
            thread::sleep(POLL);
        }
        let below: Vec<Process> = cpu::children(root.pid).into_iter().filter_map(Process::of).collect();
        assert_eq!(below.len(), 2);
        let records = line(ended()) + &line(root);
        let done = thread::spawn(move || keep(records.as_bytes()));
        service.wait().unwrap();
        let done = done.join().unwrap();
        assert!(done.iter().any(|what| what.contains("is ended")), "{done:?}");
        assert!(below.iter().all(|process| process.alive().is_none()));
    }

    #[test]
    fn a_number_that_belongs_to_somebody_else_by_now_is_left_alone() {
        let mut other = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let process = Process::of(other.id()).unwrap();
        let stale = Process { start: process.start + 1, ..process };
        keep((line(ended()) + &line(stale) + "nonsense\n").as_bytes());
        assert!(process.alive().is_some());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
