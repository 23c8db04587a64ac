//! Locates units and their drop-ins.

use std::fs;
use std::path::{Path, PathBuf};

use super::UnitError;

/// In systemd's order: the first file counts, and drop-ins from all of them.
pub const SEARCH_PATH: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

pub(super) struct Found {
    pub(super) name: String,
    pub(super) files: Vec<PathBuf>,
}

pub(super) fn find(name: &str, folders: &[PathBuf]) -> Result<Found, UnitError> {
    let path = Path::new(name);
    if name.contains('/') {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut files = vec![path.to_owned()];
        files.extend(drop_ins(
            std::slice::from_ref(&name),
            &[path.parent().unwrap_or(Path::new("")).to_owned()],
        ));
        return Ok(Found { name, files });
    }
    let name = if name.ends_with(".service") { name.to_owned() } else { format!("{name}.service") };
    let mut names = vec![name.clone()];
    names.extend(template(&name));
    let candidates = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let Some(file) = candidates.into_iter().find(|path| path.exists()) else {
        let searched =
            folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ");
        return Err(UnitError::NotFound { name, searched });
    };
    let files = [file].into_iter().chain(drop_ins(&names, folders)).collect();
    Ok(Found { name, files })
}

/// `redis@.service` for `redis@a.service`.
fn template(name: &str) -> Option<String> {
    let (prefix, _) = name.strip_suffix(".service")?.split_once('@')?;
    Some(format!("{prefix}@.service"))
}

/// Sorted by file name, whatever the folder; a file in an earlier folder replaces one of the same name.
fn drop_ins(names: &[String], folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in folders {
        for name in names {
            for entry in fs::read_dir(folder.join(format!("{name}.d"))).into_iter().flatten().flatten() {
                let path = entry.path();
                let is_new = !found.iter().any(|known| known.file_name() == path.file_name());
                if path.extension() == Some("conf".as_ref()) && is_new {
                    found.push(path);
                }
            }
        }
    }
    found.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    found
}
