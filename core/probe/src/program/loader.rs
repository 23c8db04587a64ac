//! Which libraries the dynamic loader would map, searched as ld.so(8) describes, or as musl's loader does it.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::elf::{Elf, Machine};
use super::ldcache::Cache;
use super::{Libc, Library, version};

/// Debian's multiarch directories first: the loader is built with them.
#[cfg(not(target_arch = "aarch64"))]
const SYSTEM_DIRECTORIES: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];
#[cfg(target_arch = "aarch64")]
const SYSTEM_DIRECTORIES: [&str; 6] =
    ["/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// What glibc's loader puts in the place of its tokens `LIB` and `PLATFORM`.
const TOKENS: [(&str, &str); 2] = if cfg!(target_arch = "aarch64") {
    [("LIB", "lib/aarch64-linux-gnu"), ("PLATFORM", "aarch64")]
} else {
    [("LIB", "lib/x86_64-linux-gnu"), ("PLATFORM", "x86_64")]
};

/// What musl's loader reads for its directories, and those that it takes without that file.
const MUSL_FILE: &str =
    if cfg!(target_arch = "aarch64") { "/etc/ld-musl-aarch64.path" } else { "/etc/ld-musl-x86_64.path" };
const MUSL_DIRECTORIES: [&str; 3] = ["/lib", "/usr/local/lib", "/usr/lib"];
/// Names of libraries that are all parts of musl's one.
const MUSL_OWN: [&str; 7] = ["libc.", "libdl.", "libm.", "libpthread.", "librt.", "libutil.", "libxnet."];

/// A library that was requested but not found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    pub name: String,
    pub needed_by: String,
}

#[derive(Debug, Default)]
pub(crate) struct Closure {
    pub(crate) libraries: Vec<Library>,
    pub(crate) missing: Vec<Missing>,
}

/// The search rules, with the parts of the system that they read.
#[derive(Debug)]
pub(crate) struct Loader {
    library_path: Vec<PathBuf>,
    cache: Cache,
    /// `glibc-hwcaps` subdirectories that this CPU may use, best first.
    hwcaps: Vec<&'static str>,
    /// Where it looks last.
    directories: Vec<PathBuf>,
    libc: Libc,
}

/// An object whose own dependencies are yet to be resolved.
struct Object {
    name: String,
    origin: PathBuf,
    elf: Elf,
    /// Index of the object that requested this one; `None` for the executable.
    parent: Option<usize>,
}

impl Loader {
    /// The one of this C library.
    pub(crate) fn new(libc: Libc, library_path: Option<&OsStr>) -> Self {
        let library_path = library_path.filter(|path| !path.is_empty());
        let library_path = library_path.map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
        match libc {
            Libc::Musl => Self {
                library_path,
                cache: Cache::default(),
                hwcaps: Vec::new(),
                directories: musl_directories(std::fs::read_to_string(MUSL_FILE).ok().as_deref()),
                libc,
            },
            Libc::Glibc | Libc::Other => Self {
                library_path,
                cache: Cache::system(),
                hwcaps: hwcaps(),
                directories: SYSTEM_DIRECTORIES.map(PathBuf::from).to_vec(),
                libc,
            },
        }
    }

    /// Breadth first from the executable, every library once.
    pub(crate) fn closure(&self, executable: &Path, elf: &Elf) -> Closure {
        let mut closure = Closure::default();
        let mut objects = vec![Object::new(executable, elf.clone(), None)];
        let mut names = HashSet::new();
        let mut files = HashSet::new();
        let mut queue = VecDeque::from([0]);
        while let Some(parent) = queue.pop_front() {
            for name in objects[parent].elf.needed.clone() {
                if !names.insert(name.clone()) || self.is_part_of_libc(&name) {
                    continue;
                }
                let needed_by = objects[parent].name.clone();
                let Some((path, elf)) = self.find(&name, parent, &objects) else {
                    closure.missing.push(Missing { name, needed_by });
                    continue;
                };
                if !files.insert(identity(&path)) {
                    continue;
                }
                let version = version::of(&name, &path);
                objects.push(Object::new(&path, elf, Some(parent)));
                queue.push_back(objects.len() - 1);
                closure.libraries.push(Library { name, path, needed_by, version });
            }
        }
        closure
    }

    /// The library that the executable would get if it requested this one at run time.
    pub(crate) fn on_request(&self, name: &str, executable: &Path, elf: &Elf) -> Option<Library> {
        let objects = [Object::new(executable, elf.clone(), None)];
        let (path, _) = self.find(name, 0, &objects)?;
        let version = version::of(name, &path);
        Some(Library { name: name.to_owned(), path, needed_by: objects[0].name.clone(), version })
    }

    /// The library that a program of this host gets if it brings neither libraries nor paths of its own.
    pub(crate) fn of_host(&self, name: &str) -> Option<Library> {
        let cached = self.by_preference(self.cache.paths(name)).into_iter().find_map(usable);
        let (path, _) = cached.or_else(|| self.in_system(name))?;
        let version = version::of(name, &path);
        Some(Library { name: name.to_owned(), path, needed_by: String::new(), version })
    }

    fn find(&self, name: &str, parent: usize, objects: &[Object]) -> Option<(PathBuf, Elf)> {
        if name.contains('/') {
            return usable(PathBuf::from(name));
        }
        let asking = &objects[parent];
        let before = inherited_rpath(parent, objects).into_iter().chain(self.library_path.iter().cloned());
        let runpath =
            asking.elf.runpath.as_deref().map(|path| expand(path, &asking.origin)).unwrap_or_default();
        if let Some(found) = before.chain(runpath).find_map(|directory| self.in_directory(&directory, name)) {
            return Some(found);
        }
        if asking.elf.no_default_libraries {
            return None;
        }
        let cached = self.by_preference(self.cache.paths(name)).into_iter().find_map(usable);
        cached.or_else(|| self.in_system(name))
    }

    fn in_system(&self, name: &str) -> Option<(PathBuf, Elf)> {
        self.directories.iter().find_map(|directory| self.in_directory(directory, name))
    }

    /// musl's loader is the library, whatever of these a program names.
    fn is_part_of_libc(&self, name: &str) -> bool {
        self.libc == Libc::Musl && MUSL_OWN.iter().any(|own| name.starts_with(own))
    }

    fn in_directory(&self, directory: &Path, name: &str) -> Option<(PathBuf, Elf)> {
        let special = self.hwcaps.iter().map(|level| directory.join("glibc-hwcaps").join(level).join(name));
        special.chain([directory.join(name)]).find_map(usable)
    }

    /// Drops what this CPU cannot run and puts the most specific variant first, as the loader does.
    fn by_preference<'a>(&self, paths: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
        let rank = |path: &Path| {
            let text = path.to_string_lossy();
            match text.split_once("/glibc-hwcaps/") {
                None => Some(self.hwcaps.len()),
                Some((_, rest)) => self.hwcaps.iter().position(|level| rest.starts_with(level)),
            }
        };
        let mut ranked: Vec<_> = paths.filter_map(|path| Some((rank(path)?, path.to_owned()))).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, path)| path).collect()
    }
}

impl Object {
    fn new(path: &Path, elf: Elf, parent: Option<usize>) -> Self {
        let origin = path.parent().unwrap_or(Path::new("/")).to_owned();
        Self { name: super::file_name(path), origin, elf, parent }
    }
}

/// `DT_RPATH` of the requesting object and of those that brought it in, unless the requesting object has a
/// `DT_RUNPATH`; an ancestor with a `DT_RUNPATH` contributes nothing.
fn inherited_rpath(object: usize, objects: &[Object]) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    if objects[object].elf.runpath.is_some() {
        return directories;
    }
    let mut next = Some(object);
    while let Some(index) = next {
        let Object { elf, origin, parent, .. } = &objects[index];
        if let (Some(rpath), None) = (&elf.rpath, &elf.runpath) {
            directories.extend(expand(rpath, origin));
        }
        next = *parent;
    }
    directories
}

/// Splits a search path and replaces the loader's tokens.
fn expand(path: &str, origin: &Path) -> Vec<PathBuf> {
    let origin = origin.to_string_lossy();
    let tokens = [("ORIGIN", &*origin), TOKENS[0], TOKENS[1]];
    let replace = |path: &str| {
        tokens.iter().fold(path.to_owned(), |path, (token, value)| {
            path.replace(&format!("${{{token}}}"), value).replace(&format!("${token}"), value)
        })
    };
    path.split(':').filter(|element| !element.is_empty()).map(|element| replace(element).into()).collect()
}

/// The file has one directory in each line, or colons between them.
fn musl_directories(file: Option<&str>) -> Vec<PathBuf> {
    match file {
        Some(text) => text.split(['\n', ':']).filter(|path| !path.is_empty()).map(PathBuf::from).collect(),
        None => MUSL_DIRECTORIES.map(PathBuf::from).to_vec(),
    }
}

/// The loader skips files of another architecture and continues its search.
fn usable(path: PathBuf) -> Option<(PathBuf, Elf)> {
    let elf = Elf::open(&path).ok()?;
    (elf.machine == Machine::HOST).then_some((path, elf))
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(target_arch = "x86_64")]
fn hwcaps() -> Vec<&'static str> {
    let v2 = is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("popcnt");
    let v3 = v2
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("fma");
    let v4 = v3
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    let levels = [(v4, "x86-64-v4"), (v3, "x86-64-v3"), (v2, "x86-64-v2")];
    levels.into_iter().filter_map(|(supported, level)| supported.then_some(level)).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn hwcaps() -> Vec<&'static str> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_musl_are_those_of_its_file() {
        assert_eq!(musl_directories(None), MUSL_DIRECTORIES.map(PathBuf::from));
        assert_eq!(musl_directories(Some("/a:/b\n/c\n")), ["/a", "/b", "/c"].map(PathBuf::from));
    }

    #[test]
    fn musl_is_whatever_part_of_it_a_program_names() {
        let [musl, glibc] = [Libc::Musl, Libc::Glibc].map(|libc| Loader::new(libc, None));
        for name in ["libc.musl-x86_64.so.1", "libc.so", "libpthread.so.0"] {
            assert!(musl.is_part_of_libc(name) && !glibc.is_part_of_libc(name), "{name}");
        }
        assert!(!musl.is_part_of_libc("libcrypto.so.3"));
    }
}
