//! What the accelerated side is compared with.

use std::path::{Path, PathBuf};

use crate::server::{Launcher, ServerSpec};

/// The stock program, or one accelerated by another build of hasten.
#[derive(Clone, Debug, Default)]
pub enum Baseline {
    #[default]
    Stock,
    Build(Build),
}

/// A directory with a `hasten` and its libraries.
#[derive(Clone, Debug)]
pub struct Build {
    directory: PathBuf,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not there", .0.display())]
pub struct NoBuild(PathBuf);

impl Build {
    const PARTS: [&str; 3] = ["hasten", "libhasten_tls.so", "libhasten_gzip.so"];

    /// # Errors
    /// If part of it is missing: that part would be compared as if it were stock.
    pub fn new(directory: PathBuf) -> Result<Self, NoBuild> {
        // The servers start in their own directories.
        let directory = directory.canonicalize().map_err(|_| NoBuild(directory))?;
        match Self::PARTS.map(|part| directory.join(part)).into_iter().find(|part| !part.is_file()) {
            Some(missing) => Err(NoBuild(missing)),
            None => Ok(Self { directory }),
        }
    }

    fn part(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Baseline {
    /// The server for the other side.
    pub(crate) fn server(&self, spec: ServerSpec) -> ServerSpec {
        match self {
            Self::Stock => spec,
            Self::Build(build) => spec
                .launcher(Launcher::Hasten { exe: build.part("hasten") })
                .env("HASTEN_LIBDIR", &build.directory),
        }
    }

    /// The gzip library preloaded on the other side.
    pub(crate) fn gzip_library(&self) -> Option<PathBuf> {
        match self {
            Self::Stock => None,
            Self::Build(build) => Some(build.part("libhasten_gzip.so")),
        }
    }

    /// What the report's reader has to know.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Self::Stock => String::new(),
            Self::Build(Build { directory }) => {
                format!(" \"Stock\" is another build of hasten here, that in {}.", directory.display())
            }
        }
    }

    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Stock => None,
            Self::Build(build) => Some(&build.directory),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_complete_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        for part in Build::PARTS {
            let missing = Build::new(folder.path().to_owned()).unwrap_err();
            assert_eq!(missing, NoBuild(path.join(part)));
            std::fs::write(path.join(part), "").unwrap();
        }
        assert_eq!(Build::new(folder.path().to_owned()).unwrap().directory, path);
        assert_eq!(Build::new("/none".into()).unwrap_err().to_string(), "/none is not there");
    }
}
