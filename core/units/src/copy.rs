//! The unit of a copy: the same command with the same settings, in a root and a network of its own.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::drop_in::quoted;
use crate::text::{Assignment, values};
use crate::unit::Unit;

/// What would reach beyond the copy, or what the copy has of its own.
const DROPPED: [&str; 30] = [
    "BindReadOnlyPaths",
    "BusName",
    "CacheDirectory",
    "ConfigurationDirectory",
    "ExecReload",
    "ExecStartPost",
    "ExecStop",
    "ExecStopPost",
    "FailureAction",
    "FileDescriptorStoreMax",
    "JoinsNamespaceOf",
    "LogsDirectory",
    "MountAPIVFS",
    "NetworkNamespacePath",
    "OnFailure",
    "PIDFile",
    "PrivateNetwork",
    "Restart",
    "RestartSec",
    "RuntimeDirectory",
    "RuntimeDirectoryPreserve",
    "RuntimeMaxSec",
    "Slice",
    "Sockets",
    "StandardError",
    "StandardInput",
    "StandardOutput",
    "StateDirectory",
    "SuccessAction",
    "TimeoutStartSec",
];

/// Lists of paths, which systemd takes from the host's root unless told otherwise.
const PATHS: [&str; 5] = ["ExecPaths", "InaccessiblePaths", "NoExecPaths", "ReadOnlyPaths", "ReadWritePaths"];

/// Why a copy could do harm, or would not be one.
pub(crate) fn objection(unit: &Unit, settings: &[Assignment]) -> Option<String> {
    let is_set = |key: &str| settings.iter().any(|setting| setting.key == key && !setting.value.is_empty());
    let alien = ["BindPaths", "RootDirectory", "RootImage", "OpenFile"];
    if let Some(key) = alien.into_iter().find(|key| is_set(key)) {
        return Some(format!("its unit has {key}="));
    }
    // The log is not missed; other sockets might be, and the copy must not reach them.
    let bound = settings.iter().filter(|setting| setting.key == "BindReadOnlyPaths");
    if let Some(bound) = bound.into_iter().find(|bound| !bound.value.starts_with("/dev/log")) {
        return Some(format!("its unit has BindReadOnlyPaths={}", bound.value));
    }
    if unit.properties.is_yes("DynamicUser") {
        return Some("its user exists only while it runs: DynamicUser=yes".into());
    }
    if unit.properties.get("Type") == "dbus" {
        return Some("it starts by the message bus: Type=dbus".into());
    }
    if !unit.properties.get("TriggeredBy").is_empty() {
        return Some(format!("it is started by {}", unit.properties.get("TriggeredBy")));
    }
    let own = unit.executable.as_deref();
    if let Some(shell) = own.and_then(shell) {
        return Some(format!("it starts by a script: {shell} might stop the service that runs"));
    }
    let commands = settings
        .iter()
        .filter(|setting| matches!(&*setting.key, "ExecStart" | "ExecStartPre" | "ExecCondition"));
    let others = commands.filter(|setting| !setting.value.is_empty() && program(&setting.value) != own);
    let other = others.map(|setting| &setting.value).next()?;
    Some(format!("not only its server starts: {other}"))
}

/// The shell that a file is, if it is one.
fn shell(file: &Path) -> Option<String> {
    const SHELLS: [&str; 6] = ["bash", "busybox", "dash", "ksh", "sh", "zsh"];
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let is_script = File::open(&file).and_then(|mut file| {
        let mut start = [0; 2];
        file.read_exact(&mut start).map(|()| start == *b"#!")
    });
    let name = file.file_name()?.to_str()?.to_owned();
    (SHELLS.contains(&name.as_str()) || is_script.unwrap_or(false)).then_some(name)
}

/// The program of a command line. One with a prefix for other rights is none that may be copied.
fn program(line: &str) -> Option<&Path> {
    let word = line.trim_start_matches(['-', ':', '@']).split_whitespace().next()?;
    word.starts_with('/').then(|| Path::new(word))
}

/// The text of the unit.
pub(crate) fn text(
    unit: &Unit,
    settings: &[Assignment],
    root: &Path,
    variables: &[(String, OsString)],
) -> String {
    const SECONDS: u32 = 20;
    let mut text = format!(
        "[Unit]\nDescription=hasten tries {name}\n\n[Service]\nRootDirectory={root}\nMountAPIVFS=yes\nPrivateNetwork=yes\n\
         TemporaryFileSystem=/dev/shm:mode=1777\nRestart=no\nTimeoutStartSec={SECONDS}\nRuntimeMaxSec={limit}\n",
        name = unit.name,
        root = root.display(),
        // It ends even if whoever started it was killed.
        limit = 6 * SECONDS,
    );
    let kept = settings.iter().filter(|setting| !is_dropped(&setting.key));
    for Assignment { key, value } in kept {
        let value = specifiers(&unit.name, value);
        let value = if PATHS.contains(&key.as_str()) { inside(&value) } else { value };
        let _ = writeln!(text, "{key}={value}");
    }
    text += &directories(unit, settings);
    for (name, value) in variables {
        let _ = writeln!(text, "Environment={}", quoted(name, value));
    }
    text
}

/// Folders that systemd would make for the service, and remove when the copy ends: the copy has what is there.
fn directories(unit: &Unit, settings: &[Assignment]) -> String {
    const KINDS: [(&str, &str, &str); 4] = [
        ("CacheDirectory", "CACHE_DIRECTORY", "/var/cache"),
        ("LogsDirectory", "LOGS_DIRECTORY", "/var/log"),
        ("RuntimeDirectory", "RUNTIME_DIRECTORY", "/run"),
        ("StateDirectory", "STATE_DIRECTORY", "/var/lib"),
    ];
    let mut text = String::new();
    for (key, variable, parent) in KINDS {
        let names = values(settings, key).join(" ");
        let names = specifiers(&unit.name, &names);
        let path = |name: &str| format!("{parent}/{}", name.split(':').next().unwrap_or_default());
        let paths: Vec<String> = names.split_whitespace().map(path).collect();
        if !paths.is_empty() {
            let _ = writeln!(text, "ReadWritePaths={}", inside(&paths.join(" ")));
            let _ = writeln!(text, "Environment={variable}={}", paths.join(":"));
        }
    }
    text
}

fn is_dropped(key: &str) -> bool {
    // RuntimeDirectoryMode= and its like go with their directory.
    let modes = ["CacheDirectoryMode", "LogsDirectoryMode", "RuntimeDirectoryMode", "StateDirectoryMode"];
    DROPPED.contains(&key) || modes.contains(&key)
}

/// Specifiers that stand for the unit's own name.
fn specifiers(name: &str, value: &str) -> String {
    let stem = name.strip_suffix(".service").unwrap_or(name);
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    let mut parts = value.split("%%").map(|part| {
        let part = part.replace("%n", name).replace("%N", stem).replace("%p", prefix);
        part.replace("%i", instance).replace("%I", instance)
    });
    let first = parts.next().unwrap_or_default();
    parts.fold(first, |whole, part| whole + "%%" + &part)
}

/// `-/var/log` becomes `-+/var/log`: below the copy's root.
fn inside(paths: &str) -> String {
    let one = |path: &str| match path.strip_prefix('-') {
        Some(path) => format!("-+{}", path.trim_start_matches('+')),
        None => format!("+{}", path.trim_start_matches('+')),
    };
    paths.split_whitespace().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::Properties;
    use crate::text::service;

    fn unit(properties: &str) -> Unit {
        let text = format!(
            "Id=web@one.service\nLoadState=loaded\nExecStart={{ path=/usr/sbin/web ; }}\n{properties}\n"
        );
        Unit::new(Properties::parse_all(&text).remove(0)).unwrap()
    }

    fn settings(text: &str) -> Vec<Assignment> {
        service(&format!("[Service]\n{text}\n")).unwrap()
    }

    #[test]
    fn a_copy_has_the_same_sandbox_and_nothing_that_reaches_out() {
        let settings = settings(
            "ExecStart=/usr/sbin/web %i %%i\nExecStop=/bin/kill 1\nPIDFile=/run/web.pid\nProtectSystem=strict\n\
             ReadWritePaths=/var/log/%p -/srv\nRuntimeDirectory=web",
        );
        let variables = [("LD_PRELOAD".to_owned(), "/a.so".into())];
        let text = text(&unit(""), &settings, Path::new("/run/x/root"), &variables);
        for line in [
            "RootDirectory=/run/x/root",
            "PrivateNetwork=yes",
            "ExecStart=/usr/sbin/web one %%i",
            "ProtectSystem=strict",
            "ReadWritePaths=+/var/log/web -+/srv",
            "Environment=LD_PRELOAD=/a.so",
            "ReadWritePaths=+/run/web",
            "Environment=RUNTIME_DIRECTORY=/run/web",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} in\n{text}");
        }
        for key in ["ExecStop", "PIDFile", "\nRuntimeDirectory="] {
            assert!(!text.contains(key), "{key} in\n{text}");
        }
    }

    #[test]
    fn a_shell_is_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("start");
        std::fs::write(&script, "#!/usr/bin/python3\n").unwrap();
        assert_eq!(shell(&script).as_deref(), Some("start"));
        assert!(shell(Path::new("/bin/sh")).is_some() && shell(Path::new("/bin/true")).is_none());
    }

    #[test]
    fn what_might_do_harm_is_not_copied() {
        let plain = "ExecStartPre=-/usr/sbin/web -t\nExecStart=/usr/sbin/web";
        assert_eq!(objection(&unit(""), &settings(plain)), None);
        let logs = format!("{plain}\nBindReadOnlyPaths=/dev/log:/var/lib/web/dev/log");
        assert_eq!(objection(&unit(""), &settings(&logs)), None);
        for (more, why) in [
            ("ExecStartPre=/usr/bin/pkill web", "pkill"),
            ("ExecStartPre=+/usr/sbin/web -t", "+/usr/sbin/web"),
            ("BindPaths=/srv", "BindPaths"),
            ("BindReadOnlyPaths=/run/db.sock", "db.sock"),
        ] {
            let said = objection(&unit(""), &settings(&format!("{plain}\n{more}")));
            assert!(said.as_deref().is_some_and(|said| said.contains(why)), "{more}: {said:?}");
        }
        for (property, why) in [
            ("DynamicUser=yes", "DynamicUser"),
            ("TriggeredBy=web.socket", "web.socket"),
            ("Type=dbus", "bus"),
        ] {
            let said = objection(&unit(property), &settings(plain));
            assert!(said.as_deref().is_some_and(|said| said.contains(why)), "{property}: {said:?}");
        }
    }
}
