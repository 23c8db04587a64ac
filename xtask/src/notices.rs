//! The licence texts that must accompany the binaries, because third-party code is linked into them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::error::Error;
use crate::workspace::{Package, Workspace};

const SHIPPED: [&str; 7] =
    ["hasten", "hasten-tls", "hasten-gzip", "hasten-envoy", "hasten-readcache", "hasten-wal", "hasten-tier"];

/// Code in the build, linked or embedded, that is not a crate: the location of its licence, and what it is.
const ARCHIVES: [(&str, &str); 4] = [
    ("core/charts/vendor/LICENSE", "uPlot, in the pages of `hasten gc --html` (MIT)"),
    (".deps/crypto_mb/LICENSE", "Intel Cryptography Primitives, crypto_mb (Apache-2.0)"),
    (".deps/isal/LICENSE", "Intel Intelligent Storage Acceleration Library, igzip (BSD-3-Clause)"),
    (".deps/libdeflate/LICENSE", "libdeflate, changed where scripts/libdeflate.sh says (MIT)"),
];

/// Third-party code inside a crate, with its licence file not at the crate's top.
const BUNDLED: [(&str, &str, &str); 2] = [
    ("libz-ng-sys", "src/zlib-ng/LICENSE.md", "zlib-ng, which `hasten bench gzip` compares with (Zlib)"),
    ("zstd-sys", "zstd/LICENSE", "libzstd, which packs what `hasten snapshot` writes (BSD-3-Clause)"),
];

const HEAD: &str = "\
hasten is licensed under the Apache License 2.0, see the file LICENSE.
It contains the work of others, under the licences below.
";

/// Prints each text once, under the names of everything it covers.
pub(crate) fn print(workspace: &Workspace) -> Result<(), Error> {
    let mut covers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let ours: Vec<_> = workspace.members().map(|member| &member.name).collect();
    for package in workspace.closure(&SHIPPED).into_iter().filter(|package| !ours.contains(&&package.name)) {
        let license = package.license.as_deref().unwrap_or("see its text");
        for text in texts(package)? {
            covers.entry(text).or_default().push(format!("{} {} ({license})", package.name, package.version));
        }
        for (_, path, name) in BUNDLED.into_iter().filter(|(krate, ..)| *krate == package.name) {
            let path = package.directory().join(path);
            let text = fs::read_to_string(&path).map_err(|source| Error::File { path, source })?;
            covers.entry(normal(&text)).or_default().push(name.to_owned());
        }
    }
    for (license, name) in ARCHIVES {
        covers.entry(normal(&workspace.read(license)?)).or_default().push(name.to_owned());
    }

    println!("{HEAD}");
    for (text, names) in covers {
        println!("{}\n\n{}\n\n{text}\n", "=".repeat(78), names.join("\n"));
    }
    Ok(())
}

/// A package's licence files; if there is a choice that includes MIT, only that one.
fn texts(package: &Package) -> Result<Vec<String>, Error> {
    let mut files = license_files(package.directory())?;
    let is_choice = package.license.as_deref().is_some_and(|license| !license.contains(" AND "));
    if is_choice && files.iter().any(|(name, _)| name.contains("MIT")) {
        files.retain(|(name, _)| name.contains("MIT"));
    }
    if files.is_empty() {
        return Ok(vec!["Published without a licence file; the licence is named above.".to_owned()]);
    }
    Ok(files.into_iter().map(|(_, text)| text).collect())
}

fn license_files(directory: &Path) -> Result<Vec<(String, String)>, Error> {
    const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];
    let error = |source| Error::File { path: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && NAMES.iter().any(|prefix| name.starts_with(prefix)) {
            files.push((name, normal(&fs::read_to_string(&path).map_err(error)?)));
        }
    }
    files.sort();
    Ok(files)
}

/// Normalises white space, which would keep equal texts apart.
fn normal(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_licence_files_whatever_their_spelling() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["License-MIT.txt", "COPYING", "README.md"] {
            fs::write(directory.path().join(name), "\n text \n\n").unwrap();
        }
        let files = license_files(directory.path()).unwrap();
        let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["COPYING", "LICENSE-MIT.TXT"]);
        assert_eq!(files[0].1, " text");
    }
}
