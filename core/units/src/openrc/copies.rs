//! Copies of a service that OpenRC starts: its own script runs in a change of root, where it can see and stop nothing but the copy.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::{DROP_INS, OpenRc, STATE};
use crate::drop_in::{DropIn, Style};
use crate::error::UnitError;
use crate::manager::Copies;
use crate::place::{Place, call, shortage};
use crate::properties::Properties;
use crate::restart::Outcome;
use crate::trial::{SETTLED, TrialError};
use crate::unit::Unit;

/// A script that takes longer does not come to an end.
const PATIENCE: Duration = Duration::from_secs(20);

/// What becomes the first process of the copy: NAME ROOT. It ends, and with it all others, when nobody listens any more.
const SCRIPT: &str = r#"
ip link set lo up 2>/dev/null || ifconfig lo up 2>/dev/null
mount -t proc proc "$2/proc" && mount --bind "$2/proc/sys" "$2/proc/sys" && mount -o remount,bind,ro "$2/proc/sys" || exit
mount --rbind /dev "$2/dev" || exit
chroot "$2" rc-service --nodeps "$1" start 2>&1 </dev/null
echo "hasten-trial: $?"
exec cat >/dev/null
"#;
const ENDS: &str = "hasten-trial: ";

#[derive(Debug)]
pub(crate) struct OpenRcCopies<'a> {
    unit: &'a Unit,
    place: Place,
    running: RefCell<Option<Child>>,
}

impl<'a> OpenRcCopies<'a> {
    pub(crate) fn new(unit: &'a Unit) -> Result<Self, TrialError> {
        if let Some(objection) = shortage(unit) {
            return Err(TrialError::Objection(objection));
        }
        let place = Place::new().map_err(TrialError::Place)?;
        Ok(Self { unit, place, running: RefCell::new(None) })
    }

    /// The copy is stopped, and has the variables that it is to start with.
    fn prepare(&self, variables: &[(String, OsString)]) -> Result<(), UnitError> {
        let root = self.place.root();
        let inside = |folder: &str| root.join(folder.trim_start_matches('/'));
        for state in fs::read_dir(inside(STATE)).into_iter().flatten().flatten() {
            let noted = state.path().join(&self.unit.name);
            let _ = fs::remove_file(&noted).or_else(|_| fs::remove_dir_all(&noted));
        }
        let drop_in = DropIn::of(Style::OpenRc, &inside(DROP_INS), &self.unit.name);
        drop_in.remove()?;
        if !variables.is_empty() {
            drop_in.write(&drop_in.text(variables))?;
        }
        Ok(())
    }

    /// Runs the script; what it said, and whether it succeeded.
    fn begin(&self) -> Result<(bool, Vec<String>), String> {
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--net",
            "--ipc",
            "--pid",
            "--fork",
            "sh",
            "-c",
            SCRIPT,
            "sh",
            &self.unit.name,
        ]);
        command.arg(self.place.root()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Nothing of the caller's shell reaches the copy.
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").process_group(0);
        let mut child = command.spawn().map_err(|error| format!("unshare: {error}"))?;
        let stdout = child.stdout.take();
        *self.running.borrow_mut() = Some(child);
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let lines =
                stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines().map_while(Result::ok));
            lines.into_iter().all(|line| sender.send(line).is_ok())
        });
        let (mut said, end) = (Vec::new(), Instant::now() + PATIENCE);
        while let Ok(line) = lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if let Some(code) = line.strip_prefix(ENDS) {
                return Ok((code == "0", said));
            }
            said.push(line.trim_start_matches([' ', '*']).to_owned());
        }
        said.push("its script does not come to an end".into());
        Ok((false, said))
    }

    /// The service as it is in the copy, with the number that its process has here.
    fn unit(&self) -> Option<Unit> {
        let openrc = OpenRc { root: self.place.root() };
        let inner = super::State::of(&openrc, &self.unit.name).processes;
        let process = self.processes().into_iter().find(|(_, number)| inner.contains(number));
        let (process, _) =
            process.or_else(|| self.processes().into_iter().find(|(pid, _)| self.is_program(*pid)))?;
        let text = format!(
            "Id={}\nLoadState=loaded\nActiveState=active\nMainPID={process}\nPrivateTmp=no\n",
            self.unit.name
        );
        Unit::new(Properties::parse_all(&text).remove(0)).ok()
    }

    /// Every process of the copy: its number here, and there.
    fn processes(&self) -> Vec<(u32, u32)> {
        let Some(parent) = self.running.borrow().as_ref().map(Child::id) else { return Vec::new() };
        let space = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let Some(first) = first_process(parent).and_then(space) else { return Vec::new() };
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let mut own: Vec<_> = all
            .filter(|pid| space(*pid).as_ref() == Some(&first))
            .filter_map(|pid| Some((pid, number(pid)?)))
            .collect();
        own.sort_unstable();
        own
    }

    fn is_program(&self, pid: u32) -> bool {
        let name = |path: &Path| path.file_name().map(ToOwned::to_owned);
        let wanted = self.unit.executable.as_deref().and_then(name);
        wanted.is_some() && fs::read_link(format!("/proc/{pid}/exe")).ok().as_deref().and_then(name) == wanted
    }
}

impl Copies for OpenRcCopies<'_> {
    fn start(&self, variables: &[(String, OsString)]) -> Result<Outcome, TrialError> {
        const PAUSE: Duration = Duration::from_millis(200);
        self.prepare(variables)?;
        let (is_up, last_words) = self.begin().map_err(TrialError::Place)?;
        let down = |why: &str| Ok(Outcome::Down { why: why.to_owned(), last_words: last_words.clone() });
        if !is_up {
            return down("its script has failed");
        }
        let start = Instant::now();
        let Some(mut unit) = self.unit() else { return down("it has no process") };
        while start.elapsed() < SETTLED {
            thread::sleep(PAUSE);
            let first = unit.main_pid;
            match self.unit() {
                Some(now) if now.main_pid == first => unit = now,
                _ => return down("its main process has ended"),
            }
        }
        Ok(Outcome::Up(Box::new(unit)))
    }

    fn stop(&self) -> Result<(), UnitError> {
        if let Some(mut child) = self.running.borrow_mut().take() {
            // Without somebody to listen to, the copy's first process ends, and the kernel ends the others.
            drop(child.stdin.take());
            if let Some(first) = first_process(child.id()) {
                // A script that does not come to an end does not listen.
                let _ = call("kill", &["-9", &first.to_string()]);
            }
            let _ = child.wait();
        }
        Ok(())
    }
}

impl Drop for OpenRcCopies<'_> {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// The only child of `unshare`, the copy's first process.
fn first_process(parent: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// The number that a process has in its own namespace.
fn number(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?.parse().ok()
}
