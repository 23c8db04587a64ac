//! What in a unit keeps a library out that `Environment=` names, although the program would load it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::environment;
use crate::unit::Unit;

/// Why, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    pub what: String,
    pub fix: String,
}

impl Obstacle {
    fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what: what.into(), fix: fix.into() }
    }
}

const CARRIER: &str = "LD_PRELOAD";
const INSTALL: &str = "install hasten's package, whose libraries are in /usr/lib";

impl Unit {
    /// The first thing between the service and this library.
    #[must_use]
    pub fn obstacle_to(&self, library: &Path) -> Option<Obstacle> {
        self.kind()
            .or_else(|| self.root(library))
            .or_else(|| self.variable_lost(library))
            .or_else(|| self.hidden(library))
    }

    fn kind(&self) -> Option<Obstacle> {
        (self.properties.get("Type") == "oneshot")
            .then(|| Obstacle::new("it is no server: Type=oneshot", "name the service that stays"))
    }

    fn root(&self, library: &Path) -> Option<Obstacle> {
        let image = self.properties.get("RootImage");
        if !image.is_empty() {
            let fix =
                format!("put hasten's libraries into {image}, and set LD_PRELOAD with `systemctl edit`");
            return Some(Obstacle::new(format!("it has a root of its own: RootImage={image}"), fix));
        }
        let root = self.properties.get("RootDirectory");
        let inside = Path::new(root).join(library.strip_prefix("/").unwrap_or(library));
        (!root.is_empty() && !inside.exists()).then(|| {
            let what = format!("its root is {root}, and {} is not there", inside.display());
            Obstacle::new(what, format!("copy {} to {}", folder(library), folder(&inside)))
        })
    }

    /// Variables that systemd drops, or takes from a file instead.
    fn variable_lost(&self, library: &Path) -> Option<Obstacle> {
        let unset = self.properties.all("UnsetEnvironment").flat_map(str::split_whitespace);
        if unset.into_iter().any(|name| name == CARRIER) {
            return Some(Obstacle::new(
                format!("its unit has UnsetEnvironment={CARRIER}"),
                format!("take {CARRIER} out of that line"),
            ));
        }
        let files: Vec<_> =
            self.properties.files("EnvironmentFiles").filter(|file| !file.is_empty()).collect();
        environment::of_files(&self.properties).get(OsStr::new(CARRIER)).map(|value| {
            let what =
                format!("{CARRIER}={} in {} wins over every drop-in", value.display(), files.join(" or "));
            Obstacle::new(what, format!("add :{} to that line, or take the line out", library.display()))
        })
    }

    fn hidden(&self, library: &Path) -> Option<Obstacle> {
        let below = |folders: &[&str]| folders.iter().any(|folder| library.starts_with(folder));
        let home = self.properties.get("ProtectHome");
        if !matches!(home, "" | "no" | "read-only") && below(&["/home", "/root", "/run/user"]) {
            let what = format!("it does not see {}: ProtectHome={home}", library.display());
            return Some(Obstacle::new(what, INSTALL));
        }
        if self.properties.get("PrivateTmp") != "no" && below(&["/tmp", "/var/tmp"]) {
            return Some(Obstacle::new(
                format!("it does not see {}: PrivateTmp=", library.display()),
                INSTALL,
            ));
        }
        for setting in ["InaccessiblePaths", "TemporaryFileSystem"] {
            let paths = self.properties.get(setting).split_whitespace();
            let paths =
                paths.map(|path| path.trim_start_matches(['-', '+']).split(':').next().unwrap_or_default());
            if paths.into_iter().any(|path| !path.is_empty() && library.starts_with(path)) {
                let what = format!("it does not see {}: {setting}=", library.display());
                return Some(Obstacle::new(what, INSTALL));
            }
        }
        self.unreadable(library)
    }

    /// Every folder on the way must let the service's user through.
    fn unreadable(&self, library: &Path) -> Option<Obstacle> {
        let user = self.properties.get("User");
        if matches!(user, "" | "root" | "0") && !self.properties.is_yes("DynamicUser") {
            return None;
        }
        let lets_in = |path: &Path, bits: u32| {
            fs::metadata(path).is_ok_and(|file| file.permissions().mode() & bits == bits)
        };
        let closed = library.ancestors().skip(1).find(|folder| !lets_in(folder, 0o001));
        let closed = closed.or_else(|| (!lets_in(library, 0o004)).then_some(library))?;
        let who = if user.is_empty() { "its user" } else { user };
        Some(Obstacle::new(format!("{who} may not read {}", closed.display()), INSTALL))
    }
}

fn folder(library: &Path) -> String {
    library.parent().unwrap_or(library).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::Properties;

    fn obstacle(settings: &str, library: &str) -> Option<String> {
        let text = format!("Id=x.service\nLoadState=loaded\n{settings}\nPrivateTmp=no\n");
        let unit = Unit::new(Properties::parse_all(&text).remove(0)).unwrap();
        unit.obstacle_to(Path::new(library)).map(|obstacle| obstacle.what)
    }

    fn says(settings: &str, library: &str, what: &str) {
        let said = obstacle(settings, library);
        assert!(said.as_deref().is_some_and(|said| said.contains(what)), "{settings}: {said:?}");
    }

    #[test]
    fn an_ordinary_service_has_none() {
        for settings in ["", "User=www-data", "ProtectHome=yes", "TemporaryFileSystem=/var:ro /srv"] {
            assert_eq!(obstacle(settings, "/usr/lib/os-release"), None, "{settings}");
        }
    }

    #[test]
    fn what_hides_the_library_is_named() {
        says("ProtectHome=tmpfs", "/root/hasten/libhasten.so", "ProtectHome=tmpfs");
        says("PrivateTmp=yes", "/tmp/hasten/libhasten.so", "PrivateTmp");
        says("InaccessiblePaths=-/opt /srv", "/opt/hasten/libhasten.so", "InaccessiblePaths");
        says("TemporaryFileSystem=/opt:ro", "/opt/hasten/libhasten.so", "TemporaryFileSystem");
        says("RootDirectory=/no/such", "/usr/lib/os-release", "/no/such/usr/lib/os-release is not there");
        says("RootImage=/a.raw", "/usr/lib/os-release", "RootImage=/a.raw");
        says("Type=oneshot", "/usr/lib/os-release", "oneshot");
        says("UnsetEnvironment=A LD_PRELOAD", "/usr/lib/os-release", "UnsetEnvironment");
    }

    #[test]
    fn a_file_of_variables_that_wins_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("default");
        fs::write(&file, "LD_PRELOAD=/a.so\n").unwrap();
        let file = file.to_str().unwrap();
        says(&format!("EnvironmentFiles={file} (ignore_errors=yes)"), "/usr/lib/os-release", file);
    }

    #[test]
    fn another_user_must_be_let_through() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libhasten.so");
        fs::write(&library, "").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let library = library.to_str().unwrap();
        says("User=www-data", library, "www-data may not read");
        says("DynamicUser=yes", library, "its user may not read");
        assert_eq!(obstacle("User=root", library), None);
    }
}
