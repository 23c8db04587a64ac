//! Programs that use zlib, and zlib's users' own test suites: they pass as they do without the library.

mod everyday;
mod suites;
