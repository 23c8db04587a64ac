//! What one row compares.

use std::fmt;
use std::str::FromStr;

use hasten_deflate::engine::EngineKind;
use hasten_evidence::report::Case;
use serde::{Serialize, Serializer};

use super::corpus::size_name;
use crate::server::ServerKind;

/// What compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The system's libz.
    Original,
    /// The same calls with `libhasten_gzip.so` preloaded.
    Hasten,
    ZlibNg,
    Isal,
    Libdeflate,
    ZlibRs,
}

impl Engine {
    pub const ALL: [Self; 6] =
        [Self::Original, Self::Hasten, Self::ZlibNg, Self::Isal, Self::Libdeflate, Self::ZlibRs];

    /// The engines compared with the original.
    pub const COMPARED: [Self; 5] = [Self::Hasten, Self::ZlibNg, Self::Isal, Self::Libdeflate, Self::ZlibRs];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Original => EngineKind::Original.as_str(),
            Self::Hasten => "hasten",
            Self::ZlibNg => "zlib-ng",
            Self::Isal => EngineKind::Isal.as_str(),
            Self::Libdeflate => EngineKind::Libdeflate.as_str(),
            Self::ZlibRs => EngineKind::ZlibRs.as_str(),
        }
    }

    /// The kinds of work worth a row at `level`.
    pub(super) fn works(self, level: u8, inflate_level: u8) -> Vec<LibraryWork> {
        let mut works = Vec::new();
        // ISA-L has three levels.
        if self != Self::Isal || level <= 3 {
            works.push(LibraryWork::Deflate);
        }
        if self == Self::Hasten {
            works.push(LibraryWork::Stream);
        }
        if matches!(self, Self::Hasten | Self::ZlibNg) && level == inflate_level {
            works.push(LibraryWork::Inflate);
        }
        works
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown engine {0:?}: use hasten, zlib-ng, isal, libdeflate or zlib-rs")]
pub struct UnknownEngine(String);

impl FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(given: &str) -> Result<Self, UnknownEngine> {
        let known = Self::ALL.into_iter().find(|engine| engine.as_str() == given);
        known.ok_or_else(|| UnknownEngine(given.to_owned()))
    }
}

/// What a library does in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryWork {
    /// Each file in one call.
    Deflate,
    /// Each file in pieces of 8 KiB.
    Stream,
    /// The original's output, each file in one call.
    Inflate,
}

impl LibraryWork {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deflate => "deflate",
            Self::Stream => "deflate 8KB",
            Self::Inflate => "inflate",
        }
    }
}

/// One row of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum GzipCase {
    Library(LibraryCase),
    Server(ServerCase),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LibraryCase {
    #[serde(serialize_with = "engine_name")]
    pub engine: Engine,
    #[serde(serialize_with = "work_name")]
    pub work: LibraryWork,
    pub level: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ServerCase {
    #[serde(serialize_with = "server_name")]
    pub server: ServerKind,
    #[serde(serialize_with = "body_size")]
    pub size: usize,
    pub level: u8,
}

impl Case for GzipCase {
    const COLUMNS: &'static [&'static str] = &["engine or server", "work", "level"];
    const LATENCY: &'static str = "From the request to the last byte of the answer";

    fn cells(&self) -> Vec<String> {
        match self {
            Self::Library(LibraryCase { engine, work, level }) => {
                vec![engine.to_string(), work.as_str().to_owned(), level.to_string()]
            }
            Self::Server(ServerCase { server, size, level }) => {
                vec![server.to_string(), size_name(*size), level.to_string()]
            }
        }
    }

    fn title(&self) -> String {
        let cells = self.cells();
        format!("{} · {} · level {}", cells[0], cells[1], cells[2])
    }

    fn is_claim(&self) -> bool {
        match self {
            Self::Library(case) => case.engine == Engine::Hasten,
            Self::Server(_) => true,
        }
    }

    fn curve(&self) -> Option<(String, u8)> {
        match self {
            Self::Library(LibraryCase { engine, work: LibraryWork::Deflate, level }) => {
                Some((engine.to_string(), *level))
            }
            _ => None,
        }
    }
}

fn engine_name<S: Serializer>(engine: &Engine, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(engine.as_str())
}

fn work_name<S: Serializer>(work: &LibraryWork, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(work.as_str())
}

fn server_name<S: Serializer>(server: &ServerKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(server.as_str())
}

fn body_size<S: Serializer>(size: &usize, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&size_name(*size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_have_the_names_of_the_data_format() {
        let library = LibraryCase { engine: Engine::ZlibNg, work: LibraryWork::Deflate, level: 6 };
        let json = serde_json::to_value(GzipCase::Library(library)).unwrap();
        assert_eq!(json, serde_json::json!({ "engine": "zlib-ng", "work": "deflate", "level": 6 }));
        let server = ServerCase { server: ServerKind::Nginx, size: 100 << 10, level: 6 };
        let json = serde_json::to_value(GzipCase::Server(server)).unwrap();
        assert_eq!(json, serde_json::json!({ "server": "nginx", "size": "100KB", "level": 6 }));
    }
}
