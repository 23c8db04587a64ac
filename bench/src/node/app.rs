//! The programs that the workloads run, embedded in the command: an installed hasten has no source tree.

use flate2::Crc;

use super::case::Workload;

/// A folder to create: our own files, and the packages named by its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct App {
    pub name: &'static str,
    /// Names and contents.
    pub files: &'static [(&'static str, &'static str)],
    /// A script to run once, after npm.
    pub build: Option<&'static str>,
    /// If the folder is a package rather than ours: its npm name, and its checksum.
    pub package: Option<(&'static str, &'static str)>,
}

macro_rules! files {
    ($directory:literal: $($name:literal),+) => {
        &[$(($name, include_str!(concat!("../../node/", $directory, "/", $name)))),+]
    };
}

const FAAS_STARTUP: App = App {
    name: "faas-startup",
    files: files!("faas-startup": "package.json", "package-lock.json", "app.js"),
    build: None,
    package: None,
};

const REACT_SSR: App = App {
    name: "react-ssr",
    files: files!("react-ssr": "package.json", "package-lock.json", "app.js"),
    ..FAAS_STARTUP
};

const JSON_API: App = App {
    name: "json-api",
    files: files!("json-api": "package.json", "package-lock.json", "app.js"),
    ..FAAS_STARTUP
};

const WEB_TOOLING: App = App {
    name: "web-tooling",
    files: files!("web-tooling": "package.json", "package-lock.json", "app.js", "build.js"),
    build: Some("build.js"),
    package: None,
};

const GHOST: App = App {
    name: "ghost",
    files: files!("ghost": "package-lock.json"),
    build: None,
    package: Some((
        "ghost@6.65.0",
        "sha512-D369qivOmfn4YwvBD1DljOGsHnJzBEQhBsiFnBZD+GjWrBpdZQYYNHneiQcKQVJwUom8eHWml1n5FRLQIwVFOg==",
    )),
};

impl App {
    #[must_use]
    pub fn of(workload: Workload) -> Self {
        match workload {
            Workload::FaasStartup => FAAS_STARTUP,
            Workload::ReactSsr => REACT_SSR,
            Workload::JsonApi => JSON_API,
            Workload::WebTooling => WEB_TOOLING,
            Workload::GhostHttp | Workload::GhostHttps => GHOST,
        }
    }

    /// The name of its folder: another lock or other sources make another folder.
    #[must_use]
    pub fn folder(&self) -> String {
        let mut digest = Crc::new();
        for (name, content) in self.files {
            digest.update(name.as_bytes());
            digest.update(content.as_bytes());
        }
        format!("{}-{:08x}", self.name, digest.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_name_no_registry() {
        for workload in Workload::ALL {
            let app = App::of(workload);
            let (_, lock) = app.files.iter().find(|(name, _)| *name == "package-lock.json").unwrap();
            let lock: serde_json::Value = serde_json::from_str(lock).unwrap();
            for (name, package) in lock["packages"].as_object().unwrap() {
                let place = package["resolved"].as_str().unwrap_or("file:");
                assert!(place.starts_with("file:"), "{workload}: {name} comes from {place}");
                assert!(
                    name.is_empty() || package["integrity"].is_string(),
                    "{workload}: {name} is not pinned"
                );
            }
        }
    }

    #[test]
    fn a_change_of_any_file_is_another_folder() {
        let app = App { files: &[("a", "b")], ..FAAS_STARTUP };
        let other = App { files: &[("a", "c")], ..FAAS_STARTUP };
        assert!(app.folder().starts_with("faas-startup-"));
        assert_ne!(app.folder(), other.folder());
        assert_eq!(App::of(Workload::GhostHttp).folder(), App::of(Workload::GhostHttps).folder());
    }
}
