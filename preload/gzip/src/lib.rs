//! `libhasten_gzip.so`: zlib's streams of unmodified programs, by faster engines.

#[cfg(all(not(test), not(panic = "abort")))]
compile_error!("a panic must not unwind through a program's C frames: build with panic = \"abort\"");
