//! OpenRC. It tells what it has started in files below its own folder in /run; what a service would start, only its script knows.

mod copies;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::drop_in::{DropIn, Style};
use crate::error::UnitError;
use crate::manager::{Copies, Manager, Phrases};
use crate::openrc::copies::OpenRcCopies;
use crate::properties::Properties;
use crate::trial::TrialError;
use crate::unit::Unit;

/// There once OpenRC has booted the system, which its own scripts ask, too.
pub(crate) const BOOTED: &str = "/run/openrc/softlevel";
const STATE: &str = "/run/openrc";
const SCRIPTS: &str = "/etc/init.d";
const SETTINGS: &str = "/etc/conf.d";
/// What every script reads before its own settings.
const DROP_INS: &str = "/etc/rc.conf.d";

#[derive(Clone, Debug)]
pub(crate) struct OpenRc {
    /// `/`, or where another one's files are seen.
    root: PathBuf,
}

impl OpenRc {
    pub(crate) fn of_host() -> Self {
        Self { root: "/".into() }
    }

    fn path(&self, folder: &str, name: &str) -> PathBuf {
        self.root.join(folder.trim_start_matches('/')).join(name)
    }

    fn call(&self, arguments: &[&str]) -> Result<(), UnitError> {
        const PROGRAM: &str = "rc-service";
        let unavailable = |why| UnitError::Unavailable { program: PROGRAM.into(), why };
        // A file, because a server that keeps what its script writes to would keep a pipe open for as long as it runs.
        let mut said = scratch().map_err(unavailable)?;
        let mut command = Command::new(PROGRAM);
        command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
        command.stdout(said.try_clone().map_err(unavailable)?).stderr(said.try_clone().map_err(unavailable)?);
        if command.status().map_err(unavailable)?.success() {
            return Ok(());
        }
        let mut text = Vec::new();
        let _ = said.rewind().and_then(|()| said.read_to_end(&mut text));
        let text = String::from_utf8_lossy(&text).into_owned();
        let said = text.trim().lines().map(|line| line.trim_start_matches([' ', '*'])).next_back();
        Err(UnitError::Refused {
            command: format!("{PROGRAM} {}", arguments.join(" ")),
            said: said.unwrap_or_default().to_owned(),
        })
    }

    /// The facts in the words of systemd, by which a [`Unit`] goes.
    fn describe(&self, name: &str) -> String {
        let state = State::of(self, name);
        let process = state.process();
        let activity = match state.activity.as_str() {
            "started" if process.is_none() && state.has_daemon() => "failed",
            "started" => "active",
            "starting" => "activating",
            "stopping" => "deactivating",
            "failed" => "failed",
            _ => "inactive",
        };
        let mut text = format!("Id={name}\nLoadState=loaded\nActiveState={activity}\nPrivateTmp=no\n");
        if let Some(process) = process {
            text += &format!("MainPID={process}\nMemoryCurrent={}\n", memory(process));
            text += &environment(process);
        }
        if let Some(program) = state.program.or_else(|| self.program(name)) {
            text += &format!("ExecStart={{ path={} ; }}\n", program.display());
        }
        let user = process.and_then(user).filter(|user| user != "0");
        text + &format!("User={}\n", user.unwrap_or_default())
    }

    /// What the script says that it starts, where it says so in plain words.
    fn program(&self, name: &str) -> Option<PathBuf> {
        let files = [self.path(SETTINGS, name), self.path(SCRIPTS, name)];
        let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
        texts.filter_map(|text| assigned(&text, "command").map(PathBuf::from)).find(|path| path.is_absolute())
    }
}

impl Manager for OpenRc {
    fn unit(&self, name: &str) -> Result<Unit, UnitError> {
        if name.contains('/') {
            return Err(UnitError::NotAService { name: name.to_owned() });
        }
        if name.is_empty() || !self.path(SCRIPTS, name).exists() {
            return Err(UnitError::NotFound { name: name.to_owned() });
        }
        Unit::new(Properties::parse_all(&self.describe(name)).remove(0))
    }

    fn services(&self) -> Result<Vec<Unit>, UnitError> {
        let started = fs::read_dir(self.path(STATE, "started")).into_iter().flatten().flatten();
        let started = started.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = started.chain(self.enabled()).collect();
        names.sort();
        names.dedup();
        // Those of the boot start no server.
        Ok(names
            .iter()
            .filter_map(|name| self.unit(name).ok())
            .filter(|unit| unit.executable.is_some())
            .collect())
    }

    fn enabled(&self) -> Vec<String> {
        DropIn::units(Style::OpenRc, &self.path(DROP_INS, ""))
    }

    fn drop_in(&self, unit: &str) -> DropIn {
        DropIn::of(Style::OpenRc, &self.path(DROP_INS, ""), unit)
    }

    fn reload(&self) -> Result<(), UnitError> {
        // It reads them whenever it starts something.
        Ok(())
    }

    fn restart(&self, unit: &str) -> Result<(), UnitError> {
        self.call(&[unit, "restart"])
    }

    fn note(&self, unit: &str, line: &str) {
        let _ = Command::new("logger")
            .args(["-t", "hasten", "-p", "daemon.warning", "--"])
            .arg(format!("{unit}: {line}"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }

    fn last_words(&self, _: &str, _: usize) -> Vec<String> {
        // Where a service writes to, its own settings say.
        Vec::new()
    }

    fn copies<'a>(&'a self, unit: &'a Unit) -> Result<Box<dyn Copies + 'a>, TrialError> {
        Ok(Box::new(OpenRcCopies::new(unit)?))
    }

    fn phrases(&self) -> &'static Phrases {
        &Phrases {
            restart: "rc-service {} restart",
            show: "cat /etc/init.d/{} /etc/conf.d/{}",
            log: "grep -r {} /var/log",
        }
    }
}

/// What OpenRC has noted of a service.
struct State {
    /// The folder that has its name.
    activity: String,
    program: Option<PathBuf>,
    /// Numbers of processes, best first.
    processes: Vec<u32>,
}

impl State {
    fn of(openrc: &OpenRc, service: &str) -> Self {
        let is_in = |folder: &&str| openrc.path(STATE, folder).join(service).symlink_metadata().is_ok();
        let activity =
            ["failed", "starting", "stopping", "started"].into_iter().find(is_in).unwrap_or("stopped");
        let daemons =
            fs::read_dir(openrc.path(STATE, "daemons").join(service)).into_iter().flatten().flatten();
        let mut daemons: Vec<_> = daemons.map(|entry| entry.path()).collect();
        daemons.sort();
        let text = daemons.first().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let number = |file: PathBuf| fs::read_to_string(file).ok()?.trim().parse().ok();
        // What the script itself has noted; it is all there is where start-stop-daemon is not OpenRC's own.
        let option = |name: &str| openrc.path(STATE, "options").join(service).join(name);
        let noted = |field_name: &str, option_name: &str| {
            let value = field(field_name).filter(|value| !value.is_empty()).map(str::to_owned);
            value.or_else(|| fs::read_to_string(option(option_name)).ok())
        };
        // A supervisor's file has its own number.
        let child = number(option("child_pid"));
        let file = noted("pidfile", "pidfile");
        let main = file.and_then(|file| number(openrc.root.join(file.trim().trim_start_matches('/'))));
        let program = noted("exec", "command").map(|path| PathBuf::from(path.trim()));
        let program = program.filter(|path| path.is_absolute());
        let found = program.as_deref().and_then(running);
        let processes = [child, main, found].into_iter().flatten().collect();
        Self { activity: activity.to_owned(), program, processes }
    }

    fn has_daemon(&self) -> bool {
        self.program.is_some()
    }

    fn process(&self) -> Option<u32> {
        self.processes.iter().copied().find(|pid| Path::new(&format!("/proc/{pid}")).exists())
    }
}

/// A file that is gone with the last who has it open.
fn scratch() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("hasten-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}

/// The oldest process of a program, for a service that keeps no file with its number.
fn running(program: &Path) -> Option<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_one = |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|file| file == program);
    processes.filter(is_one).min()
}

/// The variables with which it runs, as systemd would print them.
fn environment(process: u32) -> String {
    let bytes = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let is_plain = |variable: &&str| variable.contains('=') && !variable.contains(['\n', '"', '\\']);
    text.split('\0').filter(is_plain).map(|variable| format!("Environment=\"{variable}\"\n")).collect()
}

fn status(process: u32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next().map(str::to_owned)
}

fn user(process: u32) -> Option<String> {
    status(process, "Uid")
}

/// Of the process and those that it has started.
fn memory(process: u32) -> u64 {
    let own =
        |pid: u32| status(pid, "VmRSS").and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() << 10;
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|pid| pid.parse().ok()).map(own);
    own(process) + children.sum::<u64>()
}

/// The value that a script assigns in a line of its own: `NAME=value`, in quotes or as a default.
fn assigned(text: &str, name: &str) -> Option<String> {
    let mut values = text.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
    let value = values.next_back()?.trim().trim_matches(['"', '\'']);
    let value = match value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
        Some(default) => default.split_once(":-").or_else(|| default.split_once('-'))?.1,
        None => value,
    };
    (!value.contains('$')).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Activity;

    fn openrc() -> (tempfile::TempDir, OpenRc) {
        let folder = tempfile::tempdir().unwrap();
        let openrc = OpenRc { root: folder.path().to_owned() };
        write(&openrc, "etc/init.d/web", "#!/sbin/openrc-run\ncommand=\"/usr/sbin/web\"\n");
        (folder, openrc)
    }

    fn write(openrc: &OpenRc, file: &str, text: &str) {
        let file = openrc.root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[test]
    fn a_service_is_what_openrc_has_noted() {
        let (_folder, openrc) = openrc();
        let stopped = openrc.unit("web").unwrap();
        assert_eq!((stopped.activity, stopped.main_pid), (Activity::Stopped, None));
        assert_eq!(stopped.executable.as_deref(), Some(Path::new("/usr/sbin/web")));
        let own = std::process::id();
        write(&openrc, "run/openrc/started/web", "");
        write(
            &openrc,
            "run/openrc/daemons/web/001",
            "exec=/opt/web\nargv_0=/opt/web\npidfile=/run/web.pid\n",
        );
        write(&openrc, "run/web.pid", &format!("{own}\n"));
        let running = openrc.unit("web").unwrap();
        assert_eq!((running.activity, running.main_pid), (Activity::Running, Some(own)));
        assert_eq!(running.executable.as_deref(), Some(Path::new("/opt/web")));
        assert!(running.variable("PATH").is_some());
        assert_eq!(openrc.services().unwrap().len(), 1);
        // It has noted a daemon that is gone.
        write(&openrc, "run/web.pid", "4194305\n");
        assert_eq!(openrc.unit("web").unwrap().activity, Activity::Failed);
    }

    #[test]
    fn a_supervisor_is_not_taken_for_the_service() {
        let (_folder, openrc) = openrc();
        write(&openrc, "run/openrc/started/web", "");
        write(&openrc, "run/openrc/daemons/web/001", "exec=/opt/web\npidfile=/run/supervise-web.pid\n");
        write(&openrc, "run/supervise-web.pid", "1\n");
        write(&openrc, "run/openrc/options/web/child_pid", &std::process::id().to_string());
        assert_eq!(openrc.unit("web").unwrap().main_pid, Some(std::process::id()));
    }

    #[test]
    fn what_is_no_service_is_refused() {
        let (_folder, openrc) = openrc();
        assert!(matches!(openrc.unit("other"), Err(UnitError::NotFound { .. })));
        assert!(matches!(openrc.unit("../web"), Err(UnitError::NotAService { .. })));
    }

    #[test]
    fn a_script_says_what_it_starts() {
        for (line, expected) in [
            ("command=/usr/sbin/web", Some("/usr/sbin/web")),
            ("command=\"/usr/sbin/web\"", Some("/usr/sbin/web")),
            ("  command='/usr/sbin/web'", Some("/usr/sbin/web")),
            ("command=${command:-/usr/sbin/web}", Some("/usr/sbin/web")),
            ("command=\"${WEB-/usr/sbin/web}\"", Some("/usr/sbin/web")),
            ("command=$WEB", None),
            ("command_args=/usr/sbin/web", None),
        ] {
            assert_eq!(assigned(line, "command").as_deref(), expected, "{line}");
        }
    }
}
