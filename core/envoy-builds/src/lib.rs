//! The builds of Envoy whose code is known: one table, by which the plan judges a program before it starts, and the
//! library the process it is in.
//!
//! Envoy links its libraries statically, so none of its calls can be interposed. But it reaches its extensions through
//! virtual functions, and the tables of those are data. A replacement is called as the original was and works on Envoy's
//! objects, so it must know them. `cargo xtask envoy` reads from a build where the classes are, and fingerprints the code
//! that shows their layout. All addresses count from the beginning of the program.

#![forbid(unsafe_code)]

mod builds;
mod fingerprint;

pub use builds::BUILDS;
pub use fingerprint::fingerprint;

/// A build of Envoy.
#[derive(Debug, PartialEq, Eq)]
pub struct Build {
    /// As its makers call it.
    pub release: &'static str,
    /// The linker's note. Envoy's is the commit it was built from, so builds with other options may have the same.
    pub build_id: &'static str,
    /// What makes the compressors of the gzip filter: [`GZIP`].
    pub gzip: Class,
    /// What holds bodies: [`BUFFER`].
    pub buffer: Class,
    /// The type information of [`COMPRESSOR`].
    pub compressor: u64,
}

/// A class and its virtual functions.
#[derive(Debug, PartialEq, Eq)]
pub struct Class {
    /// The address of its table of virtual functions.
    pub table: u64,
    /// The functions that matter here, in a fixed order.
    pub functions: &'static [Function],
}

/// A virtual function.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its place in the table.
    pub slot: usize,
    /// Its code: the function that is called, and the one, if any, to which it only jumps.
    pub code: &'static [Code],
}

/// A piece of code.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    pub address: u64,
    pub length: usize,
    /// [`fingerprint`] of its bytes.
    pub fingerprint: u64,
}

/// `GzipCompressorFactory`, by the name in its run-time type information.
pub const GZIP: &str = "N5Envoy10Extensions11Compression4Gzip10Compressor21GzipCompressorFactoryE";

/// The interface of what it makes.
pub const COMPRESSOR: &str = "N5Envoy11Compression10Compressor10CompressorE";

/// The class of all buffers, or their base.
pub const BUFFER: &str = "N5Envoy6Buffer9OwnedImplE";

/// The functions of [`GZIP`].
pub mod gzip {
    /// `CompressorPtr createCompressor()`, where `CompressorPtr` is a `std::unique_ptr`.
    pub const CREATE: usize = 0;
}

/// What a [`GZIP`] consists of. The code of `createCompressor` reads these fields and nothing else of it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GzipFactory {
    /// The address of its table of virtual functions.
    pub functions: usize,
    /// zlib's number.
    pub level: i64,
    /// zlib's number.
    pub strategy: u64,
    pub mem_level: i32,
    /// Plus 16, which asks for gzip's header.
    pub window_bits: i32,
    /// How much is output at a time, in bytes.
    pub chunk_size: u32,
}

/// The functions of [`BUFFER`].
pub mod buffer {
    /// `void add(const void* data, uint64_t size)`
    pub const ADD: usize = 0;
    /// `void drain(uint64_t size)`
    pub const DRAIN: usize = 1;
    /// `RawSlice frontSlice() const`
    pub const FRONT_SLICE: usize = 2;
    /// `uint64_t length() const`
    pub const LENGTH: usize = 3;
}

impl Build {
    /// The build with this build-id, in hexadecimal digits.
    pub fn of(build_id: &str) -> Option<&'static Self> {
        BUILDS.iter().find(|build| build.build_id == build_id)
    }

    /// The classes, with their names.
    pub fn classes(&self) -> [(&'static str, &Class); 2] {
        [(GZIP, &self.gzip), (BUFFER, &self.buffer)]
    }
}

/// The releases in the table, newest first, as a sentence has them.
pub fn releases() -> String {
    BUILDS.iter().map(|build| build.release).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_unique_and_complete() {
        for (at, build) in BUILDS.iter().enumerate() {
            assert!(BUILDS[..at].iter().all(|other| other.build_id != build.build_id), "{}", build.release);
            assert_eq!(build.build_id.len(), 40, "{}", build.release);
            assert_eq!(
                (build.gzip.functions.len(), build.buffer.functions.len()),
                (1, 4),
                "{}",
                build.release
            );
            for (name, class) in build.classes() {
                assert_eq!(class.table % 8, 0, "{} {name}", build.release);
                assert!(
                    class.functions.iter().all(|function| !function.code.is_empty()),
                    "{}",
                    build.release
                );
            }
        }
    }

    #[test]
    fn build_is_found_by_its_id() {
        let first = &BUILDS[0];
        assert_eq!(Build::of(first.build_id), Some(first));
        assert_eq!(Build::of(""), None);
    }
}
