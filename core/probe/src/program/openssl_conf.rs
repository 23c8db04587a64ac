//! What OpenSSL's configuration says about who does the cryptography: config(5), `providers` and `alg_section`.
//!
//! Nothing here trusts the file. What cannot be read is ignored.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use memchr::memmem;

use super::{Library, elf};

/// Larger than any such file.
const LONGEST: u64 = 1 << 20;
/// Limits files that include each other.
const DEEPEST: usize = 4;
/// OpenSSL's own providers, which take nothing from the default one.
const OWN: [&str; 4] = ["base", "default", "legacy", "null"];

/// How a configuration may replace OpenSSL's default provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Takeover {
    /// Every algorithm must have these properties, which the default provider's lack.
    Properties(String),
    /// A provider is activated that may do anything.
    Provider(String),
}

type Sections = BTreeMap<String, Vec<(String, String)>>;

/// The file read by a program that loads this libcrypto, unless `OPENSSL_CONF` names another.
pub fn file(libcrypto: &Library) -> Option<PathBuf> {
    const BEFORE: &[u8] = b"OPENSSLDIR: \"";
    let constants = elf::section(&libcrypto.path, ".rodata").ok()??;
    let at = memmem::find(&constants, BEFORE)? + BEFORE.len();
    let end = constants[at..].iter().take(4096).position(|byte| *byte == b'"')?;
    Some(Path::new(OsStr::from_bytes(&constants[at..at + end])).join("openssl.cnf"))
}

/// What the file changes, if anything.
pub fn takeover(file: &Path) -> Option<Takeover> {
    let mut sections = Sections::new();
    let mut section = "default".to_owned();
    read(file, DEEPEST, &mut section, &mut sections);
    find(&sections)
}

fn find(sections: &Sections) -> Option<Takeover> {
    let value = |section: &str, key: &str| {
        let entries = sections.get(section)?;
        entries.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    };
    let start = value("default", "openssl_conf")?;
    let properties =
        value(start, "alg_section").and_then(|algorithms| value(algorithms, "default_properties"));
    if let Some(properties) = properties.filter(|properties| is_foreign(properties)) {
        return Some(Takeover::Properties(properties.to_owned()));
    }
    let providers = sections.get(value(start, "providers")?)?;
    let is_active = |section: &str| value(section, "activate").is_some();
    let mut foreign = providers.iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
    foreign.find(|(_, section)| is_active(section)).map(|(name, _)| Takeover::Provider(name.clone()))
}

/// Whether the default provider's algorithms lack one of the properties; a question mark makes a property optional.
fn is_foreign(properties: &str) -> bool {
    let one = |property: &str| {
        let property: String = property.split_whitespace().collect();
        !property.is_empty()
            && !property.starts_with(['?', '-'])
            && property != "provider=default"
            && property != "fips=no"
    };
    properties.trim_matches('"').split(',').any(one)
}

/// Adds a file's contents, and those of the files that it includes.
fn read(file: &Path, depth: usize, section: &mut String, to: &mut Sections) {
    let mut text = String::new();
    let opened = File::open(file).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    if opened.is_err() {
        return;
    }
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.trim().clone_into(section);
        } else if let Some(included) = line.strip_prefix(".include") {
            let included = included.trim_start_matches([' ', '\t', '=']).trim();
            include(&file.parent().unwrap_or(Path::new("/")).join(included), depth, section, to);
        } else if let Some((key, value)) = line.split_once('=') {
            let entry = (key.trim().to_owned(), value.trim().to_owned());
            to.entry(section.clone()).or_default().push(entry);
        }
    }
}

/// A file, or all `.cnf` and `.conf` files of a folder.
fn include(path: &Path, depth: usize, section: &mut String, to: &mut Sections) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let Ok(folder) = std::fs::read_dir(path) else { return read(path, depth, section, to) };
    let mut files: Vec<PathBuf> = folder.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "cnf" || end == "conf"));
    files.sort();
    files.iter().for_each(|file| read(file, depth, section, to));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Debian ships it.
    const STOCK: &str = "HOME = .\nopenssl_conf = openssl_init\n[ new_oids ]\n[openssl_init]\nproviders = provider_sect\n\
                         [provider_sect]\ndefault = default_sect\n# fips = fips_sect\n[default_sect]\n# activate = 1\n";
    /// As in the FIPS module's manual.
    const FIPS: &str = "openssl_conf = init\n.include fips.cnf\n[init]\nproviders = list\nalg_section = algorithms\n\
                        [list]\nfips = fips_sect\nbase = base_sect\n[base_sect]\nactivate = 1\n";

    fn of(text: &str) -> Option<Takeover> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("fips.cnf"), "[fips_sect]\nactivate = 1\n").unwrap();
        std::fs::write(folder.path().join("self.cnf"), ".include self.cnf\n").unwrap();
        let file = folder.path().join("openssl.cnf");
        std::fs::write(&file, text).unwrap();
        takeover(&file)
    }

    #[test]
    fn a_stock_file_changes_nothing() {
        assert_eq!(of(STOCK), None);
        assert_eq!(of(&STOCK.replace("# activate", "activate")), None);
        assert_eq!(of(""), None);
        assert_eq!(of(".include self.cnf"), None);
        assert_eq!(takeover(Path::new("/nowhere/openssl.cnf")), None);
    }

    #[test]
    fn another_provider_and_required_properties_are_seen() {
        assert_eq!(of(FIPS), Some(Takeover::Provider("fips".into())));
        let strict = format!("{FIPS}[algorithms]\ndefault_properties = fips=yes\n");
        assert_eq!(of(&strict), Some(Takeover::Properties("fips=yes".into())));
        let request = format!("{FIPS}[algorithms]\ndefault_properties = \"?fips=yes, fips = no\"\n");
        assert_eq!(of(&request), Some(Takeover::Provider("fips".into())));
        assert_eq!(of(&FIPS.replace(".include fips.cnf\n", "")), None, "it is not activated");
        assert_eq!(of(&FIPS.replace("openssl_conf", "other_conf")), None, "nobody reads it");
    }
}
