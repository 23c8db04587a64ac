//! Locates the preload libraries and the Node.js plugin.

use std::path::{Path, PathBuf};

use hasten_probe::Program;
use hasten_probe::program::Libc;

use crate::accelerator::{Accelerator, Carrier};
use crate::plan::Reason;
use crate::surroundings::Surroundings;
use crate::{node_options, preload};

/// Debian's library directory for this architecture.
const TRIPLET: &str = if cfg!(target_arch = "aarch64") { "aarch64-linux-gnu" } else { "x86_64-linux-gnu" };

/// Installation directories, for a command that cannot determine its own location: without `/proc`.
const INSTALLED: [&str; 2] = ["/usr/lib/hasten", "/usr/local/lib/hasten"];

/// The folder beside the libraries in which those for musl are.
pub(crate) const MUSL: &str = "musl";

/// Possible locations of a library, best first: the override, the build tree, then the layouts of `make
/// install` and of the Debian package.
fn directories(surroundings: &Surroundings) -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = surroundings.library_directory.iter().cloned().collect();
    if let Some(beside) = surroundings.executable.as_deref().and_then(Path::parent) {
        directories.push(beside.to_owned());
        if let Some(prefix) = beside.parent() {
            directories.push(prefix.join("lib/hasten"));
            directories.push(prefix.join("lib").join(TRIPLET).join("hasten"));
        }
    } else {
        directories.extend(INSTALLED.map(PathBuf::from));
    }
    directories
}

/// Says that libraries are taken from somewhere other than the directory named by the user.
pub(crate) fn elsewhere<'a>(
    libraries: impl Iterator<Item = &'a Path>,
    surroundings: &Surroundings,
) -> Option<String> {
    let named = surroundings.library_directory.as_deref()?;
    let others: Vec<&Path> = libraries.filter(|library| !is_below(library, named)).collect();
    let first = others.first()?;
    let files: Vec<_> = others.iter().filter_map(|library| library.file_name()?.to_str()).collect();
    let why = if named.is_dir() { format!("has no {}", files.join(", ")) } else { "is no directory".into() };
    let place = first.parent().unwrap_or(first).display();
    Some(format!("HASTEN_LIBDIR={} {why}; what is used is in {place}", named.display()))
}

/// The same for one library, to follow its path.
pub(crate) fn remark(library: &Path, surroundings: &Surroundings) -> String {
    match surroundings.library_directory.as_deref().filter(|named| !is_below(library, named)) {
        Some(named) => format!(", which is not in HASTEN_LIBDIR ({})", named.display()),
        None => String::new(),
    }
}

fn is_below(library: &Path, directory: &Path) -> bool {
    std::path::absolute(directory).is_ok_and(|directory| library.starts_with(directory))
}

/// The accelerator's library or plugin, or a reason against it that names every place searched.
pub(crate) fn find(
    accelerator: &dyn Accelerator,
    program: Option<&Program>,
    surroundings: &Surroundings,
) -> Result<PathBuf, Reason> {
    if cfg!(target_arch = "aarch64") && !accelerator.is_for_arm64() {
        return Err(Reason::against("it exists for x86-64 only").fix("use an x86-64 machine"));
    }
    let carrier = accelerator.carrier();
    // Where this command is one of musl, so are most programs of the host.
    let is_for_musl = program.map_or(cfg!(target_env = "musl"), |program| program.libc() == Some(Libc::Musl));
    let is_musl = is_for_musl && carrier == Carrier::LdPreload;
    if !is_musl {
        return find_file(accelerator.library(), carrier, surroundings);
    }
    if !accelerator.is_for_musl() {
        return Err(Reason::against("its library exists for glibc only").fix("use a build for glibc"));
    }
    find_file(&format!("{MUSL}/{}", accelerator.library()), carrier, surroundings)
}

/// The shim, likewise.
pub(crate) fn find_shim(surroundings: &Surroundings) -> Result<PathBuf, Reason> {
    find_file(preload::SHIM, Carrier::LdPreload, surroundings)
}

fn find_file(file: &str, carrier: Carrier, surroundings: &Surroundings) -> Result<PathBuf, Reason> {
    let directories = directories(surroundings);
    let Some(path) = directories.iter().map(|directory| directory.join(file)).find(|path| path.is_file())
    else {
        let searched: Vec<_> = directories.iter().map(|directory| directory.display().to_string()).collect();
        return Err(Reason::against(format!("{file} is not in {}", searched.join(", ")))
            .fix("install it with `make install`, or set HASTEN_LIBDIR to its directory"));
    };
    if let Err(error) = std::fs::File::open(&path) {
        return Err(Reason::against(format!("{} cannot be read: {error}", path.display()))
            .fix(format!("chmod a+r {}", path.display())));
    }
    // The child may have another working directory, so the path must be absolute.
    let path = std::path::absolute(&path).unwrap_or(path);
    let cannot_carry = match carrier {
        Carrier::LdPreload => preload::cannot_carry(&path),
        Carrier::NodeOptions => node_options::cannot_carry(&path),
    };
    cannot_carry.map_or(Ok(path), Err)
}
