//! Programs that use zlib, and test suites of zlib's users: they pass as they do without the library.

mod everyday;
mod suites;
