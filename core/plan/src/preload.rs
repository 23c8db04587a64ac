//! Composing `LD_PRELOAD`, and whether a program would heed it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use hasten_probe::Program;
use hasten_probe::program::elf::Machine;
use hasten_probe::program::{Libc, Linkage};

use crate::accelerator::{self, Carrier};
use crate::library::MUSL;
use crate::plan::Reason;

/// The shim, which loads the libraries of all accelerators where they can be loaded.
pub(crate) const SHIM: &str = "libhasten.so";

/// Which accelerators the shim is to load, where the plan has chosen them; without it, the shim chooses.
pub(crate) const CHOSEN: &str = "HASTEN_PRELOAD";

/// The shim beside these libraries, or above those for musl, and their accelerators' names. A program that inherits the variables may be linked with
/// another C library, and would end at its start if a library for this one were named. `None` if they have no shim beside them,
/// as in a tree that is not completely built: the libraries are named then.
pub(crate) fn through_shim(libraries: &[(&str, PathBuf)]) -> Option<(PathBuf, OsString)> {
    let shim_of = |library: &Path| {
        let folder = library.parent()?;
        let is_musl = folder.file_name() == Some(OsStr::new(MUSL));
        Some(if is_musl { folder.parent()? } else { folder }.join(SHIM))
    };
    let shim = shim_of(&libraries.first()?.1)?;
    let are_beside = libraries.iter().all(|(_, library)| shim_of(library).as_ref() == Some(&shim));
    let names: Vec<_> = libraries.iter().map(|(name, _)| *name).collect();
    (are_beside && File::open(&shim).is_ok()).then(|| (shim, names.join(",").into()))
}

/// Why `LD_PRELOAD` cannot name this path, if it cannot.
pub(crate) fn cannot_carry(path: &Path) -> Option<Reason> {
    path.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte)).then(|| {
        Reason::against(format!("{} holds a character that LD_PRELOAD cannot carry", path.display()))
            .fix("move hasten to a path without spaces, colons and dollar signs")
    })
}

/// The change to `LD_PRELOAD`, if any.
pub(crate) fn change(
    present: Option<&OsStr>,
    libraries: &[PathBuf],
) -> Option<(&'static str, Option<OsString>)> {
    let value = Some(compose(present, libraries)).filter(|value| !value.is_empty());
    (value.as_deref() != present).then_some(("LD_PRELOAD", value))
}

/// `LD_PRELOAD` with `libraries` behind the present value.
///
/// Behind, because some libraries insist on being first (sanitizers do). Ours are dropped from the old value, so that
/// `hasten run` inside `hasten run` does what the inner one says.
pub(crate) fn compose(present: Option<&OsStr>, libraries: &[PathBuf]) -> OsString {
    let present = present.unwrap_or_default().as_bytes().split(|byte| b" :".contains(byte));
    let foreign = present.filter(|entry| !entry.is_empty() && !is_ours(entry));
    let ours = libraries.iter().map(|path| path.as_os_str().as_bytes());
    OsString::from_vec(foreign.chain(ours).collect::<Vec<_>>().join(&b':'))
}

fn is_ours(entry: &[u8]) -> bool {
    let file = Path::new(OsStr::from_bytes(entry)).file_name();
    let mut libraries =
        accelerator::carried_by(Carrier::LdPreload).map(|known| known.library()).chain([SHIM]);
    libraries.any(|library| file == Some(OsStr::new(library)))
}

/// Whether the dynamic loader would preload anything into `program`.
pub(crate) fn accepts(program: &Program) -> Reason {
    let name = program.name();
    if program.machine.is_foreign() {
        return Reason::against(format!("{name} is not built for {}", Machine::HOST_NAME))
            .fix(format!("use the {} build of the server", Machine::HOST_BUILD));
    }
    if program.privilege.secure_exec {
        return Reason::against(format!(
            "{name} gains {} at start, so the loader ignores LD_PRELOAD",
            gained(program)
        ))
        .fix(format!(
            "start it as the user it becomes, or drop the bit from {}",
            program.executable.display()
        ));
    }
    linkage(program, &name)
}

fn linkage(program: &Program, name: &str) -> Reason {
    match &program.linkage {
        Linkage::Static => {
            Reason::against(format!("{name} is statically linked: there is no loader to preload anything"))
                .fix(format!(
                    "use a dynamically linked build; if {name} only starts the server, put hasten behind it: \
                 `{name} … hasten run -- SERVER`"
                ))
        }
        Linkage::Unknown { why } => {
            Reason::against(format!("cannot tell what {} is: {why}", program.executable.display()))
                .fix("check that it is a program for this machine, and that this user may read it")
        }
        Linkage::Dynamic { libc: Libc::Glibc, .. } => {
            Reason::favour(format!("{name} is dynamically linked with glibc"))
        }
        Linkage::Dynamic { libc: Libc::Musl, .. } => {
            Reason::favour(format!("{name} is dynamically linked with musl"))
        }
        Linkage::Dynamic { libc: Libc::Other, interpreter } => Reason::against(format!(
            "{name} is started by {}, which is neither glibc's nor musl's loader",
            interpreter.display()
        ))
        .fix("use a build for glibc"),
    }
}

pub(crate) fn gained(program: &Program) -> &'static str {
    let privilege = &program.privilege;
    match (privilege.setuid, privilege.setgid) {
        (true, _) => "another user's rights (set-user-ID)",
        (_, true) => "another group's rights (set-group-ID)",
        _ => "file capabilities",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_preloaded_already_and_adds_ours_behind() {
        let ours = [PathBuf::from("/opt/hasten/libhasten_tls.so")];
        let compose = |present: &str| compose(Some(present.as_ref()), &ours);
        assert_eq!(compose(""), "/opt/hasten/libhasten_tls.so");
        assert_eq!(compose("/a.so /b.so"), "/a.so:/b.so:/opt/hasten/libhasten_tls.so");
    }

    #[test]
    fn replaces_ours_instead_of_loading_it_twice() {
        let old = OsStr::new("/elsewhere/libhasten_tls.so:/a.so");
        assert_eq!(compose(Some(old), &["/new/libhasten_tls.so".into()]), "/a.so:/new/libhasten_tls.so");
        assert_eq!(compose(Some(old), &[]), "/a.so");
    }

    /// In an image with `ENV LD_PRELOAD=/usr/lib/hasten/libhasten.so`: if left there, it would load what the plan
    /// leaves out.
    #[test]
    fn replaces_the_shim_too() {
        let image = OsStr::new("/usr/lib/hasten/libhasten.so:/a.so:/libhasten.so.1");
        let ours = ["/usr/lib/hasten/libhasten_tls.so".into()];
        assert_eq!(compose(Some(image), &ours), "/a.so:/libhasten.so.1:/usr/lib/hasten/libhasten_tls.so");
    }
}
