//! cargo's view of the workspace, and the workspace's files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::error::Error;

/// The preload libraries, in the order in which they are documented.
pub(crate) const LIBRARIES: [&str; 3] = ["libhasten_tls.so", "libhasten_gzip.so", "libhasten_envoy.so"];

/// Those of them that are made for musl, too, where Rust's target for it is installed.
pub(crate) const MUSL_LIBRARIES: [&str; 2] = ["musl/libhasten_tls.so", "musl/libhasten_gzip.so"];

/// Loads them where they can be loaded; it exports nothing and needs nothing.
pub(crate) const SHIM: &str = "libhasten.so";

pub(crate) const COMMAND: &str = "hasten";

#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    #[serde(rename = "target_directory")]
    target: PathBuf,
    workspace_members: BTreeSet<String>,
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Debug, Deserialize)]
struct DependencyKind {
    /// `None` for a normal one.
    kind: Option<String>,
}

impl Package {
    pub(crate) fn directory(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("/"))
    }

    /// The root file of its library or program, which has the crate-wide attributes.
    pub(crate) fn crate_roots(&self) -> impl Iterator<Item = &Path> {
        let is_product =
            |target: &&Target| target.kind.iter().any(|kind| kind.ends_with("lib") || kind == "bin");
        self.targets.iter().filter(is_product).map(|target| target.src_path.as_path())
    }
}

impl Workspace {
    pub(crate) fn load() -> Result<Self, Error> {
        const COMMAND: &str = "cargo metadata";
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version=1", "--filter-platform=x86_64-unknown-linux-gnu"])
            .stderr(std::process::Stdio::inherit())
            .output()
            .map_err(|error| Error::Start(COMMAND, error))?;
        if !output.status.success() {
            return Err(Error::Command(COMMAND));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| Error::Content { path: COMMAND.into(), why: error.to_string() })
    }

    /// Our own packages.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// The members that `package` is built from, except for those that only its tests use.
    pub(crate) fn member_dependencies(&self, package: &Package) -> BTreeSet<&str> {
        let linked = self.linked(&package.id);
        self.members()
            .filter(|member| linked.contains(member.id.as_str()))
            .map(|member| &*member.name)
            .collect()
    }

    /// Every package whose code ends up in one of `roots`, including the roots, by name and version.
    pub(crate) fn closure(&self, roots: &[&str]) -> Vec<&Package> {
        let mut open: Vec<&str> = self
            .members()
            .filter(|member| roots.contains(&&*member.name))
            .map(|member| member.id.as_str())
            .collect();
        let mut found = BTreeSet::new();
        while let Some(id) = open.pop() {
            if found.insert(id) {
                open.extend(self.linked(id));
            }
        }
        let by_name: BTreeMap<_, _> = self
            .packages
            .iter()
            .filter(|package| found.contains(package.id.as_str()))
            .map(|package| ((&package.name, &package.version), package))
            .collect();
        by_name.into_values().collect()
    }

    fn linked(&self, id: &str) -> BTreeSet<&str> {
        let nodes = self.resolve.nodes.iter().filter(|node| node.id == id);
        let is_linked =
            |dependency: &&Dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
        nodes.flat_map(|node| node.deps.iter().filter(is_linked)).map(|dependency| &*dependency.pkg).collect()
    }

    /// `path` as people write it: relative to the repository.
    pub(crate) fn relative<'path>(&self, path: &'path Path) -> &'path Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }

    /// Builds the command and the preload libraries as they are shipped: together, as everywhere, because cargo chooses
    /// the features of common dependencies by what is built together.
    pub(crate) fn build_libraries(&self) -> Result<(), Error> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--release", "--package", "hasten"]);
        cargo.args(["--package", "hasten-tls", "--package", "hasten-gzip", "--package", "hasten-envoy"]);
        cargo.args(["--package", "hasten-readcache", "--package", "hasten-wal", "--package", "hasten-tier"]);
        self.build_with(&mut cargo)?;
        self.build_with(Command::new("scripts/shim.sh").arg(&self.target))?;
        self.build_with(Command::new("scripts/musl.sh").arg(&self.target))
    }

    fn build_with(&self, command: &mut Command) -> Result<(), Error> {
        const COMMAND: &str = "make build";
        let status =
            command.current_dir(&self.root).status().map_err(|error| Error::Start(COMMAND, error))?;
        if status.success() { Ok(()) } else { Err(Error::Command(COMMAND)) }
    }

    /// The path of one of them, once built.
    pub(crate) fn built(&self, name: &str) -> PathBuf {
        self.target.join("release").join(name)
    }

    pub(crate) fn read(&self, path: &str) -> Result<String, Error> {
        let path = self.root.join(path);
        fs::read_to_string(&path).map_err(|source| Error::File { path, source })
    }

    /// Writes a generated file, or only checks whether it would change.
    pub(crate) fn generate(
        &self,
        path: &str,
        content: &str,
        check: bool,
        command: &'static str,
    ) -> Result<(), Error> {
        let file = self.root.join(path);
        if fs::read_to_string(&file).is_ok_and(|present| present == content) {
            return Ok(());
        }
        if check {
            return Err(Error::Stale { path: path.into(), command });
        }
        let folder = file.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&file, content))
            .map_err(|source| Error::File { path: file, source })
    }
}

/// All Rust files below `directory`, in a stable order.
pub(crate) fn rust_files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let error = |source| Error::File { path: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(error)? {
        let path = entry.map_err(error)?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
