//! Allocators that can replace malloc, located as the dynamic loader would locate them.

use std::path::PathBuf;

use hasten_probe::program::ldcache::Cache;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocator {
    Jemalloc,
    Mimalloc,
    Tcmalloc,
}

impl Allocator {
    pub const ALL: [Self; 3] = [Self::Jemalloc, Self::Mimalloc, Self::Tcmalloc];
    pub(crate) const NAMES: [&str; 3] = ["jemalloc", "mimalloc", "tcmalloc"];

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|allocator| allocator.name() == name)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Its library, if it is installed.
    #[must_use]
    pub fn library(self) -> Option<PathBuf> {
        let cache = Cache::system();
        self.sonames().iter().find_map(|name| cache.paths(name).find(|path| path.exists()).map(Into::into))
    }

    /// The Debian package that contains it.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Jemalloc => "libjemalloc2",
            Self::Mimalloc => "libmimalloc2.0",
            Self::Tcmalloc => "libtcmalloc-minimal4",
        }
    }

    fn sonames(self) -> &'static [&'static str] {
        match self {
            Self::Jemalloc => &["libjemalloc.so.2"],
            Self::Mimalloc => &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0"],
            Self::Tcmalloc => &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"],
        }
    }
}
