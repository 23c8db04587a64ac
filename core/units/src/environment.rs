//! The variables with which a service starts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;

use crate::properties::Properties;
use crate::text::environment_file;
use crate::words;

pub(crate) type Variables = BTreeMap<OsString, OsString>;

/// Those that systemd sets for a service by itself, as far as they decide what a program finds.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";

/// Those of the lines, then those of the files, which win.
pub(crate) fn of(properties: &Properties) -> Variables {
    let mut variables = Variables::from([("PATH".into(), PATH.into())]);
    variables.extend(properties.all("Environment").flat_map(assignments));
    variables.extend(of_files(properties));
    for name in properties.all("UnsetEnvironment").flat_map(|names| words::split(names).unwrap_or_default()) {
        variables.remove(&OsString::from(name));
    }
    variables
}

/// The variables of the files alone; one that cannot be read has none.
pub(crate) fn of_files(properties: &Properties) -> Variables {
    let texts = properties.files("EnvironmentFiles").filter_map(|path| fs::read_to_string(path).ok());
    texts.flat_map(|text| environment_file(&text)).collect()
}

fn assignments(line: &str) -> Vec<(OsString, OsString)> {
    let words = words::split(line).unwrap_or_default();
    let pair = |word: &String| word.split_once('=').map(|(name, value)| (name.into(), value.into()));
    words.iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(text: &str) -> Variables {
        of(&Properties::parse_all(text)[0])
    }

    #[test]
    fn lines_are_split_as_systemd_quotes_them() {
        let variables = variables("Environment=A=b \"C=d e\" PATH=/opt/bin\n");
        let get = |name: &str| variables[&OsString::from(name)].to_str().unwrap();
        assert_eq!((get("A"), get("C"), get("PATH")), ("b", "d e", "/opt/bin"));
    }

    #[test]
    fn files_win_and_what_is_unset_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("default");
        fs::write(&file, "# a comment\nLD_PRELOAD=\"/a.so\"\nEMPTY=\n").unwrap();
        let variables = variables(&format!(
            "Environment=LD_PRELOAD=/b.so GONE=1\nEnvironmentFiles={} (ignore_errors=no)\n\
             EnvironmentFiles=/no/such (ignore_errors=yes)\nUnsetEnvironment=GONE\n",
            file.display()
        ));
        assert_eq!(variables[&OsString::from("LD_PRELOAD")], "/a.so");
        assert!(variables.contains_key(&OsString::from("EMPTY")));
        assert!(!variables.contains_key(&OsString::from("GONE")));
    }
}
